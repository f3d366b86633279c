/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/guess.h>
#include <osbx/log.h>
#include <osbx/mem.h>
#include <osbx/program.h>
#include <osbx/str.h>

#include "cli.h"

const struct args_command *const cli_commands[] = {
	&cmd_run,
	&cmd_exec,
	&cmd_code,
	&cmd_cp,
	&cmd_ps,
	&cmd_inspect,
	&cmd_port,
	&cmd_logs,
	&cmd_events,
	&cmd_stats,
	&cmd_wait,
	&cmd_stop,
	&cmd_kill,
	&cmd_rm,
	&cmd_pause,
	&cmd_resume,
	&cmd_renew,
	&cmd_policy,
	&cmd_pull,
	&cmd_load,
	&cmd_save,
	&cmd_images,
	&cmd_tag,
	&cmd_rmi,
	&cmd_login,
	&cmd_logout,
	&cmd_serve,
	&cmd_gc,
	&cmd_doctor,
	&cmd_version,
	&cmd_completion,
	&cmd_keeper,
	&cmd_unpack,
	&cmd_fetch,
	&cmd_notify,
	&cmd_scope,
	&cmd_netd,
};
const size_t cli_commands_n = ARRAY_SIZE(cli_commands);

static int usage(int fd)
{
	AUTO(buf) struct buf text = BUF_INIT(1U << 16);
	int r = buf_append_str(&text,
			"usage: osbx COMMAND [options] [arguments]\n\n"
			"Runs OCI images as isolated processes: no daemon, no root.\n\n"
			"commands:\n");

	for (size_t i = 0; r == 0 && i < cli_commands_n; i++) {
		if (!cli_commands[i]->hidden) {
			r = buf_appendf(&text, "  %-10s %s\n", cli_commands[i]->name,
					cli_commands[i]->summary);
		}
	}
	if (r == 0) {
		r = buf_append_str(&text, "\nosbx COMMAND --help shows the options of a command; "
					  "osbx(1) has the manual.\n");
	}
	struct span s = buf_span(&text);
	return r == 0 ? fd_write_all(fd, s.p, s.n) : r;
}

static int unknown_command(const char *name)
{
	struct error e = ERROR_INIT;
	struct guess g = GUESS_INIT(span_of(name));

	(void)error_set(&e, ERRC_INVALID, "unknown command %s", name);
	for (size_t i = 0; i < cli_commands_n; i++) {
		if (!cli_commands[i]->hidden) {
			guess_add(&g, cli_commands[i]->name);
		}
	}
	if (g.best) {
		(void)error_hint(&e, "did you mean osbx %s?", g.best);
	} else {
		(void)error_hint(&e, "osbx --help lists the commands");
	}
	return cli_fail(&e);
}

int main(int argc, char **argv)
{
	struct error e = ERROR_INIT;

	program_begin(argv);
	if (cli_begin(&e) < 0) {
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
		return cli_version_print();
	}
	for (size_t i = 0; i < cli_commands_n; i++) {
		if (str_eq(argv[1], cli_commands[i]->name)) {
			return cli_commands[i]->run(argc - 1, argv + 1);
		}
	}
	return unknown_command(argv[1]);
}
