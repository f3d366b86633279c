/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/prctl.h>

#include <osbx/caps.h>

#include "../unit.h"
#include "mock_sys.h"

START_TEST(default_is_the_documented_set)
{
	static const char *const wanted[] = { "chown", "dac_override", "fowner", "fsetid", "kill",
		"net_bind_service", "setfcap", "setgid", "setpcap", "setuid", "sys_chroot" };
	uint64_t mask = 0;

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		mask |= CAPS_BIT(caps_from_name(wanted[i]));
	}
	ck_assert_uint_eq(mask, caps_workload_default);
}
END_TEST

START_TEST(names_both_ways)
{
	for (int cap = 0; cap <= CAP_LAST_CAP; cap++) {
		ck_assert_ptr_nonnull(caps_name(cap));
		ck_assert_int_eq(caps_from_name(caps_name(cap)), cap);
		ck_assert_int_eq(caps_from_name(caps_name(cap) + 4), cap);
	}
	ck_assert_ptr_null(caps_name(-1));
	ck_assert_ptr_null(caps_name(CAP_LAST_CAP + 1));
	ck_assert_int_eq(caps_from_name("Cap_Net_Admin"), CAP_NET_ADMIN);
	ck_assert_int_eq(caps_from_name("net_admin"), CAP_NET_ADMIN);
	ck_assert_int_eq(caps_from_name("CAP_"), -EINVAL);
	ck_assert_int_eq(caps_from_name(""), -EINVAL);
	ck_assert_int_eq(caps_from_name("CAP_CAP_CHOWN"), -EINVAL);
	ck_assert_int_eq(caps_from_name("CAP_CHOWN "), -EINVAL);
	ck_assert_int_eq(caps_from_name("ALL"), -EINVAL);
}
END_TEST

START_TEST(bound_leaves_the_mask_alone)
{
	mock_sys_reset();
	mock_sys_caps.inheritable = 0xff;
	ck_assert_int_eq(caps_bound(caps_workload_default), 0);
	ck_assert_uint_eq(mock_sys_bounding, caps_workload_default);
	ck_assert_uint_eq(mock_sys_caps.inheritable, 0);
	ck_assert_uint_eq(mock_sys_caps.permitted >> CAP_SYS_ADMIN & 1, 1);
	char line[64];

	/* After the sets it depends on: an ambient capability must be inheritable. */
	(void)snprintf(line, sizeof(line), "prctl %d %x", PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL);
	ck_assert_str_eq(mock_sys_line(mock_sys_calls), line);
}
END_TEST

START_TEST(bound_drops_only_what_is_there)
{
	char drop[32];

	mock_sys_reset();
	mock_sys_bounding = CAPS_BIT(CAP_CHOWN) | CAPS_BIT(CAP_BPF);
	ck_assert_int_eq(caps_bound(0), 0);
	(void)snprintf(drop, sizeof(drop), "prctl %d ", PR_CAPBSET_DROP);
	ck_assert_int_eq(mock_sys_count(drop), 2);
	ck_assert_uint_eq(mock_sys_bounding, 0);
}
END_TEST

START_TEST(bound_reports_each_failure)
{
	mock_sys_reset();
	mock_sys_caps.inheritable = 1;
	ck_assert_int_eq(caps_bound(~CAPS_BIT(CAP_CHOWN)), 0);
	int calls = mock_sys_calls;

	for (int k = 1; k <= calls; k++) {
		mock_sys_reset();
		mock_sys_caps.inheritable = 1;
		mock_sys_fail_at = k;
		mock_sys_errno = EPERM;
		ck_assert_int_eq(caps_bound(~CAPS_BIT(CAP_CHOWN)), -EPERM);
		ck_assert_int_eq(mock_sys_calls, k);
	}
}
END_TEST

START_TEST(set_clears_inheritable)
{
	mock_sys_reset();
	mock_sys_caps.inheritable = 1;
	ck_assert_int_eq(caps_set(0x21), 0);
	ck_assert_str_eq(mock_sys_log, "capset 21 21 0\n");
	mock_sys_fail_at = 2;
	mock_sys_errno = EPERM;
	ck_assert_int_eq(caps_set(0x21), -EPERM);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("caps");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, default_is_the_documented_set);
	tcase_add_test(tc, names_both_ways);
	tcase_add_test(tc, bound_leaves_the_mask_alone);
	tcase_add_test(tc, bound_drops_only_what_is_there);
	tcase_add_test(tc, bound_reports_each_failure);
	tcase_add_test(tc, set_clears_inheritable);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
