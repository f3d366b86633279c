/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack - turn layer blobs into directories of the store, and archives into a staging directory.
 *
 * Each layer is handled by a process of its own ("osbx unpack"): a throw-away user namespace of
 * the store's id mode, chroot in the layer's staging directory, four capabilities, syscall filter.
 * One pass: copy to the blob store, SHA-256, inflate, SHA-256, untar.
 */
#ifndef OSBX_OCI_UNPACK_H
#define OSBX_OCI_UNPACK_H

#include <osbx/image.h>

/* One layer to make present. Descriptors are borrowed. All layers of an image are passed, because
 * upper ones link into lower ones; a layer with present and no blob_fd needs nothing and is not
 * reported to progress (the caller did). */
struct unpack_layer {
	const struct image_layer *layer;
	int blob_fd;  /* the bytes: a regular file at its start, or a pipe; -1: nothing to read */
	int copy_fd;  /* -1, or an empty file of the store's staging that receives the same bytes */
	bool present; /* in: the directory CHAIN is there already, only verify and copy the blob */
	bool failed;  /* out: the error is about this layer */
};

/* Who brings the bytes of layers that come by pipe, in the same process as unpack_layers. */
struct unpack_feed {
	int fd; /* readable: there is news */
	/* There is, or a moment has passed. */
	int (*pump)(void *ctx, struct error *e);
	void *ctx;
};

struct unpack_opts {
	const struct idmap *map;
	uint64_t unpack_max;
	const struct image_progress *progress;
	const struct unpack_feed *feed; /* or NULL */
};

/* Verify (size, digest of the blob, diff id) and unpack all layers of one image, lowest first, in
 * parallel where there is more than one, and publish their directories under layers/MODE/. The
 * blobs written to copy_fd are verified but not published: that is the caller's rename. Before the
 * first directory is published, one syncfs(2) makes it and all that the caller staged before (the
 * copies too) durable. On failure nothing is published.
 *
 * The caller holds store_hold shared. Work stands in layers/MODE/.staging-RANDOM/, made by
 * staging_open (store_internal.h), whose file "lock" is held as long as its maker lives: gc removes
 * what nobody holds. */
int unpack_layers(struct store *st, const struct unpack_opts *opts, struct unpack_layer *layers,
		size_t n, struct error *e) MUST_CHECK NONNULL(1, 2, 3, 5);
/* Extract the regular files and links of an oci-archive or docker-archive (tar, optionally
 * compressed) read from archive_fd into the directory dir_fd: at most LIMIT_ARCHIVE_MEMBERS
 * members and max bytes, names normalised and kept beneath it. */
int unpack_archive(int archive_fd, int dir_fd, uint64_t max, struct error *e) MUST_CHECK NONNULL(4);

#endif
