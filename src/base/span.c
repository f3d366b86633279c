/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include <osbx/mem.h>
#include <osbx/span.h>
#include <osbx/utf8.h>

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
static const struct utf8_row {
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

/* Of the first byte of a character of several; NULL: it is none. */
static const struct utf8_row *utf8_row(uint8_t first)
{
	for (size_t i = 0; i < ARRAY_SIZE(utf8_rows); i++) {
		if (first >= utf8_rows[i].first && first <= utf8_rows[i].last) {
			return &utf8_rows[i];
		}
	}
	return NULL;
}

size_t utf8_len(const char *p, size_t n)
{
	const uint8_t *u = (const uint8_t *)p;

	if (u[0] < 0x80) {
		return 1;
	}
	const struct utf8_row *row = utf8_row(u[0]);

	if (!row || n < row->len || u[1] < row->second_min || u[1] > row->second_max) {
		return 0;
	}
	for (size_t i = 2; i < row->len; i++) {
		if ((u[i] & 0xc0U) != 0x80) {
			return 0;
		}
	}
	return row->len;
}

/* Number of bytes at the beginning that are ASCII, eight at a time. */
static size_t ascii_n(struct span s)
{
	size_t i = 0;
	uint64_t word = 0;

	for (; i + sizeof(word) <= s.n; i += sizeof(word)) {
		memcpy(&word, s.p + i, sizeof(word));
		if (word & 0x8080808080808080U) {
			break;
		}
	}
	return i;
}

bool utf8_feed(struct utf8 *u, struct span piece)
{
	for (size_t i = 0; i < piece.n; i++) {
		uint8_t c = (uint8_t)piece.p[i];

		if (u->left > 0) {
			if (c < u->min || c > u->max) {
				return false;
			}
			*u = (struct utf8){
				.left = (uint8_t)(u->left - 1), .min = 0x80, .max = 0xbf
			};
			continue;
		}
		if (c < 0x80) {
			size_t n = ascii_n(span_from(piece, i));

			i += n > 0 ? n - 1 : 0;
			continue;
		}
		const struct utf8_row *row = utf8_row(c);

		if (!row) {
			return false;
		}
		*u = (struct utf8){
			.left = (uint8_t)(row->len - 1),
			.min = row->second_min,
			.max = row->second_max,
		};
	}
	return true;
}

bool span_is_utf8(struct span a)
{
	struct utf8 u = { .left = 0 };

	return utf8_feed(&u, a) && u.left == 0;
}
