/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include <osbx/mem.h>
#include <osbx/str.h>

#include "netd_names.h"

struct names_entry {
	struct names_entry *next; /* names.buckets[] */
	struct names_entry *newer;
	struct names_entry *older;
	struct netaddr addr;
	int64_t until_ms;
	char name[];
};

/* Whoever answers may choose the addresses, but not more of them than NAMES_MAX: a bucket that
 * holds them all is still searched in microseconds. */
static size_t bucket_of(const struct netaddr *a)
{
	uint32_t h = 2166136261U; /* FNV-1a */

	for (size_t i = 0; i < sizeof(a->bytes); i++) {
		h = (h ^ a->bytes[i]) * 16777619U;
	}
	return h % NAMES_BUCKETS;
}

static void age_unlink(struct names *t, const struct names_entry *x)
{
	*(x->newer ? &x->newer->older : &t->newest) = x->older;
	*(x->older ? &x->older->newer : &t->oldest) = x->newer;
}

static void age_link(struct names *t, struct names_entry *x)
{
	x->newer = NULL;
	x->older = t->newest;
	*(t->newest ? &t->newest->newer : &t->oldest) = x;
	t->newest = x;
}

static void bucket_unlink(struct names *t, const struct names_entry *x)
{
	struct names_entry **at = &t->buckets[bucket_of(&x->addr)];

	while (*at != x) {
		at = &(*at)->next;
	}
	*at = x->next;
}

static void entry_remove(struct names *t, struct names_entry *x)
{
	bucket_unlink(t, x);
	age_unlink(t, x);
	free(x);
	t->n--;
}

void names_done(struct names *t)
{
	while (t->oldest) {
		entry_remove(t, t->oldest);
	}
}

static struct names_entry *entry_find(
		const struct names *t, const struct netaddr *a, const char *name)
{
	struct names_entry *x = t->buckets[bucket_of(a)];

	while (x && !(netaddr_eq(&x->addr, a) && str_eq(x->name, name))) {
		x = x->next;
	}
	return x;
}

void names_add(struct names *t, const char *name, const struct netaddr *a, uint32_t ttl,
		int64_t now_ms)
{
	struct names_entry *x = entry_find(t, a, name);
	int64_t live_ms = (ttl < NAMES_TTL_MAX ? ttl : NAMES_TTL_MAX) * INT64_C(1000);

	if (x) {
		bucket_unlink(t, x);
		age_unlink(t, x);
	} else {
		if (t->n == NAMES_MAX) {
			entry_remove(t, t->oldest);
		}
		size_t n = strlen(name) + 1;

		x = mem_array(1, sizeof(*x) + n);
		x->addr = *a;
		memcpy(x->name, name, n);
		t->n++;
	}
	x->until_ms = now_ms + live_ms + NAMES_GRACE_MS;
	size_t bucket = bucket_of(a);

	x->next = t->buckets[bucket];
	t->buckets[bucket] = x;
	age_link(t, x);
}

size_t names_find(const struct names *t, const struct netaddr *a, int64_t now_ms,
		const char *out_names[NAMES_FOUND])
{
	size_t n = 0;

	for (const struct names_entry *x = t->buckets[bucket_of(a)]; x && n < NAMES_FOUND;
			x = x->next) {
		if (netaddr_eq(&x->addr, a) && now_ms < x->until_ms) {
			out_names[n++] = x->name;
		}
	}
	return n;
}

bool names_has(const struct names *t, const struct netaddr *a, const char *name, int64_t now_ms)
{
	const struct names_entry *x = entry_find(t, a, name);

	return x && now_ms < x->until_ms;
}
