/* SPDX-License-Identifier: Apache-2.0 */
#include "dns_msg.h"

/* Keeps all but 10.0.0.0/8. */
static bool keep_public(void *ctx, const struct netaddr *a)
{
	*(size_t *)ctx += 1;
	return a->family != 4 || a->bytes[0] != 10;
}

static int read_answer(const struct dns_query *q, const struct msg *m, struct dns_answer *out)
{
	size_t calls = 0;
	const struct dns_filter filter = { .keep = keep_public, .ctx = &calls };

	return dns_answer_read(q, ID, bytes_of(m), &filter, out);
}

/* The reply, read back by the reader of answers: they agree. */
static void reply_is_well_formed(
		const struct dns_query *q, const struct dns_answer *a, struct dns_answer *out)
{
	AUTO(buf) struct buf reply = BUF_INIT(DNS_MESSAGE_MAX);
	static struct msg m;

	dns_reply(q, a, 0, DNS_MESSAGE_MAX, &reply);
	memcpy(m.p, reply.p, reply.n);
	m.n = reply.n;
	ck_assert_int_eq(read_answer(q, &m, out), 0);
	ck_assert_uint_eq(out->records_n, a->records_n);
	ck_assert_mem_eq(out->records, a->records, a->records_n);
	ck_assert_uint_eq(out->rcode, a->rcode);
	ck_assert_uint_eq(out->ttl, a->ttl);
	ck_assert_uint_eq(out->addrs_n, a->addrs_n);
}

START_TEST(addresses_through_aliases)
{
	AUTO(dns_answer) struct dns_answer a = { .rcode = DNS_NOERROR };
	AUTO(dns_answer) struct dns_answer again = { .rcode = DNS_NOERROR };
	static struct msg m;
	struct dns_query q;
	char text[NETADDR_TEXT_MAX];

	ask_for("Host.test", DNS_A, true, &q);
	put_head(&m, QR, (const unsigned int[]){ 1, 6, 1, 2 });
	put_question(&m, "hoST.test", DNS_A);
	/* Out of order, with what nobody asked for in between. */
	put_a(&m, "c.cdn.test", 60, 0xcb007101);
	put_named(&m, "B.cdn.test", DNS_CNAME, 0, "c.cdn.test");
	put_a(&m, "other.test", 1, 0xcb007102);
	put_named(&m, "@12", DNS_CNAME, 0, "b.CDN.test");
	put_named(&m, "@12", 46, 0, "rrsig.test");
	put_a(&m, "C.cdn.test", 90, 0xcb007103);
	put_named(&m, "test", DNS_NS, 0, "ns.test");
	put_a(&m, "ns.test", 1, 0xcb007104);
	put_edns(&m, 1232, 0);
	ck_assert_int_eq(read_answer(&q, &m, &a), 0);
	ck_assert_uint_eq(a.rcode, DNS_NOERROR);
	ck_assert_uint_eq(a.answers_n, 4);
	ck_assert_uint_eq(a.authority_n, 0);
	ck_assert_uint_eq(a.addrs_n, 2);
	ck_assert_uint_eq(a.ttl, 60);
	netaddr_format(&a.addrs[0], text);
	ck_assert_str_eq(text, "203.0.113.1");
	netaddr_format(&a.addrs[1], text);
	ck_assert_str_eq(text, "203.0.113.3");
	reply_is_well_formed(&q, &a, &again);
}
END_TEST

START_TEST(addresses_of_ipv6)
{
	AUTO(dns_answer) struct dns_answer a = { .rcode = DNS_NOERROR };
	static struct msg m;
	struct dns_query q;
	char text[NETADDR_TEXT_MAX];

	ask_for("host.test", DNS_AAAA, false, &q);
	put_head(&m, QR, (const unsigned int[]){ 1, 2, 0, 0 });
	put_question(&m, "host.test", DNS_AAAA);
	put_a(&m, "@12", 60, 0xcb007101);
	put_record(&m, "@12", DNS_AAAA, 1000000);
	put16(&m, 16);
	put32(&m, 0x20010db8);
	put32(&m, 0);
	put32(&m, 0);
	put32(&m, 7);
	ck_assert_int_eq(read_answer(&q, &m, &a), 0);
	ck_assert_uint_eq(a.addrs_n, 1);
	ck_assert_uint_eq(a.ttl, DNS_TTL_MAX);
	netaddr_format(&a.addrs[0], text);
	ck_assert_str_eq(text, "2001:db8::7");
}
END_TEST

START_TEST(addresses_are_filtered)
{
	AUTO(dns_answer) struct dns_answer a = { .rcode = DNS_NOERROR };
	AUTO(dns_answer) struct dns_answer none = { .rcode = DNS_NOERROR };
	static struct msg m;
	struct dns_query q;

	ask_for("host.test", DNS_A, true, &q);
	put_head(&m, QR, (const unsigned int[]){ 1, 3, 0, 0 });
	put_question(&m, "host.test", DNS_A);
	put_a(&m, "@12", 60, 0x0a000001);
	put_a(&m, "@12", 60, 0xcb007101);
	put_a(&m, "@12", 60, 0x0a000002);
	ck_assert_int_eq(read_answer(&q, &m, &a), 0);
	ck_assert_uint_eq(a.addrs_n, 1);
	ck_assert_uint_eq(a.answers_n, 1);
	ck_assert_uint_eq(a.dropped_n, 2);
	ck_assert_uint_eq(a.ede, DNS_EDE_NONE);
	/* None is left: no data, and a word why. */
	put_head(&m, QR, (const unsigned int[]){ 1, 2, 0, 0 });
	put_question(&m, "host.test", DNS_A);
	put_named(&m, "@12", DNS_CNAME, 0, "b.test");
	put_a(&m, "b.test", 60, 0x0a000001);
	ck_assert_int_eq(read_answer(&q, &m, &none), 0);
	ck_assert_uint_eq(none.rcode, DNS_NOERROR);
	ck_assert_uint_eq(none.addrs_n, 0);
	ck_assert_uint_eq(none.answers_n, 1);
	ck_assert_uint_eq(none.ttl, 60);
	ck_assert_uint_eq(none.ede, DNS_EDE_FILTERED);
	ck_assert_ptr_nonnull(none.ede_text);
}
END_TEST

START_TEST(more_addresses_than_are_kept)
{
	AUTO(dns_answer) struct dns_answer a = { .rcode = DNS_NOERROR };
	AUTO(dns_answer) struct dns_answer again = { .rcode = DNS_NOERROR };
	AUTO(buf) struct buf reply = BUF_INIT(DNS_MESSAGE_MAX);
	static struct msg m;
	struct dns_query q;

	ask_for("host.test", DNS_A, true, &q);
	put_head(&m, QR, (const unsigned int[]){ 1, 1000, 0, 0 });
	put_question(&m, "host.test", DNS_A);
	for (uint32_t i = 0; i < 1000; i++) {
		put_a(&m, "@12", 60, 0xcb000000 + i);
	}
	ck_assert_int_eq(read_answer(&q, &m, &a), 0);
	ck_assert_uint_eq(a.addrs_n, DNS_ADDRS_MAX);
	ck_assert_uint_eq(a.answers_n, DNS_ADDRS_MAX);
	reply_is_well_formed(&q, &a, &again);
	/* By UDP it says to come again by TCP, and nothing else. */
	dns_reply(&q, &a, 0, q.udp_max, &reply);
	ck_assert_uint_eq(reply.n, 12 + 11 + 4 + 11);
	ck_assert_uint_eq((uint8_t)reply.p[2] & 2, 2);
	ck_assert_uint_eq((uint8_t)reply.p[7], 0);
}
END_TEST

START_TEST(ages)
{
	AUTO(dns_answer) struct dns_answer a = { .rcode = DNS_NOERROR };
	AUTO(dns_answer) struct dns_answer older = { .rcode = DNS_NOERROR };
	AUTO(buf) struct buf reply = BUF_INIT(DNS_MESSAGE_MAX);
	static struct msg m;
	struct dns_query q;

	ask_for("host.test", DNS_A, false, &q);
	put_head(&m, QR, (const unsigned int[]){ 1, 2, 0, 0 });
	put_question(&m, "host.test", DNS_A);
	put_a(&m, "@12", 60, 0xcb007101);
	put_a(&m, "@12", 70, 0xcb007102);
	ck_assert_int_eq(read_answer(&q, &m, &a), 0);
	dns_reply(&q, &a, 50, DNS_MESSAGE_MAX, &reply);
	memcpy(m.p, reply.p, reply.n);
	m.n = reply.n;
	ck_assert_int_eq(read_answer(&q, &m, &older), 0);
	ck_assert_uint_eq(older.ttl, 10);
	dns_answer_done(&older);
	dns_reply(&q, &a, 65, DNS_MESSAGE_MAX, &reply);
	memcpy(m.p, reply.p, reply.n);
	ck_assert_int_eq(read_answer(&q, &m, &older), 0);
	ck_assert_uint_eq(older.ttl, 0);
	ck_assert_uint_eq(m.p[m.n - 7], 5); /* 70 - 65 */
	dns_answer_done(&older);
	/* A number with the first bit is none, RFC 2181. */
	put_head(&m, QR, (const unsigned int[]){ 1, 1, 0, 0 });
	put_question(&m, "host.test", DNS_A);
	put_a(&m, "@12", 0x80000001, 0xcb007101);
	ck_assert_int_eq(read_answer(&q, &m, &older), 0);
	ck_assert_uint_eq(older.ttl, 0);
}
END_TEST

START_TEST(other_types)
{
	static const struct {
		unsigned int type;
		size_t before;
	} rows[] = { { DNS_NS, 0 }, { DNS_PTR, 0 }, { DNS_MX, 2 }, { DNS_SRV, 6 },
		{ DNS_CNAME, 0 } };
	AUTO(dns_answer) struct dns_answer a = { .rcode = DNS_NOERROR };
	AUTO(dns_answer) struct dns_answer again = { .rcode = DNS_NOERROR };
	static struct msg m;
	struct dns_query q;

	ask_for("host.test", rows[_i].type, true, &q);
	put_head(&m, QR, (const unsigned int[]){ 1, 2, 0, 0 });
	put_question(&m, "host.test", rows[_i].type);
	put_named(&m, "@12", rows[_i].type, rows[_i].before, "mail@12");
	put_a(&m, "mail@12", 60, 0xcb007101);
	ck_assert_int_eq(read_answer(&q, &m, &a), 0);
	ck_assert_uint_eq(a.answers_n, 1);
	ck_assert_uint_eq(a.addrs_n, 0);
	/* The name is written out. */
	ck_assert_uint_eq(a.records_n, 12 + rows[_i].before + 16);
	ck_assert_mem_eq(a.records + 12 + rows[_i].before, "\4mail\4host\4test", 16);
	reply_is_well_formed(&q, &a, &again);
}
END_TEST

static const struct {
	unsigned int type;
	const char *data;
	size_t n;
	bool good;
} datas[] = {
	{ DNS_TXT, "\3abc", 4, true },
	{ DNS_TXT, "\3abc\0\1x", 7, true },
	{ DNS_TXT, "", 0, false },
	{ DNS_TXT, "\4abc", 4, false },
	{ DNS_TXT, "\3abc\5x", 6, false },
	{ DNS_CAA, "\0\5issueca.test", 14, true },
	{ DNS_TLSA, "\1\1\1\xff", 4, true },
	{ DNS_SSHFP, "", 0, true },
	{ DNS_A, "\1\2\3\4", 4, true },
	{ DNS_A, "\1\2\3", 3, false },
	{ DNS_A, "\1\2\3\4\5", 5, false },
	{ DNS_AAAA, "\1\2\3\4", 4, false },
	{ DNS_NS, "\0", 1, true },
	{ DNS_NS, "", 0, false },
	{ DNS_NS, "\0\0", 2, false },
	{ DNS_NS, "\1a", 2, false },
	{ DNS_MX, "\0\1\0", 3, true },
	{ DNS_MX, "\0\1", 2, false },
	{ DNS_MX, "\0", 1, false },
	{ DNS_SRV, "\0\1\0\1\0\1\0", 7, true },
	{ DNS_SRV, "\0\1\0\1\0", 5, false },
	{ DNS_NAPTR, "\0\1\0\1\1s\0\0\0", 9, true },
	{ DNS_NAPTR, "\0\1\0\1\1s\0\0", 8, false },
	{ DNS_SOA, "\0\0aaaabbbbccccddddeeee", 22, true },
	{ DNS_SOA, "\0\0aaaabbbbccccddddeee", 21, false },
	{ DNS_SOA, "\0\0aaaabbbbccccddddeeeef", 23, false },
	{ DNS_CNAME, "\1b\0", 3, true },
};

START_TEST(data_of_a_record)
{
	AUTO(dns_answer) struct dns_answer a = { .rcode = DNS_NOERROR };
	static struct msg m;
	struct dns_query q;

	ask_for("host.test", datas[_i].type, false, &q);
	put_head(&m, QR, (const unsigned int[]){ 1, 1, 0, 0 });
	put_question(&m, "host.test", datas[_i].type);
	put_record(&m, "@12", datas[_i].type, 60);
	put16(&m, (unsigned int)datas[_i].n);
	memcpy(m.p + m.n, datas[_i].data, datas[_i].n);
	m.n += datas[_i].n;
	ck_assert_int_eq(read_answer(&q, &m, &a), datas[_i].good ? 0 : -EBADMSG);
	ck_assert_uint_eq(a.answers_n, datas[_i].good);
}
END_TEST

START_TEST(nothing_there)
{
	static const struct {
		unsigned int flags;
		uint32_t ttl, minimum, want;
	} rows[] = { { QR | NXDOMAIN, 300, 60, 60 }, { QR | NXDOMAIN, 30, 60, 30 },
		{ QR, 300, 60, 60 } };
	AUTO(dns_answer) struct dns_answer a = { .rcode = DNS_NOERROR };
	AUTO(dns_answer) struct dns_answer again = { .rcode = DNS_NOERROR };
	static struct msg m;
	struct dns_query q;

	ask_for("host.test", DNS_A, true, &q);
	put_head(&m, rows[_i].flags, (const unsigned int[]){ 1, 1, 2, 0 });
	put_question(&m, "host.test", DNS_A);
	put_named(&m, "@12", DNS_CNAME, 0, "gone.test");
	put_named(&m, "test", DNS_NS, 0, "ns.test");
	put_soa(&m, "test", rows[_i].ttl, rows[_i].minimum);
	ck_assert_int_eq(read_answer(&q, &m, &a), 0);
	ck_assert_uint_eq(a.rcode, rows[_i].flags & 0xf);
	ck_assert_uint_eq(a.answers_n, 1);
	ck_assert_uint_eq(a.authority_n, 1);
	ck_assert_uint_eq(a.ttl, rows[_i].want);
	reply_is_well_formed(&q, &a, &again);
}
END_TEST

START_TEST(nothing_there_for_nobody_knows_how_long)
{
	AUTO(dns_answer) struct dns_answer a = { .rcode = DNS_NOERROR };
	static struct msg m;
	struct dns_query q;

	ask_for("host.test", DNS_A, true, &q);
	put_head(&m, QR | NXDOMAIN, (const unsigned int[]){ 1, 0, 0, 0 });
	put_question(&m, "host.test", DNS_A);
	ck_assert_int_eq(read_answer(&q, &m, &a), 0);
	ck_assert_uint_eq(a.rcode, DNS_NXDOMAIN);
	ck_assert_uint_eq(a.ttl, 0);
	ck_assert_uint_eq(a.records_n, 0);
}
END_TEST

START_TEST(codes_of_failure)
{
	static const struct {
		unsigned int code, upper;
		enum dns_rcode want;
	} rows[] = { { 1, 0, DNS_FORMERR }, { 2, 0, DNS_SERVFAIL }, { 4, 0, DNS_NOTIMP },
		{ 5, 0, DNS_REFUSED }, { 6, 0, DNS_SERVFAIL }, { 15, 0, DNS_SERVFAIL },
		{ 0, 1, DNS_FORMERR }, { 1, 1, DNS_SERVFAIL }, { 3, 255, DNS_SERVFAIL } };
	AUTO(dns_answer) struct dns_answer a = { .rcode = DNS_NOERROR };
	static struct msg m;
	struct dns_query q;

	ask_for("host.test", DNS_A, true, &q);
	put_head(&m, QR | rows[_i].code, (const unsigned int[]){ 1, 1, 0, 1 });
	put_question(&m, "host.test", DNS_A);
	put_a(&m, "@12", 60, 0xcb007101);
	put_edns(&m, 1232, rows[_i].upper << 8);
	ck_assert_int_eq(read_answer(&q, &m, &a), 0);
	ck_assert_uint_eq(a.rcode, rows[_i].want);
	ck_assert_uint_eq(a.ttl, 0);
	ck_assert_uint_eq(a.addrs_n, 0);
	ck_assert_uint_eq(a.answers_n, 0);
}
END_TEST

START_TEST(a_server_without_edns)
{
	AUTO(dns_answer) struct dns_answer a = { .rcode = DNS_NOERROR };
	static struct msg m;
	struct dns_query q;

	ask_for("host.test", DNS_A, true, &q);
	put_head(&m, QR | DNS_FORMERR, (const unsigned int[]){ 0, 0, 0, 0 });
	ck_assert_int_eq(read_answer(&q, &m, &a), 0);
	ck_assert_uint_eq(a.rcode, DNS_FORMERR);
	/* Only as a failure. */
	put_head(&m, QR, (const unsigned int[]){ 0, 0, 0, 0 });
	ck_assert_int_eq(read_answer(&q, &m, &a), -EAGAIN);
}
END_TEST

START_TEST(answers_to_somebody_else)
{
	static const struct {
		unsigned int flags, questions;
		const char *name;
		unsigned int type, class;
	} rows[] = {
		{ 0, 1, "host.test", DNS_A, 1 },
		{ QR | 0x0800, 1, "host.test", DNS_A, 1 },
		{ QR, 1, "hosts.test", DNS_A, 1 },
		{ QR, 1, "host.tesu", DNS_A, 1 },
		{ QR, 1, "host.test", DNS_AAAA, 1 },
		{ QR, 1, "host.test", DNS_A, 3 },
		{ QR, 0, "host.test", DNS_A, 1 },
		{ QR, 2, "host.test", DNS_A, 1 },
	};
	AUTO(dns_answer) struct dns_answer a = { .ttl = 77 };
	static struct msg m;
	struct dns_query q;

	ask_for("host.test", DNS_A, false, &q);
	put_head(&m, rows[_i].flags, (const unsigned int[]){ rows[_i].questions, 1, 0, 0 });
	put_name(&m, rows[_i].name);
	put16(&m, rows[_i].type);
	put16(&m, rows[_i].class);
	put_a(&m, "@12", 60, 0xcb007101);
	ck_assert_int_eq(read_answer(&q, &m, &a), -EAGAIN);
	ck_assert_uint_eq(a.ttl, 77);
	m.p[0] ^= 1;
	ck_assert_int_eq(read_answer(&q, &m, &a), -EAGAIN);
}
END_TEST

START_TEST(a_truncated_answer)
{
	AUTO(dns_answer) struct dns_answer a = { .rcode = DNS_NOERROR };
	static struct msg m;
	struct dns_query q;

	ask_for("host.test", DNS_A, false, &q);
	put_head(&m, QR | TC, (const unsigned int[]){ 1, 5, 0, 0 });
	put_question(&m, "host.test", DNS_A);
	ck_assert_int_eq(read_answer(&q, &m, &a), -EMSGSIZE);
}
END_TEST

/* Each answer that is cut somewhere is no answer; none is read beyond its end. */
START_TEST(an_answer_cut_anywhere)
{
	AUTO(dns_answer) struct dns_answer a = { .rcode = DNS_NOERROR };
	static struct msg m;
	struct dns_query q;

	ask_for("host.test", DNS_A, true, &q);
	put_head(&m, QR, (const unsigned int[]){ 1, 2, 1, 1 });
	put_question(&m, "host.test", DNS_A);
	put_named(&m, "@12", DNS_CNAME, 0, "b@17");
	put_a(&m, "b.test", 60, 0xcb007101);
	put_soa(&m, "test", 60, 60);
	put_edns(&m, 1232, 0);
	for (size_t n = 0; n < m.n; n++) {
		autofree char *copy = mem_array(n ? n : 1, 1);
		size_t calls = 0;
		const struct dns_filter filter = { .keep = keep_public, .ctx = &calls };

		memcpy(copy, m.p, n);
		ck_assert_int_lt(dns_answer_read(&q, ID, (struct span){ .p = copy, .n = n },
						 &filter, &a),
				0);
	}
	ck_assert_int_eq(read_answer(&q, &m, &a), 0);
	ck_assert_uint_eq(a.addrs_n, 1);
}
END_TEST

/* host.test is an alias of a1, that of a2, …; the last one has an address. */
static void put_chain(struct msg *m, int aliases)
{
	put_head(m, QR, (const unsigned int[]){ 1, (unsigned int)aliases + 1, 0, 0 });
	put_question(m, "host.test", DNS_A);
	for (int i = 0; i < aliases; i++) {
		autofree char *from = mem_printf("a%d@17", i);
		autofree char *to = mem_printf("a%d@17", i + 1);

		put_named(m, i ? from : "@12", DNS_CNAME, 0, to);
	}
	autofree char *last = mem_printf("a%d@17", aliases);

	put_a(m, aliases ? last : "@12", 60, 0xcb007101);
}

START_TEST(chains_of_aliases)
{
	AUTO(dns_answer) struct dns_answer a = { .rcode = DNS_NOERROR };
	AUTO(dns_answer) struct dns_answer again = { .rcode = DNS_NOERROR };
	static struct msg m;
	struct dns_query q;

	ask_for("host.test", DNS_A, true, &q);
	put_chain(&m, DNS_ALIASES_MAX);
	ck_assert_int_eq(read_answer(&q, &m, &a), 0);
	ck_assert_uint_eq(a.addrs_n, 1);
	ck_assert_uint_eq(a.answers_n, DNS_ALIASES_MAX + 1);
	reply_is_well_formed(&q, &a, &again);
	dns_answer_done(&a);
	put_chain(&m, DNS_ALIASES_MAX + 1);
	ck_assert_int_eq(read_answer(&q, &m, &a), -EBADMSG);
	put_chain(&m, 1000);
	ck_assert_int_eq(read_answer(&q, &m, &a), -EBADMSG);
	/* A circle. */
	put_head(&m, QR, (const unsigned int[]){ 1, 2, 0, 0 });
	put_question(&m, "host.test", DNS_A);
	put_named(&m, "@12", DNS_CNAME, 0, "b.test");
	put_named(&m, "b.test", DNS_CNAME, 0, "@12");
	ck_assert_int_eq(read_answer(&q, &m, &a), -EBADMSG);
	/* One that leads out of the answer ends there. */
	put_head(&m, QR, (const unsigned int[]){ 1, 2, 0, 0 });
	put_question(&m, "host.test", DNS_A);
	put_named(&m, "@12", DNS_CNAME, 0, "b.test");
	put_a(&m, "c.test", 60, 0xcb007101);
	ck_assert_int_eq(read_answer(&q, &m, &a), 0);
	ck_assert_uint_eq(a.answers_n, 1);
	ck_assert_uint_eq(a.addrs_n, 0);
}
END_TEST

START_TEST(pointers_that_lead_astray)
{
	/* To itself, forward, out of the message, two in a circle; a reserved label. */
	static const char *const names[] = { "@27", "@29", "@400", "a@27", "@28" };
	AUTO(dns_answer) struct dns_answer a = { .rcode = DNS_NOERROR };
	static struct msg m;
	struct dns_query q;

	ask_for("host.test", DNS_A, true, &q);
	put_head(&m, QR, (const unsigned int[]){ 1, 1, 0, 0 });
	put_question(&m, "host.test", DNS_A);
	ck_assert_uint_eq(m.n, 27);
	put_a(&m, names[_i], 60, 0xcb007101);
	ck_assert_int_eq(read_answer(&q, &m, &a), -EBADMSG);
	m.p[27] = 0x40;
	ck_assert_int_eq(read_answer(&q, &m, &a), -EBADMSG);
	m.p[27] = 0x80;
	ck_assert_int_eq(read_answer(&q, &m, &a), -EBADMSG);
}
END_TEST

START_TEST(pointers_without_end)
{
	AUTO(dns_answer) struct dns_answer a = { .rcode = DNS_NOERROR };
	static struct msg m;
	struct dns_query q;

	ask_for("host.test", DNS_A, true, &q);
	put_head(&m, QR, (const unsigned int[]){ 1, 2, 0, 0 });
	put_question(&m, "host.test", DNS_A);
	/* Each points to the one before: only a number of them is followed. */
	put_record(&m, "@12", DNS_TXT, 60);
	put16(&m, 2000);
	for (unsigned int i = 0; i < 1000; i++) {
		put16(&m, 0xc000 | (i ? (unsigned int)m.n - 2 : 12));
	}
	const unsigned int last = (unsigned int)m.n - 2;

	put16(&m, 0xc000 | last);
	put16(&m, DNS_A);
	put16(&m, 1);
	put32(&m, 60);
	put16(&m, 4);
	put32(&m, 0xcb007101);
	ck_assert_int_eq(read_answer(&q, &m, &a), -EBADMSG);
}
END_TEST

START_TEST(an_answer_that_grows_too_much)
{
	AUTO(dns_answer) struct dns_answer a = { .rcode = DNS_NOERROR };
	char name[250] = "";
	static struct msg m;
	struct dns_query q;

	for (size_t i = 0; i < 240; i++) {
		name[i] = i % 60 == 59 ? '.' : 'a';
	}
	name[239] = '\0';
	ask_for(name, DNS_NS, true, &q);
	put_head(&m, QR, (const unsigned int[]){ 1, 4000, 0, 0 });
	put_question(&m, name, DNS_NS);
	for (int i = 0; i < 4000; i++) {
		put_named(&m, "@12", DNS_NS, 0, "@12");
	}
	ck_assert_int_eq(read_answer(&q, &m, &a), -EBADMSG);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("dns_answer");
	TCase *tc = tcase_create("dns_answer");

	suite_add_tcase(s, tc);
	tcase_add_test(tc, addresses_through_aliases);
	tcase_add_test(tc, addresses_of_ipv6);
	tcase_add_test(tc, addresses_are_filtered);
	tcase_add_test(tc, more_addresses_than_are_kept);
	tcase_add_test(tc, ages);
	tcase_add_loop_test(tc, other_types, 0, 5);
	tcase_add_loop_test(tc, data_of_a_record, 0, ARRAY_SIZE(datas));
	tcase_add_loop_test(tc, nothing_there, 0, 3);
	tcase_add_test(tc, nothing_there_for_nobody_knows_how_long);
	tcase_add_loop_test(tc, codes_of_failure, 0, 9);
	tcase_add_test(tc, a_server_without_edns);
	tcase_add_loop_test(tc, answers_to_somebody_else, 0, 8);
	tcase_add_test(tc, a_truncated_answer);
	tcase_add_test(tc, an_answer_cut_anywhere);
	tcase_add_test(tc, chains_of_aliases);
	tcase_add_loop_test(tc, pointers_that_lead_astray, 0, 5);
	tcase_add_test(tc, pointers_without_end);
	tcase_add_test(tc, an_answer_that_grows_too_much);
	return unit_run(s);
}
