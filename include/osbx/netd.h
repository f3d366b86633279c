/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: policy
 * netd - what stands between a sandbox and the network: its links, resolver, relay and policy API.
 *
 * A process of its own beside each sandbox with a private network: in the sandbox's user and
 * network namespace with CAP_NET_ADMIN alone, no file system, filtered system calls. The keeper
 * starts it, gives it what it needs over one SEQPACKET socket (packet.h) and opens every socket to
 * the outside for it, in its own namespace: netd asks for an address, and gets a socket that is
 * being connected, unless a rule that the keeper checks itself (netpolicy_may_dial) is missing.
 * Killed, it leaves the network closed; the keeper starts it again.
 *
 * keeper                                      netd
 *   spawn `osbx netd`, NETD_CONTROL_FD  ──▶
 *   ── BEGIN {netd_begin; userns, netns, policy memfd} ──▶  enters, links, rules, listeners
 *   ── RESOLVERS {n; UDP sockets connected to them} ──▶
 *   ◀── READY ──                       (or ERROR {struct error})
 *   ◀── DIAL {netd_dial} ──            ── DIALED {netd_dialed; socket} ──▶
 *   ◀── POLICY {memfd} ──              ── SAVED {netd_saved} ──▶
 *   ◀── DENIED {netd_denied} ──
 *   ◀── LOOK ──                        RESOLVERS once more, if they are others now
 */
#ifndef OSBX_NETD_H
#define OSBX_NETD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <osbx/compiler.h>
#include <osbx/netaddr.h>

#define NETD_CONTROL_FD    3
#define NETD_RESOLVERS_MAX 3
#define NETD_TOKEN_MAX     64
#define NETD_PORT          18080 /* the policy API, on 127.0.0.1 of the sandbox */
/* Addresses that every sandbox has, and its resolver's; nobody outside ever sees them (192.0.0.0/29
 * is for one link alone, RFC 6333 section 5.7). */
#define NETD_SELF4     "192.0.0.2"
#define NETD_SELF6     "fd53:4258::2"
#define NETD_RESOLVER4 "192.0.0.1"

enum netd_msg {
	NETD_MSG_BEGIN,
	NETD_MSG_RESOLVERS,
	NETD_MSG_READY,
	NETD_MSG_ERROR,
	NETD_MSG_DIAL,
	NETD_MSG_DIALED,
	NETD_MSG_POLICY,
	NETD_MSG_SAVED,
	NETD_MSG_DENIED,
	NETD_MSG_LOOK,
	NETD_MSG_COUNT,
};

/* Descriptors of BEGIN, in this order: user namespace, network namespace, memfd of the policy's
 * JSON. */
struct netd_begin {
	char token[NETD_TOKEN_MAX +
			1]; /* of the policy API: OPENSANDBOX-EGRESS-AUTH; never empty */
	bool binds_names;   /* check TLS SNI and HTTP Host */
};

struct netd_resolvers {
	uint32_t n; /* descriptors: one UDP socket each, connected, in the order of resolv.conf; 0:
		       the host has none */
};

enum netd_dial_kind {
	NETD_DIAL_TCP,  /* addr, port */
	NETD_DIAL_UDP,  /* addr, port */
	NETD_DIAL_PING, /* addr; EPROTONOSUPPORT: the machine lets its user have no such socket */
	NETD_DIAL_RESOLVER, /* TCP to resolver number port */
	NETD_DIAL_KIND_COUNT,
};

struct netd_dial {
	uint32_t id; /* netd's own, comes back */
	uint16_t kind;
	uint16_t port;
	struct netaddr addr;
};

/* With one descriptor when errnum is 0: O_NONBLOCK, connected or connecting. EACCES: no rule allows
 * it. */
struct netd_dialed {
	uint32_t id;
	int32_t errnum;
	/* PING: what requests are sent with (network order as in the packet is htons of it). The
	 * socket takes and gives ICMP messages from their first byte on; a raw one (root, where
	 * ping sockets are closed by sysctl) gives the IPv4 header before them. */
	uint16_t ident;
};

/* A new policy is in force once it is on record: with an errno the old one stays. */
struct netd_saved {
	int32_t errnum;
};

/* For events and counters; the log itself is netd's (GET /policy/denials). */
struct netd_denied {
	uint64_t seq;
	char what[256]; /* name or address */
	uint16_t port;  /* 0: a question to the resolver */
	int16_t rule;   /* NETPOLICY_BY_* or its index */
};

/* Hidden command: returns an exit status. */
int netd_main(int argc, char **argv) MUST_CHECK;

#endif
