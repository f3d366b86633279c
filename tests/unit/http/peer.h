/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer - the other ends of connections of a loop under test, in the same process: the loop runs in
 * short steps, and between them what the peers were sent is collected.
 */
#ifndef OSBX_TESTS_UNIT_HTTP_PEER_H
#define OSBX_TESTS_UNIT_HTTP_PEER_H

#include <errno.h>
#include <sys/socket.h>

#include <osbx/buf.h>
#include <osbx/clock.h>
#include <osbx/loop.h>

#include "../unit.h"

#define PEER_MAX     (64U << 20)
#define PEER_WAIT_MS 20000

struct peer {
	int fd;
	struct buf got;
	bool is_reading; /* off: what comes stays in the socket */
	bool eof;
};

static struct loop *peer_loop;
static struct peer *peers[8];

/* A connected pair: ours becomes peer number i, the other's descriptor is returned. */
static inline int peer_open(struct peer *p, size_t i)
{
	int fds[2];

	ck_assert_int_eq(
			socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
	*p = (struct peer){ .fd = fds[0], .got = BUF_INIT(PEER_MAX), .is_reading = true };
	peers[i] = p;
	return fds[1];
}

static inline void peer_hang_up(struct peer *p)
{
	if (p->fd >= 0) {
		close(p->fd);
	}
	p->fd = -1;
}

/* No effect on one that was never opened. */
static inline void peer_done(struct peer *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(peers); i++) {
		if (peers[i] == p) {
			peer_hang_up(p);
			buf_done(&p->got);
			peers[i] = NULL;
		}
	}
}
AUTO_DEFINE(peer, struct peer, peer_done);

static inline void peer_read(struct peer *p)
{
	while (p->fd >= 0 && p->is_reading && !p->eof) {
		ck_assert_int_eq(buf_reserve(&p->got, 65536), 0);
		ssize_t n = recv(p->fd, p->got.p + p->got.n, 65536, MSG_DONTWAIT);

		if (n < 0) {
			ck_assert_msg(errno == EAGAIN || errno == ECONNRESET, "%d", errno);
			p->eof = errno == ECONNRESET;
			break;
		}
		p->eof = n == 0;
		p->got.n += (size_t)n;
		p->got.p[p->got.n] = '\0';
	}
}

static inline void peer_stop_on_time(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)src;
	(void)events;
	loop_stop(loop, 0);
}

/* Let the loop do what it can do, at most for a moment. */
static inline void peer_step(void)
{
	struct loop_source stop = { .kind = LOOP_SOURCE_NONE };

	loop_timer(peer_loop, &stop, clock_boot_ms() + 1, peer_stop_on_time);
	ck_assert_int_eq(loop_run(peer_loop), 0);
	loop_remove(peer_loop, &stop);
	for (size_t i = 0; i < ARRAY_SIZE(peers); i++) {
		if (peers[i]) {
			peer_read(peers[i]);
		}
	}
}

/* Go on until it holds. */
#define PEER_UNTIL(condition)                                                       \
	do {                                                                        \
		int64_t end_ms_ = clock_boot_ms() + PEER_WAIT_MS;                   \
		while (!(condition)) {                                              \
			ck_assert_msg(clock_boot_ms() < end_ms_, "%s", #condition); \
			peer_step();                                                \
		}                                                                   \
	} while (0)

/* Send all, whatever the loop must do for it. */
static inline void peer_send(struct peer *p, const void *bytes, size_t n)
{
	const char *at = bytes;

	while (n > 0) {
		ssize_t sent = send(p->fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0) {
			ck_assert_msg(errno == EAGAIN, "%d", errno);
			peer_step();
			continue;
		}
		at += sent;
		n -= (size_t)sent;
	}
}

static inline void peer_say(struct peer *p, const char *text)
{
	peer_send(p, text, strlen(text));
}

static inline bool peer_has(const struct peer *p, const char *text)
{
	return p->got.p && memmem(p->got.p, p->got.n, text, strlen(text));
}

#endif
