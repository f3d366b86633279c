/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdint.h>

#include <osbx/mem.h>

#include "digest_set.h"

#define SLOTS_MIN 64
#define HASH_HEX  16 /* digits of a digest are as good as random */

void digest_set_done(struct digest_set *s)
{
	if (!s) {
		return;
	}
	free(s->slots);
	*s = (struct digest_set)DIGEST_SET_INIT;
}

static size_t hash_of(const struct digest *d)
{
	const char *hex = digest_hex(d);
	uint64_t h = 0;

	for (size_t i = 0; i < HASH_HEX; i++) {
		unsigned char c = (unsigned char)hex[i];

		h = h << 4 | ((c & 0xfU) + (c > '9' ? 9U : 0U));
	}
	return (size_t)h;
}

/* The slot of d, or the free one where it would stand. */
static struct digest *slot_of(struct digest *slots, size_t slots_n, const struct digest *d)
{
	size_t at = hash_of(d) & (slots_n - 1);

	while (slots[at].text[0] && !digest_eq(&slots[at], d)) {
		at = (at + 1) & (slots_n - 1);
	}
	return &slots[at];
}

static void set_grow(struct digest_set *s)
{
	size_t slots_n = s->slots_n ? 2 * s->slots_n : SLOTS_MIN;
	struct digest *slots = mem_array(slots_n, sizeof(*slots));

	for (size_t i = 0; i < s->slots_n; i++) {
		if (s->slots[i].text[0]) {
			*slot_of(slots, slots_n, &s->slots[i]) = s->slots[i];
		}
	}
	free(s->slots);
	s->slots = slots;
	s->slots_n = slots_n;
}

bool digest_set_add(struct digest_set *s, const struct digest *d)
{
	struct digest *slot = NULL;

	assert(d->text[0]);

	if (s->n >= s->slots_n / 2) {
		set_grow(s);
	}
	slot = slot_of(s->slots, s->slots_n, d);
	if (slot->text[0]) {
		return false;
	}
	*slot = *d;
	s->n++;
	return true;
}

bool digest_set_has(const struct digest_set *s, const struct digest *d)
{
	return s->n > 0 && slot_of(s->slots, s->slots_n, d)->text[0];
}
