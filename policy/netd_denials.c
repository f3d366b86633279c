/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <osbx/clock.h>
#include <osbx/str.h>

#include "netd_denials.h"
#include "netpolicy_internal.h"

#define AGAIN_MS 1000

static struct netd_denial *slot(struct netd_denials *d, uint64_t seq)
{
	return &d->ring[seq % NETD_DENIALS_MAX];
}

static bool is_same(const struct netd_denial *a, const struct netd_denial *b)
{
	return a->port == b->port && a->proto == b->proto && a->rule == b->rule &&
	       a->why == b->why && netaddr_eq(&a->addr, &b->addr) && str_eq(a->name, b->name);
}

bool netd_denials_add(struct netd_denials *d, const struct netd_denial *what)
{
	const int64_t now_ms = clock_wall_ms();
	const uint64_t oldest = d->last > NETD_DENIALS_MAX ? d->last - NETD_DENIALS_MAX : 0;

	d->total++;
	for (uint64_t seq = d->last; seq > oldest; seq--) {
		struct netd_denial *old = slot(d, seq);

		if (now_ms - old->time_ms >= AGAIN_MS) {
			break;
		}
		if (is_same(old, what)) {
			old->times++;
			return false;
		}
	}
	struct netd_denial *new = slot(d, ++d->last);

	*new = *what;
	new->seq = d->last;
	new->time_ms = now_ms;
	new->times = 1;
	return true;
}

/* What decided: the rule, or why there was none. */
static const char *reason_of(const struct netd_denial *n)
{
	if (n->why) {
		return n->why;
	}
	switch (n->rule) {
	case NETPOLICY_BY_DEFAULT:
		return "default action";
	case NETPOLICY_BY_RESERVED:
		return "not a public address";
	case NETPOLICY_BY_PORT:
		return "DNS over TLS, which needs a rule with its port";
	default:
		return "rule";
	}
}

/* A question to the resolver has none of interest. */
static const char *protocol_of(const struct netd_denial *n)
{
	const char *name = netpolicy_proto_name(n->proto);

	return name ? name : n->addr.family != 0 ? "icmp" : NULL;
}

static void denial_format(const struct netd_denial *n, struct json_writer *w)
{
	char text[NETADDR_TEXT_MAX];
	char time[40];

	clock_rfc3339(n->time_ms, time, sizeof(time));
	json_object_begin(w, NULL);
	json_add_u64(w, "seq", n->seq);
	json_add_string(w, "time", time);
	json_add_u64(w, "times", n->times);
	if (n->name[0] != '\0') {
		json_add_string(w, "name", n->name);
	}
	if (n->addr.family != 0) {
		netaddr_format(&n->addr, text);
		json_add_string(w, "address", text);
	}
	if (n->port != 0) {
		json_add_u64(w, "port", n->port);
	}
	if (protocol_of(n)) {
		json_add_string(w, "protocol", protocol_of(n));
	}
	json_add_string(w, "reason", reason_of(n));
	if (n->rule >= 0) {
		json_add_u64(w, "rule", (uint64_t)n->rule);
		json_add_string(w, "target", n->target);
	}
	json_object_end(w);
}

void netd_denials_format(const struct netd_denials *d, uint64_t after, struct json_writer *w)
{
	const uint64_t oldest = d->last > NETD_DENIALS_MAX ? d->last - NETD_DENIALS_MAX : 0;

	json_object_begin(w, NULL);
	json_array_begin(w, "denials");
	for (uint64_t seq = after > oldest ? after : oldest; seq < d->last; seq++) {
		denial_format(&d->ring[(seq + 1) % NETD_DENIALS_MAX], w);
	}
	json_array_end(w);
	json_add_u64(w, "last", d->last);
	json_add_u64(w, "total", d->total);
	json_object_end(w);
}
