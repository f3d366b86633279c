/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "event.h"

/* More than what is around a text. */
#define FRAME_BYTES 160

/* The longest escape of one byte, "\u003c"; U+FFFD of one is shorter. */
#define ESCAPE_BYTES 6

/* Callers give buffers that are large enough for what they feed. */
static void put(struct buf *out, const void *p, size_t n)
{
	int r = buf_append(out, p, n);

	assert(r == 0);
}

static void put_str(struct buf *out, const char *s)
{
	put(out, s, strlen(s));
}

struct events events_of(struct buf *out, uint64_t eid, int64_t wall_ms)
{
	struct events ev = { .out = out, .eid = eid };

	ev.tail_n = (size_t)snprintf(ev.tail, sizeof(ev.tail),
			",\"timestamp\":%lld,\"eid\":", (long long)wall_ms);
	assert(ev.tail_n < sizeof(ev.tail));
	return ev;
}

static char *digits_put(char *to, uint64_t v)
{
	char digits[24];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + v % 10);
		v /= 10;
	} while (v > 0);
	while (at < sizeof(digits)) {
		*to++ = digits[at++];
	}
	return to;
}

static void event_begin(const struct events *ev, const char *type)
{
	put_str(ev->out, "{\"type\":\"");
	put_str(ev->out, type);
	put_str(ev->out, "\"");
}

static void text_room(struct buf *out, size_t n);

/* Every line ends so: copies of a fixed size, with room behind them, are a few instructions. */
static void event_end(struct events *ev)
{
	struct buf *out = ev->out;

	text_room(out, 0);
	char *to = out->p + out->n;

	memcpy(to, ev->tail, EVENT_TAIL_ROOM);
	to = digits_put(to + ev->tail_n, ++ev->eid);
	*to++ = '}';
	*to++ = '\n';
	*to++ = '\n';
	out->n = (size_t)(to - out->p);
}

static void text_whole(struct buf *out, const char *s)
{
	struct event_text text = { .cut_n = 0 };

	event_text_put(&text, span_of(s), out);
	event_text_end(&text, out);
}

static void text_member(struct buf *out, const char *name, const char *value)
{
	put_str(out, "\"");
	put_str(out, name);
	put_str(out, "\":\"");
	text_whole(out, value);
	put_str(out, "\"");
}

void event_init(struct events *ev, const char *id)
{
	event_begin(ev, "init");
	put_str(ev->out, ",");
	text_member(ev->out, "text", id);
	event_end(ev);
}

void event_ping(struct events *ev)
{
	event_begin(ev, "ping");
	put_str(ev->out, ",\"text\":\"pong\"");
	event_end(ev);
}

void event_complete(struct events *ev, int64_t execution_ms)
{
	event_begin(ev, "execution_complete");
	put_str(ev->out, ",\"execution_time\":");
	text_room(ev->out, 0);
	ev->out->n = (size_t)(digits_put(ev->out->p + ev->out->n,
					      execution_ms > 0 ? (uint64_t)execution_ms : 0) -
			      ev->out->p);
	event_end(ev);
}

void event_error(struct events *ev, const char *ename, const char *evalue, const char *trace)
{
	event_begin(ev, "error");
	put_str(ev->out, ",\"error\":{");
	text_member(ev->out, "ename", ename);
	put_str(ev->out, ",");
	text_member(ev->out, "evalue", evalue);
	put_str(ev->out, ",\"traceback\":[\"");
	text_whole(ev->out, trace);
	put_str(ev->out, "\"]}");
	event_end(ev);
}

enum text_class {
	TEXT_PLAIN, /* itself */
	TEXT_SPECIAL,
	TEXT_HIGH, /* not ASCII */
};

/* Bit by byte: does it stand for itself? */
static const uint64_t plain_bits[4] = {
	~((UINT64_C(1) << 32) - 1) & ~(UINT64_C(1) << '"' | UINT64_C(1) << '&' |
						     UINT64_C(1) << '<' | UINT64_C(1) << '>'),
	~(UINT64_C(1) << ('\\' - 64)),
	0,
	0,
};

static enum text_class class_of(unsigned char c)
{
	if (plain_bits[c >> 6] >> (c & 63) & 1) {
		return TEXT_PLAIN;
	}
	return c < 0x80 ? TEXT_SPECIAL : TEXT_HIGH;
}

static char *put_special(char *to, unsigned char c)
{
	static const char hex[] = "0123456789abcdef";
	static const char shorts[] = "\"\"\\\\\nn\rr\tt";

	for (size_t i = 0; shorts[i] != '\0'; i += 2) {
		if ((unsigned char)shorts[i] == c) {
			*to++ = '\\';
			*to++ = shorts[i + 1];
			return to;
		}
	}
	*to++ = '\\';
	*to++ = 'u';
	*to++ = '0';
	*to++ = '0';
	*to++ = hex[c >> 4];
	*to++ = hex[c & 15];
	return to;
}

enum utf8_result {
	UTF8_CHARACTER,
	UTF8_INVALID,
	UTF8_CUT, /* the beginning of one, and nothing behind it */
};

/* What *p, which is not ASCII, begins with; *out_n: bytes of the character, or of the longest
 * beginning of one (Unicode 15, section 3.9, table 3-7), at least one. */
static enum utf8_result utf8_step(const unsigned char *p, size_t n, size_t *out_n)
{
	unsigned char low = 0x80;
	unsigned char high = 0xbf;
	size_t want = 0;

	*out_n = 1;
	if (p[0] >= 0xc2 && p[0] <= 0xdf) {
		want = 2;
	} else if ((p[0] & 0xf0) == 0xe0) {
		want = 3;
		low = p[0] == 0xe0 ? 0xa0 : 0x80;
		high = p[0] == 0xed ? 0x9f : 0xbf;
	} else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
		want = 4;
		low = p[0] == 0xf0 ? 0x90 : 0x80;
		high = p[0] == 0xf4 ? 0x8f : 0xbf;
	} else {
		return UTF8_INVALID;
	}
	for (; *out_n < want; (*out_n)++) {
		if (*out_n == n) {
			return UTF8_CUT;
		}
		if (p[*out_n] < low || p[*out_n] > high) {
			return UTF8_INVALID;
		}
		low = 0x80;
		high = 0xbf;
	}
	return UTF8_CHARACTER;
}

/* A character that is not ASCII. */
static char *put_character(char *to, const unsigned char *p, size_t n)
{
	const char *escape = NULL;

	if (n == 2 && p[0] == 0xc2 && p[1] == 0x85) {
		escape = "\\u0085";
	} else if (n == 3 && p[0] == 0xe2 && p[1] == 0x80 && (p[2] | 1) == 0xa9) {
		escape = p[2] == 0xa8 ? "\\u2028" : "\\u2029";
	}
	memcpy(to, escape ? (const void *)escape : p, escape ? ESCAPE_BYTES : n);
	return to + (escape ? ESCAPE_BYTES : n);
}

static char *put_replacement(char *to)
{
	static const char replacement[] = { '\xef', '\xbf', '\xbd' };

	memcpy(to, replacement, sizeof(replacement));
	return to + sizeof(replacement);
}

/* The bytes at *at, the first of which is not ASCII. False: a cut character has been kept. */
static bool put_high(struct event_text *t, struct span s, size_t *at, char **to)
{
	const unsigned char *p = (const unsigned char *)s.p + *at;
	size_t n = 0;

	switch (utf8_step(p, s.n - *at, &n)) {
	case UTF8_CHARACTER:
		*to = put_character(*to, p, n);
		break;
	case UTF8_INVALID:
		*to = put_replacement(*to);
		break;
	case UTF8_CUT:
		memcpy(t->cut, p, n);
		t->cut_n = (uint8_t)n;
		return false;
	}
	*at += n;
	return true;
}

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Not zero where a byte of x is zero; false alarms only behind a true one. */
static uint64_t zero_bytes(uint64_t x)
{
	return (x - EACH(1)) & ~x & EACH(0x80);
}

/* Do all eight bytes stand for themselves? */
static bool are_plain(uint64_t x)
{
	uint64_t bad = (x | ((x - EACH(0x20)) & ~x)) & EACH(0x80); /* not ASCII, or below blank */

	bad |= zero_bytes((x & ~EACH(4)) ^ EACH('"')); /* and '&' */
	bad |= zero_bytes((x & ~EACH(2)) ^ EACH('<')); /* and '>' */
	bad |= zero_bytes(x ^ EACH('\\'));
	return bad == 0;
}

/* Copy bytes that stand for themselves. How many. */
static size_t plain_copy(char *to, struct span s)
{
	size_t n = 0;
	uint64_t x = 0;

	while (n + sizeof(x) <= s.n) {
		memcpy(&x, s.p + n, sizeof(x));
		if (!are_plain(x)) {
			break;
		}
		memcpy(to + n, &x, sizeof(x));
		n += sizeof(x);
	}
	while (n < s.n && class_of((unsigned char)s.p[n]) == TEXT_PLAIN) {
		to[n] = s.p[n];
		n++;
	}
	return n;
}

static bool is_line_end(char c)
{
	return c == '\n' || c == '\r';
}

/* Room for all of s has been made. Bytes taken: all, or up to the end of a line. */
static size_t text_encode(struct event_text *t, struct span s, struct buf *out, bool is_line)
{
	char *to = out->p + out->n;
	size_t at = 0;
	bool more = true;

	while (more) {
		size_t n = plain_copy(to, span_from(s, at));

		to += n;
		at += n;
		if (at == s.n || (is_line && is_line_end(s.p[at]))) {
			break;
		}
		if (class_of((unsigned char)s.p[at]) == TEXT_SPECIAL) {
			to = put_special(to, (unsigned char)s.p[at++]);
		} else {
			more = put_high(t, s, &at, &to);
		}
	}
	out->n = (size_t)(to - out->p);
	return more ? at : s.n;
}

static void text_room(struct buf *out, size_t n)
{
	int r = buf_reserve(out, ESCAPE_BYTES * n + FRAME_BYTES);

	assert(r == 0);
}

/* Finish the character that was cut, with bytes from *s. */
static void cut_finish(struct event_text *t, struct span *s, struct buf *out)
{
	unsigned char joined[2 * sizeof(t->cut)];
	size_t had = t->cut_n;
	size_t more = s->n < sizeof(t->cut) ? s->n : sizeof(t->cut);
	size_t n = 0;

	memcpy(joined, t->cut, had);
	memcpy(joined + had, s->p, more);
	enum utf8_result result = utf8_step(joined, had + more, &n);

	/* What is kept was a beginning, so that what comes of it is not shorter. */
	assert(n >= had);
	t->cut_n = 0;
	text_room(out, sizeof(joined));
	if (result == UTF8_CUT) {
		memcpy(t->cut, joined, n);
		t->cut_n = (uint8_t)n;
	} else if (result == UTF8_CHARACTER) {
		out->n = (size_t)(put_character(out->p + out->n, joined, n) - out->p);
	} else {
		out->n = (size_t)(put_replacement(out->p + out->n) - out->p);
	}
	*s = span_from(*s, n - had);
}

void event_text_put(struct event_text *t, struct span bytes, struct buf *out)
{
	if (bytes.n > 0 && t->cut_n > 0) {
		cut_finish(t, &bytes, out);
	}
	if (bytes.n > 0) {
		text_room(out, bytes.n);
		(void)text_encode(t, bytes, out, false);
	}
}

void event_text_end(struct event_text *t, struct buf *out)
{
	if (t->cut_n > 0) {
		t->cut_n = 0;
		text_room(out, 1);
		out->n = (size_t)(put_replacement(out->p + out->n) - out->p);
	}
}

static void piece_begin(struct events *ev, const char *type)
{
	event_begin(ev, type);
	put_str(ev->out, ",\"text\":\"");
}

void event_piece(struct events *ev, const char *type, struct event_text *t, struct span bytes)
{
	size_t before = ev->out->n;

	if (bytes.n == 0) {
		return;
	}
	piece_begin(ev, type);
	size_t empty = ev->out->n;

	event_text_put(t, bytes, ev->out);
	if (ev->out->n == empty) {
		ev->out->n = before; /* all of it is the beginning of a character */
		return;
	}
	put_str(ev->out, "\"");
	event_end(ev);
}

void event_piece_end(struct events *ev, const char *type, struct event_text *t)
{
	if (t->cut_n > 0) {
		piece_begin(ev, type);
		event_text_end(t, ev->out);
		put_str(ev->out, "\"");
		event_end(ev);
	}
}

void event_status(struct events *ev, const char *status)
{
	event_begin(ev, "status");
	put_str(ev->out, ",");
	text_member(ev->out, "text", status);
	event_end(ev);
}

void event_count(struct events *ev, uint64_t n)
{
	event_begin(ev, "execution_count");
	put_str(ev->out, ",\"execution_count\":");
	text_room(ev->out, 0);
	ev->out->n = (size_t)(digits_put(ev->out->p + ev->out->n, n) - ev->out->p);
	event_end(ev);
}

/* The next one of U+0085, U+2028 and U+2029, or NULL; *out_n: its bytes. */
static const char *line_end_find(struct span s, size_t *out_n)
{
	for (size_t i = 0; i + 1 < s.n; i++) {
		if (s.p[i] == '\xc2' && s.p[i + 1] == '\x85') {
			*out_n = 2;
			return s.p + i;
		}
		if (s.p[i] == '\xe2' && i + 2 < s.n && s.p[i + 1] == '\x80' &&
				(s.p[i + 2] == '\xa8' || s.p[i + 2] == '\xa9')) {
			*out_n = 3;
			return s.p + i;
		}
	}
	return NULL;
}

void event_json(struct events *ev, const char *type, const char *member, struct span json)
{
	struct span rest = json;
	size_t n = 0;

	event_begin(ev, type);
	put_str(ev->out, ",\"");
	put_str(ev->out, member);
	put_str(ev->out, "\":");
	for (const char *at = line_end_find(rest, &n); at; at = line_end_find(rest, &n)) {
		put(ev->out, rest.p, (size_t)(at - rest.p));
		text_room(ev->out, n);
		ev->out->n = (size_t)(put_character(ev->out->p + ev->out->n,
						      (const unsigned char *)at, n) -
				      ev->out->p);
		rest = span_from(rest, (size_t)(at - rest.p) + n);
	}
	put(ev->out, rest.p, rest.n);
	event_end(ev);
}

struct lines lines_of(const char *type)
{
	struct lines l = { .part = BUF_INIT(EVENT_LINE_MAX) };

	l.head_n = (size_t)snprintf(l.head, sizeof(l.head), "{\"type\":\"%s\",\"text\":\"", type);
	assert(l.head_n < sizeof(l.head));
	return l;
}

void lines_done(struct lines *l)
{
	buf_done(&l->part);
}

static void line_begin(const struct lines *l, struct buf *out)
{
	memcpy(out->p + out->n, l->head, EVENT_HEAD_ROOM);
	out->n += l->head_n;
}

static void line_end(struct lines *l, struct events *ev)
{
	event_text_end(&l->text, ev->out);
	text_room(ev->out, 0);
	ev->out->p[ev->out->n++] = '"';
	event_end(ev);
	l->is_open = false;
}

void lines_open(struct lines *l, struct events *ev)
{
	if (l->is_open) {
		return;
	}
	text_room(ev->out, l->part.n);
	line_begin(l, ev->out);
	event_text_put(&l->text, buf_span(&l->part), ev->out);
	buf_done(&l->part);
	l->is_open = true;
}

static void part_put(struct lines *l, struct span s, struct events *ev)
{
	if (!l->is_open && l->part.n + s.n <= EVENT_LINE_MAX) {
		put(&l->part, s.p, s.n);
		return;
	}
	lines_open(l, ev);
	event_text_put(&l->text, s, ev->out);
}

/* Offset of the first end of a line, or n. */
static size_t line_len(struct span s)
{
	const char *lf = memchr(s.p, '\n', s.n);
	size_t n = lf ? (size_t)(lf - s.p) : s.n;
	const char *cr = n > 0 ? memchr(s.p, '\r', n) : NULL;

	return cr ? (size_t)(cr - s.p) : n;
}

/* A line, or its rest when something of it is kept or its event is open. Its length, or that of s
 * when it does not end there. */
static size_t line_go_on(struct lines *l, struct span s, struct events *ev)
{
	size_t n = line_len(s);

	if (n == s.n) {
		part_put(l, s, ev);
		return n;
	}
	lines_open(l, ev);
	event_text_put(&l->text, (struct span){ .p = s.p, .n = n }, ev->out);
	line_end(l, ev);
	return n;
}

/* The usual case, in one pass: a whole line. What has no end is taken back, and kept. */
static size_t line_whole(struct lines *l, struct span s, struct events *ev)
{
	struct buf *out = ev->out;
	size_t before = out->n;

	text_room(out, s.n);
	line_begin(l, out);
	size_t n = text_encode(&l->text, s, out, true);

	if (n == s.n) {
		out->n = before;
		l->text.cut_n = 0;
		part_put(l, s, ev);
		return n;
	}
	if (n == 0) {
		memcpy(out->p + out->n, "\\n", 2);
		out->n += 2;
	}
	line_end(l, ev);
	return n;
}

size_t lines_feed(struct lines *l, struct span data, struct events *ev, size_t out_max)
{
	struct span rest = data;

	while (rest.n > 0 && ev->out->n < out_max) {
		if (l->after_cr && rest.p[0] == '\n') {
			rest = span_from(rest, 1);
		}
		l->after_cr = false;
		if (rest.n == 0) {
			break;
		}
		bool is_new = !l->is_open && l->part.n == 0;
		size_t n = is_new ? line_whole(l, rest, ev) : line_go_on(l, rest, ev);

		l->after_cr = n < rest.n && rest.p[n] == '\r';
		rest = span_from(rest, n + 1);
	}
	return data.n - rest.n;
}

void lines_end(struct lines *l, struct events *ev)
{
	if (l->is_open || l->part.n > 0) {
		lines_open(l, ev);
		line_end(l, ev);
	}
}
