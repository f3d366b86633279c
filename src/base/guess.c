/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <string.h>

#include <osbx/guess.h>

/* Longer words are not compared: no name of ours is. */
#define WORD_MAX 40

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Added, lost, changed and swapped bytes that make b of a (optimal string alignment). */
static size_t distance(struct span a, struct span b)
{
	size_t rows[3][WORD_MAX + 1];
	size_t *before = rows[0];
	size_t *last = rows[1];
	size_t *row = rows[2];

	for (size_t k = 0; k <= b.n; k++) {
		before[k] = 0;
		last[k] = k;
	}
	for (size_t i = 1; i <= a.n; i++) {
		row[0] = i;
		for (size_t k = 1; k <= b.n; k++) {
			size_t changed = last[k - 1] + (a.p[i - 1] != b.p[k - 1]);

			row[k] = least(changed, least(last[k], row[k - 1]) + 1);
			if (i > 1 && k > 1 && a.p[i - 1] == b.p[k - 2] &&
					a.p[i - 2] == b.p[k - 1]) {
				row[k] = least(row[k], before[k - 2] + 1);
			}
		}
		size_t *free_row = before;

		before = last;
		last = row;
		row = free_row;
	}
	return last[b.n];
}

/* So many slips are forgiven in a word of n bytes: among short words everything is near. */
static size_t slips_max(size_t n)
{
	return n <= 4 ? 1 : n <= 8 ? 2 : 3;
}

void guess_add(struct guess *g, const char *name)
{
	struct span known = span_of(name);

	if (g->typed.n < 2 || g->typed.n > WORD_MAX || known.n > WORD_MAX) {
		return;
	}
	size_t limit = slips_max(known.n);
	size_t far = distance(g->typed, known);

	if (far > 1 && span_has_prefix(known, g->typed)) {
		far = 1;
	}
	if (far <= limit && (!g->best || far < g->distance)) {
		g->best = name;
		g->distance = far;
	}
}
