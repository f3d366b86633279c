/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include <osbx/clock.h>
#include <osbx/ctl.h>
#include <osbx/egress.h>
#include <osbx/fd.h>
#include <osbx/http_client.h>
#include <osbx/loop.h>
#include <osbx/mem.h>
#include <osbx/policy_call.h>

#define ANSWER_MS 10000

/* A socket connected to the API inside. fd or -1. */
static int dial(const struct dirs *dirs, const struct id *id, struct error *e)
{
	const struct ctl_dial request = { .port = NETD_PORT };
	autoclose int sock = ctl_connect(dirs, id, e);
	struct packet p;

	if (sock < 0 || ctl_send(sock, CTL_MSG_DIAL, &request, sizeof(request), e) < 0 ||
			ctl_expect(sock, CTL_MSG_DIALLED, &p, clock_boot_ms() + ANSWER_MS, e) < 0) {
		return -1;
	}
	int fd = p.fds_n == 1 ? TAKE_FD(p.fds[0]) : -1;

	packet_done(&p);
	if (fd < 0 || fd_set_nonblock(fd, true) < 0) {
		fd_close(&fd);
		return error_set(e, ERRC_INTERNAL, "connection to the policy of the sandbox");
	}
	return fd;
}

struct asking {
	struct loop *loop;
	struct buf *body;
	int status;
};

static void call_on_end(void *ctx, int r, const struct http_answer *a)
{
	struct asking *asking = ctx;

	asking->status = a->status;
	if (r == 0) {
		r = buf_append(asking->body, a->body.p, a->body.n);
	}
	loop_stop(asking->loop, r);
}

/* fd is taken over. 0 or -errno. */
static int call_run(int fd, const struct policy_call *call, const char *token, int *out_status,
		struct buf *out_body)
{
	AUTO(loop) struct loop *loop = loop_new();
	struct asking asking = { .loop = loop, .body = out_body };
	autofree char *fields = mem_printf(EGRESS_TOKEN ": %s\r\n", token);
	const struct http_call_opts opts = {
		.method = call->method,
		.target = call->target,
		.host = "127.0.0.1",
		.fields = fields,
		.body = call->body,
		.body_max = POLICY_ANSWER_MAX,
		.silence_ms = ANSWER_MS,
		.on_end = call_on_end,
		.ctx = &asking,
	};
	struct http_call *running = NULL;
	int r = -EMFILE;

	if (loop) {
		running = http_call_start(loop, TAKE_FD(fd), &opts);
	}
	explicit_bzero(fields, strlen(fields));
	if (running) {
		r = loop_run(loop);
	}
	fd_close(&fd);
	*out_status = asking.status;
	return r;
}

static int record_load(
		const struct dirs *dirs, const struct id *id, struct egress *g, struct error *e)
{
	if (egress_find(dirs, id, g, e) < 0) {
		if (e->code != ERRC_NOT_FOUND) {
			return -1;
		}
		error_clear(e);
		return error_set(e, ERRC_CONFLICT, "sandbox %s has no running private network",
				id->text);
	}
	return g->closed ? error_set(e, ERRC_UNAVAILABLE, "the network of sandbox %s is closed: %s",
					   id->text, g->closed)
			 : 0;
}

int policy_call(const struct dirs *dirs, const struct id *id, const struct policy_call *call,
		int *out_status, struct buf *out_body, struct error *e)
{
	AUTO(egress) struct egress g = { .closed = NULL };

	if (record_load(dirs, id, &g, e) < 0) {
		return -1;
	}
	int fd = dial(dirs, id, e);

	if (fd < 0) {
		return -1;
	}
	int r = call_run(fd, call, g.token, out_status, out_body);

	if (r == -ETIMEDOUT) {
		return error_set(e, ERRC_TIMEOUT, "the policy of sandbox %s: no answer", id->text);
	}
	return r < 0 ? error_set(e, ERRC_UNAVAILABLE, "the policy of sandbox %s: answer cut short",
				       id->text)
		     : 0;
}
