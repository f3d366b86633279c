/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/buf.h>

#include "../../policy/dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool keep_most(void *ctx, const struct netaddr *a)
{
	(void)ctx;
	return a->bytes[0] != 10;
}

static const struct dns_filter filter = { .keep = keep_most };

/* What was made of an answer is one, and says the same. */
static void answer_again(const struct dns_query *q, const struct dns_answer *a)
{
	AUTO(buf) struct buf reply = BUF_INIT(DNS_MESSAGE_MAX);
	AUTO(dns_answer) struct dns_answer again = { .rcode = DNS_NOERROR };

	dns_reply(q, a, 7, q->udp_max, &reply);
	if (reply.n > q->udp_max) {
		abort();
	}
	dns_reply(q, a, 0, DNS_MESSAGE_MAX, &reply);
	if (dns_answer_read(q, q->id, buf_span(&reply), &filter, &again) < 0 ||
			again.rcode != a->rcode || again.records_n != a->records_n ||
			again.addrs_n != a->addrs_n ||
			memcmp(again.records, a->records, a->records_n) != 0) {
		abort();
	}
}

/* The first byte says where in the rest the question ends and the answer begins. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(dns_answer) struct dns_answer a = { .rcode = DNS_NOERROR };
	AUTO(buf) struct buf ask = BUF_INIT(512);
	struct dns_query q;
	struct dns_query again;

	if (size < 1 || size > DNS_MESSAGE_MAX) {
		return 0;
	}
	const size_t cut = data[0] < size - 1 ? data[0] : size - 1;
	const struct span question = { .p = (const char *)data + 1, .n = cut };
	const struct span answer = { .p = (const char *)data + 1 + cut, .n = size - 1 - cut };
	const int status = dns_query_read(question, &q);

	if (status != -EBADMSG) {
		AUTO(buf) struct buf reply = BUF_INIT(DNS_MESSAGE_MAX);
		const struct dns_answer none = { .rcode = (enum dns_rcode)status };

		dns_reply(&q, &none, 0, q.udp_max, &reply);
	}
	if (status != 0 || q.name[0] == '\0' || !dns_type_is_asked(q.type)) {
		return 0;
	}
	dns_ask(&q, q.id, true, &ask);
	if (dns_query_read(buf_span(&ask), &again) != 0 || strcmp(q.name, again.name) != 0) {
		abort();
	}
	if (dns_answer_read(&q, q.id, answer, &filter, &a) == 0) {
		answer_again(&q, &a);
	}
	return 0;
}
