/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * A flow waits either for its source or for its target, never for both: whoever was not ready in
 * the last round is watched. So a slow reader outside leaves the workload's pipe full, and the
 * workload waits, not the loop.
 *
 * From a pipe to a pipe or file, bytes move by splice(2) and are never seen here. All else goes
 * through a buffer: terminals and sockets; a caller's input file, too, because pages of the
 * caller's page cache have no place in a pipe of the guest (CVE-2022-0847).
 *
 * The caller's descriptors are shared with others, so O_NONBLOCK is not set on them. Pipes and
 * terminals are opened anew (fd_reopen_nonblock), splice has a flag of its own for pipes, sockets
 * have MSG_DONTWAIT; where nothing helps (another user's terminal behind su), poll is asked before
 * each read or small write.
 *
 * What an end is, is found out with the first byte: many commands write nothing.
 *
 * SIGPIPE must be blocked or ignored in the process: a reader that went away is an errno here.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/mem.h>

#include "console_flow.h"

#define CHUNK_BYTES  (64U << 10)
#define SPLICE_BYTES (1U << 20)
/* A pipe that is writable takes this much at once (pipe(7)), a terminal nearly so. */
#define ASKED_BYTES 512U
/* Largest pipe of an ordinary user: what can be in it when its writers are gone. */
#define DRAIN_BYTES (1U << 20)
#define ROUNDS      16

enum flow_step {
	FLOW_MOVED,
	FLOW_WAIT_FROM,
	FLOW_WAIT_TO,
	FLOW_END,
};

static void flow_run(struct flow *f);

static void end_close(struct loop *loop, struct flow_end *end)
{
	loop_remove(loop, &end->src);
	if (end->owned) {
		fd_close(&end->fd);
	}
	end->fd = -1;
}

void flow_stop(struct flow *f)
{
	if (f->running) {
		f->running = false;
		end_close(f->loop, &f->from);
		end_close(f->loop, &f->to);
		free(TAKE_PTR(f->bytes));
	}
}

static void flow_finish(struct flow *f)
{
	flow_stop(f);
	if (f->on_end) {
		f->on_end(f->ctx);
	}
}

static void from_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct flow *f = container_of(src, struct flow, from.src);

	(void)loop;
	if (f->lazy && !f->prepared && !(events & EPOLLIN)) {
		flow_finish(f);
		return;
	}
	flow_run(f);
}

static void to_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)loop;
	(void)events;
	flow_run(container_of(src, struct flow, to.src));
}

/* Watch one end and not the other. 0, -EPERM (it cannot be watched) or -errno. */
static int watch(struct flow *f, struct flow_end *end)
{
	bool is_from = end == &f->from;
	struct flow_end *other = is_from ? &f->to : &f->from;

	if (end->is_ready) {
		return -EPERM;
	}
	if (end->src.kind == LOOP_SOURCE_FD) {
		loop_resume(f->loop, &end->src);
	} else {
		int r = loop_add(f->loop, &end->src, end->fd, is_from ? EPOLLIN : EPOLLOUT,
				is_from ? from_on_ready : to_on_ready);

		if (r < 0) {
			end->is_ready = r == -EPERM;
			return r;
		}
	}
	if (other->src.kind == LOOP_SOURCE_FD) {
		loop_pause(f->loop, &other->src);
	}
	return 0;
}

/* The same, but where an end cannot be watched because it never waits, the other one sets the
 * pace. */
static int watch_either(struct flow *f, struct flow_end *end)
{
	int r = watch(f, end);

	return r == -EPERM ? watch(f, end == &f->from ? &f->to : &f->from) : r;
}

static int prepare_own(struct flow_end *end)
{
	struct stat st;

	if (fstat(end->fd, &st) < 0) {
		return -errno;
	}
	end->can_splice = S_ISFIFO(st.st_mode);
	return fd_set_nonblock(end->fd, true);
}

static int prepare_foreign(struct flow_end *end, int access_mode)
{
	struct stat st;

	if (fstat(end->fd, &st) < 0) {
		return -errno;
	}
	bool is_pipe = S_ISFIFO(st.st_mode);

	end->is_socket = S_ISSOCK(st.st_mode);
	end->is_ready = !is_pipe && !S_ISCHR(st.st_mode) && !end->is_socket;
	end->can_splice = is_pipe || (end->is_ready && access_mode == O_WRONLY);
	if (end->is_ready || end->is_socket) {
		return 0;
	}
	int fd = fd_reopen_nonblock(end->fd, access_mode);

	end->is_asked = fd < 0;
	if (fd >= 0) {
		end->fd = fd;
		end->owned = true;
	}
	return 0;
}

static int flow_prepare(struct flow *f)
{
	/* No end that is opened anew is being watched by its old number. */
	assert(!f->from.foreign || f->from.src.kind == LOOP_SOURCE_NONE);
	assert(f->to.src.kind == LOOP_SOURCE_NONE);

	int r = f->from.foreign ? prepare_foreign(&f->from, O_RDONLY) : prepare_own(&f->from);

	if (r == 0) {
		r = f->to.foreign ? prepare_foreign(&f->to, O_WRONLY) : prepare_own(&f->to);
	}
	f->splice = f->from.can_splice && f->to.can_splice;
	f->prepared = true;
	return r;
}

/* What of events holds now; errors and hang-ups, too. */
static int poll_now(int fd, int events)
{
	struct pollfd p = { .fd = fd, .events = (short)events };

	return poll(&p, 1, 0) > 0 ? p.revents : 0;
}

static bool is_polled(int fd, int events)
{
	return poll_now(fd, events) != 0;
}

/* An errno of one end. Only the caller's is worth telling; EPIPE and EIO are how a reader or a
 * terminal goes away. */
static enum flow_step end_failed(struct flow *f, const struct flow_end *end, int sysno)
{
	if (end->foreign && sysno != EPIPE && sysno != EIO && sysno != ECONNRESET) {
		f->failure = -sysno;
	}
	return FLOW_END;
}

static enum flow_step from_is_empty(const struct flow *f)
{
	return f->draining ? FLOW_END : FLOW_WAIT_FROM;
}

static void count_drained(struct flow *f, size_t n)
{
	f->drain_left = n < f->drain_left ? f->drain_left - n : 0;
	f->ended |= f->draining && f->drain_left == 0;
}

static enum flow_step step_splice(struct flow *f)
{
	ssize_t n = splice(f->from.fd, NULL, f->to.fd, NULL, SPLICE_BYTES,
			SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

	if (n > 0) {
		count_drained(f, (size_t)n);
		return FLOW_MOVED;
	}
	if (n == 0) {
		return FLOW_END;
	}
	switch (errno) {
	case EINTR:
		return FLOW_MOVED;
	case EAGAIN:
		return is_polled(f->from.fd, POLLIN) ? FLOW_WAIT_TO : from_is_empty(f);
	case EINVAL:
	case ENOSYS:
	case EPERM:
	case EBADF:
		/* O_APPEND, a file system without it, an outer filter. */
		f->splice = false;
		return FLOW_MOVED;
	default:
		return end_failed(f, &f->to, errno);
	}
}

static ssize_t end_read(const struct flow_end *end, void *p, size_t n)
{
	if (end->is_asked && !is_polled(end->fd, POLLIN)) {
		return -EAGAIN;
	}
	if (end->is_socket) {
		ssize_t r = recv(end->fd, p, n, MSG_DONTWAIT);

		return r < 0 ? -errno : r;
	}
	return fd_read(end->fd, p, n);
}

static ssize_t end_write(const struct flow_end *end, const void *p, size_t n)
{
	ssize_t r = 0;

	if (end->is_asked) {
		if (!is_polled(end->fd, POLLOUT)) {
			return -EAGAIN;
		}
		n = n < ASKED_BYTES ? n : ASKED_BYTES;
	}
	do {
		r = end->is_socket ? send(end->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL)
				   : write(end->fd, p, n);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

static enum flow_step step_read(struct flow *f)
{
	if (!f->bytes) {
		f->bytes = mem_array(CHUNK_BYTES, 1);
	}
	ssize_t n = end_read(&f->from, f->bytes, CHUNK_BYTES);

	if (n == -EAGAIN) {
		return from_is_empty(f);
	}
	if (n <= 0) {
		if (n < 0) {
			(void)end_failed(f, &f->from, (int)-n);
		}
		f->ended = true;
		f->at = 0;
		f->n = f->on_eof ? f->on_eof(f->ctx, f->bytes, CHUNK_BYTES) : 0;
		return FLOW_MOVED;
	}
	count_drained(f, (size_t)n);
	f->at = 0;
	f->n = (size_t)n;
	return FLOW_MOVED;
}

static enum flow_step step_write(struct flow *f)
{
	ssize_t n = end_write(&f->to, f->bytes + f->at, f->n - f->at);

	if (n == -EAGAIN) {
		return FLOW_WAIT_TO;
	}
	if (n < 0) {
		return end_failed(f, &f->to, (int)-n);
	}
	f->at += (size_t)n;
	return FLOW_MOVED;
}

static enum flow_step flow_step(struct flow *f)
{
	if (f->at < f->n) {
		return step_write(f);
	}
	if (f->ended) {
		return FLOW_END;
	}
	return f->splice ? step_splice(f) : step_read(f);
}

static void flow_run(struct flow *f)
{
	enum flow_step step = FLOW_MOVED;
	int r = f->prepared ? 0 : flow_prepare(f);

	for (int i = 0; i < ROUNDS && r == 0 && step == FLOW_MOVED; i++) {
		step = flow_step(f);
	}
	if (r == 0 && step != FLOW_END) {
		/* After so many rounds the others have their turn. */
		bool wait_to = step == FLOW_WAIT_TO || (step == FLOW_MOVED && f->at < f->n);

		r = watch_either(f, wait_to ? &f->to : &f->from);
		if (r == 0) {
			return;
		}
	}
	if (r < 0) {
		f->failure = r;
	}
	flow_finish(f);
}

int flow_start(struct flow *f)
{
	int r = f->lazy ? 0 : flow_prepare(f);

	f->running = true;
	if (r == 0) {
		r = watch_either(f, &f->from);
	}
	if (r < 0) {
		flow_stop(f);
	}
	return r;
}

void flow_drain(struct flow *f)
{
	if (f->running && !f->draining) {
		f->draining = true;
		f->drain_left = DRAIN_BYTES;
		if (f->lazy && !f->prepared && !(poll_now(f->from.fd, POLLIN) & POLLIN)) {
			flow_finish(f);
		} else {
			flow_run(f);
		}
	}
}
