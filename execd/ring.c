/* SPDX-License-Identifier: Apache-2.0 */
/* The byte of offset N stands at N modulo the room; the room is smaller than the maximum only while
 * nothing has been overwritten, so that this holds when it grows. */
#include <stdlib.h>
#include <string.h>

#include <osbx/mem.h>

#include "ring.h"

#define ROOM_MIN 4096U

static void grow(struct ring *r, size_t n)
{
	size_t room = r->room ? r->room : ROOM_MIN;

	while (room < RING_BYTES_MAX && (n > room || r->end > room - n)) {
		room *= 2;
	}
	if (room != r->room) {
		r->p = mem_resize(r->p, r->room, room, 1);
		r->room = room;
	}
}

void ring_add(struct ring *r, struct span data)
{
	grow(r, data.n < RING_BYTES_MAX ? data.n : RING_BYTES_MAX);
	if (data.n > r->room) {
		r->end += data.n - r->room;
		data = span_from(data, data.n - r->room);
	}
	size_t at = (size_t)(r->end % r->room);
	size_t first = data.n < r->room - at ? data.n : r->room - at;

	memcpy(r->p + at, data.p, first);
	memcpy(r->p, data.p + first, data.n - first);
	r->end += data.n;
}

uint64_t ring_since(const struct ring *r, uint64_t since, struct span out_parts[2])
{
	uint64_t oldest = r->end > r->room ? r->end - r->room : 0;
	uint64_t from = since < oldest ? oldest : since < r->end ? since : r->end;
	size_t n = (size_t)(r->end - from);
	size_t at = r->room > 0 ? (size_t)(from % r->room) : 0;
	size_t first = n < r->room - at ? n : r->room - at;

	out_parts[0] = (struct span){ .p = n > 0 ? r->p + at : "", .n = first };
	out_parts[1] = (struct span){ .p = n > first ? r->p : "", .n = n - first };
	return from;
}

void ring_done(struct ring *r)
{
	free(r->p);
	*r = (struct ring){ .end = 0 };
}
