/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <osbx/str.h>
#include <osbx/tty.h>

int tty_raw_start(struct tty *t, int fd)
{
	struct termios saved;
	struct termios raw;

	if (tcgetattr(fd, &saved) < 0) {
		return -errno;
	}
	raw = saved;
	cfmakeraw(&raw);
	if (tcsetattr(fd, TCSANOW, &raw) < 0) {
		return -errno;
	}
	t->fd = fd;
	t->saved = saved;
	return 0;
}

void tty_raw_stop(struct tty *t)
{
	sigset_t ttou;
	sigset_t before;
	int saved_errno = errno;

	if (t->fd < 0) {
		return;
	}
	/* A process in the background would be stopped here, before the terminal is restored. */
	(void)sigemptyset(&ttou);
	(void)sigaddset(&ttou, SIGTTOU);
	(void)sigprocmask(SIG_BLOCK, &ttou, &before);
	(void)tcsetattr(t->fd, TCSANOW, &t->saved);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	t->fd = -1;
	errno = saved_errno;
}

int tty_size(int fd, struct winsize *out_ws)
{
	struct winsize ws = { 0 };

	if (ioctl(fd, TIOCGWINSZ, &ws) < 0) {
		return -errno;
	}
	*out_ws = ws;
	return 0;
}

bool tty_has_colour(int fd)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	if (no_color && no_color[0] != '\0') {
		return false;
	}
	return term && !str_eq(term, "dumb") && isatty(fd) == 1;
}
