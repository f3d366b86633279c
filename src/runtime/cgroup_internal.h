/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_internal - names below BASE. */
#ifndef OSBX_RUNTIME_CGROUP_INTERNAL_H
#define OSBX_RUNTIME_CGROUP_INTERNAL_H

#define CGROUP_PARENT "osbx"
#define CGROUP_KEEPER "keeper" /* no id looks like that */

#endif
