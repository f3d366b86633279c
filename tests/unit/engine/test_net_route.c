/* SPDX-License-Identifier: Apache-2.0 */
#include <ifaddrs.h>
#include <netinet/in.h>

#include "../../../src/engine/net_internal.h"
#include "../unit.h"

static int own(const char *text)
{
	struct netaddr a;

	ck_assert_int_eq(netaddr_parse(span_of(text), &a), 0);
	return net_route_is_own(&a);
}

START_TEST(loopback_is_own)
{
	ck_assert_int_eq(own("127.0.0.1"), 1);
	ck_assert_int_eq(own("127.255.0.9"), 1);
	ck_assert_int_eq(own("255.255.255.255"), 1);
}
END_TEST

/* Documentation addresses: no machine has them. */
START_TEST(others_are_not)
{
	ck_assert_int_eq(own("198.51.100.7"), 0);
	ck_assert_int_eq(own("2001:db8::7"), 0);
}
END_TEST

START_TEST(all_addresses_of_this_machine_are_own)
{
	struct ifaddrs *all = NULL;

	ck_assert_int_eq(getifaddrs(&all), 0);
	for (struct ifaddrs *i = all; i; i = i->ifa_next) {
		struct sockaddr_storage sa = { .ss_family = AF_UNSPEC };
		struct netaddr a;
		uint16_t port = 0;

		if (!i->ifa_addr || (i->ifa_addr->sa_family != AF_INET &&
						    i->ifa_addr->sa_family != AF_INET6)) {
			continue;
		}
		memcpy(&sa, i->ifa_addr,
				i->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
								  : sizeof(struct sockaddr_in6));
		ck_assert_int_eq(netaddr_from_sock(&sa, &a, &port), 0);
		/* Which link it is on, is no part of the address. */
		if (netaddr_kind(&a) != NETADDR_LINK_LOCAL) {
			ck_assert_int_eq(net_route_is_own(&a), 1);
		}
	}
	freeifaddrs(all);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("net_route");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, loopback_is_own);
	tcase_add_test(tc, others_are_not);
	tcase_add_test(tc, all_addresses_of_this_machine_are_own);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
