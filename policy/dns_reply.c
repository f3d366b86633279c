/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "dns_wire.h"

#define EDE_OPTION   15 /* RFC 8914 */
#define EDE_TEXT_MAX 200
#define OPT_SIZE     11

static void put(struct buf *out, const void *p, size_t n)
{
	const int status = buf_append(out, p, n);

	assert(status == 0);
	(void)status;
}

static void put16(struct buf *out, uint16_t v)
{
	const uint8_t bytes[] = { (uint8_t)(v >> 8), (uint8_t)v };

	put(out, bytes, sizeof(bytes));
}

static void put_head(
		const struct dns_query *q, const struct dns_answer *a, bool is_cut, struct buf *out)
{
	unsigned int flags = DNS_FLAG_QR | DNS_FLAG_RA | (a->rcode & DNS_RCODE_MASK);

	flags |= q->wants_recursion ? DNS_FLAG_RD : 0;
	flags |= q->is_unchecked ? DNS_FLAG_CD : 0;
	flags |= is_cut ? DNS_FLAG_TC : 0;
	put16(out, q->id);
	put16(out, (uint16_t)flags);
	put16(out, q->wire_n > 0);
	put16(out, is_cut ? 0 : a->answers_n);
	put16(out, is_cut ? 0 : a->authority_n);
	put16(out, q->has_edns);
	if (q->wire_n > 0) {
		put(out, q->wire, q->wire_n);
		put16(out, q->type);
		put16(out, q->class);
	}
}

static size_t text_size(const struct dns_answer *a)
{
	const size_t n = a->ede_text ? strlen(a->ede_text) : 0;

	return n < EDE_TEXT_MAX ? n : EDE_TEXT_MAX;
}

static size_t opt_size(const struct dns_query *q, const struct dns_answer *a)
{
	if (!q->has_edns) {
		return 0;
	}
	return OPT_SIZE + (a->ede == DNS_EDE_NONE ? 0 : 6 + text_size(a));
}

static void put_opt(const struct dns_query *q, const struct dns_answer *a, struct buf *out)
{
	const uint8_t head[] = { 0, 0, DNS_OPT, DNS_UDP_MAX >> 8, DNS_UDP_MAX & 0xff,
		(uint8_t)(a->rcode >> 4), 0, 0, 0 };

	if (!q->has_edns) {
		return;
	}
	put(out, head, sizeof(head));
	put16(out, (uint16_t)(opt_size(q, a) - OPT_SIZE));
	if (a->ede != DNS_EDE_NONE) {
		put16(out, EDE_OPTION);
		put16(out, (uint16_t)(2 + text_size(a)));
		put16(out, a->ede);
		put(out, a->ede_text ? a->ede_text : "", text_size(a));
	}
}

/* Make the TTL of all records less: they begin at from, and were written by dns_answer.c. */
static void age_records(struct buf *out, size_t from, uint32_t age)
{
	const struct span m = buf_span(out);
	size_t at = from;
	struct dns_record rr;

	while (at < m.n && dns_read_record(m, &at, &rr) == 0) {
		const uint32_t ttl = rr.ttl > age ? rr.ttl - age : 0;
		uint8_t *p = (uint8_t *)out->p + rr.at - 6;

		p[0] = (uint8_t)(ttl >> 24);
		p[1] = (uint8_t)(ttl >> 16);
		p[2] = (uint8_t)(ttl >> 8);
		p[3] = (uint8_t)ttl;
	}
}

void dns_reply(const struct dns_query *q, const struct dns_answer *a, uint32_t age, size_t max,
		struct buf *out)
{
	const size_t head_n = DNS_HEAD_SIZE + (q->wire_n > 0 ? q->wire_n + 4U : 0);
	const bool is_cut = head_n + a->records_n + opt_size(q, a) > max;

	buf_reset(out);
	put_head(q, a, is_cut, out);
	if (!is_cut && a->records_n > 0) {
		put(out, a->records, a->records_n);
		age_records(out, head_n, age);
	}
	put_opt(q, a, out);
}
