/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/span.h>
#include <osbx/utf8.h>

#include "../unit.h"

START_TEST(inline_helpers)
{
	struct span a = span_of("abc");

	ck_assert_uint_eq(a.n, 3);
	ck_assert(span_eq(a, span_of("abc")));
	ck_assert(!span_eq(a, span_of("abd")));
	ck_assert(!span_eq(a, span_of("ab")));
	ck_assert(span_eq((struct span){ .p = NULL }, (struct span){ .p = "x" }));
	ck_assert(span_has_prefix(a, span_of("ab")));
	ck_assert(span_has_prefix(a, (struct span){ .p = NULL }));
	ck_assert(!span_has_prefix(a, span_of("abcd")));
	ck_assert(span_eq(span_from(a, 1), span_of("bc")));
	ck_assert_uint_eq(span_from(a, 3).n, 0);
	ck_assert_uint_eq(span_from(a, 100).n, 0);
	ck_assert_ptr_eq(span_from(a, 100).p, a.p + 3);
}
END_TEST

static const struct {
	const char *text;
	const char *pieces[4];
} splits[] = {
	{ "a,b,c", { "a", "b", "c" } },
	{ "a", { "a" } },
	{ "", { "" } },
	{ ",", { "", "" } },
	{ "a,", { "a", "" } },
	{ ",a", { "", "a" } },
	{ "a,,b", { "a", "", "b" } },
};

START_TEST(next_splits)
{
	struct span rest = span_of(splits[_i].text);
	struct span piece;

	for (size_t k = 0; splits[_i].pieces[k]; k++) {
		ck_assert(span_next(&rest, ',', &piece));
		ck_assert(span_eq(piece, span_of(splits[_i].pieces[k])));
	}
	ck_assert(!span_next(&rest, ',', &piece));
	ck_assert(!span_next(&rest, ',', &piece));
}
END_TEST

START_TEST(next_needs_no_nul)
{
	const char bytes[] = { 'a', '\0', ';', 'b' };
	struct span rest = { .p = bytes, .n = sizeof(bytes) };
	struct span piece;

	ck_assert(span_next(&rest, ';', &piece));
	ck_assert_uint_eq(piece.n, 2);
	ck_assert(span_next(&rest, ';', &piece));
	ck_assert_uint_eq(piece.n, 1);
	ck_assert(!span_next(&rest, ';', &piece));
}
END_TEST

START_TEST(dup_refuses_nul)
{
	autofree char *s = span_dup((struct span){ .p = "abc", .n = 2 });
	autofree char *empty = span_dup((struct span){ .p = NULL });

	ck_assert_str_eq(s, "ab");
	ck_assert_str_eq(empty, "");
	ck_assert_ptr_null(span_dup((struct span){ .p = "a\0b", .n = 3 }));
	ck_assert_ptr_null(span_dup((struct span){ .p = "a", .n = 2 }));
}
END_TEST

static const struct {
	const char *text;
	bool is_valid;
} utf8_rows[] = {
	{ "", true },
	{ "plain", true },
	{ "\x7f", true },
	{ "\xc2\x80", true },
	{ "\xdf\xbf", true },
	{ "\xe0\xa0\x80", true },
	{ "\xed\x9f\xbf", true },
	{ "\xee\x80\x80", true },
	{ "\xef\xbf\xbf", true },
	{ "\xf0\x90\x80\x80", true },
	{ "\xf4\x8f\xbf\xbf", true },
	{ "a\xe2\x82\xac.", true },
	/* continuation alone, overlong forms */
	{ "\x80", false },
	{ "\xbf", false },
	{ "\xc0\x80", false },
	{ "\xc1\xbf", false },
	{ "\xe0\x80\x80", false },
	{ "\xe0\x9f\xbf", false },
	{ "\xf0\x80\x80\x80", false },
	{ "\xf0\x8f\xbf\xbf", false },
	/* surrogates, above U+10FFFF */
	{ "\xed\xa0\x80", false },
	{ "\xed\xbf\xbf", false },
	{ "\xf4\x90\x80\x80", false },
	{ "\xf5\x80\x80\x80", false },
	{ "\xfe", false },
	{ "\xff", false },
	/* cut short, broken */
	{ "\xc2", false },
	{ "\xe2\x82", false },
	{ "\xf0\x90\x80", false },
	{ "\xc2\x41", false },
	{ "\xe2\x82\x41", false },
	{ "\xf0\x90\x80\x41", false },
	{ "a\xff", false },
};

START_TEST(utf8_is_strict)
{
	ck_assert_int_eq(span_is_utf8(span_of(utf8_rows[_i].text)), utf8_rows[_i].is_valid);
}
END_TEST

/* A byte at a time and one character at a time it is the same. */
START_TEST(utf8_in_pieces)
{
	struct span text = span_of(utf8_rows[_i].text);
	struct utf8 u = { .left = 0 };
	bool is_valid = true;
	size_t at = 0;

	for (size_t i = 0; i < text.n && is_valid; i++) {
		is_valid = utf8_feed(&u, (struct span){ .p = text.p + i, .n = 1 });
	}
	ck_assert_int_eq(is_valid && u.left == 0, utf8_rows[_i].is_valid);
	while (at < text.n) {
		size_t n = utf8_len(text.p + at, text.n - at);

		if (n == 0) {
			break;
		}
		at += n;
	}
	ck_assert_int_eq(at == text.n, utf8_rows[_i].is_valid);
}
END_TEST

START_TEST(utf8_stays_inside)
{
	/* Valid only with the byte behind the end. */
	autofree char *p = malloc(3);

	memcpy(p, "\xe2\x82\xac", 3);
	ck_assert(span_is_utf8((struct span){ .p = p, .n = 3 }));
	ck_assert(!span_is_utf8((struct span){ .p = p, .n = 2 }));
	ck_assert(!span_is_utf8((struct span){ .p = p, .n = 1 }));
	ck_assert(span_is_utf8((struct span){ .p = "\0", .n = 1 }));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("span");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, inline_helpers);
	tcase_add_loop_test(tc, next_splits, 0, ARRAY_SIZE(splits));
	tcase_add_test(tc, next_needs_no_nul);
	tcase_add_test(tc, dup_refuses_nul);
	tcase_add_loop_test(tc, utf8_is_strict, 0, ARRAY_SIZE(utf8_rows));
	tcase_add_loop_test(tc, utf8_in_pieces, 0, ARRAY_SIZE(utf8_rows));
	tcase_add_test(tc, utf8_stays_inside);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
