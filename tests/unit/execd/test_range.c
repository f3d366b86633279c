/* SPDX-License-Identifier: Apache-2.0 */
#include "../../../execd/range.h"
#include "../unit.h"

static const struct {
	const char *value;
	uint64_t size;
	enum range what;
	uint64_t start;
	uint64_t n;
} ranges[] = {
	{ "bytes=0-0", 10, RANGE_PART, 0, 1 },
	{ "bytes=0-9", 10, RANGE_PART, 0, 10 },
	{ "bytes=0-99", 10, RANGE_PART, 0, 10 },
	{ "bytes=5-", 10, RANGE_PART, 5, 5 },
	{ "bytes=9-", 10, RANGE_PART, 9, 1 },
	{ "bytes=-3", 10, RANGE_PART, 7, 3 },
	{ "bytes=-30", 10, RANGE_PART, 0, 10 },
	{ "Bytes=1-2", 10, RANGE_PART, 1, 2 },
	{ " bytes= 1 - 2 ", 10, RANGE_PART, 1, 2 },
	{ "bytes=2-99999999999999999999999", 10, RANGE_PART, 2, 8 },
	{ "bytes=2-18446744073709551615", 10, RANGE_PART, 2, 8 },
	{ "bytes=0-1,3-4", 10, RANGE_WHOLE, 0, 0 },
	{ "bytes=10-", 10, RANGE_BEYOND, 0, 0 },
	{ "bytes=99999999999999999999-", 10, RANGE_BEYOND, 0, 0 },
	{ "bytes=-0", 10, RANGE_BEYOND, 0, 0 },
	{ "bytes=0-", 0, RANGE_BEYOND, 0, 0 },
	{ "bytes=-1", 0, RANGE_BEYOND, 0, 0 },
	{ "bytes=3-2", 10, RANGE_MALFORMED, 0, 0 },
	{ "bytes=-", 10, RANGE_MALFORMED, 0, 0 },
	{ "bytes=", 10, RANGE_MALFORMED, 0, 0 },
	{ "bytes=a-b", 10, RANGE_MALFORMED, 0, 0 },
	{ "bytes=1", 10, RANGE_MALFORMED, 0, 0 },
	{ "bytes=1--2", 10, RANGE_MALFORMED, 0, 0 },
	{ "bytes=+1-2", 10, RANGE_MALFORMED, 0, 0 },
	{ "bytes=0x1-2", 10, RANGE_MALFORMED, 0, 0 },
	{ "lines=1-2", 10, RANGE_MALFORMED, 0, 0 },
	{ "", 10, RANGE_MALFORMED, 0, 0 },
};

START_TEST(byte_ranges)
{
	uint64_t start = 0;
	uint64_t n = 0;

	ck_assert_msg(range_parse(span_of(ranges[_i].value), ranges[_i].size, &start, &n) ==
					ranges[_i].what,
			"%s", ranges[_i].value);
	ck_assert_uint_eq(start, ranges[_i].start);
	ck_assert_uint_eq(n, ranges[_i].n);
}
END_TEST

static const struct {
	const char *text;
	uint64_t first;
	uint64_t limit;
	const char *lines;
} line_cases[] = {
	{ "a\nb\nc\n", 1, 0, "a\nb\nc\n" },
	{ "a\nb\nc\n", 1, 1, "a\n" },
	{ "a\nb\nc\n", 2, 1, "b\n" },
	{ "a\nb\nc\n", 3, 1, "c\n" },
	{ "a\nb\nc\n", 3, 9, "c\n" },
	{ "a\nb\nc\n", 4, 1, "" },
	{ "a\nb\nc\n", 5, 0, "" },
	{ "a\nb\nc", 3, 0, "c" },
	{ "a\nb\nc", 2, 2, "b\nc" },
	{ "\n\n\n", 2, 1, "\n" },
	{ "", 1, 1, "" },
	{ "a", 1, 1, "a" },
	{ "a", 2, 1, "" },
	{ "a\r\nb\r\n", 2, 1, "b\r\n" },
	{ "a\nb\n", UINT64_MAX, UINT64_MAX, "" },
};

static int file_of(const char *text, size_t n)
{
	int fd = openat(unit_fd, "f", O_RDWR | O_CREAT | O_TRUNC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, n), (ssize_t)n);
	return fd;
}

START_TEST(lines)
{
	const char *text = line_cases[_i].text;
	int fd = file_of(text, strlen(text));
	uint64_t start = 0;
	uint64_t n = 0;

	ck_assert_int_eq(
			range_lines(fd, line_cases[_i].first, line_cases[_i].limit, &start, &n), 0);
	ck_assert_uint_eq(n, strlen(line_cases[_i].lines));
	ck_assert_uint_le(start + n, strlen(text));
	ck_assert_int_eq(memcmp(text + start, line_cases[_i].lines, n), 0);
	close(fd);
}
END_TEST

/* Lines longer than what is read at once, and ends of lines at its edges. */
START_TEST(long_lines)
{
	const size_t piece = 256 << 10;
	const size_t n = 3 * piece;
	char *text = malloc(n);
	uint64_t start = 0;
	uint64_t bytes = 0;

	memset(text, 'x', n);
	text[piece - 1] = '\n';
	text[piece] = '\n';
	int fd = file_of(text, n);

	ck_assert_int_eq(range_lines(fd, 2, 1, &start, &bytes), 0);
	ck_assert_uint_eq(start, piece);
	ck_assert_uint_eq(bytes, 1);
	ck_assert_int_eq(range_lines(fd, 3, 1, &start, &bytes), 0);
	ck_assert_uint_eq(start, piece + 1);
	ck_assert_uint_eq(bytes, n - piece - 1);
	free(text);
	close(fd);
}
END_TEST

static const struct {
	const char *name;
	const char *field;
} names[] = {
	{ "a.txt", "attachment; filename=\"a.txt\"" },
	{ "a b;c.txt", "attachment; filename=\"a b;c.txt\"" },
	{ "a\"b\\c", "attachment; filename=\"a_b_c\"; filename*=UTF-8''a%22b%5Cc" },
	{ "a\r\nX: y", "attachment; filename=\"a__X: y\"; filename*=UTF-8''a%0D%0AX%3A%20y" },
	{ "\xc3\xa4.txt", "attachment; filename=\"__.txt\"; filename*=UTF-8''%C3%A4.txt" },
	{ "100%.txt", "attachment; filename=\"100%.txt\"" },
	{ "\x7f", "attachment; filename=\"_\"; filename*=UTF-8''%7F" },
};

START_TEST(dispositions)
{
	AUTO(buf) struct buf b = BUF_INIT(1000);

	ck_assert_int_eq(range_disposition(names[_i].name, &b), 0);
	ck_assert_str_eq(b.p, names[_i].field);
}
END_TEST

START_TEST(dates)
{
	char text[HTTP_DATE_MAX];

	range_http_date(784111777, text, sizeof(text));
	ck_assert_str_eq(text, "Sun, 06 Nov 1994 08:49:37 GMT");
	range_http_date(0, text, sizeof(text));
	ck_assert_str_eq(text, "Thu, 01 Jan 1970 00:00:00 GMT");
	range_http_date((time_t)1 << 60, text, sizeof(text));
	ck_assert_str_eq(text, "Thu, 01 Jan 1970 00:00:00 GMT");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("range");
	TCase *t = tcase_create("range");
	TCase *files = tcase_create("lines");

	tcase_add_loop_test(t, byte_ranges, 0, ARRAY_SIZE(ranges));
	tcase_add_loop_test(t, dispositions, 0, ARRAY_SIZE(names));
	tcase_add_test(t, dates);
	suite_add_tcase(s, t);
	unit_with_dir(files);
	tcase_add_loop_test(files, lines, 0, ARRAY_SIZE(line_cases));
	tcase_add_test(files, long_lines);
	suite_add_tcase(s, files);
	return unit_run(s);
}
