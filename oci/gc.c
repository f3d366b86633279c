/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removal of what nothing refers to, under both locks of the store: nobody adds content or changes
 * names meanwhile, and users of layers are in keep. A layer gets another name before its tree is
 * taken apart, so that a crash leaves no half a layer; files that are none of ours are left alone.
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/id.h>
#include <osbx/log.h>
#include <osbx/str.h>

#include "gc_mark.h"
#include "store_struct.h"

#define GC_PREFIX       ".gc-"
#define GC_RANDOM_BYTES 8U
#define PARTIAL_KEPT_S  86400
#define TEMP_SUFFIX     ".tmp" /* of file_write_at */

struct gc {
	struct store *st;
	const struct idmap *map;
	const struct gc_marks *marks;
	bool dry_run;
	struct store_gc_result result;
	int failed; /* -errno of the first removal that failed */
};

/* What to do with one name in a directory of the store. */
typedef void (*gc_visit)(struct gc *gc, int dir_fd, const char *name);

static void gc_failed(struct gc *gc, int r, const char *name)
{
	log_debug("gc: %s: %s", name, strerror(-r));
	gc->failed = gc->failed ? gc->failed : r;
}

/* The digest that a file or directory of this name stands for. */
static bool name_digest(const char *name, struct digest *out_d)
{
	char text[DIGEST_TEXT_LEN + 1];

	return snprintf(text, sizeof(text), "sha256:%s", name) == DIGEST_TEXT_LEN &&
	       digest_parse(text, out_d) == 0;
}

static void dir_visit(struct gc *gc, const char *path, gc_visit visit)
{
	int fd = fd_open_at(gc->st->root_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	DIR *dir = NULL;

	if (fd < 0) {
		if (fd != -ENOENT) {
			gc_failed(gc, fd, path);
		}
		return;
	}
	dir = fdopendir(fd);
	assert(dir);
	for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
		if (!str_eq(d->d_name, ".") && !str_eq(d->d_name, "..")) {
			visit(gc, dirfd(dir), d->d_name);
		}
	}
	(void)closedir(dir);
}

/* Unlink a file; true if it went (or would). */
static bool file_drop(struct gc *gc, int dir_fd, const char *name)
{
	if (!gc->dry_run && unlinkat(dir_fd, name, 0) < 0) {
		gc_failed(gc, -errno, name);
		return false;
	}
	return true;
}

static bool tree_drop(struct gc *gc, int dir_fd, const char *name)
{
	int r = gc->dry_run ? 0 : store_remove_tree(gc->map, dir_fd, name);

	if (r < 0) {
		gc_failed(gc, r, name);
	}
	return r == 0;
}

static void temp_visit(struct gc *gc, int dir_fd, const char *name)
{
	if (str_has_suffix(name, TEMP_SUFFIX) && str_after(name, STORE_INDEX ".")) {
		gc->result.staging += file_drop(gc, dir_fd, name) ? 1 : 0;
	}
}

static void chains_visit(struct gc *gc, int dir_fd, const char *name)
{
	struct digest d = { .text = "" };

	if (name_digest(name, &d)) {
		if (!digest_set_has(&gc->marks->indexed, &d)) {
			(void)file_drop(gc, dir_fd, name);
		}
	} else if (str_has_suffix(name, TEMP_SUFFIX)) {
		gc->result.staging += file_drop(gc, dir_fd, name) ? 1 : 0;
	} else {
		gc->result.unknown++;
	}
}

static void blob_visit(struct gc *gc, int dir_fd, const char *name)
{
	struct digest d = { .text = "" };
	struct stat s;

	if (!name_digest(name, &d) || fstatat(dir_fd, name, &s, AT_SYMLINK_NOFOLLOW) < 0 ||
			!S_ISREG(s.st_mode)) {
		gc->result.unknown++;
		return;
	}
	if (!digest_set_has(&gc->marks->blobs, &d) && file_drop(gc, dir_fd, name)) {
		gc->result.blobs++;
		gc->result.bytes += (uint64_t)s.st_size;
	}
}

static void layer_drop(struct gc *gc, int dir_fd, const char *name)
{
	char random[2 * GC_RANDOM_BYTES + 1];
	char retired[sizeof(GC_PREFIX) + sizeof(random)];

	if (gc->dry_run) {
		gc->result.layers++;
		return;
	}
	id_random_hex(random, GC_RANDOM_BYTES);
	(void)snprintf(retired, sizeof(retired), "%s%s", GC_PREFIX, random);
	if (renameat(dir_fd, name, dir_fd, retired) < 0) {
		gc_failed(gc, -errno, name);
		return;
	}
	gc->result.layers += tree_drop(gc, dir_fd, retired) ? 1 : 0;
}

static void layer_visit(struct gc *gc, int dir_fd, const char *name)
{
	struct digest d = { .text = "" };
	struct stat s;

	if (fstatat(dir_fd, name, &s, AT_SYMLINK_NOFOLLOW) < 0) {
		/* A name of ours that this scan gave and removed. */
		return;
	}
	if (name_digest(name, &d) && S_ISDIR(s.st_mode)) {
		if (!digest_set_has(&gc->marks->chains, &d)) {
			layer_drop(gc, dir_fd, name);
		}
	} else if (str_after(name, GC_PREFIX)) {
		gc->result.layers += tree_drop(gc, dir_fd, name) ? 1 : 0;
	} else if (str_after(name, STAGING_PREFIX) && staging_is_dead(dir_fd, name)) {
		gc->result.staging += tree_drop(gc, dir_fd, name) ? 1 : 0;
	}
}

static void staging_visit(struct gc *gc, int dir_fd, const char *name)
{
	struct stat s;

	if (fstatat(dir_fd, name, &s, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(s.st_mode)) {
		gc->result.unknown++;
	} else if (staging_is_dead(dir_fd, name)) {
		gc->result.staging += tree_drop(gc, dir_fd, name) ? 1 : 0;
	}
}

/* An interrupted download is worth something to whoever tries again soon. Nobody is at it: pulls
 * hold the store. */
static void partial_visit(struct gc *gc, int dir_fd, const char *name)
{
	struct digest d = { .text = "" };
	struct stat s;

	if (!name_digest(name, &d) || fstatat(dir_fd, name, &s, AT_SYMLINK_NOFOLLOW) < 0 ||
			!S_ISREG(s.st_mode)) {
		gc->result.unknown++;
	} else if ((int64_t)s.st_mtime < clock_wall_ms() / 1000 - PARTIAL_KEPT_S) {
		gc->result.staging += file_drop(gc, dir_fd, name) ? 1 : 0;
	}
}

static void modes_visit(struct gc *gc)
{
	for (size_t mode = 0; mode < IDMAP_MODE_COUNT; mode++) {
		char path[64];

		(void)snprintf(path, sizeof(path), "%s/%s", STORE_LAYERS,
				idmap_mode_name((enum idmap_mode)mode));
		dir_visit(gc, path, layer_visit);
	}
}

static int passing_remove(struct descriptors *entries, void *ctx, struct error *e)
{
	const struct strv *keep = ctx;

	(void)e;
	for (size_t i = entries->n; i > 0; i--) {
		if (gc_is_passing(&entries->v[i - 1], keep)) {
			entries_remove(entries, i - 1);
		}
	}
	return 0;
}

/* Entries of images that runs brought by a transport, and that no sandbox uses any more. The index
 * is written only if there are any. */
static int passing_drop(struct store *st, const struct strv *keep, struct error *e)
{
	AUTO(descriptors) struct descriptors entries = DESCRIPTORS_INIT;
	struct strv list = *keep; /* borrowed */
	size_t n = 0;

	if (store_index_load(st, &entries, e) < 0) {
		return -1;
	}
	for (size_t i = 0; i < entries.n; i++) {
		n += gc_is_passing(&entries.v[i], keep) ? 1 : 0;
	}
	return n > 0 ? store_index_edit(st, passing_remove, &list, e) : 0;
}

int store_gc(struct store *st, const struct idmap *map, const struct strv *keep, bool dry_run,
		struct store_gc_result *out_result, struct error *e)
{
	AUTO(gc_marks) struct gc_marks marks = { .blobs = DIGEST_SET_INIT };
	struct gc gc = { .st = st, .map = map, .marks = &marks, .dry_run = dry_run };

	if (!dry_run && passing_drop(st, keep, e) < 0) {
		return -1;
	}
	autoclose int names = lock_open_at(st->root_fd, STORE_INDEX_LOCK, LOCK_MODE_EXCLUSIVE);

	if (names < 0) {
		return error_sys(e, -names, "lock %s/%s", st->root, STORE_INDEX_LOCK);
	}
	if (gc_mark(st, keep, &marks, e) < 0) {
		return -1;
	}
	dir_visit(&gc, ".", temp_visit);
	dir_visit(&gc, STORE_CHAINS, chains_visit);
	dir_visit(&gc, STORE_BLOBS, blob_visit);
	modes_visit(&gc);
	dir_visit(&gc, STORE_STAGING, staging_visit);
	dir_visit(&gc, STORE_PARTIAL, partial_visit);
	if (gc.failed) {
		return error_sys(e, -gc.failed, "remove unused content of store %s", st->root);
	}
	*out_result = gc.result;
	return 0;
}
