/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * Two sides; what one sends waits in the other's out. A side is read while the other's out has
 * room. Its end is passed on by shutdown when all that came before has been sent, so each
 * direction closes for itself; when both have, or one side is lost, the tunnel ends.
 */
#include <assert.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <osbx/fd.h>
#include <osbx/mem.h>

#include "proxy_internal.h"

#define TUNNEL_BYTES (64U << 10)

struct tunnel;

struct side {
	struct tunnel *tunnel;
	struct side *other;
	struct loop_source src;
	int fd;
	struct buf out; /* from out_at on to be sent to fd */
	size_t out_at;
	bool is_over; /* it sends no more */
	bool is_shut; /* nor do we to it */
};

struct tunnel {
	struct loop *loop;
	struct side sides[2];
	void (*on_end)(void *ctx);
	void *ctx;
};

static void tunnel_end(struct tunnel *t)
{
	void (*on_end)(void *ctx) = t->on_end;
	void *ctx = t->ctx;

	for (size_t i = 0; i < ARRAY_SIZE(t->sides); i++) {
		loop_remove(t->loop, &t->sides[i].src);
		fd_close(&t->sides[i].fd);
		buf_done(&t->sides[i].out);
	}
	free(t);
	if (on_end) {
		on_end(ctx);
	}
}

static size_t waiting(const struct side *s)
{
	return s->out.n - s->out_at;
}

/* Send what waits. 0 or -errno. */
static int side_flush(struct side *s)
{
	while (waiting(s) > 0) {
		ssize_t n = send(s->fd, s->out.p + s->out_at, waiting(s),
				MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0) {
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		}
		s->out_at += (size_t)n;
	}
	/* Idle tunnels are many. */
	buf_done(&s->out);
	s->out_at = 0;
	if (s->other->is_over && !s->is_shut) {
		s->is_shut = true;
		(void)shutdown(s->fd, SHUT_WR);
	}
	return 0;
}

/* Read once what the other side has room for. 0 or -errno. */
static int side_read(struct side *s)
{
	struct buf *to = &s->other->out;

	buf_consume(to, TAKE(s->other->out_at, 0));
	int r = buf_reserve(to, TUNNEL_BYTES - to->n);

	assert(r == 0);
	(void)r;
	ssize_t n = recv(s->fd, to->p + to->n, TUNNEL_BYTES - to->n, MSG_DONTWAIT);

	if (n < 0) {
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	}
	s->is_over = n == 0;
	to->n += (size_t)n;
	return side_flush(s->other);
}

static bool side_may_read(const struct side *s)
{
	return !s->is_over && waiting(s->other) < TUNNEL_BYTES;
}

static int side_watch(struct side *s)
{
	uint32_t events = (side_may_read(s) ? EPOLLIN : 0U) | (waiting(s) > 0 ? EPOLLOUT : 0U);

	if (events == 0) {
		loop_pause(s->tunnel->loop, &s->src);
		return 0;
	}
	int r = loop_change(s->tunnel->loop, &s->src, events);

	loop_resume(s->tunnel->loop, &s->src);
	return r;
}

static void tunnel_go_on(struct tunnel *t, int r)
{
	struct side *s = t->sides;

	if (r == 0) {
		r = side_watch(&s[0]);
	}
	if (r == 0) {
		r = side_watch(&s[1]);
	}
	if (r < 0 || (s[0].is_shut && s[1].is_shut)) {
		tunnel_end(t);
	}
}

static void on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct side *s = container_of(src, struct side, src);
	int r = 0;

	(void)loop;
	if (waiting(s) > 0 && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))) {
		r = side_flush(s);
	}
	if (r == 0 && side_may_read(s) && (events & (EPOLLIN | EPOLLERR | EPOLLHUP))) {
		r = side_read(s);
	}
	tunnel_go_on(s->tunnel, r);
}

void proxy_tunnel_start(struct loop *loop, struct tunnel_side sides[2], void (*on_end)(void *ctx),
		void *ctx)
{
	struct tunnel *t = mem_new(struct tunnel);
	int r = 0;

	*t = (struct tunnel){ .loop = loop, .on_end = on_end, .ctx = ctx };
	for (size_t i = 0; i < ARRAY_SIZE(t->sides); i++) {
		struct side *s = &t->sides[i];

		s->tunnel = t;
		s->other = &t->sides[1 - i];
		s->fd = TAKE_FD(sides[i].fd);
		s->out = sides[i].first;
		sides[i].first = (struct buf)BUF_INIT(0);
		/* What was read too far may be more than a tunnel's own. */
		s->out.max = s->out.n > TUNNEL_BYTES ? s->out.n : TUNNEL_BYTES;
		int added = loop_add(loop, &s->src, s->fd, EPOLLIN, on_ready);

		r = r < 0 ? r : added;
	}
	for (size_t i = 0; i < ARRAY_SIZE(t->sides) && r == 0; i++) {
		r = side_flush(&t->sides[i]);
	}
	tunnel_go_on(t, r);
}
