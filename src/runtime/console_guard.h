/* SPDX-License-Identifier: Apache-2.0 */
/*
 * console_guard - a child that restores the caller's terminal should this process be killed.
 */
#ifndef OSBX_RUNTIME_CONSOLE_GUARD_H
#define OSBX_RUNTIME_CONSOLE_GUARD_H

#include <sys/types.h>

#include <osbx/compiler.h>
#include <osbx/tty.h>

struct console_guard {
	pid_t pid;   /* 0: none */
	int pipe_fd; /* its end is what the child waits for */
};

#define CONSOLE_GUARD_INIT    \
	{                     \
		.pipe_fd = -1 \
	}

/* Guard a terminal that was just put into raw mode. 0 or -errno. */
int console_guard_start(struct console_guard *g, const struct tty *t) NONNULL(1, 2) MUST_CHECK;
/* The terminal was restored: end the child. No effect without one. */
void console_guard_stop(struct console_guard *g) NONNULL(1);

#endif
