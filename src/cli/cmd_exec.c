/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <unistd.h>

#include <osbx/limits.h>
#include <osbx/request.h>
#include <osbx/str.h>

#include "cli.h"
#include "sandboxes.h"

struct exec_args {
	struct sandbox_request req; /* its env */
	struct strv env;
	struct strv env_files;
	const char *user;
	const char *workdir;
	bool detach;
	bool interactive;
	bool tty;
};

static void exec_args_done(struct exec_args *a)
{
	request_done(&a->req);
	strv_done(&a->env);
	strv_done(&a->env_files);
}
AUTO_DEFINE(exec_args, struct exec_args, exec_args_done);

#define ARG(member) offsetof(struct exec_args, member)

static const struct args_option exec_options[] = {
	{ "detach", 'd', ARGS_FLAG, ARG(detach), NULL, "start it and leave it alone", NULL },
	{ "env", 'e', ARGS_LIST, ARG(env), "NAME[=VALUE]",
			"set a variable, or pass on the caller's", NULL },
	{ "env-file", 0, ARGS_LIST, ARG(env_files), "FILE", "read variables from a file", NULL },
	{ "interactive", 'i', ARGS_FLAG, ARG(interactive), NULL, "forward standard input", NULL },
	{ "tty", 't', ARGS_FLAG, ARG(tty), NULL, "give it a terminal", NULL },
	{ "user", 'u', ARGS_STRING, ARG(user), "USER[:GROUP]",
			"user and group instead of the sandbox's", NULL },
	{ "workdir", 'w', ARGS_STRING, ARG(workdir), "DIR",
			"working directory instead of the sandbox's", NULL },
	{ .name = NULL },
};

static int env_collect(struct exec_args *a, struct error *e)
{
	const char *term = getenv("TERM");

	/* The terminal is the caller's. */
	if (a->tty && term && term[0] && request_add_env(&a->req, "TERM", e) < 0) {
		return -1;
	}
	strv_for_each(&a->env_files, i) {
		if (request_add_env_file(&a->req, a->env_files.v[i], e) < 0) {
			return error_wrap(e, "option --env-file");
		}
	}
	strv_for_each(&a->env, i) {
		if (request_add_env(&a->req, a->env.v[i], e) < 0) {
			return error_wrap(e, "option --env");
		}
	}
	return 0;
}

static int args_check(const struct exec_args *a, char *const *operands, struct error *e)
{
	if (operands[0][0] == '\0') {
		return error_set(e, ERRC_INVALID, "the command is an empty string");
	}
	if (a->workdir && a->workdir[0] != '/') {
		return error_set(e, ERRC_INVALID, "workdir \"%s\": not an absolute path",
				a->workdir);
	}
	if (a->tty && a->interactive && !a->detach && isatty(STDIN_FILENO) != 1) {
		(void)error_set(e, ERRC_INVALID, "option --tty: standard input is not a terminal");
		return error_hint(e, "leave out -t, or -i if nothing is to be typed");
	}
	return 0;
}

static int exec_main(struct exec_args *a, char *const *operands, int *out_status, struct error *e)
{
	AUTO(dirs) struct dirs dirs = DIRS_INIT;
	AUTO(sandbox_info) struct sandbox_info info = { .is_kept = false };
	AUTO(strv) struct strv argv = STRV_INIT;
	const char *name = *operands++;

	if (*operands && str_eq(*operands, "--")) {
		operands++;
	}
	if (!*operands) {
		return error_set(e, ERRC_INVALID, "no command given");
	}
	if (strv_add_all(&argv, operands) < 0) {
		return error_set(e, ERRC_LIMIT, "more than %d arguments", LIMIT_ARGS);
	}
	if (args_check(a, operands, e) < 0 || env_collect(a, e) < 0 || dirs_open(&dirs, e) < 0 ||
			sandbox_find(&dirs, name, &info, e) < 0) {
		return -1;
	}
	const struct exec_opts opts = {
		.argv = &argv,
		.env = &a->req.env,
		.cwd = a->workdir,
		.user = a->user,
		.interactive = a->interactive,
		.tty = a->tty && !a->detach,
		.detach = a->detach,
		.in_fd = STDIN_FILENO,
		.out_fd = STDOUT_FILENO,
		.err_fd = STDERR_FILENO,
	};

	return sandbox_exec(&dirs, &info.state.id, &opts, out_status, e);
}

static int exec_run(int argc, char **argv)
{
	struct error e = ERROR_INIT;
	AUTO(exec_args) struct exec_args args = { .detach = false };
	char **operands = NULL;
	int status = 0;

	request_init(&args.req);
	int r = args_parse(&cmd_exec, argc, argv, &args, &operands, &e);

	if (r != 0) {
		return r < 0 ? cli_fail(&e) : 0;
	}
	return exec_main(&args, operands, &status, &e) < 0 ? cli_fail(&e) : status;
}

const struct args_command cmd_exec = {
	.name = "exec",
	.synopsis = "[options] SANDBOX COMMAND [ARG...]",
	.summary = "run a command in a running sandbox; its exit status is the command's",
	.options = exec_options,
	.stop_at_operand = true,
	.operands_min = 2,
	.operands_max = -1,
	.run = exec_run,
};
