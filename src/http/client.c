/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   HEAD ──┬── 1xx ──▶ HEAD
 *          ├── 101 ──▶ end(0), the connection is the owner's
 *          └── else ──▶ BODY ── its end ──▶ end(0)
 *
 * The request is sent while the answer is already read: a peer may refuse early. An owner may
 * cancel in any of its calls: depth counts those that are still to return, the last one frees.
 */
#include <assert.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/http_client.h>
#include <osbx/mem.h>

#include "parse.h"
#include "proxy_head.h"

#define BODY_MAX_DEFAULT (1U << 20)
#define READ_BYTES       (64U << 10)
#define IN_MAX           (PARSE_HEAD_MAX + READ_BYTES)
#define INTERIM_MAX      8

enum call_framing {
	CALL_LENGTH,
	CALL_CHUNKED,
	CALL_TO_CLOSE,
};

struct http_call {
	struct loop *loop;
	struct http_call_opts opts;
	int fd;
	struct loop_source io;
	struct loop_source silence;
	struct buf out; /* from out_at on to be sent */
	size_t out_at;
	struct buf in;
	struct parse_scan scan;
	struct buf head; /* that parts points into */
	struct proxy_answer parts;
	char *upgrade;
	unsigned int interim_n;
	bool in_body;
	enum call_framing framing;
	uint64_t left; /* CALL_LENGTH */
	struct chunked chunked;
	struct buf body;
	bool is_dead;
	unsigned int depth;
};

static void detach(struct http_call *c)
{
	c->is_dead = true;
	loop_remove(c->loop, &c->io);
	loop_remove(c->loop, &c->silence);
	fd_close(&c->fd);
}

static void destroy(struct http_call *c)
{
	buf_done(&c->out);
	buf_done(&c->in);
	buf_done(&c->head);
	buf_done(&c->body);
	free(c->upgrade);
	free(c);
}

static void leave(struct http_call *c)
{
	if (--c->depth == 0 && c->is_dead) {
		destroy(c);
	}
}

void http_call_cancel(struct http_call *c)
{
	if (c && !c->is_dead) {
		detach(c);
		if (c->depth == 0) {
			destroy(c);
		}
	}
}

static void end(struct http_call *c, int r)
{
	struct http_answer a = {
		.status = c->in_body ? c->parts.status : 0,
		.body = buf_span(&c->body),
		.parts = &c->parts,
		.fd = -1,
	};

	if (!c->is_dead) {
		detach(c);
		c->opts.on_end(c->opts.ctx, r, &a);
	}
}

static void end_upgraded(struct http_call *c)
{
	struct http_answer a = {
		.status = c->parts.status,
		.body = span_of(""),
		.parts = &c->parts,
		.rest = buf_span(&c->in),
	};

	loop_remove(c->loop, &c->io);
	a.fd = TAKE_FD(c->fd);
	detach(c);
	c->opts.on_end(c->opts.ctx, 0, &a);
}

struct span http_answer_field(const struct http_answer *a, const char *name)
{
	const struct proxy_answer *parts = a->parts;

	return proxy_field(parts->fields, parts->fields_n, name);
}

static void data_give(struct http_call *c, struct span data)
{
	if (data.n == 0) {
		return;
	}
	if (c->opts.on_data) {
		c->opts.on_data(c->opts.ctx, c->parts.status, data);
	} else if (buf_append(&c->body, data.p, data.n) < 0) {
		end(c, -EMSGSIZE);
	}
}

static void body_chunked(struct http_call *c, struct span *in)
{
	while (!c->is_dead) {
		ssize_t n = chunked_step(&c->chunked, *in);

		if (n < 0) {
			end(c, -EBADMSG);
			return;
		}
		*in = span_from(*in, (size_t)n);
		if (c->chunked.state == CHUNKED_DONE) {
			end(c, 0);
			return;
		}
		if (c->chunked.state != CHUNKED_DATA || in->n == 0) {
			return;
		}
		size_t data_n = in->n < c->chunked.left ? in->n : (size_t)c->chunked.left;

		chunked_take(&c->chunked, data_n);
		data_give(c, (struct span){ .p = in->p, .n = data_n });
		*in = span_from(*in, data_n);
	}
}

/* All that has come of the body. */
static void body_run(struct http_call *c)
{
	struct span in = buf_span(&c->in);

	if (c->framing == CALL_CHUNKED) {
		body_chunked(c, &in);
	} else if (c->framing == CALL_TO_CLOSE) {
		data_give(c, in);
	} else {
		size_t n = in.n < c->left ? in.n : (size_t)c->left;

		c->left -= n;
		data_give(c, (struct span){ .p = in.p, .n = n });
		if (c->left == 0) {
			end(c, 0);
		}
	}
	if (!c->is_dead) {
		/* Of framing nothing stays either: each byte of it is stepped over at once. */
		buf_reset(&c->in);
	}
}

/* A whole head is in c->head. */
static void head_take(struct http_call *c)
{
	struct proxy_answer *a = &c->parts;

	if (proxy_answer_parse(buf_span(&c->head), a) < 0) {
		end(c, -EBADMSG);
		return;
	}
	if (a->status == 101) {
		if (c->upgrade && parse_same_name(a->upgrade, c->upgrade)) {
			end_upgraded(c);
		} else {
			end(c, -EBADMSG);
		}
		return;
	}
	if (a->status < 200) {
		if (++c->interim_n > INTERIM_MAX) {
			end(c, -EBADMSG);
		}
		return;
	}
	bool has_none = a->status == 204 || a->status == 304;

	c->in_body = true;
	c->framing = has_none || a->has_length ? CALL_LENGTH
		     : a->is_chunked           ? CALL_CHUNKED
					       : CALL_TO_CLOSE;
	c->left = has_none ? 0 : a->length;
}

/* False: the head goes on. */
static bool head_run(struct http_call *c)
{
	struct parse_refusal refusal;
	int r = parse_scan(&c->scan, buf_span(&c->in), &refusal);

	if (r <= 0) {
		if (r < 0) {
			end(c, -EBADMSG);
		}
		return false;
	}
	buf_reset(&c->head);
	r = buf_append(&c->head, c->in.p, c->scan.at);
	assert(r == 0);
	buf_consume(&c->in, c->scan.at);
	c->scan = (struct parse_scan){ .at = 0 };
	head_take(c);
	return true;
}

static void in_run(struct http_call *c)
{
	while (!c->is_dead && !c->in_body && head_run(c)) {
	}
	if (!c->is_dead && c->in_body) {
		body_run(c);
	}
}

static void silence_on_time(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct http_call *c = container_of(src, struct http_call, silence);

	(void)loop;
	(void)events;
	c->depth++;
	end(c, -ETIMEDOUT);
	leave(c);
}

static void silence_arm(struct http_call *c)
{
	if (c->opts.silence_ms > 0) {
		loop_timer(c->loop, &c->silence, clock_boot_ms() + c->opts.silence_ms,
				silence_on_time);
	}
}

static void in_read(struct http_call *c)
{
	int r = buf_reserve(&c->in, READ_BYTES);

	assert(r == 0);
	(void)r;
	ssize_t n = recv(c->fd, c->in.p + c->in.n, READ_BYTES, MSG_DONTWAIT);

	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR) {
			end(c, -errno);
		}
		return;
	}
	if (n == 0) {
		end(c, c->in_body && c->framing == CALL_TO_CLOSE ? 0 : -ECONNRESET);
		return;
	}
	c->in.n += (size_t)n;
	silence_arm(c);
	in_run(c);
}

static void out_send(struct http_call *c)
{
	ssize_t n = send(c->fd, c->out.p + c->out_at, c->out.n - c->out_at,
			MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		return;
	}
	/* What the peer said before it closed is still to be read. */
	c->out_at = n < 0 ? c->out.n : c->out_at + (size_t)n;
	if (c->out_at < c->out.n) {
		silence_arm(c);
		return;
	}
	buf_done(&c->out);
	c->out_at = 0;
	int r = loop_change(c->loop, &c->io, EPOLLIN);

	if (r < 0) {
		end(c, r);
	}
}

static void on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct http_call *c = container_of(src, struct http_call, io);

	(void)loop;
	c->depth++;
	if (c->out.n > 0 && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))) {
		out_send(c);
	}
	if (!c->is_dead && (events & (EPOLLIN | EPOLLERR | EPOLLHUP))) {
		in_read(c);
	}
	leave(c);
}

static void request_put(struct buf *out, const struct http_call_opts *o)
{
	int r = buf_appendf(out, "%s %s HTTP/1.1\r\nHost: %s\r\n%s%s%s%s", o->method, o->target,
			o->host, o->upgrade ? "Connection: Upgrade\r\nUpgrade: " : "",
			o->upgrade ? o->upgrade : "Connection: close", "\r\n",
			o->fields ? o->fields : "");

	if (r == 0 && o->body.n > 0) {
		r = buf_appendf(out, "Content-Length: %zu\r\n", o->body.n);
	}
	if (r == 0) {
		r = buf_append_str(out, "\r\n");
	}
	if (r == 0) {
		r = buf_append(out, o->body.p, o->body.n);
	}
	/* Its maximum is that of a size_t. */
	assert(r == 0);
	(void)r;
}

struct http_call *http_call_start(struct loop *loop, int fd, const struct http_call_opts *opts)
{
	struct http_call *c = mem_new(struct http_call);

	assert(opts->on_end);
	*c = (struct http_call){
		.loop = loop,
		.opts = *opts,
		.fd = fd,
		.out = BUF_INIT(SIZE_MAX),
		.in = BUF_INIT(IN_MAX),
		.head = BUF_INIT(IN_MAX),
		.upgrade = mem_strdup(opts->upgrade),
		.body = BUF_INIT(opts->body_max ? opts->body_max : BODY_MAX_DEFAULT),
	};
	if (loop_add(loop, &c->io, fd, EPOLLIN | EPOLLOUT, on_ready) < 0) {
		http_call_cancel(c);
		return NULL;
	}
	request_put(&c->out, opts);
	silence_arm(c);
	return c;
}
