/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "../../../oci/fetch_retry.h"
#include "../unit.h"

#define UNKNOWN RETRY_RANGE_UNKNOWN

START_TEST(pauses_double_and_vary)
{
	static const int64_t least[] = { 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000 };

	for (uint32_t i = 0; i < ARRAY_SIZE(least); i++) {
		for (uint32_t chance = 0; chance < 100000; chance += 333) {
			int64_t ms = retry_pause_ms(&fetch_timing_default, i + 1, chance);
			int64_t most = least[i] + least[i] / 2;

			ck_assert_int_ge(ms, least[i]);
			ck_assert_int_le(ms, most > 30000 ? 30000 : most);
		}
	}
	ck_assert_int_ne(retry_pause_ms(&fetch_timing_default, 1, 0),
			retry_pause_ms(&fetch_timing_default, 1, 100));
	ck_assert_int_eq(retry_pause_ms(&fetch_timing_default, UINT32_MAX, UINT32_MAX), 30000);
}
END_TEST

static const struct {
	const char *field;
	int rc;
	struct retry_range range;
} ranges[] = {
	{ "bytes 10-99/100", 0, { 10, 99, 100 } },
	{ "bytes 0-0/1", 0, { 0, 0, 1 } },
	{ "bytes 10-99/*", 0, { 10, 99, UNKNOWN } },
	{ "bytes */100", 0, { UNKNOWN, UNKNOWN, 100 } },
	{ "bytes */*", 0, { UNKNOWN, UNKNOWN, UNKNOWN } },
	{ "bytes 0-9223372036854775806/9223372036854775807", 0,
			{ 0, 9223372036854775806ULL, 9223372036854775807ULL } },
	{ "bytes 10-99/99", -EINVAL, { 0 } },
	{ "bytes 10-9/100", -EINVAL, { 0 } },
	{ "bytes 10-99/100 ", -EINVAL, { 0 } },
	{ "bytes  10-99/100", -EINVAL, { 0 } },
	{ "bytes 10-99", -EINVAL, { 0 } },
	{ "bytes -99/100", -EINVAL, { 0 } },
	{ "bytes 10-/100", -EINVAL, { 0 } },
	{ "bytes 10-99/", -EINVAL, { 0 } },
	{ "bytes +1-99/100", -EINVAL, { 0 } },
	{ "bytes 0x1-99/100", -EINVAL, { 0 } },
	{ "bytes 1-99999999999999999999999999/*", -EINVAL, { 0 } },
	{ "bytes 1-18446744073709551615/*", -EINVAL, { 0 } },
	{ "items 10-99/100", -EINVAL, { 0 } },
	{ "", -EINVAL, { 0 } },
};

START_TEST(range_is_parsed)
{
	struct retry_range r = { 7, 7, 7 };

	ck_assert_msg(retry_range_parse(ranges[_i].field, &r) == ranges[_i].rc, "%s",
			ranges[_i].field);
	ck_assert_uint_eq(r.first, ranges[_i].rc < 0 ? 7 : ranges[_i].range.first);
	ck_assert_uint_eq(r.last, ranges[_i].rc < 0 ? 7 : ranges[_i].range.last);
	ck_assert_uint_eq(r.total, ranges[_i].rc < 0 ? 7 : ranges[_i].range.total);
}
END_TEST

static const struct {
	const char *field;
	const char *text;
} limits[] = {
	{ "100;w=21600", "100 pulls in 6 hours" },
	{ "200;w=3600", "200 pulls in 1 hour" },
	{ "5;w=60", "5 pulls in 1 minute" },
	{ "5;w=90", "5 pulls in 90 seconds" },
	{ "5;w=120", "5 pulls in 2 minutes" },
	{ "100", "" },
	{ "100;w=", "" },
	{ "100;w=0", "" },
	{ "100;w=x", "" },
	{ ";w=60", "" },
	{ "-1;w=60", "" },
	{ "99999999999;w=60", "" },
	{ "1;w=99999999999", "" },
	{ "", "" },
	{ NULL, "" },
};

START_TEST(limit_is_readable)
{
	char text[64];

	ck_assert_int_eq(retry_limit_text(limits[_i].field, text, sizeof(text)),
			limits[_i].text[0] != '\0');
	ck_assert_str_eq(text, limits[_i].text);
}
END_TEST

START_TEST(exhaustion_is_seen)
{
	ck_assert(retry_is_exhausted("0;w=21600"));
	ck_assert(retry_is_exhausted("0"));
	ck_assert(!retry_is_exhausted("1;w=21600"));
	ck_assert(!retry_is_exhausted("0x"));
	ck_assert(!retry_is_exhausted(""));
	ck_assert(!retry_is_exhausted(NULL));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fetch_retry");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, pauses_double_and_vary);
	tcase_add_loop_test(tc, range_is_parsed, 0, (int)ARRAY_SIZE(ranges));
	tcase_add_loop_test(tc, limit_is_readable, 0, (int)ARRAY_SIZE(limits));
	tcase_add_test(tc, exhaustion_is_seen);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
