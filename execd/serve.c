/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/packet.h>

#include "dial.h"
#include "execd.h"
#include "service.h"

static struct execd *execd_of_control(struct loop_source *src)
{
	return container_of(src, struct execd, control);
}

/* 0, or -1: the keeper speaks another language. */
static int request_start(struct execd *x, struct packet *p)
{
	struct error e = ERROR_INIT;
	const struct execd_start *start = execd_payload(p, sizeof(*start));

	if (!start || p->fds_n != ((start->flags & EXECD_START_TTY) ? 1 : 4)) {
		return -1;
	}
	if (process_start(x, start, p->fds, &e) < 0) {
		answer_failed(x, start->tag, &e);
	}
	return 0;
}

static int request_signal(struct execd *x, struct packet *p)
{
	const struct execd_signal *s = execd_payload(p, sizeof(*s));

	if (!s || p->fds_n > 0) {
		return -1;
	}
	process_signal(x, s->tag, s->signo);
	return 0;
}

static int request_kill(struct execd *x, struct packet *p)
{
	const struct execd_tag *t = execd_payload(p, sizeof(*t));

	if (!t || p->fds_n > 0) {
		return -1;
	}
	process_kill(x, t->tag);
	return 0;
}

/* Beside ourselves and the subreapers. */
static int request_stat(struct execd *x, struct packet *p)
{
	const struct execd_tag *t = execd_payload(p, sizeof(*t));
	struct error e = ERROR_INIT;

	if (!t || p->fds_n > 0) {
		return -1;
	}
	int n = proc_count(x->root_fd);

	if (n < 0) {
		(void)error_sys(&e, -n, "count the processes of the sandbox");
		answer_failed(x, t->tag, &e);
		return 0;
	}
	int own = 1 + process_reapers(x);
	const struct execd_stats stats = {
		.tag = t->tag,
		.processes = n > own ? (uint32_t)(n - own) : 0,
	};

	answer(x, EXECD_MSG_STATS, &stats, sizeof(stats), -1);
	return 0;
}

/* A connection that the keeper waits for. */
struct asked {
	struct execd *execd;
	uint32_t tag;
	struct dial *dial;
};

static void asked_on_done(void *ctx, int fd, const struct error *e)
{
	struct asked *a = ctx;
	const struct execd_tag dialled = { .tag = a->tag };

	if (fd >= 0) {
		answer(a->execd, EXECD_MSG_DIALLED, &dialled, sizeof(dialled), fd);
		fd_close(&fd);
	} else {
		answer_failed(a->execd, a->tag, e);
	}
	free(a);
}

static int request_dial(struct execd *x, struct packet *p)
{
	const struct execd_dial *d = execd_payload(p, sizeof(*d));
	struct error e = ERROR_INIT;

	if (!d || p->fds_n > 0) {
		return -1;
	}
	struct asked *a = mem_new(struct asked);
	const struct dial_opts opts = { .port = d->port, .done = asked_on_done, .ctx = a };

	*a = (struct asked){ .execd = x, .tag = d->tag };
	if (dial_start(x, &opts, &a->dial, &e) < 0) {
		answer_failed(x, d->tag, &e);
		free(a);
	}
	return 0;
}

/* Not a second one: its name in the live directory is that of the first. */
static int request_listen(struct execd *x, struct packet *p)
{
	const struct execd_listen *l = execd_payload(p, sizeof(*l));

	if (!l || p->fds_n != 1 || service_listen(x, l->flags, p->fds[0]) < 0) {
		return -1;
	}
	p->fds[0] = -1;
	return 0;
}

struct request {
	enum execd_msg type;
	int (*run)(struct execd *x, struct packet *p);
};

static const struct request requests[] = {
	{ EXECD_MSG_START, request_start },
	{ EXECD_MSG_SIGNAL, request_signal },
	{ EXECD_MSG_KILL, request_kill },
	{ EXECD_MSG_STAT, request_stat },
	{ EXECD_MSG_DIAL, request_dial },
	{ EXECD_MSG_LISTEN, request_listen },
};

static int request_run(struct execd *x, struct packet *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		if (p->type == requests[i].type) {
			return requests[i].run(x, p);
		}
	}
	return -1;
}

static void control_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct execd *x = execd_of_control(src);
	struct packet p;

	(void)events;
	int r = packet_recv(x->control_fd, &p, 0);

	if (r == -EAGAIN) {
		return;
	}
	if (r > 0) {
		r = request_run(x, &p);
		packet_done(&p);
		if (r == 0) {
			return;
		}
	}
	/* Nobody is left to serve. Our end is everybody's: the kernel kills the namespace. */
	loop_stop(loop, EXECD_STATUS_CHANNEL);
}

static void sigchld_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct execd *x = container_of(src, struct execd, sigchld);
	struct signalfd_siginfo si;
	int status = 0;

	(void)events;
	/* One signal may stand for many children: what is read says nothing. */
	ssize_t n = fd_read(x->signal_fd, &si, sizeof(si));

	assert(n == (ssize_t)sizeof(si) || n == -EAGAIN);
	if (process_reap(x, &status)) {
		loop_stop(loop, status);
	}
}

int serve_begin(struct execd *x, struct error *e)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0) {
		return error_sys(e, errno, "block SIGCHLD");
	}
	x->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	x->loop = loop_new();
	if (x->signal_fd < 0 || !x->loop) {
		return error_sys(e, errno, "make its event loop");
	}
	int r = loop_add(x->loop, &x->sigchld, x->signal_fd, EPOLLIN, sigchld_on_ready);

	if (r == 0) {
		r = loop_add(x->loop, &x->control, x->control_fd, EPOLLIN, control_on_ready);
	}
	return r < 0 ? error_sys(e, -r, "watch its channel") : 0;
}

int serve(struct execd *x)
{
	int r = loop_run(x->loop);

	return r < 0 ? EXECD_STATUS_CHANNEL : r;
}
