/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * ring - the last bytes of a stream, by their offset in it.
 */
#ifndef OSBX_EXECD_RING_H
#define OSBX_EXECD_RING_H

#include <stddef.h>
#include <stdint.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/span.h>

#define RING_BYTES_MAX (1U << 20)

struct ring {
	char *p;
	size_t room;  /* grows to RING_BYTES_MAX */
	uint64_t end; /* bytes of the stream so far */
};

/* Append. */
void ring_add(struct ring *r, struct span data) NONNULL(1);
/* The bytes from an offset on that are still there, in two pieces, borrowed until the next call.
 * Returns the offset of the first: since, or later when that is gone; the end when since is beyond
 * it. */
uint64_t ring_since(const struct ring *r, uint64_t since, struct span out_parts[2]) NONNULL(1, 3);
void ring_done(struct ring *r);
AUTO_DEFINE(ring, struct ring, ring_done);

#endif
