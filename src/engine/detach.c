/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   osbx run -d                              osbx keeper, in a session of its own
 *     request ── memfd, KEEP_FD_REQUEST ──▶    sandbox_run
 *             ◀── PENDING {id} ────────────    its image has to be pulled
 *     waits   ◀── READY {id} or FAILED ────    its main process runs, or never will
 *     ends                                     goes on by itself
 *
 * Until READY the keeper gets SIGTERM when its starter dies: nobody would know of the sandbox.
 * From then on it holds nothing of the starter: neither directory nor standard descriptors.
 *
 * A starter that does not wait for ever says so in the request (patient is false then). Its keeper
 * gets no signal: when the starter has told its own client of the pending sandbox it sends LEAVE
 * and goes, and whether it did is looked at when the pull has ended. Without LEAVE the sandbox ends
 * there and leaves nothing; with it, a failure is recorded.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/json.h>
#include <osbx/jsondec.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/packet.h>
#include <osbx/sandbox.h>
#include <osbx/spawn.h>
#include <osbx/sys.h>

#define KEEP_FD_REQUEST   3
#define KEEP_FD_READY     4
#define REQUEST_BYTES_MAX (16U << 20)

enum keep_msg {
	KEEP_MSG_READY = 192,
	KEEP_MSG_FAILED,
	KEEP_MSG_PENDING,
	KEEP_MSG_LEAVE,
	KEEP_MSG_END,
};

/* What the keeper is given, as a sealed memfd. fd, or -1 with *e set. */
static int request_put(const struct sandbox_request *req, const struct sandbox_start_opts *opts,
		struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(REQUEST_BYTES_MAX);
	struct json_writer w = JSON_WRITER(&text);

	json_object_begin(&w, NULL);
	request_format(req, &w, "request");
	json_add_bool(&w, "patient", opts->wait_ms < 0);
	if (opts->credential) {
		json_object_begin(&w, "credential");
		json_add_string(&w, "user", opts->credential->user);
		json_add_string(&w, "password", opts->credential->password);
		json_object_end(&w);
	}
	json_object_end(&w);
	if (w.failed) {
		return error_set(e, ERRC_LIMIT, "request of more than %u bytes", REQUEST_BYTES_MAX);
	}
	int fd = fd_memfd_sealed("osbx-request", text.p, text.n, false);

	if (opts->credential) {
		explicit_bzero(text.p, text.n);
	}
	return fd < 0 ? error_sys(e, -fd, "hand over the request") : fd;
}

/* 0, 1 when there is more to come, -1. */
static int answer_take(const struct packet *p, struct id *out_id, struct error *e)
{
	bool is_pending = p->type == KEEP_MSG_PENDING;

	if ((is_pending || p->type == KEEP_MSG_READY) && p->len == sizeof(*out_id)) {
		struct id id;

		memcpy(&id, p->payload, sizeof(id));
		id.text[ID_LEN] = '\0';
		if (id_is_valid(id.text)) {
			*out_id = id;
			return is_pending ? 1 : 0;
		}
	}
	if (p->type == KEEP_MSG_FAILED && p->len == sizeof(*e)) {
		memcpy(e, p->payload, sizeof(*e));
		error_sanitize(e);
		if (e->code != ERRC_OK) {
			return -1;
		}
	}
	return error_set(e, ERRC_INTERNAL, "answer of the keeper");
}

/* Its pull has not ended in time: it goes on without us. */
static int leave(int sock, struct error *e)
{
	struct packet p;

	packet_init(&p, KEEP_MSG_LEAVE);
	int r = packet_send(sock, &p);

	return r < 0 ? error_sys(e, -r, "leave the sandbox to its keeper") : 0;
}

static int answer_wait(int sock, int64_t deadline_ms, struct id *out_id, bool *out_pending,
		struct error *e)
{
	bool is_pending = false;
	int more = 1;

	while (more > 0) {
		struct packet p;
		/* What does not wait for a pull is quick: no deadline. */
		int r = packet_recv(sock, &p, is_pending ? deadline_ms : -1);

		if (r == -ETIMEDOUT) {
			*out_pending = true;
			return leave(sock, e);
		}
		if (r < 0) {
			return error_sys(e, -r, "wait for the sandbox");
		}
		if (r == 0) {
			return error_set(e, ERRC_UNAVAILABLE,
					"the keeper of the sandbox was killed");
		}
		more = answer_take(&p, out_id, e);
		packet_done(&p);
		is_pending = true;
	}
	*out_pending = false;
	return more;
}

int sandbox_start(const struct sandbox_request *req, const struct sandbox_start_opts *opts,
		struct id *out_id, bool *out_pending, struct error *e)
{
	static char program[] = "osbx";
	static char command[] = "keeper";
	char *const argv[] = { program, command, NULL };
	int64_t deadline_ms = opts->wait_ms < 0 ? -1 : clock_boot_ms() + opts->wait_ms;
	autoclose int request_fd = request_put(req, opts, e);
	int pair[2];
	pid_t pid = 0;

	if (request_fd < 0) {
		return -1;
	}
	int r = fd_seqpacket_pair(pair);

	if (r < 0) {
		return error_sys(e, -r, "make a channel to the keeper");
	}
	autoclose int ours = pair[0];
	autoclose int theirs = pair[1];
	autoclose int pidfd = -1;
	const struct spawn_opts spawn = {
		.path = spawn_self,
		.argv = argv,
		.envp = environ,
		.fds = { { request_fd, KEEP_FD_REQUEST }, { theirs, KEEP_FD_READY },
				{ opts->err_fd, STDERR_FILENO } },
		.fds_n = opts->err_fd < 0 ? 2 : 3,
		.new_session = true,
	};

	if (spawn_start(&spawn, &pidfd, &pid, e) < 0) {
		return -1;
	}
	fd_close(&theirs);
	return answer_wait(ours, deadline_ms, out_id, out_pending, e);
}

struct keep {
	const struct sandbox_keep_opts *opts;
	int ready_fd; /* -1: told */
	bool patient; /* the starter waits, or the sandbox ends */
	bool is_left; /* it has gone, and somebody knows of the sandbox */
	struct sandbox_request req;
	struct credential credential;
};

static void keep_done(struct keep *keep)
{
	request_done(&keep->req);
	credential_done(&keep->credential);
}
AUTO_DEFINE(keep, struct keep, keep_done);

/* 0 or -errno: the starter is gone. */
static int tell(const struct keep *keep, enum keep_msg type, const void *payload, uint32_t n)
{
	struct packet p;

	packet_init(&p, (uint16_t)type);
	int r = packet_put(&p, payload, n);

	return r == 0 ? packet_send(keep->ready_fd, &p) : r;
}

/* The same, finally. */
static int tell_last(struct keep *keep, enum keep_msg type, const void *payload, uint32_t n)
{
	int r = tell(keep, type, payload, n);

	fd_close(&keep->ready_fd);
	return r;
}

/* Has the starter said that it goes? */
static bool keep_is_left(struct keep *keep)
{
	struct packet p;

	if (!keep->patient && !keep->is_left && keep->ready_fd >= 0 &&
			packet_recv(keep->ready_fd, &p, 0) > 0) {
		keep->is_left = p.type == KEEP_MSG_LEAVE;
		packet_done(&p);
	}
	return keep->is_left;
}

static bool keep_is_known(void *ctx)
{
	return keep_is_left(ctx);
}

static int keep_on_pending(void *ctx, const struct id *id, struct error *e)
{
	int r = tell(ctx, KEEP_MSG_PENDING, id, sizeof(*id));

	return r < 0 ? error_sys(e, -r, "tell the starter of the sandbox") : 0;
}

static int stdio_drop(void)
{
	autoclose int null_fd = fd_open("/dev/null", O_RDWR, 0);

	for (int fd = 0; fd <= STDERR_FILENO && null_fd >= 0; fd++) {
		if (dup2(null_fd, fd) < 0) {
			return -errno;
		}
	}
	return null_fd < 0 ? null_fd : 0;
}

static int keep_on_running(void *ctx, const struct id *id, struct error *e)
{
	struct keep *keep = ctx;
	int r = sys_prctl(PR_SET_PDEATHSIG, 0);

	if (r == 0) {
		r = stdio_drop();
	}
	if (r == 0 && chdir("/") < 0) {
		r = -errno;
	}
	if (r < 0) {
		return error_sys(e, -r, "part from the starter");
	}
	bool is_left = keep_is_left(keep);

	r = tell_last(keep, KEEP_MSG_READY, id, sizeof(*id));
	return r < 0 && !is_left ? error_sys(e, -r, "tell the starter of the sandbox") : 0;
}

/* The image may be fetched by another program (program.h), which begins anew with these. */
static void fds_keep_over_exec(bool on)
{
	(void)!fd_set_cloexec(KEEP_FD_REQUEST, !on);
	(void)!fd_set_cloexec(KEEP_FD_READY, !on);
}

static void keep_on_image(void *ctx)
{
	struct keep *keep = ctx;

	fds_keep_over_exec(false);
	if (keep->opts->on_image) {
		keep->opts->on_image(keep->opts->ctx);
	}
}

static const struct jsondec_field credential_fields[] = {
	{ "user", JSONDEC_STRING, offsetof(struct credential, user), JSONDEC_REQUIRED,
			LIMIT_SECRET_BYTES, NULL, NULL },
	{ "password", JSONDEC_STRING, offsetof(struct credential, password), JSONDEC_REQUIRED,
			LIMIT_SECRET_BYTES, NULL, NULL },
	{ .name = NULL },
};

static int read_request(const struct json *v, void *out, struct error *e)
{
	return request_parse(v, out, e);
}

static const struct jsondec_field keep_fields[] = {
	{ "request", JSONDEC_CUSTOM, offsetof(struct keep, req), JSONDEC_REQUIRED, 0, NULL,
			read_request },
	{ "patient", JSONDEC_BOOL, offsetof(struct keep, patient), JSONDEC_REQUIRED, 0, NULL,
			NULL },
	{ "credential", JSONDEC_OBJECT, offsetof(struct keep, credential), 0, 0, credential_fields,
			NULL },
	{ .name = NULL },
};

static int keep_take(struct keep *keep, struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(REQUEST_BYTES_MAX);
	int r = lseek(KEEP_FD_REQUEST, 0, SEEK_SET) < 0 ? -errno
							: fd_read_all(KEEP_FD_REQUEST, &text);

	if (r < 0) {
		return error_sys(e, -r, "read the request");
	}
	struct json *root = json_parse(buf_span(&text), e);

	r = root ? jsondec_object(root, keep_fields, keep, e) : -1;
	json_free_secret(root);
	explicit_bzero(text.p, text.n);
	return r;
}

static int keep_run(struct keep *keep, struct error *e)
{
	AUTO(sandbox_end) struct sandbox_end end = { .kept = NULL };

	/* A starter that died before is seen when it is to be told. */
	int r = sys_prctl(PR_SET_PDEATHSIG, SIGTERM);

	if (r < 0) {
		return error_sys(e, -r, "watch the starter");
	}
	if (keep_take(keep, e) < 0) {
		return -1;
	}
	const struct sandbox_opts opts = {
		.in_fd = -1,
		.out_fd = -1,
		.err_fd = -1,
		.progress = keep->opts->progress,
		.on_image = keep_on_image,
		.on_running = keep_on_running,
		.on_pending = keep->patient ? NULL : keep_on_pending,
		.is_known = keep_is_known,
		.credential = keep->credential.user ? &keep->credential : NULL,
		.ctx = keep,
	};

	r = keep->patient ? 0 : sys_prctl(PR_SET_PDEATHSIG, 0);
	return r < 0 ? error_sys(e, -r, "part from the starter")
		     : sandbox_run(&keep->req, &opts, &end, e);
}

int sandbox_keep(const struct sandbox_keep_opts *opts, struct error *e)
{
	AUTO(keep) struct keep keep = { .opts = opts, .ready_fd = KEEP_FD_READY };

	/* It was executed as /proc/self/exe. */
	(void)!sys_prctl(PR_SET_NAME, (unsigned long)"osbx-keeper");
	fds_keep_over_exec(true);
	if (keep_run(&keep, e) == 0) {
		return 0;
	}
	if (keep.ready_fd >= 0 && tell_last(&keep, KEEP_MSG_FAILED, e, sizeof(*e)) == 0) {
		/* Told where it can be read. */
		error_clear(e);
		return 0;
	}
	return -1;
}
