/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include <osbx/clock.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "netd_resolver.h"

/* One slot a hash: a collision costs a question. */
static size_t slot_of(const char *name, uint16_t type)
{
	uint32_t h = 2166136261U ^ type; /* FNV-1a */

	for (const char *p = name; *p; p++) {
		h = (h ^ (uint8_t)*p) * 16777619U;
	}
	return h % CACHE_SLOTS;
}

static void slot_clear(struct cache_slot *s)
{
	free(TAKE_PTR(s->name));
	dns_answer_done(&s->answer);
	*s = (struct cache_slot){ .name = NULL };
}

const struct dns_answer *cache_find(
		const struct resolver *r, const struct dns_query *q, uint32_t *out_age)
{
	const struct cache_slot *s = &r->cache[slot_of(q->name, q->type)];

	if (!s->name || s->type != q->type || !str_eq(s->name, q->name)) {
		return NULL;
	}
	int64_t age_ms = clock_boot_ms() - s->since_ms;

	if (age_ms >= s->answer.ttl * INT64_C(1000)) {
		return NULL;
	}
	*out_age = (uint32_t)(age_ms / 1000);
	return &s->answer;
}

void cache_add(struct resolver *r, const struct dns_query *q, struct dns_answer *a)
{
	struct cache_slot *s = &r->cache[slot_of(q->name, q->type)];

	if (a->ttl == 0) {
		dns_answer_done(a);
		return;
	}
	slot_clear(s);
	*s = (struct cache_slot){
		.name = mem_strdup(q->name),
		.type = q->type,
		.since_ms = clock_boot_ms(),
		.answer = *a,
	};
	*a = (struct dns_answer){ .ttl = 0 };
}

void cache_purge(struct resolver *r)
{
	for (size_t i = 0; i < CACHE_SLOTS; i++) {
		slot_clear(&r->cache[i]);
	}
}
