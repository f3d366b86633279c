/* SPDX-License-Identifier: Apache-2.0 */
/* What can be asked about commands that were started. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "code.h"
#include "command_internal.h"

#define ANSWER_BYTES_MAX (8U << 20)
#define LIST_LIMIT       50
#define LIST_LIMIT_MAX   100
#define LOG_PIECE        (128U << 10)
#define CURSOR_FIELD     "EXECD-COMMANDS-TAIL-CURSOR"

static struct commands *commands_of_rq(const struct http_req *rq)
{
	return commands_of(api_execd(rq));
}

/* What another user than the sandbox's own one does is nothing that its processes could look at, or
 * end, by themselves. */
static bool is_hidden(const struct http_req *rq, const struct command *c)
{
	return c->is_foreign && api_is_inside(rq);
}

static struct command *find_shown(const struct http_req *rq, const char *id)
{
	struct command *c = command_find(commands_of_rq(rq), id);

	return c && !is_hidden(rq, c) ? c : NULL;
}

/* Command of the route's parameter, or NULL. */
static struct command *command_of_rq(const struct http_req *rq)
{
	autofree char *id = http_param(rq, 0);

	return id ? find_shown(rq, id) : NULL;
}

static bool is_running(const struct command *c)
{
	return c->stage == COMMAND_STARTING || c->stage == COMMAND_RUNNING;
}

static void add_time(struct json_writer *w, const char *name, int64_t wall_ms)
{
	char text[CLOCK_RFC3339_MAX];

	clock_rfc3339(wall_ms, text, sizeof(text));
	json_add_string(w, name, text);
}

static void add_end(struct json_writer *w, const struct command *c)
{
	if (is_running(c)) {
		return;
	}
	add_time(w, "finished_at", c->finished_wall_ms);
	json_add_i64(w, "exit_code", c->exit_code);
	if (c->error) {
		json_add_string(w, "error", c->error);
	}
}

void command_status(struct http_req *rq)
{
	const struct command *c = command_of_rq(rq);
	AUTO(buf) struct buf b = BUF_INIT(ANSWER_BYTES_MAX);
	struct json_writer w = JSON_WRITER(&b);

	if (!c) {
		api_fail(rq, 404, API_INVALID_BODY, "command not found");
		return;
	}
	json_object_begin(&w, NULL);
	json_add_string(&w, "id", c->id);
	json_add_string(&w, "content", c->content);
	json_add_bool(&w, "running", is_running(c));
	add_time(&w, "started_at", c->started_wall_ms);
	add_end(&w, c);
	json_object_end(&w);
	api_json(rq, 200, &b);
}

struct list_query {
	bool running;
	bool has_running;
	uint64_t limit;
	uint64_t before; /* only commands with a smaller number */
};

/* 0 or -1. */
static int list_query_read(const struct http_req *rq, struct list_query *q)
{
	autofree char *running = NULL;
	autofree char *limit = NULL;
	autofree char *cursor = NULL;

	if (http_query(rq, "running", &running) < 0 || http_query(rq, "limit", &limit) < 0 ||
			http_query(rq, "cursor", &cursor) < 0) {
		return -1;
	}
	if (running && running[0]) {
		q->has_running = true;
		q->running = str_eq(running, "true");
		if (!q->running && !str_eq(running, "false")) {
			return -1;
		}
	}
	if (limit && limit[0] &&
			(str_to_u64(limit, LIST_LIMIT_MAX, &q->limit) < 0 || q->limit == 0)) {
		return -1;
	}
	return cursor && cursor[0] && str_to_u64(cursor, UINT64_MAX, &q->before) < 0 ? -1 : 0;
}

static bool is_listed(const struct command *c, const struct list_query *q)
{
	return c->kind != COMMAND_SESSION && c->seq < q->before &&
	       (!q->has_running || q->running == is_running(c));
}

static void list_add(struct json_writer *w, const struct command *c)
{
	json_object_begin(w, NULL);
	json_add_string(w, "session", c->id);
	json_add_bool(w, "running", is_running(c));
	json_add_bool(w, "background", c->kind == COMMAND_BACKGROUND);
	add_time(w, "started_at", c->started_wall_ms);
	add_end(w, c);
	json_object_end(w);
}

/* Newest first; a cursor is the number of the last one that was told. */
void command_list(struct http_req *rq)
{
	struct list_query q = { .limit = LIST_LIMIT, .before = UINT64_MAX };
	AUTO(buf) struct buf b = BUF_INIT(ANSWER_BYTES_MAX);
	struct json_writer w = JSON_WRITER(&b);
	const struct command *c = NULL;
	uint64_t last = 0;
	uint64_t n = 0;

	if (list_query_read(rq, &q) < 0) {
		api_fail(rq, 400, API_INVALID_QUERY,
				"running is true or false, limit 1 to %d, cursor what was answered",
				LIST_LIMIT_MAX);
		return;
	}
	json_object_begin(&w, NULL);
	json_array_begin(&w, "commands");
	for (c = commands_of_rq(rq)->list; c; c = c->next) {
		if (!is_listed(c, &q) || is_hidden(rq, c)) {
			continue;
		}
		if (n == q.limit) {
			break;
		}
		list_add(&w, c);
		last = c->seq;
		n++;
	}
	json_array_end(&w);
	json_object_begin(&w, "pagination");
	json_add_u64(&w, "limit", q.limit);
	if (c) {
		char cursor[24];

		(void)snprintf(cursor, sizeof(cursor), "%" PRIu64, last);
		json_add_string(&w, "nextCursor", cursor);
	}
	json_object_end(&w);
	json_object_end(&w);
	api_json(rq, 200, &b);
}

static void ender_on_close(struct http_req *rq)
{
	struct command *c = rq->ctx;

	c->ender = NULL;
}

/* Answered when the command has ended; who else wants the same is answered at once. */
static void interrupt(struct http_req *rq, struct command *c)
{
	command_interrupt(c);
	if (c->ender) {
		api_ok(rq);
		return;
	}
	c->ender = rq;
	rq->ctx = c;
	rq->on_close = ender_on_close;
}

void command_delete(struct http_req *rq)
{
	autofree char *id = NULL;

	if (http_query(rq, "id", &id) < 0 || !id || id[0] == '\0') {
		api_fail(rq, 400, API_MISSING_QUERY, "missing query parameter 'id'");
		return;
	}
	struct command *c = find_shown(rq, id);

	if (c && is_running(c)) {
		interrupt(rq, c);
	} else if (code_interrupt(rq, id)) {
		return;
	} else if (session_end(api_execd(rq), id)) {
		api_ok(rq);
	} else {
		api_fail(rq, 500, API_RUNTIME, c ? "the command has ended" : "command not found");
	}
}

/* A log on its way: what was there when it was asked for. */
struct log_reading {
	struct command_log log; /* .fd is its own */
	uint64_t at;
	bool is_writing;
	bool is_lost; /* the client went away while we were writing */
};

static void reading_free(struct log_reading *l)
{
	command_log_done(&l->log);
	free(l);
}

static void reading_on_close(struct http_req *rq)
{
	struct log_reading *l = rq->ctx;

	if (l->is_writing) {
		l->is_lost = true;
	} else {
		reading_free(l);
	}
}

/* The next piece. Is there more to send, and somebody to take it? */
static bool reading_step(struct http_req *rq, struct log_reading *l)
{
	autofree char *bytes = mem_array(1, LOG_PIECE);
	ssize_t n = command_log_read(&l->log, l->at, bytes, LOG_PIECE);

	if (n <= 0) {
		http_abort(rq);
		l->is_lost = true;
		return false;
	}
	l->at += (uint64_t)n;
	l->is_writing = true;
	http_write(rq, (struct span){ .p = bytes, .n = (size_t)n });
	l->is_writing = false;
	return !l->is_lost && l->at < l->log.total;
}

static void reading_go_on(struct http_req *rq)
{
	struct log_reading *l = rq->ctx;

	while (reading_step(rq, l)) {
		if (http_pending(rq) >= LOG_PIECE) {
			return;
		}
	}
	if (!l->is_lost) {
		rq->on_close = NULL;
		rq->on_drain = NULL;
		http_end(rq);
	}
	reading_free(l);
}

static void log_answer(struct http_req *rq, const struct command_log *log, uint64_t from)
{
	char cursor[24];

	(void)snprintf(cursor, sizeof(cursor), "%" PRIu64, log->total);
	http_reply_field(rq, CURSOR_FIELD, cursor);
	if (from == log->total) {
		http_reply(rq, 200, "text/plain; charset=utf-8", (struct span){ .p = "", .n = 0 });
		return;
	}
	struct log_reading *l = mem_new(struct log_reading);

	*l = (struct log_reading){ .log = *log, .at = from };
	l->log.fd = fd_dup(log->fd, EXECD_FD_COUNT);
	rq->ctx = l;
	rq->on_close = reading_on_close;
	rq->on_drain = reading_go_on;
	http_begin(rq, 200, "text/plain; charset=utf-8", log->total - from);
	reading_go_on(rq);
}

void command_logs(struct http_req *rq)
{
	const struct command *c = command_of_rq(rq);
	autofree char *text = NULL;
	uint64_t cursor = 0;

	if (!c || c->kind != COMMAND_BACKGROUND) {
		api_fail(rq, 400, API_INVALID_BODY,
				c ? "the output of a foreground command is in its events"
				  : "command not found");
		return;
	}
	if (http_query(rq, "cursor", &text) < 0 ||
			(text && text[0] && str_to_u64(text, INT64_MAX, &cursor) < 0)) {
		api_fail(rq, 400, API_INVALID_QUERY, "cursor: expected a byte offset");
		return;
	}
	log_answer(rq, &c->log, command_log_seek(&c->log, cursor));
}

void command_resume(struct http_req *rq)
{
	struct command *c = command_of_rq(rq);
	autofree char *text = NULL;
	struct span parts[2];
	uint64_t after = 0;

	if (!c) {
		api_fail(rq, 404, API_NOT_FOUND, "command not found");
		return;
	}
	if (http_query(rq, "after_eid", &text) < 0 ||
			(text && text[0] && str_to_u64(text, INT64_MAX, &after) < 0)) {
		api_fail(rq, 400, API_INVALID_QUERY, "after_eid: expected the number of an event");
		return;
	}
	if (c->rq || c->stage == COMMAND_STARTING) {
		api_fail(rq, 409, API_RUNTIME, "the events of the command are being read");
		return;
	}
	command_end_open(c);
	command_replay_get(&c->replay, after, parts);
	command_begin_events(rq);
	http_write(rq, parts[0]);
	http_write(rq, parts[1]);
	if (c->stage == COMMAND_DONE || c->kind == COMMAND_BACKGROUND) {
		http_end(rq);
		return;
	}
	command_attach(c, rq);
}
