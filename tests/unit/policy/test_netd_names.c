/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include <osbx/span.h>

#include "../../../policy/netd_names.h"
#include "../unit.h"

static struct names t;

static void teardown(void)
{
	names_done(&t);
	ck_assert_uint_eq(t.n, 0);
	ck_assert_ptr_null(t.newest);
}

static struct netaddr of(const char *text)
{
	struct netaddr a = { .family = 0 };

	ck_assert_int_eq(netaddr_parse(span_of(text), &a), 0);
	return a;
}

static struct netaddr numbered(unsigned int i)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "10.0.%u.%u", i / 256, i % 256);
	return of(text);
}

START_TEST(names_of_an_address)
{
	const struct netaddr a = of("192.0.2.1");
	const struct netaddr b = of("2001:db8::1");
	const char *found[NAMES_FOUND];

	names_add(&t, "one.test", &a, 60, 1000);
	names_add(&t, "two.test", &a, 60, 1000);
	names_add(&t, "two.test", &b, 60, 1000);
	ck_assert_uint_eq(names_find(&t, &a, 1000, found), 2);
	ck_assert_str_eq(found[0], "two.test");
	ck_assert_str_eq(found[1], "one.test");
	ck_assert_uint_eq(names_find(&t, &b, 1000, found), 1);
	ck_assert(names_has(&t, &b, "two.test", 1000));
	ck_assert(!names_has(&t, &b, "one.test", 1000));
	names_add(&t, "one.test", &a, 60, 2000);
	ck_assert_uint_eq(names_find(&t, &a, 2000, found), 2);
	ck_assert_str_eq(found[0], "one.test");
	ck_assert_uint_eq(t.n, 3);
}
END_TEST

START_TEST(a_binding_ends)
{
	const struct netaddr a = of("192.0.2.1");
	const char *found[NAMES_FOUND];
	int64_t end_ms = 1000 + 60000 + NAMES_GRACE_MS;

	names_add(&t, "one.test", &a, 60, 1000);
	ck_assert(names_has(&t, &a, "one.test", end_ms - 1));
	ck_assert(!names_has(&t, &a, "one.test", end_ms));
	ck_assert_uint_eq(names_find(&t, &a, end_ms, found), 0);
	/* However long it may be kept. */
	names_add(&t, "one.test", &a, UINT32_MAX, 1000);
	end_ms = 1000 + NAMES_TTL_MAX * INT64_C(1000) + NAMES_GRACE_MS;
	ck_assert(names_has(&t, &a, "one.test", end_ms - 1));
	ck_assert(!names_has(&t, &a, "one.test", end_ms));
}
END_TEST

START_TEST(the_newest_stay)
{
	for (unsigned int i = 0; i < NAMES_MAX + 5; i++) {
		const struct netaddr a = numbered(i);

		names_add(&t, "many.test", &a, 60, 1000);
	}
	const struct netaddr gone = numbered(4);
	const struct netaddr kept = numbered(5);

	ck_assert_uint_eq(t.n, NAMES_MAX);
	ck_assert(!names_has(&t, &gone, "many.test", 1000));
	ck_assert(names_has(&t, &kept, "many.test", 1000));
}
END_TEST

START_TEST(no_more_than_fit)
{
	const struct netaddr a = of("192.0.2.1");
	const char *found[NAMES_FOUND];
	char name[32];

	for (unsigned int i = 0; i < NAMES_FOUND + 3; i++) {
		(void)snprintf(name, sizeof(name), "n%u.test", i);
		names_add(&t, name, &a, 60, 1000);
	}
	ck_assert_uint_eq(names_find(&t, &a, 1000, found), NAMES_FOUND);
	ck_assert_str_eq(found[0], name);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("netd_names");
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, NULL, teardown);
	tcase_add_test(tc, names_of_an_address);
	tcase_add_test(tc, a_binding_ends);
	tcase_add_test(tc, the_newest_stay);
	tcase_add_test(tc, no_more_than_fit);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
