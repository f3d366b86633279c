/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * netaddr - IPv4 and IPv6 addresses and prefixes: text, sockets, and what kind of place they are.
 *
 * An address that carries an IPv4 one (mapped ::ffff:0:0/96, translated ::ffff:0:0:0/96, compatible
 * ::/96, NAT64 64:ff9b::/96 and 64:ff9b:1::/48, 6to4 2002::/16) has two faces; netaddr_kind looks
 * at both and tells the more dangerous one.
 */
#ifndef OSBX_NETADDR_H
#define OSBX_NETADDR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <osbx/compiler.h>
#include <osbx/span.h>

#define NETADDR_TEXT_MAX 48 /* with the NUL */

struct netaddr {
	uint8_t family;    /* 4 or 6 */
	uint8_t bytes[16]; /* network order; an IPv4 address in the first four, the rest 0 */
};

struct netprefix {
	struct netaddr addr; /* bits behind the length are 0 */
	uint8_t bits;        /* 0..32 or 0..128 */
};

/* What an address is, by the IANA special-purpose registries (RFC 6890 and its successors). Only
 * what no rule of its own is needed for is PUBLIC. */
enum netaddr_kind {
	NETADDR_PUBLIC,     /* also the documentation ranges: nothing of a host is there */
	NETADDR_PRIVATE,    /* RFC 1918, shared 100.64/10, fc00::/7, fec0::/10, 192.0.0.0/24,
			       198.18/15,    Teredo, all IPv6 that is not assigned */
	NETADDR_LINK_LOCAL, /* 169.254/16, fe80::/10, and metadata services elsewhere:
			       fd00:ec2::254, fd20:ce::254, 168.63.129.16 */
	NETADDR_LOOPBACK,   /* 127/8, ::1 */
	NETADDR_NOWHERE,    /* 0/8, ::, multicast, broadcast, 240/4: never a peer of TCP */
	NETADDR_KIND_COUNT,
};

/* Dotted quad (four decimal parts, no leading zeros) or RFC 4291 text without zone and brackets. 0
 * or -EINVAL. */
int netaddr_parse(struct span text, struct netaddr *out) MUST_CHECK NONNULL(2);
/* "ADDR/BITS", or "ADDR" with all bits. Bits set behind the length: -EINVAL. */
int netprefix_parse(struct span text, struct netprefix *out) MUST_CHECK NONNULL(2);
/* RFC 5952. */
void netaddr_format(const struct netaddr *a, char out[NETADDR_TEXT_MAX]) NONNULL(1);
bool netprefix_has(const struct netprefix *p, const struct netaddr *a) NONNULL(1, 2);
bool netaddr_eq(const struct netaddr *a, const struct netaddr *b) NONNULL(1, 2);
enum netaddr_kind netaddr_kind(const struct netaddr *a) NONNULL(1);
/* What all addresses of a prefix are at least: PUBLIC as soon as one of them may be. */
enum netaddr_kind netprefix_kind(const struct netprefix *p) NONNULL(1);
/* "public", "private", … */
const char *netaddr_kind_name(enum netaddr_kind kind);
/* A mapped IPv6 address (::ffff:0:0/96) becomes the IPv4 one it means, all others stay. */
void netaddr_unmap(struct netaddr *a) NONNULL(1);
/* Socket address of a and port; returns its length. */
socklen_t netaddr_to_sock(const struct netaddr *a, uint16_t port, struct sockaddr_storage *out)
		NONNULL(1, 3);
/* Reverse, unmapped. 0 or -EAFNOSUPPORT. */
int netaddr_from_sock(const struct sockaddr_storage *sa, struct netaddr *out,
		uint16_t *out_port) MUST_CHECK NONNULL(1, 2, 3);

#endif
