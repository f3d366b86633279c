/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: runtime
 * launch - start the process of a sandbox and shake hands with it (initproto.h).
 * Runs in the keeper. Blocks up to spec.timeout_ms. Single-threaded callers only.
 */
#ifndef OSBX_LAUNCH_H
#define OSBX_LAUNCH_H

#include <sys/types.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/spec.h>

/* What the caller does on the way, in this order; NULL where there is nothing to do. */
struct launch_ops {
	/* The child exists: complete the map and the directories of the trees that the spec names.
	 */
	int (*on_clone)(void *ctx, struct error *e);
	/* Give the new network namespace, which the process will enter and its user namespace
	 * owns, its links. */
	int (*attach_net)(void *ctx, int userns_fd, int netns_fd, struct error *e);
	/* Put the pid on record, before anything of the guest runs, and what is to be executed in
	 * the spec's descriptors. */
	int (*record_pid)(void *ctx, pid_t pid, struct error *e);
	/* The child waits for nothing any more. What is sent to execd now is there when it is up.
	 */
	int (*before_up)(void *ctx, int control_fd, struct error *e);
	void *ctx;
};

struct launch {
	pid_t pid;      /* PID 1 of the sandbox; 0: none */
	int pidfd;      /* readable when it is dead */
	int control_fd; /* execd's control channel (execd_proto.h) */
	int userns_fd;  /* its user namespace: keeps ids valid for clean-up */
};

#define LAUNCH_INIT                                             \
	{                                                       \
		.pidfd = -1, .control_fd = -1, .userns_fd = -1, \
	}

/* Returns when execd is up. Fails with the child's own sentence, prefixed by the step. On failure
 * the child is dead and reaped. */
int launch_start(const struct spec *spec, const struct launch_ops *ops, struct launch *out_launch,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
/* Kill PID 1 if it lives (the kernel kills the rest of its pid namespace), reap it, close the
 * descriptors. */
void launch_done(struct launch *l);
AUTO_DEFINE(launch, struct launch, launch_done);

#endif
