/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   POST ──▶ IDLE ── first WebSocket ──▶ STARTING ── execve ──▶ RUNNING
 *             ▲                              │                     │
 *             └──── "error", close ──────────┴── "exit", close ────┘
 *
 * The shell belongs to the session and not to a client: without one its output goes on to be read
 * into the ring that later clients are replayed from. A client that controls it and does not read
 * stops its output; viewers cannot, and are dropped when they are too late.
 *
 * A session is freed when it is deleted, its shell is reaped and its last WebSocket is gone.
 */
#include <stdlib.h>

#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "api.h"
#include "pty_session.h"
#include "routes.h"

#define ROWS_DEFAULT 24
#define COLS_DEFAULT 80
#define ANSWER_BYTES 512

struct pty *pty_of(struct http_req *rq)
{
	autofree char *id = http_param(rq, 0);

	for (struct pty *p = api_execd(rq)->ptys; p && id; p = p->next) {
		if (str_eq(p->id.text, id) && !p->is_deleted) {
			return p;
		}
	}
	api_fail(rq, 404, API_CONTEXT_NOT_FOUND, "no pty session %s", id ? id : "of that name");
	return NULL;
}

void pty_free_if_done(struct pty *p)
{
	struct pty **at = &p->execd->ptys;

	if (!p->is_deleted || p->stage != PTY_IDLE || p->clients) {
		return;
	}
	while (*at != p) {
		at = &(*at)->next;
	}
	*at = p->next;
	p->execd->ptys_n--;
	ring_done(&p->ring);
	buf_done(&p->input);
	free(p->cwd);
	free(p->command);
	free(p);
}

/* Optional text of the body. 0, or -1: 400 has been answered. */
static int take_text(struct http_req *rq, const struct json *body, const char *name, char **out)
{
	const struct json *v = json_get(body, name);

	if (v && !json_is_string(v)) {
		api_fail(rq, 400, API_INVALID_BODY, "%s: expected a string", name);
		return -1;
	}
	const char *text = json_string(v);

	if (text && strlen(text) > LIMIT_ARGS_BYTES / 2) {
		api_fail(rq, 400, API_INVALID_BODY, "%s: too long", name);
		return -1;
	}
	*out = text && text[0] ? mem_strdup(text) : NULL;
	return 0;
}

/* Those that the sandbox's own processes make leave room for others. */
static uint32_t inside_count(const struct execd *x)
{
	uint32_t n = 0;

	for (const struct pty *p = x->ptys; p; p = p->next) {
		n += p->is_inside;
	}
	return n;
}

void pty_create(struct http_req *rq)
{
	struct execd *x = api_execd(rq);
	AUTO(json) struct json *body = api_body(rq, true);
	AUTO(buf) struct buf answer = BUF_INIT(ANSWER_BYTES);
	struct json_writer w = JSON_WRITER(&answer);
	autofree char *cwd = NULL;
	autofree char *command = NULL;

	if (!body || take_text(rq, body, "cwd", &cwd) < 0 ||
			take_text(rq, body, "command", &command) < 0) {
		return;
	}
	bool is_inside = api_is_inside(rq);

	if (x->ptys_n >= PTY_SESSIONS_MAX || (is_inside && inside_count(x) >= PTY_INSIDE_MAX)) {
		api_fail(rq, 503, API_RUNTIME, "there are %u pty sessions; delete one", x->ptys_n);
		return;
	}
	struct pty *p = mem_new(struct pty);

	*p = (struct pty){
		.execd = x,
		.is_inside = is_inside,
		.cwd = TAKE_PTR(cwd),
		.command = TAKE_PTR(command),
		.streams = { { .fd = -1, .pty = p }, { .fd = -1, .pty = p } },
		.in_fd = -1,
		.input = BUF_INIT(PTY_INPUT_MAX),
		.rows = ROWS_DEFAULT,
		.cols = COLS_DEFAULT,
		.next = x->ptys,
	};
	id_new(&p->id);
	x->ptys = p;
	x->ptys_n++;
	json_object_begin(&w, NULL);
	json_add_string(&w, "session_id", p->id.text);
	json_object_end(&w);
	api_json(rq, 201, &answer);
}

void pty_get(struct http_req *rq)
{
	const struct pty *p = pty_of(rq);
	AUTO(buf) struct buf answer = BUF_INIT(ANSWER_BYTES);
	struct json_writer w = JSON_WRITER(&answer);

	if (!p) {
		return;
	}
	json_object_begin(&w, NULL);
	json_add_string(&w, "session_id", p->id.text);
	json_add_bool(&w, "running", p->stage != PTY_IDLE);
	json_add_u64(&w, "output_offset", p->ring.end);
	json_object_end(&w);
	api_json(rq, 200, &answer);
}

void pty_delete(struct http_req *rq)
{
	struct pty *p = pty_of(rq);

	if (!p) {
		return;
	}
	p->is_deleted = true;
	shell_kill(p);
	clients_end(p, (struct span){ .n = 0 }, PTY_CLOSE_DONE, "session deleted");
	pty_free_if_done(p);
	api_ok(rq);
}

void pty_attach(struct http_req *rq)
{
	struct pty *p = pty_of(rq);

	if (p) {
		client_attach(rq, p);
	}
}
