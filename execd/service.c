/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   (no listener) ── LISTEN ──▶ WAITING ── first connection ──▶ SERVING
 *
 * The start of a sandbox is what users wait for, and most sandboxes are never asked anything: the
 * server and its memory come with the first connection, whose bytes wait in the kernel.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <osbx/fd.h>
#include <osbx/mem.h>

#include "api.h"
#include "code.h"
#include "routes.h"
#include "service.h"

#define BACKLOG 4096
/* One client of the SDKs holds up to 100 connections, each of which may be an upload. */
#define OUTSIDE_WORKERS_MAX 128
#define INSIDE_CONNS_MAX    256
#define INSIDE_WORKERS_MAX  16
#define TOKEN_FIELD         "x-execd-access-token"
#define UNAUTHORIZED        "{\"error\":\"Unauthorized: invalid or missing header X-EXECD-ACCESS-TOKEN\"}"

/* Those outside and inside share nothing that one side could use up: a workload that opens all
 * connections it can must not keep its owner out. */
struct listener {
	struct execd *execd;
	struct http_server *server; /* NULL: nobody has connected yet */
	struct loop_source src;     /* until then */
	int fd;                     /* -1: there is none, or the server has it */
	uint32_t tag;
	size_t conns_max;
	size_t workers_max;
};

struct service {
	struct listener outside;
	struct listener inside;
	bool is_inside;
};

/* Not the form of other errors, but the one that clients know. */
static bool admit(struct http_req *rq)
{
	const char *token = api_execd(rq)->config.token;

	if (!token || (rq->route && (rq->route->flags & HTTP_ROUTE_OPEN)) ||
			http_secret_eq(http_field(rq, TOKEN_FIELD), span_of(token))) {
		return true;
	}
	http_reply(rq, 401, "application/json", span_of(UNAUTHORIZED));
	return false;
}

struct status_code {
	int status;
	const char *code;
};

static const struct status_code status_codes[] = {
	{ 400, API_INVALID_BODY },
	{ 404, API_NOT_FOUND },
	{ 405, API_NOT_SUPPORTED },
	{ 413, API_INVALID_BODY },
	{ 500, API_RUNTIME },
	{ 501, API_NOT_SUPPORTED },
	{ 503, API_RUNTIME },
};

static const char *describe(struct http_req *rq, int status, const char *what, struct buf *out)
{
	const char *code = API_UNKNOWN;

	(void)rq;
	for (size_t i = 0; i < ARRAY_SIZE(status_codes); i++) {
		if (status_codes[i].status == status) {
			code = status_codes[i].code;
		}
	}
	api_error_format(out, code, what && what[0] ? what : http_reason(status));
	return "application/json";
}

static void listener_begin(struct listener *l)
{
	const struct http_opts opts = {
		.routes = routes,
		.routes_n = routes_n,
		.admit = admit,
		.describe = describe,
		.conns_max = l->conns_max,
		.workers_max = l->workers_max,
		.ctx = l->execd,
	};

	code_gate_open(l->execd);
	if (!l->server) {
		l->server = http_server_new(l->execd->loop, &opts);
	}
}

static void listener_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct listener *l = container_of(src, struct listener, src);

	(void)events;
	loop_remove(loop, src);
	listener_begin(l);
	/* Short of memory in the kernel: whoever waits there is refused. */
	(void)!http_listen(l->server, TAKE_FD(l->fd), l->tag);
}

/* A listener on the loopback of the sandbox, which is up before PID 1 runs. fd or -errno. */
static int inside_open(void)
{
	const struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(EXECD_PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	autoclose int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (const void *)&address, sizeof(address)) < 0 ||
			listen(fd, BACKLOG) < 0) {
		return -errno;
	}
	return TAKE_FD(fd);
}

int service_listen(struct execd *x, uint32_t flags, int fd)
{
	if (x->service) {
		return -EEXIST;
	}
	struct service *s = mem_new(struct service);

	*s = (struct service){
		.outside = {
			.execd = x,
			.fd = fd,
			.tag = API_LISTENER_OUTSIDE,
			.workers_max = OUTSIDE_WORKERS_MAX,
		},
		.inside = {
			.execd = x,
			.fd = -1,
			.tag = API_LISTENER_INSIDE,
			.conns_max = INSIDE_CONNS_MAX,
			.workers_max = INSIDE_WORKERS_MAX,
		},
	};
	int r = loop_add(x->loop, &s->outside.src, fd, EPOLLIN, listener_on_ready);

	if (r < 0) {
		free(s);
		return r;
	}
	if (flags & EXECD_LISTEN_INSIDE) {
		s->inside.fd = inside_open();
	}
	s->is_inside = s->inside.fd >= 0;
	if (s->inside.fd >= 0 && loop_add(x->loop, &s->inside.src, s->inside.fd, EPOLLIN,
						 listener_on_ready) < 0) {
		fd_close(&s->inside.fd);
	}
	x->service = s;
	return 0;
}

int service_adopt(const struct execd *x, int fd, uint32_t tag)
{
	struct service *s = x->service;
	struct listener *l = tag & API_LISTENER_INSIDE ? &s->inside : &s->outside;

	listener_begin(l);
	return http_adopt(l->server, fd, tag);
}

bool service_is_inside(const struct execd *x)
{
	return x->service && x->service->is_inside;
}
