/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about sessions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/jsondec.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/strv.h>

#include "expand.h"
#include "files.h"
#include "sessions_internal.h"

struct request {
	char *command;
	char *cwd;
	uint64_t timeout_ms;
};

static void request_done(struct request *r)
{
	free(r->command);
	free(r->cwd);
}
AUTO_DEFINE(request, struct request, request_done);

static const struct jsondec_field create_fields[] = {
	{ "cwd", JSONDEC_STRING, offsetof(struct request, cwd), 0, LIMIT_PATH_BYTES, NULL, NULL },
	{ NULL, JSONDEC_STRING, 0, 0, 0, NULL, NULL },
};

static const struct jsondec_field run_fields[] = {
	{ "command", JSONDEC_STRING, offsetof(struct request, command), JSONDEC_REQUIRED,
			COMMAND_TEXT_MAX, NULL, NULL },
	{ "cwd", JSONDEC_STRING, offsetof(struct request, cwd), 0, LIMIT_PATH_BYTES, NULL, NULL },
	{ "timeout", JSONDEC_U64, offsetof(struct request, timeout_ms), 0, INT64_MAX / 4, NULL,
			NULL },
	{ NULL, JSONDEC_STRING, 0, 0, 0, NULL, NULL },
};

/* 0, or -1: it has been answered. */
static int request_read(struct http_req *rq, const struct jsondec_field *fields, struct request *r)
{
	struct error e = ERROR_INIT;
	AUTO(json) struct json *body = api_body(rq, fields == create_fields);

	if (!body) {
		return -1;
	}
	if (jsondec_object(body, fields, r, &e) < 0) {
		api_fail(rq, 400, API_INVALID_BODY, "%s", e.text);
		return -1;
	}
	return 0;
}

static void created_answer(struct http_req *rq, const struct session *s)
{
	AUTO(buf) struct buf b = BUF_INIT(256);
	struct json_writer w = JSON_WRITER(&b);

	json_object_begin(&w, NULL);
	json_add_string(&w, "session_id", s->id.text);
	json_object_end(&w);
	api_json(rq, 200, &b);
}

static const char *lookup(void *ctx, const char *name)
{
	const struct files *f = ctx;
	const char *value = f->env ? strv_env_find(f->env, name) : NULL;

	return !value && strcmp(name, "HOME") == 0 ? f->user.home : value;
}

/* In a worker of its own, as the main process's user: make the directory, then answer. */
static int create_cwd(struct files *f, struct error *e)
{
	const struct session *s = f->rq->ctx;
	AUTO(buf) struct buf expanded = BUF_INIT(LIMIT_PATH_BYTES);

	if (expand_path(span_of(s->wanted_cwd), lookup, f, &expanded, e) < 0) {
		return -1;
	}
	autofree char *path = buf_take(&expanded);
	autofree char *whole =
			path[0] == '/' ? mem_strdup(path) : mem_printf("%s/%s", f->cwd, path);
	autoclose int fd = path_mkdirs_beneath(f->root_fd, whole, 0755);

	if (fd < 0) {
		return files_sys(e, -fd, "make directory", whole);
	}
	created_answer(f->rq, s);
	return 0;
}

void session_post(struct http_req *rq)
{
	AUTO(request) struct request r = { .timeout_ms = 0 };

	if (request_read(rq, create_fields, &r) < 0) {
		return;
	}
	struct session *s = session_new(commands_of(api_execd(rq)), r.cwd);

	if (!s) {
		api_fail(rq, 503, API_RUNTIME, "%d sessions are running commands", SESSIONS_MAX);
		return;
	}
	if (s->wanted_cwd) {
		rq->ctx = s;
		files_serve(rq, create_cwd);
	} else {
		created_answer(rq, s);
	}
}

static struct session *session_of_rq(const struct http_req *rq)
{
	autofree char *id = http_param(rq, 0);

	return id ? session_find(commands_of(api_execd(rq)), id) : NULL;
}

static int words_of(struct strv *argv, const char *const *options, const char *command)
{
	for (; *options; options++) {
		if (strv_add(argv, *options) < 0) {
			return -1;
		}
	}
	return strv_add(argv, command);
}

static void run_start(struct http_req *rq, const struct execd_process *main, struct session *s,
		const struct request *r)
{
	static const char *const bash[] = { "bash", "--noprofile", "--norc", "-c", session_script,
		"bash", NULL };
	static const char *const sh[] = { "sh", "-c", session_script, "sh", NULL };
	AUTO(strv) struct strv argv = STRV_INIT;
	AUTO(strv) struct strv otherwise = STRV_INIT;
	struct command_wish w = {
		.kind = COMMAND_SESSION,
		.content = r->command,
		.shown_id = s->id.text,
		.process = *main,
		.more = { .otherwise = &otherwise },
		.timeout_ms = (int64_t)r->timeout_ms,
	};

	if (words_of(&argv, bash, r->command) < 0 || words_of(&otherwise, sh, r->command) < 0) {
		api_fail(rq, 500, API_RUNTIME, "too many words");
		return;
	}
	w.process.argv = argv;
	w.process.cwd_create = EXECD_CWD_EXISTS;
	w.process.set_home = 1;
	if (s->cwd) {
		w.process.cwd = s->cwd;
	}
	w.more.cwd = r->cwd && r->cwd[0] ? r->cwd : s->wanted_cwd;
	w.more.makes_env_dir = strstr(r->command, "EXECD_ENVS") != NULL;
	session_start(rq, s, &w);
}

void session_run(struct http_req *rq)
{
	AUTO(request) struct request r = { .timeout_ms = 0 };
	const struct execd_process *main = api_main(api_execd(rq));
	struct session *s = session_of_rq(rq);

	if (!s) {
		api_fail(rq, 500, API_RUNTIME, "session not found");
		return;
	}
	if (request_read(rq, run_fields, &r) < 0) {
		return;
	}
	if (r.command[strspn(r.command, " \t\r\n\v\f")] == '\0') {
		api_fail(rq, 400, API_INVALID_BODY, "command: blank");
	} else if (!main) {
		api_fail(rq, 503, API_RUNTIME, "the sandbox is still starting");
	} else {
		run_start(rq, main, s, &r);
	}
}

void session_delete(struct http_req *rq)
{
	autofree char *id = http_param(rq, 0);

	if (id && session_end(api_execd(rq), id)) {
		api_ok(rq);
	} else {
		api_fail(rq, 404, API_CONTEXT_NOT_FOUND, "session not found");
	}
}
