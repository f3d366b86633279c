/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   ASKED ── STARTED ──▶ RUNNING ── ENDED ──▶ ENDED ── output delivered ─▶ end
 *     └── FAILED ─▶ end (an error)
 *
 * The pipes are made here and their other ends travel to the sandbox through its keeper; with a
 * terminal its master comes back. The keeper sees no byte of either. It kills the process and its
 * children when this end of the connection goes away, whatever ended us.
 *
 * SIGTSTP stops this process and not the one inside, whose terminal is another one.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <osbx/console.h>
#include <osbx/ctl.h>
#include <osbx/fd.h>
#include <osbx/limits.h>
#include <osbx/loop.h>
#include <osbx/mem.h>
#include <osbx/tty.h>

#define PROCESS_BYTES_MAX ((size_t)4 * LIMIT_ARGS_BYTES)
#define STDIO_N           3

enum session_stage {
	SESSION_ASKED,
	SESSION_RUNNING,
	SESSION_ENDED,
};

struct session {
	const struct exec_opts *opts;
	enum session_stage stage;
	int sock;
	struct loop *loop;
	struct console *console; /* NULL: detached */
	struct loop_source answers;
	struct loop_source signals;
	int signal_fd;
	int process_fd;
	int null_fd;
	int stdio[STDIO_N]; /* borrowed */
	sigset_t mask_before;
	bool output_done;
	int status;
	struct error error;
};

static const int taken[] = {
	SIGHUP,
	SIGINT,
	SIGQUIT,
	SIGTERM,
	SIGUSR1,
	SIGUSR2,
	SIGTSTP,
	SIGCONT,
	SIGWINCH,
	SIGPIPE,
};

static void session_fail(struct session *s, int r, const char *what)
{
	if (s->error.code == ERRC_OK) {
		(void)error_sys(&s->error, -r, "%s", what);
	}
	loop_stop(s->loop, 0);
}

static void end_when_done(struct session *s)
{
	if (s->stage == SESSION_ENDED && s->output_done) {
		loop_stop(s->loop, 0);
	}
}

static void console_on_done(void *ctx)
{
	struct session *s = ctx;

	s->output_done = true;
	end_when_done(s);
}

static void on_started(struct session *s, struct packet *p)
{
	int master_fd = -1;

	if (s->opts->tty && p->fds_n == 1) {
		master_fd = p->fds[0];
		p->fds[0] = -1;
	}
	s->stage = SESSION_RUNNING;
	fd_close(&s->null_fd);
	if (s->opts->detach) {
		fd_close(&master_fd);
		loop_stop(s->loop, 0);
	} else if (console_child_started(s->console, master_fd, &s->error) < 0) {
		loop_stop(s->loop, 0);
	}
}

static void on_ended(struct session *s, const struct packet *p)
{
	struct ctl_ended ended;

	if (p->len != sizeof(ended)) {
		session_fail(s, -EBADMSG, "answer of the keeper of the sandbox");
		return;
	}
	memcpy(&ended, p->payload, sizeof(ended));
	s->status = ended.status & 0xff;
	s->stage = SESSION_ENDED;
	loop_remove(s->loop, &s->answers);
	console_child_ended(s->console);
	end_when_done(s);
}

static void answers_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct session *s = container_of(src, struct session, answers);
	bool started = s->stage == SESSION_RUNNING;
	struct packet p;

	(void)events;
	if (ctl_expect(s->sock, started ? CTL_MSG_ENDED : CTL_MSG_STARTED, &p, -1, &s->error) < 0) {
		loop_stop(loop, 0);
		return;
	}
	if (started) {
		on_ended(s, &p);
	} else {
		on_started(s, &p);
	}
	packet_done(&p);
}

static void suspend(struct session *s)
{
	sigset_t set;

	console_suspend(s->console);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTSTP);
	(void)kill(getpid(), SIGTSTP);
	/* Here the process stops, and goes on after SIGCONT. */
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	console_resume(s->console);
}

static void forward(struct session *s, int signo)
{
	const struct ctl_signal signal_out = { .signo = signo };

	if (s->stage == SESSION_RUNNING) {
		/* What cannot be sent is seen where the answers come. */
		(void)!ctl_send(s->sock, CTL_MSG_EXEC_SIGNAL, &signal_out, sizeof(signal_out),
				&s->error);
		return;
	}
	/* Nobody is left inside to hear of it: not started yet, or ended, and its output waits for
	 * a reader here. */
	s->status = s->stage == SESSION_ENDED ? s->status : 128 + signo;
	loop_stop(s->loop, 0);
}

static void signals_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct session *s = container_of(src, struct session, signals);
	struct signalfd_siginfo si;

	(void)events;
	if (fd_read(s->signal_fd, &si, sizeof(si)) != (ssize_t)sizeof(si)) {
		return;
	}
	switch ((int)si.ssi_signo) {
	case SIGPIPE:
		return;
	case SIGWINCH:
		console_resize(s->console);
		return;
	case SIGCONT:
		console_resume(s->console);
		return;
	case SIGTSTP:
		suspend(s);
		return;
	case SIGHUP:
		/* Nobody is there any more: the end of the connection ends the process. */
		s->status = 128 + SIGHUP;
		loop_stop(loop, 0);
		return;
	default:
		forward(s, (int)si.ssi_signo);
	}
}

static int signals_start(struct session *s)
{
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(taken); i++) {
		struct sigaction sa;

		/* What the caller ignores stays ignored: nohup, a shell's background jobs. */
		if (sigaction(taken[i], NULL, &sa) < 0 || sa.sa_handler != SIG_IGN ||
				taken[i] == SIGPIPE) {
			(void)sigaddset(&set, taken[i]);
		}
	}
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signal_fd < 0 || sigprocmask(SIG_BLOCK, &set, &s->mask_before) < 0) {
		return -errno;
	}
	return loop_add(s->loop, &s->signals, s->signal_fd, EPOLLIN, signals_on_ready);
}

/* A description of the process, as the keeper completes it. fd or -errno. */
static int process_put(const struct exec_opts *opts)
{
	AUTO(execd_process) struct execd_process p = { .caps = 0 };
	AUTO(buf) struct buf text = BUF_INIT(PROCESS_BYTES_MAX);
	struct winsize ws = { .ws_row = 0 };
	int r = strv_add_all(&p.argv, strv_get(opts->argv));

	if (r == 0) {
		r = strv_add_all(&p.env, strv_get(opts->env));
	}
	p.cwd = mem_strdup(opts->cwd ? opts->cwd : "");
	p.user = mem_strdup(opts->user ? opts->user : "");
	if (opts->tty && !opts->detach &&
			(tty_size(opts->in_fd, &ws) == 0 || tty_size(opts->out_fd, &ws) == 0)) {
		p.rows = ws.ws_row;
		p.cols = ws.ws_col;
	}
	if (r == 0) {
		r = execd_process_encode(&p, &text);
	}
	return r < 0 ? r : fd_memfd_sealed("osbx-process", text.p, text.n, false);
}

static int stdio_make(struct session *s, struct error *e)
{
	const struct console_opts console = {
		.stdin_open = s->opts->interactive,
		.tty = s->opts->tty,
		.in_fd = s->opts->in_fd,
		.out_fd = s->opts->out_fd,
		.err_fd = s->opts->err_fd,
		.on_done = console_on_done,
		.ctx = s,
	};

	s->null_fd = fd_open("/dev/null", O_RDWR, 0);
	if (s->null_fd < 0) {
		return error_sys(e, -s->null_fd, "/dev/null");
	}
	if (!s->opts->detach) {
		s->console = console_new(s->loop, &console, s->stdio, e);
		if (!s->console) {
			return -1;
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(s->stdio); i++) {
		s->stdio[i] = s->stdio[i] < 0 ? s->null_fd : s->stdio[i];
	}
	return 0;
}

static int request_send(struct session *s, struct error *e)
{
	const struct ctl_exec request = {
		.flags = (s->opts->tty ? CTL_EXEC_TTY : 0) |
			 (s->opts->detach ? CTL_EXEC_DETACH : 0),
	};
	int r = process_put(s->opts);

	if (r < 0) {
		return error_sys(e, -r, "describe the process");
	}
	s->process_fd = r;
	const int fds[] = { s->process_fd, s->stdio[0], s->stdio[1], s->stdio[2] };

	return ctl_send_exec(s->sock, &request, fds, s->opts->tty ? 1 : ARRAY_SIZE(fds), e);
}

static void session_done(struct session *s)
{
	if (s->loop) {
		console_free(s->console);
		loop_free(s->loop);
	}
	fd_close(&s->sock);
	fd_close(&s->null_fd);
	fd_close(&s->process_fd);
	if (s->signal_fd >= 0) {
		struct signalfd_siginfo si;

		/* A SIGPIPE, for example, that is an errno here. */
		while (fd_read(s->signal_fd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		}
		fd_close(&s->signal_fd);
		(void)sigprocmask(SIG_SETMASK, &s->mask_before, NULL);
	}
}
AUTO_DEFINE(session, struct session, session_done);

static int session_run(struct session *s, struct error *e)
{
	s->loop = loop_new();
	if (!s->loop) {
		return error_sys(e, errno, "event loop");
	}
	int r = s->opts->detach ? 0 : signals_start(s);

	if (r == 0) {
		r = loop_add(s->loop, &s->answers, s->sock, EPOLLIN, answers_on_ready);
	}
	if (r < 0) {
		return error_sys(e, -r, "event loop");
	}
	if (stdio_make(s, e) < 0 || request_send(s, e) < 0) {
		return -1;
	}
	r = loop_run(s->loop);
	if (s->error.code != ERRC_OK) {
		*e = s->error;
		return -1;
	}
	if (r < 0) {
		return error_sys(e, -r, "event loop");
	}
	return s->console && s->stage == SESSION_ENDED ? console_check(s->console, e) : 0;
}

int sandbox_exec(const struct dirs *dirs, const struct id *id, const struct exec_opts *opts,
		int *out_status, struct error *e)
{
	AUTO(session)
	struct session s = {
		.opts = opts,
		.signal_fd = -1,
		.process_fd = -1,
		.null_fd = -1,
		.stdio = { -1, -1, -1 },
	};

	s.sock = ctl_connect(dirs, id, e);
	if (s.sock < 0 || session_run(&s, e) < 0) {
		return -1;
	}
	*out_status = s.status;
	return 0;
}
