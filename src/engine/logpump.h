/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logpump - a detached sandbox's output, from its pipes or its pty into the log.
 */
#ifndef OSBX_ENGINE_LOGPUMP_H
#define OSBX_ENGINE_LOGPUMP_H

#include <stdbool.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/logfile.h>
#include <osbx/loop.h>

struct logpump;

struct logpump_opts {
	bool tty;
	int dir_fd; /* where the log is made; borrowed */
	/* All output is in the log. */
	void (*on_done)(void *ctx);
	void *ctx;
};

/* Make log and pipes (not for tty). out_child[1] and [2] are the workload's ends, ours until
 * logpump_child_started closes them; out_child[0] is -1. NULL on failure. */
struct logpump *logpump_new(struct loop *loop, const struct logpump_opts *opts, int out_child[3],
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
/* The workload has its descriptors. With a tty pty_fd is the master, ours from here on. */
int logpump_child_started(struct logpump *p, int pty_fd, struct error *e) MUST_CHECK NONNULL(1, 3);
/* What is in the pipes still goes to the log; a process that holds them open is not waited for. */
void logpump_child_ended(struct logpump *p) NONNULL(1);
void logpump_free(struct logpump *p);
AUTO_DEFINE_PTR(logpump, struct logpump, logpump_free);

#endif
