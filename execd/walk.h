/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * walk - all entries below a directory, in lexical order, children behind their parent.
 *
 * Links are told and never entered, also when a directory becomes one meanwhile. What cannot be
 * read or has gone is left out. No recursion; no descriptors but two; the depth ends where a path
 * would be longer than any system call takes.
 */
#ifndef OSBX_EXECD_WALK_H
#define OSBX_EXECD_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include <osbx/compiler.h>
#include <osbx/error.h>

#include "attrs.h"

#define WALK_NAMES_BYTES_MAX ((size_t)64 << 20) /* of one directory */

struct walk_opts {
	int dir_fd;       /* O_PATH or readable; borrowed */
	const char *path; /* of the directory, as answers name it */
	uint64_t depth;   /* 1: its entries only */
	/* Is the entry to be told? NULL: all are. */
	bool (*wants)(void *ctx, const char *name, bool is_dir);
	void (*tell)(void *ctx, const char *path, const struct fileinfo *info);
	void *ctx;
};

/* ERRC_SYSTEM, ERRC_LIMIT (a directory with too many names). */
int walk_tree(const struct walk_opts *opts, struct error *e) MUST_CHECK NONNULL(1, 2);

#endif
