/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "command_replay.h"

#define PART_MAX ((size_t)3 * COMMAND_REPLAY_BYTES)

static void part_done(struct command_replay_part *p)
{
	buf_done(&p->events);
	p->first_eid = 0;
}

void command_replay_done(struct command_replay *r)
{
	part_done(&r->older);
	part_done(&r->newer);
}

void command_replay_put(
		struct command_replay *r, struct span events, uint64_t first_eid, bool is_whole)
{
	const bool was_broken = r->is_broken;

	r->is_broken = !is_whole;
	if (was_broken || !is_whole || events.n > PART_MAX - COMMAND_REPLAY_BYTES) {
		command_replay_done(r);
		return;
	}
	if (r->newer.events.n >= COMMAND_REPLAY_BYTES) {
		struct command_replay_part emptied = r->older;

		buf_reset(&emptied.events);
		r->older = r->newer;
		r->newer = emptied;
	}
	if (r->newer.events.n == 0) {
		r->newer.events.max = PART_MAX;
		r->newer.first_eid = first_eid;
	}
	if (buf_append(&r->newer.events, events.p, events.n) < 0) {
		command_replay_done(r);
	}
}

/* Events end with an empty line, and hold none. */
static struct span part_get(const struct command_replay_part *p, uint64_t after)
{
	struct span s = buf_span(&p->events);
	uint64_t eid = p->first_eid;
	const char *at = NULL;

	while (eid <= after && s.n > 1 && (at = memmem(s.p, s.n, "\n\n", 2))) {
		s = span_from(s, (size_t)(at - s.p) + 2);
		eid++;
	}
	return s;
}

void command_replay_get(const struct command_replay *r, uint64_t after, struct span out_parts[2])
{
	out_parts[0] = part_get(&r->older, after);
	out_parts[1] = part_get(&r->newer, after);
}
