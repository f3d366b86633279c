/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/netd.h>

#include "cli.h"

static const struct args_option netd_options[] = { { .name = NULL } };

/* Started by engine/keeper_net.c with a descriptor, never by a person. */
const struct args_command cmd_netd = {
	.name = "netd",
	.synopsis = "",
	.summary = "",
	.options = netd_options,
	.run = netd_main,
	.hidden = true,
};
