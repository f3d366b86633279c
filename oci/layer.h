/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer - apply the entries of one tar to one directory, in two steps.
 *
 * layer_unpack needs nothing but the tar, so all layers of an image run at once. layer_finish
 * needs the finished layers below: hard links to their files, attributes of directories that the
 * tar only implies, and whiteouts (kept back until all entries are there, so that their order in
 * the tar does not matter, and only made where there is something to hide).
 *
 * Nothing is resolved by a path string: names are normalised as text, clamped at the root, and
 * walked component by component on descriptors; links are followed below the root only.
 */
#ifndef OSBX_OCI_LAYER_H
#define OSBX_OCI_LAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/idmap.h>

#include "stream.h"

struct layer_opts {
	int root_fd;             /* the empty directory, not O_PATH; borrowed */
	const struct idmap *map; /* ids that exist; IDMAP_SINGLE: owners are recorded, not set */
	bool archive;            /* an image archive: files, links and directories of ours, no
				  * owners, modes or whiteouts */
	uint64_t entries_max;    /* of usage->entries */
	uint64_t file_max;       /* apparent size of one file */
	struct unpack_usage *usage;
};

struct layer_stats {
	uint64_t devices; /* nodes that were left out */
	uint64_t xattrs;  /* attributes that were left out */
};

struct layer;

/* Sets the umask of this process to 0. Options are borrowed. */
struct layer *layer_new(const struct layer_opts *opts) MUST_CHECK NONNULL(1);
void layer_free(struct layer *l);
AUTO_DEFINE_PTR(layer, struct layer, layer_free);
/* Apply all entries of the stream. ERRC_INVALID (entry), ERRC_LIMIT, ERRC_UNSUPPORTED (ids),
 * ERRC_SYSTEM; the text names the entry. */
int layer_unpack(struct layer *l, struct stream *stream, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* The rest, once the n layers below (newest first; directories, borrowed) are finished. */
int layer_finish(struct layer *l, const int *lower_fds, size_t n, struct error *e) MUST_CHECK
		NONNULL(1, 4);
const struct layer_stats *layer_stats(const struct layer *l) NONNULL(1);

#endif
