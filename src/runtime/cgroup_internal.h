/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_internal - names below BASE. */
#ifndef OSBX_RUNTIME_CGROUP_INTERNAL_H
#define OSBX_RUNTIME_CGROUP_INTERNAL_H

#define CGROUP_PARENT "osbx"
#define CGROUP_KEEPER "keeper" /* no id looks like that */

/* The caller's BASE: fd, or -ENOENT if it is in no cgroup of version 2, or -errno. */
int cgroup_open_own(void);
/* 1: processes beside this one are in this very cgroup; 0: none; or -errno. */
int cgroup_others(int dir_fd);

#endif
