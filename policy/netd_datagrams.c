/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *     program ── UDP ──▶ rules (tproxy) ──▶ netd_inside.c ──┐
 *     program ── echo ─▶ lo, dropped by rules               ├─▶ take() ──▶ flow ──▶ outside
 *                        └─ a copy to netd_inside.c ────────┘               │
 *     program ◀── a whole packet, from the address it has asked ◀── raw socket ◀┘
 *
 * A flow is a pair of ends (of an echo: the program's identifier and the address), with a socket
 * of its own to the outside, which the keeper has opened and connected:
 *
 *   NEW ── DIAL ──▶ WAITING ── DIALED ──▶ UP ── silent, forbidden, the oldest of too many ──▶ gone
 *
 * What a program sends while a flow waits is held, within bounds; what is beyond them is lost, as
 * datagrams are. A datagram that may not be sent makes no flow: the program is told by ICMP.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <osbx/buf.h>
#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/mem.h>

#include "netd_datagrams.h"
#include "netd_flow.h"
#include "netd_inside.h"

#define BUCKETS   256
#define DIALS_MAX 32 /* under way at once: a connection waits behind no more than these */
#define BATCH_MAX 16
#define SWEEP_MS  5000

struct dgram_flow {
	struct dgram_flow *next; /* datagrams.buckets */
	struct dgram_flow *newer;
	struct dgram_flow *older;
	struct datagrams *d;
	struct datagram ends; /* no payload; the port of an echo is 0 */
	struct dial *dial;
	int fd; /* -1: not yet */
	struct loop_source src;
	uint16_t ident; /* of echo requests outside */
	int64_t used_ms;
	bool is_answered;
	struct buf held; /* each with its length before it */
};

struct datagrams {
	struct netd *n;
	struct inside *inside;
	struct dgram_flow *buckets[BUCKETS];
	struct dgram_flow *newest;
	struct dgram_flow *oldest;
	size_t flows_n;
	size_t dials_n;
	size_t held_n;
	struct loop_source sweep;
	uint8_t bytes[NETD_PACKET_MAX];  /* that have come from outside */
	uint8_t packet[NETD_PACKET_MAX]; /* for a program */
};

static size_t bucket_of(const struct datagram *g)
{
	uint32_t h = (uint32_t)g->kind * 31 + g->from_port * 2654435761U + g->to_port * 40503U;

	for (size_t i = 0; i < sizeof(g->to.bytes); i++) {
		h = h * 31 + g->to.bytes[i];
	}
	return h % BUCKETS;
}

static bool is_same(const struct datagram *a, const struct datagram *b)
{
	return a->kind == b->kind && a->from_port == b->from_port && a->to_port == b->to_port &&
	       netaddr_eq(&a->to, &b->to) && netaddr_eq(&a->from, &b->from);
}

static void lru_remove(struct dgram_flow *f)
{
	*(f->older ? &f->older->newer : &f->d->oldest) = f->newer;
	*(f->newer ? &f->newer->older : &f->d->newest) = f->older;
	f->newer = f->older = NULL;
}

static void lru_add(struct dgram_flow *f)
{
	f->older = f->d->newest;
	*(f->older ? &f->older->newer : &f->d->oldest) = f;
	f->d->newest = f;
	f->used_ms = clock_boot_ms();
}

static void flow_end(struct dgram_flow *f)
{
	struct datagrams *d = f->d;
	struct dgram_flow **at = &d->buckets[bucket_of(&f->ends)];

	while (*at != f) {
		at = &(*at)->next;
	}
	*at = f->next;
	lru_remove(f);
	d->flows_n--;
	d->held_n -= f->held.n;
	if (f->dial) {
		d->dials_n--;
		dial_drop(d->n, TAKE_PTR(f->dial));
	}
	loop_remove(d->n->loop, &f->src);
	fd_close(&f->fd);
	buf_done(&f->held);
	free(f);
}

static struct dgram_flow *flow_find(struct datagrams *d, const struct datagram *ends)
{
	struct dgram_flow *f = d->buckets[bucket_of(ends)];

	while (f && !is_same(&f->ends, ends)) {
		f = f->next;
	}
	return f;
}

static void sweep(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct datagrams *d = container_of(src, struct datagrams, sweep);
	int64_t now_ms = clock_boot_ms();
	struct dgram_flow *newer = NULL;

	(void)events;
	for (struct dgram_flow *f = d->oldest; f; f = newer) {
		newer = f->newer;
		if (now_ms - f->used_ms >=
				(f->is_answered ? DATAGRAM_STREAM_MS : DATAGRAM_IDLE_MS)) {
			flow_end(f);
		}
	}
	if (d->flows_n > 0) {
		loop_timer(loop, src, now_ms + SWEEP_MS, sweep);
	}
}

static void refuse(struct datagrams *d, const struct datagram *g, enum refusal why, uint32_t mtu)
{
	int n = datagram_refuse(g, why, mtu, d->packet);

	inside_send(d->inside, &g->from, d->packet, (size_t)n);
}

/* The flow's socket has said this of what was sent. */
static void refuse_errno(struct dgram_flow *f, const struct datagram *g, int errnum)
{
	int mtu = 0;
	socklen_t n = sizeof(mtu);
	bool is_6 = g->to.family == 6;

	switch (errnum) {
	case EMSGSIZE:
		if (f->fd >= 0 && getsockopt(f->fd, is_6 ? IPPROTO_IPV6 : IPPROTO_IP,
						  is_6 ? IPV6_MTU : IP_MTU, &mtu, &n) == 0) {
			refuse(f->d, g, REFUSAL_TOO_BIG, (uint32_t)mtu);
		}
		return;
	case ECONNREFUSED:
		refuse(f->d, g, REFUSAL_PORT, 0);
		return;
	case EACCES:
	case EPERM:
		refuse(f->d, g, REFUSAL_PROHIBITED, 0);
		return;
	default:
		refuse(f->d, g, REFUSAL_HOST, 0);
		return;
	}
}

static void deny(struct netd *n, const struct datagram *g, int rule, const char *name,
		const char *why)
{
	struct netd_denial d = {
		.addr = g->to,
		.port = g->kind == DATAGRAM_UDP ? g->to_port : 0,
		.proto = g->kind == DATAGRAM_UDP ? NETPOLICY_UDP : NETPOLICY_ANY,
		.rule = rule,
		.why = why,
	};

	(void)snprintf(d.name, sizeof(d.name), "%s", name ? name : "");
	netd_deny(n, &d);
}

static struct netpolicy_verdict check(
		const struct netd *n, const struct datagram *g, const char *name)
{
	const struct netpolicy_flow flow = {
		.addr = g->to,
		.port = g->kind == DATAGRAM_UDP ? g->to_port : 0,
		.proto = g->kind == DATAGRAM_UDP ? NETPOLICY_UDP : NETPOLICY_ANY,
		.names = &name,
		.names_n = name ? 1 : 0,
	};

	return netpolicy_check(&n->policy, &flow);
}

/* QUIC says its host's name where nobody reads it. Where names matter it needs a rule that means
 * it: an address, or a name with this port. */
static bool is_meant(const struct netd *n, const struct datagram *g, struct netpolicy_verdict v)
{
	if (g->kind != DATAGRAM_UDP || !verdict_is_web(g->to_port) || !verdict_looks(n)) {
		return true;
	}
	return v.rule >= 0 && (n->policy.rules[v.rule].kind == NETPOLICY_PREFIX ||
					      n->policy.rules[v.rule].port == g->to_port);
}

/* May it be sent? Else that is logged; why (NULL: see the rule) goes with it. */
static bool may_send(struct netd *n, const struct datagram *g, const char *why)
{
	static const char quic[] = "the host that QUIC names cannot be seen";
	const char *names[NAMES_FOUND];
	size_t names_n = names_find(&n->names, &g->to, clock_boot_ms(), names);
	struct netpolicy_verdict v = check(n, g, NULL);

	for (size_t i = 0; i < names_n && !(v.allowed && is_meant(n, g, v)); i++) {
		v = check(n, g, names[i]);
	}
	if (v.allowed && is_meant(n, g, v)) {
		return true;
	}
	deny(n, g, v.allowed ? NETPOLICY_BY_DEFAULT : v.rule,
			names_n > 0 ? names[names_n - 1] : NULL, v.allowed ? quic : why);
	return false;
}

/* One to the outside. */
static void flow_send(struct dgram_flow *f, const struct datagram *g)
{
	ssize_t n = -1;

	if (g->kind == DATAGRAM_ECHO) {
		struct datagram asked = *g;

		asked.from_port = f->ident;
		int bytes = echo_request(&asked, f->d->packet);

		n = bytes < 0 ? -1
			      : send(f->fd, f->d->packet, (size_t)bytes,
						MSG_DONTWAIT | MSG_NOSIGNAL);
	} else {
		n = send(f->fd, g->payload.p, g->payload.n, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	/* A full socket loses it, as a full queue on the way does. */
	if (n < 0 && errno != EAGAIN && errno != ENOBUFS && errno != EINTR) {
		refuse_errno(f, g, errno);
	}
}

static bool flow_receive(struct dgram_flow *f)
{
	struct datagrams *d = f->d;
	ssize_t n = recv(f->fd, d->bytes, sizeof(d->bytes), MSG_DONTWAIT);
	struct datagram asked = f->ends;
	struct span payload = { .p = (const char *)d->bytes, .n = n > 0 ? (size_t)n : 0 };

	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR) {
			refuse_errno(f, &asked, errno);
		}
		return false;
	}
	if (asked.kind == DATAGRAM_ECHO &&
			echo_reply(asked.to.family, payload, &asked.to_port, &payload) < 0) {
		return true;
	}
	int bytes = datagram_answer(&asked, payload, d->packet);

	if (bytes >= 0) {
		inside_send(d->inside, &asked.from, d->packet, (size_t)bytes);
		lru_remove(f);
		lru_add(f);
		f->is_answered = asked.kind == DATAGRAM_UDP;
	}
	return true;
}

static void flow_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct dgram_flow *f = container_of(src, struct dgram_flow, src);

	(void)loop;
	(void)events;
	for (int i = 0; i < BATCH_MAX && flow_receive(f); i++) {
	}
}

struct held {
	uint32_t n;
	uint16_t to_port;
};

static void flow_hold(struct dgram_flow *f, const struct datagram *g)
{
	const struct held head = { .n = (uint32_t)g->payload.n, .to_port = g->to_port };
	size_t before = f->held.n;

	if (f->d->held_n + sizeof(head) + head.n > DATAGRAM_HELD_MAX ||
			buf_append(&f->held, &head, sizeof(head)) < 0) {
		return;
	}
	if (buf_append(&f->held, g->payload.p, g->payload.n) < 0) {
		f->held.n = before;
	}
	f->d->held_n += f->held.n - before;
}

static void flow_release(struct dgram_flow *f)
{
	struct datagram g = f->ends;
	size_t at = 0;
	struct held head;

	while (at + sizeof(head) <= f->held.n) {
		memcpy(&head, f->held.p + at, sizeof(head));
		at += sizeof(head);
		g.to_port = head.to_port;
		g.payload = (struct span){ .p = f->held.p + at, .n = head.n };
		flow_send(f, &g);
		at += head.n;
	}
	f->d->held_n -= f->held.n;
	buf_done(&f->held);
}

static void flow_fail(struct dgram_flow *f, int errnum)
{
	const struct datagram ends = f->ends;

	if (errnum == EPROTONOSUPPORT) {
		deny(f->d->n, &ends, NETPOLICY_BY_DEFAULT, NULL,
				"this machine lets its user have no socket for ping");
	} else if (errnum == EACCES) {
		deny(f->d->n, &ends, NETPOLICY_BY_RESERVED, NULL, NULL);
	}
	/* Whatever the reason: this one is an error to every program, at once (udp(7)). */
	refuse(f->d, &ends, REFUSAL_PROHIBITED, 0);
	flow_end(f);
}

static void flow_on_dialed(void *ctx, int fd_or_err, uint16_t ident)
{
	struct dgram_flow *f = ctx;
	struct netd *n = f->d->n;

	f->dial = NULL;
	f->d->dials_n--;
	if (fd_or_err < 0) {
		flow_fail(f, -fd_or_err);
		return;
	}
	f->fd = fd_or_err;
	f->ident = ident;
	if (fd_set_nonblock(f->fd, true) < 0 ||
			loop_add(n->loop, &f->src, f->fd, EPOLLIN, flow_on_ready) < 0) {
		flow_fail(f, EIO);
		return;
	}
	flow_release(f);
}

/* NULL: there are too many at once. */
static struct dgram_flow *flow_new(struct datagrams *d, const struct datagram *ends)
{
	const struct netd_dial where = {
		.kind = ends->kind == DATAGRAM_UDP ? NETD_DIAL_UDP : NETD_DIAL_PING,
		.addr = ends->to,
		.port = ends->to_port,
	};
	struct dgram_flow **bucket = &d->buckets[bucket_of(ends)];

	if (d->dials_n >= DIALS_MAX || d->n->dgram_flows_max == 0) {
		return NULL;
	}
	if (d->flows_n >= d->n->dgram_flows_max) {
		flow_end(d->oldest);
	}
	struct dgram_flow *f = mem_new(struct dgram_flow);

	*f = (struct dgram_flow){
		.next = *bucket,
		.d = d,
		.ends = *ends,
		.fd = -1,
		.held = BUF_INIT(DATAGRAM_HELD_MAX),
	};
	f->dial = dial_ask(d->n, &where, flow_on_dialed, f);
	if (!f->dial) {
		free(f);
		return NULL;
	}
	*bucket = f;
	lru_add(f);
	d->dials_n++;
	if (d->flows_n++ == 0) {
		loop_timer(d->n->loop, &d->sweep, clock_boot_ms() + SWEEP_MS, sweep);
	}
	return f;
}

static void take(void *ctx, const struct datagram *g)
{
	struct datagrams *d = ctx;
	struct datagram ends = *g;

	ends.payload = (struct span){ .p = NULL };
	if (g->kind == DATAGRAM_ECHO) {
		ends.to_port = 0;
	}
	struct dgram_flow *f = flow_find(d, &ends);

	if (!f) {
		if (!may_send(d->n, g, NULL)) {
			refuse(d, g, REFUSAL_PROHIBITED, 0);
			return;
		}
		f = flow_new(d, &ends);
	}
	if (!f) {
		return;
	}
	lru_remove(f);
	lru_add(f);
	if (f->fd >= 0) {
		flow_send(f, g);
	} else {
		flow_hold(f, g);
	}
}

int datagrams_start(struct netd *n, struct error *e)
{
	struct datagrams *d = mem_new(struct datagrams);

	d->n = n;
	n->datagrams = d;
	d->inside = inside_open(n, take, d, e);
	return d->inside ? 0 : -1;
}

void datagrams_recheck(struct netd *n)
{
	struct dgram_flow *newer = NULL;

	for (struct dgram_flow *f = n->datagrams->oldest; f; f = newer) {
		newer = f->newer;
		if (!may_send(n, &f->ends, "the policy was changed")) {
			flow_end(f);
		}
	}
}
