/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * outfile - the new content of a file: nobody sees it before it is whole.
 *
 * Written to a file without a name (O_TMPFILE) in the directory of the target, or to one with a
 * random name where the file system has no such; outfile_publish gives it owner and mode, and the
 * target's name by rename(2). What is not published leaves nothing behind, not even directories.
 *
 * A target that cannot be replaced but written to (its directory is not writable, it is a mount
 * point) gets the content in its place, when it is complete. No fsync: what the sandbox's file
 * system promises after a crash of the machine is the same as for any other process in it.
 */
#ifndef OSBX_EXECD_OUTFILE_H
#define OSBX_EXECD_OUTFILE_H

#include <stdbool.h>
#include <stdint.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>

#include "attrs.h"
#include "place.h"

#define OUTFILE_SPOOL_MAX ((uint64_t)64 << 20)

struct outfile {
	struct place place;
	int fd;         /* -1: none */
	char temp[32];  /* name in temp_fd; "": it has none */
	int temp_fd;    /* directory of temp */
	bool is_spool;  /* in memory: the target is written to in its place */
	uint64_t bytes; /* written */
};

#define OUTFILE_INIT                                         \
	{                                                    \
		.place = PLACE_INIT, .fd = -1, .temp_fd = -1 \
	}

/* Prepare content for a place that place_follow has seen; it is taken over. What exists there must
 * be a regular file. */
int outfile_open(const struct files *f, struct place *place, struct outfile *out,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
int outfile_write(struct outfile *o, const void *p, size_t n, struct error *e) MUST_CHECK
		NONNULL(1, 2, 4);
/* Make it the target. Attributes that are not given are those of the file that was there; a new
 * file is the worker's user's, with the default mode. */
int outfile_publish(const struct files *f, struct outfile *o, const struct attrs *a,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
/* The same, but what is there now keeps its owner too, and is written to in its place when it
 * could not. */
int outfile_publish_same(const struct files *f, struct outfile *o, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* Only when nothing is there; ERRC_SYSTEM with EEXIST otherwise. */
int outfile_publish_new(const struct files *f, struct outfile *o, const struct attrs *a,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
/* Drop what is not published. */
void outfile_done(struct outfile *o);
AUTO_DEFINE(outfile, struct outfile, outfile_done);

#endif
