/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "http_internal.h"

void body_advance(struct conn *c)
{
	struct body *b = &c->x->body;

	if (b->kind != BODY_CHUNKED || b->is_bad) {
		return;
	}
	ssize_t n = chunked_step(&b->chunked, conn_in(c));

	if (n < 0) {
		b->is_bad = true;
		return;
	}
	conn_consume(c, (size_t)n);
}

uint64_t body_left(const struct body *b)
{
	if (b->is_bad) {
		return 0;
	}
	if (b->kind == BODY_LENGTH) {
		return b->left;
	}
	return b->chunked.state == CHUNKED_DATA ? b->chunked.left : 0;
}

struct span body_data(const struct conn *c)
{
	uint64_t left = body_left(&c->x->body);
	struct span in = conn_in(c);

	return (struct span){ .p = in.p, .n = in.n < left ? in.n : (size_t)left };
}

void body_count(struct conn *c, size_t n)
{
	struct body *b = &c->x->body;

	b->taken += n;
	b->has_news = false;
	if (b->kind == BODY_CHUNKED) {
		chunked_take(&b->chunked, n);
		body_advance(c);
	} else {
		b->left -= n;
	}
}

void body_take(struct conn *c, size_t n)
{
	if (n > 0) {
		assert(n <= body_data(c).n);
		conn_consume(c, n);
		body_count(c, n);
	}
}

bool body_is_done(const struct body *b)
{
	return b->kind == BODY_CHUNKED ? b->chunked.state == CHUNKED_DONE : b->left == 0;
}

bool body_wants(const struct conn *c)
{
	const struct body *b = &c->x->body;

	return !b->is_bad && !body_is_done(b) && body_data(c).n == 0;
}

void body_continue(struct conn *c)
{
	static char line[] = "HTTP/1.1 100 Continue\r\n\r\n";
	struct body *b = &c->x->body;

	if (!b->expects) {
		return;
	}
	b->expects = false;
	/* A client that did not wait needs none (RFC 9110 section 10.1.1). */
	if (conn_in(c).n == 0 && !c->x->has_begun) {
		struct iovec v = { .iov_base = line, .iov_len = sizeof(line) - 1 };

		conn_send(c, &v, 1);
	}
}

struct span http_body_peek(struct http_req *rq)
{
	struct conn *c = conn_of(rq);

	conn_enter(c);
	body_continue(c);
	struct span data = body_data(c);

	conn_leave(c);
	return data;
}

void http_body_take(struct http_req *rq, size_t n)
{
	struct conn *c = conn_of(rq);

	conn_enter(c);
	body_take(c, n);
	conn_leave(c);
}

bool http_body_done(const struct http_req *rq)
{
	return body_is_done(&exchange_of(rq)->body);
}

uint64_t http_body_length(const struct http_req *rq)
{
	const struct body *b = &exchange_of(rq)->body;

	return b->kind == BODY_CHUNKED ? UINT64_MAX : b->length;
}
