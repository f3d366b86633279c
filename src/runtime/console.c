/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   pipes   in_fd ──▶ pipe ──▶ workload's 0      workload's 1, 2 ──▶ pipes ──▶ out_fd, err_fd
 *   pty     in_fd ──▶ master                     master ──▶ out_fd
 *
 * Each arrow is a flow (console_flow.h). The input ends with the caller's, with the workload's
 * reading end, or with the workload. on_done is told when the last output flow has ended. A flow's
 * end closes our end of the pipe, so that a workload whose reader went away learns of it by
 * SIGPIPE.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <osbx/console.h>
#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/tty.h>

#include "console_flow.h"
#include "console_guard.h"

enum console_stream {
	CONSOLE_IN,
	CONSOLE_OUT,
	CONSOLE_ERR,
	CONSOLE_STREAM_COUNT,
};

struct console {
	struct console_opts opts;
	struct loop *loop;
	int child_fds[CONSOLE_STREAM_COUNT];
	int our_fds[CONSOLE_STREAM_COUNT]; /* until a flow has them */
	int master_fd;
	struct flow flows[CONSOLE_STREAM_COUNT];
	struct tty tty; /* the caller's terminal in raw mode */
	struct console_guard guard;
	bool want_raw;
	bool done;
};

static const char *const stream_names[] = {
	[CONSOLE_IN] = "standard input",
	[CONSOLE_OUT] = "standard output",
	[CONSOLE_ERR] = "standard error",
};
_Static_assert(ARRAY_SIZE(stream_names) == CONSOLE_STREAM_COUNT, "stream_names is complete");

static int foreign_fd(const struct console *c, enum console_stream stream)
{
	const int fds[] = { c->opts.in_fd, c->opts.out_fd, c->opts.err_fd };

	return fds[stream];
}

static int pipe_make(struct console *c, enum console_stream stream)
{
	int fds[2];
	int r = fd_pipe(fds, 0);
	bool is_input = stream == CONSOLE_IN;

	if (r == 0) {
		c->child_fds[stream] = fds[is_input ? 0 : 1];
		c->our_fds[stream] = fds[is_input ? 1 : 0];
	}
	return r;
}

struct console *console_new(struct loop *loop, const struct console_opts *opts, int out_child[3],
		struct error *e)
{
	AUTO(console) struct console *c = mem_new(struct console);
	int r = 0;

	c->opts = *opts;
	c->loop = loop;
	c->master_fd = -1;
	c->tty.fd = -1;
	c->guard = (struct console_guard)CONSOLE_GUARD_INIT;
	for (size_t i = 0; i < CONSOLE_STREAM_COUNT; i++) {
		c->child_fds[i] = -1;
		c->our_fds[i] = -1;
	}
	if (!opts->tty) {
		r = opts->stdin_open ? pipe_make(c, CONSOLE_IN) : 0;
		r = r < 0 ? r : pipe_make(c, CONSOLE_OUT);
		r = r < 0 ? r : pipe_make(c, CONSOLE_ERR);
	}
	if (r < 0) {
		(void)error_sys(e, -r, "make the pipes of the standard descriptors");
		return NULL;
	}
	for (size_t i = 0; i < CONSOLE_STREAM_COUNT; i++) {
		out_child[i] = c->child_fds[i];
	}
	return TAKE_PTR(c);
}

static void flow_on_end(void *ctx)
{
	struct console *c = ctx;

	if (!c->done && !c->flows[CONSOLE_OUT].running && !c->flows[CONSOLE_ERR].running) {
		c->done = true;
		c->opts.on_done(c->opts.ctx);
	}
}

/* The end of the input of a pty is a character. */
static size_t master_on_eof(void *ctx, char *out, size_t size)
{
	const struct console *c = ctx;
	struct termios t;

	if (size == 0 || tcgetattr(c->master_fd, &t) < 0 || !(t.c_lflag & ICANON)) {
		return 0;
	}
	out[0] = (char)t.c_cc[VEOF];
	return 1;
}

/* Let stream flow between our_fd, which goes over, and the caller's descriptor. */
static int stream_start(struct console *c, enum console_stream stream, int our_fd)
{
	struct flow *f = &c->flows[stream];
	const struct flow_end ours = { .fd = our_fd, .owned = true };
	const struct flow_end theirs = { .fd = foreign_fd(c, stream), .foreign = true };
	bool is_input = stream == CONSOLE_IN;

	if (our_fd < 0) {
		return our_fd;
	}
	*f = (struct flow){
		.loop = c->loop,
		.from = is_input ? theirs : ours,
		.to = is_input ? ours : theirs,
		.lazy = !is_input && !c->opts.tty,
		.on_end = is_input ? NULL : flow_on_end,
		.on_eof = is_input && c->opts.tty ? master_on_eof : NULL,
		.ctx = c,
	};
	return flow_start(f);
}

static int pipes_start(struct console *c)
{
	int r = 0;

	/* All of them, before any can end. */
	for (size_t i = 0; i < CONSOLE_STREAM_COUNT; i++) {
		fd_close(&c->child_fds[i]);
	}
	for (size_t i = 0; i < CONSOLE_STREAM_COUNT && r == 0; i++) {
		if (c->our_fds[i] >= 0) {
			r = stream_start(c, (enum console_stream)i, TAKE_FD(c->our_fds[i]));
		}
	}
	return r;
}

static void raw_stop(struct console *c)
{
	tty_raw_stop(&c->tty);
	console_guard_stop(&c->guard);
}

static int raw_start(struct console *c)
{
	int r = c->want_raw ? tty_raw_start(&c->tty, c->opts.in_fd) : 0;

	return r == 0 && c->want_raw ? console_guard_start(&c->guard, &c->tty) : r;
}

static int pty_start(struct console *c, int pty_fd)
{
	unsigned int number = 0;

	c->master_fd = pty_fd;
	/* Only a master has a number to ask for. */
	if (ioctl(pty_fd, TIOCGPTN, &number) < 0) {
		return -errno;
	}
	console_resize(c);
	c->want_raw = c->opts.stdin_open && isatty(c->opts.in_fd) == 1;
	int r = raw_start(c);

	/* One number stands in the loop once: each direction has its own. */
	if (r == 0) {
		r = stream_start(c, CONSOLE_OUT, fd_dup(pty_fd, 0));
	}
	if (r == 0 && c->opts.stdin_open) {
		r = stream_start(c, CONSOLE_IN, fd_dup(pty_fd, 0));
	}
	return r;
}

int console_child_started(struct console *c, int pty_fd, struct error *e)
{
	int r = c->opts.tty ? pty_start(c, pty_fd) : pipes_start(c);

	return r < 0 ? error_sys(e, -r, "connect the %s of the sandbox",
				       c->opts.tty ? "terminal" : "pipes")
		     : 0;
}

void console_child_ended(struct console *c)
{
	flow_stop(&c->flows[CONSOLE_IN]);
	flow_drain(&c->flows[CONSOLE_OUT]);
	flow_drain(&c->flows[CONSOLE_ERR]);
	flow_on_end(c);
}

void console_drop(struct console *c)
{
	for (size_t i = 0; i < CONSOLE_STREAM_COUNT; i++) {
		flow_stop(&c->flows[i]);
	}
	flow_on_end(c);
}

int console_check(const struct console *c, struct error *e)
{
	for (size_t i = 0; i < CONSOLE_STREAM_COUNT; i++) {
		if (c->flows[i].failure < 0) {
			return error_sys(e, -c->flows[i].failure, "%s", stream_names[i]);
		}
	}
	return 0;
}

void console_resize(struct console *c)
{
	struct winsize ws;

	if (c->master_fd >= 0 &&
			(tty_size(c->opts.in_fd, &ws) == 0 || tty_size(c->opts.out_fd, &ws) == 0)) {
		(void)ioctl(c->master_fd, TIOCSWINSZ, &ws);
	}
}

void console_suspend(struct console *c)
{
	raw_stop(c);
}

void console_resume(struct console *c)
{
	/* Also when nobody suspended: a shell may have changed the modes of a stopped job. */
	raw_stop(c);
	(void)raw_start(c);
	console_resize(c);
}

void console_free(struct console *c)
{
	if (!c) {
		return;
	}
	for (size_t i = 0; i < CONSOLE_STREAM_COUNT; i++) {
		flow_stop(&c->flows[i]);
		fd_close(&c->child_fds[i]);
		fd_close(&c->our_fds[i]);
	}
	raw_stop(c);
	fd_close(&c->master_fd);
	free(c);
}
