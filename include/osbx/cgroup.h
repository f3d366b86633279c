/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: runtime
 * cgroup - the sandbox's own cgroup v2 directory (cgroups(7)), where the caller may make one.
 *
 * BASE/osbx/ID with BASE the caller's own cgroup in the v2 hierarchy, found through
 * /proc/self/cgroup and statfs magic of the usual mount points, without parsing mount tables.
 */
#ifndef OSBX_CGROUP_H
#define OSBX_CGROUP_H

#include <stdbool.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/id.h>

struct cgroup {
	int dir_fd;  /* BASE/osbx/ID, -1: none */
	int base_fd; /* BASE/osbx */
	struct id id;
};

#define CGROUP_INIT                          \
	{                                    \
		.dir_fd = -1, .base_fd = -1, \
	}

/* Make the directory. 0 also when there is no writable v2 hierarchy (out->dir_fd stays -1: nothing
 * was asked of it); -1 only for what cannot be explained so. */
int cgroup_start(const struct id *id, struct cgroup *out_cg, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* Freeze or thaw, waiting up to 1 s for cgroup.events to say so. 0 or -errno (-EOPNOTSUPP without
 * a cgroup). */
int cgroup_freeze(const struct cgroup *cg, bool on) NONNULL(1) MUST_CHECK;
/* cgroup.kill (Linux 5.14; else every pid of cgroup.procs by pidfd). 0 or -errno. */
int cgroup_kill(const struct cgroup *cg) NONNULL(1) MUST_CHECK;
/* Remove the directory, with leaves; what still lives in it is killed. BASE/osbx goes with the last
 * one. Closes the descriptors. */
void cgroup_stop(struct cgroup *cg);
AUTO_DEFINE(cgroup, struct cgroup, cgroup_stop);
/* Remove the cgroup of a sandbox that is gone: kill, then remove. Missing is success. */
int cgroup_sweep(const struct id *id) NONNULL(1) MUST_CHECK;

#endif
