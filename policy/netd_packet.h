/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netd_packet - single packets of a sandbox's programs, UDP and echo requests, and what is sent
 * back to them: the answer as a packet of the one who was asked, or the ICMP message that says why
 * there is none.
 *
 * IPv4 (RFC 791, 768, 792) and IPv6 (RFC 8200, 4443). A program has no raw socket, and what comes
 * from outside has passed the kernel; all of it is taken for hostile, and every length is checked.
 */
#ifndef OSBX_POLICY_NETD_PACKET_H
#define OSBX_POLICY_NETD_PACKET_H

#include <stddef.h>
#include <stdint.h>

#include <osbx/compiler.h>
#include <osbx/netaddr.h>
#include <osbx/span.h>

#define NETD_PACKET_MAX 65576U /* an IPv6 header and the most it can carry, without jumbograms */

enum datagram_kind {
	DATAGRAM_UDP,
	DATAGRAM_ECHO, /* ICMP and ICMPv6 echo request */
	DATAGRAM_KIND_COUNT,
};

struct datagram {
	enum datagram_kind kind;
	struct netaddr from; /* the program; of the same family as to */
	struct netaddr to;
	uint16_t from_port;  /* ECHO: the identifier */
	uint16_t to_port;    /* ECHO: the sequence number */
	struct span payload; /* without the header of UDP or echo; borrowed */
};

enum refusal {
	REFUSAL_PROHIBITED, /* administratively: a program sees EHOSTUNREACH or EACCES */
	REFUSAL_PORT,       /* ECONNREFUSED */
	REFUSAL_HOST,       /* EHOSTUNREACH */
	REFUSAL_TOO_BIG,    /* EMSGSIZE, with the MTU of the way */
	REFUSAL_COUNT,
};

/* An echo request, from its IP header on, whole. 0, or -ENOMSG: it is none. */
int echo_parse(struct span packet, struct datagram *out_g) MUST_CHECK NONNULL(2);
/* The message of g, an echo, from its ICMP header on, with g->from_port as identifier. Bytes, or
 * -EMSGSIZE. */
int echo_request(const struct datagram *g, uint8_t out_message[NETD_PACKET_MAX]) MUST_CHECK
		NONNULL(1, 2);
/* What a socket of the outside has received (netd_dialed), to a request to an address of this
 * family (4 or 6). 0, or -ENOMSG: no echo reply. */
int echo_reply(uint8_t family, struct span message, uint16_t *out_sequence,
		struct span *out_payload) MUST_CHECK NONNULL(3, 4);

/* The answer to one with kind, addresses and ports as in asked (its payload does not count):
 * from asked->to to asked->from. Bytes, or -EMSGSIZE. */
int datagram_answer(const struct datagram *asked, struct span payload,
		uint8_t out_packet[NETD_PACKET_MAX]) MUST_CHECK NONNULL(1, 3);
/* The ICMP message about g, from the address it was sent to. The head of the packet that it quotes
 * is made anew. mtu counts with TOO_BIG. Bytes. */
int datagram_refuse(const struct datagram *g, enum refusal why, uint32_t mtu,
		uint8_t out_packet[NETD_PACKET_MAX]) MUST_CHECK NONNULL(1, 4);

#endif
