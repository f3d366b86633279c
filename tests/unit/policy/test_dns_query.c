/* SPDX-License-Identifier: Apache-2.0 */
#include "dns_msg.h"

START_TEST(question_is_read)
{
	static struct msg m;
	struct dns_query q;

	put_head(&m, RD | CD, (const unsigned int[]){ 1, 0, 0, 0 });
	put_question(&m, "HoSt.test", DNS_AAAA);
	ck_assert_int_eq(dns_query_read(bytes_of(&m), &q), 0);
	ck_assert_uint_eq(q.id, ID);
	ck_assert_uint_eq(q.type, DNS_AAAA);
	ck_assert_uint_eq(q.class, 1);
	ck_assert(q.wants_recursion && q.is_unchecked && !q.has_edns);
	ck_assert_uint_eq(q.udp_max, DNS_UDP_MIN);
	ck_assert_str_eq(q.name, "host.test");
	ck_assert_uint_eq(q.wire_n, 11);
	ck_assert_mem_eq(q.wire, "\4HoSt\4test", 11);
}
END_TEST

START_TEST(edns_is_read)
{
	static const unsigned int sizes[][2] = { { 0, DNS_UDP_MIN }, { 511, DNS_UDP_MIN },
		{ 700, 700 }, { 1232, 1232 }, { 4096, DNS_UDP_MAX }, { 65535, DNS_UDP_MAX } };
	static struct msg m;
	struct dns_query q;

	put_head(&m, 0, (const unsigned int[]){ 1, 0, 0, 2 });
	put_question(&m, "host.test", DNS_A);
	put_a(&m, "x.test", 1, 1);
	put_edns(&m, sizes[_i][0], 0);
	ck_assert_int_eq(dns_query_read(bytes_of(&m), &q), 0);
	ck_assert(q.has_edns && !q.wants_recursion);
	ck_assert_uint_eq(q.udp_max, sizes[_i][1]);
}
END_TEST

/* Names that are none of a host are questions, too. */
START_TEST(names_of_no_host)
{
	static const struct {
		const char *wire;
		size_t n;
	} names[] = {
		{ "\0", 1 },
		{ "\3a.b\4test\0", 10 },
		{ "\3a\0b\4test\0", 10 },
		{ "\3a b\4test\0", 10 },
		{ "\2\xc3\xbc\4test\0", 9 },
		{ "\2-a\4test\0", 9 },
		{ "\1*\4test\0", 8 },
		{ "\1\x31\1\x32\1\x33\1\x34\0", 9 },
	};
	static struct msg m;
	struct dns_query q;

	put_head(&m, RD, (const unsigned int[]){ 1, 0, 0, 0 });
	memcpy(m.p + m.n, names[_i].wire, names[_i].n);
	m.n += names[_i].n;
	put16(&m, DNS_A);
	put16(&m, 1);
	ck_assert_int_eq(dns_query_read(bytes_of(&m), &q), 0);
	ck_assert_str_eq(q.name, "");
	ck_assert_uint_eq(q.wire_n, names[_i].n);
}
END_TEST

START_TEST(longest_name)
{
	char name[260] = "";
	static struct msg m;
	struct dns_query q;

	for (size_t i = 0; i < 253; i++) {
		name[i] = i % 64 == 63 ? '.' : 'a';
	}
	put_head(&m, RD, (const unsigned int[]){ 1, 0, 0, 0 });
	put_question(&m, name, DNS_A);
	ck_assert_int_eq(dns_query_read(bytes_of(&m), &q), 0);
	ck_assert_uint_eq(q.wire_n, 255);
	ck_assert_str_eq(q.name, name);
	name[253] = 'a';
	m.n = 12;
	put_question(&m, name, DNS_A);
	ck_assert_int_eq(dns_query_read(bytes_of(&m), &q), DNS_FORMERR);
}
END_TEST

START_TEST(no_question)
{
	static struct msg m;
	struct dns_query q;

	put_head(&m, QR | RD, (const unsigned int[]){ 1, 0, 0, 0 });
	put_question(&m, "host.test", DNS_A);
	ck_assert_int_eq(dns_query_read(bytes_of(&m), &q), -EBADMSG);
	for (size_t n = 0; n < 12; n++) {
		ck_assert_int_eq(dns_query_read((struct span){ .p = (char *)m.p, .n = n }, &q),
				-EBADMSG);
	}
}
END_TEST

START_TEST(question_that_is_refused)
{
	static const struct {
		unsigned int flags;
		unsigned int counts[4];
		const char *name;
		unsigned int class, edns, version;
		int result;
	} rows[] = {
		{ 0x0800, { 1, 0, 0, 0 }, "host.test", 1, 0, 0, DNS_NOTIMP },
		{ 0x2800, { 1, 0, 0, 0 }, "host.test", 1, 0, 0, DNS_NOTIMP }, /* update */
		{ RD, { 0, 0, 0, 0 }, "host.test", 1, 0, 0, DNS_FORMERR },
		{ RD, { 2, 0, 0, 0 }, "host.test", 1, 0, 0, DNS_FORMERR },
		{ RD, { 1, 1, 0, 0 }, "host.test", 1, 0, 0, DNS_FORMERR },
		{ RD, { 1, 0, 1, 0 }, "host.test", 1, 0, 0, DNS_FORMERR },
		{ RD, { 1, 0, 0, 1 }, "host.test", 1, 0, 0, DNS_FORMERR },
		{ RD, { 1, 0, 0, 0 }, "host@2", 1, 0, 0, DNS_FORMERR },
		{ RD, { 1, 0, 0, 0 }, "host@12", 1, 0, 0, DNS_FORMERR },
		{ RD, { 1, 0, 0, 0 }, "host.test", 1, 1, 0, DNS_FORMERR }, /* bytes behind */
		{ RD, { 1, 0, 0, 2 }, "host.test", 1, 2, 0, DNS_FORMERR },
		{ RD, { 1, 0, 0, 1 }, "host.test", 1, 1, 1, DNS_BADVERS },
		{ RD, { 1, 0, 0, 0 }, "host.test", 3, 0, 0, DNS_REFUSED },
		{ RD, { 1, 0, 0, 0 }, "host.test", 255, 0, 0, DNS_REFUSED },
	};
	AUTO(buf) struct buf reply = BUF_INIT(DNS_MESSAGE_MAX);
	static struct msg m;
	struct dns_query q;

	put_head(&m, rows[_i].flags, rows[_i].counts);
	put_name(&m, rows[_i].name);
	put16(&m, DNS_A);
	put16(&m, rows[_i].class);
	for (unsigned int i = 0; i < rows[_i].edns; i++) {
		put_edns(&m, 4096, rows[_i].version);
	}
	ck_assert_int_eq(dns_query_read(bytes_of(&m), &q), rows[_i].result);
	/* What could be read is enough for a reply. */
	const struct dns_answer a = { .rcode = (enum dns_rcode)rows[_i].result };

	dns_reply(&q, &a, 0, q.udp_max, &reply);
	ck_assert_uint_ge(reply.n, 12);
	ck_assert_uint_eq((uint8_t)reply.p[0] << 8 | (uint8_t)reply.p[1], ID);
	ck_assert_uint_eq((uint8_t)reply.p[2] & 0x80, 0x80);
	ck_assert_uint_eq((uint8_t)reply.p[3] & 0xf, rows[_i].result & 0xf);
	if (rows[_i].result == DNS_BADVERS) {
		ck_assert_uint_eq((uint8_t)reply.p[reply.n - 6], 1);
	}
}
END_TEST

START_TEST(types_that_are_asked)
{
	static const uint16_t yes[] = { 1, 2, 5, 6, 12, 15, 16, 28, 33, 35, 44, 52, 257 };
	static const uint16_t no[] = { 0, 10, 13, 41, 43, 46, 47, 48, 64, 65, 99, 249, 250, 251,
		252, 253, 254, 255, 256, 65535 };

	for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
		ck_assert_msg(dns_type_is_asked(yes[i]), "%u", yes[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(no); i++) {
		ck_assert_msg(!dns_type_is_asked(no[i]), "%u", no[i]);
	}
}
END_TEST

START_TEST(asking_anew)
{
	AUTO(buf) struct buf out = BUF_INIT(512);
	struct dns_query q;
	struct dns_query again;

	ask_for("HOST.Test", DNS_MX, false, &q);
	dns_ask(&q, 0xabcd, true, &out);
	ck_assert_int_eq(dns_query_read(buf_span(&out), &again), 0);
	ck_assert_uint_eq(again.id, 0xabcd);
	ck_assert(again.wants_recursion && !again.is_unchecked && again.has_edns);
	ck_assert_uint_eq(again.udp_max, DNS_UDP_MAX);
	ck_assert_uint_eq(again.type, DNS_MX);
	ck_assert_mem_eq(again.wire, "\4host\4test", 11);
	dns_ask(&q, 0xabcd, false, &out);
	ck_assert_int_eq(dns_query_read(buf_span(&out), &again), 0);
	ck_assert(!again.has_edns);
}
END_TEST

START_TEST(extended_errors)
{
	AUTO(buf) struct buf reply = BUF_INIT(DNS_MESSAGE_MAX);
	const struct dns_answer a = {
		.rcode = DNS_NXDOMAIN, .ede = DNS_EDE_BLOCKED, .ede_text = "denied by policy"
	};
	struct dns_query q;

	ask_for("host.test", DNS_A, true, &q);
	dns_reply(&q, &a, 0, q.udp_max, &reply);
	ck_assert_uint_eq((uint8_t)reply.p[3], 0x83);
	ck_assert_uint_eq(reply.n, 12 + 11 + 4 + 11 + 6 + 16);
	ck_assert_mem_eq(reply.p + 38, "\0\17\0\22\0\17denied by policy", 22);
	/* Who does not speak EDNS gets the code alone. */
	ask_for("host.test", DNS_A, false, &q);
	dns_reply(&q, &a, 0, q.udp_max, &reply);
	ck_assert_uint_eq(reply.n, 12 + 11 + 4);
	ck_assert_uint_eq((uint8_t)reply.p[11], 0);
	/* A text without end is cut. */
	char text[1000];
	const struct dns_answer wordy = {
		.rcode = DNS_NXDOMAIN, .ede = DNS_EDE_BLOCKED, .ede_text = text
	};

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	ask_for("host.test", DNS_A, true, &q);
	dns_reply(&q, &wordy, 0, q.udp_max, &reply);
	ck_assert_uint_eq(reply.n, 12 + 11 + 4 + 11 + 6 + 200);
	const struct dns_answer bare = { .rcode = DNS_SERVFAIL, .ede = DNS_EDE_UNREACHABLE };

	dns_reply(&q, &bare, 0, q.udp_max, &reply);
	ck_assert_uint_eq(reply.n, 12 + 11 + 4 + 11 + 6);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("dns_query");
	TCase *tc = tcase_create("dns_query");

	suite_add_tcase(s, tc);
	tcase_add_test(tc, question_is_read);
	tcase_add_loop_test(tc, edns_is_read, 0, 6);
	tcase_add_loop_test(tc, names_of_no_host, 0, 8);
	tcase_add_test(tc, longest_name);
	tcase_add_test(tc, no_question);
	tcase_add_loop_test(tc, question_that_is_refused, 0, 14);
	tcase_add_test(tc, types_that_are_asked);
	tcase_add_test(tc, asking_anew);
	tcase_add_test(tc, extended_errors);
	return unit_run(s);
}
