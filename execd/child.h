/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * child - the steps of a child on its way to execve.
 */
#ifndef OSBX_EXECD_CHILD_H
#define OSBX_EXECD_CHILD_H

#include "execd.h"
#include "passwd.h"

/* State between the steps. The process ends or execs: nothing is freed. */
struct setup {
	const struct child *child;
	const struct process_more *more; /* or NULL */
	struct execd_process process;
	struct passwd_user user;
	const char *cwd;
	int report_fd;
};

/* Short of memory, the kernel takes this process rather than PID 1. A sandbox works without that.
 */
void child_victim(int root_fd);

/* path_mkdirs_beneath or its like: a descriptor or -errno. */
typedef int (*child_mkdirs_fn)(int root_fd, const char *path, mode_t mode);

/* Make the directories that are missing by a call of make as the user, but with the right to do so:
 * they are the user's from the start, there is no moment in which a chown could meet another file.
 * 0 or -errno. */
int child_mkdirs(const struct setup *s, const char *path, child_mkdirs_fn make)
		NONNULL(1, 2, 3) MUST_CHECK;

/* Steps that only processes of the API have; each returns at once without struct process_more. */
int child_step_env_dir(struct setup *s, struct error *e) MUST_CHECK NONNULL(1, 2);
int child_step_envs(struct setup *s, struct error *e) MUST_CHECK NONNULL(1, 2);
int child_step_cwd(struct setup *s, struct error *e) MUST_CHECK NONNULL(1, 2);
int child_step_fds(struct setup *s, struct error *e) MUST_CHECK NONNULL(1, 2);
/* execve of argv[0] has failed for want of a file: other places, then .otherwise. -1. */
int child_exec_shell(const struct setup *s, struct error *e) MUST_CHECK NONNULL(1, 2);

#endif
