/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include <osbx/compiler.h>

#include "netd_packet.h"

#define IP4_BYTES   20U /* without options, as it is written here */
#define IP6_BYTES   40U
#define HEAD_BYTES  8U /* of UDP and of ICMP */
#define TTL         64
#define ECHO4       8
#define ECHO4_REPLY 0
#define ECHO6       128
#define ECHO6_REPLY 129
#define FRAGMENT    0x3fff /* "more" and the offset */

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)((p[0] << 8) | p[1]);
}

static void put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static void put32(uint8_t *p, uint32_t v)
{
	put16(p, v >> 16);
	put16(p + 2, v);
}

/* RFC 1071, not yet complemented. */
static uint32_t sum_add(uint32_t sum, const uint8_t *p, size_t n)
{
	for (; n > 1; p += 2, n -= 2) {
		sum += get16(p);
	}
	if (n > 0) {
		sum += (uint32_t)p[0] << 8;
	}
	/* So that a next piece does not overflow. */
	return (sum & 0xffff) + (sum >> 16);
}

static uint16_t sum_end(uint32_t sum)
{
	while (sum >> 16) {
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return (uint16_t)~sum;
}

static size_t address_bytes(const struct netaddr *a)
{
	return a->family == 4 ? 4 : 16;
}

static size_t ip_bytes(const struct netaddr *a)
{
	return a->family == 4 ? IP4_BYTES : IP6_BYTES;
}

/* The header of a packet with body_n bytes behind it. */
static void ip_put(uint8_t *p, const struct netaddr *from, const struct netaddr *to,
		uint8_t protocol, size_t body_n)
{
	memset(p, 0, ip_bytes(from));
	if (from->family == 6) {
		p[0] = 0x60;
		put16(p + 4, (uint32_t)body_n);
		p[6] = protocol;
		p[7] = TTL;
		memcpy(p + 8, from->bytes, 16);
		memcpy(p + 24, to->bytes, 16);
		return;
	}
	p[0] = 0x45;
	put16(p + 2, (uint32_t)(IP4_BYTES + body_n));
	p[8] = TTL;
	p[9] = protocol;
	memcpy(p + 12, from->bytes, 4);
	memcpy(p + 16, to->bytes, 4);
	put16(p + 10, sum_end(sum_add(0, p, IP4_BYTES)));
}

/* Of a body, with the pseudo-header (RFC 768; RFC 8200 section 8.1), which ICMP of IPv4 has not. */
static uint16_t body_sum(const struct netaddr *from, const struct netaddr *to, uint8_t protocol,
		const uint8_t *body, size_t n)
{
	uint32_t sum = 0;

	if (protocol != IPPROTO_ICMP) {
		sum = sum_add(sum, from->bytes, address_bytes(from));
		sum = sum_add(sum, to->bytes, address_bytes(to));
		sum += protocol + (uint32_t)n;
	}
	return sum_end(sum_add(sum, body, n));
}

static uint8_t icmp_protocol(const struct netaddr *a)
{
	return a->family == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6;
}

static uint8_t echo_type(const struct netaddr *a)
{
	return a->family == 4 ? ECHO4 : ECHO6;
}

static int echo_parse4(const uint8_t *p, size_t n, struct datagram *g)
{
	if (n < IP4_BYTES || (p[0] >> 4) != 4) {
		return -ENOMSG;
	}
	size_t head = (size_t)(p[0] & 0xf) * 4;
	size_t whole = get16(p + 2);

	if (head < IP4_BYTES || whole > n || whole < head + HEAD_BYTES || p[9] != IPPROTO_ICMP ||
			(get16(p + 6) & FRAGMENT) != 0) {
		return -ENOMSG;
	}
	g->from.family = g->to.family = 4;
	memcpy(g->from.bytes, p + 12, 4);
	memcpy(g->to.bytes, p + 16, 4);
	g->payload = (struct span){ .p = (const char *)p + head, .n = whole - head };
	return 0;
}

static int echo_parse6(const uint8_t *p, size_t n, struct datagram *g)
{
	if (n < IP6_BYTES + HEAD_BYTES || (p[0] >> 4) != 6) {
		return -ENOMSG;
	}
	size_t body = get16(p + 4);

	if (body < HEAD_BYTES || body > n - IP6_BYTES || p[6] != IPPROTO_ICMPV6) {
		return -ENOMSG;
	}
	g->from.family = g->to.family = 6;
	memcpy(g->from.bytes, p + 8, 16);
	memcpy(g->to.bytes, p + 24, 16);
	g->payload = (struct span){ .p = (const char *)p + IP6_BYTES, .n = body };
	return 0;
}

int echo_parse(struct span packet, struct datagram *out_g)
{
	struct datagram g = { .kind = DATAGRAM_ECHO };
	const uint8_t *p = (const uint8_t *)packet.p;

	if (echo_parse4(p, packet.n, &g) < 0 && echo_parse6(p, packet.n, &g) < 0) {
		return -ENOMSG;
	}
	const uint8_t *message = (const uint8_t *)g.payload.p;

	if (message[0] != echo_type(&g.to) || message[1] != 0) {
		return -ENOMSG;
	}
	g.from_port = get16(message + 4);
	g.to_port = get16(message + 6);
	g.payload = span_from(g.payload, HEAD_BYTES);
	*out_g = g;
	return 0;
}

static size_t echo_put(uint8_t *p, uint8_t type, const struct datagram *g, struct span payload)
{
	p[0] = type;
	p[1] = 0;
	put16(p + 2, 0);
	put16(p + 4, g->from_port);
	put16(p + 6, g->to_port);
	if (payload.n > 0) {
		memmove(p + HEAD_BYTES, payload.p, payload.n);
	}
	return HEAD_BYTES + payload.n;
}

/* Does it fit into a packet between these two? */
static bool fits(const struct datagram *g, size_t payload_n)
{
	size_t most = g->to.family == 4 ? UINT16_MAX - IP4_BYTES : UINT16_MAX;

	return payload_n <= most - HEAD_BYTES;
}

int echo_request(const struct datagram *g, uint8_t out_message[NETD_PACKET_MAX])
{
	if (!fits(g, g->payload.n)) {
		return -EMSGSIZE;
	}
	size_t n = echo_put(out_message, echo_type(&g->to), g, g->payload);

	/* The kernel does it anew but for raw sockets of IPv4. */
	if (g->to.family == 4) {
		put16(out_message + 2, body_sum(&g->from, &g->to, IPPROTO_ICMP, out_message, n));
	}
	return (int)n;
}

int echo_reply(uint8_t family, struct span message, uint16_t *out_sequence,
		struct span *out_payload)
{
	const uint8_t *p = (const uint8_t *)message.p;

	/* A raw socket's. No reply begins like an IPv4 header. */
	if (family == 4 && message.n >= IP4_BYTES && (p[0] >> 4) == 4) {
		message = span_from(message, (size_t)(p[0] & 0xf) * 4);
		p = (const uint8_t *)message.p;
	}
	if (message.n < HEAD_BYTES || p[0] != (family == 4 ? ECHO4_REPLY : ECHO6_REPLY)) {
		return -ENOMSG;
	}
	*out_sequence = get16(p + 6);
	*out_payload = span_from(message, HEAD_BYTES);
	return 0;
}

static void udp_put(uint8_t *p, const struct datagram *asked, struct span payload)
{
	put16(p, asked->to_port);
	put16(p + 2, asked->from_port);
	put16(p + 4, (uint32_t)(HEAD_BYTES + payload.n));
	put16(p + 6, 0);
	if (payload.n > 0) {
		memmove(p + HEAD_BYTES, payload.p, payload.n);
	}
}

int datagram_answer(const struct datagram *asked, struct span payload,
		uint8_t out_packet[NETD_PACKET_MAX])
{
	const size_t head = ip_bytes(&asked->to);
	uint8_t *body = out_packet + head;
	uint8_t protocol = IPPROTO_UDP;
	size_t n = HEAD_BYTES + payload.n;

	if (!fits(asked, payload.n)) {
		return -EMSGSIZE;
	}
	if (asked->kind == DATAGRAM_UDP) {
		udp_put(body, asked, payload);
	} else {
		protocol = icmp_protocol(&asked->to);
		(void)echo_put(body, asked->to.family == 4 ? ECHO4_REPLY : ECHO6_REPLY, asked,
				payload);
	}
	uint16_t sum = body_sum(&asked->to, &asked->from, protocol, body, n);

	/* 0 would say that there is none (RFC 768). */
	put16(body + (protocol == IPPROTO_UDP ? 6 : 2),
			sum == 0 && protocol == IPPROTO_UDP ? 0xffff : sum);
	ip_put(out_packet, &asked->to, &asked->from, protocol, n);
	return (int)(head + n);
}

/* Type and code: IPv4 (RFC 792, 1812), IPv6 (RFC 4443). */
static const uint8_t refusals[REFUSAL_COUNT][2][2] = {
	[REFUSAL_PROHIBITED] = { { 3, 13 }, { 1, 1 } },
	[REFUSAL_PORT] = { { 3, 3 }, { 1, 4 } },
	[REFUSAL_HOST] = { { 3, 1 }, { 1, 3 } },
	[REFUSAL_TOO_BIG] = { { 3, 4 }, { 2, 0 } },
};

/* The packet it is about: its IP header and eight bytes, by which its socket is found. */
static size_t quote_put(uint8_t *p, const struct datagram *g)
{
	const size_t head = ip_bytes(&g->to);
	uint8_t *body = p + head;

	if (g->kind == DATAGRAM_UDP) {
		put16(body, g->from_port);
		put16(body + 2, g->to_port);
		put16(body + 4, (uint32_t)(HEAD_BYTES + g->payload.n));
		put16(body + 6, 0);
	} else {
		(void)echo_put(body, echo_type(&g->to), g, (struct span){ .p = NULL });
	}
	ip_put(p, &g->from, &g->to, g->kind == DATAGRAM_UDP ? IPPROTO_UDP : icmp_protocol(&g->to),
			HEAD_BYTES + g->payload.n);
	return head + HEAD_BYTES;
}

int datagram_refuse(const struct datagram *g, enum refusal why, uint32_t mtu,
		uint8_t out_packet[NETD_PACKET_MAX])
{
	const size_t head = ip_bytes(&g->to);
	const uint8_t *type = refusals[why][g->to.family == 6];
	uint8_t *body = out_packet + head;
	uint8_t protocol = icmp_protocol(&g->to);

	memset(body, 0, HEAD_BYTES);
	body[0] = type[0];
	body[1] = type[1];
	if (why == REFUSAL_TOO_BIG) {
		/* IPv4 has 16 bits for it, behind 16 unused ones (RFC 1191). */
		put32(body + 4, g->to.family == 4 && mtu > UINT16_MAX ? UINT16_MAX : mtu);
	}
	size_t n = HEAD_BYTES + quote_put(body + HEAD_BYTES, g);

	put16(body + 2, body_sum(&g->to, &g->from, protocol, body, n));
	ip_put(out_packet, &g->to, &g->from, protocol, n);
	return (int)(head + n);
}
