/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The making of a network namespace against a mocked kernel; test_launch.c uses a real one.
 */
#include <errno.h>

#include <osbx/fd.h>

#include "../../../src/runtime/launch_internal.h"
#include "../unit.h"
#include "mock_sys.h"

static const struct idmap map = {
	.gids_n = 2,
	.gids = { { .inside = 6, .outside = 100000, .count = 65536 },
			{ .inside = 0, .outside = 1000, .count = 6 } },
};

START_TEST(is_made_in_the_user_namespace)
{
	struct error e = ERROR_INIT;
	int fd = -1;

	mock_sys_reset();
	(void)mock_sys_name_fd(unit_fd);
	ck_assert_msg(netns_make(unit_fd, &map, &fd, &e) == 0, "%s", e.text);
	ck_assert_str_eq(mock_sys_log, "setns #1 10000000\n"
				       "unshare 40000000\n"
				       "loopback_up\n"
				       "ping_allow 65541\n"
				       "netns_open\n");
	ck_assert_int_ge(fcntl(fd, F_GETFD), 0);
	fd_close(&fd);
}
END_TEST

static const struct {
	int call; /* the fourth may fail */
	int errnum;
	const char *text;
	const char *hint;
} failures[] = {
	{ 1, EPERM, "network namespace: enter the user namespace", "" },
	{ 2, ENOSPC, "network namespace: make a new one",
			"the limit of network namespaces is reached: raise "
			"user.max_net_namespaces" },
	{ 3, EACCES, "loopback device: bring it up", "" },
	{ 5, EMFILE, "network namespace: open it", "" },
};

START_TEST(each_call_fails_once)
{
	struct error e = ERROR_INIT;
	int fd = -2;

	mock_sys_reset();
	mock_sys_fail_at = failures[_i].call;
	mock_sys_errno = failures[_i].errnum;
	ck_assert_int_eq(netns_make(unit_fd, &map, &fd, &e), -1);
	ck_assert_int_eq(e.sysno, failures[_i].errnum);
	ck_assert_str_eq(e.text, failures[_i].text);
	ck_assert_str_eq(e.hint, failures[_i].hint);
	ck_assert_int_eq(fd, -2);
	ck_assert_int_eq(mock_sys_calls, failures[_i].call);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("netns");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_test(tc, is_made_in_the_user_namespace);
	tcase_add_loop_test(tc, each_call_fails_once, 0, ARRAY_SIZE(failures));
	suite_add_tcase(s, tc);
	return unit_run(s);
}
