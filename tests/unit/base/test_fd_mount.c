/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <osbx/fd.h>

#include "../unit.h"

START_TEST(a_root_and_what_is_below)
{
	autoclose int root_fd = fd_open("/", O_PATH | O_DIRECTORY, 0);
	autoclose int proc_fd = fd_open("/proc", O_PATH | O_DIRECTORY, 0);
	autoclose int below_fd = fd_open("/proc/self/status", O_PATH, 0);
	struct fd_mount root, proc, below;
	struct stat st;

	ck_assert_int_eq(fd_mount_of(root_fd, &root), 0);
	ck_assert_int_eq(fd_mount_of(proc_fd, &proc), 0);
	ck_assert_int_eq(fd_mount_of(below_fd, &below), 0);
	ck_assert(proc.is_root && !below.is_root);
	ck_assert_uint_ne(proc.id, root.id);
	ck_assert_uint_eq(proc.id, below.id);
	ck_assert_int_eq(fstat(proc_fd, &st), 0);
	ck_assert_uint_eq(makedev(proc.dev_major, proc.dev_minor), st.st_dev);
	ck_assert_uint_eq(proc.mode, st.st_mode);
	ck_assert(S_ISREG(below.mode));
}
END_TEST

START_TEST(no_descriptor)
{
	struct fd_mount m;

	ck_assert_int_eq(fd_mount_of(-1, &m), -EBADF);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fd_mount");
	TCase *tc = tcase_create("statx");

	tcase_add_test(tc, a_root_and_what_is_below);
	tcase_add_test(tc, no_descriptor);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
