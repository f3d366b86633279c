/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit - what all unit tests share: running a suite as TAP, and a directory of its own for each
 * test, removed afterwards whatever the test did.
 */
#ifndef OSBX_TESTS_UNIT_H
#define OSBX_TESTS_UNIT_H

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/file.h>

static char unit_base[64];
static char unit_path[96]; /* the running test's directory */
static int unit_fd = -1;

static inline void unit_base_make(void)
{
	snprintf(unit_base, sizeof(unit_base), "/tmp/osbx-unit-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(unit_base));
	/* A test may go on as another user. */
	ck_assert_int_eq(chmod(unit_base, 0711), 0);
}

static inline void unit_base_remove(void)
{
	ck_assert_int_eq(file_remove_tree_at(AT_FDCWD, unit_base), 0);
}

static inline void unit_dir_make(void)
{
	snprintf(unit_path, sizeof(unit_path), "%s/XXXXXX", unit_base);
	ck_assert_ptr_nonnull(mkdtemp(unit_path));
	unit_fd = open(unit_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(unit_fd, 0);
}

static inline void unit_dir_close(void)
{
	close(unit_fd);
}

/* Give each test of tc its own directory, unit_path and unit_fd. */
static inline void unit_with_dir(TCase *tc)
{
	tcase_add_unchecked_fixture(tc, unit_base_make, unit_base_remove);
	tcase_add_checked_fixture(tc, unit_dir_make, unit_dir_close);
}

/* Run all test cases of s and free it. The exit status of main. */
static inline int unit_run(Suite *s)
{
	SRunner *r = srunner_create(s);
	int failed = 0;

	srunner_set_tap(r, "-");
	srunner_run_all(r, CK_SILENT);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
