/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/socket.h>

#include "sandbox.h"

static void start(struct sandbox *s)
{
	sandbox_init(s);
	sandbox_start(s);
}

START_TEST(end_of_channel_kills)
{
	struct sandbox s;
	struct sandbox_run r;

	start(&s);
	RUN_SHELL(&r, "trap '' TERM HUP; sleep 1000");
	(void)run_start(&s, &r);
	ck_assert_int_eq(shutdown(s.control, SHUT_RDWR), 0);
	/* The pipe ends with the last process. */
	free(run_output(&r));
	ck_assert_int_eq(sandbox_end(&s), 125);
}
END_TEST

/* Packets that the contract does not know end PID 1: a keeper that sends them is none. */
START_TEST(nonsense_ends_it)
{
	const struct execd_start start_tag = { .tag = 1 };
	const struct execd_signal sig = { .tag = 1, .signo = 9 };
	struct sandbox s;
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	int fds[4] = { fd, fd, fd, fd };

	start(&s);
	switch (_i) {
	case 0: /* unknown type */
		ck_assert_int_eq(execd_send(s.control, EXECD_MSG_END, NULL, 0, NULL, 0), 0);
		break;
	case 1: /* an answer as a request */
		ck_assert_int_eq(execd_send(s.control, EXECD_MSG_STARTED, &start_tag,
						 sizeof(start_tag), NULL, 0),
				0);
		break;
	case 2: /* too few descriptors */
		ck_assert_int_eq(execd_send(s.control, EXECD_MSG_START, &start_tag,
						 sizeof(start_tag), fds, 3),
				0);
		break;
	case 3: /* short payload */
		ck_assert_int_eq(execd_send(s.control, EXECD_MSG_START, &start_tag, 4, fds, 4), 0);
		break;
	case 4: /* descriptors with a signal */
		ck_assert_int_eq(execd_send(s.control, EXECD_MSG_SIGNAL, &sig, sizeof(sig), fds, 1),
				0);
		break;
	default: /* no packet at all */
		ck_assert_int_eq(send(s.control, "x", 1, 0), 1);
		break;
	}
	ck_assert_int_eq(sandbox_end(&s), 125);
	close(fd);
}
END_TEST

/* A description that is none is the process's failure, not the sandbox's. */
START_TEST(bad_description_fails_the_start)
{
	const struct execd_start start_tag = { .tag = 1, .flags = EXECD_START_MAIN };
	struct sandbox s;
	struct packet p;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int spec = fd_memfd_sealed("process", "nonsense", 8, false);
	int fds[4] = { _i ? spec : null, null, null, null };

	start(&s);
	ck_assert_int_eq(execd_send(s.control, EXECD_MSG_START, &start_tag, sizeof(start_tag), fds,
					 4),
			0);
	sandbox_expect(&s, EXECD_MSG_FAILED, &p);
	const struct execd_failed *failed = execd_payload(&p, sizeof(*failed));

	ck_assert_ptr_nonnull(failed);
	ck_assert_str_eq(failed->error.text, "process: read the description of the process");
	ck_assert_int_eq(failed->error.sysno, EBADMSG);
	shutdown(s.control, SHUT_RDWR);
	ck_assert_int_eq(sandbox_end(&s), 125);
	close(null);
	close(spec);
}
END_TEST

/* Requests that were sent before PID 1 was up are served in order. */
START_TEST(early_request_is_served)
{
	struct sandbox s;
	struct sandbox_run r;

	sandbox_init(&s);
	sandbox_launch(&s);
	RUN_SHELL(&r, "echo early");
	(void)run_start(&s, &r);
	ck_assert_int_eq(run_wait(&s, &r).status, 0);
	autofree char *out = run_output(&r);

	ck_assert_str_eq(out, "early\n");
	ck_assert_int_eq(sandbox_end(&s), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("serve");
	TCase *tc = tcase_create("all");

	if (!sandbox_is_possible()) {
		return getenv("OSBX_TESTS_MUST_RUN") ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	unit_with_dir(tc);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, end_of_channel_kills);
	tcase_add_loop_test(tc, nonsense_ends_it, 0, 6);
	tcase_add_loop_test(tc, bad_description_fails_the_start, 0, 2);
	tcase_add_test(tc, early_request_is_served);
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
