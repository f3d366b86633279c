/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: engine
 * record - what a sandbox owns on disk while it lives, made and removed in an order that leaves
 * nothing half done after kill -9.
 *
 *   RUNTIME/sandboxes/ID/{lock,state.json}   made under a temporary name with the lock held, then
 *                                            renamed: a free lock means that the keeper is gone
 *   ROOT/sandboxes/ID/{upper,work,request.json}
 *   RUNTIME/names/NAME -> ID                 symbolic links: taken, with their content, in one step
 *   ROOT/ids/N -> ID                         a range of 65,536 ids of root (mode mapped)
 *
 * The live directory is made first and removed last; whatever else names an id whose lock nobody
 * holds is left over.
 */
#ifndef OSBX_RECORD_H
#define OSBX_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/dirs.h>
#include <osbx/error.h>
#include <osbx/id.h>
#include <osbx/idmap.h>
#include <osbx/image.h>
#include <osbx/request.h>
#include <osbx/strv.h>

struct record {
	struct id id;
	int lock_fd;  /* exclusively locked; closing it declares the sandbox dead */
	int live_fd;  /* RUNTIME/sandboxes/ID */
	int dir_fd;   /* ROOT/sandboxes/ID */
	char *path;   /* absolute path of the latter */
	char *name;   /* taken, or NULL */
	int64_t slot; /* of ROOT/ids, -1: none */
};

#define RECORD_INIT                                                     \
	{                                                               \
		.lock_fd = -1, .live_fd = -1, .dir_fd = -1, .slot = -1, \
	}

/* A new id, and the path that its files will have. Nothing is made. */
void record_init(const struct dirs *dirs, struct record *out_record) NONNULL(1, 2);
/* Make the directories and take the name (may be NULL). ERRC_CONFLICT when a live sandbox has the
 * name. On failure nothing is left. */
int record_make(const struct dirs *dirs, struct record *r, const char *name,
		struct error *e) MUST_CHECK NONNULL(1, 2, 4);
/* Close the descriptors; files stay. */
void record_done(struct record *r);
AUTO_DEFINE(record, struct record, record_done);
/* A number that differs from sandbox to sandbox. */
uint32_t record_number(const struct record *r) NONNULL(1);
/* Take an id range of root and set the map to it. ERRC_LIMIT when all are taken. */
int record_take_ids(const struct dirs *dirs, struct record *r, struct idmap *map,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
/* Where ids are shared and nothing is id-mapped, root of the sandbox must own upper and work: the
 * overlay is mounted and written by it. */
int record_give(const struct record *r, const struct idmap *map, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* The overlay's root directory gets mode and owner of upper: those of the directory below it
 * (lower_fd), but always enterable. */
int record_set_root(const struct record *r, int lower_fd, struct error *e) MUST_CHECK NONNULL(1, 3);
/* Write request.json: the request, and what it was resolved to, which store_gc then keeps. img is
 * NULL while it is not known. */
int record_save(const struct record *r, const struct sandbox_request *req, const struct image *img,
		const struct idmap *map, struct error *e) MUST_CHECK NONNULL(1, 2, 4, 5);
/* Nobody needs request.json and state.json any more: remove them ahead of the rest, while the
 * sandbox is still ending. The record itself stays. */
void record_begin_remove(const struct record *r) NONNULL(1);
/* The same of upper and work, once nothing runs in the sandbox any more, and, if it is all then, of
 * their directory. What cannot be removed now is left to record_remove. */
void record_clear_files(const struct dirs *dirs, struct record *r) NONNULL(1, 2);
#define RECORD_KEEP_FILES 1U /* upper, request.json and state.json in ROOT */
#define RECORD_KEEP_LIVE  2U /* the live directory, the name, and request.json in ROOT */

/* Free name and id range and remove the files, but for what keep says. userns_fd (may be -1) saves
 * making a user namespace where files belong to others. */
int record_remove(const struct dirs *dirs, struct record *r, const struct idmap *map, int userns_fd,
		unsigned int keep, struct error *e) MUST_CHECK NONNULL(1, 2, 3, 6);
/* Is somebody holding the sandbox's lock? */
bool record_is_live(const struct dirs *dirs, const char *id) NONNULL(1, 2);
/* What a left-over or kept sandbox says about itself: does it keep its files; manifest and chain
 * ids are appended to refs. 0, -ENOENT (no request.json) or -EBADMSG. */
int record_load_refs(int dir_fd, bool *out_keep, struct strv *refs) NONNULL(2, 3) MUST_CHECK;
/* Remove the name if it still belongs to id. 0 or -errno. */
int record_free_name(const struct dirs *dirs, const char *name, const char *id)
		NONNULL(1, 2, 3) MUST_CHECK;

#endif
