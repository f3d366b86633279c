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
#include <osbx/id.h>
#include <osbx/idmap.h>
#include <osbx/image.h>
#include <osbx/registry.h>
#include <osbx/request.h>
#include <osbx/store.h>

/* error.api_code of a sandbox whose image could not be had. */
#define SANDBOX_ERROR_IMAGE 1

struct sandbox_opts {
	int in_fd; /* the caller's standard descriptors, borrowed */
	int out_fd;
	int err_fd;
	const struct image_progress *progress; /* or NULL */
	/* The image is there and unpacked; NULL allowed. */
	void (*on_image)(void *ctx);
	/* A phase begins; NULL allowed. The name is constant. */
	void (*on_phase)(void *ctx, const char *name);
	/* The image has to be pulled first: the record says so, and the sandbox can be found. NULL
	 * allowed. */
	int (*on_pending)(void *ctx, const struct id *id, struct error *e);
	/* Does somebody know of a sandbox that was pending and has failed? Then its record stays.
	 * NULL: nobody does. */
	bool (*is_known)(void *ctx);
	/* For the pull, instead of those in credential files; NULL allowed. */
	const struct credential *credential;
	/* A detached sandbox's main process runs, and so says its record. Failure ends it; NULL
	 * allowed. */
	int (*on_running)(void *ctx, const struct id *id, struct error *e);
	void *ctx;
};

struct sandbox_end {
	int status;        /* of the main process: exit code, or 128 + signal */
	bool expired;      /* its timeout ended it */
	bool oom;          /* the kernel ended it: its memory limit was reached */
	char *kept;        /* directory of a sandbox that is kept, else NULL */
	uint64_t denied;   /* how often its network policy refused something */
	char *denied_last; /* "other.test", "203.0.113.1 port 443"; NULL: nothing */
};

void sandbox_end_done(struct sandbox_end *end);
AUTO_DEFINE(sandbox_end, struct sandbox_end, sandbox_end_done);
/* Make a sandbox, run its main process, and remove it again: this process is its keeper. The
 * request is valid. In the foreground the main process has the caller's terminal or pipes; detached
 * its output goes to the log, and when it has ended its record stays. Fails when osbx failed or the
 * command could not be started; then nothing is left either. */
int sandbox_run(const struct sandbox_request *req, const struct sandbox_opts *opts,
		struct sandbox_end *out_end, struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);

struct sandbox_start_opts {
	int err_fd; /* progress of the image is written there; -1: nowhere */
	const struct credential *credential; /* for a pull; goes to the keeper's memory alone */
	/* When an image is still being pulled after so long, leave the sandbox pending: it goes on
	 * by itself, and when it fails its record says why. -1: wait for ever. */
	int64_t wait_ms;
};

/* Give a request to a keeper of its own (the hidden command keeper, which calls sandbox_keep) and
 * wait until its main process runs, or is left pending. When this process ends before, so does the
 * keeper, or nothing is left when its pull has ended. */
int sandbox_start(const struct sandbox_request *req, const struct sandbox_start_opts *opts,
		struct id *out_id, bool *out_pending, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3, 4, 5);

struct sandbox_keep_opts {
	const struct image_progress *progress; /* or NULL */
	void (*on_image)(void *ctx);           /* as in sandbox_opts */
	void *ctx;
};

/* The other end of sandbox_start: take the request from the descriptors that were given, and be its
 * keeper until the sandbox has ended. Whatever fails is told there, and only what fails later here.
 */
int sandbox_keep(const struct sandbox_keep_opts *opts, struct error *e) MUST_CHECK NONNULL(1, 2);

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

/* Look at a few sandboxes beside the own one and remove those whose keeper is gone: cheap, never an
 * error. random chooses which, where there are many. */
void sandbox_glance(const struct dirs *dirs, const struct idmap *map, uint32_t random)
		NONNULL(1, 2);

/* The hidden command "scope": asks systemd for a scope (scope.h). Exit status. */
int sandbox_scope_main(int argc, char **argv) NONNULL(2);

#endif
