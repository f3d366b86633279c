/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include <osbx/fd.h>
#include <osbx/str.h>

#include "../../../src/runtime/launch_internal.h"
#include "../unit.h"
#include "mock_sys.h"

#define FIRST 2000000U

static const struct idmap sandbox = {
	.mode = IDMAP_MAPPED,
	.setgroups = true,
	.uids_n = 1,
	.gids_n = 1,
	.uids = { { .outside = FIRST, .count = IDMAP_SANDBOX_IDS } },
	.gids = { { .outside = FIRST, .count = IDMAP_SANDBOX_IDS } },
};

static const struct {
	uint32_t owner;
	size_t n;
	struct idmap_range want[4];
} rows[] = {
	/* an id of the host */
	{ 1000, 2, { { 1000, FIRST, 1 }, { FIRST + 1, FIRST + 1, 65535 } } },
	{ FIRST - 1, 2, { { FIRST - 1, FIRST, 1 }, { FIRST + 1, FIRST + 1, 65535 } } },
	{ FIRST + 65536, 2, { { FIRST + 65536, FIRST, 1 }, { FIRST + 1, FIRST + 1, 65535 } } },
	/* root of the sandbox itself */
	{ FIRST, 1, { { FIRST, FIRST, 65536 } } },
	/* another id of the sandbox: it changes places with root */
	{ FIRST + 1, 3,
			{ { FIRST + 1, FIRST, 1 }, { FIRST, FIRST + 1, 1 },
					{ FIRST + 2, FIRST + 2, 65534 } } },
	{ FIRST + 1000, 4,
			{ { FIRST + 1000, FIRST, 1 }, { FIRST, FIRST + 1000, 1 },
					{ FIRST + 1, FIRST + 1, 999 },
					{ FIRST + 1001, FIRST + 1001, 64535 } } },
	{ FIRST + 65535, 3,
			{ { FIRST + 65535, FIRST, 1 }, { FIRST, FIRST + 65535, 1 },
					{ FIRST + 1, FIRST + 1, 65534 } } },
};

static void expect_disjoint(const struct idmap_range *r, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < i; k++) {
			ck_assert(r[i].inside + r[i].count <= r[k].inside ||
					r[k].inside + r[k].count <= r[i].inside);
			ck_assert(r[i].outside + r[i].count <= r[k].outside ||
					r[k].outside + r[k].count <= r[i].outside);
		}
	}
}

START_TEST(owner_becomes_root)
{
	struct idmap map;

	launch_owner_map(&sandbox, rows[_i].owner, rows[_i].owner, &map);
	ck_assert_uint_eq(map.uids_n, rows[_i].n);
	ck_assert_uint_eq(map.gids_n, rows[_i].n);
	for (size_t i = 0; i < rows[_i].n; i++) {
		ck_assert_uint_eq(map.uids[i].inside, rows[_i].want[i].inside);
		ck_assert_uint_eq(map.uids[i].outside, rows[_i].want[i].outside);
		ck_assert_uint_eq(map.uids[i].count, rows[_i].want[i].count);
	}
	expect_disjoint(map.uids, map.uids_n);
	ck_assert_uint_eq(idmap_outside(map.uids, map.uids_n, rows[_i].owner), FIRST);
	ck_assert_uint_eq(idmap_outside(map.uids, map.uids_n, 0), UINT32_MAX);
}
END_TEST

/* Never host 0 unless the directory belongs to it: its group alone does not count. */
START_TEST(group_of_root_is_not_given)
{
	struct idmap map;

	launch_owner_map(&sandbox, 1000, 0, &map);
	ck_assert_uint_eq(idmap_outside(map.uids, map.uids_n, 1000), FIRST);
	ck_assert_uint_eq(idmap_outside(map.gids, map.gids_n, 0), UINT32_MAX);
	ck_assert_uint_eq(idmap_outside(map.gids, map.gids_n, FIRST), FIRST);
	ck_assert_uint_eq(map.gids_n, 1);
}
END_TEST

static void spec_make(struct spec *s, enum spec_tree_ids ids, bool recursive)
{
	spec_init(s);
	s->map = sandbox;
	(void)spec_add_tree(s, "/", ids, recursive);
}

static int fds[4];

START_TEST(clone_is_mapped_and_private)
{
	AUTO(spec) struct spec s = { .trees_n = 0 };
	struct error e = ERROR_INIT;
	autoclose int userns = open("/dev/null", O_RDONLY | O_CLOEXEC);

	spec_make(&s, SPEC_TREE_CONTAINER, false);
	mock_sys_reset();
	(void)mock_sys_name_fd(userns);
	ck_assert_int_eq(launch_trees_open(&s, userns, fds, &e), 0);
	ck_assert_str_eq(mock_sys_log,
			"open_tree cwd / 1\n"
			"mount_setattr #2 0 set=100000 clr=0 prop=40000 userns=#1\n");
	fd_close(&fds[0]);
}
END_TEST

START_TEST(all_of_a_recursive_tree)
{
	AUTO(spec) struct spec s = { .trees_n = 0 };
	struct error e = ERROR_INIT;

	spec_make(&s, SPEC_TREE_CONTAINER, true);
	s.trees[0].fd = unit_fd;
	mock_sys_reset();
	(void)mock_sys_name_fd(unit_fd);
	ck_assert_int_eq(launch_trees_open(&s, unit_fd, fds, &e), 0);
	ck_assert_str_eq(mock_sys_log,
			"open_tree #1  9001\n"
			"mount_setattr #2 8000 set=100000 clr=0 prop=40000 userns=#1\n");
	fd_close(&fds[0]);
}
END_TEST

START_TEST(as_is_is_only_private)
{
	AUTO(spec) struct spec s = { .trees_n = 0 };
	struct error e = ERROR_INIT;

	spec_make(&s, SPEC_TREE_AS_IS, false);
	mock_sys_reset();
	ck_assert_int_eq(launch_trees_open(&s, unit_fd, fds, &e), 0);
	ck_assert_str_eq(mock_sys_line(2), "mount_setattr #1 0 set=0 clr=0 prop=40000 userns=-");
	fd_close(&fds[0]);
}
END_TEST

/* "/" belongs to root: ids 0..65535 of the disk, as docker shows them. */
START_TEST(volume_of_root_has_the_sandboxs_map)
{
	AUTO(spec) struct spec s = { .trees_n = 0 };
	struct error e = ERROR_INIT;
	autoclose int userns = open("/dev/null", O_RDONLY | O_CLOEXEC);

	spec_make(&s, SPEC_TREE_OWNER, false);
	mock_sys_reset();
	mock_sys_open_tree_real = true;
	(void)mock_sys_name_fd(userns);
	ck_assert_int_eq(launch_trees_open(&s, userns, fds, &e), 0);
	ck_assert_str_eq(mock_sys_line(2),
			"mount_setattr #2 0 set=100000 clr=0 prop=40000 userns=#1");
	fd_close(&fds[0]);
}
END_TEST

START_TEST(refusal_names_the_volume)
{
	AUTO(spec) struct spec s = { .trees_n = 0 };
	struct error e = ERROR_INIT;

	spec_make(&s, SPEC_TREE_CONTAINER, _i == 1);
	mock_sys_reset();
	mock_sys_fail_at = 2;
	mock_sys_errno = EINVAL;
	ck_assert_int_eq(launch_trees_open(&s, unit_fd, fds, &e), -1);
	ck_assert_str_eq(e.text, _i == 1 ? "/ or a file system mounted below it cannot be id-mapped"
					 : "/ cannot be id-mapped");
	ck_assert_int_ne(e.hint[0], '\0');
	ck_assert_int_eq(fds[0], -1);
}
END_TEST

START_TEST(refusal_may_be_accepted)
{
	AUTO(spec) struct spec s = { .trees_n = 0 };
	struct error e = ERROR_INIT;

	spec_make(&s, SPEC_TREE_CONTAINER, true);
	s.trees[0].ids_optional = true;
	mock_sys_reset();
	mock_sys_fail_at = 2;
	mock_sys_errno = EINVAL;
	ck_assert_int_eq(launch_trees_open(&s, unit_fd, fds, &e), 0);
	ck_assert_str_eq(mock_sys_line(3), "mount_setattr #1 8000 set=0 clr=0 prop=40000 userns=-");
	fd_close(&fds[0]);
}
END_TEST

START_TEST(each_call_fails_once)
{
	AUTO(spec) struct spec s = { .trees_n = 0 };
	struct error e = ERROR_INIT;

	spec_make(&s, SPEC_TREE_CONTAINER, false);
	(void)spec_add_tree(&s, "/tmp", SPEC_TREE_AS_IS, false);
	mock_sys_reset();
	mock_sys_fail_at = _i;
	mock_sys_errno = EIO;
	ck_assert_int_eq(launch_trees_open(&s, unit_fd, fds, &e), -1);
	ck_assert_int_eq(e.sysno, EIO);
	ck_assert_ptr_nonnull(strstr(e.text, _i <= 2 ? "/" : "/tmp"));
	ck_assert_int_eq(fds[0] >= 0, _i > 2);
	ck_assert_int_eq(fds[1], -1);
	fd_close(&fds[0]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("launch_trees");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_loop_test(tc, owner_becomes_root, 0, ARRAY_SIZE(rows));
	tcase_add_test(tc, group_of_root_is_not_given);
	tcase_add_test(tc, clone_is_mapped_and_private);
	tcase_add_test(tc, all_of_a_recursive_tree);
	tcase_add_test(tc, as_is_is_only_private);
	tcase_add_test(tc, volume_of_root_has_the_sandboxs_map);
	tcase_add_loop_test(tc, refusal_names_the_volume, 0, 2);
	tcase_add_test(tc, refusal_may_be_accepted);
	tcase_add_loop_test(tc, each_call_fails_once, 1, 5);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
