/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandboxes - what the commands about sandboxes share (sandboxes.c).
 */
#ifndef OSBX_CLI_SANDBOXES_H
#define OSBX_CLI_SANDBOXES_H

#include <osbx/compiler.h>
#include <osbx/ctl.h>
#include <osbx/json.h>

/* A sandbox as ps and inspect write it; request is its request.json, or NULL; with dirs: where its
 * execution API listens. */
void sandbox_info_format(const struct sandbox_info *info, const struct json *request,
		const struct dirs *dirs, struct json_writer *w) NONNULL(1, 4);

/* Do one for each sandbox that is named: find it, do it, print its name as it was given (unless
 * quiet). All are tried. Exit status. */
struct each_opts {
	int (*run)(const struct dirs *dirs, const struct sandbox_info *info, void *ctx,
			struct error *e);
	void *ctx;
	bool quiet;
	bool missing_is_done; /* one that does not exist is no error */
};

int sandboxes_each(char *const *names, const struct each_opts *opts) NONNULL(1, 2);

#endif
