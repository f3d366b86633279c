/* SPDX-License-Identifier: Apache-2.0 */
/* POST /command: from JSON to a command. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/jsondec.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/str.h>
#include <osbx/strv.h>

#include "command_internal.h"
#include "envfile.h"

#define ID_NONE UINT64_MAX

struct request {
	char *command;
	struct strv argv;
	char *cwd;
	bool background;
	uint64_t timeout_ms;
	uint64_t uid;
	uint64_t gid;
	struct strv envs;
	char *user;    /* "uid" or "uid:gid", or NULL */
	char *content; /* of the record */
};

static void request_done(struct request *r)
{
	free(r->command);
	free(r->cwd);
	free(r->user);
	free(r->content);
	strv_done(&r->argv);
	strv_done(&r->envs);
}
AUTO_DEFINE(request, struct request, request_done);

int command_decode_envs(const struct json *v, void *out, struct error *e)
{
	struct strv *envs = out;
	size_t bytes = 0;

	if (!json_is_object(v)) {
		return error_set(e, ERRC_INVALID, "expected an object of strings");
	}
	json_for_each(member, v) {
		const char *name = json_name(member);
		const char *value = json_string(member);

		if (!value) {
			return error_set(e, ERRC_INVALID, "a value is no string");
		}
		if (name[0] == '\0' || strchr(name, '=')) {
			return error_set(e, ERRC_INVALID, "a name is empty or holds \"=\"");
		}
		bytes += strlen(name) + strlen(value) + 2;
		if (bytes > LIMIT_ARGS_BYTES || envs->n >= LIMIT_ENV ||
				strv_addf(envs, "%s=%s", name, value) < 0) {
			return error_set(e, ERRC_LIMIT, "more than %d variables or %u bytes",
					LIMIT_ENV, LIMIT_ARGS_BYTES);
		}
	}
	return 0;
}

static const struct jsondec_field request_fields[] = {
	{ "command", JSONDEC_STRING, offsetof(struct request, command), 0, COMMAND_TEXT_MAX, NULL,
			NULL },
	{ "argv", JSONDEC_STRV, offsetof(struct request, argv), 0, LIMIT_ARGS_BYTES, NULL, NULL },
	{ "cwd", JSONDEC_STRING, offsetof(struct request, cwd), 0, LIMIT_PATH_BYTES, NULL, NULL },
	{ "background", JSONDEC_BOOL, offsetof(struct request, background), 0, 0, NULL, NULL },
	{ "timeout", JSONDEC_U64, offsetof(struct request, timeout_ms), 0, INT64_MAX / 4, NULL,
			NULL },
	{ "uid", JSONDEC_U64, offsetof(struct request, uid), 0, UINT32_MAX - 1, NULL, NULL },
	{ "gid", JSONDEC_U64, offsetof(struct request, gid), 0, UINT32_MAX - 1, NULL, NULL },
	{ "envs", JSONDEC_CUSTOM, offsetof(struct request, envs), 0, 0, NULL, command_decode_envs },
	{ NULL, JSONDEC_STRING, 0, 0, 0, NULL, NULL },
};

static bool is_blank(const char *s)
{
	while (isspace((unsigned char)*s)) {
		s++;
	}
	return *s == '\0';
}

static int request_check(const struct request *r, struct error *e)
{
	if (!r->command && r->argv.n == 0) {
		return error_set(e, ERRC_INVALID, "command: missing, and so is argv");
	}
	if (r->command && r->argv.n > 0) {
		return error_set(e, ERRC_INVALID, "command and argv: only one of them");
	}
	if (r->command && is_blank(r->command)) {
		return error_set(e, ERRC_INVALID, "command: blank");
	}
	if (!r->command && r->argv.v[0][0] == '\0') {
		return error_set(e, ERRC_INVALID, "argv[0]: empty");
	}
	strv_for_each(&r->argv, i) {
		if (strlen(r->argv.v[i]) > COMMAND_TEXT_MAX) {
			return error_set(e, ERRC_LIMIT, "argv[%zu]: longer than %d bytes", i,
					COMMAND_TEXT_MAX);
		}
	}
	if (r->gid != ID_NONE && r->uid == ID_NONE) {
		return error_set(e, ERRC_INVALID, "gid: uid is missing");
	}
	return 0;
}

/* Words of argv as a line, for people. */
static char *words_join(const struct strv *argv)
{
	AUTO(buf) struct buf b = BUF_INIT((size_t)2 * LIMIT_ARGS_BYTES);

	strv_for_each(argv, i) {
		if ((i > 0 && buf_append_str(&b, " ") < 0) || buf_append_str(&b, argv->v[i]) < 0) {
			break;
		}
	}
	return buf_take(&b);
}

static void request_finish(struct request *r)
{
	if (r->uid != ID_NONE && r->gid != ID_NONE) {
		r->user = mem_printf("%llu:%llu", (unsigned long long)r->uid,
				(unsigned long long)r->gid);
	} else if (r->uid != ID_NONE) {
		r->user = mem_printf("%llu", (unsigned long long)r->uid);
	}
	r->content = r->command ? mem_strdup(r->command) : words_join(&r->argv);
}

/* Is who is asked for the main process's own user, as far as the text says? */
static bool is_main_user(const struct execd_process *main, const char *user)
{
	const char *own = main->user && main->user[0] ? main->user : "0";

	return str_eq(own, user);
}

/* Another user's home is not the main user's. */
static int env_for(const struct execd_process *main, const char *user, struct strv *out)
{
	if (strv_add_all(out, strv_get(&main->env)) < 0) {
		return -1;
	}
	free(is_main_user(main, user) ? NULL : strv_env_remove(out, "HOME"));
	return 0;
}

static void request_start(struct http_req *rq, const struct execd_process *main, struct request *r)
{
	AUTO(strv) struct strv bash = STRV_INIT;
	AUTO(strv) struct strv sh = STRV_INIT;
	AUTO(strv) struct strv env = STRV_INIT;
	struct command_wish w = {
		.kind = r->background ? COMMAND_BACKGROUND : COMMAND_FOREGROUND,
		.content = r->content,
		.process = *main,
		.more = { .envs = &r->envs, .cwd = r->cwd && r->cwd[0] ? r->cwd : NULL },
		.timeout_ms = (int64_t)r->timeout_ms,
	};

	w.process.argv = r->argv;
	w.process.cwd_create = EXECD_CWD_EXISTS;
	w.process.set_home = 1;
	if (r->command) {
		/* Three strings each. */
		(void)!strv_add_all(&bash, (char *const[]){ (char[]){ "bash" }, (char[]){ "-c" },
							   r->command, NULL });
		(void)!strv_add_all(&sh, (char *const[]){ (char[]){ "sh" }, (char[]){ "-c" },
							 r->command, NULL });
		w.process.argv = bash;
		w.more.otherwise = &sh;
		w.more.makes_env_dir = strstr(r->command, ENVFILE_NAME) != NULL;
	}
	if (r->user) {
		if (env_for(main, r->user, &env) < 0) {
			api_fail(rq, 500, API_RUNTIME, "the environment is too large");
			return;
		}
		w.process.env = env;
		w.process.user = r->user;
		w.process.groups = (struct strv)STRV_INIT;
		w.more.only_user_of = api_is_inside(rq) ? main : NULL;
		w.is_foreign = !api_is_inside(rq) && !is_main_user(main, r->user);
	}
	(void)command_start(rq, &w);
}

static void request_go(struct http_req *rq, struct request *r)
{
	const struct execd_process *main = api_main(api_execd(rq));
	struct error e = ERROR_INIT;

	if (request_check(r, &e) < 0) {
		api_fail(rq, 400, API_INVALID_BODY, "%s", e.text);
		return;
	}
	if (!main) {
		api_fail(rq, 503, API_RUNTIME, "the sandbox is still starting");
		return;
	}
	request_finish(r);
	request_start(rq, main, r);
}

void command_text(struct http_req *rq, const char *text, const char *cwd, uint64_t timeout_ms)
{
	AUTO(request)
	struct request r = {
		.command = mem_strdup(text),
		.cwd = mem_strdup(cwd),
		.timeout_ms = timeout_ms,
		.uid = ID_NONE,
		.gid = ID_NONE,
	};

	if (strlen(text) > COMMAND_TEXT_MAX) {
		api_fail(rq, 400, API_INVALID_BODY, "code: longer than %d bytes", COMMAND_TEXT_MAX);
		return;
	}
	request_go(rq, &r);
}

void command_post(struct http_req *rq)
{
	AUTO(request) struct request r = { .uid = ID_NONE, .gid = ID_NONE };
	struct error e = ERROR_INIT;
	AUTO(json) struct json *body = api_body(rq, false);

	if (!body) {
		return;
	}
	if (jsondec_object(body, request_fields, &r, &e) < 0) {
		api_fail(rq, 400, API_INVALID_BODY, "%s", e.text);
		return;
	}
	request_go(rq, &r);
}
