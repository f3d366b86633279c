/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * The parent's half of the handshake of initproto.h. As soon as the child has its ids and its
 * trees it mounts; meanwhile the parent makes the network namespace (netns.c), which the child
 * enters before /sys, and puts the pid on record; neither waits longer than it must. The child runs
 * init.c on a copy of this memory, so all that can fail for reasons of the request alone (the mount
 * plan) is made before it exists.
 *
 * Whatever fails after the clone: the child is killed, with it its pid namespace, and reaped.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/initproto.h>
#include <osbx/launch.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/mountplan.h>
#include <osbx/spawn.h>
#include <osbx/sys.h>

#include "init_internal.h"
#include "launch_internal.h"

/* For a child that fails to say so. */
#define LAST_WORD_MS 20
/* For a child that has closed its channel to be dead. */
#define END_MS 200

struct pairs {
	int parent_sock;
	int child_sock;
	int parent_control;
	int child_control;
};

#define PAIRS_INIT                                                                              \
	{                                                                                       \
		.parent_sock = -1, .child_sock = -1, .parent_control = -1, .child_control = -1, \
	}

static void pairs_done(struct pairs *p)
{
	fd_close(&p->parent_sock);
	fd_close(&p->child_sock);
	fd_close(&p->parent_control);
	fd_close(&p->child_control);
}
AUTO_DEFINE(pairs, struct pairs, pairs_done);

/* A running launch, parent's side. */
struct run {
	const struct spec *spec;
	const struct launch_ops *ops;
	struct launch l;
	enum init_stage stage;
	int sock;
	int64_t deadline_ms;
	bool to_cgroup; /* the child has still to be moved there */
};

static int pairs_open(struct pairs *p, struct error *e)
{
	int fds[2];
	int r = fd_seqpacket_pair(fds);

	if (r == 0) {
		p->parent_sock = fds[0];
		p->child_sock = fds[1];
		r = fd_seqpacket_pair(fds);
	}
	if (r < 0) {
		return error_sys(e, -r, "create the channels of a sandbox");
	}
	p->parent_control = fds[0];
	p->child_control = fds[1];
	return 0;
}

/* The network namespace is made by netns_make, the others are the child's own work: this process
 * has more to do before the two meet. */
#define CLONE_FLAGS ((uint64_t)(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWCGROUP))

static int clone_fail(const struct spec *spec, int errnum, struct error *e)
{
	(void)error_sys(e, errnum, "create the namespaces of a sandbox");
	if (spec->cgroup_fd >= 0 && (errnum == EBUSY || errnum == EACCES)) {
		return error_hint(e, "its cgroup cannot be entered from the one of this process");
	}
	return idmap_hint(e);
}

/* Clone the child; it does not return here. */
static int child_start(
		struct run *run, struct pairs *p, const struct mountplan *plan, struct error *e)
{
	const struct spec *spec = run->spec;
	struct init_ctx c = {
		.spec = spec,
		.plan = plan,
		.deadline_ms = run->deadline_ms,
		.stage = INIT_STAGE_CLONED,
		.sock = p->child_sock,
		.control_fd = p->child_control,
		.staging_fd = -1,
		.sys_fd = -1,
		.root_fd = -1,
		.upper_fd = -1,
		.work_fd = -1,
	};
	pid_t pid = sys_clone(CLONE_FLAGS, spec->cgroup_fd, &run->l.pidfd);

	if (pid == -EOPNOTSUPP && spec->cgroup_fd >= 0) {
		/* Without clone3 the child is moved, and a cgroup namespace made now would have
		 * the wrong root. */
		c.unshare_cgroup = true;
		run->to_cgroup = true;
		pid = sys_clone(CLONE_FLAGS & ~(uint64_t)CLONE_NEWCGROUP, -1, &run->l.pidfd);
	}
	if (pid < 0) {
		return clone_fail(spec, -pid, e);
	}
	if (pid == 0) {
		/* Else the end of the parent would never be seen. */
		fd_close(&p->parent_sock);
		fd_close(&p->parent_control);
		init_run(&c);
	}
	run->l.pid = pid;
	fd_close(&p->child_sock);
	fd_close(&p->child_control);
	return 0;
}

static int child_move(const struct run *run, struct error *e)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%d", run->l.pid);
	int r = file_put_at(run->spec->cgroup_fd, "cgroup.procs", text);

	return r < 0 ? error_sys(e, -r, "move the sandbox to its cgroup") : 0;
}

/* Before the child changes its ids: then it is no longer dumpable, and /proc/PID/ns closed to an
 * ordinary user. */
static int open_userns(struct run *run, struct error *e)
{
	char path[48];

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", run->l.pid);
	run->l.userns_fd = fd_open(path, O_RDONLY, 0);
	return run->l.userns_fd < 0 ? error_sys(e, -run->l.userns_fd, "open %s", path) : 0;
}

/* A message to the child. When it is gone, what it said last is the reason. */
static int tell(struct run *run, enum init_msg msg, const int *fds, uint32_t n, struct error *e)
{
	int r = init_send(run->sock, msg, fds, n);
	struct packet p;

	if (r == 0) {
		int next = init_stage_next(run->stage, msg);

		assert(next >= 0);
		run->stage = (enum init_stage)next;
		return 0;
	}
	if (r != -EPIPE && r != -ECONNRESET) {
		return error_sys(e, -r, "tell the sandbox %s", init_msg_name(msg));
	}
	return init_expect(run->sock, &run->stage, INIT_MSG_ERROR, &p, run->deadline_ms, e);
}

/* What failed on this side may only be the echo of the child's end: then its sentence counts. */
static int prefer_child(struct run *run, struct error *e)
{
	struct error child = ERROR_INIT;
	struct packet p;

	(void)!init_expect(run->sock, &run->stage, INIT_MSG_ERROR, &p,
			clock_boot_ms() + LAST_WORD_MS, &child);
	if (child.code != ERRC_TIMEOUT && child.code != ERRC_INTERNAL) {
		*e = child;
	}
	return -1;
}

/* IDS_DONE with the first trees, TREES with all others. */
static int send_trees(struct run *run, const int *fds, size_t n, struct error *e)
{
	enum init_msg msg = INIT_MSG_IDS_DONE;
	size_t sent = 0;

	do {
		uint32_t part = n - sent > PACKET_FDS_MAX ? PACKET_FDS_MAX : (uint32_t)(n - sent);

		if (tell(run, msg, fds + sent, part, e) < 0) {
			return -1;
		}
		sent += part;
		msg = INIT_MSG_TREES;
	} while (sent < n);
	return 0;
}

static int give_ids(struct run *run, struct idmap_writer *ids, struct error *e)
{
	int fds[LIMIT_VOLUMES + 2];
	const size_t n = run->spec->map.mode == IDMAP_MAPPED ? run->spec->trees_n : 0;

	if (idmap_write_end(ids, e) < 0 || open_userns(run, e) < 0) {
		return -1;
	}
	if (n == 0) {
		return tell(run, INIT_MSG_IDS_DONE, NULL, 0, e);
	}
	int r = launch_trees_open(run->spec, run->l.userns_fd, fds, e);

	if (r == 0) {
		r = send_trees(run, fds, n, e);
	}
	for (size_t i = 0; i < n; i++) {
		fd_close(&fds[i]);
	}
	return r;
}

static int give_net(struct run *run, struct error *e)
{
	const struct launch_ops *ops = run->ops;
	autoclose int fd = -1;

	if (run->spec->network == SPEC_NETWORK_HOST) {
		return tell(run, INIT_MSG_NET_DONE, NULL, 0, e);
	}
	if (netns_make(run->l.userns_fd, &run->spec->map, &fd, e) < 0) {
		return prefer_child(run, e);
	}
	if (ops->attach_net && ops->attach_net(ops->ctx, run->l.userns_fd, fd, e) < 0) {
		return -1;
	}
	return tell(run, INIT_MSG_NET_DONE, &fd, 1, e);
}

/* From the clone to the message that lets the child execute execd. */
static int lead(struct run *run, struct error *e)
{
	const struct launch_ops *ops = run->ops;

	if (run->to_cgroup && child_move(run, e) < 0) {
		return -1;
	}
	AUTO(idmap_writer)
	struct idmap_writer *ids = idmap_write_begin(&run->spec->map, run->l.pid, e);

	if (!ids) {
		return prefer_child(run, e);
	}
	if (ops->on_clone && ops->on_clone(ops->ctx, e) < 0) {
		return -1;
	}
	if (give_ids(run, TAKE_PTR(ids), e) < 0) {
		return prefer_child(run, e);
	}
	if (give_net(run, e) < 0 ||
			(ops->record_pid && ops->record_pid(ops->ctx, run->l.pid, e) < 0)) {
		return -1;
	}
	return tell(run, INIT_MSG_GO, NULL, 0, e);
}

static int shake_hands(struct run *run, int control_fd, struct error *e)
{
	const struct launch_ops *ops = run->ops;

	if (lead(run, e) < 0) {
		return -1;
	}
	if (ops->before_up && ops->before_up(ops->ctx, control_fd, e) < 0) {
		return prefer_child(run, e);
	}
	struct packet p;

	if (init_expect(run->sock, &run->stage, INIT_MSG_UP, &p, run->deadline_ms, e) < 0) {
		return -1;
	}
	packet_done(&p);
	return 0;
}

/* A child that ended without a word is named by its status: an outer filter or the OOM killer. */
static void explain_end(struct launch *l, struct error *e)
{
	int status = 0;

	if (e->code == ERRC_INTERNAL && spawn_wait(l->pidfd, END_MS, &status) == 0) {
		l->pid = 0;
		(void)error_wrap(e, "the sandbox's first process ended with status %d", status);
	}
}

static int check(const struct spec *spec, struct error *e)
{
	assert(spec->execd_fd >= 0 && spec->config_fd >= 0);
	assert(spec->lowers_n > 0 && spec->trees_n > SPEC_SANDBOX_TREE);
	if (spec->trees_n > LIMIT_VOLUMES + 2) {
		return error_set(e, ERRC_LIMIT, "more than %d volumes", LIMIT_VOLUMES);
	}
	if (spec->lowers_n > LIMIT_LAYERS + 1) {
		return error_set(e, ERRC_LIMIT, "more than %d layers", LIMIT_LAYERS);
	}
	return 0;
}

int launch_start(const struct spec *spec, const struct launch_ops *ops, struct launch *out_launch,
		struct error *e)
{
	AUTO(mountplan) struct mountplan plan = { .n = 0 };
	AUTO(pairs) struct pairs pairs = PAIRS_INIT;
	struct run run = {
		.spec = spec,
		.ops = ops,
		.l = LAUNCH_INIT,
		.stage = INIT_STAGE_CLONED,
		.deadline_ms = clock_boot_ms() + spec->timeout_ms,
	};

	if (check(spec, e) < 0 || mountplan_build(spec, &plan, e) < 0 ||
			pairs_open(&pairs, e) < 0 || child_start(&run, &pairs, &plan, e) < 0) {
		return -1;
	}
	run.sock = pairs.parent_sock;
	if (shake_hands(&run, pairs.parent_control, e) < 0) {
		explain_end(&run.l, e);
		launch_done(&run.l);
		return -1;
	}
	run.l.control_fd = TAKE_FD(pairs.parent_control);
	*out_launch = run.l;
	return 0;
}

void launch_done(struct launch *l)
{
	int status = 0;

	if (!l) {
		return;
	}
	if (l->pid > 0 && l->pidfd >= 0) {
		/* ESRCH: it is a zombie already. ECHILD of the wait: SIGCHLD is ignored here. */
		int r = sys_pidfd_kill(l->pidfd, SIGKILL);

		if (r == 0 || r == -ESRCH) {
			(void)!spawn_wait(l->pidfd, -1, &status);
		}
	}
	l->pid = 0;
	fd_close(&l->pidfd);
	fd_close(&l->control_fd);
	fd_close(&l->userns_fd);
}
