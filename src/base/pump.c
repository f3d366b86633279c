/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * Two sides, 0 (a) and 1 (b), and a lane out of each of them: lane[s] carries what side s sends to
 * the other one. What is on its way stands in a pipe of the lane, so that the bytes never come into
 * this process; only those that were read before the pump began are sent from memory, ahead of the
 * pipe.
 *
 *     side s ── splice ──▶ lane[s].pipe ── splice ──▶ side !s
 *
 * A lane is open, then ended (its source said so: nothing more will enter the pipe), then shut (the
 * pipe is empty, and the other side has been told by shutdown(2)). When both are shut all is over,
 * in order. Any error on either side is the end of both, by resets: a program that waits for bytes
 * must not take a cut for an end.
 *
 * What is waited for is computed anew after each step (wants): bytes of a side as long as its lane
 * has room, room of a side as long as something waits for it. A side for which there is nothing to
 * wait for leaves the loop, since the kernel reports EPOLLHUP of a side that is through without
 * being asked, over and over; but for one case: a side that has ended and may still be written to
 * by the other one. What is reported of it then says that it is lost: EPOLLERR a reset, EPOLLHUP
 * alone that its program has closed it both ways (Unix sockets tell that; TCP does not).
 *
 * What a lost side has sent is the other side's all the same: its lane is emptied first, however
 * long the other side takes, and nothing is read from that any more.
 *
 * EAGAIN of a splice into the pipe has two meanings, no bytes and no room (a pipe is full when its
 * slots are used, however small the pieces in them). With bytes in the pipe it is taken for the
 * second one: nothing is lost by draining it first.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/pump.h>

#define PIECE_BYTES 65536U
#define ROUNDS_MAX  16 /* pieces in one go: other flows of the loop wait meanwhile */

struct lane {
	char *first; /* read before the pump began: sent ahead of the pipe */
	size_t first_n;
	size_t first_at;
	int pipe[2]; /* reading end first; -1: no byte yet */
	size_t held; /* bytes in it */
	bool full;   /* until it is empty */
	bool ended;
	bool shut;
	uint64_t carried;
};

struct side {
	struct loop_source src;
	int fd;
};

struct pump {
	struct loop *loop;
	struct side side[2];
	struct lane lane[2];
	bool connected;
	int lost; /* a side, -1 for none */
	int lost_errnum;
	int64_t idle_ms;
	int64_t last_ms;
	struct loop_source idle;
	void (*on_end)(void *ctx, int errnum);
	void *ctx;
};

static void pump_free(struct pump *p)
{
	loop_remove(p->loop, &p->idle);
	for (int i = 0; i < 2; i++) {
		loop_remove(p->loop, &p->side[i].src);
		fd_close(&p->side[i].fd);
		fd_close(&p->lane[i].pipe[0]);
		fd_close(&p->lane[i].pipe[1]);
		free(p->lane[i].first);
	}
	free(p);
}

static void socket_reset(int fd)
{
	const struct linger now = { .l_onoff = 1 };

	/* Of a socket that is no TCP one it means nothing, and does no harm. */
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

void pump_cut(struct pump *p)
{
	socket_reset(p->side[0].fd);
	socket_reset(p->side[1].fd);
	pump_free(p);
}

static void end(struct pump *p, int errnum)
{
	void (*on_end)(void *, int) = p->on_end;
	void *ctx = p->ctx;

	if (errnum != 0) {
		pump_cut(p);
	} else {
		pump_free(p);
	}
	if (on_end) {
		on_end(ctx, errnum);
	}
}

/* Is something on its way to side s? */
static bool has_pending(const struct pump *p, int s)
{
	return p->lane[!s].held > 0 || p->lane[!s].first;
}

/* Bytes of side s into its lane. 1: some, 0: none for now, -errno. */
static int lane_fill(struct pump *p, int s)
{
	struct lane *l = &p->lane[s];

	if (l->ended || l->full) {
		return 0;
	}
	if (l->pipe[0] < 0) {
		int r = fd_pipe(l->pipe, O_NONBLOCK);

		if (r < 0) {
			return r;
		}
	}
	ssize_t n = splice(p->side[s].fd, NULL, l->pipe[1], NULL, PIECE_BYTES,
			SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR) {
			return -errno;
		}
		l->full = l->held > 0 && errno == EAGAIN;
		return 0;
	}
	l->ended = n == 0;
	l->held += (size_t)n;
	return 1;
}

/* 1: some, 0: no room, -errno. */
static int first_send(struct pump *p, int s)
{
	struct lane *l = &p->lane[s];
	ssize_t n = send(p->side[!s].fd, l->first + l->first_at, l->first_n - l->first_at,
			MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0) {
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	}
	l->first_at += (size_t)n;
	l->carried += (uint64_t)n;
	if (l->first_at == l->first_n) {
		free(TAKE_PTR(l->first));
	}
	return 1;
}

/* What side s has sent out of its lane to the other one. 1: some, 0: none or no room, -errno. */
static int lane_drain(struct pump *p, int s)
{
	struct lane *l = &p->lane[s];

	if (l->first) {
		return first_send(p, s);
	}
	if (l->held > 0) {
		ssize_t n = splice(l->pipe[0], NULL, p->side[!s].fd, NULL, l->held,
				SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

		if (n < 0) {
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		}
		l->held -= (size_t)n;
		l->carried += (uint64_t)n;
		l->full = l->full && l->held > 0;
		return n > 0;
	}
	if (l->ended && !l->shut) {
		l->shut = true;
		/* One that the peer has closed meanwhile says ENOTCONN: it knows already. */
		(void)shutdown(p->side[!s].fd, SHUT_WR);
	}
	return 0;
}

/* 0 or -errno. */
static int lane_run(struct pump *p, int s)
{
	int r = 1;

	for (int i = 0; i < ROUNDS_MAX && r > 0; i++) {
		int in = lane_fill(p, s);
		int out = lane_drain(p, s);

		r = in < 0 ? in : out < 0 ? out : in | out;
	}
	return r < 0 ? r : 0;
}

/* All that the lost side has sent, to the other one; what looks like an end of it now is none. 1:
 * it is there, 0: no room for the rest, -errno. */
static int lane_flush(struct pump *p, int s)
{
	struct lane *l = &p->lane[s];
	bool ended = l->ended;
	int in = 1;
	int out = 1;

	/* Nobody sends more: it is as long as the buffers of a socket. */
	while (in > 0 || out > 0) {
		in = lane_fill(p, s);
		if (l->ended != ended) {
			l->ended = ended;
			in = 0;
		}
		out = has_pending(p, !s) ? lane_drain(p, s) : 0;
		if (out < 0) {
			return out;
		}
	}
	return !has_pending(p, !s);
}

/* Does the loop watch side s, and for what? */
static bool wants(const struct pump *p, int s, uint32_t *out_events)
{
	const struct lane *from = &p->lane[s];
	const struct lane *to = &p->lane[!s];

	*out_events = 0;
	if (!p->connected) {
		*out_events = s == 1 ? EPOLLOUT : 0;
		return true;
	}
	if (p->lost >= 0) {
		*out_events = s != p->lost ? EPOLLOUT : 0;
		return s != p->lost;
	}
	if (!from->ended && !from->full) {
		*out_events |= EPOLLIN;
	}
	if (has_pending(p, s)) {
		*out_events |= EPOLLOUT;
	}
	return *out_events != 0 || (from->ended && !to->shut);
}

static int watch(struct pump *p)
{
	for (int s = 0; s < 2; s++) {
		uint32_t events = 0;
		bool wanted = wants(p, s, &events);
		int r = loop_change(p->loop, &p->side[s].src, events);

		if (r < 0) {
			return r;
		}
		if (wanted) {
			loop_resume(p->loop, &p->side[s].src);
		} else {
			loop_pause(p->loop, &p->side[s].src);
		}
	}
	return 0;
}

static int socket_error(int fd)
{
	int err = 0;
	socklen_t n = sizeof(err);

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &n) < 0 ? errno : err;
}

/* Does an event of side s tell that it is lost? */
static bool is_lost(const struct pump *p, int s, uint32_t events, int *out_errnum)
{
	if (events & EPOLLERR) {
		int err = socket_error(p->side[s].fd);

		*out_errnum = err != 0 ? err : ECONNRESET;
		return true;
	}
	*out_errnum = 0;
	return (events & EPOLLHUP) && (p->lane[s].ended || p->lost >= 0) && !p->lane[!s].shut;
}

/* 1: all is over, 0: not yet, -errno. */
static int step_lanes(struct pump *p)
{
	if (p->lost >= 0) {
		return lane_flush(p, p->lost);
	}
	int r = lane_run(p, 0);

	r = r < 0 ? r : lane_run(p, 1);
	return r < 0 ? r : p->lane[0].shut && p->lane[1].shut;
}

static void step(struct pump *p)
{
	p->last_ms = clock_boot_ms();
	int r = step_lanes(p);

	if (r > 0) {
		end(p, p->lost_errnum);
		return;
	}
	r = r < 0 ? r : watch(p);
	if (r < 0) {
		end(p, -r);
	}
}

static void side_event(struct pump *p, int s, uint32_t events)
{
	int err = 0;
	bool lost = is_lost(p, s, events, &err);

	if (!p->connected && (lost || s == 0)) {
		end(p, err != 0 ? err : ECONNRESET); /* nothing else is reported of a now */
		return;
	}
	if (lost && p->lost >= 0) {
		end(p, err);
		return;
	}
	p->connected = true;
	if (lost) {
		p->lost = s;
		p->lost_errnum = err;
	}
	step(p);
}

static void a_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)loop;
	side_event(container_of(src, struct pump, side[0].src), 0, events);
}

static void b_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)loop;
	side_event(container_of(src, struct pump, side[1].src), 1, events);
}

static void idle_due(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct pump *p = container_of(src, struct pump, idle);
	int64_t due_ms = p->last_ms + p->idle_ms;

	(void)events;
	if (clock_boot_ms() < due_ms) {
		loop_timer(loop, src, due_ms, idle_due);
	} else {
		end(p, ETIMEDOUT);
	}
}

static void lane_init(struct lane *l, struct span first)
{
	l->pipe[0] = l->pipe[1] = -1;
	l->first = first.n > 0 ? mem_dup(first.p, first.n) : NULL;
	l->first_n = first.n;
}

struct pump *pump_new(struct loop *loop, const struct pump_opts *opts)
{
	assert(opts->a_fd >= 0 && opts->b_fd >= 0);
	struct pump *p = mem_new(struct pump);

	p->loop = loop;
	p->connected = opts->connected;
	p->lost = -1;
	p->idle_ms = opts->idle_ms;
	p->last_ms = clock_boot_ms();
	p->on_end = opts->on_end;
	p->ctx = opts->ctx;
	p->side[0].fd = opts->a_fd;
	p->side[1].fd = opts->b_fd;
	lane_init(&p->lane[0], opts->a_first);
	lane_init(&p->lane[1], opts->b_first);
	/* Of sockets, splice(2) looks at their own flag alone. */
	int r = fd_set_nonblock(opts->a_fd, true);

	r = r < 0 ? r : fd_set_nonblock(opts->b_fd, true);
	r = r < 0 ? r : loop_add(loop, &p->side[0].src, opts->a_fd, 0, a_ready);
	r = r < 0 ? r : loop_add(loop, &p->side[1].src, opts->b_fd, 0, b_ready);
	r = r < 0 ? r : watch(p);
	if (r < 0) {
		pump_cut(p);
		errno = -r;
		return NULL;
	}
	if (p->idle_ms > 0) {
		loop_timer(loop, &p->idle, p->last_ms + p->idle_ms, idle_due);
	}
	return p;
}

uint64_t pump_sent(const struct pump *p)
{
	return p->lane[0].carried;
}

uint64_t pump_received(const struct pump *p)
{
	return p->lane[1].carried;
}
