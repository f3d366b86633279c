/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "tree.h"

/* A name of a process may look like the fields behind it. */
START_TEST(names_do_not_matter)
{
	struct sandbox_run r;

	tree_begin(-1);
	(void)tree_run(&r, "cp $(command -v sleep) '/tmp/a) S 1 1 ('; "
			   "setsid '/tmp/a) S 1 1 (' 1000 & "
			   "sh -c \"printf 'x) Z 1' >/proc/self/comm; exec sleep 1000\" & "
			   "echo ready; sleep 1000");
	tree_send(EXECD_MSG_KILL, 2);
	ck_assert_int_eq(run_wait(&tree_box, &r).status, 137);
	free(run_output(&r));
	tree_expect_alone();
	tree_end();
}
END_TEST

START_TEST(counts_processes)
{
	struct sandbox_run r;

	tree_begin(-1);
	ck_assert_uint_eq(tree_count(), 1);
	(void)tree_run(&r, "sleep 1000 & sleep 1000 & echo ready; wait");
	ck_assert_uint_eq(tree_count(), 4);
	tree_send(EXECD_MSG_KILL, 2);
	(void)run_wait(&tree_box, &r);
	free(run_output(&r));
	tree_expect_alone();
	tree_end();
}
END_TEST

/* The kernel's choice when memory is short. */
START_TEST(workloads_are_victims)
{
	autofree char *out = sandbox_shell(
			"a=$(cat /proc/1/oom_score_adj); "
			"b=$(cat /proc/self/oom_score_adj); "
			"[ $a -gt 500 ] && echo $((b - 1000)) || echo $((b - a - 500))");

	ck_assert_str_eq(out, "0\n");
}
END_TEST

/* The main process's tree is everything. */
START_TEST(kill_of_main_ends_all)
{
	struct sandbox_run r;

	sandbox_init(&tree_box);
	sandbox_start(&tree_box);
	RUN_SHELL(&r, "trap '' TERM; setsid sleep 1000 & echo ready; sleep 1000");
	(void)run_start(&tree_box, &r);
	tree_send(EXECD_MSG_KILL, 1);
	ck_assert_int_eq(run_wait(&tree_box, &r).status, 137);
	free(run_output(&r));
	ck_assert_int_eq(sandbox_end(&tree_box), 137);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("proc");
	TCase *tc = tcase_create("all");

	if (!sandbox_is_possible()) {
		return getenv("OSBX_TESTS_MUST_RUN") ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	unit_with_dir(tc);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, names_do_not_matter);
	tcase_add_test(tc, counts_processes);
	tcase_add_test(tc, workloads_are_victims);
	tcase_add_test(tc, kill_of_main_ends_all);
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
