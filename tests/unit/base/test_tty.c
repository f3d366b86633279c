/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>

#include <osbx/tty.h>

#include "../unit.h"

static int master = -1;
static int slave = -1;

static void pty_open(void)
{
	const struct winsize ws = { .ws_row = 33, .ws_col = 101 };

	ck_assert_int_eq(openpty(&master, &slave, NULL, NULL, &ws), 0);
}

static void pty_close(void)
{
	close(master);
	close(slave);
}

START_TEST(raw_and_back)
{
	struct tty t = { .fd = -1 };
	struct termios before;
	struct termios now;

	ck_assert_int_eq(tcgetattr(slave, &before), 0);
	ck_assert_int_ne(before.c_lflag & (ICANON | ECHO | ISIG), 0);
	ck_assert_int_eq(tty_raw_start(&t, slave), 0);
	ck_assert_int_eq(t.fd, slave);
	ck_assert_int_eq(tcgetattr(slave, &now), 0);
	ck_assert_int_eq(now.c_lflag & (ICANON | ECHO | ISIG), 0);
	ck_assert_int_eq(now.c_oflag & OPOST, 0);
	errno = EXDEV;
	tty_raw_stop(&t);
	ck_assert_int_eq(errno, EXDEV);
	ck_assert_int_eq(t.fd, -1);
	ck_assert_int_eq(tcgetattr(slave, &now), 0);
	ck_assert_uint_eq(now.c_lflag, before.c_lflag);
	ck_assert_uint_eq(now.c_iflag, before.c_iflag);
	ck_assert_uint_eq(now.c_oflag, before.c_oflag);
	/* Once more does nothing. */
	tty_raw_stop(&t);
}
END_TEST

START_TEST(no_terminal_is_refused)
{
	struct tty t = { .fd = -1 };
	struct winsize ws = { .ws_row = 7 };
	int fds[2];

	ck_assert_int_eq(pipe(fds), 0);
	ck_assert_int_eq(tty_raw_start(&t, fds[0]), -ENOTTY);
	ck_assert_int_eq(t.fd, -1);
	tty_raw_stop(&t);
	ck_assert_int_eq(tty_size(fds[0], &ws), -ENOTTY);
	ck_assert_int_eq(ws.ws_row, 7);
	ck_assert_int_eq(tty_raw_start(&t, -1), -EBADF);
}
END_TEST

START_TEST(size)
{
	struct winsize ws = { 0 };

	ck_assert_int_eq(tty_size(slave, &ws), 0);
	ck_assert_int_eq(ws.ws_row, 33);
	ck_assert_int_eq(ws.ws_col, 101);
}
END_TEST

START_TEST(colour)
{
	int fds[2];

	ck_assert_int_eq(pipe(fds), 0);
	ck_assert_int_eq(setenv("TERM", "xterm", 1), 0);
	ck_assert_int_eq(unsetenv("NO_COLOR"), 0);
	ck_assert(tty_has_colour(slave));
	ck_assert(!tty_has_colour(fds[1]));
	ck_assert_int_eq(setenv("NO_COLOR", "", 1), 0);
	ck_assert(tty_has_colour(slave));
	ck_assert_int_eq(setenv("NO_COLOR", "1", 1), 0);
	ck_assert(!tty_has_colour(slave));
	ck_assert_int_eq(unsetenv("NO_COLOR"), 0);
	ck_assert_int_eq(setenv("TERM", "dumb", 1), 0);
	ck_assert(!tty_has_colour(slave));
	ck_assert_int_eq(unsetenv("TERM"), 0);
	ck_assert(!tty_has_colour(slave));
}
END_TEST

/* A process in the background of its terminal restores it without being stopped. */
START_TEST(stop_from_the_background)
{
	int status = 0;
	pid_t leader = fork();

	if (leader == 0) {
		struct tty t = { .fd = -1 };
		pid_t background = -1;

		if (setsid() < 0 || ioctl(slave, TIOCSCTTY, 0) < 0 ||
				tty_raw_start(&t, slave) < 0) {
			_exit(10);
		}
		background = fork();
		if (background == 0) {
			(void)setpgid(0, 0);
			tty_raw_stop(&t);
			_exit(0);
		}
		if (waitpid(background, &status, WUNTRACED) != background) {
			_exit(11);
		}
		_exit(WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 12);
	}
	ck_assert_int_eq(waitpid(leader, &status, 0), leader);
	ck_assert_int_eq(WEXITSTATUS(status), 0);
	{
		struct termios now;

		ck_assert_int_eq(tcgetattr(slave, &now), 0);
		ck_assert_int_ne(now.c_lflag & ICANON, 0);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("tty");
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, pty_open, pty_close);
	tcase_add_test(tc, raw_and_back);
	tcase_add_test(tc, no_terminal_is_refused);
	tcase_add_test(tc, size);
	tcase_add_test(tc, colour);
	tcase_add_test(tc, stop_from_the_background);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
