/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * Where a process cannot have a cgroup, a subreaper keeps its descendants together: one that loses
 * its parent becomes a child of the subreaper, not of PID 1, in whatever session it is.
 *
 *   PID 1 ── subreaper ── process ── …
 *               └── orphans of the process's tree
 *
 * The subreaper reaps orphans, but not the process: PID 1 may still signal it by number. It tells
 * how the process ended and waits for the end of its channel: while PID 1 kills the tree, orphans
 * must still come to it. A workload may kill its subreaper; then its descendants are those of
 * PID 1, and the process is killed.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/sys.h>

#include "execd.h"

#define LINK_FD 0

/* Until the process is a zombie, which stays one. */
static siginfo_t orphans_reap(pid_t pid)
{
	for (;;) {
		siginfo_t si = { .si_pid = 0 };

		/* A zombie that is not taken is found first for ever: look at the process alone. */
		if (waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT) == 0 &&
				si.si_pid == pid) {
			return si;
		}
		si.si_pid = 0;
		if (waitid(P_ALL, 0, &si, WEXITED | WNOWAIT) == 0 && si.si_pid != pid) {
			(void)waitid(P_PID, (id_t)si.si_pid, &si, WEXITED | WNOHANG);
		}
	}
}

/* PID 1 may have forgotten the process: then there is nothing left to do. */
static void word_send(int fd, const struct reaper_word *word)
{
	if (fd_write_all(fd, word, sizeof(*word)) < 0) {
		_exit(0);
	}
}

void reaper_run(const struct child *c, int link_fd)
{
	struct reaper_word word = { .pid = 0 };
	sigset_t set;
	char byte = 0;

	/* Signals that all processes get are not meant for it. */
	(void)sigfillset(&set);
	(void)sigprocmask(SIG_SETMASK, &set, NULL);
	(void)!sys_prctl(PR_SET_CHILD_SUBREAPER, 1);
	(void)!sys_prctl(PR_SET_NAME, (unsigned long)"osbx-reaper");
	pid_t pid = sys_fork();

	if (pid == 0) {
		child_run(c);
	}
	if (pid < 0) {
		struct error e = ERROR_INIT;

		(void)error_sys(&e, -pid, "start a process");
		(void)!fd_write_all(c->report_fd, &e, sizeof(e));
		_exit(0);
	}
	/* First: it is there when the report, whose pipe this process holds too, has ended. */
	word.pid = pid;
	word_send(link_fd, &word);
	/* The report must end with the process's execve, its pipes with the process. */
	if (dup2(link_fd, LINK_FD) < 0 || sys_close_range(LINK_FD + 1, UINT_MAX, 0) < 0) {
		(void)kill(pid, SIGKILL);
		_exit(0);
	}
	word.end = orphans_reap(pid);
	word_send(LINK_FD, &word);
	(void)!fd_read(LINK_FD, &byte, 1);
	_exit(0);
}
