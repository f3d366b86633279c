/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * netd waits for the keeper's first packet, BEGIN; enters the namespaces, makes links and rules,
 * opens its listening sockets, gives up all rights (netd_confine.c) and says READY. Until then no
 * program of the sandbox runs. From then on there are three that speak to it: the sandbox's
 * programs through the relay and the resolver, the policy API, and the keeper, whose packets are
 * read here. The end of the keeper is its end, and its end closes the network: what the rules lead
 * to its ports finds nobody there.
 *
 * A policy goes through three hands before it is in force:
 *
 *     policy API ── change() ──▶ next ── POLICY {memfd} ──▶ keeper
 *     policy API ◀── changed() ── in force ◀── SAVED ──────┘
 *
 * In force means: connections that it forbids are cut, answers that it would not have given are
 * forgotten, and only then is the client told. One at a time (netd_policy_api.c queues).
 */
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <osbx/buf.h>
#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/packet.h>
#include <osbx/str.h>

#include "netd_datagrams.h"
#include "netd_internal.h"
#include "netd_links.h"

/* As many rules as there may be, each as long as it may be, and escaped. */
#define POLICY_BYTES_MAX ((size_t)NETPOLICY_RULES_MAX * (2 * NETPOLICY_TARGET_MAX + 64))
#define BATCH_MAX        64 /* packets of the keeper's in one go */
#define CHANGE_MS        5000
#define CHANGE_AGAIN_MS  5
#define TOLD_MAX         64   /* denials that the keeper is told of … */
#define TOLD_MS          1000 /* … in this time */
#define HOME_LOOPBACK    "127.0.0.1"

/* Denials are as many as the sandbox likes, and there is more to be told than them. */
static bool may_tell(struct netd *n)
{
	int64_t now_ms = clock_boot_ms();

	if (now_ms - n->told_ms >= TOLD_MS) {
		n->told_ms = now_ms;
		n->told_n = 0;
	}
	return n->told_n++ < TOLD_MAX;
}

static void tell(struct netd *n)
{
	struct packet p;

	packet_init(&p, NETD_MSG_DENIED);
	/* A keeper that is busy misses an event; the log has it. */
	if (packet_put(&p, &n->told, sizeof(n->told)) == 0) {
		(void)!packet_send(n->control_fd, &p);
	}
}

static void tell_late(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)loop;
	(void)events;
	tell(container_of(src, struct netd, told_timer));
}

void netd_deny(struct netd *n, const struct netd_denial *what)
{
	struct netd_denial d = *what;

	if (d.rule >= 0 && (size_t)d.rule < n->policy.n) {
		(void)snprintf(d.target, sizeof(d.target), "%s", n->policy.rules[d.rule].target);
	}
	if (!netd_denials_add(&n->denials, &d)) {
		return;
	}
	n->told = (struct netd_denied){
		.seq = n->denials.last,
		.port = d.port,
		.rule = (int16_t)d.rule,
	};
	if (d.name[0] != '\0') {
		(void)snprintf(n->told.what, sizeof(n->told.what), "%s", d.name);
	} else {
		char text[NETADDR_TEXT_MAX];

		netaddr_format(&d.addr, text);
		(void)snprintf(n->told.what, sizeof(n->told.what), "%s", text);
	}
	if (may_tell(n)) {
		tell(n);
	} else {
		/* The last of them, for its number. */
		loop_timer(n->loop, &n->told_timer, n->told_ms + TOLD_MS, tell_late);
	}
}

static const struct netpolicy *policy_in_force(void *ctx)
{
	struct netd *n = ctx;

	return &n->policy;
}

static void change_end(struct netd *n, int errnum)
{
	if (errnum == 0) {
		netpolicy_done(&n->policy);
		n->policy = n->next;
		n->next = (struct netpolicy){ .n = 0 };
		resolver_recheck(n);
		relay_recheck(n);
		datagrams_recheck(n);
	} else {
		netpolicy_done(&n->next);
	}
	n->is_changing = false;
	netd_policy_api_changed(n->api, errnum);
}

/* To the keeper. 0 or -errno. */
static int policy_send(const struct netd *n, const struct netpolicy *policy)
{
	AUTO(buf) struct buf text = BUF_INIT(POLICY_BYTES_MAX);
	struct json_writer w = JSON_WRITER(&text);
	struct packet p;

	netpolicy_format(policy, &w, NULL);
	if (w.failed) {
		return -EMSGSIZE;
	}
	autoclose int fd = fd_memfd_sealed("osbx-policy", text.p, text.n, false);

	if (fd < 0) {
		return fd;
	}
	packet_init(&p, NETD_MSG_POLICY);
	int r = packet_put_fd(&p, fd);

	return r < 0 ? r : packet_send(n->control_fd, &p);
}

/* The keeper may have more to do than fits into the socket: programs of the sandbox can make that
 * so, and must not keep an edit from it. */
static void change_try(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct netd *n = container_of(src, struct netd, change_timer);
	int r = policy_send(n, &n->next);

	(void)events;
	if (r == -EAGAIN && clock_boot_ms() < n->change_until_ms) {
		loop_timer(loop, src, clock_boot_ms() + CHANGE_AGAIN_MS, change_try);
	} else if (r < 0) {
		change_end(n, -r);
	}
}

static void policy_change(void *ctx, const struct netpolicy *to)
{
	struct netd *n = ctx;

	netpolicy_copy(to, &n->next);
	n->is_changing = true;
	n->change_until_ms = clock_boot_ms() + CHANGE_MS;
	loop_timer(n->loop, &n->change_timer, clock_boot_ms(), change_try);
}

static int policy_load(struct netd *n, int fd, struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(POLICY_BYTES_MAX);
	int r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : fd_read_all(fd, &text);

	if (r < 0) {
		return error_sys(e, -r, "read the policy");
	}
	AUTO(json) struct json *v = json_parse(buf_span(&text), e);

	return v ? netpolicy_parse(v, &n->policy, e) : error_wrap(e, "the policy");
}

static int api_start(struct netd *n, struct error *e)
{
	const struct netd_policy_api_opts opts = {
		.token = n->begin.token,
		.policy = policy_in_force,
		.change = policy_change,
		.denials = &n->denials,
		.ctx = n,
	};
	int fd = socket_home(HOME_LOOPBACK, NETD_PORT, SOCK_STREAM);

	if (fd < 0) {
		return error_sys(e, -fd, "listen on port %d of the sandbox", NETD_PORT);
	}
	n->api = netd_policy_api_new(n->loop, fd, &opts);
	return n->api ? 0 : error_sys(e, errno, "serve the policy API");
}

static int start(struct netd *n, struct packet *p, struct error *e)
{
	if (n->has_begun || p->len != sizeof(n->begin) || p->fds_n != 3) {
		return error_set(e, ERRC_INTERNAL, "netd: not the packet that was expected");
	}
	memcpy(&n->begin, p->payload, sizeof(n->begin));
	n->begin.token[sizeof(n->begin.token) - 1] = '\0';
	n->has_begun = true;
	if (n->begin.token[0] == '\0') {
		return error_set(e, ERRC_INTERNAL, "netd: no token for the policy API");
	}
	if (policy_load(n, p->fds[2], e) < 0 || confine_enter(p->fds[0], p->fds[1], e) < 0 ||
			links_up(&n->has_ipv6, e) < 0 || rules_load(e) < 0) {
		return -1;
	}
	packet_done(p);
	p->fds_n = 0;
	return resolver_start(n, e) < 0 || relay_start(n, e) < 0 || datagrams_start(n, e) < 0 ||
					       api_start(n, e) < 0 ||
					       confine_lock(n->control_fd, e) < 0
			       ? -1
			       : 0;
}

static void on_begin(struct netd *n, struct packet *p)
{
	struct error e = ERROR_INIT;
	bool failed = start(n, p, &e) < 0;
	struct packet answer;

	packet_init(&answer, failed ? NETD_MSG_ERROR : NETD_MSG_READY);
	if ((failed && packet_put(&answer, &e, sizeof(e)) < 0) ||
			packet_send(n->control_fd, &answer) < 0 || failed) {
		loop_stop(n->loop, error_exit_status(failed ? e.code : ERRC_INTERNAL));
	}
}

static void on_resolvers(struct netd *n, struct packet *p)
{
	struct netd_resolvers head;

	if (n->has_begun && p->len == sizeof(head) && p->fds_n <= NETD_RESOLVERS_MAX) {
		resolver_set(n, p->fds, p->fds_n);
		p->fds_n = 0;
	}
}

static void on_dialed(struct netd *n, struct packet *p)
{
	struct netd_dialed what;

	if (p->len == sizeof(what) && p->fds_n <= 1) {
		memcpy(&what, p->payload, sizeof(what));
		int fd = p->fds_n == 1 ? p->fds[0] : -1;

		p->fds_n = 0;
		dial_answer(n, &what, fd);
	}
}

static void on_saved(struct netd *n, struct packet *p)
{
	struct netd_saved what;

	if (p->len == sizeof(what) && n->is_changing) {
		memcpy(&what, p->payload, sizeof(what));
		change_end(n, what.errnum < 0 ? EIO : what.errnum);
	}
}

static void (*const handlers[NETD_MSG_COUNT])(struct netd *n, struct packet *p) = {
	[NETD_MSG_BEGIN] = on_begin,
	[NETD_MSG_RESOLVERS] = on_resolvers,
	[NETD_MSG_DIALED] = on_dialed,
	[NETD_MSG_SAVED] = on_saved,
};

static void on_control(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct netd *n = container_of(src, struct netd, control);
	struct packet p;

	if (events & EPOLLOUT) {
		dial_send(n);
	}
	for (int i = 0; i < BATCH_MAX; i++) {
		int r = packet_recv(n->control_fd, &p, 0);

		if (r == -EAGAIN || r == -ETIMEDOUT) {
			return;
		}
		if (r == -EBADMSG) {
			continue;
		}
		if (r <= 0) {
			loop_stop(loop, 0);
			return;
		}
		if (p.type < NETD_MSG_COUNT && handlers[p.type]) {
			handlers[p.type](n, &p);
		}
		packet_done(&p);
	}
}

/* Everything goes with the process. */
int netd_main(int argc, char **argv)
{
	struct netd *n = mem_new(struct netd);

	(void)argc;
	(void)argv;
	n->control_fd = NETD_CONTROL_FD;
	n->loop = loop_new();
	if (!n->loop || fd_set_nonblock(n->control_fd, true) < 0 ||
			loop_add(n->loop, &n->control, n->control_fd, EPOLLIN, on_control) < 0) {
		return error_exit_status(ERRC_SYSTEM);
	}
	netpolicy_init(&n->policy);
	int r = loop_run(n->loop);

	/* No orderly end: sanitizers look for leaks then, with calls that the filter kills for. */
	_exit(r < 0 ? error_exit_status(ERRC_SYSTEM) : r);
}
