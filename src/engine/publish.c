/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   listener ── accepted ──▶ DIALLING ── DIALLED ──▶ PUMPING ── both sides ended ─▶ freed
 *                               └── refused, PID 1 dead ──▶ reset, freed
 *
 * The listeners are there before the sandbox, so that a port in use is found out before anything
 * runs; until the main process runs, and while the sandbox is paused, connections wait in the
 * kernel. They also do when FLOWS_MAX are served, DIALS_MAX are being made, or no descriptor is
 * left.
 *
 * PID 1 connects to the loopback of the sandbox, where services that listen on all addresses are,
 * too: no address, route or rule of the host has a part in it, and it works without any network.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/pump.h>

#include "keeper_internal.h"
#include "publish.h"

#define FLOWS_MAX   2048
#define DIALS_MAX   64
#define BACKLOG     4096
#define RETRY_MS    200
#define FILES_MAX   65536 /* six a flow, at most */
#define PRIVILEGED  1024
#define DELIVERY_MS 1000

struct flow {
	struct publish *publish;
	struct pump *pump; /* NULL: being dialled */
	int fd;            /* of the client, until there is a pump */
	struct flow *next; /* publish.flows */
};

struct listener {
	struct loop_source src;
	struct publish *publish;
	uint16_t inside;
	int fd;
};

struct publish {
	struct keeper *keeper; /* NULL: nothing is served yet */
	struct loop_source retry;
	struct loop_source late;
	struct flow *flows;
	unsigned int flows_n;
	unsigned int dials_n;
	size_t n;
	struct listener *listeners;
};

static int bind_refused(const struct port_map *map, int sysno, struct error *e)
{
	char text[PORTS_TEXT_MAX];

	ports_format_outside(map, text);
	if (sysno == EADDRINUSE) {
		(void)error_set(e, ERRC_CONFLICT, "port %s: in use", text);
		return error_hint(e, ":%u takes any free one; ss -ltnp shows who has it",
				(unsigned int)map->inside);
	}
	if (sysno == EADDRNOTAVAIL) {
		(void)error_set(e, ERRC_INVALID, "port %s: not an address of this machine", text);
		return error_hint(e, "127.0.0.1 is (default), 0.0.0.0 stands for all");
	}
	(void)error_sys(e, sysno, "port %s", text);
	return sysno == EACCES && map->outside < PRIVILEGED
			       ? error_hint(e, "sysctl net.ipv4.ip_unprivileged_port_start says "
					       "from where on everybody may listen")
			       : -1;
}

/* The port that it came to be, or -errno. */
static int bound_port(int fd)
{
	struct sockaddr_storage sa = { .ss_family = AF_UNSPEC };
	struct netaddr addr;
	uint16_t port = 0;
	socklen_t n = sizeof(sa);

	if (getsockname(fd, (struct sockaddr *)&sa, &n) < 0) {
		return -errno;
	}
	int r = netaddr_from_sock(&sa, &addr, &port);

	return r < 0 ? r : port;
}

/* Listening: two could be bound to one port. fd or -errno. */
static int listener_open(const struct port_map *map)
{
	const int on = 1;
	bool is_v6 = map->addr.family == 6;
	struct sockaddr_storage sa;
	socklen_t n = netaddr_to_sock(&map->addr, map->outside, &sa);
	autoclose int fd = socket(
			is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0) {
		return -errno;
	}
	/* :: stands for the IPv6 ones, so that the other family may be given beside it. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
			(is_v6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0) ||
			bind(fd, (const struct sockaddr *)&sa, n) < 0 || listen(fd, BACKLOG) < 0) {
		return -errno;
	}
	return TAKE_FD(fd);
}

static int listener_make(struct publish *p, const struct port_map *map, struct strv *out_ports,
		struct error *e)
{
	struct port_map bound = *map;
	char text[PORTS_TEXT_MAX];
	int fd = listener_open(map);

	if (fd < 0) {
		return bind_refused(map, -fd, e);
	}
	p->listeners[p->n++] = (struct listener){
		.publish = p,
		.inside = map->inside,
		.fd = fd,
	};
	int port = bound_port(fd);

	if (port < 0) {
		return error_sys(e, -port, "port %u", (unsigned int)map->inside);
	}
	bound.outside = (uint16_t)port;
	ports_format(&bound, text);
	return strv_add(out_ports, text) < 0 ? error_set(e, ERRC_LIMIT, "too many ports") : 0;
}

struct publish *publish_new(
		const struct port_map *maps, size_t n, struct strv *out_ports, struct error *e)
{
	struct publish *p = mem_new(struct publish);

	*p = (struct publish){ .listeners = mem_array(n, sizeof(*p->listeners)) };
	for (size_t i = 0; i < n; i++) {
		if (listener_make(p, &maps[i], out_ports, e) < 0) {
			publish_free(p);
			return NULL;
		}
	}
	return p;
}

static bool may_accept(const struct publish *p)
{
	return !p->keeper->paused && p->flows_n < FLOWS_MAX && p->dials_n < DIALS_MAX;
}

static void listeners_settle(struct publish *p)
{
	for (size_t i = 0; i < p->n; i++) {
		if (p->listeners[i].src.kind != LOOP_SOURCE_FD) {
			continue;
		}
		if (may_accept(p) && p->retry.kind == LOOP_SOURCE_NONE) {
			loop_resume(p->keeper->loop, &p->listeners[i].src);
		} else {
			loop_pause(p->keeper->loop, &p->listeners[i].src);
		}
	}
}

static void retry_on_end(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)loop;
	(void)events;
	listeners_settle(container_of(src, struct publish, retry));
}

/* Whoever is not served is told so: an end of its own the client would take for an answer. */
static void client_reset(int *fd)
{
	const struct linger now = { .l_onoff = 1 };

	if (*fd >= 0) {
		(void)setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	}
	fd_close(fd);
}

static void flow_free(struct flow *f)
{
	struct publish *p = f->publish;
	struct flow **at = &p->flows;

	while (*at != f) {
		at = &(*at)->next;
	}
	*at = f->next;
	p->flows_n--;
	client_reset(&f->fd);
	free(f);
	listeners_settle(p);
	if (p->late.kind == LOOP_SOURCE_TIMER && p->flows_n == 0) {
		loop_remove(p->keeper->loop, &p->late);
		keeper_on_unpublished(p->keeper);
	}
}

static void flow_on_end(void *ctx, int errnum)
{
	(void)errnum;
	flow_free(ctx);
}

static void flow_on_dialled(void *ctx, int fd)
{
	struct flow *f = ctx;
	struct publish *p = f->publish;
	const int on = 1;

	p->dials_n--;
	if (fd < 0) {
		flow_free(f);
		return;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	const struct pump_opts opts = {
		.a_fd = TAKE_FD(f->fd),
		.b_fd = fd,
		.on_end = flow_on_end,
		.ctx = f,
	};

	f->pump = pump_new(p->keeper->loop, &opts);
	if (!f->pump) {
		flow_free(f);
		return;
	}
	listeners_settle(p);
}

/* A peer that has vanished is noticed some time; small writes are sent as they come. */
static void client_tune(int fd)
{
	const int on = 1;

	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static void listener_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	const struct listener *l = container_of(src, struct listener, src);
	struct publish *p = l->publish;

	(void)events;
	if (!may_accept(p)) {
		listeners_settle(p);
		return;
	}
	int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0) {
		/* No descriptor or memory left: it would be ready again at once. */
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
			loop_timer(loop, &p->retry, clock_boot_ms() + RETRY_MS, retry_on_end);
			listeners_settle(p);
		}
		return;
	}
	client_tune(fd);
	struct flow *f = mem_new(struct flow);

	*f = (struct flow){ .publish = p, .fd = fd, .next = p->flows };
	p->flows = f;
	p->flows_n++;
	if (keeper_dial(p->keeper, l->inside, flow_on_dialled, f) < 0) {
		flow_free(f);
		return;
	}
	p->dials_n++;
}

/* Only now: the workload inherits what this process had before. */
static void files_raise(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < FILES_MAX) {
		limit.rlim_cur = limit.rlim_max < FILES_MAX ? limit.rlim_max : FILES_MAX;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int publish_begin(struct publish *p, struct keeper *k)
{
	p->keeper = k;
	files_raise();
	for (size_t i = 0; i < p->n; i++) {
		struct listener *l = &p->listeners[i];
		int r = loop_add(k->loop, &l->src, l->fd, EPOLLIN, listener_on_ready);

		if (r < 0) {
			return r;
		}
	}
	return 0;
}

void publish_on_resume(struct publish *p)
{
	if (p && p->keeper) {
		listeners_settle(p);
	}
}

static void listeners_close(struct publish *p)
{
	for (size_t i = 0; i < p->n; i++) {
		if (p->keeper) {
			loop_remove(p->keeper->loop, &p->listeners[i].src);
		}
		fd_close(&p->listeners[i].fd);
	}
}

static void flows_cut(struct publish *p)
{
	while (p->flows) {
		struct flow *f = p->flows;

		p->flows = f->next;
		p->flows_n--;
		if (f->pump) {
			pump_cut(f->pump);
		} else {
			keeper_dial_forget(p->keeper, f);
		}
		client_reset(&f->fd);
		free(f);
	}
}

static void late_on_end(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct publish *p = container_of(src, struct publish, late);

	(void)loop;
	(void)events;
	flows_cut(p);
	keeper_on_unpublished(p->keeper);
}

void publish_on_death(struct publish *p)
{
	if (!p) {
		return;
	}
	listeners_close(p);
	if (p->flows_n > 0) {
		loop_timer(p->keeper->loop, &p->late, clock_boot_ms() + DELIVERY_MS, late_on_end);
	}
}

bool publish_is_idle(const struct publish *p)
{
	return !p || p->flows_n == 0;
}

void publish_end(struct publish *p)
{
	if (!p || !p->keeper) {
		return;
	}
	loop_remove(p->keeper->loop, &p->retry);
	loop_remove(p->keeper->loop, &p->late);
	listeners_close(p);
	flows_cut(p);
	p->keeper = NULL;
}

void publish_free(struct publish *p)
{
	if (!p) {
		return;
	}
	listeners_close(p);
	free(p->listeners);
	free(p);
}
