/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helpers are programs of the user's: they get his environment, a request on standard input and
 * nothing else, and are ended with all they started after 30 s. Secrets travel on pipes alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/limits.h>
#include <osbx/log.h>
#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/spawn.h>
#include <osbx/str.h>

#include "auth.h"
#include "credential.h"

#define HELPER_PREFIX   "docker-credential-"
#define HELPER_PATH     "/usr/local/bin:/usr/bin:/bin"
#define HELPER_REAP_MS  1000
#define HELPER_READ     4096
#define HELPER_SAID_MAX 120
/* What helpers print when they have nothing for a server. */
#define HELPER_NOTHING "credentials not found"

int64_t credential_helper_ms = 30000;

struct helper_call {
	const char *helper;
	char *program; /* "docker-credential-NAME" */
	char *verb;
	int64_t deadline_ms;
	int in_fd; /* read end of its standard input */
	int out_fd;
	int pidfd;
	pid_t pid;
	int status;
	struct buf answer;
};

static void helper_call_done(struct helper_call *call)
{
	int status = 0;

	if (call->pidfd >= 0) {
		/* Its group: a script's children hold the pipe too. It is not reaped yet, so the
		 * number is still its own. */
		(void)kill(-call->pid, SIGKILL);
		if (spawn_wait(call->pidfd, HELPER_REAP_MS, &status) < 0) {
			log_debug("%s is gone already", call->program);
		}
	}
	fd_close(&call->pidfd);
	fd_close(&call->in_fd);
	fd_close(&call->out_fd);
	credential_buf_done(&call->answer);
	free(call->program);
}
AUTO_DEFINE(helper_call, struct helper_call, helper_call_done);

static bool is_program(const char *path)
{
	struct stat s;

	return stat(path, &s) == 0 && S_ISREG(s.st_mode) && access(path, X_OK) == 0;
}

/* In the caller's PATH, as Docker and podman look: helpers live in home directories too. Relative
 * directories are passed over. */
static char *program_find(const char *program)
{
	const char *path = getenv("PATH");
	struct span rest = span_of(path && path[0] ? path : HELPER_PATH);
	struct span dir;

	while (span_next(&rest, ':', &dir)) {
		autofree char *candidate = mem_printf("%.*s/%s", (int)dir.n, dir.p, program);

		if (dir.n > 0 && dir.p[0] == '/' && is_program(candidate)) {
			return TAKE_PTR(candidate);
		}
	}
	return NULL;
}

/* Everything is in the pipe before the helper starts: nobody can be kept waiting by it. */
static int input_make(struct helper_call *call, struct span input)
{
	int fds[2] = { -1, -1 };
	int r = fd_pipe(fds, O_NONBLOCK);

	if (r < 0) {
		return r;
	}
	autoclose int write_fd = fds[1];

	call->in_fd = fds[0];
	/* Less is refused at once if that is what the user may have. */
	(void)fcntl(write_fd, F_SETPIPE_SZ, (int)input.n + 1);
	r = fd_write_all(write_fd, input.p, input.n);
	return r < 0 ? r : fd_set_nonblock(call->in_fd, false);
}

static int helper_start(struct helper_call *call, struct span input, struct error *e)
{
	autofree char *path = program_find(call->program);
	char *const argv[] = { call->program, call->verb, NULL };
	int out[2] = { -1, -1 };
	int r = 0;

	if (!path) {
		error_set(e, ERRC_NOT_FOUND, "credential helper %s is not in PATH", call->program);
		return error_hint(e, "install it, or take \"%s\" out of the credential file",
				call->helper);
	}
	r = input_make(call, input);
	r = r < 0 ? r : fd_pipe(out, 0);
	if (r < 0) {
		return error_sys(e, -r, "make pipes for %s", call->program);
	}
	autoclose int theirs = out[1];
	const struct spawn_opts opts = {
		.path = path,
		.argv = argv,
		.envp = environ,
		.fds = { { .from = call->in_fd, .to = STDIN_FILENO },
				{ .from = theirs, .to = STDOUT_FILENO } },
		.fds_n = 2,
		.die_with_parent = true,
		.new_session = true,
	};

	call->out_fd = out[0];
	if (spawn_start(&opts, &call->pidfd, &call->pid, e) < 0) {
		return error_wrap(e, "credential helper %s", call->program);
	}
	return 0;
}

/* 1 when more may come, 0 at the end. */
static int answer_more(struct helper_call *call, struct error *e)
{
	char bytes[HELPER_READ];
	ssize_t n = fd_read(call->out_fd, bytes, sizeof(bytes));
	int r = n > 0 ? buf_append(&call->answer, bytes, (size_t)n) : 0;

	explicit_bzero(bytes, sizeof(bytes));
	if (n < 0) {
		return error_sys(e, (int)-n, "read from %s", call->program);
	}
	if (r < 0) {
		return error_set(e, ERRC_LIMIT, "credential helper %s printed more than %zu bytes",
				call->program, call->answer.max);
	}
	return n > 0 ? 1 : 0;
}

static int timed_out(const struct helper_call *call, struct error *e)
{
	return error_set(e, ERRC_TIMEOUT, "credential helper %s gave no answer within %d s",
			call->program, (int)(credential_helper_ms / 1000));
}

static int left_ms(const struct helper_call *call)
{
	int64_t left = call->deadline_ms - clock_boot_ms();

	return left > 0 ? (int)left : 0;
}

/* Its end, not that of the pipe, is the end of the answer: something it left running may hold that
 * for ever. */
static int answer_read(struct helper_call *call, struct error *e)
{
	struct pollfd fds[] = {
		{ .fd = call->out_fd, .events = POLLIN },
		{ .fd = call->pidfd, .events = POLLIN },
	};
	int more = 1;

	while (more == 1) {
		int n = poll(fds, ARRAY_SIZE(fds), left_ms(call));

		if (n < 0 && errno != EINTR) {
			return error_sys(e, errno, "wait for %s", call->program);
		}
		if (n == 0) {
			return timed_out(call, e);
		}
		if (n > 0 && fds[0].revents != 0) {
			more = answer_more(call, e);
		} else if (n > 0) {
			more = 0;
		}
	}
	return more;
}

static int helper_run(struct helper_call *call, struct span input, struct error *e)
{
	int r = 0;

	call->deadline_ms = clock_boot_ms() + credential_helper_ms;
	call->program = mem_printf(HELPER_PREFIX "%s", call->helper);
	/* All at once, so that growing leaves no copy of a secret behind. */
	if (buf_reserve(&call->answer, call->answer.max) < 0) {
		return error_set(e, ERRC_INTERNAL, "%s: no room", call->program);
	}
	if (helper_start(call, input, e) < 0 || answer_read(call, e) < 0) {
		return -1;
	}
	r = spawn_wait(call->pidfd, left_ms(call), &call->status);
	if (r == -ETIMEDOUT) {
		return timed_out(call, e);
	}
	fd_close(&call->pidfd);
	return r < 0 ? error_sys(e, -r, "wait for %s", call->program) : 0;
}

/* Its own words, one line, unless they hold the secret. */
static int helper_failed(const struct helper_call *call, const char *secret, struct error *e)
{
	struct span rest = buf_span(&call->answer);
	struct span line = { .n = 0 };
	char said[HELPER_SAID_MAX];
	autofree char *text = NULL;

	(void)span_next(&rest, '\n', &line);
	text = span_dup(line);
	str_printable(text ? text : "", said, sizeof(said));
	if (said[0] == '\0' || (secret && strstr(buf_span(&call->answer).p, secret))) {
		return error_set(e, ERRC_UNAUTHENTICATED,
				"credential helper %s %s failed with status %d", call->program,
				call->verb, call->status);
	}
	return error_set(e, ERRC_UNAUTHENTICATED, "credential helper %s %s failed: %s",
			call->program, call->verb, said);
}

static bool has_nothing(const struct helper_call *call)
{
	return call->status != 0 && strstr(buf_span(&call->answer).p, HELPER_NOTHING);
}

#define HELPER_CALL(name, what)                                                           \
	{                                                                                 \
		.helper = (name), .verb = (what), .in_fd = -1, .out_fd = -1, .pidfd = -1, \
		.answer = BUF_INIT(LIMIT_SECRET_BYTES),                                   \
	}

static int answer_take(const struct helper_call *call, struct credential *out_c, struct error *e)
{
	struct error ignored = ERROR_INIT;
	struct json *root = json_parse(buf_span(&call->answer), &ignored);
	const char *user = json_string(json_get(root, "Username"));
	const char *secret = json_string(json_get(root, "Secret"));

	if (!user || user[0] == '\0' || !secret) {
		json_free_secret(root);
		return error_set(e, ERRC_INVALID,
				"credential helper %s printed no user name and secret",
				call->program);
	}
	credential_done(out_c);
	out_c->user = mem_strdup(user);
	if (str_eq(user, CREDENTIAL_TOKEN_USER)) {
		out_c->identity_token = mem_strdup(secret);
	} else {
		out_c->password = mem_strdup(secret);
	}
	json_free_secret(root);
	return 0;
}

int credential_helper_get(
		const char *helper, const char *server, struct credential *out_c, struct error *e)
{
	static char verb[] = "get";
	AUTO(helper_call) struct helper_call call = HELPER_CALL(helper, verb);

	if (helper_run(&call, span_of(server), e) < 0) {
		return -1;
	}
	if (has_nothing(&call)) {
		return 0;
	}
	return call.status != 0 ? helper_failed(&call, NULL, e) : answer_take(&call, out_c, e);
}

int credential_helper_store(
		const char *helper, const char *server, const struct credential *c, struct error *e)
{
	static char verb[] = "store";
	AUTO(helper_call) struct helper_call call = HELPER_CALL(helper, verb);
	AUTO(credential_buf) struct buf input = BUF_INIT(LIMIT_SECRET_BYTES);
	struct json_writer w = JSON_WRITER(&input);
	const char *secret = c->identity_token ? c->identity_token : c->password;

	if (buf_reserve(&input, input.max) < 0) {
		return error_set(e, ERRC_INTERNAL, "credentials: no room");
	}
	json_object_begin(&w, NULL);
	json_add_string(&w, "ServerURL", server);
	json_add_string(&w, "Username", c->identity_token ? CREDENTIAL_TOKEN_USER : c->user);
	json_add_string(&w, "Secret", secret);
	json_object_end(&w);
	if (w.failed) {
		return error_set(e, ERRC_LIMIT, "the secret is larger than %u bytes",
				LIMIT_SECRET_BYTES);
	}
	if (helper_run(&call, buf_span(&input), e) < 0) {
		return -1;
	}
	return call.status != 0 ? helper_failed(&call, secret, e) : 0;
}

int credential_helper_erase(const char *helper, const char *server, struct error *e)
{
	static char verb[] = "erase";
	AUTO(helper_call) struct helper_call call = HELPER_CALL(helper, verb);

	if (helper_run(&call, span_of(server), e) < 0) {
		return -1;
	}
	return call.status != 0 && !has_nothing(&call) ? helper_failed(&call, NULL, e) : 0;
}
