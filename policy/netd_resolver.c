/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * Every datagram and connection to port 53 of any address ends here. A question goes through these
 * gates, in this order, and the first that is closed answers:
 *
 *     is it one?  may its name be asked (policy)?  is its type one that we ask?  is it known?
 *
 * so that a name that is not allowed never leaves, not even as a question: names can carry data
 * out. What comes back is read into records, without addresses that no rule allows, and the asked
 * name (no alias of it) is bound to the addresses (netd_names.h) before the reply is sent, since
 * the program connects as soon as it has it. The policy is asked again at that moment: it may have
 * changed while the question was under way.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/mem.h>

#include "netd_links.h"
#include "netd_resolver.h"

#define MESSAGE_MAX 4096 /* of a question by UDP */
#define BATCH_MAX   32
#define CLASS_IN    1
#define ROOT_WIRE   1 /* length of the name of the root */

static const char text_denied[] = "the network policy of this sandbox does not allow this name";
static const char text_dropped[] =
		"the network policy of this sandbox has no rule for this private address";

void reply_send(struct resolver *r, const struct dns_query *q, const struct dns_answer *a,
		uint32_t age, const struct reply_to *to)
{
	AUTO(buf) struct buf out = BUF_INIT(DNS_MESSAGE_MAX);

	(void)r;
	dns_reply(q, a, age, to->asker ? DNS_MESSAGE_MAX : q->udp_max, &out);
	if (to->asker) {
		asker_reply(to->asker, buf_span(&out));
	} else if (to->udp_fd >= 0) {
		/* A full buffer loses it, as the network does. */
		(void)!sendto(to->udp_fd, out.p, out.n, MSG_DONTWAIT,
				(const struct sockaddr *)&to->peer, to->peer_n);
	}
}

static void deny(struct resolver *r, const struct dns_query *q, int rule, const char *why)
{
	struct netd_denial d = { .proto = NETPOLICY_ANY, .rule = rule, .why = why };

	memcpy(d.name, q->name, sizeof(d.name));
	netd_deny(r->n, &d);
}

/* Is the name closed? Then it has been answered. */
static bool is_denied(struct resolver *r, const struct dns_query *q, const struct reply_to *to)
{
	static const struct dns_answer nothing = {
		.rcode = DNS_NXDOMAIN,
		.ede = DNS_EDE_BLOCKED,
		.ede_text = text_denied,
	};
	static const struct dns_answer refused = { .rcode = DNS_REFUSED };

	if (q->class != CLASS_IN || q->wire_n <= ROOT_WIRE) {
		reply_send(r, q, &refused, 0, to);
		return true;
	}
	/* What is no host name could be below a name that is denied. */
	struct netpolicy_verdict v = { .allowed = false, .rule = NETPOLICY_BY_DEFAULT };

	if (q->name[0] != '\0') {
		v = netpolicy_ask(&r->n->policy, q->name);
	}
	if (v.allowed) {
		return false;
	}
	deny(r, q, v.rule, q->name[0] == '\0' ? "the name is no host name" : NULL);
	reply_send(r, q, &nothing, 0, to);
	return true;
}

static void names_learn(struct resolver *r, const struct dns_query *q, const struct dns_answer *a,
		uint32_t age)
{
	uint32_t ttl = a->ttl > age ? a->ttl - age : 0;

	for (size_t i = 0; i < a->addrs_n; i++) {
		names_add(&r->n->names, q->name, &a->addrs[i], ttl, clock_boot_ms());
	}
}

bool resolver_take(struct resolver *r, struct span message, const struct reply_to *to,
		struct question **out_q)
{
	struct dns_query q = { .id = 0 };
	int rcode = dns_query_read(message, &q);
	uint32_t age = 0;

	*out_q = NULL;
	if (rcode < 0) {
		return false;
	}
	if (rcode > 0 || !dns_type_is_asked(q.type)) {
		const struct dns_answer plain = { .rcode = (enum dns_rcode)rcode };

		if (rcode > 0 || !is_denied(r, &q, to)) {
			reply_send(r, &q, &plain, 0, to);
		}
		return true;
	}
	if (is_denied(r, &q, to)) {
		return true;
	}
	question_look(r);
	const struct dns_answer *known = cache_find(r, &q, &age);

	if (known) {
		names_learn(r, &q, known, age);
		reply_send(r, &q, known, age, to);
	} else {
		*out_q = question_ask(r, &q, to);
	}
	return true;
}

bool resolver_keeps(void *ctx, const struct netaddr *a)
{
	const struct resolver *r = ctx;
	const struct netpolicy *p = &r->n->policy;

	if (netaddr_kind(a) == NETADDR_PUBLIC) {
		return true;
	}
	/* Whether its port is open is seen when a connection is made. */
	for (size_t i = 0; i < p->n; i++) {
		if (p->rules[i].kind == NETPOLICY_PREFIX && p->rules[i].action == NETPOLICY_ALLOW &&
				netprefix_has(&p->rules[i].prefix, a)) {
			return true;
		}
	}
	return false;
}

void resolver_learn(struct resolver *r, const struct dns_query *q, struct dns_answer *a,
		const struct reply_to *to)
{
	if (is_denied(r, q, to)) {
		dns_answer_done(a);
		return;
	}
	if (a->dropped_n > 0 && a->addrs_n == 0) {
		a->ede = DNS_EDE_FILTERED;
		a->ede_text = text_dropped;
		deny(r, q, NETPOLICY_BY_RESERVED, text_dropped);
	}
	names_learn(r, q, a, 0);
	reply_send(r, q, a, 0, to);
	cache_add(r, q, a);
}

static void on_datagram(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct listener *l = container_of(src, struct listener, src);
	char message[MESSAGE_MAX];

	(void)loop;
	(void)events;
	for (int i = 0; i < BATCH_MAX; i++) {
		struct reply_to to = { .udp_fd = l->fd, .peer_n = sizeof(to.peer) };
		struct question *q = NULL;
		ssize_t n = recvfrom(l->fd, message, sizeof(message), MSG_DONTWAIT | MSG_TRUNC,
				(struct sockaddr *)&to.peer, &to.peer_n);

		if (n < 0) {
			return;
		}
		if ((size_t)n <= sizeof(message)) {
			const struct span bytes = { .p = message, .n = (size_t)n };

			(void)resolver_take(l->r, bytes, &to, &q);
		}
	}
}

static int listen_at(struct resolver *r, struct listener *l, const char *addr, int type)
{
	l->r = r;
	l->fd = socket_home(addr, NETD_PORT_DNS, type);
	if (l->fd < 0) {
		return l->fd;
	}
	if (type == SOCK_STREAM) {
		return loop_add(r->n->loop, &l->src, l->fd, EPOLLIN, asker_on_listener);
	}
	int rc = socket_fix(&l->fd, l == &r->udp[0] ? NETD_FIXED_DNS4 : NETD_FIXED_DNS6);

	return rc < 0 ? rc : loop_add(r->n->loop, &l->src, l->fd, EPOLLIN, on_datagram);
}

int resolver_start(struct netd *n, struct error *e)
{
	static const char *const homes[] = { NETD_HOME4, NETD_HOME6 };
	struct resolver *r = mem_new(struct resolver);

	r->n = n;
	n->resolver = r;
	for (size_t i = 0; i < ARRAY_SIZE(homes); i++) {
		if (i == 1 && !n->has_ipv6) {
			break;
		}
		int rc = listen_at(r, &r->udp[i], homes[i], SOCK_DGRAM);

		rc = rc < 0 ? rc : listen_at(r, &r->tcp[i], homes[i], SOCK_STREAM);
		if (rc < 0) {
			return error_sys(e, -rc, "listen on %s port %d for the resolver", homes[i],
					NETD_PORT_DNS);
		}
	}
	return 0;
}

void resolver_set(struct netd *n, const int *fds, size_t fds_n)
{
	struct resolver *r = n->resolver;

	for (size_t i = 0; i < r->upstreams_n; i++) {
		loop_remove(n->loop, &r->upstreams[i].src);
		fd_close(&r->upstreams[i].fd);
	}
	r->upstreams_n = 0;
	for (size_t i = 0; i < fds_n; i++) {
		struct upstream *u = &r->upstreams[r->upstreams_n];

		u->r = r;
		u->fd = fds[i];
		u->number = (uint16_t)i;
		if (fd_set_nonblock(u->fd, true) == 0 &&
				loop_add(n->loop, &u->src, u->fd, EPOLLIN, question_on_upstream) ==
						0) {
			r->upstreams_n++;
		} else {
			fd_close(&u->fd);
		}
	}
	/* Another network may know other names, or the same ones at other addresses. */
	cache_purge(r);
	question_restart_all(r);
}

void resolver_recheck(struct netd *n)
{
	cache_purge(n->resolver);
}
