/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   STARTING ── execve ──▶ RUNNING ── reaped ──▶ EXITED ── all output is out ──▶ DONE
 *      │                   (init, ping)                    (the last event)
 *      └── no such program: init, error ──────────────────────────────────────▶ DONE
 *      └── anything else: an HTTP error, no record
 *
 * Nothing is sent before execve has happened, so that what is wrong with a request is still an
 * ordinary answer with a status. The client (rq) may leave at any moment; the command does not
 * notice: its output is read all the same, and its last events are kept for a client that comes
 * back. A command in the background has no client from "execution_complete" on, which comes at
 * once; its output goes to a log.
 *
 * A process is signalled by its tag, which ends when it is reaped: no signal can meet another.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/mem.h>

#include "command_internal.h"

#define ERROR_NAME "CommandExecError"

static struct execd *execd_of(const struct command *c)
{
	return c->table->execd;
}

static void rq_on_close(struct http_req *rq)
{
	struct command *c = rq->ctx;

	c->rq = NULL;
	command_pump(c); /* nobody holds it up any more */
}

static void rq_on_drain(struct http_req *rq)
{
	command_pump(rq->ctx);
}

static void ping_send(struct command *c)
{
	struct events ev = command_events(c);

	event_ping(&ev);
	command_flush(c, &ev);
}

static bool may_ping(const struct command *c)
{
	return c->rq && http_pending(c->rq) < COMMAND_PENDING_MAX;
}

static void ping_on_time(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct command *c = container_of(src, struct command, ping);

	(void)events;
	loop_timer(loop, src, clock_boot_ms() + COMMAND_PING_MS, ping_on_time);
	/* The other stream waits for the end of a line that may wait for the other stream. */
	command_end_open(c);
	if (may_ping(c)) {
		ping_send(c);
	}
	command_pump(c);
}

void command_begin_events(struct http_req *rq)
{
	http_reply_field(rq, "Cache-Control", "no-cache");
	http_reply_field(rq, "X-Accel-Buffering", "no");
	http_begin(rq, 200, "text/event-stream", UINT64_MAX);
}

void command_attach(struct command *c, struct http_req *rq)
{
	c->rq = rq;
	rq->ctx = c;
	rq->on_close = rq_on_close;
	rq->on_drain = rq_on_drain;
}

static void client_end(struct command *c)
{
	struct http_req *rq = TAKE_PTR(c->rq);

	loop_remove(execd_of(c)->loop, &c->ping);
	if (rq) {
		http_end(rq);
	}
}

static void ender_answer(struct command *c)
{
	struct http_req *rq = TAKE_PTR(c->ender);

	if (rq) {
		api_ok(rq);
	}
}

static const char *signal_text(int signo)
{
	switch (signo) {
	case SIGKILL:
		return "signal: killed";
	case SIGTERM:
		return "signal: terminated";
	case SIGINT:
		return "signal: interrupt";
	case SIGSEGV:
		return "signal: segmentation fault";
	case SIGABRT:
		return "signal: aborted";
	case SIGPIPE:
		return "signal: broken pipe";
	default:
		return NULL;
	}
}

static void end_note(struct command *c, const siginfo_t *si)
{
	c->exit_code = si->si_code == CLD_EXITED ? si->si_status : -1;
	if (c->exit_code == 0) {
		return;
	}
	if (c->is_timed_out) {
		c->error = mem_printf("timed out after %lld ms", (long long)c->timeout_ms);
	} else if (c->exit_code > 0) {
		c->error = mem_printf("exit status %d", c->exit_code);
	} else {
		const char *text = signal_text(si->si_status);

		c->error = text ? mem_strdup(text) : mem_printf("signal: %d", si->si_status);
	}
}

/* The events at the end of a foreground command. */
static void events_end(struct command *c)
{
	struct events ev = command_events(c);
	char code[16];

	(void)snprintf(code, sizeof(code), "%d", c->exit_code);
	if (c->error) {
		event_error(&ev, ERROR_NAME, code, c->error);
	} else {
		event_complete(&ev, clock_boot_ms() - c->started_boot_ms);
	}
	command_flush(c, &ev);
}

/* What a grandchild still writes: into the log of a command in the background, or nowhere. */
static void streams_leave(struct command *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(c->streams); i++) {
		struct command_stream *s = &c->streams[i];

		if (s->fd >= 0 && c->kind != COMMAND_BACKGROUND) {
			loop_remove(execd_of(c)->loop, &s->src);
			command_drain(c->table, &s->fd);
		}
	}
}

void command_finish(struct command *c)
{
	if (c->kind != COMMAND_BACKGROUND) {
		events_end(c);
	}
	c->stage = COMMAND_DONE;
	if (c->finished_wall_ms == 0) {
		c->finished_wall_ms = clock_wall_ms();
	}
	client_end(c);
	ender_answer(c);
	streams_leave(c);
	if (c->on_end) {
		c->on_end(c, c->ctx);
	}
	if (c->kind == COMMAND_SESSION) {
		command_drop(c);
	} else {
		commands_trim(c->table);
	}
}

void command_kill(struct command *c)
{
	process_kill(execd_of(c), c->tag);
}

static void deadline_on_time(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct command *c = container_of(src, struct command, deadline);

	(void)loop;
	(void)events;
	command_kill(c);
}

static void timeout_on_time(struct loop *loop, struct loop_source *src, uint32_t events)
{
	container_of(src, struct command, deadline)->is_timed_out = true;
	deadline_on_time(loop, src, events);
}

void command_interrupt(struct command *c)
{
	struct execd *x = execd_of(c);

	process_take_tree(x, c->tag);
	process_signal(x, c->tag, SIGTERM);
	loop_timer(x->loop, &c->deadline, clock_boot_ms() + COMMAND_GRACE_MS, deadline_on_time);
}

static void process_on_started(void *ctx, pid_t pid, int master_fd)
{
	struct command *c = ctx;
	struct execd *x = execd_of(c);
	struct events ev = command_events(c);

	(void)pid;
	(void)master_fd;
	c->stage = COMMAND_RUNNING;
	command_watch(c);
	if (c->timeout_ms > 0 && c->deadline.kind == LOOP_SOURCE_NONE) {
		loop_timer(x->loop, &c->deadline, clock_boot_ms() + c->timeout_ms, timeout_on_time);
	}
	if (c->rq) {
		command_begin_events(c->rq);
	}
	event_init(&ev, c->shown_id);
	if (c->kind == COMMAND_BACKGROUND) {
		event_complete(&ev, 0);
		command_flush(c, &ev);
		client_end(c);
		return;
	}
	event_ping(&ev);
	command_flush(c, &ev);
	loop_timer(x->loop, &c->ping, clock_boot_ms() + COMMAND_PING_MS, ping_on_time);
}

static void process_on_exited(void *ctx, const siginfo_t *end)
{
	struct command *c = ctx;

	c->stage = COMMAND_EXITED;
	c->tag = 0;
	c->finished_wall_ms = clock_wall_ms();
	loop_remove(execd_of(c)->loop, &c->deadline);
	end_note(c, end);
	for (size_t i = 0; i < ARRAY_SIZE(c->streams); i++) {
		int n = 0;

		if (c->streams[i].fd >= 0 && ioctl(c->streams[i].fd, FIONREAD, &n) == 0) {
			c->streams[i].left = (size_t)n;
		}
	}
	command_pump(c);
}

/* The wish was wrong, or could not be fulfilled: an answer with a status, and no record. */
static void start_refuse(struct http_req *rq, const struct error *e)
{
	char text[ERROR_TEXT_MAX + 128];

	error_render(e, text, sizeof(text));
	if (e->code == ERRC_DENIED) {
		api_fail(rq, 403, API_INVALID_BODY, "%s", text);
	} else if (e->code == ERRC_INVALID || e->code == ERRC_LIMIT) {
		api_fail(rq, 400, API_INVALID_BODY, "%s", text);
	} else {
		api_fail(rq, 500, API_RUNTIME, "%s", text);
	}
}

static void process_on_failed(void *ctx, const struct error *e)
{
	struct command *c = ctx;
	bool is_program = e->code == ERRC_NO_COMMAND || e->code == ERRC_NOT_EXECUTABLE;
	char text[ERROR_TEXT_MAX + 128];

	loop_remove(execd_of(c)->loop, &c->deadline);
	c->tag = 0;
	if (!is_program) {
		if (c->rq) {
			start_refuse(TAKE_PTR(c->rq), e);
		}
		ender_answer(c);
		if (c->on_end) {
			c->on_end(c, c->ctx);
		}
		command_drop(c);
		return;
	}
	error_render(e, text, sizeof(text));
	c->error = mem_strdup(text);
	c->exit_code = error_exit_status(e->code);
	struct events ev = command_events(c);

	if (c->rq) {
		command_begin_events(c->rq);
	}
	event_init(&ev, c->shown_id);
	command_flush(c, &ev);
	if (c->kind == COMMAND_BACKGROUND) {
		events_end(c);
	}
	command_finish(c);
}

/* Pipes for its output: our ends do not block, its own do (stdio of a child is made so). */
static int pipes_make(struct command *c, int out_ends[2])
{
	size_t n = c->kind == COMMAND_FOREGROUND ? 2 : 1;

	for (size_t i = 0; i < n; i++) {
		int fds[2];
		int r = fd_pipe(fds, 0);

		if (r < 0) {
			return r;
		}
		c->streams[i].fd = fds[0];
		out_ends[i] = fds[1];
		r = fd_set_nonblock(fds[0], true);
		if (r < 0) {
			return r;
		}
	}
	return 0;
}

static int start(struct command *c, const struct command_wish *w, struct error *e)
{
	int ends[2] = { -1, -1 };
	int r = pipes_make(c, ends);
	const struct process_opts opts = {
		.process = &w->process,
		.more = &w->more,
		.stdio = { -1, ends[0], ends[1] < 0 ? ends[0] : ends[1] },
		.on_started = process_on_started,
		.on_failed = process_on_failed,
		.on_exited = process_on_exited,
		.ctx = c,
	};

	if (r < 0) {
		r = error_sys(e, -r, "make a pipe");
	} else {
		r = process_spawn(execd_of(c), &opts, &c->tag, e);
	}
	fd_close(&ends[0]);
	fd_close(&ends[1]);
	return r;
}

struct command *command_start(struct http_req *rq, const struct command_wish *w)
{
	struct commands *t = commands_of(api_execd(rq));
	struct error e = ERROR_INIT;

	if (api_is_inside(rq) && !commands_have_room_inside(t)) {
		api_fail(rq, 503, API_RUNTIME,
				"too many commands of the sandbox's own processes "
				"are running; try again later");
		return NULL;
	}
	struct command *c = command_new(t, w, api_is_inside(rq));

	if (start(c, w, &e) < 0) {
		command_drop(c);
		if (e.code == ERRC_LIMIT) {
			api_fail(rq, 503, API_RUNTIME, "%s; try again later", e.text);
		} else {
			start_refuse(rq, &e);
		}
		return NULL;
	}
	command_attach(c, rq);
	return c;
}
