/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * The same code goes over the text twice: first it checks the grammar and the limits and counts
 * the values, then, with a document of the right size, it also fills in its nodes. Decoded strings
 * need no more room than the text they come from: the quotes make up for the NUL.
 */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/limits.h>
#include <osbx/mem.h>

#include "json_scan.h"

#define NUMBER_TEXT_MAX 63

struct level {
	struct json *node; /* the object or array itself; NULL in the first pass */
	struct json *last; /* its last child so far */
	bool is_object;
};

struct scan {
	const char *p; /* next byte */
	const char *end;
	const char *start;
	unsigned int depth;
	uint32_t nodes_n;
	struct level levels[LIMIT_JSON_DEPTH];
	struct json_document *doc; /* NULL in the first pass */
	char *text;                /* where the next string goes */
	const char *name;          /* of the next value */
	struct error *e;
};

/* The node of the value that begins here; NULL in the first pass. */
static struct json *node_add(struct scan *s, enum json_type type)
{
	struct level *level = s->depth > 0 ? &s->levels[s->depth - 1] : NULL;

	if (!s->doc) {
		return NULL;
	}
	struct json *node = &s->doc->nodes[s->nodes_n - 1];

	node->type = type;
	node->name = s->name;
	s->name = NULL;
	if (level) {
		*(level->last ? &level->last->next : &level->node->child) = node;
		level->last = node;
	}
	return node;
}

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
	double value = strtod(copy, NULL);

	if (!isfinite(value)) {
		return scan_fail(s, "number out of range");
	}
	struct json *node = node_add(s, JSON_NUMBER);

	if (node) {
		node->number = value;
	}
	return 0;
}

static void put(struct scan *s, unsigned int byte)
{
	if (s->doc) {
		*s->text++ = (char)byte;
	}
}

static void put_utf8(struct scan *s, unsigned int c)
{
	if (c < 0x80) {
		put(s, c);
		return;
	}
	if (c < 0x800) {
		put(s, 0xc0 | c >> 6);
	} else {
		if (c < 0x10000) {
			put(s, 0xe0 | c >> 12);
		} else {
			put(s, 0xf0 | c >> 18);
			put(s, 0x80 | (c >> 12 & 0x3f));
		}
		put(s, 0x80 | (c >> 6 & 0x3f));
	}
	put(s, 0x80 | (c & 0x3f));
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
		v = 0x10000 + ((v - 0xd800) << 10) + (low - 0xdc00);
	} else if (v >= 0xdc00 && v <= 0xdfff) {
		return scan_fail(s, "lone surrogate");
	}
	put_utf8(s, (unsigned int)v);
	return 0;
}

/* Behind the backslash. */
static int scan_escape(struct scan *s)
{
	static const char letters[] = "\"\\/bfnrt";
	static const char bytes[] = "\"\\/\b\f\n\r\t";

	if (take(s, 'u')) {
		return scan_unicode_escape(s);
	}
	const char *letter = s->p < s->end && *s->p != '\0' ? strchr(letters, *s->p) : NULL;

	if (!letter) {
		return scan_fail(s, "invalid escape");
	}
	s->p++;
	put(s, (unsigned char)bytes[letter - letters]);
	return 0;
}

/* In the second pass its value comes to lie at what s->text was before. */
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
			put(s, '\0');
			return 0;
		}
		if (c != '\\') {
			put(s, c);
		} else if (scan_escape(s) < 0) {
			return -1;
		}
	}
	return scan_fail(s, "string without end");
}

static int scan_text(struct scan *s)
{
	const char *value = s->text;
	struct json *node = node_add(s, JSON_STRING);

	if (node) {
		node->string = value;
	}
	return scan_string(s);
}

static int scan_literal(struct scan *s, const char *word, enum json_type type)
{
	size_t n = strlen(word);

	if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n) != 0) {
		return scan_fail(s, "expected a value");
	}
	s->p += n;
	(void)node_add(s, type);
	return 0;
}

/* Name and colon of a member. */
static int scan_name(struct scan *s)
{
	skip_space(s);
	s->name = s->text;
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
	struct json *node = node_add(s, is_object ? JSON_OBJECT : JSON_ARRAY);

	s->p++;
	skip_space(s);
	if (take(s, is_object ? '}' : ']')) {
		return 0;
	}
	s->levels[s->depth++] = (struct level){ .node = node, .is_object = is_object };
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
	if (++s->nodes_n > LIMIT_JSON_NODES) {
		return scan_fail(s, "too many values");
	}
	switch (*s->p) {
	case '{':
	case '[':
		return scan_open(s, *s->p == '{');
	case '"':
		return scan_text(s);
	case 't':
		return scan_literal(s, "true", JSON_TRUE);
	case 'f':
		return scan_literal(s, "false", JSON_FALSE);
	case 'n':
		return scan_literal(s, "null", JSON_NULL);
	default:
		return scan_number(s);
	}
}

/* Behind a complete value: leave what ends here. 1: another value must follow, 0: end of the
 * document, -1. */
static int scan_after(struct scan *s)
{
	while (s->depth > 0) {
		bool is_object = s->levels[s->depth - 1].is_object;

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

static int scan_document(struct scan *s)
{
	int r = 1;

	while (r == 1) {
		r = scan_value(s);
		if (r == 0) {
			r = scan_after(s);
		}
	}
	return r;
}

struct json_document *json_scan(struct span text, struct error *e)
{
	struct scan first = { .p = text.p, .end = text.p + text.n, .start = text.p, .e = e };
	struct scan second = first;

	if (!span_is_utf8(text)) {
		(void)error_set(e, ERRC_INVALID, "json: invalid UTF-8");
		return NULL;
	}
	if (scan_document(&first) < 0) {
		return NULL;
	}
	/* The limits of nodes and of any document keep this far from an overflow. */
	size_t head = sizeof(*second.doc) + first.nodes_n * sizeof(second.doc->nodes[0]);

	second.doc = mem_array(1, head + text.n);
	second.doc->bytes = head + text.n;
	second.doc->nodes_n = first.nodes_n;
	second.text = (char *)second.doc + head;
	int r = scan_document(&second);

	assert(r == 0 && second.text <= (char *)second.doc + second.doc->bytes);
	return second.doc;
}
