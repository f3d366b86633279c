/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate - compressed bytes in, plain bytes out, in pieces of any size.
 *
 * gzip through ISA-L (3.5 times as fast as zlib) or zlib, zstd through libzstd. Several members or
 * frames in a row are one stream; NUL bytes behind the last one are padding (some writers round
 * the file up), anything else there is an error.
 */
#ifndef OSBX_OCI_INFLATE_H
#define OSBX_OCI_INFLATE_H

#include <stdbool.h>
#include <stddef.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/image.h>
#include <osbx/span.h>

struct inflater;

/* What the first bytes say, whatever the document claims: IMAGE_GZIP, IMAGE_ZSTD or IMAGE_PLAIN;
 * 8 bytes are enough. ERRC_UNSUPPORTED for bzip2, xz and lz4. */
int inflate_sniff(struct span head, enum image_compression *out_kind, struct error *e) MUST_CHECK
		NONNULL(2, 3);
/* A stream of kind (not IMAGE_PLAIN). NULL when its library is absent. */
struct inflater *inflater_new(enum image_compression kind, struct error *e) MUST_CHECK NONNULL(2);
/* gzip by zlib even where ISA-L is present. */
struct inflater *inflater_new_zlib(struct error *e) MUST_CHECK NONNULL(1);
void inflater_free(struct inflater *z);
AUTO_DEFINE_PTR(inflater, struct inflater, inflater_free);
/* Take bytes off the front of *in, put plain ones to out. *out_n is what was put; when it is less
 * than size, *in is empty. ERRC_INVALID. */
int inflater_run(struct inflater *z, struct span *in, char *out, size_t size, size_t *out_n,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 5, 6);
/* May the stream end here: not inside a member? */
bool inflater_is_complete(const struct inflater *z) NONNULL(1);

#endif
