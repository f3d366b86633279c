/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>

#include <osbx/fd.h>
#include <osbx/mem.h>

#include "../../../src/engine/net_internal.h"
#include "../unit.h"

static const struct {
	const char *text;
	const char *addrs; /* "A B C", as parsed */
} cases[] = {
	{ "", "" },
	{ "nameserver 192.0.2.1\n", "192.0.2.1" },
	{ "nameserver\t192.0.2.1", "192.0.2.1" },
	{ "# nameserver 192.0.2.1\n;nameserver 192.0.2.2\n", "" },
	{ "search a b\noptions edns0\n  nameserver  127.0.0.53  # local\r\n", "127.0.0.53" },
	{ "nameserver 2001:db8::1\nnameserver 192.0.2.1\n", "2001:db8::1 192.0.2.1" },
	{ "nameserver fe80::1%lo\n", "fe80::1" },
	{ "nameserver\nnameserver here\nnameserver 1.2.3\nnameserver 192.0.2.9\n", "192.0.2.9" },
	{ "nameservers 192.0.2.1\n", "" },
	{ "nameserver 192.0.2.1\nnameserver 192.0.2.2\nnameserver 192.0.2.3\nnameserver "
	  "192.0.2.4\n",
			"192.0.2.1 192.0.2.2 192.0.2.3" },
};

static void text_of(const struct net_resolvers *r, char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (uint32_t i = 0; i < r->n; i++) {
		struct netaddr a;
		uint16_t port = 0;
		char text[NETADDR_TEXT_MAX];

		ck_assert_int_eq(netaddr_from_sock(&r->addrs[i], &a, &port), 0);
		ck_assert_uint_eq(port, 53);
		netaddr_format(&a, text);
		used += (size_t)snprintf(out + used, size - used, "%s%s", i > 0 ? " " : "", text);
	}
}

START_TEST(parses)
{
	struct net_resolvers r;
	char text[256];

	net_resolvers_parse(span_of(cases[_i].text), &r);
	text_of(&r, text, sizeof(text));
	ck_assert_str_eq(text, cases[_i].addrs);
}
END_TEST

START_TEST(reads_files)
{
	autofree char *path = mem_printf("%s/resolv.conf", unit_path);
	struct net_resolvers r = { .n = 2 };

	net_resolvers_read(path, &r);
	ck_assert_uint_eq(r.n, 0);
	ck_assert_int_eq(file_write_at(unit_fd, "resolv.conf", span_of("nameserver 192.0.2.1\n"),
					 false),
			0);
	net_resolvers_read(path, &r);
	ck_assert_uint_eq(r.n, 1);
}
END_TEST

START_TEST(compares)
{
	struct net_resolvers a;
	struct net_resolvers b;

	net_resolvers_parse(span_of("nameserver 192.0.2.1\nnameserver 192.0.2.2\n"), &a);
	net_resolvers_parse(span_of("nameserver 192.0.2.1\n"), &b);
	ck_assert(!net_resolvers_eq(&a, &b) && net_resolvers_eq(&a, &a));
	net_resolvers_parse(span_of("nameserver 192.0.2.2\nnameserver 192.0.2.1\n"), &b);
	ck_assert(!net_resolvers_eq(&a, &b));
}
END_TEST

START_TEST(opens_in_order)
{
	int fds[NETD_RESOLVERS_MAX] = { -1, -1, -1 };
	struct net_resolvers r;

	net_resolvers_parse(span_of("nameserver 127.0.0.1\nnameserver 127.0.0.2\n"), &r);
	ck_assert_uint_eq(net_resolvers_open(&r, fds), 2);
	for (int i = 0; i < 2; i++) {
		struct sockaddr_in sa;
		socklen_t n = sizeof(sa);

		ck_assert_int_eq(getpeername(fds[i], (struct sockaddr *)&sa, &n), 0);
		ck_assert_uint_eq(ntohl(sa.sin_addr.s_addr), 0x7f000001U + (unsigned int)i);
		fd_close(&fds[i]);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("net_resolvers");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_loop_test(tc, parses, 0, ARRAY_SIZE(cases));
	tcase_add_test(tc, reads_files);
	tcase_add_test(tc, compares);
	tcase_add_test(tc, opens_in_order);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
