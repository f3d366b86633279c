/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about contexts and runs. */
#include <stdlib.h>
#include <string.h>

#include <osbx/clock.h>
#include <osbx/jsondec.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "code_internal.h"
#include "command_internal.h"

#define ANSWER_MAX (4U << 20)
#define BUSY       "error running codes session is busy"

/* {"id","language","cwd","envs"} */
struct context_request {
	char *id;
	char *language;
	char *cwd;
	struct strv envs;
};

struct run_request {
	struct context_request context;
	char *code;
	uint64_t timeout_ms;
	uint64_t memory;
};

static void run_request_done(struct run_request *r)
{
	free(r->context.id);
	free(r->context.language);
	free(r->context.cwd);
	strv_done(&r->context.envs);
	free(r->code);
}
AUTO_DEFINE(run_request, struct run_request, run_request_done);

static const struct jsondec_field context_fields[] = {
	{ "id", JSONDEC_STRING, offsetof(struct context_request, id), 0, LIMIT_PATH_BYTES, NULL,
			NULL },
	{ "language", JSONDEC_STRING, offsetof(struct context_request, language), 0,
			CODE_LANGUAGE_MAX, NULL, NULL },
	{ "cwd", JSONDEC_STRING, offsetof(struct context_request, cwd), 0, LIMIT_PATH_BYTES, NULL,
			NULL },
	{ "envs", JSONDEC_CUSTOM, offsetof(struct context_request, envs), 0, 0, NULL,
			command_decode_envs },
	{ NULL, JSONDEC_STRING, 0, 0, 0, NULL, NULL },
};

static const struct jsondec_field run_fields[] = {
	{ "context", JSONDEC_OBJECT, offsetof(struct run_request, context), 0, 0, context_fields,
			NULL },
	{ "code", JSONDEC_STRING, offsetof(struct run_request, code), JSONDEC_REQUIRED,
			CODE_TEXT_MAX, NULL, NULL },
	{ "timeout", JSONDEC_U64, offsetof(struct run_request, timeout_ms), 0, INT64_MAX / 4, NULL,
			NULL },
	{ "memory", JSONDEC_U64, offsetof(struct run_request, memory), 0, INT64_MAX / 4, NULL,
			NULL },
	{ NULL, JSONDEC_STRING, 0, 0, 0, NULL, NULL },
};

static bool is_given(const char *s)
{
	return s && s[0] != '\0';
}

void code_fail(struct http_req *rq, const struct error *e)
{
	api_fail_error(rq, e->code == ERRC_INVALID ? API_INVALID_BODY : API_RUNTIME, e);
}

static void context_add(struct json_writer *w, const struct code_context *c)
{
	json_object_begin(w, NULL);
	json_add_string(w, "id", c->id.text);
	json_add_string(w, "language", c->language);
	if (c->cwd) {
		json_add_string(w, "cwd", c->cwd);
	}
	json_object_end(w);
}

void code_context_answer(struct http_req *rq, const struct code_context *c)
{
	AUTO(buf) struct buf b = BUF_INIT(ANSWER_MAX);
	struct json_writer w = JSON_WRITER(&b);

	context_add(&w, c);
	api_json(rq, 200, &b);
}

static const char *canonical(const char *language)
{
	const struct code_lang *lang = code_lang_find(language);

	return lang ? lang->language : language;
}

/* 0, or -1: it has been answered. */
static int body_read(struct http_req *rq, const struct jsondec_field *fields, void *out)
{
	struct error e = ERROR_INIT;
	AUTO(json) struct json *body = api_body(rq, false);

	if (!body) {
		return -1;
	}
	if (jsondec_object(body, fields, out, &e) < 0) {
		api_fail(rq, 400, API_INVALID_BODY, "%s", e.text);
		return -1;
	}
	if (!api_main(api_execd(rq))) {
		api_fail(rq, 503, API_RUNTIME, "the sandbox is still starting");
		return -1;
	}
	return 0;
}

static void creator_on_close(struct http_req *rq)
{
	struct code_context *c = rq->ctx;

	c->creator = NULL;
	code_context_drop(c); /* nobody has learnt its id */
}

void code_context_post(struct http_req *rq)
{
	AUTO(run_request) struct run_request r = { .timeout_ms = 0 };
	struct error e = ERROR_INIT;

	if (body_read(rq, context_fields, &r.context) < 0) {
		return;
	}
	if (!is_given(r.context.language)) {
		api_fail(rq, 400, API_INVALID_BODY, "language: missing");
		return;
	}
	const struct code_wish w = {
		.language = canonical(r.context.language),
		.cwd = is_given(r.context.cwd) ? r.context.cwd : NULL,
		.envs = &r.context.envs,
		.is_inside = api_is_inside(rq),
	};
	struct code_context *c = code_context_new(codes_of(api_execd(rq)), &w, &e);

	if (!c) {
		code_fail(rq, &e);
	} else if (c->stage == CODE_STARTED) {
		code_context_answer(rq, c);
	} else {
		c->creator = rq;
		rq->ctx = c;
		rq->on_close = creator_on_close;
	}
}

static struct code_context *context_of_rq(const struct http_req *rq)
{
	autofree char *id = http_param(rq, 0);

	return id ? code_context_find(codes_of(api_execd(rq)), id) : NULL;
}

void code_context_get(struct http_req *rq)
{
	const struct code_context *c = context_of_rq(rq);

	if (c) {
		code_context_answer(rq, c);
	} else {
		api_fail(rq, 404, API_CONTEXT_NOT_FOUND, "context not found");
	}
}

void code_context_delete(struct http_req *rq)
{
	struct code_context *c = context_of_rq(rq);

	if (c) {
		code_context_drop(c);
		api_ok(rq);
	} else {
		api_fail(rq, 404, API_CONTEXT_NOT_FOUND, "context not found");
	}
}

/* Names that upstream knows beside languages; none of them has contexts. */
static bool is_no_language(const char *name)
{
	return str_eq(name, "command") || str_eq(name, "background-command") || str_eq(name, "sql");
}

/* Language of the query, "" where there is none; NULL: it has been answered. */
static char *query_language(struct http_req *rq)
{
	autofree char *language = NULL;

	if (http_query(rq, "language", &language) < 0) {
		api_fail(rq, 400, API_INVALID_QUERY, "language: bad escape");
		return NULL;
	}
	if (language && is_no_language(language)) {
		api_fail(rq, 500, API_RUNTIME, "%s: has no contexts", language);
		return NULL;
	}
	return mem_strdup(language ? canonical(language) : "");
}

static bool is_of(const struct code_context *c, const char *language)
{
	return !c->is_spare && (language[0] == '\0' || str_eq(c->language, language));
}

void code_contexts_get(struct http_req *rq)
{
	AUTO(buf) struct buf b = BUF_INIT(ANSWER_MAX);
	struct json_writer w = JSON_WRITER(&b);
	autofree char *language = query_language(rq);

	if (!language) {
		return;
	}
	json_array_begin(&w, NULL);
	for (const struct code_context *c = codes_of(api_execd(rq))->list; c; c = c->next) {
		if (is_of(c, language)) {
			context_add(&w, c);
		}
	}
	json_array_end(&w);
	api_json(rq, 200, &b);
}

void code_contexts_delete(struct http_req *rq)
{
	autofree char *language = query_language(rq);
	struct codes *t = codes_of(api_execd(rq));
	struct code_context *c = t->list;

	if (!language) {
		return;
	}
	if (language[0] == '\0') {
		api_fail(rq, 400, API_MISSING_QUERY, "missing query parameter 'language'");
		return;
	}
	while (c) {
		struct code_context *next = c->next;

		if (is_of(c, language)) {
			code_context_drop(c);
		}
		c = next;
	}
	api_ok(rq);
}

/* Like any error in the stream, but without a type: so clients know it. */
static void answer_busy(struct http_req *rq, const struct code_context *c)
{
	AUTO(buf) struct buf b = BUF_INIT(1024);
	struct events ev = events_of(&b, 0, clock_wall_ms());

	event_init(&ev, c->id.text);
	api_error_format(&b, API_RUNTIME, BUSY);
	(void)!buf_append_str(&b, "\n\n");
	command_begin_events(rq);
	http_write(rq, buf_span(&b));
	http_end(rq);
}

/* The context that a run is meant for. NULL: it has been answered. */
static struct code_context *context_for(struct http_req *rq, const struct context_request *r)
{
	struct codes *t = codes_of(api_execd(rq));
	struct error e = ERROR_INIT;

	if (is_given(r->id)) {
		struct code_context *c = code_context_find(t, r->id);

		if (!c) {
			api_fail(rq, 500, API_RUNTIME, "context not found: there is none \"%.64s\"",
					r->id);
		}
		return c;
	}
	const struct code_wish w = {
		.language = canonical(r->language),
		.cwd = is_given(r->cwd) ? r->cwd : NULL,
		.envs = &r->envs,
		.is_default = true,
		.is_inside = api_is_inside(rq),
	};
	struct code_context *c = code_context_default(t, w.language);

	c = c ? c : code_context_new(t, &w, &e);
	if (!c) {
		code_fail(rq, &e);
	}
	return c;
}

void code_post(struct http_req *rq)
{
	AUTO(run_request) struct run_request r = { .timeout_ms = 0 };

	if (body_read(rq, run_fields, &r) < 0) {
		return;
	}
	if (r.code[0] == '\0') {
		api_fail(rq, 400, API_INVALID_BODY, "code: empty");
		return;
	}
	if (!is_given(r.context.id) &&
			(!is_given(r.context.language) || str_eq(r.context.language, "command"))) {
		command_text(rq, r.code, r.context.cwd, r.timeout_ms);
		return;
	}
	struct code_context *c = context_for(rq, &r.context);

	if (!c) {
		return;
	}
	if (c->run || c->creator) {
		answer_busy(rq, c);
		return;
	}
	const struct code_run init = {
		.code = TAKE_PTR(r.code),
		.timeout_ms = (int64_t)r.timeout_ms,
		.memory = r.memory,
	};

	code_run_begin(c, rq, &init);
}

static void ender_on_close(struct http_req *rq)
{
	struct code_run *r = rq->ctx;

	r->ender = NULL;
}

bool code_interrupt(struct http_req *rq, const char *id)
{
	struct code_context *c = code_context_find(codes_of(api_execd(rq)), id);
	struct code_run *r = c ? c->run : NULL;

	if (!c) {
		return false;
	}
	if (!r || r->ender) {
		if (r) {
			code_run_interrupt(r);
		}
		api_ok(rq);
		return true;
	}
	/* So that who is answered finds the context free. */
	r->ender = rq;
	rq->ctx = r;
	rq->on_close = ender_on_close;
	code_run_interrupt(r);
	return true;
}

void code_delete(struct http_req *rq)
{
	command_delete(rq);
}
