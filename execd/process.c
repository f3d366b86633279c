/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * A child tells by a pipe how its start went: it writes a struct error, or execve closes the pipe.
 * PID 1 does not wait for that (a file of the image may make the child wait for ever): the pipe is
 * a source of the loop.
 *
 *   STARTING ── end of the pipe ──▶ RUNNING ── reaped ──▶ (EXITED is sent, the record is freed)
 *      │
 *      └─────── struct error ─────▶ FAILED ─── reaped ──▶ (the record is freed)
 *
 * When SIGCHLD is seen before the pipe, process_reap settles the pipe first: the keeper always
 * gets STARTED before EXITED.
 */
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/sys.h>

#include "execd.h"

static struct process *process_find(const struct execd *x, uint32_t tag)
{
	struct process *p = x->processes;

	while (p && p->tag != tag) {
		p = p->next;
	}
	return p;
}

static void process_free(struct execd *x, struct process *p)
{
	struct process **at = &x->processes;

	while (*at != p) {
		at = &(*at)->next;
	}
	*at = p->next;
	x->processes_n--;
	loop_remove(x->loop, &p->report);
	fd_close(&p->report_fd);
	fd_close(&p->master_fd);
	free(p);
}

void answer(const struct execd *x, enum execd_msg type, const void *payload, uint32_t n, int fd)
{
	if (execd_send(x->control_fd, type, payload, n, &fd, fd >= 0 ? 1 : 0) < 0) {
		loop_stop(x->loop, EXECD_STATUS_CHANNEL);
	}
}

void answer_failed(const struct execd *x, uint32_t tag, const struct error *e)
{
	const struct execd_failed failed = { .tag = tag, .error = *e };

	answer(x, EXECD_MSG_FAILED, &failed, sizeof(failed), -1);
}

static void answer_started(struct process *p)
{
	const struct execd_started started = { .tag = p->tag, .pid = p->pid };

	answer(p->execd, EXECD_MSG_STARTED, &started, sizeof(started), p->master_fd);
	fd_close(&p->master_fd);
}

/* Read the child's report, which is complete, and answer the keeper. */
static void report_settle(struct process *p)
{
	struct error e = ERROR_INIT;
	ssize_t n = fd_read(p->report_fd, &e, sizeof(e));

	assert(p->stage == PROCESS_STARTING);
	loop_remove(p->execd->loop, &p->report);
	fd_close(&p->report_fd);
	if (n == 0) {
		p->stage = PROCESS_RUNNING;
		answer_started(p);
		return;
	}
	p->stage = PROCESS_FAILED;
	if (n != (ssize_t)sizeof(e)) {
		error_clear(&e);
		(void)error_set(&e, ERRC_INTERNAL, "the new process did not report its error");
	}
	error_sanitize(&e);
	answer_failed(p->execd, p->tag, &e);
}

static void report_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)loop;
	(void)events;
	report_settle(container_of(src, struct process, report));
}

static int start_check(const struct execd *x, const struct execd_start *start, struct error *e)
{
	if (start->tag == 0 || process_find(x, start->tag)) {
		return error_set(e, ERRC_INTERNAL, "process tag %u is in use", start->tag);
	}
	if (x->processes_n >= EXECD_PROCESSES_MAX) {
		return error_set(e, ERRC_LIMIT, "%d processes were started and have not ended",
				EXECD_PROCESSES_MAX);
	}
	return 0;
}

static struct process *process_new(struct execd *x, const struct execd_start *start, pid_t pid)
{
	struct process *p = mem_new(struct process);

	*p = (struct process){
		.tag = start->tag,
		.flags = start->flags,
		.pid = pid,
		.report_fd = -1,
		.master_fd = -1,
		.execd = x,
		.next = x->processes,
	};
	x->processes = p;
	x->processes_n++;
	return p;
}

int process_start(struct execd *x, const struct execd_start *start, const int *fds, struct error *e)
{
	struct child c = { .execd = x, .spec_fd = fds[0], .stdio = { -1, -1, -1 }, .slave_fd = -1 };
	autoclose int master_fd = -1;
	autoclose int slave_fd = -1;
	int report[2];

	if (start_check(x, start, e) < 0) {
		return -1;
	}
	if (start->flags & EXECD_START_TTY) {
		if (pty_open(x->root_fd, &master_fd, &slave_fd, e) < 0) {
			return -1;
		}
	} else {
		for (size_t i = 0; i < ARRAY_SIZE(c.stdio); i++) {
			c.stdio[i] = fds[1 + i];
		}
	}
	int r = fd_pipe(report, 0);

	if (r < 0) {
		return error_sys(e, -r, "make a pipe");
	}
	c.slave_fd = slave_fd;
	c.report_fd = report[1];
	pid_t pid = sys_fork();

	if (pid == 0) {
		child_run(&c);
	}
	fd_close(&report[1]);
	if (pid < 0) {
		fd_close(&report[0]);
		return error_sys(e, -pid, "start a process");
	}
	struct process *p = process_new(x, start, pid);

	p->report_fd = report[0];
	p->master_fd = TAKE_FD(master_fd);
	r = loop_add(x->loop, &p->report, p->report_fd, EPOLLIN, report_on_ready);
	if (r < 0) {
		/* Without its report nobody would learn of it: it goes, and is reaped as an orphan.
		 */
		(void)kill(pid, SIGKILL);
		process_free(x, p);
		return error_sys(e, -r, "watch a process");
	}
	return 0;
}

void process_signal(const struct execd *x, uint32_t tag, int signo)
{
	if (signo < 1 || signo >= NSIG) {
		return;
	}
	if (tag == 0) {
		(void)kill(-1, signo); /* all but ourselves */
		return;
	}
	const struct process *p = process_find(x, tag);

	if (!p) {
		return;
	}
	bool whole_group = !(p->flags & EXECD_START_MAIN) || signo == SIGINT || signo == SIGQUIT;

	/* Before its setsid there is no group of that number. */
	if (!whole_group || kill(-p->pid, signo) < 0) {
		(void)kill(p->pid, signo);
	}
}

static struct execd_exited exited_from(uint32_t tag, const siginfo_t *si)
{
	if (si->si_code == CLD_EXITED) {
		return (struct execd_exited){ .tag = tag, .status = si->si_status };
	}
	return (struct execd_exited){
		.tag = tag,
		.status = 128 + si->si_status,
		.signal = si->si_status,
	};
}

/* A process that we started has been reaped. True for the main one. */
static bool process_end(struct execd *x, struct process *p, const siginfo_t *si, int *out_status)
{
	if (p->stage == PROCESS_STARTING) {
		report_settle(p);
	}
	bool ends = p->stage == PROCESS_RUNNING && (p->flags & EXECD_START_MAIN);

	if (p->stage == PROCESS_RUNNING) {
		const struct execd_exited exited = exited_from(p->tag, si);

		answer(x, EXECD_MSG_EXITED, &exited, sizeof(exited), -1);
		*out_status = ends ? exited.status : *out_status;
	}
	process_free(x, p);
	return ends;
}

bool process_reap(struct execd *x, int *out_status)
{
	bool ends = false;

	for (;;) {
		siginfo_t si = { .si_pid = 0 };

		if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG) < 0 || si.si_pid == 0) {
			return ends; /* ECHILD, or nothing more */
		}
		struct process *p = x->processes;

		while (p && p->pid != si.si_pid) {
			p = p->next;
		}
		/* Others are orphans that the kernel gave to us. */
		if (p && process_end(x, p, &si, out_status)) {
			ends = true;
		}
	}
}
