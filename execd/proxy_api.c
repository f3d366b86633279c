/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   request ── port ──▶ DIALLING ── connected ──▶ the proxy's (http_proxy.h)
 *                          └── refused, no answer ──▶ 502
 *
 * The port of this API is ourselves: not through the network, where the request would come in as
 * that of a process of the sandbox, but by a pair of sockets whose other end is served like the one
 * it came from; once, for nobody needs it twice.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <osbx/fd.h>
#include <osbx/http_proxy.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "api.h"
#include "dial.h"
#include "routes.h"
#include "service.h"

#define TOKEN_FIELD       "x-execd-access-token"
#define FORWARDED_FOR     "x-forwarded-for"
#define FORWARDED_FOR_MAX 1024

struct passage {
	struct http_req *rq;
	uint16_t port;
	struct dial *dial;
};

static void answer_text(struct http_req *rq, int status, const char *text)
{
	http_reply(rq, status, "text/plain; charset=utf-8", span_of(text));
}

static void passage_on_fail(struct http_req *rq, enum http_proxy_failure why)
{
	bool is_late = why == HTTP_PROXY_TIMEOUT;

	answer_text(rq, is_late ? 504 : 502, is_late ? "Gateway Timeout" : "Bad Gateway");
}

/* What follows the port, bytes as they came; never empty. Caller frees. */
static char *target_of(const struct http_req *rq)
{
	const char *rest = rq->params[0].p + rq->params[0].n;
	size_t n = rq->target.n - (size_t)(rest - rq->target.p);

	return mem_printf("%s%.*s", n > 0 && rest[0] == '/' ? "" : "/", (int)n, rest);
}

/* Lines to add: who asked, behind what the client says of others. Caller frees. */
static char *forwarded(const struct http_req *rq)
{
	struct span before = http_field(rq, FORWARDED_FOR);
	bool has_before = before.n > 0 && before.n <= FORWARDED_FOR_MAX;

	return mem_printf("X-Forwarded-For: %.*s%s127.0.0.1\r\nX-Forwarded-Proto: http\r\n",
			has_before ? (int)before.n : 0, has_before ? before.p : "",
			has_before ? ", " : "");
}

/* Hand the request over to a connected socket. */
static void pass(struct http_req *rq, uint16_t port, int fd)
{
	/* The token opens this API: a server in the sandbox must not learn it. */
	static const char *const drop[] = { FORWARDED_FOR, "x-forwarded-proto", "x-forwarded-host",
		TOKEN_FIELD, NULL };
	static const char *const drop_looped[] = { FORWARDED_FOR, "x-forwarded-proto",
		"x-forwarded-host", NULL };
	autofree char *target = target_of(rq);
	autofree char *lines = forwarded(rq);
	char host[24];
	const struct http_proxy_opts opts = {
		.target = span_of(target),
		.host = host,
		.drop = port == EXECD_PORT ? drop_looped : drop,
		.add_request = lines,
		.fail = passage_on_fail,
	};

	(void)snprintf(host, sizeof(host), "127.0.0.1:%u", port);
	http_proxy_start(rq, api_execd(rq)->loop, fd, &opts);
}

static void passage_on_close(struct http_req *rq)
{
	struct passage *p = rq->ctx;

	dial_cancel(p->dial);
	free(p);
}

static void passage_on_dialled(void *ctx, int fd, const struct error *e)
{
	struct passage *p = ctx;
	struct http_req *rq = p->rq;
	uint16_t port = p->port;

	(void)e;
	free(p);
	rq->ctx = NULL;
	rq->on_close = NULL;
	if (fd < 0) {
		answer_text(rq, 502, "Bad Gateway");
	} else {
		pass(rq, port, fd);
	}
}

static void pass_to_self(struct http_req *rq)
{
	int pair[2];

	if (rq->listener & API_LISTENER_LOOPED) {
		answer_text(rq, 508, "Loop Detected");
		return;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) {
		answer_text(rq, 502, "Bad Gateway");
		return;
	}
	if (service_adopt(api_execd(rq), pair[1], rq->listener | API_LISTENER_LOOPED) < 0) {
		fd_close(&pair[0]);
		answer_text(rq, 502, "Bad Gateway");
		return;
	}
	pass(rq, EXECD_PORT, pair[0]);
}

void proxy_pass(struct http_req *rq)
{
	struct error e = ERROR_INIT;
	char digits[8] = "";
	uint64_t port = 0;

	if (rq->params[0].n < sizeof(digits)) {
		memcpy(digits, rq->params[0].p, rq->params[0].n);
	}
	if (digits[0] == '0' || str_to_u64(digits, UINT16_MAX, &port) < 0) {
		answer_text(rq, 400, "the port is no number from 1 to 65535");
		return;
	}
	if (port == EXECD_PORT) {
		pass_to_self(rq);
		return;
	}
	struct passage *p = mem_new(struct passage);
	const struct dial_opts opts = { (uint32_t)port, passage_on_dialled, p };

	*p = (struct passage){ .rq = rq, .port = (uint16_t)port };
	rq->ctx = p;
	rq->on_close = passage_on_close;
	if (dial_start(api_execd(rq), &opts, &p->dial, &e) < 0) {
		free(p);
		rq->on_close = NULL;
		answer_text(rq, 502, "Bad Gateway");
	}
}

void proxy_without_port(struct http_req *rq)
{
	answer_text(rq, 400, "missing port");
}
