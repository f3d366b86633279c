/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: http
 * multipart - a reader of multipart/form-data (RFC 7578, 2046) that keeps one window in memory.
 */
#ifndef OSBX_MULTIPART_H
#define OSBX_MULTIPART_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/span.h>

#define MULTIPART_PART_HEAD_MAX 16384 /* field lines of one part */

struct multipart;
/* As http_blocking_read: bytes, 0 at the end, -errno. */
typedef ssize_t (*multipart_read_fn)(void *ctx, void *p, size_t n);

struct multipart_part {
	const char *name;     /* "" when absent; valid until the next call */
	const char *filename; /* NULL when absent; filename* is not looked at (RFC 7578 4.2) */
	const char *type;     /* Content-Type, "" when absent */
};

/* Reader of a body whose Content-Type is content_type; quoted and unquoted parameters. NULL with
 * -EINVAL in *out_r: no multipart/form-data or a bad boundary. */
struct multipart *multipart_new(struct span content_type, multipart_read_fn read, void *ctx,
		int *out_r) MUST_CHECK NONNULL(2, 4);
void multipart_free(struct multipart *m);
AUTO_DEFINE_PTR(multipart, struct multipart, multipart_free);
/* Go to the next part (what is left of this one is skipped). 1, 0 after the last, -EBADMSG
 * malformed or cut short, -EMSGSIZE a head too long, or -errno of read. */
int multipart_next(struct multipart *m, struct multipart_part *out_part) NONNULL(1, 2) MUST_CHECK;
/* Up to n bytes of this part. 0 at its end; errors as above. */
ssize_t multipart_read(struct multipart *m, void *p, size_t n) NONNULL(1, 2) MUST_CHECK;
/* The same without a copy: at least one byte, valid until the next call. 1, 0 at the end. */
int multipart_peek(struct multipart *m, struct span *out_data) NONNULL(1, 2) MUST_CHECK;
void multipart_take(struct multipart *m, size_t n) NONNULL(1);

#endif
