/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lowers - what layers on top of each other show, as overlayfs will: a whiteout or another type
 * ends the search downwards, directories are merged down to the first opaque one.
 */
#ifndef OSBX_OCI_LOWERS_H
#define OSBX_OCI_LOWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/limits.h>

#define LOWERS_MAX LIMIT_LAYERS

struct lowers;

/* The directories that are merged at one path, newest first. */
struct lowers_dirs {
	size_t n;
	int fds[LOWERS_MAX];
	size_t layers[LOWERS_MAX]; /* which layer each belongs to */
};

struct lowers_entry {
	int dir_fd; /* of the newest directory that has it; borrowed until the next call */
	struct stat st;
};

/* A view of n layers, newest first; directories, borrowed. */
struct lowers *lowers_new(const int *fds, size_t n) MUST_CHECK;
void lowers_free(struct lowers *lw);
AUTO_DEFINE_PTR(lowers, struct lowers, lowers_free);
/* The directories merged at path (normalised, relative); out->n is 0 when it is no directory.
 * Links in path are followed in the merged view only if follow. Borrowed until the next call. 0 or
 * -errno. */
int lowers_enter(struct lowers *lw, const char *path, bool follow,
		const struct lowers_dirs **out_dirs) MUST_CHECK NONNULL(1, 2, 4);
/* name in those directories from the index-th layer on: 1, 0 when there is none, -errno. */
int lowers_find(const struct lowers_dirs *dirs, size_t first_layer, const char *name,
		struct lowers_entry *out_entry) MUST_CHECK NONNULL(1, 3, 4);
/* A layer has changed: look again. */
void lowers_forget(struct lowers *lw) NONNULL(1);
/* Is it the character device 0:0 that overlayfs takes for a whiteout? */
bool lowers_is_whiteout(const struct stat *st) NONNULL(1);
/* Does the directory hide those of older layers? */
bool lowers_is_opaque(int dir_fd);

#endif
