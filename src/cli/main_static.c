/* SPDX-License-Identifier: Apache-2.0 */
/* The static program (osbx/program.h): its own commands are those that must be fast. */
#include <osbx/program.h>
#include <osbx/str.h>

#include "cli.h"

static const struct args_command *const own_commands[] = {
	&cmd_run,
	&cmd_keeper,
	&cmd_netd,
	&cmd_exec,
	&cmd_cp,
	&cmd_rm,
	&cmd_stop,
	&cmd_kill,
	&cmd_pause,
	&cmd_resume,
	&cmd_serve,
};

int main(int argc, char **argv)
{
	struct error e = ERROR_INIT;

	if (argc < 1) {
		return error_exit_status(ERRC_INVALID);
	}
	program_begin(argv);
	if (cli_begin(&e) < 0) {
		return cli_fail(&e);
	}
	for (size_t i = 0; i < ARRAY_SIZE(own_commands) && argc > 1; i++) {
		if (str_eq(argv[1], own_commands[i]->name)) {
			return own_commands[i]->run(argc - 1, argv + 1);
		}
	}
	/* Does not return. */
	return program_full(&e) < 0 ? cli_fail(&e) : error_exit_status(ERRC_INTERNAL);
}
