/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_internal - what the files of oci share about the store: blobs, layers, stagings, names.
 */
#ifndef OSBX_OCI_STORE_INTERNAL_H
#define OSBX_OCI_STORE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include <osbx/buf.h>
#include <osbx/digest.h>
#include <osbx/error.h>
#include <osbx/ref.h>
#include <osbx/store.h>

#include "manifest.h"

#define STORE_BLOBS   "blobs/sha256"
#define STORE_LAYERS  "layers"
#define STORE_CHAINS  "chains"
#define STORE_STAGING "staging"
#define STORE_PARTIAL "partial"
#define STORE_INDEX   "index.json"

/*
 * Stagings
 */

#define STAGING_NAME_MAX 40
#define STAGING_PREFIX   ".staging-" /* of those beside layers */

/* A directory of work in progress: PARENT/PREFIX+random, with a file "lock" that is held until
 * staging_done. */
struct staging {
	int parent_fd; /* borrowed */
	int dir_fd;
	int lock_fd;
	char name[STAGING_NAME_MAX + 1];
};
#define STAGING_INIT                                         \
	{                                                    \
		.parent_fd = -1, .dir_fd = -1, .lock_fd = -1 \
	}

/* Make one below parent_fd, mode 0700. prefix is STAGING_PREFIX or "". 0 or -errno. */
int staging_open(int parent_fd, const char *prefix, struct staging *out_staging) MUST_CHECK
		NONNULL(2, 3);
/* Remove it with plain permissions (what a namespace left behind is for store_remove_tree by name)
 * and drop the lock. */
void staging_done(struct staging *s);
AUTO_DEFINE(staging, struct staging, staging_done);
/* Is its maker gone? The lock is taken and dropped. */
bool staging_is_dead(int parent_fd, const char *name) NONNULL(2);
/* One below ROOT/staging; the parent's descriptor belongs to the store. */
int store_staging(struct store *st, struct staging *out_staging, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);

/*
 * Content
 */

/* The file "oci-layout". */
extern const char store_layout_text[];

/* Open a blob for reading. fd or -errno. */
int store_blob_open(const struct store *st, const struct digest *d) MUST_CHECK NONNULL(1, 2);
/* Is the blob there, with this size? */
bool store_has_blob(const struct store *st, const struct digest *d, uint64_t size) NONNULL(1, 2);
/* The same whatever its size. */
bool store_has_any_blob(const struct store *st, const struct digest *d) NONNULL(1, 2);
/* Move the file name below dir_fd to where the blob d belongs. 0 or -errno. */
int store_blob_publish(struct store *st, int dir_fd, const char *name,
		const struct digest *d) MUST_CHECK NONNULL(1, 3, 4);
/* Descriptor of layers/MODE, made if missing: only for a mode that store_settle_mode agreed to, as
 * it remembers by these directories. Borrowed, lives as long as the store. fd or -errno. */
int store_layers_fd(struct store *st, enum idmap_mode mode) MUST_CHECK NONNULL(1);
/* The same if it is there, else -ENOENT. */
int store_layers_find(struct store *st, enum idmap_mode mode) MUST_CHECK NONNULL(1);
/* Is the layer's directory there? layers_fd as above; false for negative ones. */
bool store_has_layer(int layers_fd, const struct digest *chain) NONNULL(2);

/* Does overlayfs of this kernel (uname(2)) take id-mapped layers? */
bool store_kernel_maps(const char *release) NONNULL(1);

/*
 * Chain ids of an image whose name is in the index: chains/MANIFEST-HEX, one a line, lowest first,
 * so that a start needs no hash. Written after the index, removed before.
 */

/* Read n chain ids into out_chains. 0, -ENOENT, -EINVAL (another number, damaged) or -errno. */
int store_chains_load(const struct store *st, const struct digest *manifest,
		struct digest *out_chains, size_t n) MUST_CHECK NONNULL(1, 2);
int store_chains_save(struct store *st, const struct digest *manifest, const struct digest *chains,
		size_t n) MUST_CHECK NONNULL(1, 2);
void store_chains_remove(struct store *st, const struct digest *manifest) NONNULL(1, 2);

/*
 * Names: entries of index.json. An entry without ref.name stands for an image that has none.
 */

/* Read index.json as it is now. */
int store_index_load(const struct store *st, struct descriptors *out_entries,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3);
/* Replace index.json by what edit makes of it, durably, under index.lock. Nothing is written when
 * edit fails. */
int store_index_edit(struct store *st,
		int (*edit)(struct descriptors *entries, void *ctx, struct error *e), void *ctx,
		struct error *e) MUST_CHECK NONNULL(1, 2, 4);
/* Append a copy of d, which is no element of entries, under name (NULL: none). An entry of that
 * name is replaced, one without name of the same image too; nothing happens without a name when the
 * image has an entry. */
void entries_add(struct descriptors *entries, const struct descriptor *d, const char *name)
		NONNULL(1, 2);
/* Remove entry i. */
void entries_remove(struct descriptors *entries, size_t i) NONNULL(1);
/* The text of an index with these entries; -EMSGSIZE. */
int index_write(const struct descriptors *entries, struct buf *out) MUST_CHECK NONNULL(1, 2);
/* Number of entries of this manifest. */
size_t entries_count(const struct descriptors *entries, const struct digest *manifest)
		NONNULL(1, 2);
/* Is the name of an entry what a reference without a digest says, in full or for short? */
bool entry_is_meant(const struct descriptor *d, const struct ref *ref) NONNULL(1, 2);
/* The entry that ref names: by digest (of the manifest, or of the index it came from), by full
 * name, by a short one of an image made here (localhost/), or by at least 12 leading digits of a
 * digest. ERRC_NOT_FOUND, ERRC_CONFLICT (digits of
 * several). */
int entries_find(const struct descriptors *entries, const struct ref *ref, size_t *out_i,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);

#endif
