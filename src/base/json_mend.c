/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <osbx/json.h>

/* Value of four digits, or -1. */
static int hex4(const char *p)
{
	int v = 0;

	for (size_t i = 0; i < 4; i++) {
		static const char digits[] = "0123456789abcdef";
		const char *digit = p[i] ? strchr(digits, p[i] >= 'A' ? p[i] | 0x20 : p[i]) : NULL;

		if (!digit) {
			return -1;
		}
		v = v * 16 + (int)(digit - digits);
	}
	return v;
}

static bool is_low(int v)
{
	return v >= 0xdc00 && v <= 0xdfff;
}

/* The escape at p, of which left bytes are there; how many of them are in order. */
static size_t escape_fix(char *p, size_t left)
{
	static const char replacement[] = { 'f', 'f', 'f', 'd' };
	int v = left >= 6 && p[1] == 'u' ? hex4(p + 2) : -1;

	if (v < 0) {
		return 2;
	}
	if (v >= 0xd800 && v <= 0xdbff && left >= 12 && p[6] == '\\' && p[7] == 'u' &&
			is_low(hex4(p + 8))) {
		return 12;
	}
	if (v == 0 || (v >= 0xd800 && v <= 0xdfff)) {
		memcpy(p + 2, replacement, sizeof(replacement));
	}
	return 6;
}

void json_mend(struct buf *text)
{
	size_t at = 0;

	while (at < text->n) {
		char *escape = memchr(text->p + at, '\\', text->n - at);

		if (!escape) {
			return;
		}
		at = (size_t)(escape - text->p);
		at += escape_fix(escape, text->n - at);
	}
}
