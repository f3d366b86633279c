/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "dns_wire.h"

#define ASK_MAX 300

static const uint16_t asked_types[] = { DNS_A, DNS_NS, DNS_CNAME, DNS_SOA, DNS_PTR, DNS_MX, DNS_TXT,
	DNS_AAAA, DNS_SRV, DNS_NAPTR, DNS_SSHFP, DNS_TLSA, DNS_CAA };

bool dns_type_is_asked(uint16_t type)
{
	for (size_t i = 0; i < ARRAY_SIZE(asked_types); i++) {
		if (asked_types[i] == type) {
			return true;
		}
	}
	return false;
}

/* The text of a name in normal form; "" when it is no host name. */
static void name_to_text(const struct dns_name *name, char out[NETPOLICY_NAME_MAX + 1])
{
	char text[DNS_WIRE_MAX];
	size_t n = 0;

	out[0] = '\0';
	for (size_t i = 0; name->wire[i] > 0; i += name->wire[i] + 1U) {
		for (size_t k = 1; k <= name->wire[i]; k++) {
			const uint8_t c = name->wire[i + k];

			/* A dot within a label would make two of it; raw UTF-8 is another name
			 * than the "xn--" one that netpolicy_name would make of it. */
			if (c == '.' || c >= 0x80) {
				return;
			}
			text[n++] = (char)c;
		}
		text[n++] = '.';
	}
	if (netpolicy_name((struct span){ .p = text, .n = n }, out) < 0) {
		out[0] = '\0';
	}
}

/* EDNS (RFC 6891) in the additional section, which ends the message. */
static int read_additional(struct span m, size_t *at, uint16_t n, struct dns_query *out)
{
	int result = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct dns_record r;

		if (dns_read_record(m, at, &r) < 0) {
			return DNS_FORMERR;
		}
		if (r.type != DNS_OPT) {
			continue;
		}
		if (out->has_edns || r.owner.n != 1) {
			return DNS_FORMERR;
		}
		out->has_edns = true;
		out->udp_max = r.class < DNS_UDP_MIN   ? DNS_UDP_MIN
			       : r.class > DNS_UDP_MAX ? DNS_UDP_MAX
						       : r.class;
		if ((r.ttl >> 16 & 0xff) != 0) {
			result = DNS_BADVERS;
		}
	}
	return *at == m.n ? result : DNS_FORMERR;
}

static int read_question(struct span m, size_t *at, struct dns_query *out)
{
	struct dns_name name;
	const size_t from = *at;
	size_t behind = *at;

	/* The first name of a message has nothing to point to. */
	if (dns_read_name(m, &behind, &name) < 0 || behind - from != name.n ||
			dns_read16(m, &behind, &out->type) < 0 ||
			dns_read16(m, &behind, &out->class) < 0) {
		return DNS_FORMERR;
	}
	memcpy(out->wire, name.wire, name.n);
	out->wire_n = name.n;
	name_to_text(&name, out->name);
	*at = behind;
	return 0;
}

int dns_query_read(struct span message, struct dns_query *out)
{
	struct dns_head head;
	size_t at = 0;

	*out = (struct dns_query){ .udp_max = DNS_UDP_MIN };
	if (dns_read_head(message, &at, &head) < 0 || (head.flags & DNS_FLAG_QR)) {
		return -EBADMSG;
	}
	out->id = head.id;
	out->wants_recursion = head.flags & DNS_FLAG_RD;
	out->is_unchecked = head.flags & DNS_FLAG_CD;
	if ((head.flags & DNS_OPCODE_MASK) != 0) {
		return DNS_NOTIMP;
	}
	if (head.questions != 1 || head.answers != 0 || head.authority != 0 ||
			read_question(message, &at, out) != 0) {
		return DNS_FORMERR;
	}
	const int result = read_additional(message, &at, head.additional, out);

	if (result != 0) {
		return result;
	}
	return out->class == DNS_CLASS_IN ? 0 : DNS_REFUSED;
}

void dns_ask(const struct dns_query *q, uint16_t id, bool with_edns, struct buf *out)
{
	const uint8_t head[DNS_HEAD_SIZE] = { (uint8_t)(id >> 8), (uint8_t)id, DNS_FLAG_RD >> 8,
		0, [5] = 1, [11] = with_edns };
	const uint8_t tail[] = { (uint8_t)(q->type >> 8), (uint8_t)q->type, 0, DNS_CLASS_IN };
	const uint8_t opt[] = { 0, 0, DNS_OPT, DNS_UDP_MAX >> 8, DNS_UDP_MAX & 0xff, 0, 0, 0, 0, 0,
		0 };
	uint8_t message[ASK_MAX];
	size_t n = sizeof(head);

	_Static_assert(sizeof(head) + DNS_WIRE_MAX + sizeof(tail) + sizeof(opt) <= ASK_MAX,
			"the longest question");
	memcpy(message, head, sizeof(head));
	/* In one case for all: which letters of a name are capitals is nobody's message. */
	for (size_t i = 0; i < q->wire_n; i++) {
		const uint8_t c = q->wire[i];

		message[n++] = c >= 'A' && c <= 'Z' ? (uint8_t)(c - 'A' + 'a') : c;
	}
	memcpy(message + n, tail, sizeof(tail));
	n += sizeof(tail);
	if (with_edns) {
		memcpy(message + n, opt, sizeof(opt));
		n += sizeof(opt);
	}
	buf_reset(out);
	const int status = buf_append(out, message, n);

	assert(status == 0);
	(void)status;
}
