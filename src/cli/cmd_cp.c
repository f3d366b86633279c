/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <osbx/ctl.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "cli.h"

struct cp_args {
	bool archive;
	bool follow;
	bool quiet;
	const char *user;
};

#define ARG(member) offsetof(struct cp_args, member)

static const struct args_option cp_options[] = {
	{ "archive", 'a', ARGS_FLAG, ARG(archive), NULL,
			"keep owners (numbers) and all of the mode", NULL },
	{ "follow-link", 'L', ARGS_FLAG, ARG(follow), NULL,
			"of a source that is a link, copy what it leads to", NULL },
	{ "quiet", 'q', ARGS_FLAG, ARG(quiet), NULL, "do not tell what was left out", NULL },
	{ "user", 'u', ARGS_STRING, ARG(user), "USER[:GROUP]",
			"user in the sandbox instead of its own", NULL },
	{ .name = NULL },
};

/* SANDBOX:PATH. NULL: it is a path here, or "-"; a colon behind a slash is part of a name. */
static const char *path_inside(const char *operand, char **out_sandbox)
{
	size_t n = strcspn(operand, ":/");

	if (operand[n] != ':' || n == 0 || operand[0] == '.') {
		return NULL;
	}
	*out_sandbox = mem_dup(operand, n);
	return operand + n + 1;
}

static int outside_set(struct sandbox_copy *copy, const char *operand, struct error *e)
{
	if (operand[0] == '\0') {
		return error_set(e, ERRC_INVALID, "the path is an empty string");
	}
	if (!str_eq(operand, "-")) {
		copy->outside = operand;
		return 0;
	}
	copy->stream_fd = copy->in ? STDIN_FILENO : STDOUT_FILENO;
	if (isatty(copy->stream_fd) == 1) {
		(void)error_set(e, ERRC_INVALID, "\"-\": standard %s is a terminal",
				copy->in ? "input" : "output");
		return error_hint(e, "\"-\" stands for a tar archive: redirect it");
	}
	return 0;
}

static int operands_parse(char *const *operands, char **out_sandbox, struct sandbox_copy *copy,
		struct error *e)
{
	autofree char *from_sandbox = NULL;
	autofree char *to_sandbox = NULL;
	const char *from = path_inside(operands[0], &from_sandbox);
	const char *to = path_inside(operands[1], &to_sandbox);

	if (!from == !to) {
		(void)error_set(e, ERRC_INVALID, "%s of the two paths is in a sandbox",
				from ? "each" : "none");
		(void)error_hint(e, "%s",
				from ? "osbx cp A:PATH - | osbx cp - B:DIRECTORY"
				     : "that one is written SANDBOX:PATH");
		return -1;
	}
	copy->in = to != NULL;
	copy->inside = to ? to : from;
	if (copy->inside[0] == '\0') {
		return error_set(e, ERRC_INVALID, "the path in the sandbox is an empty string");
	}
	*out_sandbox = to ? TAKE_PTR(to_sandbox) : TAKE_PTR(from_sandbox);
	return outside_set(copy, operands[to ? 0 : 1], e);
}

static int cp_main(const struct cp_args *a, char *const *operands, struct error *e)
{
	AUTO(dirs) struct dirs dirs = DIRS_INIT;
	AUTO(sandbox_info) struct sandbox_info info = { .is_kept = false };
	autofree char *sandbox = NULL;
	struct sandbox_copy copy = {
		.user = a->user,
		.archive = a->archive,
		.follow = a->follow,
	};
	uint64_t left_out = 0;

	if (operands_parse(operands, &sandbox, &copy, e) < 0) {
		return -1;
	}
	assert(sandbox);
	if (dirs_open(&dirs, e) < 0 || sandbox_find(&dirs, sandbox, &info, e) < 0 ||
			sandbox_copy(&dirs, &info.state.id, &copy, &left_out, e) < 0) {
		return -1;
	}
	if (left_out > 0 && !a->quiet) {
		(void)fprintf(stderr,
				"osbx: left out: %llu devices, FIFOs, sockets or file systems of "
				"the kernel\n",
				(unsigned long long)left_out);
	}
	return 0;
}

static int cp_run(int argc, char **argv)
{
	struct error e = ERROR_INIT;
	struct cp_args args = { .archive = false };
	char **operands = NULL;
	int r = args_parse(&cmd_cp, argc, argv, &args, &operands, &e);

	if (r != 0) {
		return r < 0 ? cli_fail(&e) : 0;
	}
	return cp_main(&args, operands, &e) < 0 ? cli_fail(&e) : 0;
}

const struct args_command cmd_cp = {
	.name = "cp",
	.synopsis = "[options] SANDBOX:PATH PATH|- | PATH|- SANDBOX:PATH",
	.summary = "copy files between this machine and a running sandbox",
	.options = cp_options,
	.operands_min = 2,
	.operands_max = 2,
	.run = cp_run,
};
