/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: one side is a child of the sandbox's PID 1 that is a user of the sandbox,
 * the other one is this process; a pipe with a tar stream is between them. No path of either side
 * is ever looked at by the other. What the side inside says at its end comes by another pipe.
 *
 * An error of one side breaks the stream for the other one: then the first of the two is told.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <osbx/copy.h>
#include <osbx/ctl.h>
#include <osbx/fd.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#define PROCESS_BYTES_MAX ((size_t)4 * LIMIT_PATH_BYTES)
#define CHUNK_BYTES       65536
#define PIPE_BYTES        (1 << 20)

struct side {
	const struct sandbox_copy *copy;
	bool in;       /* into the sandbox */
	int sock;      /* to the keeper */
	int stream_fd; /* our end */
	int report_fd;
	int process_fd;
	int null_fd;
	int theirs[2]; /* its ends: stream, report */
};

static void side_done(struct side *s)
{
	fd_close(&s->sock);
	fd_close(&s->stream_fd);
	fd_close(&s->report_fd);
	fd_close(&s->process_fd);
	fd_close(&s->null_fd);
	fd_close(&s->theirs[0]);
	fd_close(&s->theirs[1]);
}
AUTO_DEFINE(side, struct side, side_done);

/* What runs inside. fd or -errno. */
static int process_put(const struct side *s)
{
	AUTO(execd_process) struct execd_process p = { .copy = 1 };
	AUTO(buf) struct buf text = BUF_INIT(PROCESS_BYTES_MAX);
	const struct sandbox_copy *c = s->copy;
	const bool any = s->in && !c->outside;
	const unsigned int flags = (c->archive ? COPY_ARCHIVE : 0) | (c->follow ? COPY_FOLLOW : 0) |
				   (any ? COPY_ANY : 0);
	int r = strv_add(&p.argv, s->in ? EXECD_COPY_UNPACK : EXECD_COPY_PACK);

	if (r == 0) {
		r = strv_addf(&p.argv, "%u", flags);
	}
	if (r == 0) {
		r = strv_addf(&p.argv, "%s%s", c->inside[0] == '/' ? "" : "/", c->inside);
	}
	/* Only root can give files away. */
	p.user = mem_strdup(c->user ? c->user : c->archive && s->in ? "0:0" : "");
	p.cwd = mem_strdup("/");
	if (r == 0) {
		r = execd_process_encode(&p, &text);
	}
	return r < 0 ? r : fd_memfd_sealed("osbx-process", text.p, text.n, false);
}

static int pipes_make(struct side *s, struct error *e)
{
	int stream[2];
	int report[2];
	int r = fd_pipe(stream, 0);

	if (r < 0) {
		return error_sys(e, -r, "make a pipe");
	}
	s->stream_fd = stream[s->in ? 1 : 0];
	s->theirs[0] = stream[s->in ? 0 : 1];
	r = fd_pipe(report, 0);
	if (r < 0) {
		return error_sys(e, -r, "make a pipe");
	}
	s->report_fd = report[0];
	s->theirs[1] = report[1];
	/* As it is, where the limit of all pipes of a user is reached. */
	(void)!fcntl(s->stream_fd, F_SETPIPE_SZ, PIPE_BYTES);
	s->null_fd = fd_open("/dev/null", O_RDWR, 0);
	return s->null_fd < 0 ? error_sys(e, -s->null_fd, "/dev/null") : 0;
}

static int side_start(struct side *s, struct error *e)
{
	const struct ctl_exec request = { .flags = 0 };
	struct packet p;

	if (pipes_make(s, e) < 0) {
		return -1;
	}
	s->process_fd = process_put(s);
	if (s->process_fd < 0) {
		return error_sys(e, -s->process_fd, "describe the copy");
	}
	const int fds[] = {
		s->process_fd,
		s->in ? s->theirs[0] : s->null_fd,
		s->in ? s->null_fd : s->theirs[0],
		s->theirs[1],
	};

	if (ctl_send_exec(s->sock, &request, fds, ARRAY_SIZE(fds), e) < 0) {
		return -1;
	}
	fd_close(&s->theirs[0]);
	fd_close(&s->theirs[1]);
	if (ctl_expect(s->sock, CTL_MSG_STARTED, &p, -1, e) < 0) {
		return -1;
	}
	packet_done(&p);
	return 0;
}

/* The stream itself, to or from the caller's descriptor. */
static int pump(const struct side *s, struct copy_result *result, struct error *e)
{
	const int from = s->in ? s->copy->stream_fd : s->stream_fd;
	const int to = s->in ? s->stream_fd : s->copy->stream_fd;
	autofree char *chunk = mem_array(CHUNK_BYTES, 1);

	for (;;) {
		ssize_t n = fd_read(from, chunk, CHUNK_BYTES);

		if (n < 0) {
			result->stream = !s->in;
			return error_sys(e, (int)-n, "read the tar stream");
		}
		int r = n > 0 ? fd_write_all(to, chunk, (size_t)n) : 0;

		if (r < 0) {
			result->stream = s->in;
			return error_sys(e, -r, "write the tar stream");
		}
		if (n == 0) {
			return 0;
		}
	}
}

/* Our side, to its end. */
static int side_run(const struct side *s, struct copy_result *result, struct error *e)
{
	const struct sandbox_copy *c = s->copy;
	autofree char *cwd = NULL;
	autofree char *path = NULL;

	if (!c->outside) {
		return pump(s, result, e);
	}
	if (c->outside[0] != '/') {
		cwd = getcwd(NULL, 0);
		if (!cwd || cwd[0] != '/') {
			return error_sys(e, cwd ? ENOENT : errno, "current directory");
		}
	}
	path = mem_printf("%s%s%s", cwd ? cwd : "", cwd ? "/" : "", c->outside);
	autoclose int root_fd = fd_open("/", O_PATH | O_DIRECTORY, 0);

	if (root_fd < 0) {
		return error_sys(e, -root_fd, "/");
	}
	const struct copy_opts opts = {
		.root_fd = root_fd,
		.path = path,
		.flags = (c->archive ? COPY_ARCHIVE : 0) | (c->follow ? COPY_FOLLOW : 0) |
			 COPY_PLAIN,
		.stream_fd = s->stream_fd,
	};

	return s->in ? copy_pack(&opts, result, e) : copy_unpack(&opts, result, e);
}

/* What the other side says; its text may hold names of files of the sandbox. */
static int report_take(const struct copy_report *report, uint64_t *out_left_out, struct error *e)
{
	struct error theirs = report->error;

	*out_left_out += report->left_out;
	error_sanitize(&theirs);
	if (theirs.code == ERRC_OK) {
		return 0;
	}
	*e = theirs;
	str_printable(theirs.text, e->text, sizeof(e->text));
	str_printable(theirs.hint, e->hint, sizeof(e->hint));
	return -1;
}

/* Wait for the end inside. */
static int side_end(struct side *s, uint64_t *out_left_out, struct error *e)
{
	struct copy_report report = { .magic = 0 };
	struct ctl_ended ended;
	struct packet p;
	size_t filled = 0;
	ssize_t n = 0;

	do {
		n = fd_read(s->report_fd, (char *)&report + filled, sizeof(report) - filled);
		filled += n > 0 ? (size_t)n : 0;
	} while (n > 0 && filled < sizeof(report));
	if (filled == sizeof(report) && report.magic == COPY_REPORT_MAGIC) {
		return report_take(&report, out_left_out, e);
	}
	if (ctl_expect(s->sock, CTL_MSG_ENDED, &p, -1, e) < 0) {
		return -1;
	}
	int status = -1;

	if (p.len == sizeof(ended)) {
		memcpy(&ended, p.payload, sizeof(ended));
		status = ended.status;
	}
	packet_done(&p);
	return error_set(e, ERRC_UNAVAILABLE, "the copy in the sandbox has ended with status %d",
			status);
}

static int hint(const struct side *s, struct error *e)
{
	if ((e->sysno == EACCES || e->sysno == EPERM) && !s->copy->user && !s->copy->archive) {
		return error_hint(e, "with --user 0 it is copied as the sandbox's root");
	}
	return -1;
}

static int copy_run(struct side *s, uint64_t *out_left_out, struct error *e)
{
	struct copy_result result = { .left_out = 0 };
	struct error ours = ERROR_INIT;

	if (side_start(s, e) < 0) {
		return -1;
	}
	int r = side_run(s, &result, &ours);

	*out_left_out = result.left_out;
	if (r < 0 && !result.stream) {
		*e = ours;
		return -1; /* the end of the connection ends the other side */
	}
	fd_close(&s->stream_fd);
	if (side_end(s, out_left_out, e) < 0) {
		return hint(s, e);
	}
	if (r < 0) {
		*e = ours;
	}
	return r;
}

int sandbox_copy(const struct dirs *dirs, const struct id *id, const struct sandbox_copy *copy,
		uint64_t *out_left_out, struct error *e)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction before;
	AUTO(side)
	struct side s = {
		.copy = copy,
		.in = copy->in,
		.stream_fd = -1,
		.report_fd = -1,
		.process_fd = -1,
		.null_fd = -1,
		.theirs = { -1, -1 },
	};

	s.sock = ctl_connect(dirs, id, e);
	if (s.sock < 0) {
		return -1;
	}
	/* A side that ended early is an error to ask it about. */
	if (sigaction(SIGPIPE, &ignore, &before) < 0) {
		return error_sys(e, errno, "ignore SIGPIPE");
	}
	int r = copy_run(&s, out_left_out, e);

	(void)sigaction(SIGPIPE, &before, NULL);
	return r;
}
