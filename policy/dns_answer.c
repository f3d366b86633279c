/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/mem.h>

#include "dns_wire.h"

/* A reply has a head, a question and EDNS besides. */
#define RECORDS_BYTES_MAX (DNS_MESSAGE_MAX - 1024)
#define POINTER           0xc000U

/* What the data of a type is made of: n a name, 2 a number of 16 bits, s a string behind its
 * length, t strings to the end, S five numbers of 32 bits, * any bytes. */
static const struct {
	uint16_t type;
	const char *form;
} forms[] = {
	{ DNS_NS, "n" },
	{ DNS_CNAME, "n" },
	{ DNS_SOA, "nnS" },
	{ DNS_PTR, "n" },
	{ DNS_MX, "2n" },
	{ DNS_TXT, "t" },
	{ DNS_SRV, "222n" },
	{ DNS_NAPTR, "22sssn" },
	{ DNS_SSHFP, "*" },
	{ DNS_TLSA, "*" },
	{ DNS_CAA, "*" },
};

/* An answer in the making. */
struct reading {
	const struct dns_query *q;
	const struct dns_filter *filter;
	struct span message;
	size_t answers_at, answers_n;
	size_t authority_at, authority_n;
	struct buf records;
	struct dns_name name;  /* what is looked for: the asked one, or where aliases have led */
	uint16_t name_pointer; /* to it, in a reply */
	struct dns_answer out;
};

void dns_answer_done(struct dns_answer *a)
{
	free(a->records);
	free(a->addrs);
	*a = (struct dns_answer){ .rcode = DNS_NOERROR };
}

static int put16(struct buf *b, uint16_t v)
{
	const uint8_t bytes[] = { (uint8_t)(v >> 8), (uint8_t)v };

	return buf_append(b, bytes, sizeof(bytes));
}

static int put32(struct buf *b, uint32_t v)
{
	return put16(b, (uint16_t)(v >> 16)) < 0 || put16(b, (uint16_t)v) < 0 ? -EMSGSIZE : 0;
}

/* Copy n bytes of data that ends at end. */
static int copy_bytes(struct reading *r, size_t *at, size_t end, size_t n)
{
	if (end - *at < n || buf_append(&r->records, r->message.p + *at, n) < 0) {
		return -EBADMSG;
	}
	*at += n;
	return 0;
}

static int copy_string(struct reading *r, size_t *at, size_t end)
{
	return *at < end ? copy_bytes(r, at, end, 1 + (size_t)(uint8_t)r->message.p[*at])
			 : -EBADMSG;
}

static int copy_name(struct reading *r, size_t *at, size_t end)
{
	struct dns_name name;

	return dns_read_name(r->message, at, &name) < 0 || *at > end ||
					       buf_append(&r->records, name.wire, name.n) < 0
			       ? -EBADMSG
			       : 0;
}

static int copy_field(struct reading *r, char form, size_t *at, size_t end)
{
	switch (form) {
	case 'n':
		return copy_name(r, at, end);
	case '2':
		return copy_bytes(r, at, end, 2);
	case 'S':
		return copy_bytes(r, at, end, 20);
	case 's':
		return copy_string(r, at, end);
	case 't':
		do {
			if (copy_string(r, at, end) < 0) {
				return -EBADMSG;
			}
		} while (*at < end);
		return 0;
	default:
		return copy_bytes(r, at, end, end - *at);
	}
}

static int copy_data(struct reading *r, const struct dns_record *rr)
{
	const size_t end = rr->at + rr->data.n;
	const char *form = "*";
	size_t at = rr->at;

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		form = forms[i].type == rr->type ? forms[i].form : form;
	}
	for (; *form; form++) {
		if (copy_field(r, *form, &at, end) < 0) {
			return -EBADMSG;
		}
	}
	return at == end ? 0 : -EBADMSG;
}

static uint32_t ttl_of(const struct dns_record *rr)
{
	/* RFC 2181 section 8: with the first bit it is none. */
	if (rr->ttl > INT32_MAX) {
		return 0;
	}
	return rr->ttl < DNS_TTL_MAX ? rr->ttl : DNS_TTL_MAX;
}

static void limit_ttl(struct reading *r, uint32_t ttl)
{
	r->out.ttl = ttl < r->out.ttl ? ttl : r->out.ttl;
}

/* pointer is to the owner's name, 0: it is written out. */
static int put_record(struct reading *r, const struct dns_record *rr, uint16_t pointer)
{
	struct buf *b = &r->records;

	if ((pointer ? put16(b, POINTER | pointer) : buf_append(b, rr->owner.wire, rr->owner.n)) <
					0 ||
			put16(b, rr->type) < 0 || put16(b, DNS_CLASS_IN) < 0 ||
			put32(b, ttl_of(rr)) < 0 || put16(b, 0) < 0) {
		return -EBADMSG;
	}
	const size_t from = b->n;

	if (copy_data(r, rr) < 0) {
		return -EBADMSG;
	}
	b->p[from - 2] = (char)((b->n - from) >> 8);
	b->p[from - 1] = (char)(b->n - from);
	limit_ttl(r, ttl_of(rr));
	return 0;
}

/* Next record of the answer section that has the name that is looked for, *at and *left go on. 1, 0
 * at the end, -EBADMSG. */
static int next_match(
		struct reading *r, size_t *at, size_t *left, uint16_t type, struct dns_record *out)
{
	while (*left > 0) {
		(*left)--;
		if (dns_read_record(r->message, at, out) < 0) {
			return -EBADMSG;
		}
		if (out->type == type && out->class == DNS_CLASS_IN &&
				dns_name_eq(&out->owner, &r->name)) {
			return 1;
		}
	}
	return 0;
}

/* Follow aliases from the asked name on, wherever in the answer section they are. */
static int follow_aliases(struct reading *r)
{
	for (int n = 0; r->q->type != DNS_CNAME; n++) {
		size_t at = r->answers_at;
		size_t left = r->answers_n;
		struct dns_record rr;
		const int found = next_match(r, &at, &left, DNS_CNAME, &rr);

		if (found <= 0) {
			return found;
		}
		if (n == DNS_ALIASES_MAX || put_record(r, &rr, r->name_pointer) < 0) {
			return -EBADMSG;
		}
		at = rr.at;
		if (dns_read_name(r->message, &at, &r->name) < 0) {
			return -EBADMSG;
		}
		/* It is the last thing that was written: at most 16 times 300 bytes from the
		 * beginning, where pointers reach. */
		r->name_pointer = (uint16_t)(DNS_HEAD_SIZE + r->q->wire_n + 4 + r->records.n -
					     r->name.n);
		r->out.answers_n++;
	}
	return 0;
}

/* Shall this address be part of the answer? 1, 0 or -EBADMSG. */
static int take_address(struct reading *r, const struct dns_record *rr)
{
	const size_t n = rr->type == DNS_A ? 4 : 16;
	struct netaddr a = { .family = rr->type == DNS_A ? 4 : 6 };

	if (rr->data.n != n) {
		return -EBADMSG;
	}
	memcpy(a.bytes, rr->data.p, n);
	if (r->out.addrs_n == DNS_ADDRS_MAX) {
		return 0;
	}
	if (!r->filter->keep(r->filter->ctx, &a)) {
		r->out.dropped_n++;
		limit_ttl(r, ttl_of(rr));
		return 0;
	}
	r->out.addrs[r->out.addrs_n++] = a;
	return 1;
}

static int take_records(struct reading *r)
{
	const uint16_t type = r->q->type;
	const bool is_address = type == DNS_A || type == DNS_AAAA;
	size_t at = r->answers_at;
	size_t left = r->answers_n;
	struct dns_record rr;
	int found = 0;

	if (is_address) {
		r->out.addrs = mem_array(DNS_ADDRS_MAX, sizeof(*r->out.addrs));
	}
	while ((found = next_match(r, &at, &left, type, &rr)) > 0) {
		const int wanted = is_address ? take_address(r, &rr) : 1;

		if (wanted < 0 || (wanted && put_record(r, &rr, r->name_pointer) < 0)) {
			return -EBADMSG;
		}
		r->out.answers_n = (uint16_t)(r->out.answers_n + wanted);
	}
	return found;
}

/* RFC 2308: how long it is true that there is nothing. */
static int take_soa(struct reading *r)
{
	size_t at = r->authority_at;
	struct dns_record rr;

	for (size_t i = 0; i < r->authority_n; i++) {
		if (dns_read_record(r->message, &at, &rr) < 0) {
			return -EBADMSG;
		}
		if (rr.type != DNS_SOA || rr.class != DNS_CLASS_IN) {
			continue;
		}
		if (put_record(r, &rr, 0) < 0) {
			return -EBADMSG;
		}
		size_t minimum_at = rr.at + rr.data.n - 4;
		uint32_t minimum = 0;

		if (dns_read32(r->message, &minimum_at, &minimum) < 0) {
			return -EBADMSG;
		}
		limit_ttl(r, minimum);
		r->out.authority_n = 1;
		return 0;
	}
	return 0;
}

/* Where the sections are, and the rest of the code: EDNS has its upper bits. */
static int read_sections(struct reading *r, size_t at, const struct dns_head *head)
{
	const size_t n[] = { head->answers, head->authority, head->additional };
	unsigned int rcode = head->flags & DNS_RCODE_MASK;
	struct dns_record rr;

	for (size_t section = 0; section < ARRAY_SIZE(n); section++) {
		if (section == 1) {
			r->authority_at = at;
		}
		for (size_t i = 0; i < n[section]; i++) {
			if (dns_read_record(r->message, &at, &rr) < 0) {
				return -EBADMSG;
			}
			if (section == 2 && rr.type == DNS_OPT) {
				rcode |= rr.ttl >> 24 << 4;
			}
		}
	}
	r->answers_n = head->answers;
	r->authority_n = head->authority;
	/* A server that does not know our version of EDNS (there is but one) is a broken one. */
	r->out.rcode = rcode == DNS_BADVERS  ? DNS_FORMERR
		       : rcode > DNS_REFUSED ? DNS_SERVFAIL
					     : (enum dns_rcode)rcode;
	return 0;
}

/* Is it an answer to the question? *at goes behind the question. */
static int read_question(const struct dns_query *q, uint16_t id, struct span m,
		const struct dns_head *head, size_t *at)
{
	struct dns_name asked = { .n = q->wire_n };
	struct dns_name name;
	uint16_t type = 0;
	uint16_t class = 0;

	memcpy(asked.wire, q->wire, q->wire_n);
	if (!(head->flags & DNS_FLAG_QR) || (head->flags & DNS_OPCODE_MASK) || head->id != id) {
		return -EAGAIN;
	}
	/* One that did not understand the question may not repeat it. */
	if (head->questions == 0 && (head->flags & DNS_RCODE_MASK) == DNS_FORMERR) {
		return 0;
	}
	if (head->questions != 1 || dns_read_name(m, at, &name) < 0 ||
			dns_read16(m, at, &type) < 0 || dns_read16(m, at, &class) < 0 ||
			type != q->type || class != DNS_CLASS_IN || !dns_name_eq(&name, &asked)) {
		return -EAGAIN;
	}
	return 0;
}

static int read_records(struct reading *r)
{
	if (r->out.rcode != DNS_NOERROR && r->out.rcode != DNS_NXDOMAIN) {
		r->out.ttl = 0;
		return 0;
	}
	if (follow_aliases(r) < 0) {
		return -EBADMSG;
	}
	const uint16_t aliases_n = r->out.answers_n;

	if (take_records(r) < 0) {
		return -EBADMSG;
	}
	const bool is_empty = r->out.answers_n == aliases_n;

	if (is_empty && r->out.dropped_n > 0) {
		r->out.ede = DNS_EDE_FILTERED;
		r->out.ede_text = "the network policy allows none of the addresses";
		return 0;
	}
	if (is_empty && take_soa(r) < 0) {
		return -EBADMSG;
	}
	if (is_empty && r->out.authority_n == 0) {
		r->out.ttl = 0;
	}
	return 0;
}

int dns_answer_read(const struct dns_query *q, uint16_t id, struct span message,
		const struct dns_filter *filter, struct dns_answer *out)
{
	struct reading r = { .q = q,
		.filter = filter,
		.message = message,
		.records = BUF_INIT(RECORDS_BYTES_MAX),
		.name = { .n = q->wire_n },
		.name_pointer = DNS_HEAD_SIZE,
		.out = { .ttl = DNS_TTL_MAX } };
	struct dns_head head;
	size_t at = 0;

	if (dns_read_head(message, &at, &head) < 0) {
		return -EAGAIN;
	}
	const int is_other = read_question(q, id, message, &head, &at);

	if (is_other < 0) {
		return is_other;
	}
	if (head.flags & DNS_FLAG_TC) {
		return -EMSGSIZE;
	}
	memcpy(r.name.wire, q->wire, q->wire_n);
	r.answers_at = at;
	if (read_sections(&r, at, &head) < 0 || read_records(&r) < 0) {
		buf_done(&r.records);
		dns_answer_done(&r.out);
		return -EBADMSG;
	}
	r.out.records_n = r.records.n;
	r.out.records = (uint8_t *)buf_take(&r.records);
	if (r.out.addrs_n < DNS_ADDRS_MAX / 2) {
		r.out.addrs = mem_resize(r.out.addrs, DNS_ADDRS_MAX, r.out.addrs_n + 1,
				sizeof(*r.out.addrs));
	}
	*out = r.out;
	return 0;
}
