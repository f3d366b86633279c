/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream - one pass over a blob: read, count, hash, copy, inflate, hash, count against the budget.
 */
#ifndef OSBX_OCI_STREAM_H
#define OSBX_OCI_STREAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/digest.h>
#include <osbx/error.h>
#include <osbx/limits.h>
#include <osbx/span.h>

/* One page shared by the parent and the helpers of an image (a sealed memfd). */
struct unpack_usage {
	_Atomic uint64_t bytes;              /* plain bytes of all layers so far */
	_Atomic uint64_t entries;            /* entries of all layers so far */
	_Atomic uint64_t done[LIMIT_LAYERS]; /* bytes of each blob read so far */
};

struct stream_opts {
	int fd;        /* regular file at its start, or a pipe; borrowed */
	int copy_fd;   /* -1, or receives the same bytes; borrowed */
	uint64_t size; /* of the blob; UINT64_MAX: not known */
	bool verify;   /* hash the blob and the plain bytes */
	uint64_t budget;
	struct unpack_usage *usage;
	size_t index; /* in usage->done */
};

struct stream;

/* Begin: the first bytes are read. */
struct stream *stream_new(const struct stream_opts *opts, struct error *e) MUST_CHECK NONNULL(1, 2);
void stream_free(struct stream *s);
AUTO_DEFINE_PTR(stream, struct stream, stream_free);
/* The next plain bytes (the compression is recognised by the blob's first ones), valid until the
 * next call; none at the end. ERRC_INVALID (data, size), ERRC_LIMIT (budget). An error stays. */
int stream_next(struct stream *s, struct span *out_plain, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* Read the blob to its end without inflating. */
int stream_copy(struct stream *s, struct error *e) MUST_CHECK NONNULL(1, 2);
/* After the end, once: digests of what was read. */
void stream_end(struct stream *s, struct digest *out_blob, struct digest *out_plain)
		NONNULL(1, 2, 3);

#endif
