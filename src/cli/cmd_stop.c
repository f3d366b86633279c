/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that change sandboxes: stop, kill, rm, pause, resume, renew, wait. */
#include <signal.h>
#include <stdio.h>

#include <osbx/clock.h>
#include <osbx/limits.h>
#include <osbx/plan.h>
#include <osbx/str.h>

#include "cli.h"
#include "sandboxes.h"

/* A name or number of a signal; plan_stop_signal takes what is none for SIGTERM. */
static int signal_parse(const char *text, int *out_signo, struct error *e)
{
	int signo = plan_stop_signal(text);

	if (signo == SIGTERM && !str_eq(text, "15") && !str_eq(text, "TERM") &&
			!str_eq(text, "SIGTERM")) {
		(void)error_set(e, ERRC_INVALID, "%s: unknown signal", text);
		return error_hint(e, "a name such as KILL or SIGKILL, or a number");
	}
	*out_signo = signo;
	return 0;
}

struct stop_args {
	int signo;
	int64_t grace_ms;
	bool quiet;
};

static int parse_stop_time(void *out, const char *value, struct error *e)
{
	struct stop_args *a = out;

	if (str_to_duration(value, &a->grace_ms) < 0 || a->grace_ms > INT32_MAX) {
		return error_set(e, ERRC_INVALID, "%s: not a duration", value);
	}
	return 0;
}

static int parse_stop_signal(void *out, const char *value, struct error *e)
{
	return signal_parse(value, &((struct stop_args *)out)->signo, e);
}

static const struct args_option stop_options[] = {
	{ "quiet", 'q', ARGS_FLAG, offsetof(struct stop_args, quiet), NULL, "print nothing", NULL },
	{ "signal", 's', ARGS_CALLBACK, 0, "SIGNAL", "instead of the image's stop signal",
			parse_stop_signal },
	{ "time", 't', ARGS_CALLBACK, 0, "DURATION", "until it is killed (default 10s)",
			parse_stop_time },
	{ .name = NULL },
};

static bool has_ended(const struct sandbox_info *info)
{
	return state_is_final(&info->state);
}

static int stop_one(const struct dirs *dirs, const struct sandbox_info *info, void *ctx,
		struct error *e)
{
	const struct stop_args *a = ctx;
	const struct ctl_stop stop = { .grace_ms = (int32_t)a->grace_ms, .signo = a->signo };

	if (has_ended(info) || ctl_request(dirs, &info->state.id, CTL_MSG_STOP, &stop, sizeof(stop),
					       e) == 0) {
		return 0;
	}
	/* It ended by itself just now. */
	if (e->code == ERRC_UNAVAILABLE || e->code == ERRC_CONFLICT) {
		error_clear(e);
		return 0;
	}
	return -1;
}

static int stop_run(int argc, char **argv)
{
	struct error e = ERROR_INIT;
	struct stop_args args = { .grace_ms = -1 };
	char **operands = NULL;
	int r = args_parse(&cmd_stop, argc, argv, &args, &operands, &e);

	if (r != 0) {
		return r < 0 ? cli_fail(&e) : 0;
	}
	const struct each_opts opts = { .run = stop_one, .ctx = &args, .quiet = args.quiet };

	return sandboxes_each(operands, &opts);
}

const struct args_command cmd_stop = {
	.name = "stop",
	.synopsis = "[options] SANDBOX...",
	.summary = "end sandboxes: a signal, some time, the end of all processes",
	.options = stop_options,
	.operands_min = 1,
	.operands_max = -1,
	.run = stop_run,
};

struct kill_args {
	int signo;
	bool all;
	bool quiet;
};

static int parse_kill_signal(void *out, const char *value, struct error *e)
{
	return signal_parse(value, &((struct kill_args *)out)->signo, e);
}

static const struct args_option kill_options[] = {
	{ "all", 'a', ARGS_FLAG, offsetof(struct kill_args, all), NULL,
			"to every process, not only the main one", NULL },
	{ "quiet", 'q', ARGS_FLAG, offsetof(struct kill_args, quiet), NULL, "print nothing", NULL },
	{ "signal", 's', ARGS_CALLBACK, 0, "SIGNAL", "which signal (default KILL)",
			parse_kill_signal },
	{ .name = NULL },
};

static int kill_one(const struct dirs *dirs, const struct sandbox_info *info, void *ctx,
		struct error *e)
{
	const struct kill_args *a = ctx;
	const struct ctl_signal s = { .signo = a->signo, .all = a->all };

	return ctl_request(dirs, &info->state.id, CTL_MSG_SIGNAL, &s, sizeof(s), e);
}

static int kill_run(int argc, char **argv)
{
	struct error e = ERROR_INIT;
	struct kill_args args = { .signo = SIGKILL };
	char **operands = NULL;
	int r = args_parse(&cmd_kill, argc, argv, &args, &operands, &e);

	if (r != 0) {
		return r < 0 ? cli_fail(&e) : 0;
	}
	const struct each_opts opts = { .run = kill_one, .ctx = &args, .quiet = args.quiet };

	return sandboxes_each(operands, &opts);
}

const struct args_command cmd_kill = {
	.name = "kill",
	.synopsis = "[options] SANDBOX...",
	.summary = "send a signal to the main processes of sandboxes",
	.options = kill_options,
	.operands_min = 1,
	.operands_max = -1,
	.run = kill_run,
};

struct rm_args {
	bool force;
	bool quiet;
};

static const struct args_option rm_options[] = {
	{ "force", 'f', ARGS_FLAG, offsetof(struct rm_args, force), NULL,
			"end those that run; those that do not exist are no error", NULL },
	{ "quiet", 'q', ARGS_FLAG, offsetof(struct rm_args, quiet), NULL, "print nothing", NULL },
	{ .name = NULL },
};

static int rm_one(const struct dirs *dirs, const struct sandbox_info *info, void *ctx,
		struct error *e)
{
	return sandbox_remove(dirs, &info->state.id, ((const struct rm_args *)ctx)->force, e);
}

static int rm_run(int argc, char **argv)
{
	struct error e = ERROR_INIT;
	struct rm_args args = { .force = false };
	char **operands = NULL;
	int r = args_parse(&cmd_rm, argc, argv, &args, &operands, &e);

	if (r != 0) {
		return r < 0 ? cli_fail(&e) : 0;
	}
	const struct each_opts opts = {
		.run = rm_one,
		.ctx = &args,
		.quiet = args.quiet,
		.missing_is_done = args.force,
	};

	return sandboxes_each(operands, &opts);
}

const struct args_command cmd_rm = {
	.name = "rm",
	.synopsis = "[options] SANDBOX...",
	.summary = "remove sandboxes, with their records and files",
	.options = rm_options,
	.operands_min = 1,
	.operands_max = -1,
	.run = rm_run,
};

struct quiet_args {
	bool quiet;
};

static const struct args_option pause_options[] = {
	{ "quiet", 'q', ARGS_FLAG, offsetof(struct quiet_args, quiet), NULL, "print nothing",
			NULL },
	{ .name = NULL },
};

static int request_one(const struct dirs *dirs, const struct sandbox_info *info, void *ctx,
		struct error *e)
{
	return ctl_request(dirs, &info->state.id, *(const enum ctl_msg *)ctx, NULL, 0, e);
}

static int freeze_run(const struct args_command *cmd, enum ctl_msg type, int argc, char **argv)
{
	struct error e = ERROR_INIT;
	struct quiet_args args = { .quiet = false };
	char **operands = NULL;
	int r = args_parse(cmd, argc, argv, &args, &operands, &e);

	if (r != 0) {
		return r < 0 ? cli_fail(&e) : 0;
	}
	const struct each_opts opts = { .run = request_one, .ctx = &type, .quiet = args.quiet };

	return sandboxes_each(operands, &opts);
}

static int pause_run(int argc, char **argv)
{
	return freeze_run(&cmd_pause, CTL_MSG_PAUSE, argc, argv);
}

static int resume_run(int argc, char **argv)
{
	return freeze_run(&cmd_resume, CTL_MSG_RESUME, argc, argv);
}

const struct args_command cmd_pause = {
	.name = "pause",
	.synopsis = "[options] SANDBOX...",
	.summary = "freeze all processes of sandboxes",
	.options = pause_options,
	.operands_min = 1,
	.operands_max = -1,
	.run = pause_run,
};

const struct args_command cmd_resume = {
	.name = "resume",
	.synopsis = "[options] SANDBOX...",
	.summary = "let paused sandboxes go on",
	.options = pause_options,
	.operands_min = 1,
	.operands_max = -1,
	.run = resume_run,
};

struct renew_args {
	int64_t timeout_ms; /* -1: not given */
	bool never;
	bool quiet;
};

static int parse_renew_timeout(void *out, const char *value, struct error *e)
{
	struct renew_args *a = out;

	a->never = str_eq(value, "never");
	if (!a->never && (str_to_duration(value, &a->timeout_ms) < 0 || a->timeout_ms == 0)) {
		return error_set(e, ERRC_INVALID, "%s: not a duration", value);
	}
	return 0;
}

static const struct args_option renew_options[] = {
	{ "quiet", 'q', ARGS_FLAG, offsetof(struct renew_args, quiet), NULL, "print nothing",
			NULL },
	{ "timeout", 0, ARGS_CALLBACK, 0, "DURATION|never", "from now on", parse_renew_timeout },
	{ .name = NULL },
};

static int renew_one(const struct dirs *dirs, const struct sandbox_info *info, void *ctx,
		struct error *e)
{
	const struct renew_args *a = ctx;
	const struct ctl_renew renew = {
		.expires_ms = a->never ? 0 : clock_wall_ms() + a->timeout_ms,
	};

	return ctl_request(dirs, &info->state.id, CTL_MSG_RENEW, &renew, sizeof(renew), e);
}

static int renew_run(int argc, char **argv)
{
	struct error e = ERROR_INIT;
	struct renew_args args = { .timeout_ms = -1 };
	char **operands = NULL;
	int r = args_parse(&cmd_renew, argc, argv, &args, &operands, &e);

	if (r == 0 && args.timeout_ms < 0 && !args.never) {
		(void)error_set(&e, ERRC_INVALID, "option --timeout is missing");
		r = error_hint(&e, "osbx renew --timeout 1h SANDBOX");
	}
	if (r != 0) {
		return r < 0 ? cli_fail(&e) : 0;
	}
	const struct each_opts opts = { .run = renew_one, .ctx = &args, .quiet = args.quiet };

	return sandboxes_each(operands, &opts);
}

const struct args_command cmd_renew = {
	.name = "renew",
	.synopsis = "--timeout DURATION SANDBOX...",
	.summary = "give sandboxes a new time to live",
	.options = renew_options,
	.operands_min = 1,
	.operands_max = -1,
	.run = renew_run,
};
