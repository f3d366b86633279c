/* SPDX-License-Identifier: Apache-2.0 */
/* Languages, and the texts of drivers that are built into PID 1. */
#include <osbx/buf.h>
#include <osbx/fd.h>
#include <osbx/str.h>

#include "../../../execd/code_internal.h"
#include "../unit.h"

#define DRIVERS_BYTES_MAX (62U << 10) /* PID 1 is copied at each start */

static const struct code_driver *driver_of(const struct code_lang *lang)
{
	for (size_t i = 0; i < code_drivers_n; i++) {
		if (str_eq(code_drivers[i].name, lang->driver)) {
			return &code_drivers[i];
		}
	}
	return NULL;
}

START_TEST(by_name_and_alias)
{
	const struct code_lang *python = code_lang_find("python");

	ck_assert_ptr_nonnull(python);
	ck_assert_ptr_eq(code_lang_find("python3"), python);
	ck_assert_ptr_null(code_lang_find("Python"));
	ck_assert_ptr_null(code_lang_find(""));
	ck_assert_ptr_null(code_lang_find("command"));
}
END_TEST

/* No name means two languages, and each one has a driver. */
START_TEST(rows_are_whole)
{
	for (size_t i = 0; i < code_langs_n; i++) {
		const struct code_lang *lang = &code_langs[i];

		ck_assert_ptr_eq(code_lang_find(lang->language), lang);
		for (size_t k = 0; lang->aliases && lang->aliases[k]; k++) {
			ck_assert_ptr_eq(code_lang_find(lang->aliases[k]), lang);
		}
		ck_assert_ptr_nonnull(lang->argv[0]);
		ck_assert_uint_le(strlen(lang->language), CODE_LANGUAGE_MAX);
		ck_assert_msg(driver_of(lang), "%s", lang->driver);
	}
}
END_TEST

START_TEST(drivers_are_small)
{
	size_t n = 0;

	for (size_t i = 0; i < code_drivers_n; i++) {
		const struct code_driver *d = &code_drivers[i];

		ck_assert_uint_eq(strlen(d->text), d->n);
		ck_assert_uint_gt(d->n, 100);
		ck_assert_ptr_null(strstr(d->text, "\n\n"));
		ck_assert_ptr_null(strstr(d->text, "SPDX"));
		n += d->n;
	}
	ck_assert_uint_le(n, DRIVERS_BYTES_MAX);
}
END_TEST

static void program_make(const char *path, mode_t mode)
{
	int fd = openat(unit_fd, path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fchmod(fd, mode), 0);
	close(fd);
}

/* In the PATH that is looked through where the main process is not known. */
START_TEST(is_there)
{
	const struct code_lang *python = code_lang_find("python");
	const struct execd x = { .root_fd = unit_fd, .cgroup_fd = -1 };
	AUTO(buf) struct buf list = BUF_INIT(256);

	ck_assert(!code_lang_is_there(&x, python));
	code_langs_list(&x, &list);
	ck_assert_uint_eq(list.n, 0);
	ck_assert_int_eq(mkdirat(unit_fd, "usr", 0755), 0);
	ck_assert_int_eq(mkdirat(unit_fd, "usr/bin", 0755), 0);
	ck_assert_int_eq(mkdirat(unit_fd, "usr/bin/python3", 0755), 0);
	ck_assert(!code_lang_is_there(&x, python));
	program_make("usr/bin/python", 0644);
	ck_assert(!code_lang_is_there(&x, python));
	ck_assert_int_eq(symlinkat("/usr/bin/python3.11", unit_fd, "bin"), 0);
	program_make("usr/bin/python3.11", 0755);
	ck_assert(!code_lang_is_there(&x, python));
	/* A link is one below the sandbox's root. */
	ck_assert_int_eq(unlinkat(unit_fd, "usr/bin/python", 0), 0);
	ck_assert_int_eq(symlinkat("/usr/bin/python3.11", unit_fd, "usr/bin/python"), 0);
	ck_assert(code_lang_is_there(&x, python));
	code_langs_list(&x, &list);
	ck_assert_str_eq(list.p, "python");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("code_lang");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_test(tc, by_name_and_alias);
	tcase_add_test(tc, rows_are_whole);
	tcase_add_test(tc, drivers_are_small);
	tcase_add_test(tc, is_there);
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
