/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * guess - which of the known names was meant by an unknown one: for "did you mean".
 *
 * Candidates are shown one by one; the nearest wins, the first of equals. Near are few slips of
 * the fingers (a byte added, lost, changed, or two swapped), or a beginning of the name.
 */
#ifndef OSBX_GUESS_H
#define OSBX_GUESS_H

#include <stddef.h>

#include <osbx/compiler.h>
#include <osbx/span.h>

struct guess {
	struct span typed;
	const char *best; /* borrowed; NULL: none is near */
	size_t distance;  /* of the best one */
};

/* Begin with what was typed; borrowed. */
#define GUESS_INIT(span)                      \
	{                                     \
		.typed = (span), .best = NULL \
	}

/* Show one candidate, borrowed. */
void guess_add(struct guess *g, const char *name) NONNULL(1, 2);

#endif
