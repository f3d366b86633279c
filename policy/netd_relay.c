/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/mem.h>

#include "netd_datagrams.h"
#include "netd_flow.h"
#include "netd_links.h"

/* linux/netfilter_ipv4.h and _ipv6.h do not go together with the headers of every C library. */
#define ORIGINAL_DST  80   /* SO_ORIGINAL_DST, IP6T_SO_ORIGINAL_DST */
#define FLOWS_MAX     2048 /* each has FLOW_HELD_MAX and FLOW_BACK_MAX at most */
#define FILES_OTHER   128  /* descriptors that are not a flow's */
#define DGRAM_SHARE   8    /* of the rest, for datagrams */
#define FILES_OF_FLOW 6    /* two sockets, two pipes */
#define PAUSE_MS      100
#define BATCH_MAX     32

static int original_of(int fd, bool is_6, struct netaddr *out_addr, uint16_t *out_port)
{
	struct sockaddr_storage sa = { .ss_family = AF_UNSPEC };
	socklen_t n = is_6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);

	if (getsockopt(fd, is_6 ? IPPROTO_IPV6 : IPPROTO_IP, ORIGINAL_DST, &sa, &n) < 0) {
		return -errno; /* nobody was led here: somebody has found the port */
	}
	return netaddr_from_sock(&sa, out_addr, out_port);
}

static void on_pause_end(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct relay *r = container_of(src, struct relay, pause);

	(void)events;
	for (size_t i = 0; i < ARRAY_SIZE(r->fd); i++) {
		if (r->src[i].kind == LOOP_SOURCE_FD) {
			loop_resume(loop, &r->src[i]);
		}
	}
}

/* Descriptors are short: those who wait would wake us all the time. */
static void pause_begin(struct relay *r)
{
	for (size_t i = 0; i < ARRAY_SIZE(r->fd); i++) {
		if (r->src[i].kind == LOOP_SOURCE_FD) {
			loop_pause(r->n->loop, &r->src[i]);
		}
	}
	loop_timer(r->n->loop, &r->pause, clock_boot_ms() + PAUSE_MS, on_pause_end);
}

static void client_take(struct relay *r, int fd, bool is_6)
{
	struct netaddr addr = { .family = 0 };
	uint16_t port = 0;

	if (original_of(fd, is_6, &addr, &port) < 0) {
		socket_reset(&fd);
		return;
	}
	if (r->flows_n >= r->flows_max) {
		const struct netd_denial d = {
			.addr = addr,
			.port = port,
			.proto = NETPOLICY_TCP,
			.rule = NETPOLICY_BY_DEFAULT,
			.why = "too many connections at once",
		};

		netd_deny(r->n, &d);
		socket_reset(&fd);
		return;
	}
	flow_begin(r, fd, &addr, port);
}

static void clients_accept(struct relay *r, size_t i)
{
	for (int k = 0; k < BATCH_MAX; k++) {
		int fd = accept4(r->fd[i], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			client_take(r, fd, i == 1);
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
				errno == ENOMEM) {
			pause_begin(r);
			return;
		} else if (errno != ECONNABORTED && errno != EINTR) {
			return;
		}
	}
}

static void on_listener4(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)loop;
	(void)events;
	clients_accept(container_of(src, struct relay, src[0]), 0);
}

static void on_listener6(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)loop;
	(void)events;
	clients_accept(container_of(src, struct relay, src[1]), 1);
}

int relay_start(struct netd *n, struct error *e)
{
	static const char *const homes[] = { NETD_HOME4, NETD_HOME6 };
	static const loop_fn fns[] = { on_listener4, on_listener6 };
	struct relay *r = mem_new(struct relay);
	struct rlimit files = { .rlim_max = 0 };

	r->n = n;
	r->fd[0] = r->fd[1] = -1;
	n->relay = r;
	if (getrlimit(RLIMIT_NOFILE, &files) < 0) {
		return error_sys(e, errno, "ask for the limit of descriptors");
	}
	uint64_t room = files.rlim_max > FILES_OTHER ? files.rlim_max - FILES_OTHER : 0;

	n->dgram_flows_max = room / DGRAM_SHARE < DATAGRAM_FLOWS_MAX ? room / DGRAM_SHARE
								     : DATAGRAM_FLOWS_MAX;
	room = (room - n->dgram_flows_max) / FILES_OF_FLOW;
	r->flows_max = room < FLOWS_MAX ? room : FLOWS_MAX;
	for (size_t i = 0; i < ARRAY_SIZE(homes); i++) {
		if (i == 1 && !n->has_ipv6) {
			break;
		}
		r->fd[i] = socket_home(homes[i], NETD_PORT_RELAY, SOCK_STREAM);
		int rc = r->fd[i] < 0 ? r->fd[i]
				      : loop_add(n->loop, &r->src[i], r->fd[i], EPOLLIN, fns[i]);

		if (rc < 0) {
			return error_sys(e, -rc, "listen on %s port %d for the relay", homes[i],
					NETD_PORT_RELAY);
		}
	}
	return 0;
}

void relay_recheck(struct netd *n)
{
	struct flow *next = NULL;

	for (struct flow *f = n->relay->flows; f; f = next) {
		next = f->next;
		if (!verdict_again(f)) {
			flow_cut(f);
		}
	}
}
