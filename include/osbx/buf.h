/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * buf - growing bytes with a maximum that is fixed at birth.
 */
#ifndef OSBX_BUF_H
#define OSBX_BUF_H

#include <stdarg.h>
#include <stddef.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/span.h>

struct buf {
	char *p;    /* NUL behind the last byte once anything was appended */
	size_t n;   /* bytes in use */
	size_t cap; /* bytes allocated */
	size_t max; /* never more than this */
};

#define BUF_INIT(max_bytes)        \
	{                          \
		.max = (max_bytes) \
	}

/* Free the bytes; empty and usable again with the same maximum. */
void buf_done(struct buf *b);
AUTO_DEFINE(buf, struct buf, buf_done);
/* Append bytes. 0, or -EMSGSIZE when the maximum would be passed (nothing is appended). */
int buf_append(struct buf *b, const void *p, size_t n) NONNULL(1) MUST_CHECK;
/* Append a string. */
int buf_append_str(struct buf *b, const char *s) NONNULL(1, 2) MUST_CHECK;
/* Append formatted text. */
int buf_appendf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3) NONNULL(1, 2) MUST_CHECK;
/* Room for at least n more bytes at b->p + b->n; the caller then adds to b->n. 0 or -EMSGSIZE. */
int buf_reserve(struct buf *b, size_t n) NONNULL(1) MUST_CHECK;
/* Drop the first n bytes. */
void buf_consume(struct buf *b, size_t n) NONNULL(1);
/* Forget all bytes, keep the memory. */
void buf_reset(struct buf *b) NONNULL(1);
/* Borrow the bytes. */
static inline struct span buf_span(const struct buf *b)
{
	return (struct span){ .p = b->p ? b->p : "", .n = b->n };
}
/* Take the bytes as a NUL-terminated string; the buffer is empty. Caller frees; never NULL. */
char *buf_take(struct buf *b) NONNULL(1) MUST_CHECK;

#endif
