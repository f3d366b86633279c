/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * A child tells by a pipe how its start went: it writes a struct error, or execve closes the pipe.
 * PID 1 does not wait for that (a file of the image may make the child wait for ever): the pipe is
 * a source of the loop.
 *
 *   STARTING ── end of the pipe ──▶ RUNNING ── reaped ──▶ (on_exited, the record is freed)
 *      │           on_started
 *      └─────── struct error ─────▶ FAILED ─── reaped ──▶ (the record is freed)
 *                  on_failed
 *
 * When SIGCHLD is seen before the pipe, process_reap settles the pipe first: on_started always
 * comes before on_exited. The calls go to the keeper (process_keeper.c) or to the API.
 *
 * A process beside the main one is born in a cgroup of its own (leaf.c). Where that cannot be, it
 * is the child of a subreaper (reaper.c), which tells its end by another pipe. Both are for KILL.
 */
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/sys.h>

#include "execd.h"

struct process *process_find(const struct execd *x, uint32_t tag)
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

	if (p->leaf) {
		p->leaf->is_used = false;
	}

	while (*at != p) {
		at = &(*at)->next;
	}
	*at = p->next;
	x->processes_n--;
	loop_remove(x->loop, &p->report);
	loop_remove(x->loop, &p->link);
	fd_close(&p->report_fd);
	fd_close(&p->link_fd);
	fd_close(&p->master_fd);
	free(p);
}

/* The next word of the subreaper: 1, or 0 at its end, or -EAGAIN. The first one is the pid. */
static int link_read(struct process *p, struct reaper_word *out)
{
	ssize_t n = fd_read(p->link_fd, out, sizeof(*out));

	if (n == -EAGAIN) {
		return -EAGAIN;
	}
	if (n != (ssize_t)sizeof(*out)) {
		return 0;
	}
	if (p->pid == 0) {
		p->pid = out->pid;
	}
	return 1;
}

/* Read the child's report, which is complete, and tell of it. */
static void report_settle(struct process *p)
{
	struct error e = ERROR_INIT;
	struct reaper_word word;
	ssize_t n = fd_read(p->report_fd, &e, sizeof(e));

	assert(p->stage == PROCESS_STARTING);
	loop_remove(p->execd->loop, &p->report);
	fd_close(&p->report_fd);
	if (n == 0 && (p->pid > 0 || link_read(p, &word) > 0)) {
		p->stage = PROCESS_RUNNING;
		p->calls.on_started(p->calls.ctx, p->pid, TAKE_FD(p->master_fd));
		return;
	}
	p->stage = PROCESS_FAILED;
	if (n != (ssize_t)sizeof(e)) {
		error_clear(&e);
		(void)error_set(&e, ERRC_INTERNAL, "the new process did not report its error");
	}
	error_sanitize(&e);
	p->calls.on_failed(p->calls.ctx, &e);
}

static void report_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)loop;
	(void)events;
	report_settle(container_of(src, struct process, report));
}

static struct process *process_add(const struct process *init)
{
	struct process *p = mem_new(struct process);
	struct execd *x = init->execd;

	*p = *init;
	if (!p->calls.ctx) {
		p->calls.ctx = p;
	}
	p->next = x->processes;
	x->processes = p;
	x->processes_n++;
	return p;
}

/* Fork, into a cgroup of its own where that is possible. Pid, 0 in the child, -errno. */
static pid_t fork_in_leaf(struct process *p)
{
	p->leaf = leaf_new(p->execd);
	if (!p->leaf) {
		return -EOPNOTSUPP;
	}
	pid_t pid = leaf_fork(p->leaf);

	if (pid < 0) {
		p->leaf->is_used = false;
		p->leaf = NULL;
		leaves_sweep(p->execd);
	}
	return pid;
}

/* Fork a subreaper, which forks the process. */
static pid_t fork_below_reaper(struct process *p, const struct child *c)
{
	int link[2];
	int r = fd_seqpacket_pair(link);

	if (r < 0) {
		return r;
	}
	r = fd_set_nonblock(link[0], true);
	pid_t pid = r < 0 ? r : sys_fork();

	if (pid == 0) {
		reaper_run(c, link[1]);
	}
	fd_close(&link[1]);
	if (pid < 0) {
		fd_close(&link[0]);
		return pid;
	}
	p->reaper_pid = pid;
	p->link_fd = link[0];
	return pid;
}

/* Start what c describes, so that its tree can be killed later. 0 or -errno. */
static int process_fork(struct process *p, const struct child *c)
{
	bool is_main = (p->flags & EXECD_START_MAIN) != 0;
	pid_t pid = is_main ? sys_fork() : fork_in_leaf(p);

	if (pid == 0) {
		child_run(c);
	}
	if (pid < 0 && !is_main && pid != -EAGAIN && pid != -ENOMEM) {
		pid = fork_below_reaper(p, c);
	} else if (pid > 0) {
		p->pid = pid;
	}
	return pid < 0 ? pid : 0;
}

static void link_on_ready(struct loop *loop, struct loop_source *src, uint32_t events);

/* Watch a process that has been forked. 0 or -errno. */
static int process_watch(struct process *p)
{
	struct loop *loop = p->execd->loop;
	int r = loop_add(loop, &p->report, p->report_fd, EPOLLIN, report_on_ready);

	return r < 0 || p->link_fd < 0
			       ? r
			       : loop_add(loop, &p->link, p->link_fd, EPOLLIN, link_on_ready);
}

static int launch_check(const struct process *p, struct error *e)
{
	if (p->tag == 0 || process_find(p->execd, p->tag)) {
		return error_set(e, ERRC_INTERNAL, "process tag %u is in use", p->tag);
	}
	if (p->execd->processes_n >= EXECD_PROCESSES_MAX) {
		return error_set(e, ERRC_LIMIT, "%d processes were started and have not ended",
				EXECD_PROCESSES_MAX);
	}
	return 0;
}

int process_launch(const struct process *init, struct child *c, struct error *e)
{
	struct execd *x = init->execd;
	struct process p = *init;
	autoclose int master_fd = -1;
	autoclose int slave_fd = -1;
	int report[2];

	if (launch_check(init, e) < 0) {
		return -1;
	}
	if ((p.flags & EXECD_START_TTY) && pty_open(x->root_fd, &master_fd, &slave_fd, e) < 0) {
		return -1;
	}
	int r = fd_pipe(report, 0);

	if (r < 0) {
		return error_sys(e, -r, "make a pipe");
	}
	c->execd = x;
	c->slave_fd = slave_fd;
	c->report_fd = report[1];
	p.report_fd = report[0];
	p.link_fd = -1;
	/* A subreaper that is killed leaves a child that still holds the other end. */
	r = fd_set_nonblock(report[0], true);
	r = r < 0 ? r : process_fork(&p, c);
	fd_close(&report[1]);
	if (r < 0) {
		fd_close(&report[0]);
		return error_sys(e, -r, "start a process");
	}
	p.master_fd = TAKE_FD(master_fd);
	struct process *added = process_add(&p);

	r = process_watch(added);
	if (r < 0) {
		/* Without its report nobody would learn of it: it goes, and is reaped as an orphan.
		 */
		(void)kill(p.reaper_pid > 0 ? p.reaper_pid : p.pid, SIGKILL);
		process_free(x, added);
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

	if (!p || p->pid == 0 || p->has_ended) {
		return;
	}
	bool whole_group = !(p->flags & EXECD_START_MAIN) || signo == SIGINT || signo == SIGQUIT;

	/* Before its setsid there is no group of that number. */
	if (!whole_group || kill(-p->pid, signo) < 0) {
		(void)kill(p->pid, signo);
	}
}

/* The status with which PID 1 ends when its main process has. */
static int main_status(const siginfo_t *si)
{
	return si->si_code == CLD_EXITED ? si->si_status : 128 + si->si_status;
}

/* A process that we started has ended. True for the main one. */
static bool process_end(struct execd *x, struct process *p, const siginfo_t *si, int *out_status)
{
	if (p->stage == PROCESS_STARTING) {
		report_settle(p);
	}
	bool ends = p->stage == PROCESS_RUNNING && (p->flags & EXECD_START_MAIN);
	const struct process_calls calls = p->calls;

	if (p->takes_tree) {
		process_kill(x, p->tag); /* its cgroup: whatever is left of the others */
	}

	if (p->stage == PROCESS_RUNNING) {
		*out_status = ends ? main_status(si) : *out_status;
		calls.on_exited(calls.ctx, si);
	}
	process_free(x, p);
	return ends;
}

void process_end_below(struct process *p, const siginfo_t *si)
{
	int status = 0;

	loop_remove(p->execd->loop, &p->link);
	p->has_ended = true;
	p->end = *si;
	if (p->stage == PROCESS_STARTING) {
		report_settle(p); /* who learns of the start may want the tree to be killed */
	}
	if (p->takes_tree) {
		p->takes_tree = false;
		process_kill(p->execd, p->tag); /* then this is called again */
	}
	if (!p->killing) {
		(void)process_end(p->execd, p, si, &status);
	}
}

/* The subreaper is gone before its process: killed from within the sandbox. */
static void reaper_lost(struct process *p)
{
	const siginfo_t si = { .si_code = CLD_KILLED, .si_status = SIGKILL };

	if (p->pid > 0 && !p->has_ended) {
		(void)!proc_kill(p->execd->root_fd, p->pid, p->pid);
		(void)kill(p->pid, SIGKILL);
	}
	p->killing = false;
	process_end_below(p, p->has_ended ? &p->end : &si);
}

static void link_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct process *p = container_of(src, struct process, link);
	bool knows_pid = p->pid > 0;
	struct reaper_word word;
	/* The report, an event of the same wait, may have taken the word: that is no reason to wait
	 * for the next one, which comes when the process ends. */
	int r = link_read(p, &word);

	(void)loop;
	(void)events;
	if (r == -EAGAIN) {
		return;
	}
	if (r == 0) {
		reaper_lost(p);
	} else if (knows_pid) {
		process_end_below(p, &word.end);
	}
}

int process_reapers(const struct execd *x)
{
	int n = 0;

	for (const struct process *p = x->processes; p; p = p->next) {
		n += p->reaper_pid > 0;
	}
	return n;
}

/* Our child of this number. One below a subreaper is not ours: the link tells of it. */
static struct process *process_of(const struct execd *x, pid_t pid)
{
	struct process *p = x->processes;

	while (p && (p->reaper_pid > 0 || p->pid != pid)) {
		p = p->next;
	}
	return p;
}

bool process_reap(struct execd *x, int *out_status)
{
	bool ends = false;

	for (;;) {
		siginfo_t si = { .si_pid = 0 };

		if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG) < 0 || si.si_pid == 0) {
			break; /* ECHILD, or nothing more */
		}
		struct process *p = process_of(x, si.si_pid);

		/* Others are orphans that the kernel gave to us. */
		if (p && process_end(x, p, &si, out_status)) {
			ends = true;
		}
	}
	leaves_sweep(x);
	return ends;
}
