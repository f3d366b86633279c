/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_internal - the host's side of a private network: what is the host's own (net_route.c),
 * which resolvers it has (net_resolvers.c), and sockets to the outside (net_dial.c).
 */
#ifndef OSBX_ENGINE_NET_INTERNAL_H
#define OSBX_ENGINE_NET_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <osbx/compiler.h>
#include <osbx/netaddr.h>
#include <osbx/netd.h>
#include <osbx/netpolicy.h>
#include <osbx/span.h>

/* Does the host itself, or a whole network at once, answer at this address? Asks the kernel's
 * routes, so it holds for addresses that came a moment ago. 1, 0 (also where no route leads) or
 * -errno. */
int net_route_is_own(const struct netaddr *a) MUST_CHECK NONNULL(1);

#define NET_RESOLV_CONF "/etc/resolv.conf"

struct net_resolvers {
	uint32_t n;
	struct sockaddr_storage addrs[NETD_RESOLVERS_MAX]; /* port 53 */
	socklen_t lens[NETD_RESOLVERS_MAX];
};

/* Name servers of resolv.conf(5), in its order; what is none is passed over. */
void net_resolvers_parse(struct span text, struct net_resolvers *out_r) NONNULL(2);
/* The same of a file; without one there are none. */
void net_resolvers_read(const char *path, struct net_resolvers *out_r) NONNULL(1, 2);
bool net_resolvers_eq(const struct net_resolvers *a, const struct net_resolvers *b) NONNULL(1, 2);
/* UDP sockets connected to them, the caller's. How many, some may be missing at the end: where no
 * route leads there is no socket. Their order is kept, r is reduced to what is there. */
uint32_t net_resolvers_open(struct net_resolvers *r, int out_fds[NETD_RESOLVERS_MAX]) NONNULL(1, 2);

/* Sockets that netd has asked for: O_NONBLOCK, connected or connecting (netd_dialed). fd; -EACCES
 * when the policy's rules for addresses do not allow it; -errno. kind is TCP, UDP or PING. */
int net_dial(const struct netpolicy *policy, const struct netd_dial *what,
		uint16_t *out_ident) MUST_CHECK NONNULL(1, 2, 3);
/* TCP to one of them. fd or -errno. */
int net_dial_resolver(const struct net_resolvers *r, uint16_t number) MUST_CHECK NONNULL(1);
/* A socket for echo requests and their replies, not connected. fd; -EPROTONOSUPPORT: the machine
 * lets this user have none (icmp(7), ping_group_range). */
int net_ping_open(bool is_6, uint16_t *out_ident) MUST_CHECK NONNULL(2);
/* Can one be had? */
bool net_ping_is_there(void) MUST_CHECK;

#endif
