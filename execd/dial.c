/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/mem.h>

#include "dial.h"
#include "execd.h"

#define DIAL_MS 5000

/* A connection that is being made. */
struct dial {
	uint16_t port;
	bool is_second; /* ::1, after 127.0.0.1 has failed */
	int fd;
	struct loop_source ready;
	struct loop_source deadline;
	struct execd *execd;
	struct dial **slot; /* the starter's */
	dial_fn done;
	void *ctx;
};

void dial_cancel(struct dial *d)
{
	if (!d) {
		return;
	}
	struct execd *x = d->execd;

	x->dials_n--;
	*d->slot = NULL;
	loop_remove(x->loop, &d->ready);
	loop_remove(x->loop, &d->deadline);
	fd_close(&d->fd);
	free(d);
}

static void dial_fail(struct dial *d, int sysno)
{
	struct error e = ERROR_INIT;
	const dial_fn done = d->done;
	void *ctx = d->ctx;

	if (sysno == ETIMEDOUT) {
		(void)error_set(&e, ERRC_TIMEOUT, "port %u of the sandbox: no answer", d->port);
	} else if (sysno == ECONNREFUSED) {
		(void)error_set(&e, ERRC_UNAVAILABLE, "port %u of the sandbox: nothing listens",
				d->port);
	} else {
		(void)error_sys(&e, sysno, "connect to port %u of the sandbox", d->port);
	}
	dial_cancel(d);
	done(ctx, -1, &e);
}

static void dial_succeed(struct dial *d)
{
	const struct error none = ERROR_INIT;
	const dial_fn done = d->done;
	void *ctx = d->ctx;
	int fd = TAKE_FD(d->fd);

	dial_cancel(d);
	done(ctx, fd, &none);
}

/* Begin with the address that is due. 0 or -errno; -EINPROGRESS: it goes on. */
static int dial_connect(struct dial *d)
{
	const struct sockaddr_in v4 = {
		.sin_family = AF_INET,
		.sin_port = htons(d->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const struct sockaddr_in6 v6 = {
		.sin6_family = AF_INET6,
		.sin6_port = htons(d->port),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT,
	};
	const void *address = d->is_second ? (const void *)&v6 : &v4;
	socklen_t n = d->is_second ? sizeof(v6) : sizeof(v4);

	loop_remove(d->execd->loop, &d->ready);
	fd_close(&d->fd);
	d->fd = socket(d->is_second ? AF_INET6 : AF_INET,
			SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (d->fd < 0) {
		return -errno;
	}
	return connect(d->fd, address, n) < 0 ? -errno : 0;
}

static void dial_on_ready(struct loop *loop, struct loop_source *src, uint32_t events);

/* What became of the attempt. */
static void dial_settle(struct dial *d, int r)
{
	if (r < 0 && r != -EINPROGRESS && !d->is_second) {
		d->is_second = true;
		int second = dial_connect(d);

		/* Where both fail, the first answer is the one to tell: there may be no IPv6. */
		r = second == 0 || second == -EINPROGRESS ? second : r;
	}
	if (r == -EINPROGRESS) {
		r = loop_add(d->execd->loop, &d->ready, d->fd, EPOLLOUT, dial_on_ready);
		if (r == 0) {
			return;
		}
	}
	if (r < 0) {
		dial_fail(d, -r);
	} else {
		dial_succeed(d);
	}
}

static void dial_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct dial *d = container_of(src, struct dial, ready);
	int sysno = 0;
	socklen_t n = sizeof(sysno);

	(void)events;
	loop_remove(loop, src);
	if (getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &sysno, &n) < 0) {
		sysno = errno;
	}
	dial_settle(d, -sysno);
}

static void dial_on_deadline(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)loop;
	(void)events;
	dial_fail(container_of(src, struct dial, deadline), ETIMEDOUT);
}

int dial_start(struct execd *x, const struct dial_opts *opts, struct dial **slot, struct error *e)
{
	if (opts->port < 1 || opts->port > UINT16_MAX) {
		return error_set(e, ERRC_INVALID, "port %u", opts->port);
	}
	if (x->dials_n >= EXECD_DIALS_MAX) {
		return error_set(e, ERRC_LIMIT, "%d connections are being made", EXECD_DIALS_MAX);
	}
	struct dial *d = mem_new(struct dial);

	*d = (struct dial){
		.port = (uint16_t)opts->port,
		.fd = -1,
		.execd = x,
		.slot = slot,
		.done = opts->done,
		.ctx = opts->ctx,
	};
	*slot = d;
	x->dials_n++;
	loop_timer(x->loop, &d->deadline, clock_boot_ms() + DIAL_MS, dial_on_deadline);
	dial_settle(d, dial_connect(d));
	return 0;
}
