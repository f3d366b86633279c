/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/json.h>

#include "../unit.h"

static const char *const fixes[][2] = {
	{ "a", "a" },
	{ "\\u0000", "\\ufffd" },
	{ "\\\\u0000", "\\\\u0000" },
	{ "\\\\\\u0000", "\\\\\\ufffd" },
	{ "\\ud83d\\ude00", "\\ud83d\\ude00" },
	{ "\\ud83d\\u0041", "\\ufffd\\u0041" },
	{ "\\ud83d", "\\ufffd" },
	{ "\\uDe00x", "\\ufffdx" },
	{ "\\ud83d\\ud83d\\ude00", "\\ufffd\\ud83d\\ude00" },
	{ "\\u00", "\\u00" },
	{ "\\", "\\" },
	{ "\\uzzzz\\u0000", "\\uzzzz\\ufffd" },
};

START_TEST(what_our_reader_refuses)
{
	AUTO(buf) struct buf text = BUF_INIT(100);

	ck_assert_int_eq(buf_append_str(&text, fixes[_i][0]), 0);
	json_mend(&text);
	ck_assert_str_eq(text.p, fixes[_i][1]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("base/json_mend");
	TCase *tc = tcase_create("json_mend");

	tcase_add_loop_test(tc, what_our_reader_refuses, 0, ARRAY_SIZE(fixes));
	suite_add_tcase(s, tc);
	return unit_run(s);
}
