/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include <osbx/mem.h>
#include <osbx/span.h>

#include "utf8.h"

bool span_next(struct span *rest, char sep, struct span *out_piece)
{
	const char *end = NULL;

	/* An empty last piece ("a,") is a piece: p is NULL only behind the end. */
	if (!rest->p) {
		return false;
	}
	end = rest->n > 0 ? memchr(rest->p, sep, rest->n) : NULL;
	if (!end) {
		*out_piece = *rest;
		*rest = (struct span){ .p = NULL };
		return true;
	}
	*out_piece = (struct span){ .p = rest->p, .n = (size_t)(end - rest->p) };
	*rest = (struct span){ .p = end + 1, .n = rest->n - out_piece->n - 1 };
	return true;
}

char *span_dup(struct span a)
{
	if (a.n > 0 && memchr(a.p, '\0', a.n)) {
		return NULL;
	}
	return mem_dup(a.p, a.n);
}

/*
 * Unicode 15, table 3-7: the first byte decides how many follow and what the second may be; this
 * alone shuts out overlong forms, surrogates and all above U+10FFFF.
 */
static const struct {
	uint8_t first, last;
	uint8_t len;
	uint8_t second_min, second_max;
} utf8_rows[] = {
	{ 0xc2, 0xdf, 2, 0x80, 0xbf },
	{ 0xe0, 0xe0, 3, 0xa0, 0xbf },
	{ 0xe1, 0xec, 3, 0x80, 0xbf },
	{ 0xed, 0xed, 3, 0x80, 0x9f },
	{ 0xee, 0xef, 3, 0x80, 0xbf },
	{ 0xf0, 0xf0, 4, 0x90, 0xbf },
	{ 0xf1, 0xf3, 4, 0x80, 0xbf },
	{ 0xf4, 0xf4, 4, 0x80, 0x8f },
};

size_t utf8_len(const char *p, size_t n)
{
	const unsigned char *u = (const unsigned char *)p;

	if (u[0] < 0x80) {
		return 1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(utf8_rows); i++) {
		if (u[0] < utf8_rows[i].first || u[0] > utf8_rows[i].last) {
			continue;
		}
		if (n < utf8_rows[i].len || u[1] < utf8_rows[i].second_min ||
				u[1] > utf8_rows[i].second_max) {
			return 0;
		}
		for (size_t k = 2; k < utf8_rows[i].len; k++) {
			if ((u[k] & 0xc0U) != 0x80) {
				return 0;
			}
		}
		return utf8_rows[i].len;
	}
	return 0;
}

bool span_is_utf8(struct span a)
{
	for (size_t i = 0; i < a.n;) {
		size_t len = utf8_len(a.p + i, a.n - i);

		if (len == 0) {
			return false;
		}
		i += len;
	}
	return true;
}
