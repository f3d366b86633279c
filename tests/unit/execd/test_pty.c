/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/ioctl.h>
#include <termios.h>

#include "../../../execd/execd.h"
#include "sandbox.h"

START_TEST(process_has_a_terminal)
{
	struct sandbox s;
	struct sandbox_run r;

	sandbox_init(&s);
	sandbox_start(&s);
	RUN_SHELL(&r, "tty; stty size; echo TERM=$TERM; ls /proc/self/fd | wc -l; "
		      "stat -c %u $(tty); echo to-tty >/dev/pts/0");
	r.flags |= EXECD_START_TTY;
	r.process.rows = 33;
	r.process.cols = 121;
	(void)run_start(&s, &r);
	ck_assert_int_eq(isatty(r.out), 1);
	ck_assert_int_eq(run_wait(&s, &r).status, 0);
	autofree char *out = run_output(&r);

	ck_assert_str_eq(out, "/dev/pts/0\r\n33 121\r\nTERM=xterm\r\n4\r\n0\r\nto-tty\r\n");
	ck_assert_int_eq(sandbox_end(&s), 0);
}
END_TEST

START_TEST(owner_is_the_user)
{
	struct sandbox s;
	struct sandbox_run r;

	sandbox_init(&s);
	if (!s.many_ids) {
		return; /* there is no other user to be */
	}
	sandbox_start(&s);
	RUN_SHELL(&r, "stat -c %u $(tty) && echo reopened >$(tty)");
	r.flags |= EXECD_START_TTY;
	r.process.user = mem_strdup("app");
	(void)run_start(&s, &r);
	ck_assert_int_eq(run_wait(&s, &r).status, 0);
	autofree char *out = run_output(&r);

	ck_assert_str_eq(out, "1000\r\nreopened\r\n");
	(void)sandbox_end(&s);
}
END_TEST

/* It is the controlling terminal: Ctrl-C is a signal, a hangup too. */
START_TEST(keyboard_and_hangup)
{
	struct sandbox s;
	struct sandbox_run r;
	char line[16];

	sandbox_init(&s);
	sandbox_start(&s);
	RUN_SHELL(&r, "echo ready; sleep 1000; echo not reached");
	r.flags |= EXECD_START_TTY;
	(void)run_start(&s, &r);
	ck_assert_int_eq(read(r.out, line, sizeof(line)), 7);
	usleep(100000);
	if (_i) {
		ck_assert_int_eq(write(r.out, "\x03", 1), 1);
	} else {
		close(r.out);
		r.out = -1;
	}
	ck_assert_int_eq(run_wait(&s, &r).signal, _i ? SIGINT : SIGHUP);
	(void)sandbox_end(&s);
}
END_TEST

/* What is not the multiplexer of a devpts is refused, whatever it is called. */
START_TEST(impostors_are_refused)
{
	struct error e = ERROR_INIT;
	int master = -1;
	int slave = -1;

	ck_assert_int_eq(mkdirat(unit_fd, "dev", 0755), 0);
	ck_assert_int_eq(mkdirat(unit_fd, "dev/pts", 0755), 0);
	switch (_i) {
	case 0:
		break; /* nothing there */
	case 1:
		close(openat(unit_fd, "dev/pts/ptmx", O_CREAT | O_WRONLY | O_CLOEXEC, 0666));
		break;
	case 2:
		ck_assert_int_eq(mkfifoat(unit_fd, "dev/pts/ptmx", 0666), 0);
		break;
	default:
		ck_assert_int_eq(symlinkat("/dev/ptmx", unit_fd, "dev/pts/ptmx"), 0);
		break;
	}
	ck_assert_int_eq(pty_open(unit_fd, &master, &slave, &e), -1);
	ck_assert_int_eq(e.code, _i == 1 || _i == 2 ? ERRC_DENIED : ERRC_SYSTEM);
	ck_assert_int_eq(master, -1);
	ck_assert_int_eq(slave, -1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pty");
	TCase *tc = tcase_create("all");

	if (!sandbox_is_possible()) {
		return getenv("OSBX_TESTS_MUST_RUN") ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	unit_with_dir(tc);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, process_has_a_terminal);
	tcase_add_test(tc, owner_is_the_user);
	tcase_add_loop_test(tc, keyboard_and_hangup, 0, 2);
	tcase_add_loop_test(tc, impostors_are_refused, 0, 4);
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
