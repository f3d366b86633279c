/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * command_replay - the last events of a command, for a client that comes back.
 *
 * Two buffers: the newer one is filled, then it is the older one. So the last COMMAND_REPLAY_BYTES
 * at least are there, and no event is ever looked for while output streams.
 */
#ifndef OSBX_EXECD_COMMAND_REPLAY_H
#define OSBX_EXECD_COMMAND_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include <osbx/buf.h>
#include <osbx/compiler.h>
#include <osbx/span.h>

#define COMMAND_REPLAY_BYTES (16U << 10)

struct command_replay_part {
	struct buf events;
	uint64_t first_eid;
};

struct command_replay {
	struct command_replay_part older;
	struct command_replay_part newer;
	bool is_broken; /* an event has begun whose beginning was not kept */
};

/* Add events, the first of which has this eid; is_whole: the last one is complete. What is too much
 * to be kept makes a gap, also for what was there before it. */
void command_replay_put(struct command_replay *r, struct span events, uint64_t first_eid,
		bool is_whole) NONNULL(1);
/* Events with an eid above after, borrowed; a gap is passed over. */
void command_replay_get(const struct command_replay *r, uint64_t after, struct span out_parts[2])
		NONNULL(1, 3);
void command_replay_done(struct command_replay *r);

#endif
