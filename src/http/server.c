/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/mem.h>

#include "http_internal.h"

#define ACCEPTS_AT_ONCE 16
#define CONNS_MAX       1024
#define WORKERS_MAX     64
#define HEAD_MS         10000
#define BODY_MS         60000
#define IDLE_MS         75000
#define REST_MS         100 /* without a descriptor left */
#define ALIVE_IDLE_S    60
#define ALIVE_EACH_S    20

_Static_assert(HTTP_HEAD_BYTES_MAX == PARSE_HEAD_MAX, "http.h says so");
_Static_assert(HTTP_TARGET_BYTES_MAX == PARSE_TARGET_MAX, "http.h says so");
_Static_assert(HTTP_FIELDS_MAX == PARSE_FIELDS_MAX, "http.h says so");

struct http_server *http_server_new(struct loop *loop, const struct http_opts *opts)
{
	struct http_server *s = mem_new(struct http_server);

	s->loop = loop;
	s->opts = *opts;
	s->opts.conns_max = opts->conns_max ? opts->conns_max : CONNS_MAX;
	s->opts.workers_max = opts->workers_max ? opts->workers_max : WORKERS_MAX;
	s->opts.head_ms = opts->head_ms ? opts->head_ms : HEAD_MS;
	s->opts.body_ms = opts->body_ms ? opts->body_ms : BODY_MS;
	s->opts.idle_ms = opts->idle_ms ? opts->idle_ms : IDLE_MS;
	return s;
}

void http_listen_stop(struct http_server *s)
{
	loop_remove(s->loop, &s->rest);
	while (s->listeners) {
		struct listener *l = s->listeners;

		s->listeners = l->next;
		loop_remove(s->loop, &l->src);
		fd_close(&l->fd);
		free(l);
	}
}

void http_server_free(struct http_server *s)
{
	if (!s) {
		return;
	}
	http_listen_stop(s);
	while (s->conns) {
		struct conn *c = s->conns;

		/* Not from within a handler: it would be freed below its own feet. */
		assert(c->depth == 0);
		conn_enter(c);
		conn_lose(c);
		conn_leave(c);
	}
	free(s);
}

/* All fail for what is not TCP, where there is nothing to delay and nobody who vanishes. */
static void set_tcp(int fd)
{
	const int on = 1;
	const int idle = ALIVE_IDLE_S;
	const int each = ALIVE_EACH_S;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	/* A tunnel and an endless answer have no time-out: a peer whose machine has gone to sleep
	 * would be kept for ever. */
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &each, sizeof(each));
}

static bool may_end(const struct conn *c)
{
	const struct exchange *x = c->x;

	return c->depth == 0 && !(x && x->is_admitted && x->is_counted && !c->is_blocked);
}

static void make_room(struct http_server *s)
{
	struct conn *oldest = NULL;

	for (struct conn *c = s->conns; c; c = c->next) {
		oldest = may_end(c) ? c : oldest;
	}
	if (oldest) {
		conn_enter(oldest);
		conn_lose(oldest);
		conn_leave(oldest);
	}
}

static int serve(struct http_server *s, int fd, uint32_t tag)
{
	const struct parse_refusal full = { .status = 503, .what = "too many connections" };

	if (s->opts.makes_room && s->conns_n >= s->opts.conns_max) {
		make_room(s);
	}
	if (s->conns_n >= s->opts.conns_max + HTTP_REFUSED_MAX) {
		return -EMFILE;
	}
	set_tcp(fd);
	struct conn *c = conn_new(s, fd, tag);

	if (!c) {
		return -errno;
	}
	conn_enter(c);
	if (s->conns_n > s->opts.conns_max) {
		conn_refuse(c, &full);
	}
	conn_leave(c);
	return 0;
}

static void on_rested(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct http_server *s = container_of(src, struct http_server, rest);

	(void)events;
	for (struct listener *l = s->listeners; l; l = l->next) {
		loop_resume(loop, &l->src);
	}
}

/* A listener that cannot accept would be ready for ever. */
static void rest(struct http_server *s)
{
	for (struct listener *l = s->listeners; l; l = l->next) {
		loop_pause(s->loop, &l->src);
	}
	loop_timer(s->loop, &s->rest, clock_boot_ms() + REST_MS, on_rested);
}

static void on_listener(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct listener *l = container_of(src, struct listener, src);

	(void)loop;
	(void)events;
	for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
		autoclose int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0) {
			if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
				rest(l->server);
			}
			return;
		}
		if (serve(l->server, fd, l->tag) == 0) {
			(void)TAKE_FD(fd);
		}
	}
}

int http_listen(struct http_server *s, int fd, uint32_t tag)
{
	struct listener *l = mem_new(struct listener);
	int r = fd_set_nonblock(fd, true);

	if (r == 0) {
		r = loop_add(s->loop, &l->src, fd, EPOLLIN, on_listener);
	}
	if (r < 0) {
		fd_close(&fd);
		free(l);
		return r;
	}
	l->next = s->listeners;
	l->server = s;
	l->fd = fd;
	l->tag = tag;
	s->listeners = l;
	return 0;
}

int http_adopt(struct http_server *s, int fd, uint32_t tag)
{
	int r = fd_set_nonblock(fd, true);

	if (r == 0) {
		r = serve(s, fd, tag);
	}
	if (r < 0) {
		fd_close(&fd);
	}
	return r;
}

size_t http_conns(const struct http_server *s)
{
	return s->conns_n;
}

size_t http_busy(const struct http_server *s)
{
	return s->busy_n;
}
