/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"

int cli_version_print(void)
{
	AUTO(buf) struct buf text = BUF_INIT(256);

	return buf_append_str(&text, "osbx " OSBX_VERSION "\n") < 0 ? 125 : cli_print(&text);
}

static const struct args_option version_options[] = { { .name = NULL } };

static int version_run(int argc, char **argv)
{
	struct error e = ERROR_INIT;
	char **operands = NULL;
	int none = 0;
	int r = args_parse(&cmd_version, argc, argv, &none, &operands, &e);

	if (r != 0) {
		return r < 0 ? cli_fail(&e) : 0;
	}
	return cli_version_print();
}

const struct args_command cmd_version = {
	.name = "version",
	.synopsis = "",
	.summary = "print the version",
	.options = version_options,
	.run = version_run,
};
