/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_msg - messages of the domain name system, byte by byte, for tests.
 */
#ifndef OSBX_TESTS_UNIT_POLICY_DNS_MSG_H
#define OSBX_TESTS_UNIT_POLICY_DNS_MSG_H

#include <errno.h>

#include <osbx/mem.h>
#include <osbx/str.h>

#include "../../../policy/dns.h"
#include "../unit.h"

#define ID       0x1234
#define QR       0x8000
#define TC       0x0200
#define RD       0x0100
#define CD       0x0010
#define NXDOMAIN 3

/* A message in the making. */
struct msg {
	uint8_t p[DNS_MESSAGE_MAX];
	size_t n;
};

static inline void put8(struct msg *m, unsigned int v)
{
	ck_assert_uint_lt(m->n, sizeof(m->p));
	m->p[m->n++] = (uint8_t)v;
}

static inline void put16(struct msg *m, unsigned int v)
{
	put8(m, v >> 8);
	put8(m, v & 0xff);
}

static inline void put32(struct msg *m, uint32_t v)
{
	put16(m, v >> 16);
	put16(m, v & 0xffff);
}

/* "a.test" in labels; "@N" at the end is a pointer to N, "" is the root. */
static inline void put_name(struct msg *m, const char *name)
{
	while (*name && *name != '@') {
		const size_t n = strcspn(name, ".@");

		put8(m, (unsigned int)n);
		for (size_t i = 0; i < n; i++) {
			put8(m, (uint8_t)name[i]);
		}
		name += n + (name[n] == '.');
	}
	if (*name == '@') {
		uint64_t to = 0;

		ck_assert_int_eq(str_to_u64(name + 1, 0x3fff, &to), 0);
		put16(m, 0xc000 | (unsigned int)to);
	} else {
		put8(m, 0);
	}
}

/* Begin a message. */
static inline void put_head(struct msg *m, unsigned int flags, const unsigned int counts[4])
{
	m->n = 0;
	put16(m, ID);
	put16(m, flags);
	for (int i = 0; i < 4; i++) {
		put16(m, counts[i]);
	}
}

static inline void put_question(struct msg *m, const char *name, unsigned int type)
{
	put_name(m, name);
	put16(m, type);
	put16(m, 1);
}

static inline void put_record(struct msg *m, const char *owner, unsigned int type, uint32_t ttl)
{
	put_name(m, owner);
	put16(m, type);
	put16(m, 1);
	put32(m, ttl);
}

static inline void put_a(struct msg *m, const char *owner, uint32_t ttl, uint32_t addr)
{
	put_record(m, owner, DNS_A, ttl);
	put16(m, 4);
	put32(m, addr);
}

/* A record whose data is a name, behind before (2 or 6 bytes for MX and SRV). */
static inline void put_named(struct msg *m, const char *owner, unsigned int type, size_t before,
		const char *name)
{
	put_record(m, owner, type, 300);
	const size_t at = m->n;

	put16(m, 0);
	for (size_t i = 0; i < before; i++) {
		put8(m, (unsigned int)i);
	}
	put_name(m, name);
	m->p[at] = (uint8_t)((m->n - at - 2) >> 8);
	m->p[at + 1] = (uint8_t)(m->n - at - 2);
}

static inline void put_soa(struct msg *m, const char *owner, uint32_t ttl, uint32_t minimum)
{
	put_record(m, owner, DNS_SOA, ttl);
	const size_t at = m->n;

	put16(m, 0);
	put_name(m, "ns@12");
	put_name(m, "mail.test");
	for (uint32_t i = 0; i < 4; i++) {
		put32(m, i);
	}
	put32(m, minimum);
	m->p[at + 1] = (uint8_t)(m->n - at - 2);
}

static inline void put_edns(struct msg *m, unsigned int size, unsigned int version)
{
	put8(m, 0);
	put16(m, DNS_OPT);
	put16(m, size);
	put32(m, version << 16);
	put16(m, 0);
}

static inline struct span bytes_of(const struct msg *m)
{
	return (struct span){ .p = (const char *)m->p, .n = m->n };
}

static inline void ask_for(
		const char *name, unsigned int type, bool has_edns, struct dns_query *out)
{
	static struct msg m;

	put_head(&m, RD, (const unsigned int[]){ 1, 0, 0, has_edns });
	put_question(&m, name, type);
	if (has_edns) {
		put_edns(&m, 4096, 0);
	}
	ck_assert_int_eq(dns_query_read(bytes_of(&m), out), 0);
}

#endif
