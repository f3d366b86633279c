/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox.h"

static struct sandbox s;

static void start(void)
{
	sandbox_init(&s);
	sandbox_start(&s);
}

START_TEST(exit_status_is_exact)
{
	static const struct {
		const char *script;
		int status;
		int signal;
	} rows[] = {
		{ "exit 0", 0, 0 },
		{ "exit 7", 7, 0 },
		{ "exit 255", 255, 0 },
		{ "kill -TERM $$", 143, SIGTERM },
		{ "kill -KILL $$", 137, SIGKILL },
		/* Dispositions and mask are the default ones: a pipe that closes kills. */
		{ "kill -PIPE $$", 141, SIGPIPE },
		{ "kill -CHLD $$; exit 3", 3, 0 },
	};
	struct sandbox_run r;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		start();
		RUN_SHELL(&r, rows[i].script);
		ck_assert_int_gt(run_start(&s, &r), 1);
		struct execd_exited exited = run_wait(&s, &r);

		ck_assert_int_eq(exited.status, rows[i].status);
		ck_assert_int_eq(exited.signal, rows[i].signal);
		free(run_output(&r));
		ck_assert_int_eq(sandbox_end(&s), rows[i].status);
	}
}
END_TEST

/* An orphan counts, a zombie that nobody waited for does not live. */
START_TEST(knows_whether_it_is_alone)
{
	static const struct {
		const char *script;
		uint32_t alone;
	} rows[] = {
		{ "exit 0", 1 },
		{ "/bin/true & wait", 1 },
		{ "(sleep 100 >/dev/null 2>&1 </dev/null &)", 0 },
		{ "sleep 100 >/dev/null 2>&1 </dev/null & exit 0", 0 },
	};
	struct sandbox_run r;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		start();
		RUN_SHELL(&r, rows[i].script);
		(void)run_start(&s, &r);
		ck_assert_uint_eq(run_wait(&s, &r).alone, rows[i].alone);
		free(run_output(&r));
		(void)sandbox_end(&s);
	}
}
END_TEST

START_TEST(pipes_carry_bytes)
{
	struct sandbox_run r;

	start();
	RUN_SHELL(&r, "cat; echo to-stderr >&2");
	(void)run_start(&s, &r);
	ck_assert_int_eq(write(r.in, "a\0b\n", 4), 4);
	close(r.in);
	r.in = -1;
	ck_assert_int_eq(run_wait(&s, &r).status, 0);
	autofree char *out = run_output(&r);

	ck_assert_int_eq(memcmp(out, "a\0b\nto-stderr\n", 15), 0);
	(void)sandbox_end(&s);
}
END_TEST

/* The main process goes on after its orphans; none stays a zombie. */
START_TEST(orphans_are_reaped)
{
	struct sandbox_run r;

	start();
	RUN_SHELL(&r, "for i in 1 2 3 4 5 6 7 8; do (sh -c 'exit 0' &); done; sleep 0.5; "
		      "cat /proc/[0-9]*/stat | grep -c ' Z '; true");
	(void)run_start(&s, &r);
	ck_assert_int_eq(run_wait(&s, &r).status, 0);
	autofree char *out = run_output(&r);

	ck_assert_str_eq(out, "0\n");
	(void)sandbox_end(&s);
}
END_TEST

/* A process that is left keeps neither PID 1 nor the pipe. */
START_TEST(end_of_main_ends_all)
{
	struct sandbox_run r;

	start();
	RUN_SHELL(&r, "sleep 1000 & exit 5");
	(void)run_start(&s, &r);
	ck_assert_int_eq(run_wait(&s, &r).status, 5);
	ck_assert_int_eq(sandbox_end(&s), 5);
	free(run_output(&r));
}
END_TEST

START_TEST(main_gets_signals_alone)
{
	struct sandbox_run r;

	start();
	RUN_SHELL(&r, "trap 'echo main; kill $!; exit 9' TERM; "
		      "sh -c 'trap \"echo child; exit\" TERM; while :; do sleep 0.05; done' & "
		      "echo ready; wait");
	(void)run_start(&s, &r);
	char line[16];

	ck_assert_int_eq(read(r.out, line, 6), 6);
	sandbox_signal(&s, 1, SIGUSR2 + 1000); /* no such signal */
	sandbox_signal(&s, 77, SIGKILL);       /* no such process */
	sandbox_signal(&s, 1, SIGTERM);
	struct execd_exited exited = run_wait(&s, &r);

	ck_assert_int_eq(exited.status, 9);
	ck_assert_int_eq(exited.signal, 0);
	autofree char *out = run_output(&r);

	ck_assert_int_eq(strncmp(out, "main\n", 5), 0);
	(void)sandbox_end(&s);
}
END_TEST

/* As a keyboard would: the shell's child is hit too, or the shell would wait for it. */
START_TEST(interrupt_reaches_the_group)
{
	struct sandbox_run r;
	char line[8];

	start();
	RUN_SHELL(&r, "echo ready; sleep 1000; echo not reached");
	(void)run_start(&s, &r);
	ck_assert_int_eq(read(r.out, line, 6), 6);
	usleep(100000);
	sandbox_signal(&s, 1, SIGINT);
	ck_assert_int_eq(run_wait(&s, &r).status, 130);
	autofree char *out = run_output(&r);

	ck_assert_str_eq(out, "");
	(void)sandbox_end(&s);
}
END_TEST

/* A second process beside the main one: its group is signalled, the sandbox stays. */
START_TEST(others_do_not_end_the_sandbox)
{
	struct sandbox_run main_run;
	struct sandbox_run r;
	char line[8];

	start();
	RUN_SHELL(&main_run, "cat");
	(void)run_start(&s, &main_run);
	RUN_SHELL(&r, "sleep 1000 & echo ready; wait");
	r.tag = 2;
	r.flags = 0;
	(void)run_start(&s, &r);
	ck_assert_int_eq(read(r.out, line, 6), 6);
	sandbox_signal(&s, 2, SIGTERM);
	ck_assert_int_eq(run_wait(&s, &r).signal, SIGTERM);
	/* The whole group is gone: the pipe ends. */
	free(run_output(&r));
	/* A signal for a tag that has ended does nothing. */
	sandbox_signal(&s, 2, SIGKILL);
	close(main_run.in);
	main_run.in = -1;
	ck_assert_int_eq(run_wait(&s, &main_run).status, 0);
	free(run_output(&main_run));
	ck_assert_int_eq(sandbox_end(&s), 0);
}
END_TEST

START_TEST(tag_zero_is_everybody)
{
	struct sandbox_run r;
	char line[8];

	start();
	RUN_SHELL(&r, "setsid sleep 1000 & echo ready; wait");
	(void)run_start(&s, &r);
	ck_assert_int_eq(read(r.out, line, 6), 6);
	usleep(100000);
	sandbox_signal(&s, 0, SIGKILL);
	ck_assert_int_eq(run_wait(&s, &r).status, 137);
	free(run_output(&r));
	ck_assert_int_eq(sandbox_end(&s), 137);
}
END_TEST

START_TEST(tags_are_unique)
{
	struct sandbox_run r;
	struct sandbox_run again;
	struct sandbox_run zero;

	start();
	RUN_SHELL(&r, "cat");
	(void)run_start(&s, &r);
	RUN_SHELL(&again, "true");
	ck_assert_int_eq(run_fails(&s, &again).code, ERRC_INTERNAL);
	RUN_SHELL(&zero, "true");
	zero.tag = 0;
	ck_assert_int_eq(run_fails(&s, &zero).code, ERRC_INTERNAL);
	close(r.in);
	r.in = -1;
	ck_assert_int_eq(run_wait(&s, &r).status, 0);
	free(run_output(&r));
	(void)sandbox_end(&s);
}
END_TEST

/* A failed start leaves no trace: the tag is free once the child is reaped, the sandbox serves. */
/* Half of the tags are the execution API's. */
START_TEST(tags_of_the_api_are_refused)
{
	struct sandbox_run r;

	start();
	RUN_INIT(&r, "true");
	r.tag = 1U << 31 | 7;
	struct error e = run_fails(&s, &r);

	ck_assert_int_eq(e.code, ERRC_INVALID);
	RUN_SHELL(&r, "exit 3");
	(void)run_start(&s, &r);
	ck_assert_int_eq(run_wait(&s, &r).status, 3);
	free(run_output(&r));
	ck_assert_int_eq(sandbox_end(&s), 3);
}
END_TEST

START_TEST(failure_is_survived)
{
	struct sandbox_run r;

	start();
	RUN_INIT(&r, "/nonexistent");
	struct error e = run_fails(&s, &r);

	ck_assert_int_eq(e.code, ERRC_NO_COMMAND);
	ck_assert_str_eq(e.text, "exec: \"/nonexistent\": no such file");
	usleep(200000);
	RUN_SHELL(&r, "exit 4");
	(void)run_start(&s, &r);
	ck_assert_int_eq(run_wait(&s, &r).status, 4);
	free(run_output(&r));
	ck_assert_int_eq(sandbox_end(&s), 4);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("process");
	TCase *tc = tcase_create("all");

	if (!sandbox_is_possible()) {
		return getenv("OSBX_TESTS_MUST_RUN") ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	unit_with_dir(tc);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, exit_status_is_exact);
	tcase_add_test(tc, knows_whether_it_is_alone);
	tcase_add_test(tc, pipes_carry_bytes);
	tcase_add_test(tc, orphans_are_reaped);
	tcase_add_test(tc, end_of_main_ends_all);
	tcase_add_test(tc, main_gets_signals_alone);
	tcase_add_test(tc, interrupt_reaches_the_group);
	tcase_add_test(tc, others_do_not_end_the_sandbox);
	tcase_add_test(tc, tag_zero_is_everybody);
	tcase_add_test(tc, tags_are_unique);
	tcase_add_test(tc, tags_of_the_api_are_refused);
	tcase_add_test(tc, failure_is_survived);
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
