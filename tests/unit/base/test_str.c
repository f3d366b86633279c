/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>

#include <osbx/str.h>

#include "../unit.h"

START_TEST(predicates)
{
	const char *text = "sha256:ab";

	ck_assert_ptr_eq(str_after(text, "sha256:"), text + 7);
	ck_assert_ptr_eq(str_after(text, ""), text);
	ck_assert_ptr_null(str_after("sha", "sha256:"));
	ck_assert(str_has_suffix("a.json", ".json"));
	ck_assert(str_has_suffix("a", ""));
	ck_assert(!str_has_suffix("json", ".json"));
	ck_assert(str_is_digits("0123456789"));
	ck_assert(!str_is_digits(""));
	ck_assert(!str_is_digits("1a"));
	ck_assert(!str_is_digits("-1"));
	ck_assert(str_is_made_of("abba", "ab"));
	ck_assert(!str_is_made_of("", "ab"));
	ck_assert(!str_is_made_of("abc", "ab"));
}
END_TEST

static const struct {
	const char *text;
	uint64_t max;
	int result;
	uint64_t value;
} numbers[] = {
	{ "0", 0, 0, 0 }, { "1", 0, -ERANGE, 0 }, { "65535", 65535, 0, 65535 },
	{ "65536", 65535, -ERANGE, 0 }, { "007", 10, 0, 7 },
	{ "18446744073709551615", UINT64_MAX, 0, UINT64_MAX },
	{ "18446744073709551616", UINT64_MAX, -ERANGE, 0 },
	{ "99999999999999999999999999", UINT64_MAX, -ERANGE, 0 },
	{ "4294967296", UINT32_MAX, -ERANGE, 0 }, { "", 9, -EINVAL, 0 }, { "+1", 9, -EINVAL, 0 },
	{ "-1", 9, -EINVAL, 0 }, { " 1", 9, -EINVAL, 0 }, { "1 ", 9, -EINVAL, 0 },
	{ "1\n", 9, -EINVAL, 0 }, { "0x1", 9, -EINVAL, 0 }, { "1e1", 99, -EINVAL, 0 },
	{ "1:2", 99, -EINVAL, 0 }, { "\xd9\xa1", 9, -EINVAL, 0 }, /* an Arabic digit */
};

START_TEST(u64_is_strict)
{
	uint64_t v = 12345;

	ck_assert_int_eq(str_to_u64(numbers[_i].text, numbers[_i].max, &v), numbers[_i].result);
	ck_assert_uint_eq(v, numbers[_i].result == 0 ? numbers[_i].value : 12345);
}
END_TEST

static const struct {
	const char *text;
	int result;
	uint64_t bytes;
} sizes[] = {
	{ "0", 0, 0 },
	{ "100", 0, 100 },
	{ "100b", 0, 100 },
	{ "100B", 0, 100 },
	{ "512k", 0, 512 << 10 },
	{ "64m", 0, 64 << 20 },
	{ "64M", 0, 64 << 20 },
	{ "64mb", 0, 64 << 20 },
	{ "64MB", 0, 64 << 20 },
	{ "64Mi", -EINVAL, 0 },
	{ "64MiB", 0, 64 << 20 },
	{ "64mib", 0, 64 << 20 },
	{ "2g", 0, UINT64_C(2) << 30 },
	{ "3T", 0, UINT64_C(3) << 40 },
	{ "16777215t", 0, UINT64_C(16777215) << 40 },
	{ "16777216t", -ERANGE, 0 },
	{ "18446744073709551615", 0, UINT64_MAX },
	{ "18446744073709551616", -ERANGE, 0 },
	{ "18014398509481984k", -ERANGE, 0 },
	{ "", -EINVAL, 0 },
	{ "m", -EINVAL, 0 },
	{ "1.5g", -EINVAL, 0 },
	{ "-1", -EINVAL, 0 },
	{ "+1m", -EINVAL, 0 },
	{ "1 m", -EINVAL, 0 },
	{ " 1m", -EINVAL, 0 },
	{ "1p", -EINVAL, 0 },
	{ "1iB", -EINVAL, 0 },
	{ "1mm", -EINVAL, 0 },
	{ "1mbb", -EINVAL, 0 },
	{ "1bm", -EINVAL, 0 },
	{ "1m ", -EINVAL, 0 },
	{ "0x10", -EINVAL, 0 },
	{ "1\x0b", -EINVAL, 0 }, /* differs from 'k' in bit 0x20 and more */
	{ "1\x4b", 0, 1024 },
};

START_TEST(size_is_strict)
{
	uint64_t v = 12345;

	ck_assert_int_eq(str_to_size(sizes[_i].text, &v), sizes[_i].result);
	ck_assert_uint_eq(v, sizes[_i].result == 0 ? sizes[_i].bytes : 12345);
}
END_TEST

START_TEST(no_byte_but_the_letters_is_a_suffix)
{
	for (int c = 1; c < 256; c++) {
		const char text[] = { '1', (char)c, '\0' };
		uint64_t v = 0;
		bool is_suffix = strchr("bBkKmMgGtT", c) != NULL;
		bool is_digit = c >= '0' && c <= '9';

		ck_assert_int_eq(str_to_size(text, &v), is_suffix || is_digit ? 0 : -EINVAL);
	}
}
END_TEST

static const struct {
	uint64_t bytes;
	const char *text;
} readable[] = {
	{ 0, "0 B" },
	{ 1023, "1023 B" },
	{ 1024, "1 KiB" },
	{ 1536, "1.5 KiB" },
	{ 1024 * 1024 - 1, "1023.9 KiB" },
	{ 1024 * 1024, "1 MiB" },
	{ UINT64_C(3) << 30, "3 GiB" },
	{ UINT64_C(1) << 60, "1 EiB" },
	{ UINT64_MAX, "15.9 EiB" },
};

START_TEST(size_is_readable)
{
	char out[32];
	char small[4];

	str_from_size(readable[_i].bytes, out, sizeof(out));
	ck_assert_str_eq(out, readable[_i].text);
	str_from_size(readable[_i].bytes, small, sizeof(small));
	ck_assert_int_eq(strncmp(small, out, 3), 0);
	ck_assert_int_le(strlen(small), 3);
}
END_TEST

static const struct {
	const char *in;
	const char *out;
} printables[] = {
	{ "", "" },
	{ "plain text", "plain text" },
	{ "a\tb\nc\rd", "a?b?c?d" },
	{ "\x1b[2J", "?[2J" },
	{ "\x7f", "?" },
	{ "\xc2\x9b"
	  "2J",
			"?2J" }, /* CSI as one C1 character */
	{ "\x9b"
	  "2J",
			"?2J" }, /* CSI of an 8-bit terminal */
	{ "\xc3\x80\xe2\x82\xac", "\xc3\x80\xe2\x82\xac" },
	{ "\xc2\xa0", "\xc2\xa0" },
	{ "\xff\xfe", "??" },
	{ "\xe2\x82", "??" },
};

START_TEST(printable_replaces_controls)
{
	char out[64];

	str_printable(printables[_i].in, out, sizeof(out));
	ck_assert_str_eq(out, printables[_i].out);
}
END_TEST

START_TEST(printable_cuts_between_characters)
{
	char out[4];
	char one[1] = { 'x' };

	str_printable("ab\xe2\x82\xac", out, sizeof(out));
	ck_assert_str_eq(out, "ab");
	str_printable("abcdef", out, sizeof(out));
	ck_assert_str_eq(out, "abc");
	str_printable("abc", one, sizeof(one));
	ck_assert_str_eq(one, "");
}
END_TEST

START_TEST(no_room_aborts)
{
	char out[1];

	str_printable("a", out, 0);
}
END_TEST

static const struct {
	const char *text;
	int result;
	int64_t ms;
} durations[] = {
	{ "0", 0, 0 },
	{ "90", 0, 90000 },
	{ "90s", 0, 90000 },
	{ "15m", 0, 900000 },
	{ "1h30m", 0, 5400000 },
	{ "1d2h3m4s5ms", 0, 93784005 },
	{ "250ms", 0, 250 },
	{ "1m1", -EINVAL, 0 },
	{ "", -EINVAL, 0 },
	{ "s", -EINVAL, 0 },
	{ "-1s", -EINVAL, 0 },
	{ "+1s", -EINVAL, 0 },
	{ " 1s", -EINVAL, 0 },
	{ "1s ", -EINVAL, 0 },
	{ "1.5h", -EINVAL, 0 },
	{ "1x", -EINVAL, 0 },
	{ "1sm", -EINVAL, 0 },
	{ "30m1h", -EINVAL, 0 },
	{ "1s1s", -EINVAL, 0 },
	{ "1H", -EINVAL, 0 },
	{ "0x10s", -EINVAL, 0 },
	{ "3653d", 0, 315619200000 },
	{ "3653d1ms", -ERANGE, 0 },
	{ "99999999999999999999999999", -ERANGE, 0 },
	{ "18446744073709551616ms", -ERANGE, 0 },
	{ "9223372036854775807d", -ERANGE, 0 },
};

START_TEST(duration_is_strict)
{
	int64_t ms = 12345;

	ck_assert_int_eq(str_to_duration(durations[_i].text, &ms), durations[_i].result);
	ck_assert_int_eq(ms, durations[_i].result == 0 ? durations[_i].ms : 12345);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("str");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, predicates);
	tcase_add_loop_test(tc, u64_is_strict, 0, ARRAY_SIZE(numbers));
	tcase_add_loop_test(tc, size_is_strict, 0, ARRAY_SIZE(sizes));
	tcase_add_test(tc, no_byte_but_the_letters_is_a_suffix);
	tcase_add_loop_test(tc, size_is_readable, 0, ARRAY_SIZE(readable));
	tcase_add_loop_test(tc, printable_replaces_controls, 0, ARRAY_SIZE(printables));
	tcase_add_loop_test(tc, duration_is_strict, 0, ARRAY_SIZE(durations));
	tcase_add_test(tc, printable_cuts_between_characters);
	tcase_add_test_raise_signal(tc, no_room_aborts, SIGABRT);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
