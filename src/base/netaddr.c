/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <osbx/netaddr.h>

#define V4_PARTS  4
#define V6_GROUPS 8

struct place4 {
	uint32_t addr;
	uint8_t bits;
	uint8_t kind;
};

/* IANA IPv4 special-purpose registry; what it does not name is public. Ranges do not overlap. */
static const struct place4 places4[] = {
	{ 0x00000000, 8, NETADDR_NOWHERE },  /* this network: Linux takes 0.0.0.0 for itself */
	{ 0x0a000000, 8, NETADDR_PRIVATE },  /* RFC 1918 */
	{ 0x64400000, 10, NETADDR_PRIVATE }, /* shared, RFC 6598; a cloud's metadata, too */
	{ 0x7f000000, 8, NETADDR_LOOPBACK },
	{ 0xa83f8110, 32, NETADDR_LINK_LOCAL }, /* 168.63.129.16: what a host of Azure tells */
	{ 0xa9fe0000, 16, NETADDR_LINK_LOCAL }, /* with 169.254.169.254 */
	{ 0xac100000, 12, NETADDR_PRIVATE },    /* RFC 1918 */
	{ 0xc0000000, 24, NETADDR_PRIVATE },    /* protocol assignments, RFC 6890 */
	{ 0xc0586300, 24, NETADDR_PRIVATE },    /* relays of 6to4, RFC 7526 */
	{ 0xc0a80000, 16, NETADDR_PRIVATE },    /* RFC 1918 */
	{ 0xc6120000, 15, NETADDR_PRIVATE },    /* benchmarks, RFC 2544 */
	{ 0xe0000000, 3, NETADDR_NOWHERE },     /* multicast, reserved, broadcast */
};

struct place6 {
	uint64_t high, low;
	uint8_t bits;
	uint8_t kind;
	uint8_t face; /* where the IPv4 address begins that it carries; 0: none */
};

/* What holds for an address is the most dangerous of its rows; none: only 2000::/3 is public. */
static const struct place6 places6[] = {
	{ 0, 0, 128, NETADDR_NOWHERE, 0 }, { 0, 1, 128, NETADDR_LOOPBACK, 0 },
	{ 0, 0x0000ffff00000000, 96, NETADDR_PUBLIC, 12 },  /* mapped */
	{ 0, 0xffff000000000000, 96, NETADDR_PUBLIC, 12 },  /* translated, RFC 7915 */
	{ 0, 0, 96, NETADDR_PRIVATE, 12 },                  /* compatible */
	{ 0x0064ff9b00000000, 0, 96, NETADDR_PUBLIC, 12 },  /* NAT64, RFC 6052 */
	{ 0x0064ff9b00010000, 0, 48, NETADDR_PRIVATE, 12 }, /* local NAT64, RFC 8215 */
	{ 0x2002000000000000, 0, 16, NETADDR_PUBLIC, 2 },   /* 6to4 */
	{ 0x2001000000000000, 0, 23, NETADDR_PRIVATE, 0 },  /* protocols, Teredo */
	{ 0x2000000000000000, 0, 3, NETADDR_PUBLIC, 0 },
	{ 0xfc00000000000000, 0, 7, NETADDR_PRIVATE, 0 },          /* RFC 4193 */
	{ 0xfd000ec200000000, 0x254, 128, NETADDR_LINK_LOCAL, 0 }, /* metadata of EC2 */
	{ 0xfd2000ce00000000, 0x254, 128, NETADDR_LINK_LOCAL, 0 }, /* metadata of Google's */
	{ 0xfe80000000000000, 0, 10, NETADDR_LINK_LOCAL, 0 },
	{ 0xfec0000000000000, 0, 10, NETADDR_PRIVATE, 0 }, /* site-local, RFC 3879 */
	{ 0xff00000000000000, 0, 8, NETADDR_NOWHERE, 0 },  /* multicast */
};

static const char *const kind_names[NETADDR_KIND_COUNT] = {
	[NETADDR_PUBLIC] = "public",
	[NETADDR_PRIVATE] = "private",
	[NETADDR_LINK_LOCAL] = "link-local",
	[NETADDR_LOOPBACK] = "loopback",
	[NETADDR_NOWHERE] = "unroutable",
};

static uint8_t bits_of(const struct netaddr *a)
{
	return a->family == 4 ? 32 : 128;
}

/* One decimal or hexadecimal digit, or -1. */
static int digit_of(char c)
{
	if (c >= '0' && c <= '9') {
		return c - '0';
	}
	if (c >= 'a' && c <= 'f') {
		return c - 'a' + 10;
	}
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decimal number 0..max without leading zeros, the whole of text. */
static int parse_decimal(struct span text, unsigned int max, uint8_t *out)
{
	unsigned int v = 0;

	if (text.n == 0 || text.n > 3 || (text.n > 1 && text.p[0] == '0')) {
		return -EINVAL;
	}
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] < '0' || text.p[i] > '9') {
			return -EINVAL;
		}
		v = v * 10 + (unsigned int)(text.p[i] - '0');
	}
	if (v > max) {
		return -EINVAL;
	}
	*out = (uint8_t)v;
	return 0;
}

static int parse4(struct span text, uint8_t out[V4_PARTS])
{
	struct span part = { .p = NULL };
	size_t n = 0;

	while (span_next(&text, '.', &part)) {
		if (n == V4_PARTS || parse_decimal(part, 255, &out[n]) < 0) {
			return -EINVAL;
		}
		n++;
	}
	return n == V4_PARTS ? 0 : -EINVAL;
}

/* Groups of hexadecimal digits between single colons, the last one maybe an IPv4 address: their
 * number, at most V6_GROUPS, or -EINVAL. No text, no groups. */
static int parse_groups(struct span text, bool may_end_in_v4, uint8_t out[2 * V6_GROUPS])
{
	struct span part = { .p = NULL };
	int n = 0;

	if (text.n > 0 && text.p[text.n - 1] == ':') {
		return -EINVAL;
	}
	while (text.n > 0) {
		unsigned int v = 0;

		(void)span_next(&text, ':', &part);
		if (memchr(part.p, '.', part.n)) {
			if (!may_end_in_v4 || text.n > 0 || n > V6_GROUPS - 2 ||
					parse4(part, out + 2 * (size_t)n) < 0) {
				return -EINVAL;
			}
			return n + 2;
		}
		if (part.n == 0 || part.n > 4 || n == V6_GROUPS) {
			return -EINVAL;
		}
		for (size_t i = 0; i < part.n; i++) {
			const int digit = digit_of(part.p[i]);

			if (digit < 0) {
				return -EINVAL;
			}
			v = v << 4 | (unsigned int)digit;
		}
		out[2 * (size_t)n] = (uint8_t)(v >> 8);
		out[2 * (size_t)n + 1] = (uint8_t)v;
		n++;
	}
	return n;
}

static int parse6(struct span text, uint8_t out[2 * V6_GROUPS])
{
	uint8_t tail[2 * V6_GROUPS] = { 0 };
	const char *gap = memmem(text.p, text.n, "::", 2);
	const struct span head = { .p = text.p, .n = gap ? (size_t)(gap - text.p) : text.n };
	const struct span rest = span_from(text, gap ? head.n + 2 : text.n);
	const int head_n = parse_groups(head, !gap, out);
	const int tail_n = head_n < 0 ? head_n : parse_groups(rest, true, tail);

	if (tail_n < 0) {
		return -EINVAL;
	}
	/* "::" stands for at least one group. */
	if (gap ? head_n + tail_n >= V6_GROUPS : head_n != V6_GROUPS) {
		return -EINVAL;
	}
	memset(out + 2 * (size_t)head_n, 0, 2 * (size_t)(V6_GROUPS - head_n));
	memcpy(out + 2 * (size_t)(V6_GROUPS - tail_n), tail, 2 * (size_t)tail_n);
	return 0;
}

int netaddr_parse(struct span text, struct netaddr *out)
{
	struct netaddr a = { .family = 4 };

	if (text.n == 0 || text.n >= NETADDR_TEXT_MAX) {
		return -EINVAL;
	}
	if (memchr(text.p, ':', text.n)) {
		a.family = 6;
		if (parse6(text, a.bytes) < 0) {
			return -EINVAL;
		}
	} else if (parse4(text, a.bytes) < 0) {
		return -EINVAL;
	}
	*out = a;
	return 0;
}

/* Are all bits behind the first ones 0? */
static bool is_clear_behind(const struct netaddr *a, uint8_t bits)
{
	for (uint8_t i = bits; i < bits_of(a); i++) {
		if (a->bytes[i / 8] & (0x80 >> i % 8)) {
			return false;
		}
	}
	return true;
}

int netprefix_parse(struct span text, struct netprefix *out)
{
	const char *slash = memchr(text.p, '/', text.n);
	const struct span addr = { .p = text.p, .n = slash ? (size_t)(slash - text.p) : text.n };
	struct netprefix p;

	if (netaddr_parse(addr, &p.addr) < 0) {
		return -EINVAL;
	}
	p.bits = bits_of(&p.addr);
	if (slash && parse_decimal(span_from(text, addr.n + 1), p.bits, &p.bits) < 0) {
		return -EINVAL;
	}
	if (!is_clear_behind(&p.addr, p.bits)) {
		return -EINVAL;
	}
	*out = p;
	return 0;
}

static unsigned int group_of(const struct netaddr *a, size_t i)
{
	return (unsigned int)a->bytes[2 * i] << 8 | a->bytes[2 * i + 1];
}

static bool is_mapped(const struct netaddr *a)
{
	static const uint8_t head[12] = { [10] = 0xff, [11] = 0xff };

	return a->family == 6 && memcmp(a->bytes, head, sizeof(head)) == 0;
}

/* The first of the longest runs of at least two groups that are 0: its length, or 0. */
static int longest_gap(const struct netaddr *a, int *out_at)
{
	int best = 0;

	for (int i = 0; i < V6_GROUPS; i++) {
		int n = 0;

		while (i + n < V6_GROUPS && group_of(a, i + n) == 0) {
			n++;
		}
		if (n > best) {
			best = n;
			*out_at = i;
		}
		i += n;
	}
	return best >= 2 ? best : 0;
}

void netaddr_format(const struct netaddr *a, char out[NETADDR_TEXT_MAX])
{
	const uint8_t *b = a->bytes;
	int at = 0;
	int n = 0;

	if (a->family == 4 || is_mapped(a)) {
		b += a->family == 4 ? 0 : 12;
		(void)snprintf(out, NETADDR_TEXT_MAX, "%s%u.%u.%u.%u",
				a->family == 4 ? "" : "::ffff:", b[0], b[1], b[2], b[3]);
		return;
	}
	const int gap = longest_gap(a, &at);

	out[0] = '\0';
	for (int i = 0; i < V6_GROUPS; i++) {
		if (gap > 0 && i == at) {
			n += snprintf(out + n, NETADDR_TEXT_MAX - (size_t)n, "::");
			i += gap - 1;
			continue;
		}
		n += snprintf(out + n, NETADDR_TEXT_MAX - (size_t)n, "%s%x",
				n > 0 && out[n - 1] != ':' ? ":" : "", group_of(a, i));
	}
}

bool netprefix_has(const struct netprefix *p, const struct netaddr *a)
{
	const size_t whole = p->bits / 8;
	const uint8_t mask = (uint8_t)(0xff00 >> p->bits % 8);

	return p->addr.family == a->family && memcmp(p->addr.bytes, a->bytes, whole) == 0 &&
	       (p->bits % 8 == 0 || ((p->addr.bytes[whole] ^ a->bytes[whole]) & mask) == 0);
}

bool netaddr_eq(const struct netaddr *a, const struct netaddr *b)
{
	return a->family == b->family && memcmp(a->bytes, b->bytes, bits_of(a) / 8) == 0;
}

/* size bytes in network order. */
static uint64_t number_at(const uint8_t *p, size_t size)
{
	uint64_t v = 0;

	for (size_t i = 0; i < size; i++) {
		v = v << 8 | p[i];
	}
	return v;
}

static bool has_place4(const struct place4 *place, uint32_t addr)
{
	return ((addr ^ place->addr) >> (32 - place->bits)) == 0;
}

static bool has_place6(const struct place6 *place, const struct netaddr *a)
{
	const uint64_t high = number_at(a->bytes, 8) ^ place->high;
	const uint64_t low = number_at(a->bytes + 8, 8) ^ place->low;

	if (place->bits <= 64) {
		return high >> (64 - place->bits) == 0;
	}
	return high == 0 && low >> (128 - place->bits) == 0;
}

/* The kind that all addresses which begin with the first bits of these have at least. */
static enum netaddr_kind kind4(const uint8_t *bytes, uint8_t bits)
{
	const uint32_t addr = (uint32_t)number_at(bytes, 4);

	for (size_t i = 0; i < ARRAY_SIZE(places4); i++) {
		if (bits >= places4[i].bits && has_place4(&places4[i], addr)) {
			return places4[i].kind;
		}
	}
	return NETADDR_PUBLIC;
}

static enum netaddr_kind kind6(const struct netaddr *a, uint8_t bits)
{
	enum netaddr_kind kind = NETADDR_PUBLIC;
	bool is_known = false;

	for (size_t i = 0; i < ARRAY_SIZE(places6); i++) {
		const struct place6 *row = &places6[i];

		if (bits < row->bits || !has_place6(row, a)) {
			continue;
		}
		enum netaddr_kind this = row->kind;

		if (row->bits == 128) {
			return this;
		}
		if (row->face > 0 && bits > 8 * row->face) {
			const unsigned int rest = bits - 8U * row->face;
			const enum netaddr_kind face = kind4(
					a->bytes + row->face, (uint8_t)(rest < 32 ? rest : 32));

			this = face > this ? face : this;
		}
		kind = this > kind ? this : kind;
		is_known = true;
	}
	/* 2000::/3 and what carries IPv4 in ::/8 are where something public is. */
	const bool may_be_public = bits < 3 || (a->bytes[0] == 0 && bits < 96);

	return is_known || may_be_public ? kind : NETADDR_PRIVATE;
}

enum netaddr_kind netprefix_kind(const struct netprefix *p)
{
	return p->addr.family == 4 ? kind4(p->addr.bytes, p->bits) : kind6(&p->addr, p->bits);
}

enum netaddr_kind netaddr_kind(const struct netaddr *a)
{
	return a->family == 4 ? kind4(a->bytes, 32) : kind6(a, 128);
}

const char *netaddr_kind_name(enum netaddr_kind kind)
{
	return (unsigned int)kind < NETADDR_KIND_COUNT ? kind_names[kind] : "unknown";
}

void netaddr_unmap(struct netaddr *a)
{
	if (is_mapped(a)) {
		memmove(a->bytes, a->bytes + 12, 4);
		memset(a->bytes + 4, 0, 12);
		a->family = 4;
	}
}

socklen_t netaddr_to_sock(const struct netaddr *a, uint16_t port, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof(*out));
	if (a->family == 4) {
		struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

		memcpy(&in.sin_addr, a->bytes, 4);
		memcpy(out, &in, sizeof(in));
		return sizeof(in);
	}
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	memcpy(&in6.sin6_addr, a->bytes, 16);
	memcpy(out, &in6, sizeof(in6));
	return sizeof(in6);
}

int netaddr_from_sock(const struct sockaddr_storage *sa, struct netaddr *out, uint16_t *out_port)
{
	struct netaddr a = { .family = 4 };

	if (sa->ss_family == AF_INET) {
		struct sockaddr_in in;

		memcpy(&in, sa, sizeof(in));
		memcpy(a.bytes, &in.sin_addr, 4);
		*out_port = ntohs(in.sin_port);
	} else if (sa->ss_family == AF_INET6) {
		struct sockaddr_in6 in6;

		a.family = 6;
		memcpy(&in6, sa, sizeof(in6));
		memcpy(a.bytes, &in6.sin6_addr, 16);
		netaddr_unmap(&a);
		*out_port = ntohs(in6.sin6_port);
	} else {
		return -EAFNOSUPPORT;
	}
	*out = a;
	return 0;
}
