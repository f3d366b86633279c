/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/mem.h>

#include "api.h"
#include "pty_session.h"

#define READ_BYTES (32U << 10)
/* What a pipe or terminal can hold when its shell has ended, and more than that. */
#define LAST_READS 8

static void stream_close(struct pty *p, struct pty_stream *s)
{
	loop_remove(p->execd->loop, &s->src);
	fd_close(&s->fd);
}

static void input_close(struct pty *p)
{
	loop_remove(p->execd->loop, &p->in);
	fd_close(&p->in_fd);
	buf_reset(&p->input);
}

static void shell_close(struct pty *p)
{
	for (size_t i = 0; i < PTY_STREAMS; i++) {
		stream_close(p, &p->streams[i]);
	}
	input_close(p);
}

/* As long as one who controls the session does not take what there is. */
static void shell_pause(struct pty *p)
{
	for (size_t i = 0; i < PTY_STREAMS; i++) {
		if (p->streams[i].src.kind == LOOP_SOURCE_FD) {
			loop_pause(p->execd->loop, &p->streams[i].src);
		}
	}
}

/* One read, into a message of its channel. False when there is nothing more, now or ever. */
static bool stream_read(struct pty *p, struct pty_stream *s)
{
	const char channel = s == &p->streams[PTY_STDERR] ? PTY_CHANNEL_STDERR : PTY_CHANNEL_STDOUT;
	AUTO(buf) struct buf message = BUF_INIT(READ_BYTES + 2);

	if (buf_append(&message, &channel, 1) < 0 || buf_reserve(&message, READ_BYTES) < 0) {
		return false;
	}
	ssize_t n = fd_read(s->fd, message.p + 1, READ_BYTES);

	if (n == -EAGAIN) {
		return false;
	}
	if (n <= 0) {
		/* EIO: nobody has the terminal open any more. */
		stream_close(p, s);
		return false;
	}
	message.n += (size_t)n;
	ring_add(&p->ring, span_from(buf_span(&message), 1));
	if (clients_output(p, buf_span(&message))) {
		shell_pause(p);
	}
	return true;
}

static void stream_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct pty_stream *s = container_of(src, struct pty_stream, src);

	(void)loop;
	(void)events;
	(void)stream_read(s->pty, s);
}

void shell_resume(struct pty *p)
{
	for (size_t i = 0; i < PTY_STREAMS; i++) {
		if (p->streams[i].src.kind == LOOP_SOURCE_FD) {
			loop_resume(p->execd->loop, &p->streams[i].src);
		}
	}
}

/* Write what waits. True when something still does. */
static bool input_write(struct pty *p)
{
	while (p->input.n > 0) {
		ssize_t n = write(p->in_fd, p->input.p, p->input.n);

		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n < 0 && errno == EAGAIN) {
			return true;
		}
		if (n < 0) {
			input_close(p);
			return false;
		}
		buf_consume(&p->input, (size_t)n);
	}
	return false;
}

static void input_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct pty *p = container_of(src, struct pty, in);

	(void)events;
	if (!input_write(p)) {
		loop_remove(loop, src);
	}
	if (p->input.n < PTY_INPUT_WAITING) {
		clients_resume(p);
	}
}

int shell_write(struct pty *p, struct span data)
{
	if (p->stage == PTY_RUNNING && p->in_fd < 0) {
		return -EPIPE;
	}
	int r = buf_append(&p->input, data.p, data.n);

	/* What comes before it runs is written then. */
	if (r < 0 || p->stage != PTY_RUNNING || p->in.kind != LOOP_SOURCE_NONE || !input_write(p)) {
		return r;
	}
	return loop_add(p->execd->loop, &p->in, p->in_fd, EPOLLOUT, input_on_ready);
}

void shell_signal(const struct pty *p, int signo)
{
	pid_t group = 0;

	if (p->stage != PTY_RUNNING) {
		return;
	}
	if (!p->is_pipe && (signo == SIGINT || signo == SIGQUIT) &&
			ioctl(p->in_fd, TIOCGPGRP, &group) == 0 && group > 1) {
		(void)kill(-group, signo);
		return;
	}
	process_signal(p->execd, p->tag, signo);
}

void shell_resize(struct pty *p, uint16_t rows, uint16_t cols)
{
	const struct winsize ws = { .ws_row = rows, .ws_col = cols };

	p->rows = rows;
	p->cols = cols;
	if (p->stage == PTY_RUNNING && !p->is_pipe && p->in_fd >= 0) {
		(void)ioctl(p->in_fd, TIOCSWINSZ, &ws);
	}
}

/* Watch what was opened, and write what clients have said meanwhile. 0 or -errno. */
static int shell_watch(struct pty *p)
{
	int r = 0;

	for (size_t i = 0; i < PTY_STREAMS && r == 0; i++) {
		struct pty_stream *s = &p->streams[i];

		if (s->fd >= 0) {
			r = loop_add(p->execd->loop, &s->src, s->fd, EPOLLIN, stream_on_ready);
		}
	}
	if (r == 0 && input_write(p)) {
		r = loop_add(p->execd->loop, &p->in, p->in_fd, EPOLLOUT, input_on_ready);
	}
	return r;
}

static void shell_on_started(void *ctx, pid_t pid, int master_fd)
{
	struct pty *p = ctx;

	(void)pid;
	p->stage = PTY_RUNNING;
	if (master_fd >= 0) {
		/* Two descriptors: one source each for both directions. */
		p->in_fd = fd_dup(master_fd, EXECD_FD_COUNT);
		p->streams[0].fd = master_fd;
	}
	if (p->in_fd < 0 || (!p->is_pipe && fd_set_nonblock(p->in_fd, true) < 0) ||
			shell_watch(p) < 0) {
		shell_close(p);
		shell_kill(p);
		return;
	}
	/* It may have changed since. */
	shell_resize(p, p->rows, p->cols);
}

static void shell_on_failed(void *ctx, const struct error *e)
{
	struct pty *p = ctx;
	AUTO(buf) struct buf json = BUF_INIT(4096);
	char text[ERROR_TEXT_MAX + 128];

	error_render(e, text, sizeof(text));
	client_error_format(&json, "START_FAILED", text);
	shell_close(p);
	p->stage = PTY_IDLE;
	clients_end(p, buf_span(&json), PTY_CLOSE_FAILED, "START_FAILED");
	pty_free_if_done(p);
}

/* What it has left in its pipes; not what its children will still write. */
static void shell_drain(struct pty *p)
{
	for (size_t i = 0; i < PTY_STREAMS; i++) {
		for (int n = 0; n < LAST_READS && p->streams[i].fd >= 0; n++) {
			if (!stream_read(p, &p->streams[i])) {
				break;
			}
		}
	}
}

static void shell_on_exited(void *ctx, const siginfo_t *end)
{
	struct pty *p = ctx;
	AUTO(buf) struct buf json = BUF_INIT(256);
	int code = end->si_code == CLD_EXITED ? end->si_status : 128 + end->si_status;

	shell_drain(p);
	shell_close(p);
	p->stage = PTY_IDLE;
	(void)!buf_appendf(&json, "{\"type\":\"exit\",\"exit_code\":%d}", code);
	clients_end(p, buf_span(&json), PTY_CLOSE_DONE, "process exited");
	pty_free_if_done(p);
}

void shell_kill(struct pty *p)
{
	if (p->stage != PTY_IDLE) {
		process_kill(p->execd, p->tag);
	}
}

/* With a command the shell runs it and ends. 0 or -E2BIG. */
static int argv_make(const struct pty *p, bool is_bash, struct strv *out)
{
	int r = strv_add(out, is_bash ? "bash" : "sh");

	if (r == 0 && is_bash) {
		r = strv_add(out, "--norc");
	}
	if (r == 0 && is_bash) {
		r = strv_add(out, "--noprofile");
	}
	if (r == 0 && p->command) {
		r = strv_add(out, "-c");
	}
	return r == 0 && p->command ? strv_add(out, p->command) : r;
}

/* Three pipes; ours in p, the shell's in theirs. Ours never block; the shell's own step makes its
 * ends do so. 0 or -errno. */
static int pipes_make(struct pty *p, int theirs[3])
{
	int ends[2];
	int r = fd_pipe(ends, O_NONBLOCK);

	if (r < 0) {
		return r;
	}
	theirs[0] = ends[0];
	p->in_fd = ends[1];
	for (size_t i = 0; i < PTY_STREAMS; i++) {
		r = fd_pipe(ends, O_NONBLOCK);
		if (r < 0) {
			return r;
		}
		p->streams[i].fd = ends[0];
		theirs[1 + i] = ends[1];
	}
	return 0;
}

static int shell_spawn(struct pty *p, const struct execd_process *process,
		const struct strv *otherwise, const int *stdio, struct error *e)
{
	const struct process_more more = {
		.cwd = p->cwd,
		.otherwise = otherwise,
		.makes_env_dir = true,
	};
	const struct process_opts opts = {
		.process = process,
		.more = &more,
		.stdio = { stdio[0], stdio[1], stdio[2] },
		.tty = !p->is_pipe,
		.on_started = shell_on_started,
		.on_failed = shell_on_failed,
		.on_exited = shell_on_exited,
		.ctx = p,
	};

	return process_spawn(p->execd, &opts, &p->tag, e);
}

int shell_start(struct pty *p, struct error *e)
{
	const struct execd_process *main = api_main(p->execd);
	AUTO(strv) struct strv argv = STRV_INIT;
	AUTO(strv) struct strv otherwise = STRV_INIT;
	int stdio[3] = { -1, -1, -1 };

	assert(p->stage == PTY_IDLE);
	if (!main) {
		return error_set(e, ERRC_UNAVAILABLE, "the main process has not been started");
	}
	int r = argv_make(p, true, &argv);

	if (r == 0) {
		r = argv_make(p, false, &otherwise);
	}
	if (r == 0 && p->is_pipe) {
		r = pipes_make(p, stdio);
	}
	struct execd_process process = *main;

	process.argv = argv;
	process.rows = p->rows;
	process.cols = p->cols;
	process.cwd_create = EXECD_CWD_EXISTS;
	if (r < 0) {
		r = error_sys(e, -r, "make the pipes of a shell");
	} else {
		r = shell_spawn(p, &process, &otherwise, stdio, e);
	}
	for (size_t i = 0; i < ARRAY_SIZE(stdio); i++) {
		fd_close(&stdio[i]);
	}
	if (r < 0) {
		shell_close(p);
		return -1;
	}
	p->stage = PTY_STARTING;
	return 0;
}
