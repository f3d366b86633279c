/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include <osbx/buf.h>
#include <osbx/span.h>

#include "../../../policy/netd_denials.h"
#include "../unit.h"

static struct netd_denials d;

static void drop(void)
{
	d = (struct netd_denials){ .last = 0 };
}

static struct netd_denial of(const char *name, const char *address, uint16_t port)
{
	struct netd_denial n = {
		.port = port,
		.proto = NETPOLICY_TCP,
		.rule = NETPOLICY_BY_DEFAULT,
	};

	(void)snprintf(n.name, sizeof(n.name), "%s", name);
	if (address) {
		ck_assert_int_eq(netaddr_parse(span_of(address), &n.addr), 0);
	}
	return n;
}

/* The list from after on, without its times. */
static char *list(uint64_t after)
{
	struct buf b = BUF_INIT(1U << 20);
	struct json_writer w = JSON_WRITER(&b);

	netd_denials_format(&d, after, &w);
	ck_assert(!w.failed);
	char *text = buf_take(&b);

	for (char *p = strstr(text, "\"time\":"); p; p = strstr(p, "\"time\":")) {
		char *end = strchr(p, ',') + 1;

		memmove(p, end, strlen(end) + 1);
	}
	return text;
}

START_TEST(a_list)
{
	struct netd_denial n = of("evil.test", NULL, 0);

	n.proto = NETPOLICY_ANY;
	n.rule = 2;
	(void)snprintf(n.target, sizeof(n.target), "*.test");
	ck_assert(netd_denials_add(&d, &n));
	n = of("", "10.0.0.1", 22);
	n.rule = NETPOLICY_BY_RESERVED;
	ck_assert(netd_denials_add(&d, &n));
	n = of("a.test", "192.0.2.1", 443);
	n.why = "the client named another host";
	ck_assert(netd_denials_add(&d, &n));
	autofree char *all = list(0);
	autofree char *last = list(2);
	autofree char *none = list(3);
	autofree char *beyond = list(UINT64_MAX);

	ck_assert_str_eq(all,
			"{\"denials\":[{\"seq\":1,\"times\":1,\"name\":\"evil.test\","
			"\"reason\":\"rule\",\"rule\":2,\"target\":\"*.test\"},"
			"{\"seq\":2,\"times\":1,\"address\":\"10.0.0.1\",\"port\":22,"
			"\"protocol\":\"tcp\",\"reason\":\"not a public address\"},"
			"{\"seq\":3,\"times\":1,\"name\":\"a.test\",\"address\":\"192.0.2.1\","
			"\"port\":443,\"protocol\":\"tcp\",\"reason\":\"the client named another "
			"host\"}],\"last\":3,\"total\":3}");
	ck_assert_ptr_nonnull(strstr(last, "{\"denials\":[{\"seq\":3,"));
	ck_assert_str_eq(none, "{\"denials\":[],\"last\":3,\"total\":3}");
	ck_assert_str_eq(beyond, none);
}
END_TEST

START_TEST(the_same_again_is_counted)
{
	const struct netd_denial a = of("a.test", NULL, 0);
	const struct netd_denial b = of("b.test", NULL, 0);

	ck_assert(netd_denials_add(&d, &a));
	ck_assert(netd_denials_add(&d, &b));
	ck_assert(!netd_denials_add(&d, &a));
	ck_assert(!netd_denials_add(&d, &b));
	ck_assert_uint_eq(d.last, 2);
	ck_assert_uint_eq(d.total, 4);
	/* A second later it is news. */
	d.ring[1].time_ms -= 1000;
	d.ring[2].time_ms -= 1000;
	ck_assert(netd_denials_add(&d, &a));
	ck_assert_uint_eq(d.last, 3);
}
END_TEST

START_TEST(the_newest_stay)
{
	for (unsigned int i = 1; i <= NETD_DENIALS_MAX + 10; i++) {
		const struct netd_denial n = of("", "192.0.2.1", (uint16_t)i);

		ck_assert(netd_denials_add(&d, &n));
	}
	autofree char *all = list(0);

	ck_assert_ptr_nonnull(strstr(all, "{\"denials\":[{\"seq\":11,"));
	ck_assert_ptr_nonnull(strstr(all, "\"last\":266,\"total\":266}"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("netd_denials");
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, drop, NULL);
	tcase_add_test(tc, a_list);
	tcase_add_test(tc, the_same_again_is_counted);
	tcase_add_test(tc, the_newest_stay);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
