/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * In the foreground a keeper stands for its sandbox: signals are forwarded to the main process,
 * SIGHUP ends it, SIGTSTP stops both: the sandbox is frozen by its cgroup, without one by SIGSTOP
 * to all its processes; then this process stops by the signal's own default action (which an
 * orphaned process group does not take: it would never be continued).
 *
 * A keeper of its own is nobody's job. What asks a process to end, ends its sandbox; the rest means
 * nothing to it.
 */
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <osbx/fd.h>

#include "keeper_internal.h"

/* Signals whose being ignored is a wish of the caller: nohup, a shell's background jobs. */
static const int ignorable[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP };

/* Signals that keep their effect on this process: a job in the background, faults of our own. */
static const int untaken[] = { SIGTTIN, SIGTTOU, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };

struct signal_rule {
	int signo;
	void (*run)(struct keeper *k, int signo);
};

/* Signals that ask a process to end. */
static bool is_ending(int signo)
{
	return signo == SIGHUP || signo == SIGINT || signo == SIGQUIT || signo == SIGTERM;
}

static void signal_forward(struct keeper *k, int signo)
{
	(void)keeper_kill(k, MAIN_TAG, signo);
}

static void signal_ignore(struct keeper *k, int signo)
{
	(void)k;
	(void)signo;
}

static void signal_stop(struct keeper *k, int signo)
{
	(void)signo;
	keeper_stop(k, k->opts.stop_signal, STOP_GRACE_MS, STATE_REASON_STOPPED);
}

/* The caller's terminal is gone, and so is the inner one: shells that wait for a person ignore the
 * stop signal, but not this. */
static void signal_hangup(struct keeper *k, int signo)
{
	if (k->opts.tty && !k->paused) {
		(void)keeper_kill(k, MAIN_TAG, signo);
	}
	signal_stop(k, signo);
}

static void signal_resize(struct keeper *k, int signo)
{
	(void)signo;
	console_resize(k->console);
}

static void signal_continue(struct keeper *k, int signo)
{
	(void)signo;
	console_resume(k->console);
}

static void freeze(struct keeper *k, bool on)
{
	/* A command's pause outlives the job control of this terminal. */
	if (!k->paused && cgroup_freeze(k->opts.cgroup, on) < 0) {
		(void)keeper_kill(k, 0, on ? SIGSTOP : SIGCONT);
	}
}

static void signal_suspend(struct keeper *k, int signo)
{
	sigset_t set;

	freeze(k, true);
	console_suspend(k->console);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, signo);
	(void)kill(getpid(), signo);
	/* Here the process stops, and goes on after SIGCONT. */
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	console_resume(k->console);
	freeze(k, false);
}

/* In the foreground; all others are forwarded. */
static const struct signal_rule foreground_rules[] = {
	{ SIGCHLD, signal_ignore },
	{ SIGCONT, signal_continue },
	{ SIGHUP, signal_hangup },
	{ SIGPIPE, signal_ignore },
	{ SIGTSTP, signal_suspend },
	{ SIGURG, signal_ignore },
	{ SIGWINCH, signal_resize },
};

/* Detached; all others are ignored. */
static const struct signal_rule detached_rules[] = {
	{ SIGHUP, signal_stop },
	{ SIGINT, signal_stop },
	{ SIGQUIT, signal_stop },
	{ SIGTERM, signal_stop },
};

static void signal_run(struct keeper *k, int signo)
{
	bool detached = k->opts.detached;
	const struct signal_rule *rules = detached ? detached_rules : foreground_rules;
	size_t n = detached ? ARRAY_SIZE(detached_rules) : ARRAY_SIZE(foreground_rules);

	for (size_t i = 0; i < n; i++) {
		if (rules[i].signo == signo) {
			rules[i].run(k, signo);
			return;
		}
	}
	if (!detached) {
		signal_forward(k, signo);
	}
}

static void signals_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct keeper *k = container_of(src, struct keeper, signals);
	struct signalfd_siginfo si;

	(void)loop;
	(void)events;
	if (fd_read(k->signal_fd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		if (is_ending((int)si.ssi_signo)) {
			keeper_ask(k);
		}
		signal_run(k, (int)si.ssi_signo);
	}
}

static void signals_set(sigset_t *out_set)
{
	struct sigaction sa;

	(void)sigfillset(out_set);
	for (size_t i = 0; i < ARRAY_SIZE(untaken); i++) {
		(void)sigdelset(out_set, untaken[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(ignorable); i++) {
		/* A blocked signal is kept even where it is ignored. */
		if (sigaction(ignorable[i], NULL, &sa) == 0 && sa.sa_handler == SIG_IGN) {
			(void)sigdelset(out_set, ignorable[i]);
		}
	}
}

int keeper_hold_signals(sigset_t *out_before)
{
	sigset_t set;

	signals_set(&set);
	return sigprocmask(SIG_BLOCK, &set, out_before) < 0 ? -errno : 0;
}

int keeper_signals_start(struct keeper *k)
{
	sigset_t set;

	signals_set(&set);
	k->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (k->signal_fd < 0 || sigprocmask(SIG_BLOCK, &set, &k->mask_before) < 0) {
		return -errno;
	}
	return loop_add(k->loop, &k->signals, k->signal_fd, EPOLLIN, signals_on_ready);
}

void keeper_signals_stop(struct keeper *k)
{
	struct signalfd_siginfo si;

	if (k->signal_fd < 0) {
		return;
	}
	/* What came too late was meant for the sandbox, too. */
	while (fd_read(k->signal_fd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
	}
	fd_close(&k->signal_fd);
	(void)sigprocmask(SIG_SETMASK, &k->mask_before, NULL);
}
