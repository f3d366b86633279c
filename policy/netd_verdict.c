/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * A connection has an address, and a program has had it from somewhere. Three things are known:
 *
 *     by_address   the address is allowed with no name at all: a rule with an address or prefix, or
 *                  a public address under a policy that allows by default
 *     bound names  names that have answered with this address (netd_names.h)
 *     the said one what the program says in its first bytes (TLS SNI, HTTP Host)
 *
 * When it is accepted, it must be allowed by one of the bound names, or, having none, by its
 * address. When a name is said, that name itself must be allowed, and, unless the address is
 * allowed without names, must have answered with this address: else a program could go anywhere
 * with an allowed name on its lips. When none is said, on the ports of the web that is allowed by
 * address alone; on others an allowed bound name is enough, since most protocols say none.
 */
#include <stdio.h>
#include <stdlib.h>

#include <osbx/clock.h>
#include <osbx/mem.h>

#include "netd_flow.h"

void verdict_log(const struct flow *f, int rule, const char *name, const char *why)
{
	struct netd_denial d = {
		.addr = f->addr,
		.port = f->port,
		.proto = NETPOLICY_TCP,
		.rule = rule,
		.why = why,
	};

	(void)snprintf(d.name, sizeof(d.name), "%s", name ? name : "");
	netd_deny(f->r->n, &d);
}

bool verdict_is_web(uint16_t port)
{
	return port == 80 || port == 443;
}

bool verdict_looks(const struct netd *n)
{
	for (size_t i = 0; i < n->policy.n && n->begin.binds_names; i++) {
		if (n->policy.rules[i].kind != NETPOLICY_PREFIX) {
			return true;
		}
	}
	return false;
}

/* With this name alone, or none. */
static struct netpolicy_verdict check(const struct flow *f, const char *name)
{
	const struct netpolicy_flow flow = {
		.addr = f->addr,
		.port = f->port,
		.proto = NETPOLICY_TCP,
		.names = &name,
		.names_n = name ? 1 : 0,
	};

	return netpolicy_check(&f->r->n->policy, &flow);
}

static void name_set(struct flow *f, const char *name, bool is_proven)
{
	free(f->by_name);
	f->by_name = mem_strdup(name);
	f->is_proven = is_proven;
}

bool verdict_accept(struct flow *f)
{
	const char *names[NAMES_FOUND];
	size_t n = names_find(&f->r->n->names, &f->addr, clock_boot_ms(), names);
	struct netpolicy_verdict v = check(f, NULL);

	f->by_address = v.allowed;
	for (size_t i = 0; i < n; i++) {
		v = check(f, names[i]);
		if (v.allowed) {
			name_set(f, names[i], !verdict_is_web(f->port));
			return true;
		}
	}
	if (!v.allowed) {
		verdict_log(f, v.rule, n > 0 ? names[n - 1] : NULL, NULL);
	}
	return v.allowed;
}

bool verdict_name(struct flow *f, const char *name)
{
	if (name[0] == '\0') {
		return verdict_no_name(f, "the client named an address");
	}
	struct netpolicy_verdict v = check(f, name);

	if (!v.allowed) {
		verdict_log(f, v.rule, name, "the client named this host");
		return false;
	}
	const bool is_bound = names_has(&f->r->n->names, &f->addr, name, clock_boot_ms());

	if (!f->by_address && !is_bound) {
		verdict_log(f, v.rule, name,
				"the client named a host that has not answered with this address");
		return false;
	}
	name_set(f, name, is_bound);
	return true;
}

bool verdict_no_name(struct flow *f, const char *why)
{
	if (f->by_address || (f->by_name && !verdict_is_web(f->port))) {
		return true;
	}
	verdict_log(f, NETPOLICY_BY_DEFAULT, f->by_name, why);
	return false;
}

bool verdict_again(struct flow *f)
{
	struct netpolicy_verdict v = check(f, NULL);

	f->by_address = v.allowed;
	if (f->by_name) {
		v = check(f, f->by_name);
	}
	/* Until now its address was enough, and nobody knows whom it talks to; of one that is
	 * undecided the name is still asked for. */
	const bool is_unknown = f->is_decided && !f->by_address && !f->is_proven &&
				f->r->n->begin.binds_names;

	if (!v.allowed || is_unknown) {
		verdict_log(f, v.allowed ? NETPOLICY_BY_DEFAULT : v.rule, f->by_name,
				"the policy was changed");
		return false;
	}
	return true;
}
