/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "../../../policy/netd_packet.h"
#include "../unit.h"

static uint8_t packet[NETD_PACKET_MAX];

static struct netaddr address(const char *text)
{
	struct netaddr a = { .family = 0 };

	ck_assert_int_eq(netaddr_parse(span_of(text), &a), 0);
	return a;
}

static struct datagram datagram(enum datagram_kind kind, bool is_6)
{
	return (struct datagram){
		.kind = kind,
		.from = address(is_6 ? "fd53:4258::2" : "192.0.0.2"),
		.to = address(is_6 ? "2001:db8::1" : "203.0.113.1"),
		.from_port = 0x1234,
		.to_port = 53,
		.payload = span_of("hello"),
	};
}

/* Whole packets, checksums computed by another program. */
static const struct {
	enum datagram_kind kind;
	bool is_6;
	const char *hex;
} answers[] = {
	{ DATAGRAM_UDP, false,
			"450000230000000040117ec6cb007101c000000200351234000f8265776f726c642121" },
	{ DATAGRAM_UDP, true,
			"60000000000f114020010db8000000000000000000000001fd53425800000000000000000000000200351234000f1102776f726c642121" },
	{ DATAGRAM_ECHO, false,
			"450000230000000040017ed6cb007101c000000200007e9912340035776f726c642121" },
	{ DATAGRAM_ECHO, true,
			"60000000000f3a4020010db8000000000000000000000001fd53425800000000000000000000000281008fe712340035776f726c642121" },
};

static void hex_of(const uint8_t *p, size_t n, char *out)
{
	for (size_t i = 0; i < n; i++) {
		(void)snprintf(out + 2 * i, 3, "%02x", p[i]);
	}
}

START_TEST(answer)
{
	const struct datagram g = datagram(answers[_i].kind, answers[_i].is_6);
	char hex[512];
	int n = datagram_answer(&g, span_of("world!!"), packet);

	ck_assert_int_gt(n, 0);
	hex_of(packet, (size_t)n, hex);
	ck_assert_str_eq(hex, answers[_i].hex);
}
END_TEST

static const struct {
	enum datagram_kind kind;
	bool is_6;
	enum refusal why;
	const char *hex;
} refusals[] = {
	{ DATAGRAM_UDP, false, REFUSAL_PROHIBITED,
			"450000380000000040017ec1cb007101c0000002030dea7c00000000450000210000000040117ec8c0000002cb00710112340035000d0000" },
	{ DATAGRAM_UDP, false, REFUSAL_PORT,
			"450000380000000040017ec1cb007101c00000020303ea8600000000450000210000000040117ec8c0000002cb00710112340035000d0000" },
	{ DATAGRAM_UDP, false, REFUSAL_HOST,
			"450000380000000040017ec1cb007101c00000020301ea8800000000450000210000000040117ec8c0000002cb00710112340035000d0000" },
	{ DATAGRAM_UDP, false, REFUSAL_TOO_BIG,
			"450000380000000040017ec1cb007101c00000020304e58500000500450000210000000040117ec8c0000002cb00710112340035000d0000" },
	{ DATAGRAM_UDP, true, REFUSAL_PROHIBITED,
			"6000000000383a4020010db8000000000000000000000001fd53425800000000000000000000000201019ff80000000060000000000d1140fd53425800000000000000000000000220010db800000000000000000000000112340035000d0000" },
	{ DATAGRAM_UDP, true, REFUSAL_PORT,
			"6000000000383a4020010db8000000000000000000000001fd53425800000000000000000000000201049ff50000000060000000000d1140fd53425800000000000000000000000220010db800000000000000000000000112340035000d0000" },
	{ DATAGRAM_UDP, true, REFUSAL_HOST,
			"6000000000383a4020010db8000000000000000000000001fd53425800000000000000000000000201039ff60000000060000000000d1140fd53425800000000000000000000000220010db800000000000000000000000112340035000d0000" },
	{ DATAGRAM_UDP, true, REFUSAL_TOO_BIG,
			"6000000000383a4020010db8000000000000000000000001fd534258000000000000000000000002020099f90000050060000000000d1140fd53425800000000000000000000000220010db800000000000000000000000112340035000d0000" },
	{ DATAGRAM_ECHO, false, REFUSAL_PROHIBITED,
			"450000380000000040017ec1cb007101c0000002030de28900000000450000210000000040017ed8c0000002cb0071010800000012340035" },
	{ DATAGRAM_ECHO, false, REFUSAL_PORT,
			"450000380000000040017ec1cb007101c00000020303e29300000000450000210000000040017ed8c0000002cb0071010800000012340035" },
	{ DATAGRAM_ECHO, false, REFUSAL_HOST,
			"450000380000000040017ec1cb007101c00000020301e29500000000450000210000000040017ed8c0000002cb0071010800000012340035" },
	{ DATAGRAM_ECHO, false, REFUSAL_TOO_BIG,
			"450000380000000040017ec1cb007101c00000020304dd9200000500450000210000000040017ed8c0000002cb0071010800000012340035" },
	{ DATAGRAM_ECHO, true, REFUSAL_PROHIBITED,
			"6000000000383a4020010db8000000000000000000000001fd5342580000000000000000000000020101f7040000000060000000000d3a40fd53425800000000000000000000000220010db80000000000000000000000018000000012340035" },
	{ DATAGRAM_ECHO, true, REFUSAL_PORT,
			"6000000000383a4020010db8000000000000000000000001fd5342580000000000000000000000020104f7010000000060000000000d3a40fd53425800000000000000000000000220010db80000000000000000000000018000000012340035" },
	{ DATAGRAM_ECHO, true, REFUSAL_HOST,
			"6000000000383a4020010db8000000000000000000000001fd5342580000000000000000000000020103f7020000000060000000000d3a40fd53425800000000000000000000000220010db80000000000000000000000018000000012340035" },
	{ DATAGRAM_ECHO, true, REFUSAL_TOO_BIG,
			"6000000000383a4020010db8000000000000000000000001fd5342580000000000000000000000020200f1050000050060000000000d3a40fd53425800000000000000000000000220010db80000000000000000000000018000000012340035" },
};

START_TEST(refusal)
{
	const struct datagram g = datagram(refusals[_i].kind, refusals[_i].is_6);
	char hex[512];
	int n = datagram_refuse(&g, refusals[_i].why, 1280, packet);

	ck_assert_int_gt(n, 0);
	hex_of(packet, (size_t)n, hex);
	ck_assert_str_eq(hex, refusals[_i].hex);
}
END_TEST

/* A request as the kernel would hand it over, cut anywhere. */
START_TEST(echo)
{
	struct datagram g = datagram(DATAGRAM_ECHO, _i == 1);
	struct datagram read = { .kind = DATAGRAM_UDP };
	size_t head = _i == 1 ? 40 : 20;
	uint16_t sequence = 0;
	struct span payload;
	int n = datagram_answer(&g, g.payload, packet);

	/* It is an answer, and none of a program's. */
	ck_assert_int_eq(echo_parse((struct span){ (char *)packet, (size_t)n }, &read), -ENOMSG);
	packet[head] = _i == 1 ? 128 : 8;
	for (size_t cut = 0; cut < (size_t)n; cut++) {
		ck_assert_int_eq(echo_parse((struct span){ (char *)packet, cut }, &read), -ENOMSG);
	}
	ck_assert_int_eq(echo_parse((struct span){ (char *)packet, (size_t)n }, &read), 0);
	ck_assert_int_eq(read.kind, DATAGRAM_ECHO);
	ck_assert(netaddr_eq(&read.from, &g.to) && netaddr_eq(&read.to, &g.from));
	ck_assert_int_eq(read.from_port, g.from_port);
	ck_assert_int_eq(read.to_port, g.to_port);
	ck_assert(span_eq(read.payload, g.payload));

	n = echo_request(&g, packet);
	ck_assert_int_eq(n, 8 + 5);
	ck_assert_int_eq(packet[0], _i == 1 ? 128 : 8);
	packet[0] = _i == 1 ? 129 : 0;
	ck_assert_int_eq(echo_reply(_i == 1 ? 6 : 4, (struct span){ (char *)packet, (size_t)n },
					 &sequence, &payload),
			0);
	ck_assert_int_eq(sequence, 53);
	ck_assert(span_eq(payload, g.payload));
	ck_assert_int_eq(echo_reply(_i == 1 ? 6 : 4, (struct span){ (char *)packet, 7 }, &sequence,
					 &payload),
			-ENOMSG);
}
END_TEST

/* What a raw socket gives begins with the IP header, whose length is not believed. */
START_TEST(reply_of_a_raw_socket)
{
	const struct datagram g = datagram(DATAGRAM_ECHO, false);
	uint16_t sequence = 0;
	struct span payload;
	size_t n = (size_t)datagram_answer(&g, g.payload, packet);

	ck_assert_int_eq(echo_reply(4, (struct span){ (char *)packet, n }, &sequence, &payload), 0);
	ck_assert(span_eq(payload, g.payload));
	packet[0] = 0x4f;
	ck_assert_int_eq(echo_reply(4, (struct span){ (char *)packet, n }, &sequence, &payload),
			-ENOMSG);
}
END_TEST

START_TEST(as_much_as_fits)
{
	static char much[66000];
	const size_t most = _i == 1 ? 65527 : 65507;
	const struct datagram g = datagram(DATAGRAM_UDP, _i == 1);

	ck_assert_int_eq(datagram_answer(&g, (struct span){ much, most }, packet),
			(int)most + 8 + (_i == 1 ? 40 : 20));
	ck_assert_int_eq(datagram_answer(&g, (struct span){ much, most + 1 }, packet), -EMSGSIZE);
	ck_assert_int_eq(datagram_answer(&g, (struct span){ NULL, 0 }, packet),
			8 + (_i == 1 ? 40 : 20));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("netd_packet");
	TCase *tc = tcase_create("all");

	tcase_add_loop_test(tc, answer, 0, ARRAY_SIZE(answers));
	tcase_add_loop_test(tc, refusal, 0, ARRAY_SIZE(refusals));
	tcase_add_loop_test(tc, echo, 0, 2);
	tcase_add_test(tc, reply_of_a_raw_socket);
	tcase_add_loop_test(tc, as_much_as_fits, 0, 2);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
