/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netd_datagrams - UDP and ping: what a sandbox's programs send without a connection.
 *
 * One socket to the outside for each pair of ends, as a NAT has it; it ends when nothing has been
 * sent or received for some time, or the policy forbids it.
 */
#ifndef OSBX_POLICY_NETD_DATAGRAMS_H
#define OSBX_POLICY_NETD_DATAGRAMS_H

#include "netd_internal.h"

#define DATAGRAM_FLOWS_MAX 256             /* the one that was silent for the longest makes room */
#define DATAGRAM_IDLE_MS   INT64_C(60000)  /* not answered yet, or echo */
#define DATAGRAM_STREAM_MS INT64_C(180000) /* answered: RFC 4787 REQ-5 asks for two minutes */
#define DATAGRAM_HELD_MAX  (256U << 10)    /* bytes of all flows that wait for a socket */

struct datagrams;

/* Open what needs rights: before confine_lock. */
int datagrams_start(struct netd *n, struct error *e) MUST_CHECK NONNULL(1, 2);
/* The policy has changed: cut what it forbids. */
void datagrams_recheck(struct netd *n) NONNULL(1);

#endif
