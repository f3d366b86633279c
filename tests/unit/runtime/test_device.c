/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "../../../src/runtime/mount_internal.h"
#include "../unit.h"
#include "mock_sys.h"

static const struct {
	const char *path;
	uint32_t major;
	uint32_t minor;
	int want; /* 0: a descriptor */
} rows[] = {
	{ "/dev/null", 1, 3, 0 },
	{ "/dev/zero", 1, 5, 0 },
	{ "/dev/null", 1, 5, -ENODEV },
	{ "/dev/zero", 1, 3, -ENODEV },
	{ "/dev/null", 0, 3, -ENODEV },
	{ "/dev", 1, 3, -ENODEV },
	{ "file", 1, 3, -ENODEV },
	{ "link", 1, 3, 0 },
	{ "missing", 1, 3, -ENOENT },
};

START_TEST(only_the_right_number)
{
	int file = openat(unit_fd, "file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	ck_assert_int_ge(file, 0);
	close(file);
	ck_assert_int_eq(symlinkat("/dev/null", unit_fd, "link"), 0);
	ck_assert_int_eq(fchdir(unit_fd), 0);
	mock_sys_reset();
	mock_sys_open_tree_real = true;
	autoclose int fd = device_open(rows[_i].path, rows[_i].major, rows[_i].minor);

	ck_assert_int_eq(fd < 0 ? fd : 0, rows[_i].want);
	ck_assert_int_eq(mock_sys_count("open_tree cwd "), 1);
}
END_TEST

START_TEST(kernel_says_no)
{
	mock_sys_reset();
	mock_sys_fail_at = 1;
	mock_sys_errno = EACCES;
	ck_assert_int_eq(device_open("/dev/null", 1, 3), -EACCES);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("device");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_loop_test(tc, only_the_right_number, 0, ARRAY_SIZE(rows));
	tcase_add_test(tc, kernel_says_no);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
