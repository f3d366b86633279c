/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/mem.h>
#include <osbx/str.h>

#include "api.h"
#include "pty_session.h"

#define PING_MS     30000
#define TEXT_BYTES  4096
#define MESSAGE_MAX (1U << 20)

static struct pty_client *client_in_control(const struct pty *p)
{
	struct pty_client *c = p->clients;

	while (c && (c->is_viewer || c->is_over)) {
		c = c->next;
	}
	return c;
}

static void client_end(struct pty_client *c, uint16_t code, const char *reason)
{
	if (!c->is_over) {
		c->is_over = true;
		websocket_close(c->ws, code, reason);
	}
}

void clients_end(struct pty *p, struct span json, uint16_t code, const char *reason)
{
	struct pty_client *next = NULL;

	for (struct pty_client *c = p->clients; c; c = next) {
		next = c->next;
		if (json.n > 0 && !c->is_over) {
			websocket_send_text(c->ws, json);
		}
		client_end(c, code, reason);
	}
}

bool clients_output(struct pty *p, struct span message)
{
	struct pty_client *next = NULL;
	bool is_full = false;

	for (struct pty_client *c = p->clients; c; c = next) {
		next = c->next;
		if (c->is_over) {
			continue;
		}
		websocket_send_binary(c->ws, message);
		if (!c->is_viewer) {
			is_full = websocket_pending(c->ws) > PTY_PENDING_MAX;
		} else if (websocket_pending(c->ws) > PTY_LATE_MAX) {
			client_end(c, PTY_CLOSE_LATE, "TOO_LATE");
		}
	}
	return is_full;
}

void clients_resume(struct pty *p)
{
	struct pty_client *c = client_in_control(p);

	if (c) {
		websocket_resume(c->ws);
	}
}

void client_error_format(struct buf *out, const char *code, const char *message)
{
	struct json_writer w = JSON_WRITER(out);

	json_object_begin(&w, NULL);
	json_add_string(&w, "type", "error");
	json_add_string(&w, "code", code);
	json_add_string(&w, "error", message);
	json_object_end(&w);
}

static void client_error(struct pty_client *c, const char *code, const char *message)
{
	AUTO(buf) struct buf json = BUF_INIT(TEXT_BYTES);

	client_error_format(&json, code, message);
	websocket_send_text(c->ws, buf_span(&json));
}

static void client_input(struct pty_client *c, struct span data)
{
	if (shell_write(c->pty, data) < 0) {
		client_error(c, "STDIN_WRITE_FAILED", "the shell does not take input");
		client_end(c, PTY_CLOSE_FAILED, "STDIN_WRITE_FAILED");
	} else if (c->pty->input.n >= PTY_INPUT_WAITING) {
		websocket_pause(c->ws);
	}
}

static void text_stdin(struct pty_client *c, const struct json *v)
{
	const char *data = json_string(json_get(v, "data"));

	if (data) {
		client_input(c, span_of(data));
	} else {
		client_error(c, "INVALID_FRAME", "stdin without data");
	}
}

struct signal_name {
	const char *name;
	int signo;
};

static const struct signal_name signal_names[] = {
	{ "SIGINT", SIGINT },
	{ "SIGTERM", SIGTERM },
	{ "SIGKILL", SIGKILL },
	{ "SIGQUIT", SIGQUIT },
	{ "SIGHUP", SIGHUP },
};

static void text_signal(struct pty_client *c, const struct json *v)
{
	const char *name = json_string(json_get(v, "signal"));

	for (size_t i = 0; name && i < ARRAY_SIZE(signal_names); i++) {
		if (str_eq(name, signal_names[i].name)) {
			shell_signal(c->pty, signal_names[i].signo);
			return;
		}
	}
	client_error(c, "INVALID_FRAME", "unknown signal");
}

static void text_resize(struct pty_client *c, const struct json *v)
{
	uint64_t rows = 0;
	uint64_t cols = 0;

	if (json_u64(json_get(v, "rows"), UINT16_MAX, &rows) < 0 ||
			json_u64(json_get(v, "cols"), UINT16_MAX, &cols) < 0 || rows == 0 ||
			cols == 0) {
		client_error(c, "INVALID_FRAME", "resize needs cols and rows from 1 to 65535");
		return;
	}
	shell_resize(c->pty, (uint16_t)rows, (uint16_t)cols);
}

static void text_ping(struct pty_client *c, const struct json *v)
{
	(void)v;
	websocket_send_text(c->ws, span_of("{\"type\":\"pong\"}"));
}

struct text_type {
	const char *name;
	void (*run)(struct pty_client *c, const struct json *v);
	bool controls; /* not from a viewer */
};

static const struct text_type text_types[] = {
	{ "stdin", text_stdin, true },
	{ "signal", text_signal, true },
	{ "resize", text_resize, true },
	{ "ping", text_ping, false },
};

static void client_text(struct pty_client *c, struct span text)
{
	struct error e = ERROR_INIT;
	AUTO(json) struct json *v = json_parse(text, &e);
	const char *type = v ? json_string(json_get(v, "type")) : NULL;

	for (size_t i = 0; type && i < ARRAY_SIZE(text_types); i++) {
		if (!str_eq(type, text_types[i].name)) {
			continue;
		}
		if (text_types[i].controls && c->is_viewer) {
			client_error(c, "READ_ONLY", "a viewer does not control the session");
		} else {
			text_types[i].run(c, v);
		}
		return;
	}
	client_error(c, "INVALID_FRAME", type ? "unknown frame type" : "no JSON with a type");
}

static void client_on_message(struct websocket *ws, void *ctx, bool is_text, struct span data)
{
	struct pty_client *c = ctx;

	(void)ws;
	if (c->is_over) {
		return;
	}
	if (is_text) {
		client_text(c, data);
	} else if (data.n == 0 || data.p[0] != PTY_CHANNEL_STDIN) {
		client_error(c, "INVALID_FRAME", "unknown channel");
	} else if (c->is_viewer) {
		client_error(c, "READ_ONLY", "a viewer does not control the session");
	} else if (data.n > 1) {
		client_input(c, span_from(data, 1));
	}
}

static void client_on_drain(struct websocket *ws, void *ctx)
{
	const struct pty_client *c = ctx;

	(void)ws;
	if (!c->is_viewer && !c->is_over) {
		shell_resume(c->pty);
	}
}

static void client_on_close(struct websocket *ws, void *ctx, uint16_t code)
{
	struct pty_client *c = ctx;
	struct pty *p = c->pty;
	struct pty_client **at = &p->clients;

	(void)ws;
	(void)code;
	while (*at != c) {
		at = &(*at)->next;
	}
	*at = c->next;
	free(c);
	/* Nobody is left to wait for. */
	if (!client_in_control(p)) {
		shell_resume(p);
	}
	pty_free_if_done(p);
}

static size_t clients_count(const struct pty *p)
{
	size_t n = 0;

	for (const struct pty_client *c = p->clients; c; c = c->next) {
		n++;
	}
	return n;
}

/* What the query asks for. */
struct wishes {
	bool is_pipe;
	bool takes_over;
	bool is_viewer;
	uint64_t since;
};

static bool query_is(const struct http_req *rq, const char *name, const char *wanted)
{
	autofree char *value = NULL;

	return http_query(rq, name, &value) == 0 && value && str_eq(value, wanted);
}

/* False: 400 has been answered. */
static bool wishes_read(struct http_req *rq, struct wishes *out)
{
	autofree char *since = NULL;

	*out = (struct wishes){
		.is_pipe = query_is(rq, "pty", "0"),
		.takes_over = query_is(rq, "takeover", "1"),
		.is_viewer = query_is(rq, "mode", "viewer"),
	};
	if (http_query(rq, "since", &since) < 0 ||
			(since && str_to_u64(since, INT64_MAX, &out->since) < 0)) {
		api_fail(rq, 400, API_INVALID_QUERY, "since: expected an offset");
		return false;
	}
	return true;
}

static void client_greet(struct pty_client *c, uint64_t since)
{
	const struct pty *p = c->pty;
	AUTO(buf) struct buf message = BUF_INIT(TEXT_BYTES + RING_BYTES_MAX);
	struct json_writer w = JSON_WRITER(&message);
	struct span parts[2];
	uint64_t from = ring_since(&p->ring, since, parts);
	char head[9] = { PTY_CHANNEL_REPLAY };

	for (size_t i = 1; i < sizeof(head); i++) {
		head[i] = (char)(from >> (64 - 8 * i));
	}
	if (parts[0].n > 0 && buf_append(&message, head, sizeof(head)) == 0 &&
			buf_append(&message, parts[0].p, parts[0].n) == 0 &&
			buf_append(&message, parts[1].p, parts[1].n) == 0) {
		websocket_send_binary(c->ws, buf_span(&message));
	}
	buf_reset(&message);
	json_object_begin(&w, NULL);
	json_add_string(&w, "type", "connected");
	json_add_string(&w, "session_id", p->id.text);
	json_add_string(&w, "mode", p->is_pipe ? "pipe" : "pty");
	json_add_string(&w, "role", c->is_viewer ? "viewer" : "controller");
	json_object_end(&w);
	websocket_send_text(c->ws, buf_span(&message));
}

/* The handshake is done: others make room, the shell runs. */
static void client_begin(struct pty_client *c, const struct wishes *wishes)
{
	struct pty *p = c->pty;
	struct pty_client *before = c->is_viewer ? NULL : client_in_control(p);
	struct error e = ERROR_INIT;

	if (before) {
		client_end(before, PTY_CLOSE_TAKEN, "TAKEN_OVER");
	}
	c->next = p->clients;
	p->clients = c;
	if (p->stage == PTY_IDLE && !c->is_viewer) {
		p->is_pipe = wishes->is_pipe;
		if (shell_start(p, &e) < 0) {
			char text[ERROR_TEXT_MAX + 128];

			error_render(&e, text, sizeof(text));
			client_error(c, "START_FAILED", text);
			client_end(c, PTY_CLOSE_FAILED, "START_FAILED");
			return;
		}
	}
	client_greet(c, wishes->since);
	shell_resume(p);
}

void client_attach(struct http_req *rq, struct pty *p)
{
	struct loop *loop = p->execd->loop;
	struct wishes wishes;

	if (!wishes_read(rq, &wishes)) {
		return;
	}
	bool is_held = client_in_control(p) != NULL && !wishes.is_viewer;

	if (is_held && !(wishes.takes_over && websocket_is_wanted(rq))) {
		api_fail(rq, 409, "ALREADY_CONNECTED",
				"another client is connected to pty session %s", p->id.text);
		return;
	}
	if (clients_count(p) >= PTY_CLIENTS_MAX) {
		api_fail(rq, 503, API_RUNTIME, "%d clients are connected to pty session %s",
				PTY_CLIENTS_MAX, p->id.text);
		return;
	}
	struct pty_client *c = mem_new(struct pty_client);
	const struct websocket_opts opts = {
		.message_max = MESSAGE_MAX,
		.ping_ms = PING_MS,
		.on_message = client_on_message,
		.on_drain = client_on_drain,
		.on_close = client_on_close,
		.ctx = c,
	};

	*c = (struct pty_client){ .pty = p, .is_viewer = wishes.is_viewer };
	c->ws = websocket_accept(rq, loop, &opts);
	if (!c->ws) {
		free(c);
		return;
	}
	client_begin(c, &wishes);
}
