/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/config.h>
#include <osbx/doctor.h>
#include <osbx/limits.h>
#include <osbx/log.h>
#include <osbx/mem.h>
#include <osbx/request.h>
#include <osbx/sandbox.h>
#include <osbx/str.h>

#include "cli.h"
#include "progress.h"

/* What the table fills in; strings are borrowed from argv until args_to_request copies them. */
struct run_args {
	struct sandbox_request req;
	const char *entrypoint;
	const char *hostname;
	const char *name;
	const char *platform;
	const char *seccomp;
	const char *user;
	const char *workdir;
	struct strv env;
	struct strv env_files;
	struct strv labels;
	struct strv cap_add;
	struct strv cap_drop;
	bool has_network;
	bool quiet;
};

static void run_args_done(struct run_args *a)
{
	request_done(&a->req);
	strv_done(&a->env);
	strv_done(&a->env_files);
	strv_done(&a->labels);
	strv_done(&a->cap_add);
	strv_done(&a->cap_drop);
}
AUTO_DEFINE(run_args, struct run_args, run_args_done);

static int parse_network(void *out, const char *value, struct error *e)
{
	struct run_args *args = out;

	args->has_network = true;
	return request_set_network(&args->req, value, e);
}

static int parse_allow(void *out, const char *value, struct error *e)
{
	return request_add_rule(&((struct run_args *)out)->req, NETPOLICY_ALLOW, value, e);
}

static int parse_deny(void *out, const char *value, struct error *e)
{
	return request_add_rule(&((struct run_args *)out)->req, NETPOLICY_DENY, value, e);
}

static int parse_publish(void *out, const char *value, struct error *e)
{
	return request_add_port(&((struct run_args *)out)->req, value, e);
}

static int parse_tmpfs(void *out, const char *value, struct error *e)
{
	return request_add_tmpfs(&((struct run_args *)out)->req, value, e);
}

static int parse_volume(void *out, const char *value, struct error *e)
{
	return request_add_volume(&((struct run_args *)out)->req, value, e);
}

static int parse_cpus(void *out, const char *value, struct error *e)
{
	return request_set_cpus(&((struct run_args *)out)->req, value, e);
}

static int parse_memory(void *out, const char *value, struct error *e)
{
	return request_set_memory(&((struct run_args *)out)->req, value, e);
}

static int parse_pids(void *out, const char *value, struct error *e)
{
	return request_set_pids(&((struct run_args *)out)->req, value, e);
}

static int parse_limits(void *out, const char *value, struct error *e)
{
	return request_set_limits(&((struct run_args *)out)->req, value, e);
}

static int parse_timeout(void *out, const char *value, struct error *e)
{
	int64_t *timeout_ms = &((struct run_args *)out)->req.timeout_ms;

	if (str_to_duration(value, timeout_ms) < 0 || *timeout_ms == 0) {
		(void)error_set(e, ERRC_INVALID, "%s: not a duration", value);
		return error_hint(e, "for example 90s, 15m or 1h30m");
	}
	return 0;
}

static int parse_pull(void *out, const char *value, struct error *e)
{
	static const char *const policies[] = {
		[PULL_MISSING] = "missing",
		[PULL_ALWAYS] = "always",
		[PULL_NEVER] = "never",
	};
	_Static_assert(ARRAY_SIZE(policies) == PULL_POLICY_COUNT, "every policy has a name");

	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		if (str_eq(value, policies[i])) {
			((struct run_args *)out)->req.pull = (enum pull_policy)i;
			return 0;
		}
	}
	return error_set(e, ERRC_INVALID, "expected missing, always or never");
}

static int parse_tls_verify(void *out, const char *value, struct error *e)
{
	return cli_parse_tls_verify(&((struct run_args *)out)->req.tls_verify, value, e);
}

#define ARG(member) offsetof(struct run_args, member)

static const struct args_option run_options[] = {
	{ "allow", 0, ARGS_CALLBACK, 0, "TARGET",
			"let it connect to NAME, *.NAME or ADDRESS[/BITS], each [:PORT]; the first "
			"rule that fits counts",
			parse_allow },
	{ "cap-add", 0, ARGS_LIST, ARG(cap_add), "CAP", "give a capability, or ALL", NULL },
	{ "cap-drop", 0, ARGS_LIST, ARG(cap_drop), "CAP", "take a capability, or ALL", NULL },
	{ "cpus", 0, ARGS_CALLBACK, 0, "N", "CPU time at most, in CPUs: 0.5, 2", parse_cpus },
	{ "deny", 0, ARGS_CALLBACK, 0, "TARGET", "do not; '*' is everything that no rule allows",
			parse_deny },
	{ "detach", 'd', ARGS_FLAG, ARG(req.detach), NULL,
			"start it, print its id and leave it alone", NULL },
	{ "entrypoint", 0, ARGS_STRING, ARG(entrypoint), "PROGRAM",
			"use instead of the image's entrypoint; \"\" for none", NULL },
	{ "env", 'e', ARGS_LIST, ARG(env), "NAME[=VALUE]",
			"set a variable, or pass on the caller's", NULL },
	{ "env-file", 0, ARGS_LIST, ARG(env_files), "FILE", "read variables from a file", NULL },
	{ "group-add", 0, ARGS_LIST, ARG(req.groups), "GROUP", "add a group to the user's", NULL },
	{ "hostname", 0, ARGS_STRING, ARG(hostname), "NAME",
			"host name (default: beginning of the id)", NULL },
	{ "interactive", 'i', ARGS_FLAG, ARG(req.interactive), NULL, "forward standard input",
			NULL },
	{ "isolation", 0, ARGS_FLAG, ARG(req.isolation), NULL,
			"let the sandbox make sandboxes of its own; weaker", NULL },
	{ "keep", 0, ARGS_FLAG, ARG(req.keep), NULL, "keep its files when it ends", NULL },
	{ "label", 0, ARGS_LIST, ARG(labels), "KEY[=VALUE]", "put a label on the record", NULL },
	{ "limits", 0, ARGS_CALLBACK, 0, "enforce|best-effort",
			"when a limit cannot be enforced: fail (default), or run without it",
			parse_limits },
	{ "memory", 0, ARGS_CALLBACK, 0, "SIZE", "memory at most; no swap", parse_memory },
	{ "name", 0, ARGS_STRING, ARG(name), "NAME", "name, unique among live sandboxes", NULL },
	{ "network", 0, ARGS_CALLBACK, 0, "private|none|host", "network (default: private)",
			parse_network },
	{ "no-name-check", 0, ARGS_FLAG, ARG(req.any_name), NULL,
			"do not check what TLS and HTTP call a server", NULL },
	{ "pids-limit", 0, ARGS_CALLBACK, 0, "N", "processes and threads at most", parse_pids },
	{ "platform", 0, ARGS_STRING, ARG(platform), "OS/ARCH",
			"choose this platform of an index instead of the machine's", NULL },
	{ "publish", 'p', ARGS_CALLBACK, 0, "[[IP:]HOST:]PORT",
			"make a port of it one of this machine's, of 127.0.0.1 unless IP is given",
			parse_publish },
	{ "pull", 0, ARGS_CALLBACK, 0, "missing|always|never",
			"when to fetch the image (default: missing)", parse_pull },
	{ "quiet", 'q', ARGS_FLAG, ARG(quiet), NULL, "no progress while an image is unpacked",
			NULL },
	{ "read-only", 0, ARGS_FLAG, ARG(req.read_only), NULL,
			"read-only root, with tmpfs on /tmp, /run and /var/tmp", NULL },
	{ "rm", 0, ARGS_FLAG, ARG(req.remove), NULL,
			"with -d: remove its record, too, when it ends", NULL },
	{ "seccomp", 0, ARGS_STRING, ARG(seccomp), "FILE|default|unconfined", "system call filter",
			NULL },
	{ "shm-size", 0, ARGS_SIZE, ARG(req.shm_bytes), "SIZE", "size of /dev/shm (default 64m)",
			NULL },
	{ "timeout", 0, ARGS_CALLBACK, 0, "DURATION", "stop it after this time", parse_timeout },
	{ "tls-verify", 0, ARGS_CALLBACK, 0, "true|false",
			"check the registry's certificate (default true)", parse_tls_verify },
	{ "tmpfs", 0, ARGS_CALLBACK, 0, "DST[:SIZE]", "mount an empty tmpfs", parse_tmpfs },
	{ "tty", 't', ARGS_FLAG, ARG(req.tty), NULL, "give it a terminal", NULL },
	{ "unpack-max", 0, ARGS_SIZE, ARG(req.unpack_max), "SIZE",
			"largest unpacked size of an image (default 64g)", NULL },
	{ "user", 'u', ARGS_STRING, ARG(user), "USER[:GROUP]",
			"user and group instead of the image's", NULL },
	{ "volume", 'v', ARGS_CALLBACK, 0, "SRC:DST[:ro]",
			"mount a directory or file of this machine", parse_volume },
	{ "workdir", 'w', ARGS_STRING, ARG(workdir), "DIR",
			"working directory instead of the image's", NULL },
	{ .name = NULL },
};

/* A key alone has an empty value. */
static int labels_add(struct run_args *a, struct error *e)
{
	strv_for_each(&a->labels, i) {
		const char *label = a->labels.v[i];

		if (strv_addf(&a->req.labels, strchr(label, '=') ? "%s" : "%s=", label) < 0) {
			return error_set(e, ERRC_LIMIT, "too many labels");
		}
	}
	return 0;
}

static int env_add(struct run_args *a, struct error *e)
{
	strv_for_each(&a->env_files, i) {
		if (request_add_env_file(&a->req, a->env_files.v[i], e) < 0) {
			return error_wrap(e, "option --env-file");
		}
	}
	/* As with docker, a variable of the command line wins wherever it stands. */
	strv_for_each(&a->env, i) {
		if (request_add_env(&a->req, a->env.v[i], e) < 0) {
			return error_wrap(e, "option --env");
		}
	}
	return 0;
}

/* One pass over a list: only "all", or only the others. */
static int caps_change(struct run_args *a, bool add, bool all, struct error *e)
{
	const struct strv *list = add ? &a->cap_add : &a->cap_drop;

	strv_for_each(list, i) {
		if ((strcasecmp(list->v[i], "all") == 0) == all &&
				request_change_cap(&a->req, list->v[i], add, e) < 0) {
			return error_wrap(e, "option --cap-%s", add ? "add" : "drop");
		}
	}
	return 0;
}

/* ALL first, so that "--cap-add net_raw --cap-drop ALL" leaves that one, in any order. */
static int caps_add(struct run_args *a, struct error *e)
{
	return caps_change(a, true, true, e) < 0 || caps_change(a, false, true, e) < 0 ||
					       caps_change(a, true, false, e) < 0 ||
					       caps_change(a, false, false, e) < 0
			       ? -1
			       : 0;
}

/* IMAGE [--] [COMMAND...] */
static int command_add(struct run_args *a, char *const *operands, struct error *e)
{
	a->req.image = mem_strdup(operands[0]);
	operands++;
	if (operands[0] && str_eq(operands[0], "--")) {
		operands++;
	}
	return strv_add_all(&a->req.command, operands) < 0
			       ? error_set(e, ERRC_LIMIT, "more than %d arguments", LIMIT_ARGS)
			       : 0;
}

static int tty_check(const struct run_args *a, struct error *e)
{
	if (a->req.tty && a->req.interactive && !a->req.detach && isatty(STDIN_FILENO) != 1) {
		(void)error_set(e, ERRC_INVALID, "option --tty: standard input is not a terminal");
		return error_hint(e, "leave out -t, or -i if nothing is to be typed");
	}
	return 0;
}

/* Found out only when the command has run, it would cost the command's status. */
static int input_check(const struct run_args *a, struct error *e)
{
	struct stat st;
	int flags = fcntl(STDIN_FILENO, F_GETFL);

	if (!a->req.interactive || a->req.detach) {
		return 0;
	}
	if (flags < 0 || fstat(STDIN_FILENO, &st) < 0) {
		return error_sys(e, errno, "standard input");
	}
	if (S_ISDIR(st.st_mode)) {
		return error_set(e, ERRC_INVALID,
				"option --interactive: standard input is a directory");
	}
	if ((flags & O_ACCMODE) == O_WRONLY || (flags & O_PATH)) {
		return error_set(e, ERRC_INVALID,
				"option --interactive: standard input is not open for reading");
	}
	return 0;
}

/* A policy means the network that enforces it; without one the configuration has a say. What is
 * refused is told to whom it says. */
static int network_choose(struct run_args *a, struct error *e)
{
	AUTO(config) struct config c = { .unpack_max = 0 };

	if (a->has_network && a->req.network != SPEC_NETWORK_PRIVATE) {
		return 0;
	}
	config_init(&c);
	if (config_load(&c, e) < 0) {
		return -1;
	}
	if (a->req.has_policy || a->req.any_name) {
		a->req.network = SPEC_NETWORK_PRIVATE;
	} else if (!a->has_network) {
		a->req.network = c.network;
	}
	a->req.deny_webhook = TAKE_PTR(c.deny_webhook);
	return 0;
}

static int args_to_request(struct run_args *a, char *const *operands, struct error *e)
{
	struct sandbox_request *r = &a->req;

	r->entrypoint = mem_strdup(a->entrypoint);
	r->hostname = mem_strdup(a->hostname);
	r->name = mem_strdup(a->name);
	r->platform = mem_strdup(a->platform);
	r->seccomp = mem_strdup(a->seccomp);
	r->user = mem_strdup(a->user);
	r->workdir = mem_strdup(a->workdir);
	if (command_add(a, operands, e) < 0 || env_add(a, e) < 0 || labels_add(a, e) < 0 ||
			caps_add(a, e) < 0 || network_choose(a, e) < 0 ||
			request_validate(r, e) < 0) {
		return -1;
	}
	return input_check(a, e) < 0 ? -1 : tty_check(a, e);
}

static void bars_end(void *ctx)
{
	struct progress **bars = ctx;

	progress_free(TAKE_PTR(*bars));
}

static int run_detached(const struct run_args *args, struct error *e)
{
	AUTO(buf) struct buf out = BUF_INIT(LIMIT_PATH_BYTES);
	const struct sandbox_start_opts opts = {
		.err_fd = args->quiet ? -1 : STDERR_FILENO,
		.wait_ms = -1,
	};
	struct id id;
	bool pending = false;

	if (sandbox_start(&args->req, &opts, &id, &pending, e) < 0) {
		doctor_explain(e);
		return cli_fail(e);
	}
	return buf_appendf(&out, "%s\n", id.text) < 0 ? 125 : cli_print(&out);
}

static int run_run(int argc, char **argv)
{
	struct error e = ERROR_INIT;
	AUTO(run_args) struct run_args args = { .quiet = false };
	char **operands = NULL;

	request_init(&args.req);
	int r = args_parse(&cmd_run, argc, argv, &args, &operands, &e);

	if (r != 0) {
		return r < 0 ? cli_fail(&e) : 0;
	}
	if (args_to_request(&args, operands, &e) < 0) {
		return cli_fail(&e);
	}
	if (args.req.detach) {
		return run_detached(&args, &e);
	}
	AUTO(progress) struct progress *bars = progress_new(args.quiet);
	AUTO(sandbox_end) struct sandbox_end end = { .kept = NULL };
	const struct sandbox_opts opts = {
		.in_fd = STDIN_FILENO,
		.out_fd = STDOUT_FILENO,
		.err_fd = STDERR_FILENO,
		.progress = progress_callbacks(bars),
		.on_image = bars_end,
		.ctx = &bars,
	};

	if (sandbox_run(&args.req, &opts, &end, &e) < 0) {
		progress_free(TAKE_PTR(bars));
		doctor_explain(&e);
		return cli_fail(&e);
	}
	if (end.expired) {
		log_warn("the sandbox was stopped: its time was over");
	}
	if (end.oom) {
		char size[32];

		str_from_size(args.req.limits.memory_bytes, size, sizeof(size));
		log_warn("the command was killed: it needed more memory than its limit of %s",
				size);
	}
	if (end.denied > 0 && !args.quiet) {
		char more[32] = "";

		if (end.denied > 1) {
			(void)snprintf(more, sizeof(more), " and %" PRIu64 " more", end.denied - 1);
		}
		log_warn("the network policy refused %s%s (osbx-policy(5); --allow NAME or "
			 "ADDRESS allows it)",
				end.denied_last, more);
	}
	if (end.kept && !args.quiet) {
		log_set_level(LOG_LEVEL_INFO);
		log_info("kept in %s", end.kept);
	}
	return end.status;
}

const struct args_command cmd_run = {
	.name = "run",
	.synopsis = "[options] IMAGE [--] [COMMAND [ARG...]]",
	.summary = "run a command in a new sandbox; its exit status is the command's",
	.options = run_options,
	.stop_at_operand = true,
	.operands_min = 1,
	.operands_max = -1,
	.run = run_run,
};
