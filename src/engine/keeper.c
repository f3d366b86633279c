/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   NEW ── START is sent ──▶ QUEUED ── execd is up ──▶ STARTING
 *   STARTING ── STARTED ──▶ RUNNING ── EXITED ──▶ EXITED ── PID 1 dead ──▶ DEAD ── output
 *      │                       │                                            ▲      delivered ─▶ end
 *      │                       └──────────── PID 1 dead (killed) ───────────┤
 *      ├── FAILED ─▶ end, with execd's error                                │
 *      └── PID 1 dead ──────────────────────────────────────────────────────┘ (an error)
 *
 * Sources of the loop: execd's control channel, the pidfd of PID 1, a signalfd, timers, those of
 * the console or of the log, and the control socket with its clients. The pidfd may be ready before
 * the last packets were read: it reads them first.
 *
 * Signals are blocked from before the launch on, so that none is lost and none ends this process
 * past the place where the terminal is restored. What comes early stands in the signalfd, and goes
 * to the main process behind START on the same channel. TTIN and TTOU keep their effect: a job in
 * the background stops. A terminal's Ctrl-C reaches this process only (PID 1 has a session of its
 * own), so it is forwarded once.
 *
 * The end has one ladder (keeper_stop), whoever asks for it: a signal to the main process, a time
 * of grace, the death of PID 1. A frozen sandbox would not see the signal; it is killed at once.
 * After it, output that nobody takes is given up.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <osbx/clock.h>
#include <osbx/events.h>
#include <osbx/fd.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/sys.h>
#include <osbx/tty.h>

#include "keeper_internal.h"
#include "publish.h"

/* argv, env and groups, each with its length. */
#define PROCESS_BYTES_MAX ((size_t)4 * LIMIT_ARGS_BYTES)

static void fail_sys(struct keeper *k, int r, const char *what)
{
	if (k->error.code == ERRC_OK) {
		(void)error_sys(&k->error, -r, "%s", what);
	}
	loop_stop(k->loop, 0);
}

int keeper_kill(struct keeper *k, uint32_t tag, int signo)
{
	const struct execd_signal s = { .tag = tag, .signo = signo };

	/* A full channel is that of a frozen sandbox, a closed one that of a dead: the signal is
	 * as lost as it would be for a process. */
	return execd_send(k->launch->control_fd, EXECD_MSG_SIGNAL, &s, sizeof(s), NULL, 0);
}

static void kill_all(struct keeper *k)
{
	k->killed = true;
	(void)!sys_pidfd_kill(k->launch->pidfd, SIGKILL);
}

static void grace_on_end(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)loop;
	(void)events;
	kill_all(container_of(src, struct keeper, grace));
}

int keeper_go(struct keeper *k, enum sandbox_state_code to, struct error *e)
{
	struct sandbox_state *state = k->opts.state;
	enum sandbox_state_code before = state->code;

	state_go(state, to);
	if (state_save(state, k->opts.live_fd, false, e) < 0) {
		state->code = before;
		return -1;
	}
	return 0;
}

void keeper_stop(struct keeper *k, int signo, int64_t grace_ms, const char *reason)
{
	int64_t end_ms = clock_boot_ms() + grace_ms;
	struct error e = ERROR_INIT;

	if (k->stage >= KEEPER_EXITED) {
		return;
	}
	if (!k->stopping) {
		k->stopping = true;
		k->reason = reason;
		k->grace_end_ms = INT64_MAX;
		/* A record that cannot be written keeps nobody alive. */
		if (k->opts.state && state_may_go(k->opts.state->code, SANDBOX_STOPPING)) {
			free(k->opts.state->reason);
			k->opts.state->reason = mem_strdup(reason);
			(void)!keeper_go(k, SANDBOX_STOPPING, &e);
			events_add(k->opts.runtime_fd, EVENT_STOP, k->opts.state);
		}
		loop_remove(k->loop, &k->expiry);
		if (!k->paused) {
			(void)keeper_kill(k, MAIN_TAG, signo);
		}
	}
	if (k->paused || grace_ms <= 0) {
		kill_all(k);
	} else if (end_ms < k->grace_end_ms) {
		k->grace_end_ms = end_ms;
		loop_timer(k->loop, &k->grace, end_ms, grace_on_end);
	}
}

static void stop_when_done(struct keeper *k)
{
	if (k->stage == KEEPER_DEAD && k->output_done && publish_is_idle(k->opts.publish)) {
		loop_stop(k->loop, 0);
	}
}

void keeper_on_unpublished(struct keeper *k)
{
	stop_when_done(k);
}

/* PID 1 takes a while to die: its namespaces end with it. */
static void quiet_tell(const struct keeper *k)
{
	if (k->stage == KEEPER_EXITED && k->alone && k->output_done && k->opts.on_quiet) {
		k->opts.on_quiet(k->opts.ctx);
	}
}

static void output_on_done(void *ctx)
{
	struct keeper *k = ctx;

	k->output_done = true;
	quiet_tell(k);
	stop_when_done(k);
}

static void output_on_late(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)loop;
	(void)events;
	console_drop(container_of(src, struct keeper, grace)->console);
}

static void output_limit(struct keeper *k)
{
	if (k->console) {
		loop_timer(k->loop, &k->grace, clock_boot_ms() + OUTPUT_GRACE_MS, output_on_late);
	}
}

void keeper_ask(struct keeper *k)
{
	if (k->stage == KEEPER_DEAD && k->asked && k->console) {
		console_drop(k->console);
	} else if (k->stage == KEEPER_DEAD) {
		output_limit(k);
	}
	k->asked = true;
}

static int output_start(struct keeper *k, int master_fd)
{
	return k->pump ? logpump_child_started(k->pump, master_fd, &k->error)
		       : console_child_started(k->console, master_fd, &k->error);
}

static void on_started(struct keeper *k, struct packet *p)
{
	int master_fd = -1;

	if (k->opts.tty && p->fds_n == 1) {
		master_fd = p->fds[0];
		p->fds[0] = -1;
	}
	k->stage = KEEPER_RUNNING;
	fd_close(&k->null_fd);
	/* On failure the error is pending. */
	if (output_start(k, master_fd) < 0 ||
			(k->opts.on_started && k->opts.on_started(k->opts.ctx, &k->error) < 0)) {
		loop_stop(k->loop, 0);
		return;
	}
	int r = keeper_ttl_start(k);

	if (r == 0 && k->ctl) {
		r = ctl_begin(k->ctl);
	}
	if (r == 0 && k->opts.publish) {
		r = publish_begin(k->opts.publish, k);
	}
	if (r < 0) {
		fail_sys(k, r, "watch the sandbox");
	}
}

static void on_failed(struct keeper *k, const struct packet *p)
{
	const struct execd_failed *failed = execd_payload(p, sizeof(*failed));

	if (!failed || failed->error.code == ERRC_OK) {
		fail_sys(k, -EBADMSG, "answer of the sandbox");
		return;
	}
	k->error = failed->error;
	error_sanitize(&k->error);
	loop_stop(k->loop, 0);
}

static void on_exited(struct keeper *k, const struct packet *p)
{
	const struct execd_exited *exited = execd_payload(p, sizeof(*exited));

	if (!exited || exited->status < 0 || exited->status > 255) {
		fail_sys(k, -EBADMSG, "answer of the sandbox");
		return;
	}
	k->status = exited->status;
	k->status_signal = exited->signal;
	k->stage = KEEPER_EXITED;
	k->alone = exited->alone != 0;
	/* It ends while PID 1 does. */
	keeper_net_stop(k->opts.net);
	if (k->opts.on_exited) {
		k->opts.on_exited(k->opts.ctx);
	}
	quiet_tell(k);
}

/* Every answer begins with the tag of its process. */
static uint32_t tag_of(const struct packet *p)
{
	uint32_t tag = 0;

	if (p->len >= sizeof(tag)) {
		memcpy(&tag, p->payload, sizeof(tag));
	}
	return tag;
}

/* Which message may come in which stage. */
static void packet_run(struct keeper *k, struct packet *p)
{
	if (tag_of(p) != MAIN_TAG) {
		int r = k->ctl ? ctl_on_packet(k->ctl, p) : -EPROTO;

		if (r < 0) {
			fail_sys(k, r, "message of the sandbox");
		}
	} else if (p->type == EXECD_MSG_STARTED && k->stage == KEEPER_STARTING) {
		on_started(k, p);
	} else if (p->type == EXECD_MSG_FAILED && k->stage == KEEPER_STARTING) {
		on_failed(k, p);
	} else if (p->type == EXECD_MSG_EXITED && k->stage == KEEPER_RUNNING) {
		on_exited(k, p);
	} else {
		fail_sys(k, -EPROTO, "message of the sandbox");
	}
}

/* Read what is there. False at the end of the channel. */
static bool control_read(struct keeper *k)
{
	struct packet p;

	while (k->error.code == ERRC_OK) {
		int r = packet_recv(k->launch->control_fd, &p, 0);

		if (r <= 0) {
			return r == -EAGAIN;
		}
		packet_run(k, &p);
		packet_done(&p);
	}
	return true;
}

static void control_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct keeper *k = container_of(src, struct keeper, control);

	(void)events;
	if (!control_read(k)) {
		loop_remove(loop, src);
	}
}

/* PID 1 is dead, and with it every process of its namespace. */
static void pidfd_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct keeper *k = container_of(src, struct keeper, pidfd);

	(void)events;
	loop_remove(loop, src);
	(void)control_read(k);
	if (k->error.code != ERRC_OK) {
		return;
	}
	if (k->stage == KEEPER_STARTING && !k->killed) {
		(void)error_set(&k->error, ERRC_INTERNAL,
				"the sandbox ended before its command ran");
		loop_stop(loop, 0);
		return;
	}
	bool had_output = k->stage != KEEPER_STARTING;

	k->stage = KEEPER_DEAD;
	keeper_ttl_stop(k);
	keeper_net_stop(k->opts.net);
	loop_remove(k->loop, &k->expiry);
	loop_remove(k->loop, &k->grace);
	if (k->ctl) {
		ctl_on_death(k->ctl);
	}
	publish_on_death(k->opts.publish);
	if (had_output && k->pump) {
		logpump_child_ended(k->pump);
	} else if (had_output) {
		console_child_ended(k->console);
		if (k->asked || k->stopping || k->killed) {
			output_limit(k);
		}
	} else {
		k->output_done = true;
	}
	stop_when_done(k);
}

/* The size is there before the first byte of the workload. */
static void size_copy(const struct keeper_opts *opts)
{
	struct winsize ws;

	if (tty_size(opts->in_fd, &ws) == 0 || tty_size(opts->out_fd, &ws) == 0) {
		opts->process->rows = ws.ws_row;
		opts->process->cols = ws.ws_col;
	}
}

static int process_encode(struct keeper *k, struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(PROCESS_BYTES_MAX);

	if (k->opts.tty && k->opts.detached) {
		/* Nobody looks: what terminals have been ever since. */
		k->opts.process->rows = 24;
		k->opts.process->cols = 80;
	} else if (k->opts.tty) {
		size_copy(&k->opts);
	}
	int r = execd_process_encode(k->opts.process, &text);

	if (r == 0) {
		r = fd_memfd_sealed("osbx-process", text.p, text.n, false);
	}
	if (r < 0) {
		return error_sys(e, -r, "describe the main process");
	}
	k->process_fd = r;
	return 0;
}

/* The inode of a pipe belongs to its maker. Root's has no id inside, and nobody there could open
 * /dev/stdout: it goes to container root, which may hand it on. */
static int pipes_give(const struct keeper *k)
{
	if (geteuid() != 0) {
		return 0;
	}
	uid_t uid = idmap_outside(k->opts.map->uids, k->opts.map->uids_n, 0);
	gid_t gid = idmap_outside(k->opts.map->gids, k->opts.map->gids_n, 0);

	for (size_t i = 0; i < ARRAY_SIZE(k->stdio); i++) {
		if (k->stdio[i] >= 0 && fchown(k->stdio[i], uid, gid) < 0) {
			return -errno;
		}
	}
	return 0;
}

static int output_make(struct keeper *k, struct error *e)
{
	const struct console_opts console = {
		.stdin_open = k->opts.interactive,
		.tty = k->opts.tty,
		.in_fd = k->opts.in_fd,
		.out_fd = k->opts.out_fd,
		.err_fd = k->opts.err_fd,
		.on_done = output_on_done,
		.ctx = k,
	};
	const struct logpump_opts pump = {
		.tty = k->opts.tty,
		.dir_fd = k->opts.live_fd,
		.on_done = output_on_done,
		.ctx = k,
	};

	if (k->opts.detached) {
		k->pump = logpump_new(k->loop, &pump, k->stdio, e);
		return k->pump ? 0 : -1;
	}
	k->console = console_new(k->loop, &console, k->stdio, e);
	return k->console ? 0 : -1;
}

static int stdio_make(struct keeper *k, struct error *e)
{
	if (output_make(k, e) < 0) {
		return -1;
	}
	if (k->opts.tty) {
		return 0;
	}
	int r = pipes_give(k);

	if (r < 0) {
		return error_sys(e, -r, "give the standard descriptors to the sandbox");
	}
	if (k->stdio[0] < 0) {
		k->null_fd = fd_open("/dev/null", O_RDONLY, 0);
		k->stdio[0] = k->null_fd;
	}
	return k->stdio[0] < 0 ? error_sys(e, -k->stdio[0], "/dev/null") : 0;
}

struct keeper *keeper_new(const struct keeper_opts *opts, struct error *e)
{
	AUTO(keeper) struct keeper *k = mem_new(struct keeper);

	k->opts = *opts;
	k->reason = STATE_REASON_EXITED;
	k->signal_fd = -1;
	k->jump_fd = -1;
	k->process_fd = -1;
	k->null_fd = -1;
	k->api_fd = -1;
	k->status = -1;
	for (size_t i = 0; i < ARRAY_SIZE(k->stdio); i++) {
		k->stdio[i] = -1;
	}
	k->loop = loop_new();
	if (!k->loop) {
		(void)error_sys(e, errno, "event loop");
		return NULL;
	}
	int r = keeper_signals_start(k);

	if (r < 0) {
		(void)error_sys(e, -r, "take signals");
		return NULL;
	}
	if (process_encode(k, e) < 0 || stdio_make(k, e) < 0) {
		return NULL;
	}
	if (opts->state) {
		k->ctl = ctl_new(k, e);
		if (!k->ctl) {
			return NULL;
		}
		k->api_fd = keeper_socket(opts->live_fd, EXECD_SOCKET, SOCK_STREAM);
		if (k->api_fd < 0) {
			(void)error_sys(e, -k->api_fd, "make the socket of the execution API");
			return NULL;
		}
	}
	return TAKE_PTR(k);
}

void keeper_free(struct keeper *k)
{
	if (!k) {
		return;
	}
	publish_end(k->opts.publish);
	ctl_free(k->ctl);
	keeper_ttl_stop(k);
	keeper_net_stop(k->opts.net);
	console_free(k->console);
	logpump_free(k->pump);
	loop_free(k->loop);
	fd_close(&k->null_fd);
	fd_close(&k->process_fd);
	fd_close(&k->api_fd);
	keeper_signals_stop(k);
	free(k);
}

/* PID 1 alone holds the listener then: whoever connects after its end is refused. */
static int listener_send(struct keeper *k, int control_fd)
{
	const struct execd_listen request = {
		.flags = k->opts.own_network ? EXECD_LISTEN_INSIDE : 0,
	};

	if (k->api_fd < 0) {
		return 0;
	}
	int r = execd_send(control_fd, EXECD_MSG_LISTEN, &request, sizeof(request), &k->api_fd, 1);

	fd_close(&k->api_fd);
	return r;
}

int keeper_queue(struct keeper *k, int control_fd, struct error *e)
{
	const struct execd_start start = {
		.tag = MAIN_TAG,
		.flags = EXECD_START_MAIN | (k->opts.tty ? EXECD_START_TTY : 0),
	};
	const int fds[] = { k->process_fd, k->stdio[0], k->stdio[1], k->stdio[2] };

	assert(k->stage == KEEPER_NEW);
	/* In this order: what the main process finds at its port inside is PID 1. */
	int r = listener_send(k, control_fd);

	if (r == 0) {
		r = execd_send(control_fd, EXECD_MSG_START, &start, sizeof(start), fds,
				k->opts.tty ? 1 : ARRAY_SIZE(fds));
	}
	if (r < 0) {
		return error_sys(e, -r, "start the main process");
	}
	k->stage = KEEPER_QUEUED;
	return 0;
}

int keeper_start(struct keeper *k, const struct launch *launch, struct error *e)
{
	assert(k->stage == KEEPER_QUEUED);
	k->launch = launch;
	/* From here on nothing may wait for execd, which may be frozen. */
	int r = fd_set_nonblock(launch->control_fd, true);

	if (r == 0) {
		r = loop_add(k->loop, &k->control, launch->control_fd, EPOLLIN, control_on_ready);
	}
	if (r == 0) {
		r = loop_add(k->loop, &k->pidfd, launch->pidfd, EPOLLIN, pidfd_on_ready);
	}
	if (r == 0 && k->opts.net) {
		r = keeper_net_start(k->opts.net, k->loop);
	}
	if (r < 0) {
		return error_sys(e, -r, "watch the sandbox");
	}
	k->stage = KEEPER_STARTING;
	return 0;
}

int keeper_run(struct keeper *k, int *out_status, struct error *e)
{
	assert(k->stage == KEEPER_STARTING);

	int r = loop_run(k->loop);

	if (k->error.code != ERRC_OK) {
		*e = k->error;
		return -1;
	}
	if (r < 0) {
		return error_sys(e, -r, "event loop");
	}
	assert(k->stage == KEEPER_DEAD);
	if (k->status < 0 && !k->killed) {
		/* Nothing but a SIGKILL from outside, or the kernel short of memory, ends PID 1. */
		(void)error_set(e, ERRC_UNAVAILABLE, "PID 1 of the sandbox was killed");
		return error_hint(e, "out of memory? dmesg names what the kernel killed");
	}
	if (k->console && console_check(k->console, e) < 0) {
		return -1;
	}
	*out_status = keeper_status(k);
	return 0;
}

int keeper_status(const struct keeper *k)
{
	return k->status >= 0 ? k->status : 128 + SIGKILL;
}

const char *keeper_reason(const struct keeper *k)
{
	return k->reason;
}

void keeper_end(struct keeper *k)
{
	if (k->ctl) {
		ctl_end(k->ctl);
	}
}
