/* SPDX-License-Identifier: Apache-2.0 */
/*
 * served - a server with routes of each kind under test, for peers (peer.h).
 */
#ifndef OSBX_TESTS_UNIT_HTTP_SERVED_H
#define OSBX_TESTS_UNIT_HTTP_SERVED_H

#include <osbx/http.h>
#include <osbx/mem.h>

#include "peer.h"

static struct http_server *served;
static struct http_req *served_later; /* a request whose answer is awaited */
static int served_closed;             /* calls of on_close */

static inline void served_ping(struct http_req *rq)
{
	http_reply(rq, 200, NULL, span_of(""));
}

static inline void served_echo(struct http_req *rq)
{
	http_reply(rq, 200, "text/plain", rq->body);
}

static inline void served_stream_on_body(struct http_req *rq)
{
	for (struct span data = http_body_peek(rq); data.n > 0; data = http_body_peek(rq)) {
		http_write(rq, data);
		http_body_take(rq, data.n);
	}
	if (http_body_done(rq)) {
		http_end(rq);
	}
}

/* The body goes back as it comes, in one piece at the least. */
static inline void served_stream(struct http_req *rq)
{
	rq->on_body = served_stream_on_body;
	http_begin(rq, 200, "text/plain", UINT64_MAX);
	served_stream_on_body(rq);
}

static inline void served_on_close(struct http_req *rq)
{
	ck_assert_ptr_eq(rq, served_later);
	served_later = NULL;
	served_closed++;
}

static inline void served_wait(struct http_req *rq)
{
	ck_assert_ptr_null(served_later);
	served_later = rq;
	rq->on_close = served_on_close;
}

static inline void served_hello(struct http_req *rq)
{
	autofree char *name = http_param(rq, 0);
	autofree char *text = mem_printf("hello %s", name ? name : "nobody");

	http_reply(rq, 200, "text/plain", span_of(text));
}

static inline void served_any(struct http_req *rq)
{
	autofree char *text = mem_printf("%.*s %.*s", (int)rq->method_text.n, rq->method_text.p,
			(int)rq->target.n, rq->target.p);

	http_reply(rq, 200, "text/plain", span_of(text));
}

static const struct http_route served_routes[] = {
	{ HTTP_GET, "/ping", served_ping },
	{ HTTP_POST, "/echo", served_echo, .body_max = 100000 },
	{ HTTP_POST, "/stream", served_stream, HTTP_ROUTE_STREAM },
	{ HTTP_GET, "/later", served_wait },
	{ HTTP_POST, "/later", served_wait, HTTP_ROUTE_STREAM },
	{ HTTP_GET, "/hello/{name}", served_hello },
	{ HTTP_GET, "/any/{rest*}", served_any, HTTP_ROUTE_ANY },
};

static inline void served_start_with(struct http_opts opts)
{
	if (!opts.routes) {
		opts.routes = served_routes;
		opts.routes_n = ARRAY_SIZE(served_routes);
	}
	peer_loop = loop_new();
	ck_assert_ptr_nonnull(peer_loop);
	served = http_server_new(peer_loop, &opts);
	served_later = NULL;
	served_closed = 0;
}

static inline void served_start(void)
{
	served_start_with((struct http_opts){ .conns_max = 0 });
}

static inline void served_stop(void)
{
	http_server_free(served);
	loop_free(peer_loop);
}

static inline void served_connect(struct peer *p, size_t i)
{
	ck_assert_int_eq(http_adopt(served, peer_open(p, i), 7), 0);
}

/* Give the loop what is ready, without waiting for more. */
static inline void served_step(void)
{
	struct loop_source stop = { .kind = LOOP_SOURCE_NONE };

	loop_timer(peer_loop, &stop, clock_boot_ms(), peer_stop_on_time);
	ck_assert_int_eq(loop_run(peer_loop), 0);
	loop_remove(peer_loop, &stop);
}

/* Without lines of Date, each of which must be the only one of its answer. */
static inline void served_mask(struct buf *b)
{
	char *at = b->p;

	while (at && (at = memmem(at, b->n - (size_t)(at - b->p), "\r\nDate: ", 8))) {
		size_t start = (size_t)(at - b->p);
		char *end = memmem(at + 2, b->n - start - 2, "\r\n", 2);

		ck_assert_ptr_nonnull(end);
		ck_assert_int_eq(end - at, 2 + 6 + 29);
		memmove(at, end, b->n - (size_t)(end - b->p));
		b->n -= (size_t)(end - at);
		b->p[b->n] = '\0';
	}
}

/* All that the server answers to these bytes until it closes; the peer half-closes behind them.
 * piece: bytes at once, 0: all. */
static inline void served_talk(struct span bytes, size_t piece, struct buf *out)
{
	struct peer p;

	served_connect(&p, 0);
	for (size_t at = 0; at < bytes.n && !p.eof;) {
		size_t n = piece && piece < bytes.n - at ? piece : bytes.n - at;
		ssize_t sent = send(p.fd, bytes.p + at, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		/* A server that has closed reads no more. */
		if (sent < 0 && errno != EAGAIN) {
			break;
		}
		at += sent > 0 ? (size_t)sent : 0;
		served_step();
		peer_read(&p);
	}
	(void)!shutdown(p.fd, SHUT_WR);
	PEER_UNTIL(p.eof);
	*out = p.got;
	p.got = (struct buf)BUF_INIT(0);
	served_mask(out);
	peer_done(&p);
	PEER_UNTIL(http_conns(served) == 0);
	ck_assert_uint_eq(http_busy(served), 0);
}

#endif
