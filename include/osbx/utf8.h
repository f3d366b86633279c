/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * utf8 - strict UTF-8 (RFC 3629: no surrogates, no overlong forms, at most U+10FFFF), a character
 * at a time or as the pieces of a text come in.
 */
#ifndef OSBX_UTF8_H
#define OSBX_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <osbx/compiler.h>
#include <osbx/span.h>

/* Where a text has got to that comes in pieces; all zero at its beginning. */
struct utf8 {
	uint8_t left;     /* bytes that its last character still needs; 0: it may end here */
	uint8_t min, max; /* what the next of them may be */
};

/* Length of the well-formed character at p (n bytes follow, n > 0), or 0 if there is none. */
size_t utf8_len(const char *p, size_t n) NONNULL(1);
/* Go on with the next piece. False: the text is not UTF-8, whatever follows. */
bool utf8_feed(struct utf8 *u, struct span piece) NONNULL(1) MUST_CHECK;

#endif
