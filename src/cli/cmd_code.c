/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/str.h>
#include <osbx/tty.h>

#include "cli.h"
#include "code.h"
#include "sandboxes.h"

#define LINES_BYTES 4096

struct code_args {
	const char *lang;
	const char *code;
	const char *context;
	const char *out;
	int64_t timeout_ms;
	bool interactive;
	bool is_new;
};

static int parse_timeout(void *out, const char *value, struct error *e)
{
	struct code_args *args = out;

	if (str_to_duration(value, &args->timeout_ms) < 0 || args->timeout_ms == 0) {
		return error_set(e, ERRC_INVALID, "%s: not a duration such as 30s", value);
	}
	return 0;
}

#define ARG(member) offsetof(struct code_args, member)

static const struct args_option code_options[] = {
	{ "code", 'c', ARGS_STRING, ARG(code), "CODE", "run this instead of a file", NULL },
	{ "context", 0, ARGS_STRING, ARG(context), "ID", "run in this context", NULL },
	{ "interactive", 'i', ARGS_FLAG, ARG(interactive), NULL,
			"read pieces of code from standard input, and run each", NULL },
	{ "lang", 'l', ARGS_STRING, ARG(lang), "LANGUAGE", "language, instead of python", NULL },
	{ "new", 0, ARGS_FLAG, ARG(is_new), NULL,
			"run in a new context, which is deleted afterwards", NULL },
	{ "out", 'o', ARGS_STRING, ARG(out), "DIR", "save images of results as files", NULL },
	{ "timeout", 't', ARGS_CALLBACK, 0, "DURATION", "interrupt a run after so long",
			parse_timeout },
	{ .name = NULL },
};

static int args_check(const struct code_args *a, char *const *operands, struct error *e)
{
	bool has_file = operands[1] != NULL;

	if (a->code && (has_file || a->interactive)) {
		return error_set(e, ERRC_INVALID, "option --code: with --interactive or a file");
	}
	if (a->interactive && has_file) {
		return error_set(e, ERRC_INVALID, "option --interactive: with a file");
	}
	if (a->context && (a->is_new || a->lang)) {
		return error_set(e, ERRC_INVALID, "option --context: with --new or --lang");
	}
	return 0;
}

/* The code of a run that is not interactive; caller frees. NULL: error. */
static char *code_read(const struct code_args *a, const char *file, struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(CODE_TEXT_MAX);
	bool is_stdin = !file || str_eq(file, "-");
	autoclose int opened = is_stdin ? -1 : fd_open(file, O_RDONLY, 0);

	if (a->code) {
		return mem_strdup(a->code);
	}
	if (!is_stdin && opened < 0) {
		(void)error_sys(e, -opened, "open %s", file);
		return NULL;
	}
	int r = fd_read_all(is_stdin ? STDIN_FILENO : opened, &text);

	if (r == -EMSGSIZE) {
		(void)error_set(e, ERRC_LIMIT, "%s: more than %u MiB of code", file ? file : "-",
				CODE_TEXT_MAX >> 20);
	} else if (r < 0) {
		(void)error_sys(e, -r, "read %s", file ? file : "-");
	} else if (memchr(buf_span(&text).p, '\0', text.n)) {
		(void)error_set(e, ERRC_INVALID, "%s: a NUL in the code", file ? file : "-");
	} else {
		return buf_take(&text);
	}
	return NULL;
}

/* {"MEMBER":VALUE}; caller frees. */
static char *object_of(const char *member, const char *value)
{
	AUTO(buf) struct buf b = BUF_INIT(1U << 20);
	struct json_writer w = JSON_WRITER(&b);

	json_object_begin(&w, NULL);
	json_add_string(&w, member, value);
	json_object_end(&w);
	return buf_take(&b);
}

/* What one invocation works with. */
struct code_session {
	const struct code_args *args;
	struct code_client client;
	struct code_show show;
	char *context; /* JSON */
	char *own_id;  /* of a context of ours */
};

static int session_open(struct code_session *s, struct error *e)
{
	const struct code_args *a = s->args;
	const char *lang = a->lang ? a->lang : "python";
	AUTO(json) struct json *answer = NULL;

	if (a->context) {
		s->context = object_of("id", a->context);
		return 0;
	}
	s->context = object_of("language", lang);
	if (!a->is_new) {
		return 0;
	}
	if (code_client_ask(&s->client, "POST", "/code/context", span_of(s->context), &answer, e) <
			0) {
		return -1;
	}
	const char *id = json_string(json_get(answer, "id"));

	if (!id || !str_is_made_of(id, "0123456789abcdef-")) {
		return error_set(e, ERRC_INTERNAL, "answer of the sandbox: no id of a context");
	}
	s->own_id = mem_strdup(id);
	free(s->context);
	s->context = object_of("id", id);
	return 0;
}

static void session_close(struct code_session *s)
{
	struct error ignored = ERROR_INIT;

	if (s->own_id) {
		autofree char *target = mem_printf("/code/contexts/%s", s->own_id);
		AUTO(json) struct json *answer = NULL;

		(void)!code_client_ask(
				&s->client, "DELETE", target, span_of(""), &answer, &ignored);
	}
	free(s->context);
	free(s->own_id);
	code_client_done(&s->client);
}
AUTO_DEFINE(session, struct code_session, session_close);

static int session_run(struct code_session *s, const char *code, int *out_status, struct error *e)
{
	const struct code_client_run run = {
		.context = s->context,
		.code = code,
		.timeout_ms = s->args->timeout_ms,
	};

	return code_client_run(&s->client, &run, &s->show, out_status, e);
}

/* Does a block begin or go on with this line, so that only an empty line ends it? */
static bool line_opens(const char *line)
{
	size_t n = strlen(line);

	while (n > 0 && strchr(" \t\n", line[n - 1])) {
		n--;
	}
	return n > 0 && (strchr(":\\([{,", line[n - 1]) || line[0] == '@');
}

/* Lines of standard input. */
struct lines {
	struct buf in;
	bool has_ended;
};

/* 1: *out_line is the next one with its end (caller frees), 0: the end, -EINTR: SIGINT, -errno. */
static int lines_next(struct lines *l, int signal_fd, char **out_line)
{
	for (;;) {
		const char *end = l->in.n > 0 ? memchr(l->in.p, '\n', l->in.n) : NULL;
		size_t n = end ? (size_t)(end - l->in.p) + 1 : l->has_ended ? l->in.n : 0;
		struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN },
			{ .fd = signal_fd, .events = POLLIN } };
		struct signalfd_siginfo si;

		if (n > 0) {
			*out_line = mem_dup(l->in.p, n);
			buf_consume(&l->in, n);
			return 1;
		}
		if (l->has_ended) {
			return 0;
		}
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR) {
			return -errno;
		}
		if (fds[1].revents && read(signal_fd, &si, sizeof(si)) == sizeof(si)) {
			return -EINTR;
		}
		int r = buf_reserve(&l->in, LINES_BYTES);

		if (r < 0) {
			return r;
		}
		ssize_t got = fds[0].revents ? read(STDIN_FILENO, l->in.p + l->in.n, LINES_BYTES)
					     : -1;

		l->has_ended = got == 0;
		l->in.n += got > 0 ? (size_t)got : 0;
	}
}

static void prompt(const struct code_session *s, bool in_block)
{
	const char *lang = s->args->lang ? s->args->lang : s->args->context ? "code" : "python";

	if (isatty(STDIN_FILENO) == 1) {
		(void)fprintf(stderr, "%s%s ", in_block ? "..." : lang, in_block ? "" : ">");
		(void)fflush(stderr);
	}
}

/* Run what has been typed. 1: nobody reads what comes of it, -1: it makes no sense to go on. */
static int block_run(struct code_session *s, struct buf *block, struct error *e)
{
	autofree char *code = buf_take(block);
	int status = 0;

	if (code[strspn(code, " \t\n")] == '\0') {
		return 0;
	}
	if (session_run(s, code, &status, e) == 0) {
		return status == 128 + SIGPIPE;
	}
	/* A busy context and the like: told, and may be over at the next try. */
	if (e->code == ERRC_CONFLICT || e->code == ERRC_INVALID) {
		(void)cli_fail(e);
		error_clear(e);
		return 0;
	}
	return -1;
}

static int session_interact(struct code_session *s, struct error *e)
{
	AUTO(buf) struct buf block = BUF_INIT(CODE_TEXT_MAX);
	struct lines lines = { .in = BUF_INIT(CODE_TEXT_MAX + LINES_BYTES) };
	bool in_block = false;
	int r = 0;

	while (r == 0) {
		autofree char *line = NULL;

		prompt(s, in_block);
		int got = lines_next(&lines, s->client.signal_fd, &line);

		if (got == -EINTR) {
			buf_reset(&block);
			in_block = false;
			(void)fputc('\n', stderr);
			continue;
		}
		if (got < 0 || (line && buf_append_str(&block, line) < 0)) {
			r = error_set(e, ERRC_LIMIT, "standard input: %s",
					got < 0 ? strerror(-got) : "too much code");
			break;
		}
		in_block = line && (in_block ? line[0] != '\n' : line_opens(line));
		if (!in_block) {
			r = block_run(s, &block, e);
		}
		if (got == 0) {
			break;
		}
	}
	buf_done(&lines.in);
	return r < 0 ? -1 : 0;
}

static int code_main(
		const struct code_args *a, char *const *operands, int *out_status, struct error *e)
{
	AUTO(dirs) struct dirs dirs = DIRS_INIT;
	AUTO(sandbox_info) struct sandbox_info info = { .is_kept = false };
	AUTO(session)
	struct code_session s = {
		.args = a,
		.client = CODE_CLIENT_INIT,
		.show = {
			.dir = a->out,
			.images = code_images_of(STDOUT_FILENO),
			.has_colour = tty_has_colour(STDERR_FILENO),
		},
	};
	autofree char *code = NULL;

	if (args_check(a, operands, e) < 0) {
		return -1;
	}
	if (!a->interactive) {
		code = code_read(a, operands[1], e);
		if (!code) {
			return -1;
		}
	}
	if (dirs_open(&dirs, e) < 0 || sandbox_find(&dirs, operands[0], &info, e) < 0) {
		return -1;
	}
	if (info.state.code == SANDBOX_PAUSED) {
		return error_set(e, ERRC_CONFLICT, "sandbox %s is paused", operands[0]);
	}
	if (code_client_open(&s.client, &dirs, &info.state.id, e) < 0 || session_open(&s, e) < 0) {
		return -1;
	}
	return a->interactive ? session_interact(&s, e) : session_run(&s, code, out_status, e);
}

static int code_run(int argc, char **argv)
{
	struct error e = ERROR_INIT;
	struct code_args args = { .interactive = false };
	char **operands = NULL;
	int status = 0;
	int r = args_parse(&cmd_code, argc, argv, &args, &operands, &e);

	if (r != 0) {
		return r < 0 ? cli_fail(&e) : 0;
	}
	return code_main(&args, operands, &status, &e) < 0 ? cli_fail(&e) : status;
}

const struct args_command cmd_code = {
	.name = "code",
	.synopsis = "[options] SANDBOX [FILE|-]",
	.summary = "run code in an interpreter of a sandbox, which keeps its state",
	.options = code_options,
	.operands_min = 1,
	.operands_max = 2,
	.run = code_run,
};
