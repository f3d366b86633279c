/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/socket.h>

#include "../../../src/runtime/mount_internal.h"
#include "../unit.h"
#include "mock_sys.h"

START_TEST(names_its_source)
{
	mock_sys_reset();
	autoclose int fs = fscontext_open("tmpfs");

	ck_assert_int_ge(fs, 0);
	ck_assert_str_eq(mock_sys_log, "fsopen tmpfs\nfsconfig #1 source tmpfs\n");
}
END_TEST

START_TEST(splits_options)
{
	mock_sys_reset();
	autoclose int fs = fscontext_open("devpts");

	ck_assert_int_eq(fscontext_options(fs, "newinstance,mode=620,context=a=b"), 0);
	ck_assert_str_eq(mock_sys_line(3), "fsconfig #1 newinstance -");
	ck_assert_str_eq(mock_sys_line(4), "fsconfig #1 mode 620");
	ck_assert_str_eq(mock_sys_line(5), "fsconfig #1 context a=b");
	autoclose int mount_fd = fscontext_mount(fs, MOUNT_ATTR_NOSUID);

	ck_assert_int_ge(mount_fd, 0);
	ck_assert_str_eq(mock_sys_line(6), "fsconfig_create #1");
	ck_assert_str_eq(mock_sys_line(7), "fsmount #1 2");
}
END_TEST

START_TEST(stops_at_the_first_failure)
{
	mock_sys_reset();
	mock_sys_fail_at = _i;
	mock_sys_errno = EIO;
	int fs = fscontext_open("tmpfs");
	int r = fs;

	if (fs >= 0) {
		r = fscontext_options(fs, "a=1,b");
		r = r < 0 ? r : fscontext_mount(fs, 0);
		close(fs);
	}
	ck_assert_int_eq(r, -EIO);
	ck_assert_int_eq(mock_sys_calls, _i);
}
END_TEST

START_TEST(log_is_empty_without_a_context)
{
	char text[32] = "old";
	autoclose int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	fscontext_log(fd, text, sizeof(text));
	ck_assert_str_eq(text, "");
}
END_TEST

/* The kernel gives one message a read; a packet socket does the same. */
START_TEST(log_gives_the_last_error)
{
	static const char *const messages[] = { "e tmpfs: first\n", "w tmpfs: careful\n",
		"e tmpfs: last\n", "i tmpfs: well\n" };
	char text[32] = "";
	char small[6] = "";
	int pair[2];

	for (int round = 0; round < 2; round++) {
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
		for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
			ck_assert_int_gt(write(pair[1], messages[i], strlen(messages[i])), 0);
		}
		close(pair[1]);
		fscontext_log(pair[0], round ? small : text, round ? sizeof(small) : sizeof(text));
		close(pair[0]);
	}
	ck_assert_str_eq(text, "tmpfs: last");
	ck_assert_str_eq(small, "tmpfs");
}
END_TEST

/* EINVAL: mounts below that may not be left out. */
START_TEST(clone_takes_what_cannot_be_left_out)
{
	mock_sys_reset();
	mock_sys_fail_at = 1;
	mock_sys_errno = EINVAL;
	autoclose int fd = mount_clone(AT_FDCWD, "/etc", false);

	ck_assert_int_ge(fd, 0);
	ck_assert_str_eq(mock_sys_log, "open_tree cwd /etc 1\nopen_tree cwd /etc 8001\n");
}
END_TEST

START_TEST(clone_by_descriptor)
{
	autoclose int dir = open("/", O_PATH | O_CLOEXEC);

	mock_sys_reset();
	(void)mock_sys_name_fd(dir);
	autoclose int fd = mount_clone(dir, "", true);

	ck_assert_int_ge(fd, 0);
	ck_assert_str_eq(mock_sys_log, "open_tree #1  9001\n");
	mock_sys_fail_at = 2;
	mock_sys_errno = EPERM;
	ck_assert_int_eq(mount_clone(dir, "", false), -EPERM);
	ck_assert_int_eq(mock_sys_calls, 2);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fscontext");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, names_its_source);
	tcase_add_test(tc, splits_options);
	tcase_add_loop_test(tc, stops_at_the_first_failure, 1, 7);
	tcase_add_test(tc, log_is_empty_without_a_context);
	tcase_add_test(tc, log_gives_the_last_error);
	tcase_add_test(tc, clone_takes_what_cannot_be_left_out);
	tcase_add_test(tc, clone_by_descriptor);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
