/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: runtime
 * console - bytes between the caller's standard descriptors and a workload's pipes or pty.
 *
 * The workload never gets a descriptor of the caller (a guest could reopen /proc/self/fd/1 and
 * truncate the caller's file). Pipes are moved by splice(2) where the kernel can; the caller's own
 * O_NONBLOCK flags are never changed (fd_reopen_nonblock, else bounded writes after poll). A slow
 * reader outside stops the workload's pipe, not the loop. The process blocks or ignores SIGPIPE.
 */
#ifndef OSBX_CONSOLE_H
#define OSBX_CONSOLE_H

#include <stdbool.h>
#include <stdint.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/loop.h>

struct console;

struct console_opts {
	bool stdin_open; /* -i: forward standard input, and its end */
	bool tty;        /* one pty instead of three pipes */
	int in_fd;       /* the caller's descriptors, borrowed: 0, 1, 2 */
	int out_fd;
	int err_fd;
	/* All output was delivered (or the caller's side is gone) after the workload's ends closed.
	 */
	void (*on_done)(void *ctx);
	void *ctx;
};

/* Make the pipes (not for tty). out_child[3] are the workload's ends (stdin is -1 without
 * stdin_open: the caller passes its own null device); owned by the console until
 * console_child_started closes them. NULL on failure. */
struct console *console_new(struct loop *loop, const struct console_opts *opts, int out_child[3],
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
/* The workload has its descriptors: close ours of them and start pumping. With a tty, pty_fd is
 * the master (owned by the console from here on): checked to be a terminal, the caller's terminal
 * goes to raw mode if in_fd is one and stdin_open is set, the size is copied. */
int console_child_started(struct console *c, int pty_fd, struct error *e) MUST_CHECK NONNULL(1, 3);
/* The workload's main process is gone: what is in the pipes is delivered, a process that still
 * holds a pipe open does not keep us (with a tty: drain what the master gives without waiting). */
void console_child_ended(struct console *c) NONNULL(1);
/* Nobody waits any longer: what was not delivered yet is given up, and on_done told. */
void console_drop(struct console *c) NONNULL(1);
/* Was everything written that could be? A reader or terminal that went away is no failure; a full
 * disk behind standard output is, and so is an input that cannot be read. ERRC_SYSTEM. */
int console_check(const struct console *c, struct error *e) MUST_CHECK NONNULL(1, 2);
/* The caller's window changed size (SIGWINCH). */
void console_resize(struct console *c) NONNULL(1);
/* Leave and enter raw mode around a stop by SIGTSTP. */
void console_suspend(struct console *c) NONNULL(1);
void console_resume(struct console *c) NONNULL(1);
/* Restore the caller's terminal and free everything. */
void console_free(struct console *c);
AUTO_DEFINE_PTR(console, struct console, console_free);

#endif
