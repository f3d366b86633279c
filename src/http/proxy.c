/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *            out (64 KiB)                          in (64 KiB)
 *   client ───────────────► backend       backend ─────────────► client
 *   http_body_peek   send                 recv        http_write
 *
 * Both directions go on at the same time, and neither waits for the other: a backend may answer
 * before it has read the request (an early 4xx), and then it may take no more of it, which only
 * ends the sending. The client's body is taken when out has room, the backend's when the client
 * has taken most of what it was given; on_body and on_drain of the request, and readiness of the
 * backend's socket, make it go on.
 *
 *   head of the answer ──1xx──► head …
 *      ├──101 that was asked for──► a pump, the proxy is gone
 *      ├──no head, no HTTP, nothing for timeout_ms──► fail()
 *      └──body──► its end: http_end
 *           └──cut short: http_abort, which the client sees as an error, too
 *
 * Nothing of the server calls back from within its own functions, but fail() and on_end() may start
 * another proxy, or free what is ours: they come last.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/pump.h>

#include "proxy_internal.h"

#define TIMEOUT_MS_DEFAULT 180000
#define PENDING_MAX        (256U << 10) /* what the client has not taken */
#define REQUEST_HEAD_MAX   (1U << 20)

static void go_on(struct proxy *p);

static size_t out_waiting(const struct proxy *p)
{
	return p->out.n - p->out_at;
}

static void proxy_free(struct proxy *p)
{
	loop_remove(p->loop, &p->src);
	loop_remove(p->loop, &p->timer);
	fd_close(&p->fd);
	buf_done(&p->out);
	buf_done(&p->trailers);
	free(p->add_response);
	free(p->location_prefix);
	free(p->host);
	free(p->in);
	free(p);
}

/* The request is the caller's, or the server's, again. */
static struct http_req *request_release(struct proxy *p)
{
	struct http_req *rq = p->rq;

	rq->on_close = NULL;
	rq->on_drain = NULL;
	rq->on_body = NULL;
	rq->ctx = p->ctx;
	return rq;
}

/* Free, and then tell. */
static void end(struct proxy *p)
{
	void (*on_end)(void *ctx) = p->on_end;
	void *ctx = p->ctx;

	proxy_free(p);
	if (on_end) {
		on_end(ctx);
	}
}

static void finish_failed(struct proxy *p, enum http_proxy_failure why)
{
	struct http_req *rq = request_release(p);

	if (http_has_begun(rq)) {
		http_abort(rq);
	} else {
		p->fail(rq, why);
	}
	end(p);
}

/* Fields of the trailer, as reply fields; what is malformed or framing is dropped. */
static void trailers_pass(struct proxy *p)
{
	struct span rest = buf_span(&p->trailers);
	struct span line = { .p = NULL };

	while (span_next(&rest, '\n', &line) && line.n > 1) {
		const char *colon = memchr(line.p, ':', line.n);

		if (!colon) {
			continue;
		}
		struct span name = { .p = line.p, .n = (size_t)(colon - line.p) };
		struct span value = parse_trim((struct span){
				.p = colon + 1, .n = line.n - name.n - strlen(":\r") });

		if (!parse_is_token(name) || !parse_is_value(value) ||
				proxy_is_hop(NULL, 0, name)) {
			continue;
		}
		autofree char *name_text = mem_dup(name.p, name.n);
		autofree char *value_text = mem_dup(value.p, value.n);

		http_reply_trailer(p->rq, name_text, value_text);
	}
}

static void finish(struct proxy *p)
{
	trailers_pass(p);
	http_end(request_release(p));
	end(p);
}

/* Take what there is of the request's body, as far as out has room. */
static void request_pump(struct proxy *p)
{
	while (!p->is_sent && !p->is_refused && out_waiting(p) < PROXY_OUT_BYTES) {
		struct span data = http_body_peek(p->rq);
		char size[24];
		int r = 0;

		if (data.n == 0) {
			break;
		}
		data.n = data.n < PROXY_OUT_BYTES ? data.n : PROXY_OUT_BYTES;
		if (p->is_chunked) {
			(void)snprintf(size, sizeof(size), "%zx\r\n", data.n);
			r = buf_append_str(&p->out, size);
		}
		r = r < 0 ? r : buf_append(&p->out, data.p, data.n);
		if (p->is_chunked) {
			r = r < 0 ? r : buf_append_str(&p->out, "\r\n");
		}
		assert(r == 0);
		http_body_take(p->rq, data.n);
	}
	if (!p->is_sent && !p->is_refused && http_body_done(p->rq)) {
		int r = p->is_chunked ? buf_append_str(&p->out, "0\r\n\r\n") : 0;

		assert(r == 0);
		(void)r;
		p->is_sent = true;
	}
}

/* Send to the backend until nothing is left or it takes no more for now. */
static void request_send(struct proxy *p)
{
	for (;;) {
		request_pump(p);
		if (p->is_refused || out_waiting(p) == 0) {
			return;
		}
		ssize_t n = send(p->fd, p->out.p + p->out_at, out_waiting(p),
				MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n < 0 && errno == EAGAIN) {
			return;
		}
		if (n < 0) {
			/* It may have answered before it closed. */
			p->is_refused = true;
			n = (ssize_t)out_waiting(p);
		}
		p->progress_ms = clock_boot_ms();
		p->out_at += (size_t)n;
		if (p->out_at >= p->out.n / 2) {
			buf_consume(&p->out, TAKE(p->out_at, 0));
		}
	}
}

static void body_begin(struct proxy *p, const struct proxy_answer *a)
{
	bool has_none = p->is_head || a->status == 204 || a->status == 304;
	uint64_t length = a->has_length ? a->length : UINT64_MAX;

	p->has_head = true;
	loop_remove(p->loop, &p->timer);
	if (has_none || length == 0) {
		p->body = PROXY_BODY_NONE;
		p->is_over = true;
	} else if (a->is_chunked) {
		p->body = PROXY_BODY_CHUNKED;
	} else {
		p->body = a->has_length ? PROXY_BODY_LENGTH : PROXY_BODY_CLOSE;
		p->left = length;
	}
	http_begin(p->rq, a->status, NULL, length);
}

/* What is left of a proxy when bytes go both ways as they are. */
struct tunnel {
	void (*on_end)(void *ctx);
	void *ctx;
};

static void tunnel_on_end(void *ctx, int errnum)
{
	autofree struct tunnel *t = ctx;

	(void)errnum;
	if (t->on_end) {
		t->on_end(t->ctx);
	}
}

/* 101: the proxy ends, and what it has read and not passed on goes ahead of all that follows. */
static void upgrade(struct proxy *p, const struct proxy_answer *a)
{
	AUTO(buf) struct buf for_client = BUF_INIT(SIZE_MAX);
	AUTO(buf) struct buf for_backend = BUF_INIT(SIZE_MAX);
	AUTO(buf) struct buf rest = BUF_INIT(0);

	proxy_answer_upgrade(p, a, &for_client);
	int r = buf_append(&for_client, p->in + p->in_at, p->in_n - p->in_at);

	r = r < 0 ? r : buf_append(&for_backend, p->out.p + p->out_at, out_waiting(p));
	int client_fd = http_take_over(request_release(p), &rest);

	r = r < 0 ? r : buf_append(&for_backend, rest.p, rest.n);
	assert(r == 0);
	(void)r;
	if (client_fd < 0) {
		end(p);
		return;
	}
	loop_remove(p->loop, &p->src);
	struct tunnel *t = mem_new(struct tunnel);
	struct loop *loop = p->loop;
	const struct pump_opts opts = {
		.a_fd = client_fd,
		.b_fd = TAKE_FD(p->fd),
		.connected = true,
		.a_first = buf_span(&for_backend),
		.b_first = buf_span(&for_client),
		.on_end = tunnel_on_end,
		.ctx = t,
	};

	*t = (struct tunnel){ .on_end = p->on_end, .ctx = p->ctx };
	proxy_free(p);
	if (!pump_new(loop, &opts)) {
		tunnel_on_end(t, errno);
	}
}

enum step {
	STEP_MORE,  /* bytes are needed */
	STEP_AGAIN, /* go on with what there is */
	STEP_GONE,  /* there is no proxy any more */
};

static enum step head_step(struct proxy *p)
{
	struct span bytes = { .p = p->in + p->in_at, .n = p->in_n - p->in_at };
	struct parse_refusal ignored = { .status = 0 };
	struct proxy_answer a;
	int r = parse_scan(&p->scan, bytes, &ignored);

	if (r == 0) {
		return STEP_MORE;
	}
	bytes.n = p->scan.at;
	if (r < 0 || proxy_answer_parse(bytes, &a) < 0) {
		finish_failed(p, HTTP_PROXY_RESPONSE);
		return STEP_GONE;
	}
	p->in_at += bytes.n;
	p->scan = (struct parse_scan){ .at = 0 };
	if (a.status == 101) {
		if (!p->wants_upgrade || a.upgrade.n == 0) {
			finish_failed(p, HTTP_PROXY_RESPONSE);
		} else {
			upgrade(p, &a);
		}
		return STEP_GONE;
	}
	if (a.status < 200) {
		return STEP_AGAIN;
	}
	if (!proxy_answer_fields(p, &a)) {
		finish_failed(p, HTTP_PROXY_RESPONSE);
		return STEP_GONE;
	}
	body_begin(p, &a);
	return STEP_AGAIN;
}

/* What has been read goes on. False: there is no proxy any more. */
static bool answer_use(struct proxy *p)
{
	while (!p->has_head) {
		enum step step = head_step(p);

		if (step != STEP_AGAIN) {
			return step == STEP_MORE;
		}
	}
	if (!p->is_over && proxy_answer_body(p) < 0) {
		finish_failed(p, HTTP_PROXY_RESPONSE);
		return false;
	}
	if (p->is_over) {
		finish(p);
		return false;
	}
	return true;
}

static bool may_read(const struct proxy *p)
{
	return !p->has_head || http_pending(p->rq) < PENDING_MAX;
}

/* Read once. False: there is no proxy any more. */
static bool answer_read(struct proxy *p)
{
	if (p->in_at > 0) {
		memmove(p->in, p->in + p->in_at, p->in_n - p->in_at);
		p->in_n -= TAKE(p->in_at, 0);
	}
	/* A head that long has been refused before. */
	assert(p->in_n < PROXY_IN_BYTES);
	ssize_t n = recv(p->fd, p->in + p->in_n, PROXY_IN_BYTES - p->in_n, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		return true;
	}
	if (n == 0 && p->has_head && p->body == PROXY_BODY_CLOSE) {
		finish(p);
		return false;
	}
	if (n <= 0) {
		finish_failed(p, HTTP_PROXY_RESPONSE);
		return false;
	}
	p->progress_ms = clock_boot_ms();
	p->in_n += (size_t)n;
	return answer_use(p);
}

static void on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct proxy *p = container_of(src, struct proxy, src);

	(void)loop;
	if (may_read(p) && (events & (EPOLLIN | EPOLLERR | EPOLLHUP)) && !answer_read(p)) {
		return;
	}
	go_on(p);
}

/* Send what can be sent, and wait for what is missing. */
static void go_on(struct proxy *p)
{
	request_send(p);
	uint32_t events = (may_read(p) ? EPOLLIN : 0U) |
			  (out_waiting(p) > 0 && !p->is_refused ? EPOLLOUT : 0U);

	if (events == 0) {
		loop_pause(p->loop, &p->src);
		return;
	}
	if (loop_change(p->loop, &p->src, events) < 0) {
		finish_failed(p, HTTP_PROXY_RESPONSE);
		return;
	}
	loop_resume(p->loop, &p->src);
}

static void request_on_news(struct http_req *rq)
{
	go_on(rq->ctx);
}

static void request_on_close(struct http_req *rq)
{
	end(rq->ctx);
}

static void timer_on_time(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct proxy *p = container_of(src, struct proxy, timer);
	int64_t end_ms = p->progress_ms + p->timeout_ms;

	(void)events;
	if (clock_boot_ms() >= end_ms) {
		finish_failed(p, HTTP_PROXY_TIMEOUT);
		return;
	}
	loop_timer(loop, &p->timer, end_ms, timer_on_time);
}

void http_proxy_start(
		struct http_req *rq, struct loop *loop, int fd, const struct http_proxy_opts *opts)
{
	struct proxy *p = mem_new(struct proxy);

	assert(opts->fail && opts->host && opts->target.n > 0 && opts->target.p[0] == '/');
	*p = (struct proxy){
		.rq = rq,
		.loop = loop,
		.fd = fd,
		.drop_response = opts->drop_response,
		.add_response = mem_strdup(opts->add_response),
		.location_prefix = mem_strdup(opts->location_prefix),
		.host = mem_strdup(opts->host),
		.fail = opts->fail,
		.on_end = opts->on_end,
		.ctx = rq->ctx,
		.timeout_ms = opts->timeout_ms ? opts->timeout_ms : TIMEOUT_MS_DEFAULT,
		.progress_ms = clock_boot_ms(),
		.out = BUF_INIT(REQUEST_HEAD_MAX + 2 * PROXY_OUT_BYTES),
		.trailers = BUF_INIT(PARSE_TRAILER_MAX + 1024),
		.in = mem_array(1, PROXY_IN_BYTES),
	};
	proxy_request_build(p, opts);
	rq->ctx = p;
	rq->on_close = request_on_close;
	rq->on_drain = request_on_news;
	rq->on_body = request_on_news;
	if (loop_add(loop, &p->src, fd, EPOLLIN, on_ready) < 0) {
		finish_failed(p, HTTP_PROXY_RESPONSE);
		return;
	}
	loop_timer(loop, &p->timer, p->progress_ms + p->timeout_ms, timer_on_time);
	go_on(p);
}
