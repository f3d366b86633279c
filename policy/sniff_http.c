/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. One machine over the bytes of a connection, of two halves. In a head it
 * looks at each byte, keeps the few fields that say whom a request is for and how long its body is,
 * and ends in SNIFF_NAME. In a body it only counts: bytes, or chunks. What a lenient server might
 * read otherwise is refused (RFC 9112 section 11.2), so that both see the same requests:
 *
 *	BEGIN METHOD TARGET VERSION (FIELD KEY VALUE)* END ─▶ SNIFF_NAME
 *	  ▲                                                      │
 *	  └── BODY | CHUNK_SIZE … TRAILER ◀──────────────────────┤
 *	                                  SWITCH ─▶ OPAQUE ◀─────┘
 */
#include <string.h>
#include <strings.h>

#include <osbx/netaddr.h>

#include "sniff.h"

#define DIGITS_MAX 15         /* of the size of a chunk, hexadecimal */
#define LENGTH_MAX 18         /* of Content-Length, decimal */
#define EXTRA_MAX  (8U << 10) /* chunk extension, all trailers */

enum step {
	STEP_BEGIN, /* of a request: empty lines are skipped, as servers do */
	STEP_BEGIN_LF,
	STEP_METHOD,
	STEP_TARGET,
	STEP_VERSION,
	STEP_FIELD, /* at the beginning of a line */
	STEP_KEY,
	STEP_VALUE,
	STEP_LINE_LF, /* behind the CR of a line */
	STEP_END_LF,  /* behind the CR of the empty line */
	STEP_BODY,    /* from here on bytes may pass */
	STEP_SIZE,
	STEP_EXTENSION,
	STEP_SIZE_LF,
	STEP_CHUNK,
	STEP_CHUNK_CR,
	STEP_CHUNK_LF,
	STEP_TRAILER, /* at the beginning of a line */
	STEP_TRAILER_TEXT,
	STEP_TRAILER_LF,
	STEP_LAST_LF,
	STEP_SWITCH, /* behind a request with Upgrade */
	STEP_OPAQUE,
	STEP_FAILED,
};

enum field {
	FIELD_OTHER,
	FIELD_VERSION, /* not a field: the end of the request line */
	FIELD_HOST,
	FIELD_LENGTH,
	FIELD_CODING,
	FIELD_UPGRADE,
};

static const struct {
	const char *key;
	uint8_t field;
} keys[] = {
	{ "host", FIELD_HOST },
	{ "content-length", FIELD_LENGTH },
	{ "transfer-encoding", FIELD_CODING },
	{ "upgrade", FIELD_UPGRADE },
};

static void refuse(struct sniff_http *s, const char *why)
{
	s->step = STEP_FAILED;
	s->why = why;
}

static bool is_token(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Control bytes but HT have no place in a line. */
static bool is_text(char c)
{
	return c == '\t' || ((uint8_t)c >= 0x20 && c != 0x7f);
}

/* Some servers skip these before a request: Python takes 1c to 1f for blanks, too, and in Latin-1
 * 85 and a0. No frame of a WebSocket begins so (RFC 6455 section 5.2). */
static bool is_space(char c)
{
	const uint8_t u = (uint8_t)c;

	return u == ' ' || u == '\t' || u == '\v' || u == '\f' || (u >= 0x1c && u <= 0x1f) ||
	       u == 0x85 || u == 0xa0;
}

static char lower(char c)
{
	if (c >= 'A' && c <= 'Z') {
		c = (char)(c - 'A' + 'a');
	}
	return c;
}

static struct span text_of(const struct sniff_http *s)
{
	return (struct span){ .p = s->text, .n = s->text_n };
}

static bool text_is(const struct sniff_http *s, const char *text)
{
	return s->text_n == strlen(text) && strncasecmp(s->text, text, s->text_n) == 0;
}

/* Keep a byte of a line, while there is room. */
static void keep(struct sniff_http *s, char c)
{
	if (s->text_n < sizeof(s->text)) {
		s->text[s->text_n++] = c;
	} else {
		s->is_cut = true;
	}
}

/* "name", "name:80", "192.0.2.1", "[2001:db8::1]:80" -> name, or an address. */
static int read_authority(struct span text, char name[NETPOLICY_NAME_MAX + 1], bool *out_is_address)
{
	const bool has_bracket = text.n > 0 && text.p[0] == '[';
	const char *end = has_bracket ? memchr(text.p, ']', text.n) : memchr(text.p, ':', text.n);
	struct span host = { .p = text.p, .n = end ? (size_t)(end - text.p) : text.n };
	struct span port = span_from(text, host.n);
	struct netaddr a;

	if (has_bracket) {
		if (!end) {
			return -1;
		}
		host = span_from(host, 1);
		port = span_from(port, 1);
	}
	if (port.n > 0 && port.p[0] != ':') {
		return -1;
	}
	for (size_t i = 1; i < port.n; i++) {
		if (!is_digit(port.p[i])) {
			return -1;
		}
	}
	*out_is_address = netaddr_parse(host, &a) == 0 && (a.family == 6) == has_bracket;
	name[0] = '\0';
	if (*out_is_address) {
		return 0;
	}
	return has_bracket ? -1 : netpolicy_name(host, name);
}

/* What a target in absolute form names must be what Host names. */
static void check_target(struct sniff_http *s)
{
	struct span target = { .p = s->target, .n = s->target_n };
	const char *mark = memmem(target.p, target.n, "://", 3);
	char name[NETPOLICY_NAME_MAX + 1];
	bool is_address = false;

	if (s->target[0] == '/' || (s->target[0] == '*' && s->target_n == 1)) {
		return;
	}
	if (!mark) {
		refuse(s, "a target that is no path");
		return;
	}
	target = span_from(target, (size_t)(mark - target.p) + 3);
	size_t n = 0;

	while (n < target.n && !strchr("/?#", target.p[n])) {
		n++;
	}
	/* One that is cut off here ends nowhere. */
	if (n == target.n && s->is_target_cut) {
		refuse(s, "a target that is too long");
		return;
	}
	target.n = n;
	if (read_authority(target, name, &is_address) < 0) {
		refuse(s, "a target whose host is no host name");
	} else if (is_address || s->is_address || strcmp(name, s->name) != 0) {
		refuse(s, "a target that names another host");
	}
}

static void read_host(struct sniff_http *s)
{
	if (s->has_host) {
		refuse(s, "two Host fields");
	} else if (s->is_cut || read_authority(text_of(s), s->name, &s->is_address) < 0) {
		refuse(s, "a Host field that is no host name");
	}
	s->has_host = true;
}

static void read_length(struct sniff_http *s)
{
	if (s->has_length) {
		refuse(s, "two Content-Length fields");
		return;
	}
	if (s->text_n == 0 || s->text_n > LENGTH_MAX) {
		refuse(s, "a Content-Length that is no number");
		return;
	}
	for (size_t i = 0; i < s->text_n; i++) {
		if (!is_digit(s->text[i])) {
			refuse(s, "a Content-Length that is no number");
			return;
		}
		s->body_left = s->body_left * 10 + (uint64_t)(s->text[i] - '0');
	}
	s->has_length = true;
}

static void read_version(struct sniff_http *s)
{
	s->is_10 = text_is(s, "HTTP/1.0");
	if (!s->is_10 && !text_is(s, "HTTP/1.1")) {
		refuse(s, "no HTTP/1.1 request");
	}
}

/* A line of the head is whole. */
static void read_line(struct sniff_http *s)
{
	while (s->text_n > 0 && strchr(" \t", s->text[s->text_n - 1]) &&
			s->field != FIELD_VERSION) {
		s->text_n--;
	}
	s->step = STEP_FIELD;
	switch ((enum field)s->field) {
	case FIELD_VERSION:
		read_version(s);
		break;
	case FIELD_HOST:
		read_host(s);
		break;
	case FIELD_LENGTH:
		read_length(s);
		break;
	case FIELD_CODING:
		if (s->is_chunked || !text_is(s, "chunked")) {
			refuse(s, "a Transfer-Encoding that is not chunked");
		}
		s->is_chunked = true;
		break;
	case FIELD_UPGRADE:
		s->may_switch = true;
		break;
	case FIELD_OTHER:
		break;
	}
}

/* The step behind a body. */
static uint8_t after_body(const struct sniff_http *s)
{
	return s->may_switch ? STEP_SWITCH : STEP_BEGIN;
}

static void end_head(struct sniff_http *s)
{
	if (!s->has_host) {
		refuse(s, "a request without Host");
		return;
	}
	if (s->is_chunked && (s->has_length || s->is_10)) {
		refuse(s, "a coding with a length, or in HTTP/1.0");
		return;
	}
	check_target(s);
	if (s->step == STEP_FAILED) {
		return;
	}
	s->is_whole = true;
	s->step = s->is_chunked ? STEP_SIZE : s->body_left > 0 ? STEP_BODY : after_body(s);
}

static void begin_head(struct sniff_http *s)
{
	*s = (struct sniff_http){ .step = STEP_METHOD, .head_n = s->head_n };
}

static void begin_line(struct sniff_http *s, enum step step, enum field field)
{
	s->step = (uint8_t)step;
	s->field = (uint8_t)field;
	s->text_n = 0;
	s->is_cut = false;
}

static void take_method(struct sniff_http *s, char c)
{
	if (c == ' ' && s->text_n > 0) {
		if (text_is(s, "CONNECT")) {
			refuse(s, "a CONNECT request");
			return;
		}
		s->step = STEP_TARGET;
	} else if (is_token(c) && s->text_n < 32) {
		keep(s, c);
	} else {
		refuse(s, "no HTTP request");
	}
}

static void take_target(struct sniff_http *s, char c)
{
	if (c == ' ' && s->target_n > 0) {
		begin_line(s, STEP_VERSION, FIELD_VERSION);
	} else if ((uint8_t)c <= 0x20 || c == 0x7f) {
		refuse(s, "no HTTP request");
	} else if (s->target_n < sizeof(s->target)) {
		s->target[s->target_n++] = c;
	} else {
		s->is_target_cut = true;
	}
}

/* The beginning of a line of fields, and its name. */
static void take_key(struct sniff_http *s, char c)
{
	if (c == '\r' && s->step == STEP_FIELD) {
		s->step = STEP_END_LF;
		return;
	}
	if (s->step == STEP_FIELD) {
		begin_line(s, STEP_KEY, FIELD_OTHER);
	}
	if (is_token(c)) {
		keep(s, lower(c));
		return;
	}
	if (c != ':' || s->text_n == 0) {
		refuse(s, "a malformed field");
		return;
	}
	enum field field = FIELD_OTHER;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		field = text_is(s, keys[i].key) ? (enum field)keys[i].field : field;
	}
	begin_line(s, STEP_VALUE, field);
}

static void take_value(struct sniff_http *s, char c)
{
	const bool is_blank = c == ' ' || c == '\t';

	if (c == '\r') {
		s->step = STEP_LINE_LF;
	} else if (!is_text(c)) {
		refuse(s, "a control character in a field");
	} else if (s->text_n > 0 || !is_blank || s->field == FIELD_VERSION) {
		keep(s, c);
	}
}

/* One byte of a head. */
static void take_head(struct sniff_http *s, char c)
{
	switch (s->step) {
	case STEP_METHOD:
		take_method(s, c);
		return;
	case STEP_TARGET:
		take_target(s, c);
		return;
	case STEP_VERSION:
	case STEP_VALUE:
		take_value(s, c);
		return;
	case STEP_FIELD:
	case STEP_KEY:
		take_key(s, c);
		return;
	default:
		break;
	}
	/* All others wait for a LF. */
	if (c != '\n') {
		refuse(s, "a CR without LF");
	} else if (s->step == STEP_LINE_LF) {
		read_line(s);
	} else {
		end_head(s);
	}
}

static int hex_of(char c)
{
	c = lower(c);
	if (is_digit(c)) {
		return c - '0';
	}
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void take_size(struct sniff_http *s, char c)
{
	const int digit = hex_of(c);

	if (digit >= 0 && s->digits < DIGITS_MAX) {
		s->body_left = s->body_left << 4 | (uint64_t)digit;
		s->digits++;
	} else if (s->digits > 0 && c == ';') {
		s->step = STEP_EXTENSION;
	} else if (s->digits > 0 && c == '\r') {
		s->step = STEP_SIZE_LF;
	} else {
		refuse(s, "a malformed chunk");
	}
}

/* Bytes that nobody needs, up to the end of a line. */
static void take_extra(struct sniff_http *s, char c, enum step lf)
{
	if (c == '\r') {
		s->step = (uint8_t)lf;
	} else if (!is_text(c) || ++s->extra_n > EXTRA_MAX) {
		refuse(s, "a malformed or too long line in a body");
	}
}

/* One byte of what frames chunks. */
static void take_frame(struct sniff_http *s, char c)
{
	static const struct {
		char c;
		uint8_t next;
	} fixed[STEP_FAILED] = {
		[STEP_CHUNK_CR] = { '\r', STEP_CHUNK_LF },
		[STEP_CHUNK_LF] = { '\n', STEP_SIZE },
		[STEP_TRAILER_LF] = { '\n', STEP_TRAILER },
		[STEP_LAST_LF] = { '\n', STEP_BEGIN },
		[STEP_SIZE_LF] = { '\n', STEP_CHUNK },
	};

	switch (s->step) {
	case STEP_SIZE:
		take_size(s, c);
		return;
	case STEP_EXTENSION:
		take_extra(s, c, STEP_SIZE_LF);
		return;
	case STEP_TRAILER:
		s->step = STEP_TRAILER_TEXT;
		take_extra(s, c, STEP_LAST_LF);
		return;
	case STEP_TRAILER_TEXT:
		take_extra(s, c, STEP_TRAILER_LF);
		return;
	default:
		break;
	}
	if (c != fixed[s->step].c) {
		refuse(s, "a malformed chunk");
		return;
	}
	s->step = fixed[s->step].next;
	s->digits = 0;
	s->extra_n = s->step == STEP_CHUNK ? 0 : s->extra_n;
	if (s->step == STEP_CHUNK && s->body_left == 0) {
		s->step = STEP_TRAILER;
	} else if (s->step == STEP_BEGIN) {
		s->step = after_body(s);
	}
}

static bool may_pass(const struct sniff_http *s)
{
	return s->step >= STEP_BODY && s->step <= STEP_OPAQUE && s->step != STEP_SWITCH;
}

/* Bytes that may pass: how many of them, from the first. */
static size_t take_body(struct sniff_http *s, struct span bytes)
{
	size_t n = 0;

	while (n < bytes.n && may_pass(s)) {
		const size_t rest = bytes.n - n;

		if (s->step == STEP_OPAQUE) {
			return bytes.n;
		}
		if (s->step != STEP_BODY && s->step != STEP_CHUNK) {
			take_frame(s, bytes.p[n++]);
			continue;
		}
		const size_t some = s->body_left < rest ? (size_t)s->body_left : rest;

		n += some;
		s->body_left -= some;
		if (s->body_left == 0) {
			s->step = s->step == STEP_CHUNK ? STEP_CHUNK_CR : after_body(s);
		}
	}
	return n;
}

/* Between requests, what does the next byte begin? True: it is an empty line's, and taken. */
static bool take_begin(struct sniff_http *s, char c)
{
	if (s->step == STEP_SWITCH) {
		if (is_space(c)) {
			refuse(s, "a blank before a request");
			return true;
		}
		s->step = is_token(c) || c == '\r' || c == '\n' ? STEP_BEGIN : STEP_OPAQUE;
		return false;
	}
	if (s->step == STEP_BEGIN_LF) {
		s->step = STEP_BEGIN;
		if (c != '\n') {
			refuse(s, "a CR without LF");
		}
		return true;
	}
	if (c == '\r') {
		s->step = STEP_BEGIN_LF;
		return true;
	}
	begin_head(s);
	return false;
}

void sniff_http_init(struct sniff_http *s)
{
	*s = (struct sniff_http){ .step = STEP_BEGIN };
}

enum sniff sniff_http_feed(struct sniff_http *s, struct span bytes, size_t *out_n)
{
	size_t n = 0;

	while (n < bytes.n && s->step != STEP_FAILED) {
		if (may_pass(s)) {
			/* A head never ends in the same call: it ended with SNIFF_NAME. */
			n += take_body(s, span_from(bytes, n));
			*out_n = n;
			return s->step == STEP_FAILED ? SNIFF_NONE : SNIFF_PASS;
		}
		const bool is_between = s->step == STEP_BEGIN || s->step == STEP_BEGIN_LF ||
					s->step == STEP_SWITCH;

		if (is_between && !take_begin(s, bytes.p[n])) {
			continue;
		}
		if (!is_between) {
			take_head(s, bytes.p[n]);
		}
		n++;
		if (++s->head_n > SNIFF_HEAD_MAX) {
			refuse(s, "a request whose head is too long");
		} else if (s->is_whole) {
			s->is_whole = false;
			s->head_n = 0;
			*out_n = n;
			return SNIFF_NAME;
		}
	}
	*out_n = n;
	return s->step == STEP_FAILED ? SNIFF_NONE : SNIFF_MORE;
}
