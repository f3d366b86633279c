/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>

#include <osbx/cgroup.h>

#include "tree.h"

static struct cgroup cg = CGROUP_INIT;

static void cgroup_make(void)
{
	struct error e = ERROR_INIT;
	struct id id;

	id_new(&id);
	ck_assert_msg(cgroup_start(&id, &cg, &e) == 0, "%s", e.text);
	ck_assert_int_ge(cg.dir_fd, 0);
}

static void cgroup_drop(void)
{
	cgroup_stop(&cg);
}

static int leaves(void)
{
	int n = 0;
	DIR *dir = fdopendir(openat(cg.dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	const struct dirent *d;

	ck_assert_ptr_nonnull(dir);
	while ((d = readdir(dir))) {
		n += strncmp(d->d_name, "cmd-", 4) == 0;
	}
	closedir(dir);
	return n;
}

START_TEST(kill_reaches_all)
{
	tree_begin(cg.dir_fd);
	tree_kill_reaches_all();
	tree_end();
	ck_assert_int_eq(leaves(), 0);
}
END_TEST

START_TEST(survivors_live)
{
	tree_begin(cg.dir_fd);
	tree_survivors_live();
	free(run_output(&tree_main));
	(void)sandbox_end(&tree_box);
}
END_TEST

START_TEST(statuses_are_exact)
{
	tree_begin(cg.dir_fd);
	tree_statuses_are_exact();
	ck_assert_int_eq(leaves(), 0);
	tree_end();
}
END_TEST

/* A process beside the main one is in a leaf, and so is what it starts. */
START_TEST(each_has_its_own)
{
	struct sandbox_run r;

	tree_begin(cg.dir_fd);
	(void)tree_run(&r,
			"echo ready; cat /proc/self/cgroup | grep ^0:; exec >&- 2>&-; sleep 1000");
	autofree char *out = run_output(&r);

	ck_assert_str_eq(out, "0::/cmd-1\n");
	ck_assert_int_eq(leaves(), 1);
	tree_send(EXECD_MSG_KILL, 2);
	(void)run_wait(&tree_box, &r);
	tree_expect_alone();
	ck_assert_int_eq(leaves(), 0);
	tree_end();
}
END_TEST

/* Under its filter PID 1 still forks into a cgroup; under one without clone3 a subreaper does. */
START_TEST(filter_lets_it)
{
	struct secfilter filter;
	struct sandbox_run r;

	secfilter_builtin(_i ? SECFILTER_WORKLOAD : SECFILTER_INIT, &filter);
	tree_filter = &filter;
	tree_begin(cg.dir_fd);
	(void)tree_run(&r, "echo ready; sleep 1000");
	ck_assert_int_eq(leaves(), _i ? 0 : 1);
	tree_send(EXECD_MSG_KILL, 2);
	ck_assert_int_eq(run_wait(&tree_box, &r).status, 137);
	free(run_output(&r));
	tree_expect_alone();
	ck_assert_int_eq(leaves(), 0);
	tree_end();
}
END_TEST

/* A leaf stays as long as somebody is in it. */
START_TEST(leaf_outlives_its_process)
{
	struct sandbox_run r;

	tree_begin(cg.dir_fd);
	(void)tree_run(&r, "setsid sleep 0.3 & echo ready");
	ck_assert_int_eq(run_wait(&tree_box, &r).status, 0);
	ck_assert_int_eq(leaves(), 1);
	free(run_output(&r));
	tree_expect_alone();
	ck_assert_int_eq(leaves(), 0);
	tree_end();
}
END_TEST

/* Where PID 1 may not write, a subreaper does instead. */
START_TEST(without_delegation)
{
	struct sandbox_run r;

	if (!sandbox_has_ids()) {
		return;
	}
	ck_assert_int_eq(fchown(cg.dir_fd, 70000, 70000), 0);
	tree_begin(cg.dir_fd);
	(void)tree_run(&r, "echo ready; sleep 1000");
	ck_assert_int_eq(leaves(), 0);
	tree_send(EXECD_MSG_KILL, 2);
	ck_assert_int_eq(run_wait(&tree_box, &r).status, 137);
	free(run_output(&r));
	tree_expect_alone();
	tree_end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("leaf");
	TCase *tc = tcase_create("all");
	struct error e = ERROR_INIT;
	struct id id;

	id_new(&id);
	if (!sandbox_is_possible()) {
		return getenv("OSBX_TESTS_MUST_RUN") ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	if (cgroup_start(&id, &cg, &e) < 0 || cg.dir_fd < 0) {
		printf("1..0 # SKIP no cgroup of version 2 that this user may write to\n");
		return 77;
	}
	cgroup_stop(&cg);
	unit_with_dir(tc);
	tcase_add_checked_fixture(tc, cgroup_make, cgroup_drop);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, kill_reaches_all);
	tcase_add_test(tc, survivors_live);
	tcase_add_test(tc, statuses_are_exact);
	tcase_add_test(tc, each_has_its_own);
	tcase_add_loop_test(tc, filter_lets_it, 0, 2);
	tcase_add_test(tc, leaf_outlives_its_process);
	tcase_add_test(tc, without_delegation);
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
