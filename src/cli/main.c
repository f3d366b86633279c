/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/log.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "cli.h"

static const struct args_command *const commands[] = {
	&cmd_run,
	&cmd_load,
	&cmd_save,
	&cmd_images,
	&cmd_tag,
	&cmd_rmi,
	&cmd_gc,
	&cmd_version,
	&cmd_unpack,
};

static int usage(int fd)
{
	AUTO(buf) struct buf text = BUF_INIT(1U << 16);
	int r = buf_append_str(&text,
			"usage: osbx COMMAND [options] [arguments]\n\n"
			"Runs OCI images as isolated processes: no daemon, no root.\n\n"
			"commands:\n");

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(commands); i++) {
		if (!commands[i]->hidden) {
			r = buf_appendf(&text, "  %-10s %s\n", commands[i]->name,
					commands[i]->summary);
		}
	}
	if (r == 0) {
		r = buf_append_str(&text, "\nosbx COMMAND --help shows the options of a command; "
					  "osbx(1) has the manual.\n");
	}
	struct span s = buf_span(&text);
	return r == 0 ? fd_write_all(fd, s.p, s.n) : r;
}

/* Edit distance small enough to be a slip: one letter added, lost, changed or swapped. */
static bool is_slip(const char *typed, const char *name)
{
	size_t a = strlen(typed);
	size_t b = strlen(name);
	size_t head = 0;
	size_t tail = 0;

	while (head < a && head < b && typed[head] == name[head]) {
		head++;
	}
	while (tail < a - head && tail < b - head && typed[a - 1 - tail] == name[b - 1 - tail]) {
		tail++;
	}
	size_t rest_a = a - head - tail;
	size_t rest_b = b - head - tail;

	if (rest_a == 2 && rest_b == 2) {
		return typed[head] == name[head + 1] && typed[head + 1] == name[head];
	}
	return rest_a <= 1 && rest_b <= 1;
}

static int unknown_command(const char *name)
{
	struct error e = ERROR_INIT;

	(void)error_set(&e, ERRC_INVALID, "%s: unknown command", name);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (!commands[i]->hidden && is_slip(name, commands[i]->name)) {
			(void)error_hint(&e, "did you mean osbx %s?", commands[i]->name);
		}
	}
	if (e.hint[0] == '\0') {
		(void)error_hint(&e, "osbx --help lists the commands");
	}
	return cli_fail(&e);
}

static int version_run(int argc, char **argv)
{
	struct error e = ERROR_INIT;
	char **operands = NULL;
	int none = 0;
	int r = args_parse(&cmd_version, argc, argv, &none, &operands, &e);

	if (r != 0) {
		return r < 0 ? cli_fail(&e) : 0;
	}
	AUTO(buf) struct buf text = BUF_INIT(256);

	return buf_append_str(&text, "osbx " OSBX_VERSION "\n") < 0 ? 125 : cli_print(&text);
}

static const struct args_option no_options[] = { { .name = NULL } };

const struct args_command cmd_version = {
	.name = "version",
	.synopsis = "",
	.summary = "print the version",
	.options = no_options,
	.run = version_run,
};

static int start_checks(struct error *e)
{
	int r = fd_sanitize();

	if (r < 0) {
		return error_sys(e, -r, "standard descriptors");
	}
	/* CVE-2020-5291: never act with rights that the caller has not. */
	if (geteuid() != getuid() || getegid() != getgid()) {
		(void)error_set(e, ERRC_DENIED, "osbx is installed set-user-ID or set-group-ID");
		return error_hint(e, "chmod ug-s the program; osbx needs no privileges");
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct error e = ERROR_INIT;

	if (start_checks(&e) < 0) {
		return cli_fail(&e);
	}
	if (argc < 2) {
		(void)usage(STDERR_FILENO);
		return error_exit_status(ERRC_INVALID);
	}
	if (str_eq(argv[1], "--help") || str_eq(argv[1], "-h") || str_eq(argv[1], "help")) {
		return usage(STDOUT_FILENO) < 0 ? error_exit_status(ERRC_SYSTEM) : 0;
	}
	if (str_eq(argv[1], "--version")) {
		return version_run(1, argv + 1);
	}
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (str_eq(argv[1], commands[i]->name)) {
			return commands[i]->run(argc - 1, argv + 1);
		}
	}
	return unknown_command(argv[1]);
}
