/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/image.h>
#include <osbx/notify.h>
#include <osbx/registry.h>
#include <osbx/sandbox.h>
#include <osbx/secfilter.h>

#include "cli.h"

static const struct args_option hidden_options[] = { { .name = NULL } };

/* Policy and oci do not know each other. */
static int unpack_run(int argc, char **argv)
{
	struct secfilter filter = { .n = 0 };

	secfilter_builtin(SECFILTER_UNPACK, &filter);
	unpack_set_filter(filter.insns, filter.n);
	return unpack_main(argc, argv);
}

/* Started by oci/unpack.c with descriptors, never by a person. */
const struct args_command cmd_unpack = {
	.name = "unpack",
	.synopsis = "",
	.summary = "",
	.options = hidden_options,
	.run = unpack_run,
	.hidden = true,
};

static int fetch_run(int argc, char **argv)
{
	struct secfilter filter = { .n = 0 };

	secfilter_builtin(SECFILTER_FETCH, &filter);
	fetch_set_filter(filter.insns, filter.n);
	return fetch_main(argc, argv);
}

/* Started by oci/fetch.c, likewise. */
const struct args_command cmd_fetch = {
	.name = "fetch",
	.synopsis = "",
	.summary = "",
	.options = hidden_options,
	.run = fetch_run,
	.hidden = true,
};

static int notify_run(int argc, char **argv)
{
	struct secfilter filter = { .n = 0 };

	secfilter_builtin(SECFILTER_FETCH, &filter);
	notify_set_filter(filter.insns, filter.n);
	return notify_main(argc, argv);
}

/* Started by engine/deny_hook.c, likewise. */
const struct args_command cmd_notify = {
	.name = "notify",
	.synopsis = "",
	.summary = "",
	.options = hidden_options,
	.run = notify_run,
	.hidden = true,
};

/* Started by runtime/scope.c, likewise. */
const struct args_command cmd_scope = {
	.name = "scope",
	.synopsis = "",
	.summary = "",
	.options = hidden_options,
	.run = sandbox_scope_main,
	.hidden = true,
};
