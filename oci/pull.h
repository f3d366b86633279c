/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pull - an image on its way from a registry into the store.
 *
 * Theory of operation. The documents are fetched one after another; then image_import asks for the
 * blob of each layer that is missing, and each becomes a download:
 *
 *   WAITING ──▶ RUNNING ──▶ WHOLE ──▶ DONE
 *      ▲           │
 *      └ somebody  └──▶ FAILED
 *        else downloads it
 *
 * The bytes are appended by the fetch helper to ROOT/partial/HEX and sent from there through a pipe
 * to the helper that hashes, inflates and unpacks. The lock of a part file says "I append to it":
 * it is given up as soon as the file is whole, long before the image is complete. So a pull waits
 * only for bytes to arrive, never for what another one does with them, and no circle of pulls that
 * wait for each other can come about. Whoever gets the lock next finds the whole file and reads it
 * instead of the network; everybody verifies what he reads.
 *
 * A part file becomes the blob by a rename, after the digest was found right and the store was
 * synced. It is removed when its digest is wrong. In all other cases it stays, and the next pull
 * asks for the rest; gc removes it after a day.
 */
#ifndef OSBX_OCI_PULL_H
#define OSBX_OCI_PULL_H

#include <osbx/limits.h>
#include <osbx/registry.h>

#include "fetch.h"
#include "layout.h"

/* A file of ROOT/partial. */
struct part {
	int fd; /* also the lock's; -1: none */
	bool is_locked;
	bool is_blob; /* it is the store's already, open to be read */
};

#define PART_INIT        \
	{                \
		.fd = -1 \
	}

/* Descriptor of ROOT/partial, made if missing. fd or -errno. */
int part_dir_open(const struct store *st) MUST_CHECK NONNULL(1);
/* Open the part of a blob and lock it, or the blob itself if it has become one. -EWOULDBLOCK:
 * another process appends to it. 0 or -errno. */
int part_open(const struct store *st, int dir_fd, const struct image_layer *layer,
		struct part *out_part) MUST_CHECK NONNULL(1, 3, 4);
/* Close; the file stays. */
void part_close(struct part *p) NONNULL(1);
/* Bytes that it has. */
uint64_t part_size(const struct part *p) NONNULL(1);
/* Let others have it. */
void part_unlock(struct part *p) NONNULL(1);
/* It was verified: it becomes the blob, if another process has not done so. 0 or -errno. */
int part_publish(struct store *st, int dir_fd, const struct part *p,
		const struct digest *d) MUST_CHECK NONNULL(1, 3, 4);
/* Its bytes are wrong: remove it, unless another one has taken its place. */
void part_remove(int dir_fd, const struct part *p, const struct digest *d) NONNULL(2, 3);
/* Digest of its bytes. */
int part_digest(const struct part *p, struct digest *out_d, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);

enum download_stage {
	DOWNLOAD_NONE,
	DOWNLOAD_WAITING,
	DOWNLOAD_RUNNING,
	DOWNLOAD_WHOLE, /* all bytes are in the file */
	DOWNLOAD_DONE,  /* and went through the pipe */
	DOWNLOAD_FAILED,
	DOWNLOAD_STAGE_COUNT,
};

struct download {
	enum download_stage stage;
	const struct image_layer *layer;
	struct part part;
	int pipe_fd; /* its writing end, until the fetch helper has it */
	uint64_t done;
	uint64_t resumed; /* bytes that an earlier pull left */
	bool is_read;     /* its unpacker has begun */
	bool is_shared;   /* another process downloaded it, or some of it, meanwhile */
};

/* One attempt at one registry. */
struct pull {
	struct store *st;
	const struct ref *ref;
	char *label; /* "localhost:5000/name", for people */
	struct fetch *fetch;
	int partial_fd;
	struct descriptor top; /* what the tag or digest names */
	struct buf top_text;
	const struct image_progress *progress; /* the caller's, or NULL */
	struct image_progress own;             /* what is given to import: both in one */
	struct blob_remote remote;
	struct pull_signals signals;
	int64_t looked_ms; /* when locks were last tried */
	bool has_fetched;  /* something that the store did not have */
	bool may_repeat;   /* what an earlier pull left was wrong, and is gone */
	struct download downloads[LIMIT_LAYERS];
};

/* Make it ready; borrows all. */
void pull_init(struct pull *p, struct store *st, const struct ref *ref,
		const struct image_progress *progress) NONNULL(1, 2, 3);
void pull_done(struct pull *p);
AUTO_DEFINE(pull, struct pull, pull_done);
/* Fetch and verify the document that ref names into top and top_text (pull_source.c). */
int pull_top(struct pull *p, struct error *e) MUST_CHECK NONNULL(1, 2);
/* blob_remote.read (pull_source.c). */
int pull_read(void *ctx, const struct descriptor *d, struct buf *out_text,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
/* The other functions of blob_remote, and what import reports progress to (pull_layers.c). */
void pull_layers_init(struct pull *p) NONNULL(1);
void pull_layers_done(struct pull *p) NONNULL(1);

#endif
