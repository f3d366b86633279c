/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   listeners ─▶ http ── admit (auth.c) ── route ──┬── worker (http_fork): engine, then the answer
 *                                                  └── proxy.c: bytes through the loop
 *
 * Sources of the loop: those of http, a signalfd, a timer that beats once a second (watchdog, lag,
 * idleness). SIGCHLD: workers, and nothing of them is looked at. SIGTERM: no more connections; what
 * is being answered is finished, for a while.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/str.h>
#include <osbx/sys.h>

#include "api_routes.h"
#include "auth.h"
#include "handlers.h"
#include "listen.h"
#include "metrics.h"
#include "notify.h"

#define BEAT_MS        1000
#define END_MS         5000
#define WAIT_MS        20000
#define CONNS_MAX      16384
#define WORKERS_MAX    256
#define KEY_FILE_BYTES (64U << 10)

struct server {
	struct api api;
	struct http_opts http;
	int signal_fd;
	struct loop_source signals;
	struct loop_source beat;
	int64_t beat_due_ms;
	int64_t watchdog_ms;
	int64_t watchdog_due_ms;
	int64_t busy_ms; /* when somebody was connected last */
	int64_t end_ms;  /* 0: not ending */
};

void api_opts_init(struct api_opts *o)
{
	*o = (struct api_opts){ .best_effort = -1, .create_wait_ms = WAIT_MS };
}

void api_opts_done(struct api_opts *o)
{
	if (!o) {
		return;
	}
	for (size_t i = 0; i < o->keys_n; i++) {
		free(o->keys[i].name);
		explicit_bzero(o->keys[i].secret, strlen(o->keys[i].secret));
		free(o->keys[i].secret);
	}
	free(o->keys);
	free(o->socket_group);
	free(o->deny_webhook);
	strv_done(&o->listen);
	strv_done(&o->host_paths);
	*o = (struct api_opts){ .keys_n = 0 };
}

void api_request_begin(struct api *api)
{
	api_count_request(api->counters);
}

struct work {
	struct api *api;
	api_work run;
};

static void work_run(struct http_req *rq, void *ctx)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct work *work = ctx;
	struct api own = *work->api;
	struct error e = ERROR_INIT;

	/* Those of a terminal or of a service manager go to all of us: the server is to end, and
	 * what is being answered with it, if it lasts. */
	(void)sigaction(SIGINT, &ignore, NULL);
	(void)sigaction(SIGTERM, &ignore, NULL);

	/* A worker has no descriptor of the server's but its connection. */
	own.dirs = (struct dirs)DIRS_INIT;
	if (dirs_open(&own.dirs, &e) < 0) {
		api_fail_error(rq, API_QUERY_FAILED, &e);
	} else {
		work->run(&own, rq);
	}
	dirs_done(&own.dirs);
}

void api_work_start(struct http_req *rq, api_work run)
{
	struct work work = { .api = api_of(rq), .run = run };
	const struct http_fork_opts opts = { .run = work_run, .ctx = &work };

	/* A failure has been answered. */
	(void)!http_fork(rq, &opts);
}

void health_get(struct http_req *rq)
{
	http_reply(rq, 200, "application/json", span_of("{\"status\":\"healthy\"}"));
}

void version_get(struct http_req *rq)
{
	http_reply(rq, 200, "application/json", span_of("{\"version\":\"" OSBX_VERSION "\"}"));
}

static void end_when_quiet(struct server *s)
{
	if (s->end_ms != 0 && (http_busy(s->api.server) == 0 || clock_boot_ms() >= s->end_ms)) {
		loop_stop(s->api.loop, 0);
	}
}

static void end_begin(struct server *s)
{
	if (s->end_ms == 0) {
		notify_send("STOPPING=1");
		http_listen_stop(s->api.server);
		s->end_ms = clock_boot_ms() + END_MS;
	}
	end_when_quiet(s);
}

static void signals_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct server *s = container_of(src, struct server, signals);
	struct signalfd_siginfo si;

	(void)loop;
	(void)events;
	while (fd_read(s->signal_fd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		if (si.ssi_signo != SIGCHLD) {
			end_begin(s);
			continue;
		}
		while (waitpid(-1, NULL, WNOHANG) > 0) {
		}
	}
}

static void watchdog_feed(struct server *s, int64_t now_ms)
{
	if (s->watchdog_ms > 0 && now_ms >= s->watchdog_due_ms) {
		notify_send("WATCHDOG=1");
		s->watchdog_due_ms = now_ms + s->watchdog_ms - BEAT_MS;
	}
}

static void beat_on_time(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct server *s = container_of(src, struct server, beat);
	int64_t now_ms = clock_boot_ms();
	int64_t idle_ms = s->api.opts->idle_exit_ms;

	(void)events;
	api_count_lag(s->api.counters, 1000 * (now_ms - s->beat_due_ms));
	watchdog_feed(s, now_ms);
	if (http_conns(s->api.server) > 0 || s->api.passages_n > 0) {
		s->busy_ms = now_ms;
	}
	if (idle_ms > 0 && now_ms - s->busy_ms >= idle_ms) {
		end_begin(s);
	}
	end_when_quiet(s);
	s->beat_due_ms = now_ms + BEAT_MS;
	loop_timer(loop, src, s->beat_due_ms, beat_on_time);
}

static int signals_take(struct server *s, struct error *e)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigset_t set;

	/* What writes by splice(2) has no other way to be told (pump.h). */
	(void)sigaction(SIGPIPE, &ignore, NULL);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0) {
		return error_sys(e, errno, "block signals");
	}
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	int r = s->signal_fd < 0 ? -errno
				 : loop_add(s->api.loop, &s->signals, s->signal_fd, EPOLLIN,
						   signals_on_ready);

	return r < 0 ? error_sys(e, -r, "take signals") : 0;
}

/* Each connection costs a descriptor. */
static void files_raise(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int parts_make(struct server *s, struct error *e)
{
	s->api.counters = api_counters_new();
	s->api.loop = loop_new();
	if (!s->api.counters || !s->api.loop) {
		return error_sys(e, errno, "make an event loop");
	}
	s->api.windows = mem_array(s->api.opts->keys_n + 1, sizeof(*s->api.windows));
	s->http = (struct http_opts){
		.routes = api_routes,
		.routes_n = api_routes_n,
		.admit = auth_admit,
		.describe = api_describe,
		.fields = api_fields,
		.conns_max = CONNS_MAX,
		.workers_max = WORKERS_MAX,
		.ctx = &s->api,
	};
	s->api.server = http_server_new(s->api.loop, &s->http);
	return s->api.server ? 0 : error_sys(e, errno, "make a server");
}

static void server_done(struct server *s)
{
	http_server_free(s->api.server);
	loop_free(s->api.loop);
	api_counters_free(s->api.counters);
	free(s->api.windows);
	fd_close(&s->signal_fd);
	dirs_done(&s->api.dirs);
}
AUTO_DEFINE(server, struct server, server_done);

int api_serve(const struct api_opts *opts, struct error *e)
{
	AUTO(server)
	struct server s = {
		.api = { .opts = opts, .dirs = DIRS_INIT },
		.signal_fd = -1,
		.busy_ms = clock_boot_ms(),
		.watchdog_ms = notify_watchdog_ms(),
	};

	files_raise();
	if (dirs_open(&s.api.dirs, e) < 0 || parts_make(&s, e) < 0 || signals_take(&s, e) < 0 ||
			listeners_start(&s.api, e) < 0) {
		return -1;
	}
	s.beat_due_ms = clock_boot_ms() + BEAT_MS;
	loop_timer(s.api.loop, &s.beat, s.beat_due_ms, beat_on_time);
	notify_send("READY=1");
	int r = loop_run(s.api.loop);

	loop_remove(s.api.loop, &s.beat);
	loop_remove(s.api.loop, &s.signals);
	return r < 0 ? error_sys(e, -r, "event loop") : 0;
}
