/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: runtime
 * cgroup - the sandbox's own cgroup v2 directory (cgroups(7)), where the caller may make one.
 *
 * BASE/osbx/ID with BASE the caller's own cgroup in the v2 hierarchy, found through
 * /proc/self/cgroup and statfs magic of the usual mount points, without parsing mount tables. Where
 * controllers can only be enabled once BASE has no process of its own (cgroups(7)), the caller
 * moves to BASE/osbx/keeper, and BASE stays what it was.
 */
#ifndef OSBX_CGROUP_H
#define OSBX_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/id.h>

struct cgroup {
	int dir_fd;  /* BASE/osbx/ID, -1: none */
	int base_fd; /* BASE/osbx */
	struct id id;
};

/* 0: no limit. */
struct cgroup_limits {
	uint64_t cpu_milli; /* thousandths of a CPU, at least 10 */
	uint64_t memory_bytes;
	uint64_t pids; /* beside PID 1 */
};

enum cgroup_limit {
	CGROUP_LIMIT_CPU,
	CGROUP_LIMIT_MEMORY,
	CGROUP_LIMIT_PIDS,
	CGROUP_LIMIT_COUNT,
};

#define CGROUP_INIT                          \
	{                                    \
		.dir_fd = -1, .base_fd = -1, \
	}

/* Make the directory. 0 also when there is no writable v2 hierarchy (out->dir_fd stays -1: nothing
 * was asked of it); -1 only for what cannot be explained so. */
int cgroup_start(const struct id *id, struct cgroup *out_cg, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* Set limits, enabling controllers from the top down and reading back what was set. With
 * best_effort *out_missing gets a bit (1 << enum cgroup_limit) for each that is not in force; else
 * such a one is ERRC_UNSUPPORTED, and says where what was looked for. */
int cgroup_limit(const struct cgroup *cg, const struct cgroup_limits *l, bool best_effort,
		unsigned int *out_missing, struct error *e) MUST_CHECK NONNULL(1, 2, 4, 5);
/* "cpu", "memory", "pids": the controller. */
const char *cgroup_limit_name(enum cgroup_limit limit);
/* How many processes of it the kernel has killed because the memory limit was reached; 0 also when
 * that is not known. */
uint64_t cgroup_oom_kills(const struct cgroup *cg) NONNULL(1);
/* Let uid and gid (container root, by its ids outside) make cgroups below it and move processes
 * between them; the limits stay out of reach. Nothing to do for an ordinary user, whose cgroup it
 * is anyway. 0 or -errno. */
int cgroup_delegate(const struct cgroup *cg, uid_t uid, gid_t gid) NONNULL(1) MUST_CHECK;
/* Freeze or thaw, waiting up to 1 s for cgroup.events to say so. 0 or -errno (-EOPNOTSUPP without
 * a cgroup). */
int cgroup_freeze(const struct cgroup *cg, bool on) NONNULL(1) MUST_CHECK;
/* cgroup.kill (Linux 5.14; else every pid of cgroup.procs by pidfd). 0 or -errno. */
int cgroup_kill(const struct cgroup *cg) NONNULL(1) MUST_CHECK;
/* Remove the directory, with leaves; what still lives in it is killed. BASE/osbx goes with the last
 * one. Closes the descriptors. */
void cgroup_stop(struct cgroup *cg);
AUTO_DEFINE(cgroup, struct cgroup, cgroup_stop);
/* Where it is, for cgroup_sweep; NULL: none. Caller frees. */
char *cgroup_path(const struct cgroup *cg) NONNULL(1);
/* Remove the cgroup of a sandbox that is gone: kill, then remove. path: from cgroup_path, as a
 * record has it; NULL, or nothing that could be one: below the caller's own BASE. Missing is
 * success. */
int cgroup_sweep(const struct id *id, const char *path) NONNULL(1) MUST_CHECK;

#endif
