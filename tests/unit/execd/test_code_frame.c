/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "../../../execd/code_frame.h"
#include "../../../execd/code_internal.h"
#include "../unit.h"

static int next(const char *text, struct code_frame *out, size_t *out_n)
{
	return code_frame_next(span_of(text), out, out_n);
}

START_TEST(a_frame_and_the_next)
{
	struct code_frame f = { .kind = 0 };
	size_t n = 0;

	ck_assert_int_eq(next("E 5\nabcdeS 0\n", &f, &n), 1);
	ck_assert_int_eq(f.kind, CODE_FRAME_ERROR);
	ck_assert(span_eq(f.payload, span_of("abcde")));
	ck_assert_uint_eq(n, 9);
	ck_assert_int_eq(next("S 0\n", &f, &n), 1);
	ck_assert_uint_eq(f.payload.n, 0);
	ck_assert_uint_eq(n, 4);
}
END_TEST

/* Every beginning of one is not yet one. */
START_TEST(cut_anywhere)
{
	static const char text[] = "X 12\n{\"a\":\"bcde\"}";
	struct code_frame f = { .kind = 0 };
	size_t n = 7;

	for (size_t i = 0; i < sizeof(text) - 2; i++) {
		struct span cut = { .p = text, .n = i };

		ck_assert_int_eq(code_frame_next(cut, &f, &n), i < 17 ? 0 : 1);
	}
	ck_assert_int_eq(next(text, &f, &n), 1);
	ck_assert_uint_eq(n, 17);
}
END_TEST

static const char *const bad[] = {
	"Q 1\na", /* no such kind */
	"R 1\na", /* ours to send */
	"A 0\n",
	"E5\nabcde",
	"E  5\nabcde",
	"E -1\n",
	"E +1\na",
	"E 0x1\na",
	"E 1 \na",
	"E \n",
	"E\n",
	"\n",
	"E 99999999999999999999\n",
	"E 00000000000000000001\n", /* a head that does not end in time */
	"S 1\na",
	"H 4097\n",
	"D 99999999\n",
	"nonsense",
};

START_TEST(refused)
{
	struct code_frame f = { .kind = 0 };
	size_t n = 7;

	ck_assert_msg(next(bad[_i], &f, &n) == -EBADMSG, "%s", bad[_i]);
	ck_assert_uint_eq(n, 7);
	ck_assert_int_eq(f.kind, 0);
}
END_TEST

/* A kind that is refused is refused with its first byte. */
START_TEST(refused_at_once)
{
	struct code_frame f = { .kind = 0 };
	size_t n = 0;

	ck_assert_int_eq(next("Q", &f, &n), -EBADMSG);
	ck_assert_int_eq(next("E", &f, &n), 0);
	ck_assert_int_eq(next("D 16842752\n", &f, &n), 0);
	ck_assert_int_eq(next("D 16842753\n", &f, &n), -EBADMSG);
	ck_assert_uint_eq(CODE_BUNDLE_MAX, 16842752);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("code_frame");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, a_frame_and_the_next);
	tcase_add_test(tc, cut_anywhere);
	tcase_add_loop_test(tc, refused, 0, ARRAY_SIZE(bad));
	tcase_add_test(tc, refused_at_once);
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
