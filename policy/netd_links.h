/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netd_links - what a sandbox's network namespace is made of: addresses, routes, rules.
 *
 * There is no device but lo and nothing leads out of it, whatever becomes of the rules: they only
 * say which connections reach netd, and refuse all others audibly.
 */
#ifndef OSBX_POLICY_NETD_LINKS_H
#define OSBX_POLICY_NETD_LINKS_H

#include <stdbool.h>

#include <osbx/compiler.h>
#include <osbx/error.h>

/* netd's own addresses; ports that no program of a sandbox wants. */
#define NETD_HOME4      "192.0.0.1"
#define NETD_HOME6      "fd53:4258::1"
#define NETD_PORT_RELAY 4
#define NETD_PORT_DNS   6
#define NETD_PORT_UDP   8 /* led there by tproxy: it is told where to */

/* Descriptors from here on (NETD_FIXED_COUNT, a power of two that divides the first) are sockets of
 * the sandbox's own namespace, and the only ones by which netd may send to an address of its choice
 * (secfilter_tables.c): with one that the keeper has connected it could pass the keeper's check. */
#define NETD_FIXED_FIRST 16
enum netd_fixed {
	NETD_FIXED_DNS4,
	NETD_FIXED_DNS6,
	NETD_FIXED_RAW4,
	NETD_FIXED_RAW6,
	NETD_FIXED_COUNT,
};

/* Addresses and routes of this network namespace; what is there already is fine (netd was started
 * again). *out_ipv6: the kernel has IPv6. */
int links_up(bool *out_ipv6, struct error *e) MUST_CHECK NONNULL(1, 2);
/* The rules, in one transaction; they stay while the namespace does. */
int rules_load(struct error *e) MUST_CHECK NONNULL(1);

#endif
