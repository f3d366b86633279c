/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * A process that a client starts is known to execd by a tag of ours; its record lives until execd
 * says that it failed or ended. The client may leave earlier: then the process gets SIGKILL (unless
 * it is detached), at once, or when the sandbox is resumed and execd can hear of it.
 *
 * What the workload gets from a client is a pipe or a null device, nothing else: a directory or a
 * socket of the host would lead out of the sandbox.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/limits.h>
#include <osbx/mem.h>

#include "ctl_internal.h"

#define PROCESS_BYTES_MAX ((size_t)4 * LIMIT_ARGS_BYTES)
#define SEALS             (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define STDIO_N           3

static struct exec *exec_find(struct ctl *ctl, uint32_t tag)
{
	struct exec *x = ctl->execs;

	while (x && x->tag != tag) {
		x = x->next;
	}
	return x;
}

static void exec_free(struct ctl *ctl, struct exec *x)
{
	struct exec **at = &ctl->execs;

	while (*at != x) {
		at = &(*at)->next;
	}
	*at = x->next;
	if (x->client) {
		x->client->exec = NULL;
	}
	free(x);
}

/* The end of an attempt of the keeper's own. */
static void dial_end(struct ctl *ctl, struct exec *x, int fd)
{
	void (*done)(void *ctx, int fd) = x->done;
	void *ctx = x->ctx;

	exec_free(ctl, x);
	done(ctx, fd);
}

/* The end of a process, to its client if it has one. */
static void exec_end(struct ctl *ctl, struct exec *x, const struct ctl_ended *ended)
{
	struct client *c = x->client;

	if (x->done) {
		dial_end(ctl, x, -1);
		return;
	}
	exec_free(ctl, x);
	if (c) {
		client_answer(c, CTL_MSG_ENDED, ended, sizeof(*ended), -1);
	}
}

/* The whole tree, in whatever session its processes are. */
static void exec_doom(struct ctl *ctl, struct exec *x)
{
	const struct execd_tag t = { .tag = x->tag };

	x->doomed = ctl->keeper->paused ||
		    execd_send(ctl->keeper->launch->control_fd, EXECD_MSG_KILL, &t, sizeof(t), NULL,
				    0) < 0;
}

void exec_on_hangup(struct exec *x, struct ctl *ctl)
{
	x->client = NULL;
	if (!x->detached && ctl->keeper->stage == KEEPER_RUNNING) {
		exec_doom(ctl, x);
	}
}

void exec_on_resume(struct ctl *ctl)
{
	for (struct exec *x = ctl->execs; x; x = x->next) {
		if (x->doomed) {
			exec_doom(ctl, x);
		}
	}
}

void exec_on_death(struct ctl *ctl)
{
	const struct ctl_ended ended = { .status = 128 + SIGKILL, .signal = SIGKILL };

	while (ctl->execs) {
		exec_end(ctl, ctl->execs, &ended);
	}
}

int exec_on_request(struct client *c, const struct packet *p)
{
	struct ctl_signal s;

	if (p->type != CTL_MSG_EXEC_SIGNAL || p->len != sizeof(s) || p->fds_n > 0) {
		return -EPROTO;
	}
	memcpy(&s, p->payload, sizeof(s));
	if (s.signo < 1 || s.signo >= NSIG) {
		return -EPROTO;
	}
	if (!c->ctl->keeper->paused) {
		(void)keeper_kill(c->ctl->keeper, c->exec->tag, s.signo);
	}
	return 0;
}

/* A memfd that nobody can change any more: not a pipe to wait for, not a file that grows. */
static int process_read(int fd, struct execd_process *out, struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(PROCESS_BYTES_MAX);
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & SEALS) != SEALS) {
		return error_set(e, ERRC_INVALID, "description of the process is not sealed");
	}
	int r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : fd_read_all(fd, &text);

	if (r == 0) {
		r = execd_process_decode(buf_span(&text), out);
	}
	if (r < 0) {
		return error_sys(e, -r, "read the description of the process");
	}
	return out->argv.n == 0 || out->argv.v[0][0] == '\0'
			       ? error_set(e, ERRC_INVALID, "the command is an empty string")
			       : 0;
}

static int env_merge(struct execd_process *p, const struct execd_process *from)
{
	AUTO(strv) struct strv env = STRV_INIT;
	int r = strv_add_all(&env, strv_get(&from->env));

	for (size_t i = 0; i < p->env.n && r == 0; i++) {
		r = strv_env_set(&env, p->env.v[i]);
	}
	if (r < 0) {
		return r;
	}
	strv_done(&p->env);
	p->env = TAKE(env, (struct strv)STRV_INIT);
	return 0;
}

/* What the request leaves open is as with the main process. */
static int process_complete(struct execd_process *p, const struct execd_process *from)
{
	int r = env_merge(p, from);

	if (r == 0 && (!p->user || p->user[0] == '\0') && p->groups.n == 0) {
		r = strv_add_all(&p->groups, strv_get(&from->groups));
	}
	if (!p->user || p->user[0] == '\0') {
		free(p->user);
		p->user = mem_strdup(from->user);
	}
	if (!p->cwd || p->cwd[0] == '\0') {
		free(p->cwd);
		p->cwd = mem_strdup(from->cwd);
		p->cwd_create = from->cwd_create;
	}
	p->caps = from->caps;
	p->umask_bits = from->umask_bits;
	p->set_home = from->set_home;
	p->rlimits_n = from->rlimits_n;
	memcpy(p->rlimits, from->rlimits, sizeof(p->rlimits));
	return r;
}

/* The process as execd is told it. fd or -1 with *e set. */
static int process_make(const struct keeper *k, int fd, struct error *e)
{
	AUTO(execd_process) struct execd_process p = { .caps = 0 };
	AUTO(buf) struct buf text = BUF_INIT(PROCESS_BYTES_MAX);

	if (process_read(fd, &p, e) < 0) {
		return -1;
	}
	int r = process_complete(&p, k->opts.process);

	if (r == 0) {
		r = execd_process_encode(&p, &text);
	}
	if (r == 0) {
		r = fd_memfd_sealed("osbx-process", text.p, text.n, false);
	}
	return r < 0 ? error_sys(e, -r, "describe the process") : r;
}

/* A pipe's inode belongs to its maker; whoever runs inside must be able to open it anew. */
static int stdio_check(const struct keeper *k, int fd, struct error *e)
{
	const struct idmap *map = k->opts.map;
	struct stat st;

	if (fstat(fd, &st) < 0) {
		return error_sys(e, errno, "standard descriptors");
	}
	if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)) {
		return 0;
	}
	if (!S_ISFIFO(st.st_mode)) {
		return error_set(e, ERRC_INVALID, "standard descriptors are not pipes");
	}
	if (geteuid() == 0 && fchown(fd, idmap_outside(map->uids, map->uids_n, 0),
					      idmap_outside(map->gids, map->gids_n, 0)) < 0) {
		return error_sys(e, errno, "give the standard descriptors to the sandbox");
	}
	return 0;
}

static int start_send(struct keeper *k, uint32_t tag, bool tty, const int *fds, struct error *e)
{
	const struct execd_start start = { .tag = tag, .flags = tty ? EXECD_START_TTY : 0 };
	int r = execd_send(k->launch->control_fd, EXECD_MSG_START, &start, sizeof(start), fds,
			tty ? 1 : 1 + STDIO_N);

	if (r == -EAGAIN) {
		return error_set(e, ERRC_UNAVAILABLE, "the sandbox does not answer");
	}
	return r < 0 ? error_sys(e, -r, "start a process in the sandbox") : 0;
}

static uint32_t tag_new(struct ctl *ctl)
{
	do {
		ctl->last_tag++;
	} while (ctl->last_tag <= MAIN_TAG || exec_find(ctl, ctl->last_tag));
	return ctl->last_tag;
}

/* So that execd can give the process a cgroup of its own; where that fails it does without. Only
 * here: a sandbox in which nothing is started beside its main process needs none. */
static void cgroup_give(const struct keeper *k)
{
	const struct idmap *map = k->opts.map;

	(void)!cgroup_delegate(k->opts.cgroup, idmap_outside(map->uids, map->uids_n, 0),
			idmap_outside(map->gids, map->gids_n, 0));
}

/* From here on packets of this tag are for the client. */
static struct exec *exec_add(struct client *c, uint32_t tag, bool detached)
{
	struct ctl *ctl = c->ctl;
	struct exec *x = mem_new(struct exec);

	*x = (struct exec){ .tag = tag, .detached = detached, .client = c, .next = ctl->execs };
	ctl->execs = x;
	c->exec = x;
	c->stage = CLIENT_EXEC;
	return x;
}

int exec_start(struct client *c, const struct packet *p, struct error *e)
{
	struct ctl *ctl = c->ctl;
	struct ctl_exec request;

	memcpy(&request, p->payload, sizeof(request));
	bool tty = (request.flags & CTL_EXEC_TTY) != 0;

	if (p->fds_n != (tty ? 1 : 1 + STDIO_N)) {
		return error_set(e, ERRC_INVALID, "request of another form");
	}
	for (uint32_t i = 1; i < p->fds_n; i++) {
		if (stdio_check(ctl->keeper, p->fds[i], e) < 0) {
			return -1;
		}
	}
	autoclose int process_fd = process_make(ctl->keeper, p->fds[0], e);

	if (process_fd < 0) {
		return -1;
	}
	int fds[1 + STDIO_N] = { process_fd, p->fds[1], p->fds[2], p->fds[3] };
	uint32_t tag = tag_new(ctl);

	cgroup_give(ctl->keeper);
	if (start_send(ctl->keeper, tag, tty, fds, e) < 0) {
		return -1;
	}
	(void)exec_add(c, tag, (request.flags & CTL_EXEC_DETACH) != 0);
	return 0;
}

/* Tag of the attempt is in *out_tag. 0 or -errno. */
static int dial_send(struct ctl *ctl, uint32_t port, uint32_t *out_tag)
{
	const struct execd_dial d = { .tag = tag_new(ctl), .port = port };

	*out_tag = d.tag;
	return execd_send(ctl->keeper->launch->control_fd, EXECD_MSG_DIAL, &d, sizeof(d), NULL, 0);
}

int dial_start(struct client *c, const struct packet *p, struct error *e)
{
	struct ctl_dial request;
	uint32_t tag = 0;

	memcpy(&request, p->payload, sizeof(request));
	int r = dial_send(c->ctl, request.port, &tag);

	if (r == -EAGAIN) {
		return error_set(e, ERRC_UNAVAILABLE, "the sandbox does not answer");
	}
	if (r < 0) {
		return error_sys(e, -r, "connect to a port of the sandbox");
	}
	/* The attempt ends by itself, whether its client waits or not. */
	(void)exec_add(c, tag, true);
	return 0;
}

int keeper_dial(struct keeper *k, uint16_t port, void (*done)(void *ctx, int fd), void *ctx)
{
	uint32_t tag = 0;
	int r = dial_send(k->ctl, port, &tag);

	if (r < 0) {
		return r;
	}
	struct exec *x = mem_new(struct exec);

	*x = (struct exec){
		.tag = tag,
		.detached = true,
		.done = done,
		.ctx = ctx,
		.next = k->ctl->execs,
	};
	k->ctl->execs = x;
	return 0;
}

static void nobody_on_dialled(void *ctx, int fd)
{
	(void)ctx;
	fd_close(&fd);
}

void keeper_dial_forget(struct keeper *k, const void *ctx)
{
	for (struct exec *x = k->ctl->execs; x; x = x->next) {
		if (x->done && x->ctx == ctx) {
			x->done = nobody_on_dialled;
			x->ctx = NULL;
		}
	}
}

int count_start(struct client *c, const struct ctl_stats *stats, struct error *e)
{
	const struct execd_tag t = { .tag = tag_new(c->ctl) };
	int r = execd_send(
			c->ctl->keeper->launch->control_fd, EXECD_MSG_STAT, &t, sizeof(t), NULL, 0);

	if (r < 0) {
		return error_sys(e, -r, "count the processes of the sandbox");
	}
	exec_add(c, t.tag, true)->stats = *stats;
	return 0;
}

static int exec_on_started(struct exec *x, const struct packet *p)
{
	const struct execd_started *started = execd_payload(p, sizeof(*started));

	if (!started) {
		return -EPROTO;
	}
	const struct ctl_started answer = { .pid = started->pid };

	if (x->client) {
		client_answer(x->client, CTL_MSG_STARTED, &answer, sizeof(answer),
				p->fds_n == 1 ? p->fds[0] : -1);
	}
	return 0;
}

static int exec_on_failed(struct ctl *ctl, struct exec *x, const struct packet *p)
{
	const struct execd_failed *failed = execd_payload(p, sizeof(*failed));
	struct client *c = x->client;

	if (!failed || failed->error.code == ERRC_OK) {
		return -EPROTO;
	}
	if (x->done) {
		dial_end(ctl, x, -1);
		return 0;
	}
	struct error e = failed->error;

	error_sanitize(&e);
	exec_free(ctl, x);
	if (c) {
		client_fail(c, &e);
	}
	return 0;
}

static int exec_on_exited(struct ctl *ctl, struct exec *x, const struct packet *p)
{
	const struct execd_exited *exited = execd_payload(p, sizeof(*exited));

	if (!exited || exited->status < 0 || exited->status > 255) {
		return -EPROTO;
	}
	const struct ctl_ended ended = { .status = exited->status, .signal = exited->signal };

	exec_end(ctl, x, &ended);
	return 0;
}

/* Whoever has taken over PID 1 could send anything, a directory of the host's it was given, too. */
static bool is_connection(int fd)
{
	int type = 0;
	int domain = 0;
	socklen_t n = sizeof(type);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_STREAM &&
	       getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 &&
	       (domain == AF_INET || domain == AF_INET6);
}

static int exec_on_dialled(struct ctl *ctl, struct exec *x, struct packet *p)
{
	struct client *c = x->client;

	if (p->len != sizeof(struct execd_tag) || p->fds_n != 1 || !is_connection(p->fds[0])) {
		return -EPROTO;
	}
	if (x->done) {
		dial_end(ctl, x, TAKE_FD(p->fds[0]));
		return 0;
	}
	exec_free(ctl, x);
	if (c) {
		client_answer(c, CTL_MSG_DIALLED, NULL, 0, p->fds[0]);
	}
	return 0;
}

static int exec_on_counted(struct ctl *ctl, struct exec *x, const struct packet *p)
{
	const struct execd_stats *counted = execd_payload(p, sizeof(*counted));
	struct ctl_stats stats = x->stats;
	struct client *c = x->client;

	if (!counted) {
		return -EPROTO;
	}
	stats.pids = counted->processes;
	exec_free(ctl, x);
	if (c) {
		client_answer(c, CTL_MSG_STATS, &stats, sizeof(stats), -1);
	}
	return 0;
}

int ctl_on_packet(struct ctl *c, struct packet *p)
{
	uint32_t tag = 0;

	if (p->len < sizeof(tag)) {
		return -EPROTO;
	}
	memcpy(&tag, p->payload, sizeof(tag));
	struct exec *x = exec_find(c, tag);

	if (!x) {
		return -EPROTO;
	}
	switch (p->type) {
	case EXECD_MSG_STARTED:
		return exec_on_started(x, p);
	case EXECD_MSG_FAILED:
		return exec_on_failed(c, x, p);
	case EXECD_MSG_EXITED:
		return exec_on_exited(c, x, p);
	case EXECD_MSG_DIALLED:
		return exec_on_dialled(c, x, p);
	case EXECD_MSG_STATS:
		return exec_on_counted(c, x, p);
	default:
		return -EPROTO;
	}
}
