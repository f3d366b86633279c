/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout - images that somebody hands over: an OCI layout, or an archive unpacked into a staging
 * and brought into that form. Nothing in it is believed: paths are resolved beneath its directory,
 * bytes are verified before use.
 */
#ifndef OSBX_OCI_LAYOUT_H
#define OSBX_OCI_LAYOUT_H

#include <stdbool.h>

#include <osbx/buf.h>
#include <osbx/image.h>
#include <osbx/limits.h>
#include <osbx/ref.h>
#include <osbx/store.h>
#include <osbx/strv.h>

#include "manifest.h"
#include "platform.h"
#include "pull_signals.h"
#include "store_internal.h"
#include "unpack.h"

/* A source that is somewhere else (pull_source.c). */
struct blob_remote {
	/* Append the bytes of a document, not more than out_text takes; the caller verifies. */
	int (*read)(void *ctx, const struct descriptor *d, struct buf *out_text, struct error *e);
	/* Begin to bring the blob of layer i: a pipe that its bytes come by. fd, or -1. */
	int (*open)(void *ctx, size_t i, const struct image_layer *layer, struct error *e);
	/* The unpacker failed at layer i: replace its error by the cause if that is the blob. */
	void (*blame)(void *ctx, size_t i, struct error *e);
	/* The blob was verified: make it one of the store's. */
	int (*publish)(void *ctx, size_t i, struct error *e);
	struct unpack_feed feed;
	void *ctx;
};

/* Where blobs come from that the store does not have. */
struct blob_source {
	int dir_fd;                       /* holds blobs/sha256/HEX; -1: the store alone */
	bool is_ours;                     /* staged by us: its files may be moved */
	const struct blob_remote *remote; /* instead of a directory; or NULL */
};

#define BLOB_SOURCE_NONE     \
	{                    \
		.dir_fd = -1 \
	}

/* Open a blob of the source: a regular file of this size, beneath the directory. is_file is true
 * when the name is the file itself, false when a link led to it. fd, or -1. */
int blob_source_open(const struct blob_source *src, const struct digest *d, uint64_t size,
		bool *out_is_file, struct error *e) MUST_CHECK NONNULL(1, 2, 4, 5);
/* Read a document: from the store, else from the source, verified. out_stored says which. */
int blob_read(const struct store *st, const struct blob_source *src, const struct descriptor *d,
		struct buf *out_text, bool *out_stored, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3, 4, 5, 6);

/* One image of a layout; several candidates are builds for several platforms. */
struct layout_image {
	char *tag;         /* ref.name as it stands there; NULL if none */
	char *alias;       /* the full name beside it; NULL if none */
	struct strv names; /* full names to store it under; may be empty */
	struct descriptors candidates;
};

struct layout {
	int dir_fd;
	bool is_ours;
	char *label; /* "oci:DIR" */
	struct staging staging;
	struct pull_signals signals; /* put off until the staging is removed */
	struct layout_image *images;
	size_t images_n;
};

#define LAYOUT_INIT                                   \
	{                                             \
		.dir_fd = -1, .staging = STAGING_INIT \
	}

/* The full name that text stands for, or NULL if it cannot be one of the store. Caller frees. */
char *layout_full_name(const char *text) NONNULL(1) MUST_CHECK;
void layout_done(struct layout *l);
AUTO_DEFINE(layout, struct layout, layout_done);
/* Open what ref (REF_OCI, REF_OCI_ARCHIVE, REF_DOCKER_ARCHIVE) names and list its images; archives
 * are unpacked, at most max bytes. */
int layout_open(struct store *st, const struct ref *ref, uint64_t max, struct layout *out_layout,
		struct error *e) MUST_CHECK NONNULL(1, 2, 4, 5);
/* Index of the image that ref names, or of the only one. ERRC_NOT_FOUND, ERRC_INVALID (several),
 * with the tags that are there. */
int layout_pick(const struct layout *l, const struct ref *ref, size_t *out_i,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
/* A new image at the end of the list. */
struct layout_image *layout_add(struct layout *l) NONNULL(1) MUST_CHECK;
/* Read index.json of the directory into images: all, or those that ref names (oci_layout.c). */
int oci_layout_read(struct layout *l, const struct ref *ref, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* Bring an unpacked archive of docker save into the form of a layout (docker_archive.c). */
int docker_archive_read(struct layout *l, struct error *e) MUST_CHECK NONNULL(1, 2);

/* The manifest for a platform among candidates, through nested indexes. */
struct found {
	struct descriptor manifest;
	struct descriptor index; /* the candidate it was found in; media_type NULL: it is one itself
				  */
	struct buf index_text;
	bool index_stored;
};

#define FOUND_INIT                                           \
	{                                                    \
		.index_text = BUF_INIT(LIMIT_MANIFEST_BYTES) \
	}

void found_done(struct found *f);
AUTO_DEFINE(found, struct found, found_done);
/* ERRC_UNSUPPORTED lists the platforms there are. */
int manifest_find(const struct store *st, const struct blob_source *src,
		const struct descriptors *candidates, const struct platform_wish *wish,
		struct found *out_found, struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4, 5, 6);

#endif
