/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * Parent and worker share the socket, so only one of them may touch it: the parent takes it out of
 * its epoll set (CONN_FORKED) until the worker has ended. O_NONBLOCK belongs to the socket and so
 * to both: the worker waits by poll(2).
 *
 * The worker reports through a pipe: one byte before it begins to answer, and at its end what it
 * knows of the connection (struct report), with the bytes that it has read too far. What the parent
 * finds when the pipe ends therefore says how far a worker came that was killed.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/sys.h>

#include "http_internal.h"

#define DIRECT_MIN (16U << 10) /* smaller reads go through the buffer of the connection */
#define COPY_BYTES (64U << 10)
#define PROBE_MS   300

static const char begun_mark = 'b';

struct report {
	struct body body;
	bool must_close;
	bool is_cut; /* http_abort */
};

void worker_free(struct conn *c)
{
	struct worker *w = c->worker;

	if (!w) {
		return;
	}
	c->worker = NULL;
	c->server->workers_n--;
	loop_remove(c->server->loop, &w->src);
	fd_close(&w->fd);
	buf_done(&w->report);
	if (w->on_end) {
		w->on_end(w->ctx);
	}
	free(w);
}

/* The connection is ours again. */
static void take_back(struct conn *c, struct span report)
{
	struct report end;

	c->state = CONN_HANDLER;
	if (report.n == 0) {
		c->must_close = true;
		reply_error(&c->x->rq, 500, "the worker of this request has died");
		return;
	}
	/* The mark, then the report: what has died in between has answered half. */
	if (report.n < 1 + sizeof(end)) {
		conn_kill(c);
		return;
	}
	memcpy(&end, report.p + 1, sizeof(end));
	struct span rest = span_from(report, 1 + sizeof(end));

	c->x->body = end.body;
	c->must_close = end.must_close;
	if (end.is_cut || buf_append(&c->in, rest.p, rest.n) < 0) {
		conn_kill(c);
		return;
	}
	conn_ended(c);
}

static void on_report(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct worker *w = container_of(src, struct worker, src);
	struct conn *c = w->conn;
	ssize_t n = buf_reserve(&w->report, COPY_BYTES);

	(void)events;
	if (n == 0) {
		n = fd_read(w->fd, w->report.p + w->report.n, COPY_BYTES);
	}
	if (n == -EAGAIN) {
		return;
	}
	if (n > 0) {
		w->report.n += (size_t)n;
		return;
	}
	AUTO(buf) struct buf report = w->report;

	w->report = (struct buf)BUF_INIT(0);
	conn_enter(c);
	worker_free(c);
	loop_resume(loop, &c->io);
	take_back(c, buf_span(&report));
	conn_run(c);
	conn_leave(c);
}

void worker_begun(struct conn *c)
{
	/* A parent that is gone has killed us. */
	(void)!fd_write_all(c->report_fd, &begun_mark, 1);
}

static int compare_fds(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Other connections would stay open for their peers as long as we live, pipes for their readers. */
static void close_others(const struct conn *c, const struct http_fork_opts *opts)
{
	int keep[5 + HTTP_FORK_KEEP_MAX] = { 0, 1, 2, c->fd, c->report_fd };
	size_t n = 5;
	unsigned int next = 0;

	assert(opts->keep_n <= HTTP_FORK_KEEP_MAX);
	for (size_t i = 0; i < opts->keep_n; i++) {
		if (opts->keep[i] >= 0) {
			keep[n++] = opts->keep[i];
		}
	}
	qsort(keep, n, sizeof(keep[0]), compare_fds);
	for (size_t i = 0; i < n; i++) {
		if ((unsigned int)keep[i] > next) {
			(void)!sys_close_range(next, (unsigned int)keep[i] - 1, 0);
		}
		next = (unsigned int)keep[i] + 1;
	}
	(void)!sys_close_range(next, ~0U, 0);
}

static void report_end(struct conn *c)
{
	const struct report end = {
		.body = c->x->body,
		.must_close = c->must_close,
		.is_cut = c->state == CONN_DEAD || c->is_broken,
	};
	struct span rest = conn_in(c);

	if (fd_write_all(c->report_fd, &end, sizeof(end)) < 0 ||
			fd_write_all(c->report_fd, rest.p, rest.n) < 0) {
		_exit(1);
	}
}

NORETURN static void worker_main(struct conn *c, const struct http_fork_opts *opts)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t none;

	/* sendfile(2) knows no MSG_NOSIGNAL. */
	(void)sigaction(SIGPIPE, &ignore, NULL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	close_others(c, opts);
	c->is_blocking = true;
	c->is_blocked = false;
	opts->run(&c->x->rq, opts->ctx);
	if (c->state == CONN_HANDLER) {
		if (!c->x->has_begun) {
			c->must_close = true;
			reply_error(&c->x->rq, 500, "the request was not answered");
		} else {
			http_abort(&c->x->rq);
		}
	}
	report_end(c);
	_exit(0);
}

static int refuse_fork(struct http_req *rq, int r)
{
	http_reply_field(rq, "Retry-After", "1");
	reply_error(rq, 503, "too much is being worked on");
	return r;
}

static struct worker *worker_new(struct conn *c, int report_fd, const struct http_fork_opts *opts)
{
	struct worker *w = mem_new(struct worker);

	w->conn = c;
	w->fd = report_fd;
	w->report = (struct buf)BUF_INIT(1 + sizeof(struct report) + c->in.max + COPY_BYTES);
	w->on_end = opts->on_end;
	w->ctx = opts->ctx;
	return w;
}

int http_fork(struct http_req *rq, const struct http_fork_opts *opts)
{
	struct conn *c = conn_of(rq);
	struct http_server *s = c->server;
	int fds[2] = { -1, -1 };
	pid_t parent = getpid();

	assert(c->state == CONN_HANDLER && !c->x->has_begun && !c->is_blocking);
	if (s->workers_n >= s->opts.workers_max) {
		return refuse_fork(rq, -EAGAIN);
	}
	int r = fd_pipe(fds, 0);

	if (r < 0) {
		return refuse_fork(rq, r);
	}
	autoclose int read_fd = fds[0];
	autoclose int write_fd = fds[1];
	struct worker *w = worker_new(c, read_fd, opts);

	r = fd_set_nonblock(read_fd, true);
	if (r == 0) {
		r = loop_add(s->loop, &w->src, read_fd, EPOLLIN, on_report);
	}
	pid_t pid = r < 0 ? r : sys_fork();

	if (pid == 0) {
		if (sys_prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent) {
			_exit(1);
		}
		c->report_fd = TAKE_FD(write_fd);
		worker_main(c, opts);
	}
	if (pid < 0) {
		loop_remove(s->loop, &w->src);
		free(w);
		return refuse_fork(rq, pid);
	}
	(void)TAKE_FD(read_fd);
	c->worker = w;
	s->workers_n++;
	conn_enter(c);
	loop_pause(s->loop, &c->io);
	c->state = CONN_FORKED;
	/* The worker has it all. */
	buf_done(&c->in);
	c->in_at = 0;
	buf_done(&c->out);
	c->out_at = 0;
	c->is_blocked = false;
	buf_done(&c->x->whole);
	rq->body = span_of("");
	conn_leave(c);
	return 0;
}

/* Read from the peer without a copy where all that comes is body. */
static ssize_t read_direct(struct conn *c, void *p, size_t n)
{
	for (;;) {
		ssize_t r = recv(c->fd, p, n, MSG_DONTWAIT);

		if (r > 0) {
			body_count(c, (size_t)r);
		} else if (r == 0) {
			c->eof = true;
		} else if (errno == EINTR) {
			continue;
		} else {
			return -errno;
		}
		return r;
	}
}

/* Wait for bytes; they are in the buffer, or *out_direct of them at p. 0 or -errno. */
static int read_more(struct conn *c, void *p, size_t n, size_t *out_direct)
{
	uint64_t left = body_left(&c->x->body);
	ssize_t r = 0;

	for (;;) {
		if (left > 0 && n >= DIRECT_MIN) {
			r = read_direct(c, p, left < n ? (size_t)left : n);
			*out_direct = r > 0 ? (size_t)r : 0;
		} else {
			r = conn_read(c, HTTP_IN_BODY);
		}
		if (r != -EAGAIN) {
			return r > 0 ? 0 : (r == 0 ? -ECONNRESET : (int)r);
		}
		r = conn_wait(c, POLLIN);
		if (r < 0) {
			return (int)r;
		}
	}
}

ssize_t http_blocking_read(struct http_req *rq, void *p, size_t n)
{
	struct conn *c = conn_of(rq);
	struct body *b = &c->x->body;

	assert(c->is_blocking);
	body_continue(c);
	while (n > 0) {
		body_advance(c);
		struct span data = body_data(c);

		if (data.n > 0) {
			size_t part = data.n < n ? data.n : n;

			memcpy(p, data.p, part);
			body_take(c, part);
			return (ssize_t)part;
		}
		if (b->is_bad || body_is_done(b)) {
			return b->is_bad ? -EBADMSG : 0;
		}
		size_t direct = 0;
		int r = read_more(c, p, n, &direct);

		if (r < 0 || direct > 0) {
			return r < 0 ? r : (ssize_t)direct;
		}
	}
	return 0;
}

static bool is_unix(int fd)
{
	int domain = 0;
	socklen_t n = sizeof(domain);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 && domain == AF_UNIX;
}

bool http_blocking_is_gone(struct http_req *rq)
{
	struct exchange *x = exchange_of(rq);
	struct conn *c = x->conn;
	struct pollfd p = { .fd = c->fd, .events = POLLRDHUP };
	static const char probe[] = "HTTP/1.1 100 Continue\r\n\r\n";

	assert(c->is_blocking && !x->has_begun);
	if (poll(&p, 1, 0) <= 0 || c->is_broken) {
		return c->is_broken;
	}
	if (p.revents & (POLLHUP | POLLERR)) {
		return true;
	}
	/* A Unix socket that is closed says so by itself. */
	if (x->is_10 || is_unix(c->fd)) {
		return false;
	}
	conn_queue(c, span_of(probe));
	conn_flush(c);
	p.events = 0;
	return poll(&p, 1, PROBE_MS) > 0 || c->is_broken;
}

/* Where sendfile(2) does not work: files of procfs and some of FUSE. */
static ssize_t copy_part(struct conn *c, int fd, off_t *offset, size_t n)
{
	autofree char *bytes = mem_array(COPY_BYTES, 1);
	ssize_t r = pread(fd, bytes, n < COPY_BYTES ? n : COPY_BYTES, *offset);

	if (r <= 0) {
		return r < 0 ? -errno : 0;
	}
	struct iovec v = { .iov_base = bytes, .iov_len = (size_t)r };

	conn_send(c, &v, 1);
	*offset += r;
	return c->is_broken ? -ECONNRESET : r;
}

static ssize_t send_part(struct conn *c, int fd, off_t *offset, size_t n)
{
	for (;;) {
		ssize_t r = sendfile(c->fd, fd, offset, n);

		if (r >= 0) {
			return r;
		}
		if (errno == EINVAL || errno == ENOSYS) {
			return copy_part(c, fd, offset, n);
		}
		if (errno == EAGAIN) {
			int waited = conn_wait(c, POLLOUT);

			if (waited < 0) {
				return waited;
			}
		} else if (errno != EINTR) {
			return -errno;
		}
	}
}

/* The bytes of the file, between the framing. */
static int send_file(struct conn *c, int fd, uint64_t offset, uint64_t n)
{
	off_t at = (off_t)offset;

	conn_flush(c);
	while (n > 0) {
		/* At most 1 GiB at once: the kernel's own limit is 2 GiB less a page. */
		ssize_t r = c->is_broken ? -ECONNRESET
					 : send_part(c, fd, &at, n < 1U << 30 ? n : 1U << 30);

		if (r <= 0) {
			c->is_broken |= r < 0;
			return r < 0 ? (int)r : -EIO;
		}
		n -= (uint64_t)r;
	}
	return 0;
}

int http_blocking_sendfile(struct http_req *rq, int fd, uint64_t offset, uint64_t n)
{
	struct exchange *x = exchange_of(rq);
	struct conn *c = x->conn;
	char size[24];

	assert(c->is_blocking && x->has_begun && c->state == CONN_HANDLER);
	if (x->has_no_body || n == 0) {
		return 0;
	}
	if (n > INT64_MAX || offset > INT64_MAX - n) {
		return -EOVERFLOW;
	}
	x->written += n;
	assert(x->written <= x->length);
	if (x->is_chunked) {
		(void)snprintf(size, sizeof(size), "%llx\r\n", (unsigned long long)n);
		conn_queue(c, span_of(size));
	}
	int r = send_file(c, fd, offset, n);

	if (r == 0 && x->is_chunked) {
		conn_queue(c, span_of("\r\n"));
	}
	return r;
}
