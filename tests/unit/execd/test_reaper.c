/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"

START_TEST(kill_reaches_all)
{
	tree_begin(-1);
	tree_kill_reaches_all();
	tree_end();
}
END_TEST

START_TEST(survivors_live)
{
	tree_begin(-1);
	tree_survivors_live();
	free(run_output(&tree_main));
	(void)sandbox_end(&tree_box);
}
END_TEST

START_TEST(statuses_are_exact)
{
	tree_begin(-1);
	tree_statuses_are_exact();
	tree_end();
}
END_TEST

/* Signals go to the process, not to its subreaper. */
START_TEST(signals_pass_it)
{
	struct sandbox_run r;

	tree_begin(-1);
	(void)tree_run(&r, "trap 'exit 11' USR1; echo ready; while :; do sleep 0.01; done");
	sandbox_signal(&tree_box, 2, SIGUSR1);
	struct execd_exited exited = run_wait(&tree_box, &r);

	ck_assert_int_eq(exited.status, 11);
	free(run_output(&r));
	tree_expect_alone();
	tree_end();
}
END_TEST

/* A workload may kill it: its process does not get away. */
START_TEST(killed_from_within)
{
	struct sandbox_run r;

	tree_begin(-1);
	(void)tree_run(&r, "echo ready; setsid sleep 1000 & sleep 0.1; kill -9 $PPID; sleep 1000");
	struct execd_exited exited = run_wait(&tree_box, &r);

	ck_assert_int_eq(exited.status, 137);
	free(run_output(&r));
	tree_expect_alone();
	tree_end();
}
END_TEST

/* A pty's master is with the keeper, its foreground group is the process's. */
START_TEST(works_with_a_terminal)
{
	struct sandbox_run r;

	tree_begin(-1);
	RUN_SHELL(&r, "tty; setsid sleep 1000 & sleep 1000");
	r.tag = 2;
	r.flags = EXECD_START_TTY;
	(void)run_start(&tree_box, &r);
	char line[32] = "";

	ck_assert_int_gt(read(r.out, line, sizeof(line) - 1), 0);
	ck_assert_int_eq(strncmp(line, "/dev/pts/", 9), 0);
	usleep(100000);
	ck_assert_int_eq(write(r.out, "\003", 1), 1);
	ck_assert_int_eq(run_wait(&tree_box, &r).status, 130);
	close(r.out);
	sandbox_signal(&tree_box, 0, SIGKILL);
	free(run_output(&tree_main));
	(void)sandbox_end(&tree_box);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("reaper");
	TCase *tc = tcase_create("all");

	if (!sandbox_is_possible()) {
		return getenv("OSBX_TESTS_MUST_RUN") ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	unit_with_dir(tc);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, kill_reaches_all);
	tcase_add_test(tc, survivors_live);
	tcase_add_test(tc, statuses_are_exact);
	tcase_add_test(tc, signals_pass_it);
	tcase_add_test(tc, killed_from_within);
	tcase_add_test(tc, works_with_a_terminal);
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
