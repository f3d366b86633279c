/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * spawn - start a helper program with exactly the descriptors it is given.
 */
#ifndef OSBX_SPAWN_H
#define OSBX_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

#include <osbx/compiler.h>
#include <osbx/error.h>

#define SPAWN_FDS_MAX 16

struct spawn_fd {
	int from; /* descriptor here */
	int to;   /* number in the child, 0..255, each once */
};

struct spawn_opts {
	const char *path;  /* absolute, or a name looked up in trusted directories only:
			    * /usr/local/{s,}bin /usr/{s,}bin /{s,}bin */
	char *const *argv; /* NULL-terminated */
	char *const *envp; /* NULL: empty environment */
	struct spawn_fd fds[SPAWN_FDS_MAX]; /* 0-2 that are not named become /dev/null */
	size_t fds_n;
	bool die_with_parent; /* PR_SET_PDEATHSIG SIGKILL */
	bool new_session;     /* setsid */
};

/* Start it. Fails with ERRC_SYSTEM, or ERRC_NOT_FOUND when the program does not exist; failure of
 * execve in the child is reported here. Caller owns *out_pidfd (O_CLOEXEC) and reaps the pid. */
int spawn_start(const struct spawn_opts *opts, int *out_pidfd, pid_t *out_pid,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);

struct spawn_part {
	const char *path;    /* NULL: spawn_self */
	const char *command; /* hidden ones, for example "netd" */
	int control_fd;      /* what its end of the socket is there */
	bool die_with_parent;
	bool new_session;
};

/* A part of this program as a process of its own, "osbx COMMAND", at the other end of a SEQPACKET
 * socket. Caller owns both descriptors and reaps the process. */
int spawn_part(const struct spawn_part *part, int *out_sock, int *out_pidfd,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
/* Wait up to timeout_ms (-1: for ever) and reap. 0 with a waitid-style status in *out_status as
 * exit code 0..255 or 128 + signal; -ETIMEDOUT; -errno. */
int spawn_wait(int pidfd, int timeout_ms, int *out_status) MUST_CHECK NONNULL(3);
/* Run a function in a process of its own that shares memory and descriptors with this one, which
 * sleeps meanwhile with all signals blocked: for what changes the credentials or namespaces of its
 * caller for good. It must not allocate. What it returns, or -errno when there is no process. */
int spawn_aside(int (*run)(void *arg), void *arg) NONNULL(1) MUST_CHECK;
/* Where spawn_start would find a program: an absolute path of an executable file, or NULL. Caller
 * frees. For choices and reports; spawn_start itself looks again. */
char *spawn_find(const char *name) NONNULL(1) MUST_CHECK;
/* Path of this program that survives replacement of the file: "/proc/self/exe". */
extern const char spawn_self[];

#endif
