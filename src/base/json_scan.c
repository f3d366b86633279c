/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/limits.h>

#include "json_scan.h"

/* cJSON copies numbers into 64 bytes. */
#define NUMBER_TEXT_MAX 63

struct scan {
	const char *p; /* next byte */
	const char *end;
	const char *start;
	unsigned int depth;
	uint32_t nodes;
	bool in_object[LIMIT_JSON_DEPTH];
	struct error *e;
};

static int scan_fail(struct scan *s, const char *what)
{
	return error_set(s->e, ERRC_INVALID, "json: offset %zu: %s", (size_t)(s->p - s->start),
			what);
}

static void skip_space(struct scan *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\r' || *s->p == '\t')) {
		s->p++;
	}
}

/* Take the byte c if it is next. */
static bool take(struct scan *s, char c)
{
	if (s->p >= s->end || *s->p != c) {
		return false;
	}
	s->p++;
	return true;
}

static bool take_digits(struct scan *s)
{
	const char *before = s->p;

	while (s->p < s->end && *s->p >= '0' && *s->p <= '9') {
		s->p++;
	}
	return s->p > before;
}

static int scan_number(struct scan *s)
{
	const char *begin = s->p;
	char copy[NUMBER_TEXT_MAX + 1];
	size_t n = 0;

	(void)take(s, '-');
	if (!take(s, '0') && !take_digits(s)) {
		return scan_fail(s, "expected a value");
	}
	if (take(s, '.') && !take_digits(s)) {
		return scan_fail(s, "expected a digit");
	}
	if (take(s, 'e') || take(s, 'E')) {
		if (!take(s, '+')) {
			(void)take(s, '-');
		}
		if (!take_digits(s)) {
			return scan_fail(s, "expected a digit");
		}
	}
	n = (size_t)(s->p - begin);
	if (n > NUMBER_TEXT_MAX) {
		return scan_fail(s, "number of too many digits");
	}
	memcpy(copy, begin, n);
	copy[n] = '\0';
	if (!isfinite(strtod(copy, NULL))) {
		return scan_fail(s, "number out of range");
	}
	return 0;
}

/* The four digits of \uXXXX, or -1. */
static int take_hex4(struct scan *s)
{
	int v = 0;

	for (int i = 0; i < 4; i++) {
		static const char digits[] = "0123456789abcdef";
		const char *digit = NULL;

		if (s->p >= s->end || *s->p == '\0') {
			return -1;
		}
		digit = strchr(digits, *s->p >= 'A' && *s->p <= 'F' ? *s->p | 0x20 : *s->p);
		if (!digit) {
			return -1;
		}
		v = v * 16 + (int)(digit - digits);
		s->p++;
	}
	return v;
}

static int scan_unicode_escape(struct scan *s)
{
	int v = take_hex4(s);

	if (v < 0) {
		return scan_fail(s, "invalid escape");
	}
	/* A C string would end here: the second reader sees another value. */
	if (v == 0) {
		return scan_fail(s, "NUL in a string");
	}
	if (v >= 0xd800 && v <= 0xdbff) {
		int low = take(s, '\\') && take(s, 'u') ? take_hex4(s) : -1;

		if (low < 0xdc00 || low > 0xdfff) {
			return scan_fail(s, "lone surrogate");
		}
		return 0;
	}
	return v >= 0xdc00 && v <= 0xdfff ? scan_fail(s, "lone surrogate") : 0;
}

static int scan_string(struct scan *s)
{
	if (!take(s, '"')) {
		return scan_fail(s, "expected a string");
	}
	while (s->p < s->end) {
		unsigned char c = (unsigned char)*s->p;

		if (c < 0x20) {
			return scan_fail(s, "control byte in a string");
		}
		s->p++;
		if (c == '"') {
			return 0;
		}
		if (c != '\\') {
			continue;
		}
		if (take(s, 'u')) {
			if (scan_unicode_escape(s) < 0) {
				return -1;
			}
		} else if (s->p < s->end && *s->p != '\0' && strchr("\"\\/bfnrt", *s->p)) {
			s->p++;
		} else {
			return scan_fail(s, "invalid escape");
		}
	}
	return scan_fail(s, "string without end");
}

static int scan_literal(struct scan *s, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n) != 0) {
		return scan_fail(s, "expected a value");
	}
	s->p += n;
	return 0;
}

/* Name and colon of a member. */
static int scan_name(struct scan *s)
{
	skip_space(s);
	if (scan_string(s) < 0) {
		return -1;
	}
	skip_space(s);
	return take(s, ':') ? 0 : scan_fail(s, "expected ':'");
}

/* Enter an object or array. 1: a value must follow, 0: it was empty, -1. */
static int scan_open(struct scan *s, bool is_object)
{
	if (s->depth >= LIMIT_JSON_DEPTH) {
		return scan_fail(s, "nested too deeply");
	}
	s->p++;
	skip_space(s);
	if (take(s, is_object ? '}' : ']')) {
		return 0;
	}
	s->in_object[s->depth++] = is_object;
	if (is_object && scan_name(s) < 0) {
		return -1;
	}
	return 1;
}

/* The beginning of a value, or all of it. 1: another value must follow, 0: it is complete, -1. */
static int scan_value(struct scan *s)
{
	skip_space(s);
	if (s->p >= s->end) {
		return scan_fail(s, "unexpected end");
	}
	if (++s->nodes > LIMIT_JSON_NODES) {
		return scan_fail(s, "too many values");
	}
	switch (*s->p) {
	case '{':
	case '[':
		return scan_open(s, *s->p == '{');
	case '"':
		return scan_string(s);
	case 't':
		return scan_literal(s, "true");
	case 'f':
		return scan_literal(s, "false");
	case 'n':
		return scan_literal(s, "null");
	default:
		return scan_number(s);
	}
}

/* Behind a complete value: leave what ends here. 1: another value must follow, 0: end of the
 * document, -1. */
static int scan_after(struct scan *s)
{
	while (s->depth > 0) {
		bool is_object = s->in_object[s->depth - 1];

		skip_space(s);
		if (take(s, ',')) {
			return is_object && scan_name(s) < 0 ? -1 : 1;
		}
		if (!take(s, is_object ? '}' : ']')) {
			return scan_fail(s,
					is_object ? "expected ',' or '}'" : "expected ',' or ']'");
		}
		s->depth--;
	}
	skip_space(s);
	return s->p == s->end ? 0 : scan_fail(s, "bytes behind the document");
}

int json_scan(struct span text, struct error *e)
{
	struct scan s = { .p = text.p, .end = text.p + text.n, .start = text.p, .e = e };
	int r = 1;

	if (!span_is_utf8(text)) {
		return error_set(e, ERRC_INVALID, "json: invalid UTF-8");
	}
	while (r == 1) {
		r = scan_value(&s);
		if (r == 0) {
			r = scan_after(&s);
		}
	}
	return r;
}
