/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * replay - the last bytes of a stream, by their offset in it.
 */
#ifndef OSBX_EXECD_REPLAY_H
#define OSBX_EXECD_REPLAY_H

#include <stddef.h>
#include <stdint.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/span.h>

#define REPLAY_BYTES_MAX (1U << 20)

struct replay {
	char *p;
	size_t room;  /* grows to REPLAY_BYTES_MAX */
	uint64_t end; /* bytes of the stream so far */
};

/* Append. */
void replay_add(struct replay *r, struct span data) NONNULL(1);
/* The bytes from an offset on that are still there, in two pieces, borrowed until the next call.
 * Returns the offset of the first: since, or later when that is gone; the end when since is beyond
 * it. */
uint64_t replay_since(const struct replay *r, uint64_t since, struct span out_parts[2])
		NONNULL(1, 3);
void replay_done(struct replay *r);
AUTO_DEFINE(replay, struct replay, replay_done);

#endif
