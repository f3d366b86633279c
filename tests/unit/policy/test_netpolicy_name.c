/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include <osbx/netpolicy.h>

#include "../unit.h"

#define L63 "a23456789012345678901234567890123456789012345678901234567890123"
#define L59 "a2345678901234567890123456789012345678901234567890123456789"
#define L58 "a234567890123456789012345678901234567890123456789012345678"
#define L56 "a2345678901234567890123456789012345678901234567890123456"
#define L61 "a234567890123456789012345678901234567890123456789012345678901"

static const char *const names[][2] = {
	{ "a", "a" },
	{ "localhost", "localhost" },
	{ "Host.Test", "host.test" },
	{ "host.test.", "host.test" },
	{ "a-b.c--d.test", "a-b.c--d.test" },
	{ "_443._tcp.host.test", "_443._tcp.host.test" },
	{ "1.2.3.4.in-addr.arpa", "1.2.3.4.in-addr.arpa" },
	{ "1.test", "1.test" },
	{ "0x.com", "0x.com" },
	{ "host.0xg", "host.0xg" },
	{ "XN--BCHER-KVA.test", "xn--bcher-kva.test" },
	{ L63 ".test", L63 ".test" },
	{ L63 "." L63 "." L63 "." L61, L63 "." L63 "." L63 "." L61 },
	{ L63 "." L63 "." L63 "." L61 ".", L63 "." L63 "." L63 "." L61 },
	/* IDN: what the codec "punycode" of another implementation gives, too. */
	{ "bücher.example", "xn--bcher-kva.example" },
	{ "BÜCHER.example", "xn--bcher-kva.example" },
	{ "MÜNCHEN.de", "xn--mnchen-3ya.de" },
	{ "faß.de", "xn--fa-hia.de" },
	{ "Ñandú.ÉÈ", "xn--and-6ma2c.xn--8cab" },
	{ "ÿŸ.test", "xn--wdaa.test" },
	{ "šŽ.test", "xn--pga2d.test" },
	{ "ПРИМЕР.рф", "xn--e1afmkfd.xn--p1ai" },
	{ "Ѐѐ.test", "xn--51aa.test" },
	{ "ΠΑΡΆΔΕΙΓΜΑ.gr", "xn--hxajbheg2az3al.gr" },
	{ "例え.テスト", "xn--r8jz45g.xn--zckzah" },
	{ "例え。テスト", "xn--r8jz45g.xn--zckzah" },
	{ "例え．テスト｡", "xn--r8jz45g.xn--zckzah" },
	{ "उदाहरण.परीक्षा", "xn--p1b6ci4b4b3a.xn--11b5bs3a9aj6g" },
	{ "ＡＢＣ.test", "abc.test" },
	{ "ひとつ屋根の下2", "xn--2-u9tlzr9756bt3uc0v" },
	{ "3年b組金八先生", "xn--3b-ww4c5e180e575a65lsy2b" },
	{ "他们为什么不说中文", "xn--ihqwcrb4cv8a8dqg056pqjye" },
	{ "ա", "xn--y9a" },
	{ "Ա", "xn--y9a" },
	{ "Ḁ.test", "xn--2fg.test" },
	{ "𠀀.test", "xn--j50i.test" },
};

START_TEST(normal_form)
{
	char out[NETPOLICY_NAME_MAX + 1];
	char again[NETPOLICY_NAME_MAX + 1];

	ck_assert_msg(netpolicy_name(span_of(names[_i][0]), out) == 0, "%s", names[_i][0]);
	ck_assert_str_eq(out, names[_i][1]);
	ck_assert_int_eq(netpolicy_name(span_of(out), again), 0);
	ck_assert_str_eq(again, out);
}
END_TEST

static const char *const no_names[] = {
	"",
	".",
	"..",
	".test",
	"host..test",
	"host.test..",
	"-host.test",
	"host-.test",
	"host.-test",
	"ho st.test",
	"host/test",
	"host:80",
	"host\\test",
	"host@test",
	"ho\tst",
	"host\n",
	"*.test",
	"*",
	"1",
	"1.2.3.4",
	"01.02",
	"host.1",
	"host.0x1f",
	"host.0x",
	"host.0X1F",
	"0x7f000001",
	"[::1]",
	L63 "4.test",
	L63 "." L63 "." L63 "." L61 "2",
	L63 "." L63 "." L63 "." L63 "." L63,
	"\xff.test",
	"\xc0\xae.test", /* an overlong dot */
	"\xed\xa0\x80.test",
	"ex\xc2\xad"
	"ample.test",         /* soft hyphen */
	"e\xcc\x81.test",     /* e and acute accent: one letter has one form */
	"a\xe2\x80\x8b.test", /* zero width space */
	"a\xe2\x80\xae.test", /* right to left */
	"a\xe3\x80\x80.test", /* ideographic space */
	"\xef\xbc\x8f.test",  /* full-width slash */
	"\xef\xbc\x9a.test",  /* full-width colon */
	"\xc4\xb0.test",      /* capital i with a dot */
	"xn--\xc3\xbc.test",  /* both forms at once */
	"-\xc3\xbc.test",
	"\xc3\xbc-.test",
	/* labels that are too long as "xn--" alone */
	"\xc3\xbc" L63 ".test",
	"\xc3\xbc" L61 ".test",
	"\xc3\xbc" L59 ".test",
	"\xc3\xbc" L58 ".test",
	"\xc3\xbc" L56 ".test",
};

START_TEST(no_host_name)
{
	char out[NETPOLICY_NAME_MAX + 1] = "untouched";

	ck_assert_msg(netpolicy_name(span_of(no_names[_i]), out) == -EINVAL, "'%s'", no_names[_i]);
	ck_assert_str_eq(out, "untouched");
}
END_TEST

START_TEST(a_nul_and_what_is_endless)
{
	static char text[4096];
	char out[NETPOLICY_NAME_MAX + 1];

	ck_assert_int_eq(netpolicy_name((struct span){ .p = "a\0b", .n = 3 }, out), -EINVAL);
	memset(text, 'a', sizeof(text));
	ck_assert_int_eq(netpolicy_name((struct span){ .p = text, .n = sizeof(text) }, out),
			-EINVAL);
	for (size_t i = 1; i < sizeof(text); i += 2) {
		text[i] = '.';
	}
	ck_assert_int_eq(netpolicy_name((struct span){ .p = text, .n = 1000 }, out), -EINVAL);
	/* 127 labels of one letter are the most a name can have. */
	ck_assert_int_eq(netpolicy_name((struct span){ .p = text, .n = 253 }, out), 0);
	ck_assert_uint_eq(strlen(out), 253);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("netpolicy_name");
	TCase *tc = tcase_create("netpolicy_name");

	suite_add_tcase(s, tc);
	tcase_add_loop_test(tc, normal_form, 0, ARRAY_SIZE(names));
	tcase_add_loop_test(tc, no_host_name, 0, ARRAY_SIZE(no_names));
	tcase_add_test(tc, a_nul_and_what_is_endless);
	return unit_run(s);
}
