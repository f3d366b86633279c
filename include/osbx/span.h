/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * span - borrowed bytes from outside; never NUL-trusted.
 */
#ifndef OSBX_SPAN_H
#define OSBX_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct span {
	const char *p;
	size_t n;
};

/* The span of a string, without its NUL. */
static inline struct span span_of(const char *s)
{
	return (struct span){ .p = s, .n = strlen(s) };
}

/* Same bytes. */
static inline bool span_eq(struct span a, struct span b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* Does a begin with prefix? */
static inline bool span_has_prefix(struct span a, struct span prefix)
{
	return a.n >= prefix.n && (prefix.n == 0 || memcmp(a.p, prefix.p, prefix.n) == 0);
}

/* The bytes from offset on; empty when there are none. */
static inline struct span span_from(struct span a, size_t offset)
{
	return offset >= a.n ? (struct span){ .p = a.p + a.n }
			     : (struct span){ .p = a.p + offset, .n = a.n - offset };
}

/* Cut the next piece up to sep off *rest (the separator is dropped); false at the end. */
bool span_next(struct span *rest, char sep, struct span *out_piece);
/* A NUL-terminated copy, or NULL if the bytes hold a NUL. Caller frees. */
char *span_dup(struct span a);
/* Valid UTF-8 (RFC 3629: no surrogates, no overlong forms, at most U+10FFFF)? */
bool span_is_utf8(struct span a);

#endif
