/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "../../../policy/netd_netlink.h"
#include "../unit.h"

START_TEST(bytes_of_a_message)
{
	static const uint8_t expected[] = { /* length, type, flags (request, ack), seq, pid */
		48, 0, 0, 0, 20, 0, 5, 0, 1, 0, 0, 0, 0, 0, 0, 0,
		/* head, padded */
		'h', 0, 0, 0,
		/* a string */
		8, 0, 1, 0, 'a', 'b', 'c', 0,
		/* a nest with a number in it and one byte */
		20, 0, 2, 0x80, 8, 0, 3, 0, 1, 2, 3, 4, 5, 0, 4, 0, 9, 0, 0, 0
	};
	struct netlink nl = { .n = 0 };
	const uint8_t nine = 9;

	netlink_begin(&nl, RTM_NEWADDR, NLM_F_ACK, "h", 1);
	netlink_put_str(&nl, 1, "abc");
	size_t nest = netlink_nest(&nl, 2);

	netlink_put_be32(&nl, 3, 0x01020304);
	netlink_put(&nl, 4, &nine, sizeof(nine));
	netlink_nest_end(&nl, nest);
	netlink_end(&nl);
	ck_assert_uint_eq(nl.n, sizeof(expected));
	ck_assert_mem_eq(nl.bytes, expected, sizeof(expected));
}
END_TEST

/* Any process may ask for a device; the one with number 0 is not there. */
START_TEST(the_kernel_says_no)
{
	const struct ifinfomsg none = { .ifi_family = AF_UNSPEC };
	struct netlink nl = { .n = 0 };
	uint32_t seq = 0;

	netlink_begin(&nl, RTM_GETLINK, NLM_F_ACK, &none, sizeof(none));
	netlink_end(&nl);
	ck_assert_int_lt(netlink_run(&nl, NETLINK_ROUTE, 1, &seq), 0);
	ck_assert_uint_eq(seq, 1);
}
END_TEST

START_TEST(the_kernel_says_yes)
{
	const struct ifinfomsg lo = { .ifi_family = AF_UNSPEC, .ifi_index = 1 };
	struct netlink nl = { .n = 0 };
	uint32_t seq = 0;

	netlink_begin(&nl, RTM_GETLINK, NLM_F_ACK, &lo, sizeof(lo));
	netlink_end(&nl);
	ck_assert_int_eq(netlink_run(&nl, NETLINK_ROUTE, 1, &seq), 0);
	ck_assert_uint_eq(seq, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("netd_netlink");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, bytes_of_a_message);
	tcase_add_test(tc, the_kernel_says_no);
	tcase_add_test(tc, the_kernel_says_yes);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
