/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: oci
 * store - images and layers on disk, shared by all osbx processes of a user.
 *
 *   ROOT/oci-layout index.json blobs/sha256/…   a valid OCI image layout (skopeo and umoci read it)
 *   ROOT/layers/MODE/CHAIN/                     unpacked layers, one directory a chain id
 *   ROOT/chains/MANIFEST                        chain ids of an image: a start hashes nothing
 *   ROOT/layers/MODE/.staging-…, ROOT/staging/  work in progress, each with a lock its maker holds
 *   ROOT/partial/HEX                            blobs that are being downloaded, or were when
 *                                               their pull ended early; whoever appends holds a
 *                                               lock, gc removes those older than a day
 *   ROOT/lock                                   shared: "I use or add content"; exclusive: removal
 *   ROOT/index.lock                             exclusive while index.json is replaced
 *
 * Everything is staged, made durable once (syncfs), then renamed: after kill -9 at any point there
 * is nothing half visible, and gc removes what nobody holds. Order of locks: lock, index.lock.
 */
#ifndef OSBX_STORE_H
#define OSBX_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/digest.h>
#include <osbx/error.h>
#include <osbx/idmap.h>
#include <osbx/lock.h>
#include <osbx/strv.h>

struct store;

/* Open, and make if missing, the store at the absolute path root (directories 0700). */
struct store *store_open(const char *root, struct error *e) MUST_CHECK NONNULL(1, 2);
void store_free(struct store *st);
AUTO_DEFINE_PTR(store, struct store, store_free);
/* Borrowed: descriptor of ROOT; absolute path of ROOT. */
int store_root_fd(const struct store *st) NONNULL(1);
const char *store_root(const struct store *st) NONNULL(1);
/* Hold content: taken shared by whoever is about to use or add images, until its own record names
 * them. On a read-only file system shared holding is nothing. fd that the caller closes, or -1. */
int store_hold(struct store *st, enum lock_mode mode, struct error *e) MUST_CHECK NONNULL(1, 3);
/* The id mode of this store's layers for this process: map->mode as idmap_choose gave it, except
 * that IDMAP_MAPPED becomes IDMAP_SHARED where the file system of ROOT refuses id-mapped mounts
 * (tried once, remembered by the directory layers/mapped). */
int store_settle_mode(struct store *st, struct idmap *map, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);

struct store_gc_result {
	uint64_t blobs;
	uint64_t layers;
	uint64_t staging;
	uint64_t bytes;   /* of the blobs; trees of layers are not measured */
	uint64_t unknown; /* files that are none of the store's, left alone */
};

/* Remove what no image in index.json and no digest in keep (manifest digests and chain ids as
 * text, one each) refers to, stagings whose maker is gone, and downloads nobody went on with. The
 * caller holds the store exclusively (store_hold) since before it collected keep: a sandbox that
 * starts in between would lose its layers. Entries of layers/MODE that are no chain id ("host-1")
 * are not the store's and stay. dry_run only counts. */
int store_gc(struct store *st, const struct idmap *map, const struct strv *keep, bool dry_run,
		struct store_gc_result *out_result, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3, 5, 6);
/* Remove a tree below dir_fd that may hold files of subordinate ids: plainly first, then by a
 * child inside a user namespace with map. Missing is success. 0 or -errno. */
int store_remove_tree(const struct idmap *map, int dir_fd, const char *name)
		NONNULL(1, 3) MUST_CHECK;

#endif
