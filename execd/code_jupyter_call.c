/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "api.h"
#include "code_jupyter_call.h"

#define SILENCE_MS 60000 /* a kernel may take its time to start */
#define ANSWER_MAX (4U << 20)

struct jupyter_call {
	struct execd *execd;
	struct jupyter_call **slot;
	struct jupyter_place place;
	char *method;
	char *target;
	char *body;
	size_t body_n;
	char *fields;
	char *upgrade;
	void (*on_end)(void *ctx, int r, const struct http_answer *a);
	void *ctx;
	struct loop_source begin;
	struct dial *dial;
	struct http_call *call;
};

void jupyter_call_cancel(struct jupyter_call *c)
{
	if (!c) {
		return;
	}
	if (c->slot) {
		*c->slot = NULL;
	}
	loop_remove(c->execd->loop, &c->begin);
	dial_cancel(c->dial);
	http_call_cancel(c->call);
	jupyter_place_done(&c->place);
	free(c->method);
	free(c->target);
	free(c->body);
	free(c->fields);
	free(c->upgrade);
	free(c);
}

static void call_end(struct jupyter_call *c, int r, const struct http_answer *a)
{
	void (*on_end)(void *ctx, int r, const struct http_answer *a) = c->on_end;
	void *ctx = c->ctx;

	jupyter_call_cancel(c);
	if (on_end) {
		on_end(ctx, r, a);
	}
}

static void http_on_end(void *ctx, int r, const struct http_answer *a)
{
	struct jupyter_call *c = ctx;

	c->call = NULL;
	call_end(c, r, a);
}

static void on_dialled(void *ctx, int fd, const struct error *e)
{
	struct jupyter_call *c = ctx;

	if (fd < 0) {
		call_end(c, e->code == ERRC_TIMEOUT ? -ETIMEDOUT : -ECONNREFUSED, NULL);
		return;
	}
	const struct http_call_opts opts = {
		.method = c->method,
		.target = c->target,
		.host = c->place.host,
		.fields = c->fields,
		.body = { .p = c->body, .n = c->body_n },
		.body_max = ANSWER_MAX,
		.silence_ms = SILENCE_MS,
		.upgrade = c->upgrade,
		.on_end = http_on_end,
		.ctx = c,
	};

	c->call = http_call_start(c->execd->loop, fd, &opts);
	if (!c->call) {
		call_end(c, -ENOMEM, NULL);
	}
}

/* From the loop: a dial may tell its end at once. */
static void begin_on_time(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct jupyter_call *c = container_of(src, struct jupyter_call, begin);
	const struct dial_opts opts = { c->place.port, on_dialled, c };
	struct error e = ERROR_INIT;

	(void)loop;
	(void)events;
	if (dial_start(c->execd, &opts, &c->dial, &e) < 0) {
		call_end(c, -EAGAIN, NULL);
	}
}

/* The token goes into a field: it must not end it. */
static bool token_is_valid(const char *token)
{
	size_t n = strlen(token);

	for (size_t i = 0; i < n; i++) {
		if (token[i] <= ' ' || token[i] > '~') {
			return false;
		}
	}
	return n <= JUPYTER_TOKEN_MAX;
}

static char *fields_of(const struct jupyter_call_opts *opts, const char *token)
{
	bool has_token = token && token[0] != '\0';

	return mem_printf("%s%s%s%s%s", has_token ? "Authorization: token " : "",
			has_token ? token : "", has_token ? "\r\n" : "",
			opts->body.n > 0 ? "Content-Type: application/json\r\n" : "",
			opts->fields ? opts->fields : "");
}

int jupyter_call_start(struct execd *x, const struct jupyter_call_opts *opts,
		struct jupyter_call **slot, struct error *e)
{
	AUTO(jupyter_place) struct jupyter_place place = { .port = 0 };
	const struct execd_process *main = api_main(x);
	const char *url = main ? strv_env_find(&main->env, JUPYTER_HOST_VARIABLE) : NULL;
	const char *token = main ? strv_env_find(&main->env, JUPYTER_TOKEN_VARIABLE) : NULL;

	if (!url) {
		return error_set(e, ERRC_UNAVAILABLE, "the sandbox has no %s",
				JUPYTER_HOST_VARIABLE);
	}
	if (jupyter_place_parse(url, &place, e) < 0) {
		return -1;
	}
	if (token && !token_is_valid(token)) {
		return error_set(e, ERRC_INVALID, "%s of the sandbox: not printable ASCII",
				JUPYTER_TOKEN_VARIABLE);
	}
	struct jupyter_call *c = mem_new(struct jupyter_call);

	*c = (struct jupyter_call){
		.execd = x,
		.slot = slot,
		.method = mem_strdup(opts->method),
		.target = mem_printf("%s%s", place.base, opts->path),
		.body = opts->body.n > 0 ? mem_dup(opts->body.p, opts->body.n) : NULL,
		.body_n = opts->body.n,
		.fields = fields_of(opts, token),
		.upgrade = mem_strdup(opts->upgrade),
		.on_end = opts->on_end,
		.ctx = opts->ctx,
	};
	c->place = place;
	place = (struct jupyter_place){ .port = 0 };
	if (slot) {
		*slot = c;
	}
	loop_timer(x->loop, &c->begin, clock_boot_ms(), begin_on_time);
	return 0;
}
