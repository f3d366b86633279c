/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * A session is no process: it is a directory and a text that a shell has written of its exported
 * variables ("export -p"). Each run is a new shell, which reads that text, runs the command, and at
 * its end, also at "exit", writes directory and variables anew:
 *
 *   directory NUL export-commands NUL
 *
 * into a pipe. So nothing can hang between two runs, a run that ends by "exec" or by a signal
 * leaves the session as it was, and no file is in the sandbox's tree. What comes from the pipe is
 * the workload's: bounded, and looked at only for its NULs; it is read by the next shell alone,
 * which runs as the same user.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include <osbx/fd.h>
#include <osbx/id.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/str.h>
#include <osbx/strv.h>

#include "sessions_internal.h"

#define STATE_BYTES_ALL (16U << 20) /* of all sessions */

/* Descriptors PROCESS_FD_FIRST and the next one. By name: a shell's own redirections know numbers
 * of one digit only. */
#define STATE_IN  "/proc/self/fd/97"
#define STATE_OUT "/proc/self/fd/98"

/* Up to the command one line, so that the shell counts lines as the command has them. The line
 * behind it is empty: bash drops one more when a quote of the command is left open, and would call
 * our own words an error. PWD of the state is that of the last run's end, and this run may begin
 * elsewhere. The command may have replaced the trap, set -e, -u or -x. */
const char session_script[] =
		"__osbx_t=$1; set --; __osbx_p=$PWD; "
		"if [ -s " STATE_IN " ]; then . " STATE_IN "; fi 2>/dev/null; "
		"[ \"$PWD\" = \"$__osbx_p\" ] || OLDPWD=$PWD; PWD=$__osbx_p; unset __osbx_p; "
		"__osbx_e() { [ -z \"${__osbx_o-}\" ] || return 0; __osbx_o=1; trap '' PIPE; "
		"{ printf '%s\\000' \"$PWD\"; export -p; printf '\\000'; } "
		"2>/dev/null >" STATE_OUT "; trap - PIPE; }; "
		"trap '{ __osbx_s=$?; set +ex; } 2>/dev/null; __osbx_e; exit $__osbx_s' EXIT; "
		"eval \"$__osbx_t\"\n\n"
		"{ __osbx_s=$?; set +ex; } 2>/dev/null; __osbx_e; exit $__osbx_s\n";

_Static_assert(PROCESS_FD_FIRST == 97 && PROCESS_FDS == 2, "numbers in the script");

struct session *session_find(const struct commands *t, const char *id)
{
	struct session *s = t->sessions;

	while (s && !str_eq(s->id.text, id)) {
		s = s->next;
	}
	return s;
}

static void session_free(struct commands *t, struct session *s)
{
	struct session **at = &t->sessions;

	while (*at != s) {
		at = &(*at)->next;
	}
	*at = s->next;
	t->sessions_n--;
	t->sessions_bytes -= s->state_n;
	free(s->cwd);
	free(s->wanted_cwd);
	free(s->state);
	free(s);
}

/* The one that has not been used for the longest time, without a run. */
static struct session *session_oldest(const struct commands *t)
{
	struct session *oldest = NULL;

	for (struct session *s = t->sessions; s; s = s->next) {
		if (s->runs_n == 0 && (!oldest || s->used < oldest->used)) {
			oldest = s;
		}
	}
	return oldest;
}

struct session *session_new(struct commands *t, const char *cwd)
{
	struct session *oldest = session_oldest(t);

	if (t->sessions_n >= SESSIONS_MAX) {
		if (!oldest) {
			return NULL;
		}
		session_free(t, oldest);
	}
	struct session *s = mem_new(struct session);

	id_new(&s->id);
	s->wanted_cwd = cwd && cwd[0] ? mem_strdup(cwd) : NULL;
	s->used = ++t->sessions_used;
	s->next = t->sessions;
	t->sessions = s;
	t->sessions_n++;
	return s;
}

/* Take over what a run has left; what is no state leaves the old one. */
static void session_keep(struct commands *t, struct session *s, struct span left)
{
	const char *end = left.n > 0 ? memchr(left.p, '\0', left.n) : NULL;
	size_t cwd_n = end ? (size_t)(end - left.p) : 0;
	struct span state = span_from(left, cwd_n + 1);

	if (!end || left.p[0] != '/' || cwd_n > LIMIT_PATH_BYTES || state.n == 0 ||
			memchr(state.p, '\0', state.n) != state.p + state.n - 1 ||
			t->sessions_bytes - s->state_n + state.n > STATE_BYTES_ALL) {
		return;
	}
	state.n--;
	t->sessions_bytes += state.n - s->state_n;
	free(s->cwd);
	free(s->state);
	free(TAKE_PTR(s->wanted_cwd));
	s->cwd = mem_dup(left.p, cwd_n);
	s->state = mem_dup(state.p, state.n);
	s->state_n = state.n;
}

static void run_close(struct session_run *r)
{
	loop_remove(r->table->execd->loop, &r->src);
	fd_close(&r->fd);
}

static void run_free(struct session_run *r)
{
	run_close(r);
	if (r->session) {
		r->session->runs_n--;
	}
	buf_done(&r->left);
	free(r);
}

/* Read what is there. */
static void run_read(struct session_run *r)
{
	char bytes[8192];
	ssize_t n = 0;

	while (r->fd >= 0 && (n = fd_read(r->fd, bytes, sizeof(bytes))) > 0) {
		if (buf_append(&r->left, bytes, (size_t)n) < 0) {
			buf_done(&r->left); /* too much is nothing */
			n = 0;
			break;
		}
	}
	if (r->fd >= 0 && n != -EAGAIN) {
		run_close(r);
	}
}

static void run_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)loop;
	(void)events;
	run_read(container_of(src, struct session_run, src));
}

static void run_on_end(struct command *c, void *ctx)
{
	struct session_run *r = ctx;

	(void)c;
	run_read(r);
	if (r->session) {
		session_keep(r->table, r->session, buf_span(&r->left));
	}
	run_free(r);
}

/* Descriptors of the new shell in out_fds, owned by the caller. */
static int run_open(struct session_run *r, int out_fds[2])
{
	const struct session *s = r->session;
	int ends[2];
	int fd = fd_memfd_sealed("session", s->state ? s->state : "", s->state_n, false);

	if (fd < 0) {
		return fd;
	}
	int result = fd_pipe(ends, 0);

	if (result < 0) {
		fd_close(&fd);
		return result;
	}
	out_fds[0] = fd;
	out_fds[1] = ends[1];
	r->fd = ends[0];
	result = fd_set_nonblock(r->fd, true);
	return result < 0 ? result
			  : loop_add(r->table->execd->loop, &r->src, r->fd, EPOLLIN, run_on_ready);
}

void session_start(struct http_req *rq, struct session *s, struct command_wish *w)
{
	struct commands *t = commands_of(api_execd(rq));
	struct session_run *r = mem_new(struct session_run);
	int fds[2] = { -1, -1 };

	*r = (struct session_run){
		.table = t,
		.session = s,
		.fd = -1,
		.left = BUF_INIT(SESSION_STATE_MAX),
	};
	s->runs_n++;
	s->used = ++t->sessions_used;
	w->on_end = run_on_end;
	w->ctx = r;
	int result = run_open(r, fds);

	w->more.fds[0] = fds[0];
	w->more.fds[1] = fds[1];
	w->more.fds_n = 2;
	if (result < 0) {
		api_fail(rq, 500, API_RUNTIME, "make a pipe: %s", strerror(-result));
		run_free(r);
	} else if (!command_start(rq, w)) {
		run_free(r);
	}
	fd_close(&fds[0]);
	fd_close(&fds[1]);
}

bool session_end(struct execd *x, const char *id)
{
	struct commands *t = commands_of(x);
	struct session *s = session_find(t, id);

	for (struct command *c = s ? t->list : NULL; c; c = c->next) {
		struct session_run *r = c->kind == COMMAND_SESSION ? c->ctx : NULL;

		if (r && r->session == s) {
			r->session = NULL;
			command_kill(c);
		}
	}
	if (s) {
		session_free(t, s);
	}
	return s != NULL;
}
