/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>

#include <osbx/caps.h>
#include <osbx/idmap.h>
#include <osbx/str.h>
#include <osbx/sys.h>

#include "../unit.h"

#define NOBODY 65534

/* This process as root of a user namespace with one id, whoever it was. */
static void become_single_root(void)
{
	struct error e = ERROR_INIT;
	struct idmap map = {
		.mode = IDMAP_SINGLE,
		.uids_n = 1,
		.gids_n = 1,
		.uids = { { .outside = geteuid(), .count = 1 } },
		.gids = { { .outside = getegid(), .count = 1 } },
	};

	ck_assert_int_eq(sys_unshare(CLONE_NEWUSER), 0);
	ck_assert_msg(idmap_write(&map, getpid(), &e) == 0, "%s", e.text);
}

START_TEST(mode_names)
{
	ck_assert_str_eq(idmap_mode_name(IDMAP_MAPPED), "mapped");
	ck_assert_str_eq(idmap_mode_name(IDMAP_SHARED), "shared");
	ck_assert_str_eq(idmap_mode_name(IDMAP_SUBID), "subid");
	ck_assert_str_eq(idmap_mode_name(IDMAP_SINGLE), "single");
	ck_assert_str_eq(idmap_mode_name(IDMAP_MODE_COUNT), "unknown");
}
END_TEST

START_TEST(outside_of_inside)
{
	const struct idmap_range r[] = {
		{ .inside = 0, .outside = 1000, .count = 1 },
		{ .inside = 1, .outside = 100000, .count = 65535 },
		{ .inside = 4294967290U, .outside = 5, .count = 5 },
	};

	ck_assert_uint_eq(idmap_outside(r, 3, 0), 1000);
	ck_assert_uint_eq(idmap_outside(r, 3, 1), 100000);
	ck_assert_uint_eq(idmap_outside(r, 3, 65535), 165534);
	ck_assert_uint_eq(idmap_outside(r, 3, 65536), UINT32_MAX);
	ck_assert_uint_eq(idmap_outside(r, 3, 4294967294U), 9);
	ck_assert_uint_eq(idmap_outside(r, 3, UINT32_MAX), UINT32_MAX);
	ck_assert_uint_eq(idmap_outside(r, 0, 0), UINT32_MAX);
}
END_TEST

START_TEST(set_first_moves_both)
{
	struct idmap map = { .mode = IDMAP_MAPPED, .uids_n = 3, .gids_n = 2, .setgroups = true };

	idmap_set_first(&map, 70000);
	ck_assert_uint_eq(map.uids_n, 1);
	ck_assert_uint_eq(map.gids_n, 1);
	ck_assert_uint_eq(idmap_outside(map.uids, 1, 0), 70000);
	ck_assert_uint_eq(idmap_outside(map.gids, 1, 65535), 135535);
	ck_assert_uint_eq(idmap_outside(map.gids, 1, 65536), UINT32_MAX);
	ck_assert(map.setgroups);
}
END_TEST

START_TEST(root_range_has_room)
{
	uint32_t first = 0;
	uint32_t count = 0;

	idmap_root_range(&first, &count);
	ck_assert_uint_gt(first, 0);
	ck_assert_uint_ge(count, IDMAP_SANDBOX_IDS);
	ck_assert_uint_le(count, UINT32_MAX - first);
}
END_TEST

START_TEST(initial_or_not)
{
	char link[64] = "";
	ssize_t n = readlink("/proc/self/ns/user", link, sizeof(link) - 1);

	ck_assert_int_gt(n, 0);
	ck_assert_int_eq(idmap_is_initial_userns(), str_eq(link, "user:[4026531837]"));
	become_single_root();
	ck_assert(!idmap_is_initial_userns());
}
END_TEST

START_TEST(choose_for_this_process)
{
	struct idmap map;
	struct error e = ERROR_INIT;
	struct sys_caps caps = { 0 };

	ck_assert_msg(idmap_choose(&map, &e) == 0, "%s", e.text);
	ck_assert_int_eq(sys_capget(&caps), 0);
	bool mapped = geteuid() == 0 && idmap_is_initial_userns() &&
		      (caps.effective & CAPS_BIT(CAP_SYS_ADMIN));

	ck_assert_int_eq(map.mode == IDMAP_MAPPED, mapped);
	ck_assert_int_eq(map.helpers, map.mode == IDMAP_SUBID);
	ck_assert_uint_gt(map.uids_n, 0);
	ck_assert_uint_gt(map.gids_n, 0);
	ck_assert_uint_eq(map.uids[0].inside, 0);
	ck_assert_uint_eq(map.gids[0].inside, 0);
}
END_TEST

START_TEST(choose_as_root_of_a_child)
{
	struct idmap map;
	struct error e = ERROR_INIT;

	become_single_root();
	ck_assert_msg(idmap_choose(&map, &e) == 0, "%s", e.text);
	ck_assert_int_eq(map.mode, IDMAP_SINGLE);
	ck_assert_uint_eq(map.uids[0].outside, 0);
	ck_assert(!map.setgroups);
	/* Root without any capability. */
	ck_assert_int_eq(caps_set(0), 0);
	ck_assert_int_eq(idmap_choose(&map, &e), -1);
	ck_assert_int_eq(e.code, ERRC_UNSUPPORTED);
}
END_TEST

START_TEST(no_new_privs_rules_the_helpers_out)
{
	struct idmap map;
	struct error e = ERROR_INIT;

	/* Root of a child namespace may have no other id to become. */
	if (geteuid() == 0 && idmap_is_initial_userns()) {
		ck_assert_int_eq(sys_setgroups(0, NULL), 0);
		ck_assert_int_eq(sys_setresgid(NOBODY), 0);
		ck_assert_int_eq(sys_setresuid(NOBODY), 0);
	}
	ck_assert_int_eq(sys_prctl(PR_SET_NO_NEW_PRIVS, 1), 0);
	ck_assert_msg(idmap_choose(&map, &e) == 0, "%s", e.text);
	ck_assert_int_eq(map.mode, IDMAP_SINGLE);
	ck_assert_uint_eq(map.uids[0].outside, geteuid());
	ck_assert_uint_eq(map.gids[0].outside, getegid());
}
END_TEST

static void put(const char *path, const char *text)
{
	int r = file_put_at(AT_FDCWD, path, text);

	ck_assert_msg(r == 0, "%s: %s", path, strerror(-r));
}

START_TEST(blocker_is_named)
{
	struct idmap map = { .mode = IDMAP_MODE_COUNT };
	struct error e = ERROR_INIT;

	/* The setting belongs to the namespace: nobody else is touched. */
	become_single_root();
	put("/proc/sys/user/max_user_namespaces", "0");
	ck_assert_int_eq(idmap_choose(&map, &e), -1);
	ck_assert_int_eq(e.code, ERRC_UNSUPPORTED);
	ck_assert_ptr_nonnull(strstr(e.text, "user.max_user_namespaces"));
	ck_assert_ptr_nonnull(strstr(e.hint, "sysctl -w user.max_user_namespaces"));
	ck_assert_int_eq(map.mode, IDMAP_MODE_COUNT);
	error_clear(&e);
	error_sys(&e, ENOSPC, "create a user namespace");
	ck_assert_int_eq(idmap_hint(&e), -1);
	ck_assert_ptr_nonnull(strstr(e.hint, "user.max_user_namespaces is 0"));
	ck_assert_int_eq(e.truncated, 0);
}
END_TEST

START_TEST(hints_by_errno)
{
	static const struct {
		int sysno;
		const char *says;
	} hints[] = {
		{ ENOSPC, "limit" },
		{ EUSERS, "nested" },
		{ EPERM, "seccomp" },
		{ EACCES, "seccomp" },
	};
	struct error e = ERROR_INIT;

	/* Its own root, so that no setting of the machine for ordinary users is in the way. */
	become_single_root();
	for (size_t i = 0; i < ARRAY_SIZE(hints); i++) {
		error_clear(&e);
		error_sys(&e, hints[i].sysno, "create a user namespace");
		ck_assert_int_eq(idmap_hint(&e), -1);
		ck_assert_msg(strstr(e.hint, hints[i].says) != NULL, "%s", e.hint);
		ck_assert_int_eq(e.truncated, 0);
	}
	error_clear(&e);
	error_sys(&e, EIO, "x");
	ck_assert_int_eq(idmap_hint(&e), -1);
	ck_assert_str_eq(e.hint, "");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("idmap");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, mode_names);
	tcase_add_test(tc, outside_of_inside);
	tcase_add_test(tc, set_first_moves_both);
	tcase_add_test(tc, root_range_has_room);
	tcase_add_test(tc, initial_or_not);
	tcase_add_test(tc, choose_for_this_process);
	tcase_add_test(tc, choose_as_root_of_a_child);
	tcase_add_test(tc, no_new_privs_rules_the_helpers_out);
	tcase_add_test(tc, blocker_is_named);
	tcase_add_test(tc, hints_by_errno);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
