/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include <osbx/fd.h>
#include <osbx/limits.h>
#include <osbx/str.h>

#include "../../../src/runtime/mount_internal.h"
#include "../unit.h"
#include "mock_sys.h"

#define LOWERS_MAX (LIMIT_LAYERS + 1)

static int lowers[LOWERS_MAX];

static struct overlay overlay_of(size_t n)
{
	for (size_t i = 0; i < n; i++) {
		lowers[i] = 200 + (int)i;
	}
	return (struct overlay){
		.lower_fds = lowers, .lowers_n = n, .upper_fd = 40, .work_fd = 41
	};
}

START_TEST(topmost_layer_comes_first)
{
	struct overlay o = overlay_of(3);
	struct error e = ERROR_INIT;
	autoclose int root = -1;

	mock_sys_reset();
	ck_assert_int_eq(overlay_mount(&o, unit_fd, &root, &e), 0);
	ck_assert_int_ge(root, 0);
	ck_assert_str_eq(mock_sys_log, "fsopen overlay\n"
				       "fsconfig #1 source overlay\n"
				       "fsconfig #1 userxattr -\n"
				       "fsconfig #1 index off\n"
				       "fsconfig #1 lowerdir+ /proc/self/fd/202\n"
				       "fsconfig #1 lowerdir+ /proc/self/fd/201\n"
				       "fsconfig #1 lowerdir+ /proc/self/fd/200\n"
				       "fsconfig #1 upperdir /proc/self/fd/40\n"
				       "fsconfig #1 workdir /proc/self/fd/41\n"
				       "fsconfig_create #1\n"
				       "fsmount #1 6\n"
				       "move_mount #2 fd\n");
}
END_TEST

START_TEST(volatile_is_asked_for)
{
	struct overlay o = overlay_of(1);
	struct error e = ERROR_INIT;
	autoclose int root = -1;
	autoclose int old_root = -1;

	o.is_volatile = true;
	mock_sys_reset();
	ck_assert_int_eq(overlay_mount(&o, unit_fd, &root, &e), 0);
	ck_assert_int_eq(mock_sys_count("fsconfig #1 volatile -"), 1);
	mock_sys_reset();
	ck_assert_int_eq(overlay_mount_old(&o, unit_fd, &old_root, &e), 0);
	ck_assert(str_has_suffix(mock_sys_line(1), ",volatile"));
}
END_TEST

/* Below Linux 6.8 "lowerdir+" is EINVAL. */
START_TEST(falls_back_to_mount)
{
	struct overlay o = overlay_of(2);
	struct error e = ERROR_INIT;
	char want[256];
	autoclose int root = -1;

	mock_sys_reset();
	mock_sys_fail_at = 5;
	mock_sys_errno = EINVAL;
	ck_assert_int_eq(overlay_mount(&o, unit_fd, &root, &e), 0);
	ck_assert_int_ge(root, 0);
	ck_assert_int_eq(mock_sys_calls, 6);
	snprintf(want, sizeof(want),
			"mount overlay /proc/self/fd/%d/root overlay 6 userxattr,index=off,"
			"lowerdir=/proc/self/fd/201:/proc/self/fd/200,"
			"upperdir=/proc/self/fd/40,workdir=/proc/self/fd/41",
			unit_fd);
	ck_assert_str_eq(mock_sys_line(6), want);
}
END_TEST

START_TEST(all_layers_fit_a_page)
{
	struct overlay o = overlay_of(LOWERS_MAX);
	struct error e = ERROR_INIT;
	autoclose int root = -1;

	mock_sys_reset();
	ck_assert_int_eq(overlay_mount_old(&o, unit_fd, &root, &e), 0);
	ck_assert_int_eq(mock_sys_calls, 1);
}
END_TEST

START_TEST(too_many_layers_are_said_to_be)
{
	int many[400];
	struct overlay o = { .lower_fds = many, .lowers_n = 400, .upper_fd = 1, .work_fd = 2 };
	struct error e = ERROR_INIT;
	int root = -1;

	for (size_t i = 0; i < 400; i++) {
		many[i] = 1000 + (int)i;
	}
	mock_sys_reset();
	ck_assert_int_eq(overlay_mount_old(&o, unit_fd, &root, &e), -1);
	ck_assert_int_eq(e.code, ERRC_LIMIT);
	ck_assert_int_eq(mock_sys_calls, 0);
}
END_TEST

static const struct {
	int errnum;
	const char *hint; /* part of it */
} refusals[] = {
	{ ENODEV, "modprobe" },
	{ EPERM, "5.11" },
	{ EIO, "" },
};

START_TEST(each_failure_is_told)
{
	const size_t n = ARRAY_SIZE(refusals);
	const int call = _i / (int)n + 1;
	const int errnum = refusals[(size_t)_i % n].errnum;
	struct overlay o = overlay_of(1);
	struct error e = ERROR_INIT;
	int root = -1;

	mock_sys_reset();
	mock_sys_fail_at = call;
	mock_sys_errno = errnum;
	ck_assert_int_eq(overlay_mount(&o, unit_fd, &root, &e), -1);
	ck_assert_int_eq(e.code, ERRC_SYSTEM);
	ck_assert_int_eq(e.sysno, errnum);
	ck_assert_int_eq(root, -1);
	ck_assert_int_eq(mock_sys_calls, call);
	if (call <= 9) {
		ck_assert_str_eq(e.text, "overlay");
		ck_assert_ptr_nonnull(strstr(e.hint, refusals[(size_t)_i % n].hint));
	}
}
END_TEST

START_TEST(old_failure_is_told)
{
	struct overlay o = overlay_of(1);
	struct error e = ERROR_INIT;
	int root = -1;

	mock_sys_reset();
	mock_sys_fail_at = 1;
	mock_sys_errno = EINVAL;
	ck_assert_int_eq(overlay_mount_old(&o, unit_fd, &root, &e), -1);
	ck_assert_int_eq(e.sysno, EINVAL);
	ck_assert_int_eq(root, -1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("overlay");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_test(tc, topmost_layer_comes_first);
	tcase_add_test(tc, volatile_is_asked_for);
	tcase_add_test(tc, falls_back_to_mount);
	tcase_add_test(tc, all_layers_fit_a_page);
	tcase_add_test(tc, too_many_layers_are_said_to_be);
	tcase_add_loop_test(tc, each_failure_is_told, 0, 10 * (int)ARRAY_SIZE(refusals));
	tcase_add_test(tc, old_failure_is_told);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
