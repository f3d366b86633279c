/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>

#include <osbx/buf.h>

#include "../unit.h"

START_TEST(append_up_to_the_maximum)
{
	AUTO(buf) struct buf b = BUF_INIT(5);

	ck_assert_int_eq(buf_append(&b, "abc", 3), 0);
	ck_assert_int_eq(buf_append(&b, "def", 3), -EMSGSIZE);
	ck_assert_uint_eq(b.n, 3);
	ck_assert_str_eq(b.p, "abc");
	ck_assert_int_eq(buf_append_str(&b, "de"), 0);
	ck_assert_str_eq(b.p, "abcde");
	ck_assert_int_eq(buf_append(&b, NULL, 0), 0);
	ck_assert_int_eq(buf_append(&b, "x", 1), -EMSGSIZE);
	ck_assert_int_eq(buf_append(&b, "x", SIZE_MAX), -EMSGSIZE);
	ck_assert_uint_le(b.cap, 6);
}
END_TEST

START_TEST(empty_is_usable)
{
	AUTO(buf) struct buf b = BUF_INIT(0);
	autofree char *s = NULL;

	ck_assert_int_eq(buf_append(&b, "x", 1), -EMSGSIZE);
	ck_assert_uint_eq(buf_span(&b).n, 0);
	ck_assert_ptr_nonnull(buf_span(&b).p);
	buf_reset(&b);
	buf_consume(&b, 0);
	s = buf_take(&b);
	ck_assert_str_eq(s, "");
	buf_done(NULL);
}
END_TEST

START_TEST(grows)
{
	AUTO(buf) struct buf b = BUF_INIT(1 << 20);

	for (int i = 0; i < 100000; i++) {
		char c = (char)('a' + i % 26);

		ck_assert_int_eq(buf_append(&b, &c, 1), 0);
	}
	ck_assert_uint_eq(b.n, 100000);
	for (int i = 0; i < 100000; i++) {
		ck_assert_int_eq(b.p[i], 'a' + i % 26);
	}
	ck_assert_int_eq(b.p[b.n], '\0');
}
END_TEST

START_TEST(unlimited_is_possible)
{
	AUTO(buf) struct buf b = BUF_INIT(SIZE_MAX);

	ck_assert_int_eq(buf_append_str(&b, "abc"), 0);
	ck_assert_int_eq(buf_reserve(&b, SIZE_MAX - 3), -EMSGSIZE);
	ck_assert_str_eq(b.p, "abc");
}
END_TEST

START_TEST(format_all_or_nothing)
{
	AUTO(buf) struct buf b = BUF_INIT(8);

	ck_assert_int_eq(buf_appendf(&b, "%d-%s", 42, "x"), 0);
	ck_assert_int_eq(buf_appendf(&b, "%s", "12345"), -EMSGSIZE);
	ck_assert_str_eq(b.p, "42-x");
	ck_assert_int_eq(buf_appendf(&b, "%s", "1234"), 0);
	ck_assert_str_eq(b.p, "42-x1234");
	ck_assert_int_eq(buf_appendf(&b, "%s", ""), 0);
}
END_TEST

START_TEST(reserve_is_filled_by_the_caller)
{
	AUTO(buf) struct buf b = BUF_INIT(100);
	autofree char *s = NULL;

	ck_assert_int_eq(buf_reserve(&b, 100), 0);
	ck_assert_int_eq(buf_reserve(&b, 101), -EMSGSIZE);
	memset(b.p, 'x', 100);
	b.n = 100;
	s = buf_take(&b);
	ck_assert_uint_eq(strlen(s), 100);
	ck_assert_uint_eq(b.n, 0);
	ck_assert_uint_eq(b.max, 100);
	ck_assert_int_eq(buf_append_str(&b, "again"), 0);
}
END_TEST

START_TEST(consume_moves_the_rest)
{
	AUTO(buf) struct buf b = BUF_INIT(6);

	ck_assert_int_eq(buf_append_str(&b, "abcdef"), 0);
	buf_consume(&b, 2);
	ck_assert_str_eq(b.p, "cdef");
	ck_assert_int_eq(buf_append_str(&b, "gh"), 0);
	buf_consume(&b, 6);
	ck_assert_str_eq(b.p, "");
	ck_assert_int_eq(buf_append_str(&b, "x"), 0);
	buf_reset(&b);
	ck_assert_uint_eq(b.n, 0);
	ck_assert_str_eq(b.p, "");
	buf_done(&b);
	ck_assert_uint_eq(b.max, 6);
	ck_assert_int_eq(buf_append_str(&b, "x"), 0);
}
END_TEST

START_TEST(consume_of_more_aborts)
{
	AUTO(buf) struct buf b = BUF_INIT(6);

	ck_assert_int_eq(buf_append_str(&b, "ab"), 0);
	buf_consume(&b, 3);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("buf");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, append_up_to_the_maximum);
	tcase_add_test(tc, empty_is_usable);
	tcase_add_test(tc, grows);
	tcase_add_test(tc, unlimited_is_possible);
	tcase_add_test(tc, format_all_or_nothing);
	tcase_add_test(tc, reserve_is_filled_by_the_caller);
	tcase_add_test(tc, consume_moves_the_rest);
	tcase_add_test_raise_signal(tc, consume_of_more_aborts, SIGABRT);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
