/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "dns_wire.h"

/* More pointers than a name can have labels only cost time. */
#define POINTERS_MAX 127
#define LABEL_MAX    63
#define POINTER_MARK 0xc0U

int dns_read16(struct span m, size_t *at, uint16_t *out)
{
	if (*at > m.n || m.n - *at < 2) {
		return -EBADMSG;
	}
	*out = (uint16_t)((uint8_t)m.p[*at] << 8 | (uint8_t)m.p[*at + 1]);
	*at += 2;
	return 0;
}

int dns_read32(struct span m, size_t *at, uint32_t *out)
{
	uint16_t high = 0;
	uint16_t low = 0;

	if (dns_read16(m, at, &high) < 0 || dns_read16(m, at, &low) < 0) {
		return -EBADMSG;
	}
	*out = (uint32_t)high << 16 | low;
	return 0;
}

int dns_read_head(struct span m, size_t *at, struct dns_head *out)
{
	uint16_t *const fields[] = { &out->id, &out->flags, &out->questions, &out->answers,
		&out->authority, &out->additional };

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		if (dns_read16(m, at, fields[i]) < 0) {
			return -EBADMSG;
		}
	}
	return 0;
}

int dns_read_name(struct span m, size_t *at, struct dns_name *out)
{
	struct dns_name name = { .n = 0 };
	size_t pos = *at;
	size_t end = 0;      /* behind the name where it was asked for */
	size_t before = *at; /* pointers lead to what is before them, always further back */
	int pointers = 0;

	for (;;) {
		if (pos >= m.n) {
			return -EBADMSG;
		}
		const uint8_t n = (uint8_t)m.p[pos];

		if ((n & POINTER_MARK) == POINTER_MARK) {
			uint16_t to = 0;

			if (dns_read16(m, &pos, &to) < 0 || ++pointers > POINTERS_MAX) {
				return -EBADMSG;
			}
			end = end ? end : pos;
			to &= (uint16_t) ~(POINTER_MARK << 8);
			if (to >= before) {
				return -EBADMSG;
			}
			before = to;
			pos = to;
			continue;
		}
		if (n > LABEL_MAX || m.n - pos <= n || name.n + n + 1U > DNS_WIRE_MAX) {
			return -EBADMSG;
		}
		memcpy(name.wire + name.n, m.p + pos, n + 1U);
		name.n = (uint8_t)(name.n + n + 1);
		pos += n + 1U;
		if (n == 0) {
			break;
		}
	}
	*at = end ? end : pos;
	*out = name;
	return 0;
}

int dns_read_record(struct span m, size_t *at, struct dns_record *out)
{
	uint16_t n = 0;

	if (dns_read_name(m, at, &out->owner) < 0 || dns_read16(m, at, &out->type) < 0 ||
			dns_read16(m, at, &out->class) < 0 || dns_read32(m, at, &out->ttl) < 0 ||
			dns_read16(m, at, &n) < 0 || m.n - *at < n) {
		return -EBADMSG;
	}
	out->at = *at;
	out->data = (struct span){ .p = m.p + *at, .n = n };
	*at += n;
	return 0;
}

static uint8_t lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? (uint8_t)(c - 'A' + 'a') : c;
}

bool dns_name_eq(const struct dns_name *a, const struct dns_name *b)
{
	/* Lengths of labels are below 'A'. */
	for (size_t i = 0; i < a->n && a->n == b->n; i++) {
		if (lower(a->wire[i]) != lower(b->wire[i])) {
			return false;
		}
	}
	return a->n == b->n;
}
