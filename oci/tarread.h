/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tarread - entries of a tar stream through libarchive (ustar, GNU, PAX; no other format, no
 * filters). Names are bytes: libarchive converts PAX names to the locale's character set, and
 * hands out the raw ones only because this program never calls setlocale.
 */
#ifndef OSBX_OCI_TARREAD_H
#define OSBX_OCI_TARREAD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>

#include "stream.h"

enum tar_type {
	TAR_FILE,
	TAR_DIR,
	TAR_SYMLINK,
	TAR_HARDLINK,
	TAR_FIFO,
	TAR_DEVICE, /* character or block */
	TAR_OTHER,
	TAR_TYPE_COUNT,
};

/* Strings are valid until the next tar_next. */
struct tar_entry {
	enum tar_type type;
	const char *name;
	const char *target; /* of links, never NULL there */
	mode_t mode;        /* permission bits, 07777 */
	int64_t uid;
	int64_t gid;
	uint64_t size; /* apparent, of files */
	struct timespec mtime;
};

struct tar_xattr {
	const char *name;
	const void *value;
	size_t n;
};

struct tar;

/* Read the tar of a stream (borrowed). NULL when libarchive is absent. */
struct tar *tar_new(struct stream *stream, struct error *e) MUST_CHECK NONNULL(1, 2);
void tar_free(struct tar *t);
AUTO_DEFINE_PTR(tar, struct tar, tar_free);
/* The next entry: 1, 0 at the end (the stream is then read to its own end), -1. */
int tar_next(struct tar *t, struct tar_entry *out_entry, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* The next piece of the entry's data, borrowed from the stream, and where in the file it belongs
 * (holes are left out): 1, 0 at the end, -1. */
int tar_data(struct tar *t, struct span *out_data, uint64_t *out_offset, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3, 4);
/* Has the entry extended attributes? */
bool tar_has_xattrs(struct tar *t) NONNULL(1);
/* The next extended attribute: 1, 0 at the end. */
int tar_xattr(struct tar *t, struct tar_xattr *out_xattr) NONNULL(1, 2);

#endif
