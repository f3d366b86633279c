/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * Nothing runs in a process that SIGKILL ends, so a child waits at a pipe for the end of its
 * parent. It holds the terminal and the pipe and nothing else: every lock and every other pipe of
 * the parent ends with the parent. It leads a process group of its own, out of reach of a signal to
 * the parent's, and blocks what can be blocked: also SIGTTOU, so that it may set a terminal from
 * the background.
 *
 * It restores the terminal only if it is as the parent set it. A shell that has taken it back, or
 * a parent that has restored it, has set other modes.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/sys.h>

#include "console_guard.h"

enum guard_fd {
	GUARD_TTY,
	GUARD_PIPE,
	GUARD_FD_COUNT,
};

static bool modes_eq(const struct termios *a, const struct termios *b)
{
	return a->c_iflag == b->c_iflag && a->c_oflag == b->c_oflag && a->c_cflag == b->c_cflag &&
	       a->c_lflag == b->c_lflag && memcmp(a->c_cc, b->c_cc, sizeof(a->c_cc)) == 0;
}

/* Only the two, under numbers that are known. */
static int fds_keep(int tty_fd, int pipe_fd)
{
	int tty = fd_dup(tty_fd, GUARD_FD_COUNT);
	int pipe = fd_dup(pipe_fd, GUARD_FD_COUNT);

	if (tty < 0 || pipe < 0 || dup2(tty, GUARD_TTY) < 0 || dup2(pipe, GUARD_PIPE) < 0) {
		return -EBADF;
	}
	return sys_close_range(GUARD_FD_COUNT, UINT_MAX, 0);
}

static void guard_run(const struct tty *t, const struct termios *raw, int pipe_fd)
{
	struct termios now;
	sigset_t all;
	char c = 0;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)setpgid(0, 0);
	if (fds_keep(t->fd, pipe_fd) < 0 || fd_read(GUARD_PIPE, &c, 1) != 0) {
		return;
	}
	if (tcgetattr(GUARD_TTY, &now) == 0 && modes_eq(&now, raw)) {
		(void)tcsetattr(GUARD_TTY, TCSANOW, &t->saved);
	}
}

int console_guard_start(struct console_guard *g, const struct tty *t)
{
	struct termios raw;
	int fds[2];

	if (tcgetattr(t->fd, &raw) < 0) {
		return -errno;
	}
	int r = fd_pipe(fds, 0);

	if (r < 0) {
		return r;
	}
	pid_t pid = sys_fork();

	if (pid == 0) {
		guard_run(t, &raw, fds[0]);
		_exit(0);
	}
	fd_close(&fds[0]);
	if (pid < 0) {
		fd_close(&fds[1]);
		return pid;
	}
	*g = (struct console_guard){ .pid = pid, .pipe_fd = fds[1] };
	return 0;
}

void console_guard_stop(struct console_guard *g)
{
	const char done = 1;

	if (g->pid <= 0) {
		return;
	}
	/* A byte says that all is well; should it not get through, the modes say so too. */
	(void)!fd_write_all(g->pipe_fd, &done, 1);
	fd_close(&g->pipe_fd);
	while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR) {
	}
	*g = (struct console_guard)CONSOLE_GUARD_INIT;
}
