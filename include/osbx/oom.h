/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * oom - what the kernel has killed for want of memory.
 */
#ifndef OSBX_OOM_H
#define OSBX_OOM_H

#include <stdint.h>

#include <osbx/compiler.h>

/* Number of processes of a control group (its directory, or -1) that were killed: oom_kill of
 * memory.events (cgroup-v2). 0 where nobody knows. */
uint64_t oom_kills(int cgroup_fd) MUST_CHECK;

#endif
