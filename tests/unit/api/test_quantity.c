/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "../../../src/api/api_internal.h"
#include "../unit.h"

struct row {
	const char *text;
	int r;
	uint64_t value;
};

START_TEST(cpu)
{
	static const struct row rows[] = {
		{ "1", 0, 1000 },
		{ "0.5", 0, 500 },
		{ "1.25", 0, 1250 },
		{ "100m", 0, 100 },
		{ " 2 ", 0, 2000 },
		{ "0.0001", 0, 1 },
		{ "1.0010", 0, 1001 },
		{ "1.00000000001", 0, 1001 },
		{ "0", -ERANGE, 0 },
		{ "0m", -ERANGE, 0 },
		{ "0.0", -ERANGE, 0 },
		{ "8193", -ERANGE, 0 },
		{ "-1", -EINVAL, 0 },
		{ "1e3", -EINVAL, 0 },
		{ "inf", -EINVAL, 0 },
		{ "nan", -EINVAL, 0 },
		{ "m", -EINVAL, 0 },
		{ "1.m", -EINVAL, 0 },
		{ "1.", 0, 1000 },
		{ ".5", 0, 500 },
		{ ".", -EINVAL, 0 },
		{ ".x", -EINVAL, 0 },
		{ ".0", -ERANGE, 0 },
		{ "-.5", -EINVAL, 0 },
		{ "", -EINVAL, 0 },
		{ "1 m", -EINVAL, 0 },
		{ "two", -EINVAL, 0 },
		{ "99999999999999999999999999999999999999", -EINVAL, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t v = 0;

		ck_assert_msg(quantity_cpu(rows[i].text, &v) == rows[i].r, "\"%s\"", rows[i].text);
		ck_assert_msg(v == rows[i].value, "\"%s\": %lu", rows[i].text, (unsigned long)v);
	}
}
END_TEST

START_TEST(memory)
{
	static const struct row rows[] = {
		{ "512Mi", 0, 512ULL << 20 },
		{ "1gi", 0, 1ULL << 30 },
		{ "2G", 0, 2000000000 },
		{ "2gb", 0, 2000000000 },
		{ "64k", 0, 64000 },
		{ "64Ki", 0, 65536 },
		{ "1048576", 0, 1048576 },
		{ "7b", 0, 7 },
		{ " 1Ti ", 0, 1ULL << 40 },
		{ "0", -ERANGE, 0 },
		{ "99999999Ti", -ERANGE, 0 },
		{ "1.5Gi", -EINVAL, 0 },
		{ "1Pi", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "Mi", -EINVAL, 0 },
		{ "1 Mi", -EINVAL, 0 },
		{ "", -EINVAL, 0 },
		{ "lots", -EINVAL, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t v = 0;

		ck_assert_msg(quantity_memory(rows[i].text, &v) == rows[i].r, "\"%s\"",
				rows[i].text);
		ck_assert_msg(v == rows[i].value, "\"%s\": %lu", rows[i].text, (unsigned long)v);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("quantity");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, cpu);
	tcase_add_test(tc, memory);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
