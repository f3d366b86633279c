/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api.h"

#define MESSAGE_BYTES 1024
/* A message whose every byte is escaped, and what stands around it. */
#define BODY_BYTES_MAX ((size_t)8 * MESSAGE_BYTES)

struct execd *api_execd(const struct http_req *rq)
{
	return rq->server_ctx;
}

bool api_is_inside(const struct http_req *rq)
{
	return (rq->listener & API_LISTENER_INSIDE) && !api_execd(rq)->config.token;
}

void api_error_format(struct buf *out, const char *code, const char *message)
{
	struct json_writer w = JSON_WRITER(out);

	json_object_begin(&w, NULL);
	json_add_string(&w, "code", code);
	json_add_string(&w, "message", message);
	json_object_end(&w);
}

void api_fail(struct http_req *rq, int status, const char *code, const char *fmt, ...)
{
	AUTO(buf) struct buf body = BUF_INIT(BODY_BYTES_MAX);
	char message[MESSAGE_BYTES];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	api_error_format(&body, code, message);
	api_json(rq, status, &body);
}

static const char *const code_of_class[ERRC_COUNT] = {
	[ERRC_INVALID] = API_INVALID_BODY,
	[ERRC_NOT_FOUND] = API_NOT_FOUND,
	[ERRC_UNAUTHENTICATED] = API_UNAUTHORIZED,
	[ERRC_UNSUPPORTED] = API_NOT_SUPPORTED,
};

void api_fail_error(struct http_req *rq, const char *code, const struct error *e)
{
	char text[ERROR_TEXT_MAX + 128];

	if (!code) {
		code = code_of_class[e->code] ? code_of_class[e->code] : API_RUNTIME;
	}
	error_render(e, text, sizeof(text));
	if (e->hint[0] != '\0') {
		api_fail(rq, error_http_status(e->code), code, "%s (%s)", text, e->hint);
	} else {
		api_fail(rq, error_http_status(e->code), code, "%s", text);
	}
}

void api_ok(struct http_req *rq)
{
	http_reply(rq, 200, NULL, (struct span){ .p = "", .n = 0 });
}

void api_json(struct http_req *rq, int status, const struct buf *json)
{
	http_reply(rq, status, "application/json", buf_span(json));
}

struct json *api_body(struct http_req *rq, bool may_be_empty)
{
	struct span text = rq->body.n == 0 && may_be_empty ? span_of("{}") : rq->body;
	struct error e = ERROR_INIT;
	AUTO(json) struct json *body = json_parse(text, &e);

	if (!body) {
		api_fail(rq, 400, API_INVALID_BODY, "the body is no JSON: %s", e.text);
		return NULL;
	}
	if (!json_is_object(body)) {
		api_fail(rq, 400, API_INVALID_BODY, "the body is no JSON object");
		return NULL;
	}
	return TAKE_PTR(body);
}
