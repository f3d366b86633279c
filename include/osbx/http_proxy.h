/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: http
 * http_proxy - pass a request on to a connected socket and its answer back.
 *
 * Bodies are streamed both ways with back-pressure, an answer's bytes go out as they come (SSE),
 * trailers and half-close are kept, an upgrade (WebSocket) becomes a tunnel of bytes. Hop-by-hop
 * fields (RFC 9110 section 7.6.1), also those that Connection names, are removed on both sides.
 */
#ifndef OSBX_HTTP_PROXY_H
#define OSBX_HTTP_PROXY_H

#include <stdbool.h>
#include <stdint.h>

#include <osbx/compiler.h>
#include <osbx/http.h>
#include <osbx/loop.h>
#include <osbx/span.h>

enum http_proxy_failure {
	HTTP_PROXY_CONNECT,  /* reported by the caller itself: 502 */
	HTTP_PROXY_TIMEOUT,  /* nothing came or went for timeout_ms: 504 */
	HTTP_PROXY_RESPONSE, /* the answer is no HTTP, or cut before its body: 502 */
};

struct http_proxy_opts {
	struct span target; /* path and query to ask for, as they are to be sent, begins with '/' */
	const char *host;   /* value of Host */
	/* Lower-case names that are not passed on, NULL-terminated; beside hop-by-hop ones. */
	const char *const *drop;
	/* Lines with CR LF to add behind, and those of answers (may be NULL). */
	const char *add_request;
	const char *add_response;
	const char *const *drop_response;
	/* A Location that begins with '/' gets this in front, unless it begins with it, and so
	 * does one of "http://" and host, without both; or NULL. */
	const char *location_prefix;
	int64_t timeout_ms; /* until the head of the answer, 0: 180 s */
	/* The answer cannot be had and has not begun: must answer rq. */
	void (*fail)(struct http_req *rq, enum http_proxy_failure why);
	/* The last call, however it ended, also for a tunnel and a client that is gone; ctx is what
	 * rq->ctx was. May be NULL. */
	void (*on_end)(void *ctx);
};

/* Take fd (a connected, non-blocking stream socket) over and pass rq (HTTP_ROUTE_STREAM) on. rq is
 * the proxy's from here on; for fail() rq->ctx is the caller's again. Of opts only the drop lists
 * are borrowed on. An answer's 1xx but 101 are not passed on, 101 only if the client asked for an
 * upgrade, which is neither to HTTP nor to TLS. fail and on_end may be called before it returns. */
void http_proxy_start(struct http_req *rq, struct loop *loop, int fd,
		const struct http_proxy_opts *opts) NONNULL(1, 2, 4);

#endif
