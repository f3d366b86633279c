/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>

#include <osbx/cleanup.h>
#include <osbx/error.h>

#include "../unit.h"

START_TEST(set_fills)
{
	struct error e = ERROR_INIT;

	ck_assert_int_eq(error_set(&e, ERRC_NOT_FOUND, "no sandbox %s", "x"), -1);
	ck_assert_int_eq(e.code, ERRC_NOT_FOUND);
	ck_assert_int_eq(e.sysno, 0);
	ck_assert_str_eq(e.text, "no sandbox x");
	ck_assert_str_eq(e.hint, "");
	ck_assert_int_eq(e.truncated, 0);
}
END_TEST

START_TEST(sys_fills)
{
	struct error e = ERROR_INIT;

	ck_assert_int_eq(error_sys(&e, EACCES, "open %s", "/x"), -1);
	ck_assert_int_eq(e.code, ERRC_SYSTEM);
	ck_assert_int_eq(e.sysno, EACCES);
	ck_assert_str_eq(e.text, "open /x");
}
END_TEST

START_TEST(wrap_prepends)
{
	struct error e = ERROR_INIT;

	error_sys(&e, EACCES, "open %s", "/x");
	ck_assert_int_eq(error_wrap(&e, "pull %s", "image"), -1);
	ck_assert_str_eq(e.text, "pull image: open /x");
	ck_assert_int_eq(e.sysno, EACCES);
	ck_assert_int_eq(e.truncated, 0);
}
END_TEST

START_TEST(wrap_cuts_the_tail)
{
	struct error e = ERROR_INIT;
	char text[ERROR_TEXT_MAX];

	memset(text, 'b', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	error_set(&e, ERRC_LIMIT, "%s", text);
	ck_assert_int_eq(e.truncated, 0);
	error_wrap(&e, "aa");
	ck_assert_int_eq(e.truncated, 1);
	ck_assert_int_eq(strlen(e.text), ERROR_TEXT_MAX - 1);
	ck_assert_int_eq(strncmp(e.text, "aa: bbb", 7), 0);
}
END_TEST

START_TEST(wrap_by_too_much_keeps_the_cause)
{
	struct error e = ERROR_INIT;
	char text[2 * ERROR_TEXT_MAX];

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	error_set(&e, ERRC_LIMIT, "cause");
	error_wrap(&e, "%s", text);
	ck_assert_str_eq(e.text, "cause");
	ck_assert_int_eq(e.truncated, 1);
}
END_TEST

START_TEST(set_truncates)
{
	struct error e = ERROR_INIT;

	error_set(&e, ERRC_LIMIT, "%*s", 2 * ERROR_TEXT_MAX, "x");
	ck_assert_int_eq(e.truncated, 1);
	ck_assert_int_eq(strlen(e.text), ERROR_TEXT_MAX - 1);
}
END_TEST

START_TEST(first_hint_wins)
{
	struct error e = ERROR_INIT;

	error_set(&e, ERRC_DENIED, "a");
	ck_assert_int_eq(error_hint(&e, "try %d", 1), -1);
	ck_assert_int_eq(error_hint(&e, "try %d", 2), -1);
	ck_assert_str_eq(e.hint, "try 1");
	ck_assert_int_eq(e.truncated, 0);
}
END_TEST

START_TEST(hint_truncates)
{
	struct error e = ERROR_INIT;

	error_set(&e, ERRC_DENIED, "a");
	error_hint(&e, "%*s", ERROR_HINT_MAX, "x");
	ck_assert_int_eq(e.truncated, 1);
}
END_TEST

START_TEST(clear_makes_room)
{
	struct error e = ERROR_INIT;

	error_sys(&e, EIO, "a");
	error_hint(&e, "b");
	error_clear(&e);
	ck_assert_int_eq(e.code, ERRC_OK);
	ck_assert_int_eq(e.sysno, 0);
	error_set(&e, ERRC_LIMIT, "c");
	ck_assert_str_eq(e.text, "c");
	ck_assert_str_eq(e.hint, "");
}
END_TEST

START_TEST(sanitize_makes_bytes_safe)
{
	struct error e;

	memset(&e, 0xff, sizeof(e));
	error_sanitize(&e);
	ck_assert_int_eq(e.code, ERRC_INTERNAL);
	ck_assert_int_eq(e.sysno, 0);
	ck_assert_int_eq(e.truncated, 1);
	ck_assert_int_eq(strlen(e.text), ERROR_TEXT_MAX - 1);
	ck_assert_int_eq(strlen(e.hint), ERROR_HINT_MAX - 1);
	/* Usable by everything that takes a code. */
	ck_assert_str_eq(error_name(e.code), "INTERNAL_ERROR");
}
END_TEST

START_TEST(sanitize_keeps_an_error)
{
	struct error e = ERROR_INIT;
	struct error before;

	error_sys(&e, ENOENT, "open x");
	error_hint(&e, "h");
	before = e;
	error_sanitize(&e);
	ck_assert_int_eq(memcmp(&e, &before, sizeof(e)), 0);
}
END_TEST

START_TEST(render_adds_the_reason_once)
{
	struct error e = ERROR_INIT;
	char out[600];
	char small[8];

	error_sys(&e, ENOENT, "open x");
	error_render(&e, out, sizeof(out));
	ck_assert_str_eq(out, "open x: No such file or directory");
	error_render(&e, small, sizeof(small));
	ck_assert_str_eq(small, "open x:");

	error_clear(&e);
	error_set(&e, ERRC_INVALID, "bad");
	error_render(&e, out, sizeof(out));
	ck_assert_str_eq(out, "bad");

	error_clear(&e);
	error_sys(&e, 4000, "odd");
	error_render(&e, out, sizeof(out));
	ck_assert_str_eq(out, "odd: error 4000");
}
END_TEST

START_TEST(codes_have_rows)
{
	for (int code = 0; code < ERRC_COUNT; code++) {
		ck_assert_ptr_nonnull(error_name((enum errc)code));
		ck_assert_int_ge(error_http_status((enum errc)code), 200);
		ck_assert_int_lt(error_http_status((enum errc)code), 600);
	}
	ck_assert_int_eq(error_exit_status(ERRC_OK), 0);
	ck_assert_int_eq(error_exit_status(ERRC_SYSTEM), 125);
	ck_assert_int_eq(error_exit_status(ERRC_TIMEOUT), 125);
	ck_assert_int_eq(error_exit_status(ERRC_NOT_EXECUTABLE), 126);
	ck_assert_int_eq(error_exit_status(ERRC_NO_COMMAND), 127);
	ck_assert_int_eq(error_http_status(ERRC_NOT_FOUND), 404);
}
END_TEST

START_TEST(second_error_aborts)
{
	struct error e = ERROR_INIT;

	error_set(&e, ERRC_LIMIT, "a");
	error_set(&e, ERRC_LIMIT, "b");
}
END_TEST

START_TEST(second_sys_error_aborts)
{
	struct error e = ERROR_INIT;

	error_set(&e, ERRC_LIMIT, "a");
	error_sys(&e, EIO, "b");
}
END_TEST

START_TEST(wrap_of_nothing_aborts)
{
	struct error e = ERROR_INIT;

	error_wrap(&e, "a");
}
END_TEST

START_TEST(hint_of_nothing_aborts)
{
	struct error e = ERROR_INIT;

	error_hint(&e, "a");
}
END_TEST

START_TEST(negative_errno_aborts)
{
	struct error e = ERROR_INIT;

	error_sys(&e, -EIO, "a");
}
END_TEST

START_TEST(code_ok_is_no_error)
{
	struct error e = ERROR_INIT;

	error_set(&e, ERRC_OK, "a");
}
END_TEST

START_TEST(take_moves_ownership)
{
	autofree char *a = strdup("x");
	char *b = TAKE_PTR(a);

	ck_assert_ptr_null(a);
	ck_assert_str_eq(b, "x");
	free(b);
}
END_TEST

START_TEST(cleanup_keeps_errno)
{
	int fd = -1;

	errno = EXDEV;
	{
		autoclose int scoped = dup(0);
		autofree char *p = malloc(1);

		fd = scoped;
		errno = EXDEV;
		(void)p;
	}
	ck_assert_int_eq(errno, EXDEV);
	ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("error");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, set_fills);
	tcase_add_test(tc, sys_fills);
	tcase_add_test(tc, wrap_prepends);
	tcase_add_test(tc, wrap_cuts_the_tail);
	tcase_add_test(tc, wrap_by_too_much_keeps_the_cause);
	tcase_add_test(tc, set_truncates);
	tcase_add_test(tc, first_hint_wins);
	tcase_add_test(tc, hint_truncates);
	tcase_add_test(tc, clear_makes_room);
	tcase_add_test(tc, sanitize_makes_bytes_safe);
	tcase_add_test(tc, sanitize_keeps_an_error);
	tcase_add_test(tc, render_adds_the_reason_once);
	tcase_add_test(tc, codes_have_rows);
	tcase_add_test_raise_signal(tc, second_error_aborts, SIGABRT);
	tcase_add_test_raise_signal(tc, second_sys_error_aborts, SIGABRT);
	tcase_add_test_raise_signal(tc, wrap_of_nothing_aborts, SIGABRT);
	tcase_add_test_raise_signal(tc, hint_of_nothing_aborts, SIGABRT);
	tcase_add_test_raise_signal(tc, negative_errno_aborts, SIGABRT);
	tcase_add_test_raise_signal(tc, code_ok_is_no_error, SIGABRT);
	tcase_add_test(tc, take_moves_ownership);
	tcase_add_test(tc, cleanup_keeps_errno);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
