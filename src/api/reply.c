/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <osbx/fd.h>
#include <osbx/mem.h>

#include "api_internal.h"
#include "metrics.h"

#define TEXT_MAX       1024
#define ERROR_BODY_MAX 8192
#define REQUEST_ID_MAX 128

struct api *api_of(const struct http_req *rq)
{
	return rq->server_ctx;
}

/* {"code","message"}, with the place of a fault of form in "detail". */
static void body_write(
		struct buf *out, const char *code, const char *text, const struct refusal *where)
{
	struct json_writer w = JSON_WRITER(out);

	json_object_begin(&w, NULL);
	json_add_string(&w, "code", code);
	json_add_string(&w, "message", text);
	if (where) {
		struct span rest = span_of(where->field);
		struct span piece;

		json_array_begin(&w, "detail");
		json_object_begin(&w, NULL);
		json_array_begin(&w, "loc");
		json_add_string(&w, NULL, where->code);
		while (rest.n > 0 && span_next(&rest, '.', &piece)) {
			autofree char *name = span_dup(piece);

			json_add_string(&w, NULL, name);
		}
		json_array_end(&w);
		json_add_string(&w, "msg", where->text);
		json_add_string(&w, "type", "value_error");
		json_object_end(&w);
		json_array_end(&w);
	}
	json_object_end(&w);
}

static void fail_send(struct http_req *rq, int status, const char *code, const char *text)
{
	AUTO(buf) struct buf out = BUF_INIT(ERROR_BODY_MAX);

	api_count_error(api_of(rq)->counters, code);
	body_write(&out, code, text, NULL);
	http_reply(rq, status, "application/json", buf_span(&out));
}

void api_fail(struct http_req *rq, int status, const char *code, const char *fmt, ...)
{
	char text[TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fail_send(rq, status, code, text);
}

void api_fail_error(struct http_req *rq, const char *code, const struct error *e)
{
	char text[ERROR_TEXT_MAX + 128];

	error_render(e, text, sizeof(text));
	api_fail(rq, error_http_status(e->code), code ? code : API_UNKNOWN, "%s%s%s", text,
			e->hint[0] ? "; " : "", e->hint);
}

static void field_send(struct http_req *rq, const struct refusal *where)
{
	AUTO(buf) struct buf out = BUF_INIT(ERROR_BODY_MAX);
	char text[TEXT_MAX];

	api_count_error(api_of(rq)->counters, API_VALIDATION);
	(void)snprintf(text, sizeof(text), "%s%s%s", where->field, where->field[0] ? ": " : "",
			where->text);
	body_write(&out, API_VALIDATION, text, where);
	http_reply(rq, 422, "application/json", buf_span(&out));
}

void api_fail_field(struct http_req *rq, const char *where, const char *field, const char *what)
{
	struct refusal why = { .code = where };

	(void)snprintf(why.field, sizeof(why.field), "%s", field);
	(void)snprintf(why.text, sizeof(why.text), "%s", what);
	field_send(rq, &why);
}

int refuse(struct refusal *why, int status, const char *code, const char *fmt, ...)
{
	va_list ap;

	why->status = status;
	why->code = code;
	why->field[0] = '\0';
	va_start(ap, fmt);
	(void)vsnprintf(why->text, sizeof(why->text), fmt, ap);
	va_end(ap);
	return -1;
}

int refuse_field(struct refusal *why, const char *field, const char *fmt, ...)
{
	va_list ap;

	why->status = 422;
	why->code = API_VALIDATION;
	(void)snprintf(why->field, sizeof(why->field), "%s", field);
	va_start(ap, fmt);
	(void)vsnprintf(why->text, sizeof(why->text), fmt, ap);
	va_end(ap);
	return -1;
}

int refuse_decoded(struct refusal *why, const struct error *e)
{
	const char *colon = strstr(e->text, ": ");
	autofree char *field = colon ? span_dup((struct span){ .p = e->text,
						       .n = (size_t)(colon - e->text) })
				     : NULL;

	return refuse_field(why, field ? field : "", "%s", colon ? colon + 2 : e->text);
}

void api_refuse(struct http_req *rq, const struct refusal *why)
{
	struct refusal place = *why;

	if (why->status != 422) {
		api_fail(rq, why->status, why->code, "%s", why->text);
		return;
	}
	place.code = "body";
	field_send(rq, &place);
}

void api_json(struct http_req *rq, int status, const struct buf *json)
{
	http_reply(rq, status, "application/json", buf_span(json));
}

void api_empty(struct http_req *rq, int status)
{
	http_reply(rq, status, NULL, (struct span){ .p = "" });
}

static const struct {
	int status;
	const char *code;
	const char *text; /* NULL: as the server says it */
} own_failures[] = {
	{ 400, API_GENERAL, NULL },
	{ 404, "NOT_FOUND", "no such route" },
	{ 405, "METHOD_NOT_ALLOWED", "this route has no such method" },
	{ 408, "REQUEST_TIMEOUT", NULL },
	{ 413, "REQUEST_TOO_LARGE", NULL },
	{ 503, "SERVER_BUSY", NULL },
};

const char *api_describe(struct http_req *rq, int status, const char *what, struct buf *out)
{
	const char *code = API_GENERAL;
	const char *text = what;

	(void)rq;
	for (size_t i = 0; i < ARRAY_SIZE(own_failures); i++) {
		if (own_failures[i].status == status) {
			code = own_failures[i].code;
			text = own_failures[i].text ? own_failures[i].text : what;
		}
	}
	body_write(out, code, text, NULL);
	return "application/json";
}

/* One that can stand in an answer and in a log. */
static bool request_id_is_fit(struct span id)
{
	if (id.n == 0 || id.n > REQUEST_ID_MAX) {
		return false;
	}
	for (size_t i = 0; i < id.n; i++) {
		if (!isgraph((unsigned char)id.p[i])) {
			return false;
		}
	}
	return true;
}

void api_fields(struct http_req *rq, struct buf *out)
{
	struct span id = rq ? http_field(rq, "x-request-id") : (struct span){ .p = NULL };
	char own[33];

	if (!request_id_is_fit(id)) {
		id_random_hex(own, 16);
		id = span_of(own);
	}
	/* A head has room for it. */
	(void)!buf_appendf(out, "X-Request-ID: %.*s\r\n", (int)id.n, id.p);
}

struct json *api_body(struct http_req *rq, bool may_be_empty)
{
	const struct span empty = { .p = "{}", .n = 2 };
	struct error e = ERROR_INIT;
	bool is_empty = rq->body.n == 0;
	struct json *root = is_empty && !may_be_empty ? NULL
						      : json_parse(is_empty ? empty : rq->body, &e);

	if (root && json_is_object(root)) {
		return root;
	}
	json_free(root);
	api_fail_field(rq, "body", "",
			is_empty            ? "a body is needed"
			: e.code != ERRC_OK ? e.text
					    : "expected a JSON object");
	return NULL;
}

int api_find(struct api *api, struct http_req *rq, struct sandbox_info *out_info)
{
	autofree char *id = http_param(rq, 0);
	struct error e = ERROR_INIT;

	/* Only whole ids: names and prefixes are the command line's. */
	if (!id || !id_is_valid(id)) {
		api_fail(rq, 404, API_NOT_FOUND, "no sandbox %.64s", id ? id : "of that name");
		return -1;
	}
	if (sandbox_find(&api->dirs, id, out_info, &e) < 0) {
		if (e.code == ERRC_NOT_FOUND) {
			api_fail(rq, 404, API_NOT_FOUND, "no sandbox %s", id);
		} else {
			api_fail_error(rq, API_QUERY_FAILED, &e);
		}
		return -1;
	}
	return 0;
}

int api_live_state(const struct api *api, const struct http_req *rq, struct id *out_id,
		struct sandbox_state *out_state)
{
	autofree char *text = http_param(rq, 0);
	struct error e = ERROR_INIT;

	if (!text || !id_is_valid(text)) {
		return -ENOENT;
	}
	autofree char *path = mem_printf("sandboxes/%s", text);
	autoclose int fd = fd_open_at(
			api->dirs.runtime_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (fd < 0) {
		return fd;
	}
	if (state_load(fd, out_state, &e) < 0) {
		return e.code == ERRC_NOT_FOUND ? -ENOENT : e.code == ERRC_SYSTEM ? -e.sysno : -EIO;
	}
	memcpy(out_id->text, text, sizeof(out_id->text));
	return 0;
}
