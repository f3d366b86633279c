/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: engine
 * sandbox - a whole life in the foreground, and what clears up behind lives that were cut short.
 */
#ifndef OSBX_SANDBOX_H
#define OSBX_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/dirs.h>
#include <osbx/error.h>
#include <osbx/idmap.h>
#include <osbx/image.h>
#include <osbx/request.h>
#include <osbx/store.h>

struct sandbox_opts {
	int in_fd; /* the caller's standard descriptors, borrowed */
	int out_fd;
	int err_fd;
	const struct image_progress *progress; /* or NULL */
	/* The image is there and unpacked; NULL allowed. */
	void (*on_image)(void *ctx);
	/* A phase begins; NULL allowed. The name is constant. */
	void (*on_phase)(void *ctx, const char *name);
	void *ctx;
};

struct sandbox_end {
	int status; /* of the main process: exit code, or 128 + signal */
	char *kept; /* directory of a sandbox that is kept, else NULL */
};

void sandbox_end_done(struct sandbox_end *end);
AUTO_DEFINE(sandbox_end, struct sandbox_end, sandbox_end_done);
/* Make a sandbox, run its main process with the caller's terminal or pipes, and remove it again:
 * this process is its keeper. The request is valid. Fails when osbx failed or the command could
 * not be started; then nothing is left either. */
int sandbox_run(const struct sandbox_request *req, const struct sandbox_opts *opts,
		struct sandbox_end *out_end, struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);

struct sandbox_gc_opts {
	bool dry_run; /* only count */
	bool kept;    /* also those that were kept on purpose and have ended */
};

struct sandbox_gc_result {
	uint64_t sandboxes;           /* left behind by keepers that are gone */
	uint64_t kept;                /* kept ones that were removed */
	uint64_t names;               /* names and id ranges of sandboxes that are gone */
	uint64_t failed;              /* could not be removed yet */
	struct store_gc_result store; /* content that neither image nor sandbox refers to */
};

/* Remove what is left of sandboxes whose keeper is gone (their processes too), then the content of
 * the store that nothing refers to. Holds the store exclusively meanwhile: waits for commands that
 * load or start an image. */
int sandbox_gc(const struct dirs *dirs, struct store *st, const struct idmap *map,
		const struct sandbox_gc_opts *opts, struct sandbox_gc_result *out_result,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4, 5, 6);

#endif
