/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * Each stream is a source of the loop until its end. A round reads what is there, but not for ever:
 * a flood must not keep the loop from its other sources. The log is a file and never waits, so the
 * workload waits for us at most as long as a write takes.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/mem.h>

#include "logpump.h"

#define CHUNK_BYTES (16U << 10)
#define ROUNDS      8
/* Largest pipe of an ordinary user: what can be in it when its writers are gone. */
#define DRAIN_BYTES (1U << 20)

struct stream {
	struct loop_source src;
	int fd;
	enum log_stream name;
	struct logpump *pump;
};

struct logpump {
	struct logpump_opts opts;
	struct loop *loop;
	struct logfile log;
	struct stream streams[LOG_STREAM_COUNT];
	int child_fds[LOG_STREAM_COUNT];
	char chunk[CHUNK_BYTES];
};

static void stream_stop(struct stream *s)
{
	loop_remove(s->pump->loop, &s->src);
	fd_close(&s->fd);
}

static void check_done(struct logpump *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(p->streams); i++) {
		if (p->streams[i].fd >= 0) {
			return;
		}
	}
	p->opts.on_done(p->opts.ctx);
}

/* Read once. Bytes, 0 at the end (EIO is that of a pty), -EAGAIN. */
static ssize_t stream_read(struct stream *s)
{
	struct logpump *p = s->pump;
	ssize_t n = fd_read(s->fd, p->chunk, sizeof(p->chunk));

	if (n > 0) {
		logfile_add(&p->log, s->name, (struct span){ .p = p->chunk, .n = (size_t)n });
	}
	return n < 0 && n != -EAGAIN ? 0 : n;
}

static void stream_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct stream *s = container_of(src, struct stream, src);
	ssize_t n = 1;

	(void)loop;
	(void)events;
	for (int i = 0; i < ROUNDS && n > 0; i++) {
		n = stream_read(s);
	}
	if (n == 0) {
		stream_stop(s);
		check_done(s->pump);
	}
}

static int stream_start(struct stream *s, int fd)
{
	int r = fd_set_nonblock(fd, true);

	s->fd = fd;
	return r < 0 ? r : loop_add(s->pump->loop, &s->src, fd, EPOLLIN, stream_on_ready);
}

struct logpump *logpump_new(struct loop *loop, const struct logpump_opts *opts, int out_child[3],
		struct error *e)
{
	AUTO(logpump) struct logpump *p = mem_new(struct logpump);
	struct logfile log = LOGFILE_INIT;

	p->opts = *opts;
	p->loop = loop;
	p->log = log;
	for (size_t i = 0; i < ARRAY_SIZE(p->streams); i++) {
		p->streams[i] = (struct stream){ .fd = -1, .name = (enum log_stream)i, .pump = p };
		p->child_fds[i] = -1;
	}
	int r = logfile_start(&p->log, opts->dir_fd, LOG_FILE_BYTES);

	for (size_t i = 0; i < ARRAY_SIZE(p->streams) && r == 0 && !opts->tty; i++) {
		int fds[2];

		r = fd_pipe(fds, 0);
		if (r == 0) {
			p->streams[i].fd = fds[0];
			p->child_fds[i] = fds[1];
		}
	}
	if (r < 0) {
		(void)error_sys(e, -r, "make the log of the sandbox");
		return NULL;
	}
	out_child[0] = -1;
	out_child[1] = p->child_fds[LOG_STDOUT];
	out_child[2] = p->child_fds[LOG_STDERR];
	return TAKE_PTR(p);
}

static int pty_start(struct logpump *p, int pty_fd)
{
	unsigned int number = 0;

	p->streams[LOG_STDOUT].fd = pty_fd;
	/* Only a master has a number to ask for. */
	if (ioctl(pty_fd, TIOCGPTN, &number) < 0) {
		return -errno;
	}
	return stream_start(&p->streams[LOG_STDOUT], pty_fd);
}

static int pipes_start(struct logpump *p)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(p->streams); i++) {
		fd_close(&p->child_fds[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(p->streams) && r == 0; i++) {
		r = stream_start(&p->streams[i], p->streams[i].fd);
	}
	return r;
}

int logpump_child_started(struct logpump *p, int pty_fd, struct error *e)
{
	int r = p->opts.tty ? pty_start(p, pty_fd) : pipes_start(p);

	return r < 0 ? error_sys(e, -r, "connect the log of the sandbox") : 0;
}

void logpump_child_ended(struct logpump *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(p->streams); i++) {
		struct stream *s = &p->streams[i];
		size_t left = DRAIN_BYTES;
		ssize_t n = s->fd >= 0 ? 1 : 0;

		while (n > 0 && left > 0) {
			n = stream_read(s);
			left = n > 0 && (size_t)n < left ? left - (size_t)n : 0;
		}
		stream_stop(s);
	}
	check_done(p);
}

void logpump_free(struct logpump *p)
{
	if (!p) {
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(p->streams); i++) {
		stream_stop(&p->streams[i]);
		fd_close(&p->child_fds[i]);
	}
	logfile_done(&p->log);
	free(p);
}
