/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <time.h>

#include <osbx/clock.h>

#include "../unit.h"

static const struct {
	int64_t wall_ms;
	const char *text;
} stamps[] = {
	{ 0, "1970-01-01T00:00:00.000Z" },
	{ 1, "1970-01-01T00:00:00.001Z" },
	{ 951826554321, "2000-02-29T12:15:54.321Z" },
	{ 4107542399999, "2100-02-28T23:59:59.999Z" },
	{ 253402300799999, "9999-12-31T23:59:59.999Z" },
	{ 253402300800000, "9999-12-31T23:59:59.999Z" },
	{ INT64_MAX, "9999-12-31T23:59:59.999Z" },
	{ -1, "1970-01-01T00:00:00.000Z" },
	{ INT64_MIN, "1970-01-01T00:00:00.000Z" },
};

START_TEST(rfc3339_writes)
{
	char out[CLOCK_RFC3339_MAX];
	char small[5];

	clock_rfc3339(stamps[_i].wall_ms, out, sizeof(out));
	ck_assert_str_eq(out, stamps[_i].text);
	clock_rfc3339(stamps[_i].wall_ms, small, sizeof(small));
	ck_assert_int_eq(strncmp(small, out, 4), 0);
	ck_assert_int_eq(small[4], '\0');
}
END_TEST

START_TEST(clocks_agree_with_the_kernel)
{
	struct timespec ts;
	int64_t before_us = clock_boot_us();
	int64_t boot_ms = 0;

	ck_assert_int_eq(clock_gettime(CLOCK_BOOTTIME, &ts), 0);
	boot_ms = clock_boot_ms();
	ck_assert_int_le(before_us, (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000);
	ck_assert_int_ge(boot_ms, (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000);
	ck_assert_int_le(boot_ms, clock_boot_us() / 1000);

	ck_assert_int_eq(clock_gettime(CLOCK_REALTIME, &ts), 0);
	ck_assert_int_le((int64_t)ts.tv_sec - clock_wall_ms() / 1000, 1);
	ck_assert_int_ge((int64_t)ts.tv_sec - clock_wall_ms() / 1000, -60);
}
END_TEST

START_TEST(no_room_aborts)
{
	char out[1];

	clock_rfc3339(0, out, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("clock");
	TCase *tc = tcase_create("all");

	tcase_add_loop_test(tc, rfc3339_writes, 0, ARRAY_SIZE(stamps));
	tcase_add_test(tc, clocks_agree_with_the_kernel);
	tcase_add_test_raise_signal(tc, no_room_aborts, SIGABRT);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
