/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include <osbx/clock.h>

#include "http_internal.h"

/* Memory that an empty buffer may keep. */
#define KEEP_BYTES (64U << 10)

ssize_t conn_read(struct conn *c, size_t max)
{
	if (c->in_at > 0) {
		buf_consume(&c->in, c->in_at);
		c->in_at = 0;
	}
	if (buf_reserve(&c->in, max - 1) < 0) {
		return -EMSGSIZE;
	}
	/* A head, and the end of a connection, have one limit for all of their bytes. */
	bool is_timed = c->state != CONN_LINGER && (c->state != CONN_HEAD || c->in.n == 0);

	for (;;) {
		ssize_t n = recv(c->fd, c->in.p + c->in.n, max - 1, MSG_DONTWAIT);

		if (n > 0) {
			c->in.n += (size_t)n;
			c->in.p[c->in.n] = '\0';
			c->since_ms = is_timed ? clock_boot_ms() : c->since_ms;
		} else if (n == 0) {
			c->eof = true;
		} else if (errno == EINTR) {
			continue;
		} else {
			return -errno;
		}
		return n;
	}
}

void conn_consume(struct conn *c, size_t n)
{
	assert(n <= c->in.n - c->in_at);
	c->in_at += n;
	if (c->in_at == c->in.n) {
		c->in_at = 0;
		buf_reset(&c->in);
	}
}

void conn_queue(struct conn *c, struct span bytes)
{
	if (c->is_broken) {
		return;
	}
	if (c->out_at > 0 && c->out_at >= c->out.n / 2) {
		buf_consume(&c->out, c->out_at);
		c->out_at = 0;
	}
	if (buf_append(&c->out, bytes.p, bytes.n) < 0) {
		c->is_broken = true;
	}
}

int conn_wait(const struct conn *c, short events)
{
	struct pollfd p = { .fd = c->fd, .events = events };
	int64_t end_ms = clock_boot_ms() + c->server->opts.body_ms;

	for (;;) {
		int64_t left_ms = end_ms - clock_boot_ms();
		int n = poll(&p, 1, left_ms < 0 ? 0 : (int)left_ms);

		if (n > 0) {
			return 0;
		}
		if (n == 0) {
			return -ETIMEDOUT;
		}
		if (errno != EINTR) {
			return -errno;
		}
	}
}

/* Drop what is sent from out and from v. */
static void sent(struct conn *c, struct iovec *v, int n, size_t bytes)
{
	size_t own = conn_pending(c) < bytes ? conn_pending(c) : bytes;

	c->out_at += own;
	bytes -= own;
	for (int i = 0; i < n && bytes > 0; i++) {
		size_t part = v[i].iov_len < bytes ? v[i].iov_len : bytes;

		v[i].iov_base = (char *)v[i].iov_base + part;
		v[i].iov_len -= part;
		bytes -= part;
	}
	if (c->out_at == c->out.n) {
		c->out_at = 0;
		if (c->out.cap > KEEP_BYTES) {
			buf_done(&c->out);
		} else {
			buf_reset(&c->out);
		}
	}
}

static size_t total(const struct iovec *v, int n)
{
	size_t sum = 0;

	for (int i = 0; i < n; i++) {
		sum += v[i].iov_len;
	}
	return sum;
}

/* In one go; where a filter allows no call that could name an address (policy/netd_confine.c), the
 * first piece. */
static ssize_t send_pieces(int fd, struct iovec *v, int n)
{
	const struct msghdr m = { .msg_iov = v, .msg_iovlen = (size_t)n };
	ssize_t r = n > 1 ? sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) : -1;

	return n == 1 || (r < 0 && errno == EPERM)
			       ? send(fd, v->iov_base, v->iov_len, MSG_DONTWAIT | MSG_NOSIGNAL)
			       : r;
}

/* Of what waits and of v, by one call. Bytes, -EAGAIN, or -errno. */
static ssize_t send_once(struct conn *c, const struct iovec *v, int n)
{
	struct iovec all[8];
	int all_n = 0;

	assert(n < (int)ARRAY_SIZE(all));
	if (conn_pending(c) > 0) {
		all[all_n++] = (struct iovec){
			.iov_base = c->out.p + c->out_at,
			.iov_len = conn_pending(c),
		};
	}
	for (int i = 0; i < n; i++) {
		if (v[i].iov_len > 0) {
			all[all_n++] = v[i];
		}
	}

	for (;;) {
		ssize_t r = send_pieces(c->fd, all, all_n);

		if (r >= 0 || errno != EINTR) {
			return r < 0 ? -errno : r;
		}
	}
}

/* Send until nothing is left, the peer takes no more, or it is gone. */
static void send_all(struct conn *c, struct iovec *v, int n)
{
	while (conn_pending(c) > 0 || total(v, n) > 0) {
		ssize_t r = send_once(c, v, n);

		if (r >= 0) {
			sent(c, v, n, (size_t)r);
			c->since_ms = clock_boot_ms();
			continue;
		}
		if (r == -EAGAIN && !c->is_blocking) {
			c->is_blocked = true;
			return;
		}
		if (r != -EAGAIN || conn_wait(c, POLLOUT) < 0) {
			c->is_broken = true;
			return;
		}
	}
}

void conn_send(struct conn *c, struct iovec *v, int n)
{
	if (c->is_broken) {
		return;
	}
	if (!c->is_blocked) {
		send_all(c, v, n);
	}
	for (int i = 0; i < n; i++) {
		conn_queue(c, (struct span){ .p = v[i].iov_base, .n = v[i].iov_len });
	}
	if (c->is_broken) {
		buf_done(&c->out);
		c->out_at = 0;
	}
	c->is_stalled |= conn_pending(c) > 0;
}

void conn_flush(struct conn *c)
{
	c->is_blocked = false;
	conn_send(c, NULL, 0);
}
