/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include <osbx/mem.h>
#include <osbx/str.h>

#include "netpolicy_internal.h"

void netpolicy_init(struct netpolicy *p)
{
	*p = (struct netpolicy){ .fallback = NETPOLICY_ALLOW };
}

void netpolicy_rule_done(struct netpolicy_rule *r)
{
	free(r->target);
	free(r->name);
	*r = (struct netpolicy_rule){ .action = NETPOLICY_DENY };
}

void netpolicy_done(struct netpolicy *p)
{
	for (size_t i = 0; i < p->n; i++) {
		netpolicy_rule_done(&p->rules[i]);
	}
	free(p->rules);
	*p = (struct netpolicy){ .fallback = NETPOLICY_DENY };
}

void netpolicy_push(struct netpolicy *p, const struct netpolicy_rule *r)
{
	/* There is always room up to the next power of two. */
	if ((p->n & (p->n - 1)) == 0) {
		p->rules = mem_resize(p->rules, p->n, p->n ? 2 * p->n : 1, sizeof(*p->rules));
	}
	p->rules[p->n++] = *r;
}

void netpolicy_push_copy(struct netpolicy *p, const struct netpolicy_rule *r)
{
	struct netpolicy_rule copy = *r;

	copy.target = mem_strdup(r->target);
	copy.name = mem_strdup(r->name);
	netpolicy_push(p, &copy);
}

void netpolicy_copy(const struct netpolicy *from, struct netpolicy *out)
{
	*out = (struct netpolicy){ .fallback = from->fallback };
	for (size_t i = 0; i < from->n; i++) {
		netpolicy_push_copy(out, &from->rules[i]);
	}
}

bool netpolicy_rule_same(const struct netpolicy_rule *a, const struct netpolicy_rule *b)
{
	if (a->kind != b->kind || a->port != b->port || a->proto != b->proto) {
		return false;
	}
	return a->kind == NETPOLICY_PREFIX
			       ? a->prefix.bits == b->prefix.bits &&
						 netaddr_eq(&a->prefix.addr, &b->prefix.addr)
			       : str_eq(a->name, b->name);
}

int netpolicy_add(struct netpolicy *p, enum netpolicy_action action, const char *target,
		struct error *e)
{
	struct netpolicy_rule r;

	if (str_eq(target, "*")) {
		p->fallback = action;
		return 0;
	}
	if (p->n >= NETPOLICY_RULES_MAX) {
		return error_set(e, ERRC_LIMIT, "more than %d rules", NETPOLICY_RULES_MAX);
	}
	if (netpolicy_target(target, &r, e) < 0) {
		return -1;
	}
	r.action = action;
	netpolicy_push(p, &r);
	return 0;
}

const char *netpolicy_mode(const struct netpolicy *p)
{
	for (size_t i = 0; i < p->n; i++) {
		if (p->rules[i].action != p->fallback) {
			return "enforcing";
		}
	}
	return p->fallback == NETPOLICY_ALLOW ? "allow_all" : "deny_all";
}

static bool name_matches(const struct netpolicy_rule *r, const char *name)
{
	if (r->kind == NETPOLICY_NAME) {
		return str_eq(r->name, name);
	}
	const size_t n = strlen(name);
	const size_t below = strlen(r->name);

	return n > below + 1 && name[n - below - 1] == '.' && str_eq(name + n - below, r->name);
}

/* Does a rule say something about a port? DNS over TLS is only allowed by name of its port. */
static bool rule_is_for(const struct netpolicy_rule *r, uint16_t port, enum netpolicy_proto proto)
{
	if (r->port == 0) {
		return r->action == NETPOLICY_DENY || port != NETPOLICY_DOT;
	}
	return r->port == port && (r->proto == NETPOLICY_ANY || r->proto == proto);
}

struct netpolicy_verdict netpolicy_ask(const struct netpolicy *p, const char *name)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct netpolicy_rule *r = &p->rules[i];

		if (r->kind == NETPOLICY_PREFIX || !name_matches(r, name)) {
			continue;
		}
		/* A port that is denied says nothing about the others. */
		if (r->action == NETPOLICY_ALLOW || r->port == 0) {
			return (struct netpolicy_verdict){ .allowed = r->action == NETPOLICY_ALLOW,
				.rule = (int)i };
		}
	}
	return (struct netpolicy_verdict){ .allowed = p->fallback == NETPOLICY_ALLOW,
		.rule = NETPOLICY_BY_DEFAULT };
}

/* An address as rules see it. */
struct place {
	struct netaddr addr;
	enum netaddr_kind kind;
	bool is_own;
	bool is_reserved;
};

static struct place place_of(const struct netaddr *a, bool is_own)
{
	struct place at = { .addr = *a, .is_own = is_own };

	netaddr_unmap(&at.addr);
	at.kind = netaddr_kind(&at.addr);
	at.is_reserved = is_own || at.kind != NETADDR_PUBLIC;
	return at;
}

/* Does a rule that allows a prefix allow this member of it? "0.0.0.0/0" says something about the
 * internet, and nothing about 10.0.0.1 or the host. */
static bool prefix_opens(const struct netprefix *prefix, const struct place *at)
{
	if (at->kind != NETADDR_PUBLIC) {
		return netprefix_kind(prefix) != NETADDR_PUBLIC;
	}
	return !at->is_own || prefix->bits == (prefix->addr.family == 4 ? 32 : 128);
}

/* What the rules say to one connection, with the one name that is known of its peer, or NULL. */
static struct netpolicy_verdict judge(const struct netpolicy *p, const struct netpolicy_flow *flow,
		const struct place *at, const char *name)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct netpolicy_rule *r = &p->rules[i];
		const bool allows = r->action == NETPOLICY_ALLOW;

		if (!rule_is_for(r, flow->port, flow->proto)) {
			continue;
		}
		if (r->kind == NETPOLICY_PREFIX) {
			if (!netprefix_has(&r->prefix, &at->addr) ||
					(allows && !prefix_opens(&r->prefix, at))) {
				continue;
			}
		} else if (!name || !name_matches(r, name) || (allows && at->is_reserved)) {
			continue;
		}
		return (struct netpolicy_verdict){ .allowed = allows, .rule = (int)i };
	}
	if (at->is_reserved) {
		return (struct netpolicy_verdict){ .allowed = false,
			.rule = NETPOLICY_BY_RESERVED };
	}
	if (flow->port == NETPOLICY_DOT) {
		return (struct netpolicy_verdict){ .allowed = false, .rule = NETPOLICY_BY_PORT };
	}
	return (struct netpolicy_verdict){ .allowed = p->fallback == NETPOLICY_ALLOW,
		.rule = NETPOLICY_BY_DEFAULT };
}

struct netpolicy_verdict netpolicy_check(
		const struct netpolicy *p, const struct netpolicy_flow *flow)
{
	const struct place at = place_of(&flow->addr, flow->is_own);
	struct netpolicy_verdict first = { .allowed = false, .rule = NETPOLICY_BY_RESERVED };

	if (at.kind == NETADDR_NOWHERE) {
		/* Linux takes 0.0.0.0 for the loopback: no rule makes that a peer. */
		return first;
	}
	if (flow->names_n == 0) {
		return judge(p, flow, &at, NULL);
	}
	for (size_t i = 0; i < flow->names_n; i++) {
		const struct netpolicy_verdict v = judge(p, flow, &at, flow->names[i]);

		if (v.allowed) {
			return v;
		}
		first = i == 0 ? v : first;
	}
	return first;
}

bool netpolicy_may_dial(const struct netpolicy *p, const struct netaddr *a, bool is_own,
		uint16_t port, enum netpolicy_proto proto)
{
	const struct place at = place_of(a, is_own);

	if (at.kind == NETADDR_NOWHERE) {
		return false;
	}
	for (size_t i = 0; i < p->n; i++) {
		const struct netpolicy_rule *r = &p->rules[i];
		const bool allows = r->action == NETPOLICY_ALLOW;

		if (!rule_is_for(r, port, proto)) {
			continue;
		}
		if (r->kind != NETPOLICY_PREFIX) {
			if (allows && !at.is_reserved) {
				return true; /* the name may be this one */
			}
		} else if (netprefix_has(&r->prefix, &at.addr) &&
				(!allows || prefix_opens(&r->prefix, &at))) {
			return allows;
		}
	}
	return !at.is_reserved && port != NETPOLICY_DOT && p->fallback == NETPOLICY_ALLOW;
}

bool netpolicy_may_resolve(const struct netpolicy *p, const struct netaddr *a)
{
	const struct place at = place_of(a, false);

	if (at.kind == NETADDR_NOWHERE) {
		return false;
	}
	for (size_t i = 0; i < p->n; i++) {
		const struct netpolicy_rule *r = &p->rules[i];
		const bool allows = r->action == NETPOLICY_ALLOW;

		if (r->kind != NETPOLICY_PREFIX) {
			if (allows && !at.is_reserved) {
				return true;
			}
		} else if (netprefix_has(&r->prefix, &at.addr) &&
				(allows ? prefix_opens(&r->prefix, &at) : r->port == 0)) {
			return allows;
		}
	}
	return !at.is_reserved && p->fallback == NETPOLICY_ALLOW;
}
