/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netd_inside - datagrams of a sandbox's programs, as they come from lo, and packets back to them.
 *
 * UDP is led here by tproxy (netd_rules.c) to a socket that is told each destination (IP(7),
 * IP_RECVORIGDSTADDR). Of echo requests, which the rules drop, a packet socket has a copy. What
 * goes back has the address that was asked as its source: raw sockets, whole packets.
 */
#ifndef OSBX_POLICY_NETD_INSIDE_H
#define OSBX_POLICY_NETD_INSIDE_H

#include "netd_internal.h"
#include "netd_packet.h"

struct inside;

/* Open all sockets, which needs rights. take is called for each datagram (borrowed) that one of the
 * sandbox's own addresses has sent to another one. NULL on failure. */
struct inside *inside_open(struct netd *n, void (*take)(void *ctx, const struct datagram *g),
		void *ctx, struct error *e) MUST_CHECK NONNULL(1, 2, 4);
/* A packet for an address of the sandbox's; what cannot be delivered is lost. */
void inside_send(const struct inside *in, const struct netaddr *to, const uint8_t *packet, size_t n)
		NONNULL(1, 2, 3);

#endif
