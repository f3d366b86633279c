/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   NEW ── request ──▶ answered, closed
 *    │        ├──────▶ STOPPER, WAITER ── the end is recorded ──▶ answered, closed
 *    │        └──────▶ EXEC ── the process has ended ──▶ answered, closed
 *    └── no request for PATIENCE_MS ──▶ closed
 *
 * Nothing here waits for a client: sockets do not block, and whoever does not read its answers is
 * dropped. When no descriptor is left, or CLIENTS_MAX are served, connections wait in the kernel.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <osbx/clock.h>
#include <osbx/events.h>
#include <osbx/fd.h>
#include <osbx/mem.h>

#include "ctl_internal.h"
#include "publish.h"

#define CLIENTS_MAX 64
#define BACKLOG     4096
#define PATIENCE_MS 5000
#define RETRY_MS    200

static int request_stop(struct client *c, const struct packet *p, struct error *e)
{
	const struct ctl_stop *stop = (const void *)p->payload;
	struct keeper *k = c->ctl->keeper;

	if (stop->signo < 0 || stop->signo >= NSIG || stop->grace_ms < -1) {
		return error_set(e, ERRC_INVALID, "signal or time of grace");
	}
	c->stage = CLIENT_STOPPER;
	keeper_stop(k, stop->signo ? stop->signo : k->opts.stop_signal,
			stop->grace_ms < 0 ? STOP_GRACE_MS : stop->grace_ms, STATE_REASON_STOPPED);
	return 0;
}

static int request_signal(struct client *c, const struct packet *p, struct error *e)
{
	const struct ctl_signal *s = (const void *)p->payload;

	if (s->signo < 1 || s->signo >= NSIG) {
		return error_set(e, ERRC_INVALID, "signal %d", s->signo);
	}
	int r = keeper_kill(c->ctl->keeper, s->all ? 0 : MAIN_TAG, s->signo);

	if (r < 0) {
		return error_sys(e, -r, "send a signal to the sandbox");
	}
	client_answer(c, CTL_MSG_OK, NULL, 0, -1);
	return 0;
}

static int freeze_failed(int r, bool on, struct error *e)
{
	const char *what = on ? "pause" : "resume";

	if (r == -EOPNOTSUPP || r == -ENOENT) {
		(void)error_set(e, ERRC_UNSUPPORTED, "%s: the sandbox has no control group", what);
		return error_hint(e, "osbx doctor says why");
	}
	if (r == -ETIMEDOUT) {
		return error_set(e, ERRC_TIMEOUT, "%s: the kernel has not done it within a second",
				what);
	}
	return error_sys(e, -r, "%s", what);
}

static int request_pause(struct client *c, const struct packet *p, struct error *e)
{
	struct keeper *k = c->ctl->keeper;
	struct error second = ERROR_INIT;

	(void)p;
	if (keeper_go(k, SANDBOX_PAUSING, e) < 0) {
		return -1;
	}
	int r = cgroup_freeze(k->opts.cgroup, true);

	if (r < 0) {
		(void)!cgroup_freeze(k->opts.cgroup, false);
		(void)!keeper_go(k, SANDBOX_RUNNING, &second);
		return freeze_failed(r, true, e);
	}
	k->paused = true;
	if (keeper_go(k, SANDBOX_PAUSED, e) < 0) {
		return -1;
	}
	events_add(k->opts.runtime_fd, EVENT_PAUSE, k->opts.state);
	client_answer(c, CTL_MSG_OK, NULL, 0, -1);
	return 0;
}

static int request_resume(struct client *c, const struct packet *p, struct error *e)
{
	struct keeper *k = c->ctl->keeper;
	struct error second = ERROR_INIT;

	(void)p;
	if (!k->paused) {
		return error_set(e, ERRC_CONFLICT, "sandbox is not paused");
	}
	if (k->opts.state->code == SANDBOX_PAUSED && keeper_go(k, SANDBOX_RESUMING, e) < 0) {
		return -1;
	}
	int r = cgroup_freeze(k->opts.cgroup, false);

	if (r < 0) {
		(void)!keeper_go(k, SANDBOX_PAUSED, &second);
		return freeze_failed(r, false, e);
	}
	k->paused = false;
	exec_on_resume(c->ctl);
	publish_on_resume(k->opts.publish);
	if (keeper_go(k, SANDBOX_RUNNING, e) < 0) {
		return -1;
	}
	events_add(k->opts.runtime_fd, EVENT_RESUME, k->opts.state);
	client_answer(c, CTL_MSG_OK, NULL, 0, -1);
	return 0;
}

static int request_renew(struct client *c, const struct packet *p, struct error *e)
{
	const struct ctl_renew *renew = (const void *)p->payload;
	struct keeper *k = c->ctl->keeper;
	struct sandbox_state *state = k->opts.state;
	int64_t before_ms = state->expires_ms;

	if (before_ms != 0 && k->expiry.kind != LOOP_SOURCE_TIMER) {
		return error_set(e, ERRC_CONFLICT, "sandbox has expired");
	}
	if (renew->expires_ms != 0 && renew->expires_ms <= clock_wall_ms()) {
		return error_set(e, ERRC_INVALID, "new expiry is in the past");
	}
	state->expires_ms = renew->expires_ms;
	if (state_save(state, k->opts.live_fd, false, e) < 0) {
		state->expires_ms = before_ms;
		return -1;
	}
	int r = keeper_ttl_start(k);

	if (r < 0) {
		return error_sys(e, -r, "watch the clock");
	}
	events_add(k->opts.runtime_fd, EVENT_RENEW, state);
	client_answer(c, CTL_MSG_OK, NULL, 0, -1);
	return 0;
}

static int request_labels(struct client *c, const struct packet *p, struct error *e)
{
	struct keeper *k = c->ctl->keeper;
	struct sandbox_state *state = k->opts.state;
	AUTO(strv) struct strv labels = STRV_INIT;

	if (labels_take(p->fds[0], &labels, e) < 0) {
		return -1;
	}
	struct strv before = state->labels;

	state->labels = labels;
	if (state_save(state, k->opts.live_fd, false, e) < 0) {
		state->labels = before;
		return -1;
	}
	labels = before;
	client_answer(c, CTL_MSG_OK, NULL, 0, -1);
	return 0;
}

static int request_stat(struct client *c, const struct packet *p, struct error *e)
{
	struct keeper *k = c->ctl->keeper;
	struct ctl_stats stats;

	(void)p;
	stats_read(k->opts.cgroup->dir_fd, &stats);
	if (k->opts.net) {
		stats.net_denied = keeper_net_denied(k->opts.net);
	}
	/* Without a control group, or its controller, only PID 1 can count. */
	if (stats.pids == UINT64_MAX && !k->paused && k->stage == KEEPER_RUNNING) {
		return count_start(c, &stats, e);
	}
	client_answer(c, CTL_MSG_STATS, &stats, sizeof(stats), -1);
	return 0;
}

static int request_wait(struct client *c, const struct packet *p, struct error *e)
{
	(void)p;
	(void)e;
	c->stage = CLIENT_WAITER;
	return 0;
}

#define RULE_LIVE   1U /* not of one that is on its way out */
#define RULE_THAWED 2U /* not of a paused one */

struct ctl_rule {
	enum ctl_msg type;
	uint32_t n; /* bytes of the payload */
	uint32_t fds_min;
	uint32_t fds_max;
	unsigned int flags;
	int (*run)(struct client *c, const struct packet *p, struct error *e);
};

static const struct ctl_rule rules[] = {
	{ CTL_MSG_STOP, sizeof(struct ctl_stop), 0, 0, 0, request_stop },
	{ CTL_MSG_SIGNAL, sizeof(struct ctl_signal), 0, 0, RULE_LIVE | RULE_THAWED,
			request_signal },
	{ CTL_MSG_PAUSE, 0, 0, 0, RULE_LIVE | RULE_THAWED, request_pause },
	{ CTL_MSG_RESUME, 0, 0, 0, RULE_LIVE, request_resume },
	{ CTL_MSG_RENEW, sizeof(struct ctl_renew), 0, 0, RULE_LIVE, request_renew },
	{ CTL_MSG_LABELS, 0, 1, 1, RULE_LIVE, request_labels },
	{ CTL_MSG_STAT, 0, 0, 0, 0, request_stat },
	{ CTL_MSG_WAIT, 0, 0, 0, 0, request_wait },
	{ CTL_MSG_DIAL, sizeof(struct ctl_dial), 0, 0, RULE_LIVE | RULE_THAWED, dial_start },
	{ CTL_MSG_EXEC, sizeof(struct ctl_exec), 1, 4, RULE_LIVE | RULE_THAWED, exec_start },
};

static int rule_check(const struct keeper *k, const struct ctl_rule *rule, const struct packet *p,
		struct error *e)
{
	if (p->len != rule->n || p->fds_n < rule->fds_min || p->fds_n > rule->fds_max) {
		return error_set(e, ERRC_INVALID, "request of another form");
	}
	if ((rule->flags & RULE_LIVE) && (k->stopping || k->stage != KEEPER_RUNNING)) {
		return error_set(e, ERRC_CONFLICT, "sandbox is ending");
	}
	if ((rule->flags & RULE_THAWED) && k->paused) {
		(void)error_set(e, ERRC_CONFLICT, "sandbox is paused");
		return error_hint(e, "osbx resume %s", k->opts.state->id.text);
	}
	return 0;
}

static void request_run(struct client *c, const struct packet *p)
{
	struct error e = ERROR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		if (p->type != rules[i].type) {
			continue;
		}
		if (rule_check(c->ctl->keeper, &rules[i], p, &e) < 0 ||
				rules[i].run(c, p, &e) < 0) {
			client_fail(c, &e);
		}
		return;
	}
	(void)error_set(&e, ERRC_UNSUPPORTED, "request %u: not known to this keeper", p->type);
	client_fail(c, &e);
}

static void listener_resume(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct ctl *ctl = container_of(src, struct ctl, retry);

	(void)events;
	if (ctl->clients_n < CLIENTS_MAX) {
		loop_resume(loop, &ctl->listener);
	}
}

void client_close(struct client *c)
{
	struct ctl *ctl = c->ctl;
	struct client **at = &ctl->clients;

	while (*at != c) {
		at = &(*at)->next;
	}
	*at = c->next;
	ctl->clients_n--;
	loop_remove(ctl->keeper->loop, &c->src);
	loop_remove(ctl->keeper->loop, &c->patience);
	fd_close(&c->fd);
	if (c->exec) {
		exec_on_hangup(c->exec, ctl);
	}
	free(c);
	if (ctl->listener.kind == LOOP_SOURCE_FD && ctl->retry.kind == LOOP_SOURCE_NONE) {
		loop_resume(ctl->keeper->loop, &ctl->listener);
	}
}

void client_answer(struct client *c, enum ctl_msg type, const void *payload, uint32_t n, int fd)
{
	struct packet p;

	packet_init(&p, (uint16_t)type);
	/* There is room for any payload of ours. */
	int r = n > 0 ? packet_put(&p, payload, n) : 0;

	if (r == 0 && fd >= 0) {
		r = packet_put_fd(&p, fd);
	}
	if (r == 0) {
		r = packet_send(c->fd, &p);
	}
	if (r < 0 || type != CTL_MSG_STARTED) {
		client_close(c);
	}
}

void client_fail(struct client *c, const struct error *e)
{
	client_answer(c, CTL_MSG_FAILED, e, sizeof(*e), -1);
}

static void client_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct client *c = container_of(src, struct client, src);
	struct packet p;
	int r = packet_recv(c->fd, &p, 0);

	(void)events;
	if (r == -EAGAIN) {
		return;
	}
	if (r <= 0) {
		client_close(c);
		return;
	}
	loop_remove(loop, &c->patience);
	if (c->stage == CLIENT_NEW) {
		request_run(c, &p);
	} else if (c->stage != CLIENT_EXEC || exec_on_request(c, &p) < 0) {
		client_close(c);
	}
	packet_done(&p);
}

static void patience_on_end(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)loop;
	(void)events;
	client_close(container_of(src, struct client, patience));
}

static bool peer_is_owner(int fd)
{
	struct ucred cred;
	socklen_t n = sizeof(cred);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) == 0 && cred.uid == geteuid();
}

static void client_new(struct ctl *ctl, int fd)
{
	struct loop *loop = ctl->keeper->loop;
	struct client *c = mem_new(struct client);

	*c = (struct client){ .fd = fd, .ctl = ctl, .next = ctl->clients };
	ctl->clients = c;
	ctl->clients_n++;
	if (loop_add(loop, &c->src, fd, EPOLLIN, client_on_ready) < 0) {
		client_close(c);
		return;
	}
	loop_timer(loop, &c->patience, clock_boot_ms() + PATIENCE_MS, patience_on_end);
	if (ctl->clients_n >= CLIENTS_MAX) {
		loop_pause(loop, &ctl->listener);
	}
}

static void listener_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct ctl *ctl = container_of(src, struct ctl, listener);
	int fd = accept4(ctl->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (fd < 0) {
		/* No descriptor or memory left: it would be ready again at once. */
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
			loop_pause(loop, src);
			loop_timer(loop, &ctl->retry, clock_boot_ms() + RETRY_MS, listener_resume);
		}
		return;
	}
	if (!peer_is_owner(fd)) {
		fd_close(&fd);
		return;
	}
	client_new(ctl, fd);
}

/* A path of sun_path holds 108 bytes, a runtime directory may have more: through the descriptor. */
int keeper_socket(int live_fd, const char *name, int type)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	autoclose int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0) {
		return -errno;
	}
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/%s", live_fd, name);
	/* Its mode comes from that of the socket itself. */
	if (fchmod(fd, 0600) < 0 || bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0 ||
			listen(fd, BACKLOG) < 0) {
		return -errno;
	}
	return TAKE_FD(fd);
}

struct ctl *ctl_new(struct keeper *k, struct error *e)
{
	int fd = keeper_socket(k->opts.live_fd, CTL_SOCKET, SOCK_SEQPACKET);

	if (fd < 0) {
		(void)error_sys(e, -fd, "make the control socket of the sandbox");
		return NULL;
	}
	struct ctl *ctl = mem_new(struct ctl);

	*ctl = (struct ctl){ .keeper = k, .listen_fd = fd, .last_tag = MAIN_TAG };
	return ctl;
}

int ctl_begin(struct ctl *c)
{
	return loop_add(c->keeper->loop, &c->listener, c->listen_fd, EPOLLIN, listener_on_ready);
}

void ctl_on_death(struct ctl *c)
{
	exec_on_death(c);
}

void ctl_end(struct ctl *c)
{
	const struct keeper *k = c->keeper;
	const struct ctl_ended ended = {
		.status = k->status >= 0 ? k->status : 128 + SIGKILL,
		.signal = k->status >= 0 ? k->status_signal : SIGKILL,
	};

	for (struct client *next = NULL, *at = c->clients; at; at = next) {
		next = at->next;
		if (at->stage == CLIENT_WAITER) {
			client_answer(at, CTL_MSG_ENDED, &ended, sizeof(ended), -1);
		} else if (at->stage == CLIENT_STOPPER) {
			client_answer(at, CTL_MSG_OK, NULL, 0, -1);
		}
	}
}

void ctl_free(struct ctl *c)
{
	if (!c) {
		return;
	}
	for (struct client *next = NULL, *at = c->clients; at; at = next) {
		next = at->next;
		client_close(at);
	}
	exec_on_death(c);
	loop_remove(c->keeper->loop, &c->listener);
	loop_remove(c->keeper->loop, &c->retry);
	fd_close(&c->listen_fd);
	free(c);
}
