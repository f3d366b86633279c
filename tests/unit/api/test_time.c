/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "../../../src/api/api_internal.h"
#include "../unit.h"

START_TEST(times)
{
	static const struct {
		const char *text;
		int64_t ms; /* -1: refused */
	} rows[] = {
		{ "1970-01-01T00:00:00Z", 0 },
		{ "2026-11-30T14:21:29.309114+00:00", 1796048489309 },
		{ "2026-11-30T16:06:54.806472956Z", 1796054814806 },
		{ "2026-11-30T16:06:54Z", 1796054814000 },
		{ "2026-11-30T16:06:54.5Z", 1796054814500 },
		{ "2026-11-30T18:06:54+02:00", 1796054814000 },
		{ "2026-11-30T11:06:54-0500", 1796054814000 },
		{ "2026-11-30 16:06:54", 1796054814000 },
		{ "2024-02-29T00:00:00Z", 1709164800000 },
		{ "2026-02-29T00:00:00Z", -1 },
		{ "2026-13-01T00:00:00Z", -1 },
		{ "2026-00-01T00:00:00Z", -1 },
		{ "2026-11-31T00:00:00Z", -1 },
		{ "2026-11-30T24:00:00Z", -1 },
		{ "2026-11-30T16:06:54.Z", -1 },
		{ "2026-11-30T16:06:54.1234567890Z", -1 },
		{ "2026-11-30T16:06:54+99:00", -1 },
		{ "2026-11-30T16:06:54Zx", -1 },
		{ "2026-11-30", -1 },
		{ "26-11-30T16:06:54Z", -1 },
		{ "1969-12-31T23:59:59Z", -1 },
		{ "", -1 },
		{ "tomorrow", -1 },
		{ "+026-11-30T16:06:54Z", -1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int64_t ms = -1;
		int r = time_parse(rows[i].text, &ms);

		ck_assert_msg(ms == rows[i].ms, "\"%s\": %lld", rows[i].text, (long long)ms);
		ck_assert_int_eq(r, rows[i].ms < 0 ? -EINVAL : 0);
	}
}
END_TEST

START_TEST(written)
{
	AUTO(buf) struct buf out = BUF_INIT(256);
	struct json_writer w = JSON_WRITER(&out);

	json_object_begin(&w, NULL);
	view_time(&w, "at", 1796054814806);
	json_object_end(&w);
	autofree char *text = buf_take(&out);

	ck_assert_str_eq(text, "{\"at\":\"2026-11-30T16:06:54.806000Z\"}");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("time");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, times);
	tcase_add_test(tc, written);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
