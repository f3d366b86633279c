/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/sandbox.h>

#include "cli.h"
#include "progress.h"

static const struct args_option keeper_options[] = { { .name = NULL } };

static void bars_end(void *ctx)
{
	struct progress **bars = ctx;

	progress_free(TAKE_PTR(*bars));
}

static int keeper_run(int argc, char **argv)
{
	AUTO(progress) struct progress *bars = progress_new(false);
	const struct sandbox_keep_opts opts = {
		.progress = progress_callbacks(bars),
		.on_image = bars_end,
		.ctx = &bars,
	};
	struct error e = ERROR_INIT;

	(void)argc;
	(void)argv;
	return sandbox_keep(&opts, &e) < 0 ? cli_fail(&e) : 0;
}

/* Started by engine/detach.c with descriptors, never by a person. */
const struct args_command cmd_keeper = {
	.name = "keeper",
	.synopsis = "",
	.summary = "",
	.options = keeper_options,
	.run = keeper_run,
	.hidden = true,
};
