/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>

#include <osbx/netaddr.h>

#include "../unit.h"

static struct netaddr addr(const char *text)
{
	struct netaddr a;

	ck_assert_msg(netaddr_parse(span_of(text), &a) == 0, "%s", text);
	return a;
}

static struct netprefix prefix(const char *text)
{
	struct netprefix p;

	ck_assert_msg(netprefix_parse(span_of(text), &p) == 0, "%s", text);
	return p;
}

/* As written, and as RFC 5952 says. */
static const char *const texts[][2] = {
	{ "0.0.0.0", "0.0.0.0" },
	{ "255.255.255.255", "255.255.255.255" },
	{ "192.0.2.1", "192.0.2.1" },
	{ "::", "::" },
	{ "::1", "::1" },
	{ "1::", "1::" },
	{ "2001:DB8::1", "2001:db8::1" },
	{ "2001:0db8:0000:0000:0000:0000:0000:0001", "2001:db8::1" },
	{ "2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1" },
	{ "2001:0:0:1:0:0:0:1", "2001:0:0:1::1" },
	{ "2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1" },
	{ "1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0" },
	{ "::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8" },
	{ "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8" },
	{ "1:0:0:4:5:6:0:0", "1::4:5:6:0:0" },
	{ "1:2:3:4:5:6:0:0", "1:2:3:4:5:6::" },
	{ "::ffff:192.0.2.1", "::ffff:192.0.2.1" },
	{ "::ffff:c000:201", "::ffff:192.0.2.1" },
	{ "64:ff9b::192.0.2.1", "64:ff9b::c000:201" },
	{ "1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304" },
	{ "::1.2.3.4", "::102:304" },
	{ "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255",
			"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" },
};

START_TEST(text_there_and_back)
{
	char out[NETADDR_TEXT_MAX];
	const struct netaddr a = addr(texts[_i][0]);

	netaddr_format(&a, out);
	ck_assert_str_eq(out, texts[_i][1]);
	/* The libc agrees about the bytes. */
	uint8_t other[16] = { 0 };

	ck_assert_int_eq(inet_pton(a.family == 4 ? AF_INET : AF_INET6, texts[_i][0], other), 1);
	ck_assert_mem_eq(a.bytes, other, 16);
	const struct netaddr again = addr(out);

	ck_assert(netaddr_eq(&a, &again));
}
END_TEST

static const char *const no_addresses[] = { "", ".", ":", "1", "1.2.3", "1.2.3.4.5", "1.2.3.4.",
	".1.2.3.4", "1..2.3", "1.2.3.256", "1.2.3.04", "01.2.3.4", "1.2.3.-4", "1.2.3.+4",
	"1.2.3.4 ", " 1.2.3.4", "0x1.2.3.4", "1.2.3.a", "1.2.3.1000", "127.1", "2130706433",
	":::", "1:", ":1", "1::2::3", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9",
	"1:2:3:4:5:6:7:8::", "::1:2:3:4:5:6:7:8", "1:2:3:4::5:6:7:8", "12345::", "g::", "::1%lo",
	"[::1]", "::1.2.3", "::1.2.3.4:5", "1.2.3.4::", "::1.2.3.256", "1:2:3:4:5:6:7:1.2.3.4",
	"1:1.2.3.4::", "fe80::1/64", "::1\n", "1:2:3:4:5:6:7:", ":1:2:3:4:5:6:7",
	"0000000000000000000000000000000000000000000000000::" };

START_TEST(no_address)
{
	struct netaddr a = { .family = 9 };

	ck_assert_msg(netaddr_parse(span_of(no_addresses[_i]), &a) == -EINVAL, "'%s'",
			no_addresses[_i]);
	ck_assert_int_eq(a.family, 9);
}
END_TEST

static const struct {
	const char *text;
	enum netaddr_kind kind;
} kinds[] = {
	{ "0.0.0.0", NETADDR_NOWHERE },
	{ "0.255.255.255", NETADDR_NOWHERE },
	{ "1.0.0.0", NETADDR_PUBLIC },
	{ "9.255.255.255", NETADDR_PUBLIC },
	{ "10.0.0.0", NETADDR_PRIVATE },
	{ "10.255.255.255", NETADDR_PRIVATE },
	{ "11.0.0.0", NETADDR_PUBLIC },
	{ "100.63.255.255", NETADDR_PUBLIC },
	{ "100.64.0.0", NETADDR_PRIVATE },
	{ "100.100.100.200", NETADDR_PRIVATE },
	{ "100.127.255.255", NETADDR_PRIVATE },
	{ "100.128.0.0", NETADDR_PUBLIC },
	{ "126.255.255.255", NETADDR_PUBLIC },
	{ "127.0.0.0", NETADDR_LOOPBACK },
	{ "127.255.255.255", NETADDR_LOOPBACK },
	{ "128.0.0.0", NETADDR_PUBLIC },
	{ "168.63.129.15", NETADDR_PUBLIC },
	{ "168.63.129.16", NETADDR_LINK_LOCAL },
	{ "168.63.129.17", NETADDR_PUBLIC },
	{ "169.253.255.255", NETADDR_PUBLIC },
	{ "169.254.0.0", NETADDR_LINK_LOCAL },
	{ "169.254.169.254", NETADDR_LINK_LOCAL },
	{ "169.254.255.255", NETADDR_LINK_LOCAL },
	{ "169.255.0.0", NETADDR_PUBLIC },
	{ "172.15.255.255", NETADDR_PUBLIC },
	{ "172.16.0.0", NETADDR_PRIVATE },
	{ "172.31.255.255", NETADDR_PRIVATE },
	{ "172.32.0.0", NETADDR_PUBLIC },
	{ "192.0.0.0", NETADDR_PRIVATE },
	{ "192.0.0.255", NETADDR_PRIVATE },
	{ "192.0.1.0", NETADDR_PUBLIC },
	{ "192.0.2.1", NETADDR_PUBLIC }, /* documentation */
	{ "192.88.99.1", NETADDR_PRIVATE },
	{ "192.167.255.255", NETADDR_PUBLIC },
	{ "192.168.0.0", NETADDR_PRIVATE },
	{ "192.168.255.255", NETADDR_PRIVATE },
	{ "192.169.0.0", NETADDR_PUBLIC },
	{ "198.17.255.255", NETADDR_PUBLIC },
	{ "198.18.0.0", NETADDR_PRIVATE },
	{ "198.19.255.255", NETADDR_PRIVATE },
	{ "198.20.0.0", NETADDR_PUBLIC },
	{ "198.51.100.1", NETADDR_PUBLIC }, /* documentation */
	{ "203.0.113.1", NETADDR_PUBLIC },  /* documentation */
	{ "223.255.255.255", NETADDR_PUBLIC },
	{ "224.0.0.0", NETADDR_NOWHERE },
	{ "239.255.255.255", NETADDR_NOWHERE },
	{ "240.0.0.0", NETADDR_NOWHERE },
	{ "255.255.255.255", NETADDR_NOWHERE },

	{ "::", NETADDR_NOWHERE },
	{ "::1", NETADDR_LOOPBACK },
	{ "::2", NETADDR_NOWHERE }, /* carries 0.0.0.2 */
	{ "::8.8.8.8", NETADDR_PRIVATE },
	{ "::127.0.0.1", NETADDR_LOOPBACK },
	{ "::169.254.169.254", NETADDR_LINK_LOCAL },
	{ "::ffff:8.8.8.8", NETADDR_PUBLIC },
	{ "::ffff:10.0.0.1", NETADDR_PRIVATE },
	{ "::ffff:127.0.0.1", NETADDR_LOOPBACK },
	{ "::ffff:169.254.169.254", NETADDR_LINK_LOCAL },
	{ "::ffff:0.0.0.0", NETADDR_NOWHERE },
	{ "::ffff:0:127.0.0.1", NETADDR_LOOPBACK },
	{ "::ffff:0:8.8.8.8", NETADDR_PUBLIC },
	{ "::fffe:8.8.8.8", NETADDR_PRIVATE },
	{ "64:ff9b::8.8.8.8", NETADDR_PUBLIC },
	{ "64:ff9b::10.0.0.1", NETADDR_PRIVATE },
	{ "64:ff9b::127.0.0.1", NETADDR_LOOPBACK },
	{ "64:ff9b::169.254.169.254", NETADDR_LINK_LOCAL },
	{ "64:ff9b::1:8.8.8.8", NETADDR_PRIVATE },
	{ "64:ff9b:1::8.8.8.8", NETADDR_PRIVATE },
	{ "64:ff9b:1::127.0.0.1", NETADDR_LOOPBACK },
	{ "64:ff9b:2::1", NETADDR_PRIVATE },
	{ "100::1", NETADDR_PRIVATE },
	{ "1fff:ffff::1", NETADDR_PRIVATE },
	{ "2000::1", NETADDR_PUBLIC },
	{ "2001::1", NETADDR_PRIVATE },
	{ "2001:1ff:ffff::1", NETADDR_PRIVATE },
	{ "2001:200::1", NETADDR_PUBLIC },
	{ "2001:db8::1", NETADDR_PUBLIC }, /* documentation */
	{ "2001:4860:4860::8888", NETADDR_PUBLIC },
	{ "2002:808:808::1", NETADDR_PUBLIC },
	{ "2002:a00:1::1", NETADDR_PRIVATE },
	{ "2002:7f00:1::1", NETADDR_LOOPBACK },
	{ "2002:a9fe:a9fe::1", NETADDR_LINK_LOCAL },
	{ "2606:4700::1111", NETADDR_PUBLIC },
	{ "3fff:ffff::1", NETADDR_PUBLIC },
	{ "4000::1", NETADDR_PRIVATE },
	{ "fbff::1", NETADDR_PRIVATE },
	{ "fc00::1", NETADDR_PRIVATE },
	{ "fd00:ec2::254", NETADDR_LINK_LOCAL },
	{ "fd00:ec2::253", NETADDR_PRIVATE },
	{ "fd20:ce::254", NETADDR_LINK_LOCAL },
	{ "fdff:ffff::1", NETADDR_PRIVATE },
	{ "fe7f::1", NETADDR_PRIVATE },
	{ "fe80::1", NETADDR_LINK_LOCAL },
	{ "febf::1", NETADDR_LINK_LOCAL },
	{ "fec0::1", NETADDR_PRIVATE },
	{ "feff::1", NETADDR_PRIVATE },
	{ "ff00::", NETADDR_NOWHERE },
	{ "ff02::1", NETADDR_NOWHERE },
};

START_TEST(kind_of_an_address)
{
	const struct netaddr a = addr(kinds[_i].text);

	ck_assert_msg(netaddr_kind(&a) == kinds[_i].kind, "%s is %s", kinds[_i].text,
			netaddr_kind_name(netaddr_kind(&a)));
	/* An address is a prefix of one. */
	const struct netprefix p = prefix(kinds[_i].text);

	ck_assert_int_eq(netprefix_kind(&p), kinds[_i].kind);
}
END_TEST

static const struct {
	const char *text;
	enum netaddr_kind kind;
} prefix_kinds[] = {
	{ "0.0.0.0/0", NETADDR_PUBLIC },
	{ "0.0.0.0/7", NETADDR_PUBLIC },
	{ "0.0.0.0/8", NETADDR_NOWHERE },
	{ "10.0.0.0/7", NETADDR_PUBLIC },
	{ "10.0.0.0/8", NETADDR_PRIVATE },
	{ "10.1.0.0/16", NETADDR_PRIVATE },
	{ "11.0.0.0/8", NETADDR_PUBLIC },
	{ "127.0.0.0/8", NETADDR_LOOPBACK },
	{ "169.254.169.254/32", NETADDR_LINK_LOCAL },
	{ "224.0.0.0/3", NETADDR_NOWHERE },
	{ "192.0.0.0/4", NETADDR_PUBLIC },
	{ "::/0", NETADDR_PUBLIC },
	{ "::/3", NETADDR_PUBLIC },
	{ "::/64", NETADDR_PUBLIC },
	{ "::/96", NETADDR_PRIVATE },
	{ "::/128", NETADDR_NOWHERE },
	{ "2000::/3", NETADDR_PUBLIC },
	{ "4000::/3", NETADDR_PRIVATE },
	{ "c000::/2", NETADDR_PUBLIC },
	{ "fc00::/7", NETADDR_PRIVATE },
	{ "fd00::/8", NETADDR_PRIVATE },
	{ "fe80::/10", NETADDR_LINK_LOCAL },
	{ "64:ff9b::/96", NETADDR_PUBLIC },
	{ "64:ff9b::10.0.0.0/103", NETADDR_PUBLIC },
	{ "64:ff9b::10.0.0.0/104", NETADDR_PRIVATE },
	{ "64:ff9b:1::/48", NETADDR_PRIVATE },
	{ "2002::/16", NETADDR_PUBLIC },
	{ "2002:7f00::/24", NETADDR_LOOPBACK },
	{ "2001::/23", NETADDR_PRIVATE },
};

START_TEST(kind_of_a_prefix)
{
	const struct netprefix p = prefix(prefix_kinds[_i].text);

	ck_assert_msg(netprefix_kind(&p) == prefix_kinds[_i].kind, "%s is %s",
			prefix_kinds[_i].text, netaddr_kind_name(netprefix_kind(&p)));
}
END_TEST

START_TEST(names_of_kinds)
{
	ck_assert_str_eq(netaddr_kind_name(NETADDR_PUBLIC), "public");
	ck_assert_str_eq(netaddr_kind_name(NETADDR_LINK_LOCAL), "link-local");
	ck_assert_str_eq(netaddr_kind_name(NETADDR_KIND_COUNT), "unknown");
}
END_TEST

static const char *const no_prefixes[] = { "", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/08",
	"10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/8 ", "10.0.0.0/8/8", "10.0.0.1/8", "0.0.0.1/0",
	"10.0.0.1/31", "10.0.0.0/255.0.0.0", "10.0.0/8", "::/129", "::1/127", "fd00::/1000",
	"x/8" };

START_TEST(no_prefix)
{
	struct netprefix p = { .bits = 77 };

	ck_assert_msg(netprefix_parse(span_of(no_prefixes[_i]), &p) == -EINVAL, "'%s'",
			no_prefixes[_i]);
	ck_assert_int_eq(p.bits, 77);
}
END_TEST

static const struct {
	const char *prefix, *in, *out;
} members[] = {
	{ "10.0.0.0/8", "10.255.0.1", "11.0.0.0" },
	{ "10.0.0.0/9", "10.127.255.255", "10.128.0.0" },
	{ "192.0.2.7", "192.0.2.7", "192.0.2.6" },
	{ "192.0.2.6/31", "192.0.2.7", "192.0.2.8" },
	{ "0.0.0.0/0", "255.255.255.255", "::" },
	{ "::/0", "ffff::", "0.0.0.0" },
	{ "2001:db8::/33", "2001:db8:7fff::", "2001:db8:8000::" },
	{ "2001:db8::1", "2001:db8::1", "2001:db8::2" },
	{ "2001:db8::/127", "2001:db8::1", "2001:db8::2" },
};

START_TEST(prefix_and_members)
{
	const struct netprefix p = prefix(members[_i].prefix);
	const struct netaddr in = addr(members[_i].in);
	const struct netaddr out = addr(members[_i].out);

	ck_assert(netprefix_has(&p, &in));
	ck_assert(!netprefix_has(&p, &out));
	ck_assert(!netaddr_eq(&in, &out));
}
END_TEST

START_TEST(sockets)
{
	static const char *const there[] = { "192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1" };
	static const char *const back[] = { "192.0.2.1", "2001:db8::1", "192.0.2.1" };
	struct sockaddr_storage sa;

	for (size_t i = 0; i < ARRAY_SIZE(there); i++) {
		const struct netaddr a = addr(there[i]);
		const struct netaddr want = addr(back[i]);
		struct netaddr got;
		uint16_t port = 0;

		ck_assert_uint_eq(netaddr_to_sock(&a, 443, &sa),
				a.family == 4 ? sizeof(struct sockaddr_in)
					      : sizeof(struct sockaddr_in6));
		ck_assert_int_eq(netaddr_from_sock(&sa, &got, &port), 0);
		ck_assert(netaddr_eq(&got, &want));
		ck_assert_uint_eq(port, 443);
	}
	struct netaddr got = { .family = 9 };
	uint16_t port = 7;

	sa = (struct sockaddr_storage){ .ss_family = AF_UNIX };
	ck_assert_int_eq(netaddr_from_sock(&sa, &got, &port), -EAFNOSUPPORT);
	ck_assert_int_eq(got.family, 9);
	ck_assert_uint_eq(port, 7);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("netaddr");
	TCase *tc = tcase_create("netaddr");

	suite_add_tcase(s, tc);
	tcase_add_loop_test(tc, text_there_and_back, 0, ARRAY_SIZE(texts));
	tcase_add_loop_test(tc, no_address, 0, ARRAY_SIZE(no_addresses));
	tcase_add_loop_test(tc, kind_of_an_address, 0, ARRAY_SIZE(kinds));
	tcase_add_loop_test(tc, kind_of_a_prefix, 0, ARRAY_SIZE(prefix_kinds));
	tcase_add_test(tc, names_of_kinds);
	tcase_add_loop_test(tc, no_prefix, 0, ARRAY_SIZE(no_prefixes));
	tcase_add_loop_test(tc, prefix_and_members, 0, ARRAY_SIZE(members));
	tcase_add_test(tc, sockets);
	return unit_run(s);
}
