/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>

#include <osbx/spec.h>

#include "../unit.h"

START_TEST(starts_empty)
{
	AUTO(spec) struct spec s = { .trees_n = 0 };

	spec_init(&s);
	ck_assert_int_eq(s.cgroup_fd, -1);
	ck_assert_int_eq(s.execd_fd, -1);
	ck_assert_int_eq(s.config_fd, -1);
	ck_assert_int_eq(s.timeout_ms, 30000);
	ck_assert_uint_eq(s.trees_n + s.lowers_n + s.mounts_n, 0);
}
END_TEST

START_TEST(keeps_copies_in_order)
{
	AUTO(spec) struct spec s = { .trees_n = 0 };
	char path[] = "/srv/layers";
	char name[] = "one";

	spec_init(&s);
	ck_assert_uint_eq(spec_add_tree(&s, path, SPEC_TREE_CONTAINER, false), 0);
	ck_assert_uint_eq(spec_add_tree(&s, "/srv/volume", SPEC_TREE_OWNER, true), 1);
	spec_add_lower(&s, 0, name);
	spec_add_lower(&s, 0, "two");
	struct spec_mount *m = spec_add_mount(&s, SPEC_MOUNT_BIND, "/data");

	m->tree = 1;
	memset(path, 'x', sizeof(path) - 1);
	memset(name, 'x', sizeof(name) - 1);
	ck_assert_str_eq(s.trees[0].path, "/srv/layers");
	ck_assert_int_eq(s.trees[0].fd, -1);
	ck_assert(!s.trees[0].recursive);
	ck_assert_int_eq(s.trees[1].ids, SPEC_TREE_OWNER);
	ck_assert(s.trees[1].recursive);
	ck_assert_uint_eq(s.lowers_n, 2);
	ck_assert_str_eq(s.lowers[0].path, "one");
	ck_assert_str_eq(s.lowers[1].path, "two");
	ck_assert_uint_eq(s.mounts_n, 1);
	ck_assert_str_eq(s.mounts[0].dst, "/data");
	ck_assert_uint_eq(s.mounts[0].tree, 1);
	ck_assert_ptr_null(s.mounts[0].path);
}
END_TEST

START_TEST(done_twice)
{
	struct spec s;

	spec_init(&s);
	(void)spec_add_tree(&s, "/", SPEC_TREE_AS_IS, false);
	spec_done(&s);
	ck_assert_uint_eq(s.trees_n, 0);
	spec_done(&s);
	spec_done(NULL);
}
END_TEST

START_TEST(relative_tree_is_our_mistake)
{
	struct spec s;

	spec_init(&s);
	(void)spec_add_tree(&s, "layers", SPEC_TREE_AS_IS, false);
}
END_TEST

START_TEST(lower_without_tree_is_our_mistake)
{
	struct spec s;

	spec_init(&s);
	spec_add_lower(&s, 0, "");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("spec");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, starts_empty);
	tcase_add_test(tc, keeps_copies_in_order);
	tcase_add_test(tc, done_twice);
	tcase_add_test_raise_signal(tc, relative_tree_is_our_mistake, SIGABRT);
	tcase_add_test_raise_signal(tc, lower_without_tree_is_our_mistake, SIGABRT);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
