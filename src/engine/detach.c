/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   osbx run -d                              osbx keeper, in a session of its own
 *     request ── memfd, KEEP_FD_REQUEST ──▶    sandbox_run
 *     waits   ◀── READY {id} or FAILED ────    its main process runs, or never will
 *     ends                                     goes on by itself
 *
 * Until READY the keeper gets SIGTERM when its starter dies: nobody would know of the sandbox.
 * From then on it holds nothing of the starter: neither directory nor standard descriptors.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/json.h>
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
	KEEP_MSG_END,
};

/* The request as a sealed memfd. fd, or -1 with *e set. */
static int request_put(const struct sandbox_request *req, struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(REQUEST_BYTES_MAX);
	struct json_writer w = JSON_WRITER(&text);

	request_format(req, &w, NULL);
	if (w.failed) {
		return error_set(e, ERRC_LIMIT, "request of more than %u bytes", REQUEST_BYTES_MAX);
	}
	int fd = fd_memfd_sealed("osbx-request", text.p, text.n, false);

	return fd < 0 ? error_sys(e, -fd, "hand over the request") : fd;
}

static int answer_take(const struct packet *p, struct id *out_id, struct error *e)
{
	if (p->type == KEEP_MSG_READY && p->len == sizeof(*out_id)) {
		struct id id;

		memcpy(&id, p->payload, sizeof(id));
		id.text[ID_LEN] = '\0';
		if (id_is_valid(id.text)) {
			*out_id = id;
			return 0;
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

static int answer_wait(int sock, struct id *out_id, struct error *e)
{
	struct packet p;
	int r = packet_recv(sock, &p, -1);

	if (r < 0) {
		return error_sys(e, -r, "wait for the sandbox");
	}
	if (r == 0) {
		return error_set(e, ERRC_UNAVAILABLE, "the keeper of the sandbox was killed");
	}
	r = answer_take(&p, out_id, e);
	packet_done(&p);
	return r;
}

int sandbox_start(const struct sandbox_request *req, int err_fd, struct id *out_id, struct error *e)
{
	static char program[] = "osbx";
	static char command[] = "keeper";
	char *const argv[] = { program, command, NULL };
	autoclose int request_fd = request_put(req, e);
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
	const struct spawn_opts opts = {
		.path = spawn_self,
		.argv = argv,
		.envp = environ,
		.fds = { { request_fd, KEEP_FD_REQUEST }, { theirs, KEEP_FD_READY },
				{ err_fd, STDERR_FILENO } },
		.fds_n = err_fd < 0 ? 2 : 3,
		.new_session = true,
	};

	if (spawn_start(&opts, &pidfd, &pid, e) < 0) {
		return -1;
	}
	fd_close(&theirs);
	return answer_wait(ours, out_id, e);
}

struct keep {
	const struct sandbox_keep_opts *opts;
	int ready_fd; /* -1: told */
};

/* 0 or -errno: the starter is gone. */
static int tell(struct keep *keep, enum keep_msg type, const void *payload, uint32_t n)
{
	struct packet p;

	packet_init(&p, (uint16_t)type);
	int r = packet_put(&p, payload, n);

	if (r == 0) {
		r = packet_send(keep->ready_fd, &p);
	}
	fd_close(&keep->ready_fd);
	return r;
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
	r = tell(keep, KEEP_MSG_READY, id, sizeof(*id));
	return r < 0 ? error_sys(e, -r, "tell the starter of the sandbox") : 0;
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

static int request_take(struct sandbox_request *out_req, struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(REQUEST_BYTES_MAX);
	int r = lseek(KEEP_FD_REQUEST, 0, SEEK_SET) < 0 ? -errno
							: fd_read_all(KEEP_FD_REQUEST, &text);

	if (r < 0) {
		return error_sys(e, -r, "read the request");
	}
	AUTO(json) struct json *root = json_parse(buf_span(&text), e);

	return root ? request_parse(root, out_req, e) : -1;
}

static int keep_run(struct keep *keep, struct error *e)
{
	AUTO(request) struct sandbox_request req = { .volumes_n = 0 };
	AUTO(sandbox_end) struct sandbox_end end = { .kept = NULL };
	const struct sandbox_opts opts = {
		.in_fd = -1,
		.out_fd = -1,
		.err_fd = -1,
		.progress = keep->opts->progress,
		.on_image = keep_on_image,
		.on_running = keep_on_running,
		.ctx = keep,
	};

	/* A starter that died before is seen when it is to be told. */
	int r = sys_prctl(PR_SET_PDEATHSIG, SIGTERM);

	if (r < 0) {
		return error_sys(e, -r, "watch the starter");
	}
	return request_take(&req, e) < 0 ? -1 : sandbox_run(&req, &opts, &end, e);
}

int sandbox_keep(const struct sandbox_keep_opts *opts, struct error *e)
{
	struct keep keep = { .opts = opts, .ready_fd = KEEP_FD_READY };

	/* It was executed as /proc/self/exe. */
	(void)!sys_prctl(PR_SET_NAME, (unsigned long)"osbx-keeper");
	fds_keep_over_exec(true);
	if (keep_run(&keep, e) == 0) {
		return 0;
	}
	if (keep.ready_fd >= 0 && tell(&keep, KEEP_MSG_FAILED, e, sizeof(*e)) == 0) {
		/* Told where it can be read. */
		error_clear(e);
		return 0;
	}
	return -1;
}
