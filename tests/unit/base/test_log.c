/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>

#include <osbx/fd.h>
#include <osbx/json.h>
#include <osbx/log.h>

#include "../unit.h"

static int kept_stderr = -1;

/* From here on lines go to a file. */
static void capture(void)
{
	int fd = fd_open_at(unit_fd, "log", O_RDWR | O_CREAT | O_APPEND, 0600);

	ck_assert_int_ge(fd, 0);
	kept_stderr = dup(2);
	ck_assert_int_eq(dup2(fd, 2), 2);
	close(fd);
}

/* What was written since capture; the caller frees. */
static char *captured(void)
{
	struct buf b = BUF_INIT(1 << 20);

	ck_assert_int_eq(dup2(kept_stderr, 2), 2);
	ck_assert_int_eq(file_read_at(unit_fd, "log", &b), 0);
	return buf_take(&b);
}

START_TEST(text_by_level)
{
	autofree char *text = NULL;

	capture();
	log_error("a %d", 1);
	log_warn("b");
	log_info("hidden");
	log_debug("hidden");
	log_set_level(LOG_LEVEL_DEBUG);
	log_info("c");
	log_debug("d");
	log_set_level(LOG_LEVEL_ERROR);
	log_warn("hidden");
	text = captured();
	ck_assert_str_eq(text, "osbx: a 1\nosbx: warning: b\nosbx: c\nosbx: debug: d\n");
}
END_TEST

START_TEST(control_bytes_are_replaced)
{
	autofree char *text = NULL;

	capture();
	log_error("a\x1b[31mb\nosbx: forged\xc2\x9b");
	text = captured();
	ck_assert_str_eq(text, "osbx: a?[31mb?osbx: forged?\n");
}
END_TEST

START_TEST(errno_is_kept)
{
	autofree char *text = NULL;

	capture();
	errno = ENOENT;
	log_error("%m");
	ck_assert_int_eq(errno, ENOENT);
	log_set_json(true);
	log_error("x");
	ck_assert_int_eq(errno, ENOENT);
	text = captured();
	ck_assert_int_eq(strncmp(text, "osbx: No such file or directory\n", 32), 0);
}
END_TEST

START_TEST(long_lines_are_cut)
{
	autofree char *text = NULL;

	capture();
	log_error("%*s", 10000, "x");
	text = captured();
	ck_assert_int_lt(strlen(text), 3000);
	ck_assert_int_eq(text[strlen(text) - 1], '\n');
}
END_TEST

START_TEST(error_with_hint)
{
	struct error e = ERROR_INIT;
	autofree char *text = NULL;

	error_sys(&e, EACCES, "open \x1b/x");
	error_hint(&e, "run\nas root");
	capture();
	log_set_level(LOG_LEVEL_ERROR);
	log_print_error(&e);
	error_clear(&e);
	error_set(&e, ERRC_INVALID, "no such option");
	log_print_error(&e);
	text = captured();
	ck_assert_str_eq(text, "osbx: open ?/x: Permission denied\nhint: run?as root\n"
			       "osbx: no such option\n");
}
END_TEST

static struct json *line_parse(const char **line)
{
	const char *end = strchr(*line, '\n');
	struct error e = ERROR_INIT;
	struct json *v = NULL;

	ck_assert_ptr_nonnull(end);
	v = json_parse((struct span){ .p = *line, .n = (size_t)(end - *line) }, &e);
	ck_assert_msg(v != NULL, "%s: %s", e.text, *line);
	*line = end + 1;
	return v;
}

START_TEST(json_lines)
{
	struct error e = ERROR_INIT;
	autofree char *text = NULL;
	const char *at = NULL;

	error_sys(&e, EACCES, "open x");
	error_hint(&e, "chmod");
	capture();
	log_set_json(true);
	log_warn("quote \" control \x1b bad \xff end");
	log_print_error(&e);
	text = captured();
	at = text;
	{
		AUTO(json) struct json *v = line_parse(&at);

		ck_assert_str_eq(json_string(json_get(v, "level")), "warn");
		ck_assert_str_eq(json_string(json_get(v, "msg")),
				"quote \" control \x1b bad \xef\xbf\xbd end");
		ck_assert_uint_eq(strlen(json_string(json_get(v, "time"))), 24);
		ck_assert_ptr_null(json_get(v, "hint"));
	}
	{
		AUTO(json) struct json *v = line_parse(&at);

		ck_assert_str_eq(json_string(json_get(v, "level")), "error");
		ck_assert_str_eq(json_string(json_get(v, "msg")), "open x: Permission denied");
		ck_assert_str_eq(json_string(json_get(v, "hint")), "chmod");
	}
	ck_assert_str_eq(at, "");
}
END_TEST

START_TEST(closed_stderr_is_no_failure)
{
	capture();
	close(2);
	errno = EXDEV;
	log_error("nobody hears");
	ck_assert_int_eq(errno, EXDEV);
	ck_assert_int_eq(dup2(kept_stderr, 2), 2);
}
END_TEST

START_TEST(unknown_level_aborts)
{
	log_set_level(LOG_LEVEL_COUNT);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("log");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_test(tc, text_by_level);
	tcase_add_test(tc, control_bytes_are_replaced);
	tcase_add_test(tc, errno_is_kept);
	tcase_add_test(tc, long_lines_are_cut);
	tcase_add_test(tc, error_with_hint);
	tcase_add_test(tc, json_lines);
	tcase_add_test(tc, closed_stderr_is_no_failure);
	tcase_add_test_raise_signal(tc, unknown_level_aborts, SIGABRT);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
