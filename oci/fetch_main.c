/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * One loop: wait for the network, the parent, and pipes that are full; take requests; move
 * exchanges; start what is due; tell the parent. The socket to the parent never blocks: answers
 * wait in a list until it takes them, progress is told when there is room and otherwise left out,
 * so a parent that is busy stops nothing and cannot be deadlocked with.
 *
 * Everything that needs rights, files or code happens before the first byte from the network
 * (confine); from then on there are sockets, the descriptors of blobs, and this loop.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/registry.h>

#include "fetch_confine.h"
#include "fetch_op.h"

#define PROGRESS_MS  50
#define WAIT_FDS_MAX (1 + 2 * LIMIT_LAYERS)
#define LOGS_MAX     64 /* waiting for the parent; more are dropped */

/* An answer that the parent has not taken yet. */
struct letter {
	struct letter *next; /* courier.first */
	struct packet p;     /* owns its descriptors */
};

struct courier {
	struct letter *first;
	unsigned int n;
	bool is_lost; /* the parent has gone */
};

static const struct sock_filter *filter_insns;
static size_t filter_n;
static struct courier courier;

void fetch_set_filter(const struct sock_filter *insns, size_t n)
{
	filter_insns = insns;
	filter_n = n;
}

static void courier_flush(void)
{
	while (courier.first) {
		struct letter *l = courier.first;
		int rc = packet_send(FETCH_CONTROL_FD, &l->p);

		if (rc == -EAGAIN) {
			return;
		}
		courier.is_lost |= rc < 0;
		courier.first = l->next;
		courier.n--;
		packet_done(&l->p);
		free(l);
	}
}

/* fd is taken over; -1: none. */
static void post(uint16_t type, const void *data, size_t n, int fd)
{
	struct letter *l = mem_new(struct letter);
	struct letter **end = &courier.first;

	packet_init(&l->p, type);
	/* All messages of ours fit. */
	if (packet_put(&l->p, data, (uint32_t)n) < 0 || (fd >= 0 && packet_put_fd(&l->p, fd) < 0)) {
		abort();
	}
	while (*end) {
		end = &(*end)->next;
	}
	*end = l;
	courier.n++;
	courier_flush();
}

static void on_log(struct fetcher *f, const char *text)
{
	(void)f;
	if (courier.n < LOGS_MAX) {
		post(FETCH_MSG_LOG, text, strnlen(text, FETCH_LOG_MAX - 1), -1);
	}
}

static struct fetch_blob_state blob_state(const struct op *op)
{
	return (struct fetch_blob_state){
		.done = op->blob.have,
		.resumed = op->blob.resumed,
		.tag = op->tag,
	};
}

static void post_blob(const struct op *op)
{
	struct fetch_blob_failure failure = { .state = blob_state(op), .error = op->error };

	if (op->error.code == ERRC_OK) {
		post(FETCH_MSG_DONE, &failure.state, sizeof(failure.state), -1);
	} else {
		post(FETCH_MSG_FAILED, &failure, sizeof(failure), -1);
	}
}

static void post_manifest(struct op *op)
{
	struct fetch_manifest_answer answer = { .digest = op->digest };
	int fd = fd_memfd_sealed("osbx-manifest", buf_span(&op->body).p, op->body.n, false);

	if (fd < 0) {
		(void)error_sys(&op->error, -fd, "%s: pass on", op->label);
		post(FETCH_MSG_REFUSED, &op->error, sizeof(op->error), -1);
		return;
	}
	memcpy(answer.type, op->type, sizeof(answer.type));
	post(FETCH_MSG_BODY, &answer, sizeof(answer), fd);
}

static void on_end(struct fetcher *f, struct op *op)
{
	(void)f;
	if (op->kind == OP_BLOB) {
		post_blob(op);
	} else if (op->error.code != ERRC_OK) {
		post(FETCH_MSG_REFUSED, &op->error, sizeof(op->error), -1);
	} else if (op->kind == OP_MANIFEST) {
		post_manifest(op);
	} else {
		post(FETCH_MSG_PONG, NULL, 0, -1);
	}
}

static int take_manifest(struct fetcher *f, struct packet *p)
{
	struct fetch_manifest_request request;

	if (p->len != sizeof(request) || p->fds_n != 0) {
		return -EBADMSG;
	}
	memcpy(&request, p->payload, sizeof(request));
	request.name[sizeof(request.name) - 1] = '\0';
	op_begin_manifest(f, request.name);
	return 0;
}

static int take_blob(struct fetcher *f, struct packet *p)
{
	struct fetch_blob_request request;

	if (p->len != sizeof(request) || p->fds_n < 1 || p->fds_n > 2) {
		return -EBADMSG;
	}
	memcpy(&request, p->payload, sizeof(request));
	op_begin_blob(f, &request, TAKE_FD(p->fds[0]), p->fds_n == 2 ? TAKE_FD(p->fds[1]) : -1);
	return 0;
}

static int take_ping(struct fetcher *f, struct packet *p)
{
	op_begin_ping(f);
	return p->len == 0 && p->fds_n == 0 ? 0 : -EBADMSG;
}

static int take_request(struct fetcher *f, struct packet *p)
{
	static const struct {
		enum fetch_msg type;
		int (*take)(struct fetcher *f, struct packet *p);
	} requests[] = {
		{ FETCH_MSG_PING, take_ping },
		{ FETCH_MSG_MANIFEST, take_manifest },
		{ FETCH_MSG_BLOB, take_blob },
	};

	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		if (requests[i].type == p->type) {
			return requests[i].take(f, p);
		}
	}
	return -EBADMSG;
}

/* 0 when there are no more for now, -errno: the parent has gone or errs. */
static int take_requests(struct fetcher *f)
{
	for (;;) {
		struct packet p = { 0 };
		int rc = packet_recv(FETCH_CONTROL_FD, &p, 0);

		if (rc == -EAGAIN || rc == -ETIMEDOUT) {
			return 0;
		}
		if (rc <= 0) {
			return rc == 0 ? -EPIPE : rc;
		}
		rc = take_request(f, &p);
		packet_done(&p);
		if (rc < 0) {
			return rc;
		}
	}
}

static void tell_progress(struct fetcher *f, int64_t now_ms)
{
	for (struct op *op = f->ops; op && !courier.first; op = op->next) {
		struct fetch_blob_state state = blob_state(op);

		if (op->kind != OP_BLOB || op->told == state.done ||
				now_ms - op->told_ms < PROGRESS_MS) {
			continue;
		}
		op->told = state.done;
		op->told_ms = now_ms;
		post(FETCH_MSG_PROGRESS, &state, sizeof(state), -1);
	}
}

static unsigned int wait_fds(struct fetcher *f, struct curl_waitfd fds[WAIT_FDS_MAX])
{
	unsigned int n = 0;

	fds[n++] = (struct curl_waitfd){
		.fd = FETCH_CONTROL_FD,
		.events = (short)(CURL_WAIT_POLLIN | (courier.first ? CURL_WAIT_POLLOUT : 0)),
	};
	for (struct op *op = f->ops; op && n < WAIT_FDS_MAX; op = op->next) {
		if (op->kind == OP_BLOB && blob_is_hungry(&op->blob)) {
			fds[n++] = (struct curl_waitfd){
				.fd = op->blob.out_fd,
				.events = CURL_WAIT_POLLOUT,
			};
		}
	}
	return n;
}

static int serve(struct fetcher *f)
{
	int wait_ms = 0;

	while (!courier.is_lost) {
		struct curl_waitfd fds[WAIT_FDS_MAX];
		int rc = 0;

		client_wait(&f->client, fds, wait_fds(f, fds), wait_ms < 0 ? INT32_MAX : wait_ms);
		courier_flush();
		rc = take_requests(f);
		if (rc < 0) {
			return rc == -EPIPE ? 0 : rc;
		}
		client_run(&f->client);
		wait_ms = ops_run(f, clock_boot_ms());
		tell_progress(f, clock_boot_ms());
	}
	return 0;
}

static int read_setup(int fd, struct fetch_setup *out_setup, struct error *e)
{
	AUTO(buf) struct buf bytes = BUF_INIT(FETCH_SETUP_BYTES_MAX);
	struct stat st = { .st_size = 0 };
	int rc = fstat(fd, &st) < 0 ? -errno : buf_reserve(&bytes, (size_t)st.st_size + 1);

	if (rc == 0) {
		ssize_t n = pread(fd, bytes.p, (size_t)st.st_size, 0);

		rc = n < 0 ? -errno : n != st.st_size ? -EBADMSG : 0;
		bytes.n = n > 0 ? (size_t)n : 0;
	}
	rc = rc < 0 ? rc : fetch_setup_read(buf_span(&bytes), out_setup);
	fetch_buf_wipe(&bytes);
	return rc < 0 ? error_sys(e, -rc, "receive setup") : 0;
}

static int take_setup(struct fetch_setup *out_setup, struct error *e)
{
	struct packet p = { 0 };
	int rc = packet_recv(FETCH_CONTROL_FD, &p, -1);

	if (rc <= 0) {
		return error_sys(e, rc < 0 ? -rc : EPIPE, "receive setup");
	}
	if (p.type != FETCH_MSG_SETUP || p.fds_n != 1) {
		packet_done(&p);
		return error_set(e, ERRC_INTERNAL, "receive setup: message %d", (int)p.type);
	}
	rc = read_setup(p.fds[0], out_setup, e);
	packet_done(&p);
	return rc;
}

static int run(struct fetcher *f, struct error *e)
{
	AUTO(fetch_setup) struct fetch_setup setup = FETCH_SETUP_INIT;
	const struct curl_lib *lib = NULL;
	int rc = 0;

	if (take_setup(&setup, e) < 0 || confine_limits(e) < 0) {
		return -1;
	}
	lib = curl_lib_load(e);
	if (!lib || fetcher_init(f, lib, &setup, e) < 0) {
		return -1;
	}
	confine_preload();
	if (confine(lib, filter_insns, filter_n, FETCH_CONTROL_FD, e) < 0) {
		return -1;
	}
	rc = fd_set_nonblock(FETCH_CONTROL_FD, true);
	rc = rc < 0 ? rc : serve(f);
	return rc < 0 ? error_sys(e, -rc, "serve") : 0;
}

int fetch_main(int argc, char **argv)
{
	static struct fetcher f = { .on_end = on_end, .on_log = on_log };
	struct error e = ERROR_INIT;
	int status = EXIT_SUCCESS;

	(void)argc;
	(void)argv;
	if (run(&f, &e) < 0) {
		post(FETCH_MSG_ERROR, &e, sizeof(e), -1);
		status = EXIT_FAILURE;
	}
	/* Handlers of libraries at exit would want what was given up. */
	_exit(status);
}
