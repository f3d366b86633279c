/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * A connection is in one state of enum conn_state. Events of the loop and calls of handlers only
 * change what is known of it (bytes have come, the answer has ended, the peer is gone); conn_run
 * then takes steps until none is possible, and is the only place that calls handlers: never from
 * within one of their own calls. A call of a handler that makes a step possible while nothing of
 * the connection is on the stack arms the timer for now ("kick").
 *
 *	HEAD -> BODY -> HANDLER -> ENDED -> HEAD ...      keep-alive
 *	HEAD ---------> HANDLER    ENDED -> LINGER -> DEAD
 *	                HANDLER -> FORKED -> ENDED
 *
 * What the epoll set wants of the descriptor follows from the state (settle): bytes are read only
 * where somebody waits for them, so a request behind this one stays in the kernel but for what one
 * read brought along. EPOLLHUP and EPOLLERR are always told: so a peer that is gone is noticed
 *while an answer is awaited.
 *
 * The end of what a peer sends (half-close) is no such sign: curl, nc and others read on. It ends
 * the connection only where a body is cut short by it, or behind the answers. A peer on TCP that
 * has closed altogether looks the same until something is written to it.
 *
 * One timer a connection, moved only when it would fire too late; when it fires too early it is
 * set anew. A request on a connection that is kept alive so costs no timer at all.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/mem.h>

#include "http_internal.h"

static void on_io(struct loop *loop, struct loop_source *src, uint32_t events);
static void on_timer(struct loop *loop, struct loop_source *src, uint32_t events);

struct conn *conn_new(struct http_server *s, int fd, uint32_t tag)
{
	struct conn *c = mem_new(struct conn);

	*c = (struct conn){
		.server = s,
		.next = s->conns,
		.in = BUF_INIT(PARSE_HEAD_MAX + 2 * HTTP_IN_BODY),
		.out = BUF_INIT(HTTP_OUT_MAX),
		.since_ms = clock_boot_ms(),
		.fd = fd,
		.tag = tag,
	};
	if (loop_add(s->loop, &c->io, fd, EPOLLIN, on_io) < 0) {
		free(c);
		return NULL;
	}
	if (s->conns) {
		s->conns->prev = c;
	}
	s->conns = c;
	s->conns_n++;
	return c;
}

static void uncount(struct conn *c)
{
	if (c->x && c->x->is_counted) {
		c->x->is_counted = false;
		c->server->busy_n--;
	}
}

void conn_drop_exchange(struct conn *c)
{
	if (c->x) {
		uncount(c);
		buf_done(&c->x->whole);
		buf_done(&c->x->extra);
		buf_done(&c->x->trailers);
		free(c->x);
		c->x = NULL;
	}
}

static void conn_free(struct conn *c)
{
	struct http_server *s = c->server;

	loop_remove(s->loop, &c->io);
	loop_remove(s->loop, &c->timer);
	worker_free(c);
	conn_drop_exchange(c);
	buf_done(&c->in);
	buf_done(&c->out);
	fd_close(&c->fd);
	if (c->prev) {
		c->prev->next = c->next;
	} else {
		s->conns = c->next;
	}
	if (c->next) {
		c->next->prev = c->prev;
	}
	s->conns_n--;
	free(c);
}

void conn_kill(struct conn *c)
{
	uncount(c);
	c->state = CONN_DEAD;
}

/* The peer is gone: tell whoever has the request. */
void conn_lose(struct conn *c)
{
	if (c->state == CONN_HANDLER) {
		void (*on_close)(struct http_req * rq) = c->x->rq.on_close;

		uncount(c);
		if (on_close) {
			on_close(&c->x->rq);
		}
	}
	conn_kill(c);
}

/* fields_n of 0 for an exchange without a head. */
static struct exchange *exchange_new(struct conn *c, struct span head, size_t fields_n)
{
	struct exchange *x =
			mem_array(1, sizeof(*x) + fields_n * sizeof(struct parse_field) + head.n);

	x->conn = c;
	x->fields = (struct parse_field *)(x + 1);
	x->fields_n = fields_n;
	x->head = (char *)(x->fields + fields_n);
	x->head_n = head.n;
	if (head.n > 0) {
		memcpy(x->head, head.p, head.n);
	}
	x->rq = (struct http_req){
		.method = HTTP_METHOD_OTHER,
		.method_text = span_of(""),
		.target = span_of(""),
		.path = span_of(""),
		.query = span_of(""),
		.body = span_of(""),
		.listener = c->tag,
		.server_ctx = c->server->opts.ctx,
	};
	x->whole = (struct buf)BUF_INIT(0);
	x->extra = (struct buf)BUF_INIT(HTTP_EXTRA_MAX);
	x->trailers = (struct buf)BUF_INIT(HTTP_EXTRA_MAX);
	x->is_counted = true;
	c->server->busy_n++;
	return x;
}

void conn_refuse(struct conn *c, const struct parse_refusal *why)
{
	if (!c->x) {
		c->x = exchange_new(c, span_of(""), 0);
	}
	c->x->is_nobody = true;
	c->x->fields_n = 0;
	c->must_close = true;
	c->state = CONN_HANDLER;
	if (why->status == 503) {
		http_reply_field(&c->x->rq, "Retry-After", "1");
	}
	reply_error(&c->x->rq, why->status, why->what);
}

void conn_fail(struct conn *c, int status, const char *what)
{
	struct http_req *rq = &c->x->rq;
	void (*on_close)(struct http_req * rq) = rq->on_close;

	if (c->x->has_begun) {
		/* Half an answer says more than none, which some clients would ask for again. */
		conn_flush(c);
		conn_lose(c);
		return;
	}
	rq->on_close = NULL;
	rq->on_body = NULL;
	rq->on_drain = NULL;
	if (on_close) {
		on_close(rq);
	}
	buf_reset(&c->x->extra);
	c->must_close = true;
	reply_error(rq, status, what);
}

static void request_fill(struct conn *c, const struct parse_head *head)
{
	struct exchange *x = c->x;
	struct span path = { .p = NULL };
	struct span query = head->target;

	(void)span_next(&query, '?', &path);
	x->rq.method = route_method(head->method);
	x->rq.method_text = head->method;
	x->rq.target = head->target;
	x->rq.path = path;
	x->rq.query = query.p ? query : span_of("");
	x->is_10 = head->is_10;
	x->body.kind = head->is_chunked ? BODY_CHUNKED : BODY_LENGTH;
	x->body.length = head->length;
	x->body.left = head->length;
	x->body.expects = head->expects;
	c->must_close |= !head->keep_alive;
}

static void answer_options(struct conn *c, unsigned int methods)
{
	AUTO(buf) struct buf allow = BUF_INIT(256);

	route_allow(methods, &allow);
	http_reply_field(&c->x->rq, "Allow", buf_span(&allow).p);
	http_reply(&c->x->rq, 204, NULL, span_of(""));
}

static void answer_without_route(struct conn *c, const struct route_match *found)
{
	struct http_req *rq = &c->x->rq;
	AUTO(buf) struct buf allow = BUF_INIT(256);

	if (rq->method == HTTP_OPTIONS && (found->path_exists || rq->path.p[0] == '*')) {
		answer_options(c, found->path_exists ? found->methods : ~0U);
	} else if (rq->method == HTTP_METHOD_OTHER) {
		reply_error(rq, 501, "the method is not known");
	} else if (found->path_exists) {
		route_allow(found->methods, &allow);
		http_reply_field(rq, "Allow", buf_span(&allow).p);
		reply_error(rq, 405, "the method is not allowed here");
	} else {
		reply_error(rq, 404, "there is nothing here");
	}
}

static void body_begin(struct conn *c)
{
	struct exchange *x = c->x;

	x->whole.max = x->rq.route->body_max ? x->rq.route->body_max : HTTP_BODY_WHOLE_MAX;
	if (x->body.left > x->whole.max) {
		c->must_close = true;
		reply_error(&x->rq, 413, "the body is too large");
		return;
	}
	c->state = CONN_BODY;
	body_continue(c);
}

/* The head is there. */
static void dispatch(struct conn *c)
{
	struct exchange *x = c->x;
	struct route_match found = { .route = NULL };

	route_find(c->server, &x->rq, &found);
	x->rq.route = found.route;
	c->state = CONN_HANDLER;
	if (c->server->opts.admit && !c->server->opts.admit(&x->rq)) {
		return;
	}
	x->is_admitted = true;
	if (!found.route) {
		answer_without_route(c, &found);
	} else if (found.route->flags & HTTP_ROUTE_STREAM) {
		body_advance(c);
		x->body.has_news = body_data(c).n > 0;
		found.route->handler(&x->rq);
	} else {
		body_begin(c);
	}
}

static bool step_head(struct conn *c)
{
	struct span in = conn_in(c);
	struct parse_refusal why = { .status = 0 };
	int r = parse_scan(&c->scan, in, &why);

	if (r == 0) {
		/* Half a head will never be a whole one. */
		if (c->eof) {
			conn_kill(c);
		}
		return false;
	}
	struct span bytes = { .p = in.p, .n = c->scan.at };
	size_t lines = c->scan.lines;

	c->scan = (struct parse_scan){ .at = 0 };
	if (r < 0) {
		conn_refuse(c, &why);
		return true;
	}
	if (lines == 0) {
		/* An empty line in front of a request (RFC 9112 section 2.2). */
		conn_consume(c, bytes.n);
		return true;
	}
	c->x = exchange_new(c, bytes, lines - 1);
	struct parse_head head = { .fields = c->x->fields, .fields_max = c->x->fields_n };

	conn_consume(c, bytes.n);
	if (parse_head((struct span){ .p = c->x->head, .n = c->x->head_n }, &head, &why) < 0) {
		conn_refuse(c, &why);
		return true;
	}
	c->x->fields_n = head.fields_n;
	request_fill(c, &head);
	dispatch(c);
	return true;
}

static bool step_body(struct conn *c)
{
	struct exchange *x = c->x;

	body_advance(c);
	for (struct span data = body_data(c); data.n > 0; data = body_data(c)) {
		if (buf_append(&x->whole, data.p, data.n) < 0) {
			c->must_close = true;
			c->state = CONN_HANDLER;
			reply_error(&x->rq, 413, "the body is too large");
			return true;
		}
		body_take(c, data.n);
	}
	if (body_is_done(&x->body)) {
		c->state = CONN_HANDLER;
		x->rq.body = buf_span(&x->whole);
		x->rq.route->handler(&x->rq);
		return true;
	}
	if (x->body.is_bad || c->eof) {
		c->must_close = true;
		c->state = CONN_HANDLER;
		reply_error(&x->rq, 400,
				x->body.is_bad ? "the body is malformed" : "the body is cut short");
		return true;
	}
	return false;
}

static bool is_stream(const struct conn *c)
{
	const struct http_route *route = c->x->rq.route;

	return route && (route->flags & HTTP_ROUTE_STREAM);
}

/* Is the body one that can never be whole? */
static bool is_cut(const struct conn *c)
{
	return is_stream(c) && (c->x->body.is_bad || (c->eof && body_wants(c)));
}

static bool step_handler(struct conn *c)
{
	struct exchange *x = c->x;

	if (c->is_stalled && conn_pending(c) < HTTP_DRAINED) {
		c->is_stalled = false;
		if (x->rq.on_drain) {
			x->rq.on_drain(&x->rq);
			return true;
		}
	}
	if (is_cut(c)) {
		conn_fail(c, 400,
				x->body.is_bad ? "the body is malformed" : "the body is cut short");
		return true;
	}
	if (is_stream(c) && x->body.has_news && x->rq.on_body) {
		uint64_t taken = x->body.taken;

		x->body.has_news = false;
		x->rq.on_body(&x->rq);
		/* A handler that takes one piece at each call gets the next one now. */
		if (c->state == CONN_HANDLER && x->body.taken > taken && body_data(c).n > 0) {
			x->body.has_news = true;
		}
		return true;
	}
	return false;
}

/* Drop what is left of the body, within reason. False: it is still coming. */
static bool drain(struct conn *c)
{
	struct body *b = &c->x->body;

	body_advance(c);
	while (body_data(c).n > 0) {
		body_take(c, body_data(c).n);
	}
	if (b->is_bad || b->expects || c->eof || b->taken - b->taken_by_handler > HTTP_DRAIN_MAX ||
			(b->kind == BODY_LENGTH && b->left > HTTP_DRAIN_MAX)) {
		c->must_close |= !body_is_done(b);
		return true;
	}
	return body_is_done(b);
}

static void next_request(struct conn *c)
{
	conn_drop_exchange(c);
	c->state = CONN_HEAD;
	c->scan = (struct parse_scan){ .at = 0 };
	c->since_ms = clock_boot_ms();
	c->is_stalled = false;
	if (c->in.n == 0) {
		buf_done(&c->in);
	}
	buf_done(&c->out);
}

/* Closing with bytes unread resets a TCP connection, which takes the answer with it. */
static bool has_unread(const struct conn *c)
{
	char byte = 0;

	if (c->eof) {
		return false;
	}
	if (!body_is_done(&c->x->body) || c->x->is_nobody || c->in.n > 0) {
		return true;
	}
	return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

static bool step_ended(struct conn *c)
{
	/* What has been announced as the last answer needs no drained body: that is what lingering
	 * is for. */
	if (!c->must_close && !drain(c)) {
		return false;
	}
	if (!c->is_blocked) {
		conn_flush(c);
	}
	if (c->is_broken) {
		conn_kill(c);
		return false;
	}
	if (conn_pending(c) > 0) {
		return false;
	}
	if (!c->must_close) {
		next_request(c);
		return true;
	}
	if (!has_unread(c)) {
		conn_kill(c);
		return false;
	}
	(void)shutdown(c->fd, SHUT_WR);
	conn_drop_exchange(c);
	c->state = CONN_LINGER;
	c->since_ms = clock_boot_ms();
	return true;
}

static bool step_linger(struct conn *c)
{
	conn_consume(c, conn_in(c).n);
	if (c->eof) {
		conn_kill(c);
	}
	return false;
}

static bool step(struct conn *c)
{
	if (c->is_broken && c->state != CONN_DEAD) {
		conn_lose(c);
		return false;
	}
	switch (c->state) {
	case CONN_HEAD:
		return step_head(c);
	case CONN_BODY:
		return step_body(c);
	case CONN_HANDLER:
		return step_handler(c);
	case CONN_ENDED:
		return step_ended(c);
	case CONN_LINGER:
		return step_linger(c);
	case CONN_FORKED:
	case CONN_DEAD:
		break;
	}
	return false;
}

void conn_run(struct conn *c)
{
	while (step(c)) {
	}
}

void conn_ended(struct conn *c)
{
	uncount(c);
	c->x->body.taken_by_handler = c->x->body.taken;
	c->state = CONN_ENDED;
}

static uint32_t events_wanted(const struct conn *c)
{
	uint32_t in = 0;

	switch (c->state) {
	case CONN_HEAD:
	case CONN_BODY:
	case CONN_LINGER:
		in = EPOLLIN;
		break;
	case CONN_HANDLER:
		in = is_stream(c) && body_wants(c) ? EPOLLIN : 0;
		break;
	case CONN_ENDED:
		in = !c->must_close && !body_is_done(&c->x->body) ? EPOLLIN : 0;
		break;
	case CONN_FORKED:
	case CONN_DEAD:
		break;
	}
	return (c->eof ? 0 : in) | (c->is_blocked ? (uint32_t)EPOLLOUT : 0);
}

/* Milliseconds that may pass without progress, -1: any. */
static int64_t patience_ms(const struct conn *c)
{
	const struct http_opts *o = &c->server->opts;

	switch (c->state) {
	case CONN_HEAD:
		return c->in.n == 0 ? o->idle_ms : o->head_ms;
	case CONN_HANDLER:
		return is_stream(c) && body_wants(c) && !c->x->has_begun ? o->body_ms : -1;
	case CONN_BODY:
	case CONN_ENDED:
		return o->body_ms;
	case CONN_LINGER:
		return HTTP_LINGER_MS;
	case CONN_FORKED:
	case CONN_DEAD:
		break;
	}
	return -1;
}

static void expire(struct conn *c)
{
	const struct parse_refusal slow = { .status = 408, .what = "the request came too slowly" };

	switch (c->state) {
	case CONN_HEAD:
		if (c->in.n > 0) {
			conn_refuse(c, &slow);
		} else {
			conn_kill(c);
		}
		break;
	case CONN_BODY:
		c->state = CONN_HANDLER;
		conn_fail(c, slow.status, slow.what);
		break;
	case CONN_HANDLER:
		conn_fail(c, slow.status, slow.what);
		break;
	case CONN_ENDED:
	case CONN_LINGER:
		conn_kill(c);
		break;
	case CONN_FORKED:
	case CONN_DEAD:
		break;
	}
}

static bool needs_run(const struct conn *c)
{
	return c->is_broken || (c->state == CONN_HEAD && conn_in(c).n > c->scan.at) ||
	       (c->state == CONN_HANDLER && is_cut(c));
}

static void arm(struct conn *c)
{
	int64_t patience = patience_ms(c);

	if (needs_run(c)) {
		c->is_kicked = true;
		loop_timer(c->server->loop, &c->timer, clock_boot_ms(), on_timer);
	} else if (patience >= 0 && !c->is_kicked &&
			(c->timer.kind == LOOP_SOURCE_NONE ||
					c->timer.deadline_ms > c->since_ms + patience)) {
		loop_timer(c->server->loop, &c->timer, c->since_ms + patience, on_timer);
	}
}

/* Nothing of the connection is on the stack any more. */
static void settle(struct conn *c)
{
	struct loop *loop = c->server->loop;

	if (c->state == CONN_ENDED) {
		(void)step_ended(c);
	}
	if (c->state == CONN_FORKED) {
		return;
	}
	if (c->state != CONN_DEAD && conn_pending(c) > 0 && !c->is_blocked) {
		conn_flush(c);
	}
	if (c->state != CONN_DEAD && loop_change(loop, &c->io, events_wanted(c)) < 0) {
		c->depth++;
		conn_lose(c);
		c->depth--;
	}
	if (c->state == CONN_DEAD) {
		conn_free(c);
		return;
	}
	arm(c);
}

void conn_enter(struct conn *c)
{
	c->depth++;
}

void conn_leave(struct conn *c)
{
	assert(c->depth > 0);
	if (--c->depth == 0 && !c->is_blocking) {
		settle(c);
	}
}

static void receive(struct conn *c)
{
	bool has_body = c->state == CONN_HANDLER || c->state == CONN_BODY || c->state == CONN_ENDED;
	bool was_done = !has_body || body_is_done(&c->x->body);
	ssize_t n = conn_read(c, c->state == CONN_HEAD ? HTTP_IN_HEAD : HTTP_IN_BODY);

	if (n < 0 && n != -EAGAIN) {
		c->is_broken = true;
	}
	if (n > 0 && c->state == CONN_HANDLER) {
		body_advance(c);
		c->x->body.has_news =
				body_data(c).n > 0 || (!was_done && body_is_done(&c->x->body));
	}
}

static void on_io(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct conn *c = container_of(src, struct conn, io);
	bool is_gone = events & (EPOLLHUP | EPOLLERR);

	(void)loop;
	conn_enter(c);
	if (events & EPOLLOUT) {
		conn_flush(c);
	}
	if (is_gone && (c->state == CONN_HANDLER || c->state == CONN_ENDED || c->eof)) {
		c->is_broken = true;
	} else if (is_gone || (events & EPOLLIN)) {
		receive(c);
	}
	conn_run(c);
	conn_leave(c);
}

static void on_timer(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct conn *c = container_of(src, struct conn, timer);
	int64_t patience = patience_ms(c);

	(void)loop;
	(void)events;
	conn_enter(c);
	if (!c->is_kicked && patience >= 0 && clock_boot_ms() >= c->since_ms + patience) {
		expire(c);
	}
	c->is_kicked = false;
	conn_run(c);
	conn_leave(c);
}

int http_take_over(struct http_req *rq, struct buf *out_rest)
{
	struct conn *c = conn_of(rq);

	assert(c->state == CONN_HANDLER && !c->x->has_begun && !c->is_blocking);
	conn_enter(c);
	loop_remove(c->server->loop, &c->io);
	buf_consume(&c->in, c->in_at);
	c->in_at = 0;
	*out_rest = c->in;
	c->in = (struct buf)BUF_INIT(0);
	int fd = TAKE_FD(c->fd);

	conn_kill(c);
	conn_leave(c);
	return fd;
}
