/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * A head is read up to its empty line by parse_scan, which knows nothing but bytes and lines and
 * refuses all that two parsers have ever understood differently: a bare CR or LF, NUL and other
 * control bytes, folded lines. Only then llhttp takes it apart into fields. What decides about the
 * length of the body (RFC 9112 section 6.3) is judged here from the fields themselves, so that no
 * leniency of a version of llhttp matters: one Content-Length of digits, or one
 * "Transfer-Encoding: chunked", and never both.
 */
#include <assert.h>
#include <errno.h>
#include <llhttp.h>
#include <string.h>
#include <strings.h>

#include "parse.h"

static int refuse(struct parse_refusal *refusal, int status, const char *what)
{
	*refusal = (struct parse_refusal){ .status = status, .what = what };
	return -1;
}

/* A line ends at s->at, which is behind its LF. 1: it was the empty one. */
static int scan_line_end(struct parse_scan *s, struct parse_refusal *refusal)
{
	bool is_empty = s->at - s->line == 2;

	s->line = s->at;
	if (is_empty) {
		return 1;
	}
	if (++s->lines > PARSE_FIELDS_MAX + 1) {
		return refuse(refusal, 431, "too many header fields");
	}
	return 0;
}

int parse_scan(struct parse_scan *s, struct span bytes, struct parse_refusal *out_refusal)
{
	while (s->at < bytes.n) {
		unsigned char ch = (unsigned char)bytes.p[s->at];

		if (s->after_cr != (ch == '\n')) {
			return refuse(out_refusal, 400, "a line must end with CR LF");
		}
		if (s->at == s->line && s->lines > 0 && (ch == ' ' || ch == '\t')) {
			return refuse(out_refusal, 400, "a header field is folded");
		}
		if (s->at >= PARSE_HEAD_MAX) {
			return refuse(out_refusal, 431, "the header is too long");
		}
		/* The method and the version take their part of the line. */
		if (s->lines == 0 && s->at > PARSE_TARGET_MAX + 64) {
			return refuse(out_refusal, 414, "the target is too long");
		}
		s->at++;
		s->after_cr = ch == '\r';
		if (ch == '\n') {
			int r = scan_line_end(s, out_refusal);

			if (r != 0) {
				return r;
			}
		} else if ((ch < ' ' && ch != '\t' && ch != '\r') || ch == 0x7f) {
			return refuse(out_refusal, 400, "a control byte in the header");
		}
	}
	return 0;
}

static bool is_token_char(unsigned char ch)
{
	return (ch >= '0' && ch <= '9') || (ch >= 'A' && ch <= 'Z') || (ch >= 'a' && ch <= 'z') ||
	       (ch != '\0' && strchr("!#$%&'*+-.^_`|~", ch));
}

bool parse_is_token(struct span s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (!is_token_char((unsigned char)s.p[i])) {
			return false;
		}
	}
	return s.n > 0;
}

bool parse_is_value(struct span s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char ch = (unsigned char)s.p[i];

		if ((ch < ' ' && ch != '\t') || ch == 0x7f) {
			return false;
		}
	}
	return true;
}

bool parse_same_name(struct span s, const char *name)
{
	return s.n == strlen(name) && strncasecmp(s.p, name, s.n) == 0;
}

struct span parse_trim(struct span s)
{
	while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t')) {
		s.p++;
		s.n--;
	}
	while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t')) {
		s.n--;
	}
	return s;
}

/* "http://authority/path" is a target that a proxy is sent (RFC 9112 section 3.2.2). */
static int target_to_origin(struct parse_head *head, struct parse_refusal *refusal)
{
	struct span t = head->target;
	size_t scheme = 0;

	if (t.p[0] == '/' || (t.n == 1 && t.p[0] == '*' && head->method.n == 7 &&
					     memcmp(head->method.p, "OPTIONS", 7) == 0)) {
		return 0;
	}
	if (t.n > 7 && strncasecmp(t.p, "http://", 7) == 0) {
		scheme = 7;
	} else if (t.n > 8 && strncasecmp(t.p, "https://", 8) == 0) {
		scheme = 8;
	} else {
		return refuse(refusal, 400, "the target is no path");
	}
	const char *path = memchr(t.p + scheme, '/', t.n - scheme);
	const char *query = memchr(t.p + scheme, '?', t.n - scheme);

	if (path == t.p + scheme || (query && (!path || query < path))) {
		return refuse(refusal, 400, "the target has no host or no path");
	}
	head->target = path ? span_from(t, (size_t)(path - t.p)) : span_of("/");
	return 0;
}

static int target_check(struct parse_head *head, struct parse_refusal *refusal)
{
	struct span t = head->target;

	if (t.n == 0) {
		return refuse(refusal, 400, "the request line is malformed");
	}
	if (t.n > PARSE_TARGET_MAX) {
		return refuse(refusal, 414, "the target is too long");
	}
	/* Bytes above ASCII are no URI, but what people type into their clients. */
	if (memchr(t.p, '\t', t.n) || memchr(t.p, '#', t.n)) {
		return refuse(refusal, 400, "the target has a byte that must be encoded");
	}
	return target_to_origin(head, refusal);
}

static int version_check(
		struct parse_head *head, struct span version, struct parse_refusal *refusal)
{
	if (span_eq(version, span_of("HTTP/1.1")) || span_eq(version, span_of("HTTP/1.0"))) {
		head->is_10 = version.p[7] == '0';
		head->keep_alive = !head->is_10;
		return 0;
	}
	if (version.n == 8 && span_has_prefix(version, span_of("HTTP/"))) {
		return refuse(refusal, 505, "only HTTP/1.1 is spoken here");
	}
	return refuse(refusal, 400, "the request line is malformed");
}

/* method SP target SP version */
static int request_line(struct span bytes, struct parse_head *head, struct parse_refusal *refusal)
{
	const char *end = memchr(bytes.p, '\r', bytes.n);
	struct span rest = { .p = bytes.p, .n = end ? (size_t)(end - bytes.p) : 0 };
	struct span target = { .p = NULL };

	if (!span_next(&rest, ' ', &head->method) || !span_next(&rest, ' ', &target) || !rest.p ||
			!parse_is_token(head->method)) {
		return refuse(refusal, 400, "the request line is malformed");
	}
	head->target = target;
	if (version_check(head, rest, refusal) < 0) {
		return -1;
	}
	/* A tunnel is no request that a route could answer, and its target is no path. */
	if (span_eq(head->method, span_of("CONNECT"))) {
		return refuse(refusal, 501, "the method is not known");
	}
	return target_check(head, refusal);
}

struct parts {
	struct parse_head *head;
	bool in_value;
	bool is_too_many;
	bool is_complete;
};

static int on_name(llhttp_t *parser, const char *at, size_t n)
{
	struct parts *p = parser->data;

	if (p->head->fields_n == p->head->fields_max) {
		p->is_too_many = true;
		return -1;
	}
	p->head->fields[p->head->fields_n++] = (struct parse_field){
		.name = { .p = at, .n = n },
		/* A value of no bytes is not told. */
		.value = { .p = at + n },
	};
	return 0;
}

static int on_value(llhttp_t *parser, const char *at, size_t n)
{
	struct parts *p = parser->data;

	if (p->head->fields_n == 0) {
		return -1;
	}
	struct parse_field *f = &p->head->fields[p->head->fields_n - 1];

	f->value = (struct span){ .p = at, .n = n };
	return 0;
}

static int on_complete(llhttp_t *parser)
{
	struct parts *p = parser->data;

	p->is_complete = true;
	return 0;
}

static const llhttp_settings_t settings = {
	.on_header_field = on_name,
	.on_header_value = on_value,
	.on_headers_complete = on_complete,
};

static int split_fields(struct span bytes, struct parse_head *head, struct parse_refusal *refusal)
{
	struct parts parts = { .head = head };
	llhttp_t parser;

	llhttp_init(&parser, HTTP_REQUEST, &settings);
	parser.data = &parts;
	llhttp_errno_t r = llhttp_execute(&parser, bytes.p, bytes.n);

	if (parts.is_too_many) {
		return refuse(refusal, 431, "too many header fields");
	}
	if (r == HPE_INVALID_METHOD) {
		return refuse(refusal, 501, "the method is not known");
	}
	if ((r != HPE_OK && r != HPE_PAUSED_UPGRADE) || !parts.is_complete) {
		return refuse(refusal, 400, "the header is malformed");
	}
	for (size_t i = 0; i < head->fields_n; i++) {
		if (!parse_is_token(head->fields[i].name) ||
				!parse_is_value(head->fields[i].value)) {
			return refuse(refusal, 400, "a header field is malformed");
		}
		head->fields[i].value = parse_trim(head->fields[i].value);
	}
	return 0;
}

struct seen {
	size_t host, length, coding;
	bool is_close, is_keep_alive;
};

static int see_host(struct parse_head *head, struct seen *seen, struct span value,
		struct parse_refusal *refusal)
{
	(void)head;
	for (size_t i = 0; i < value.n; i++) {
		if ((unsigned char)value.p[i] >= 0x80 || strchr(" \t,/?#@\\", value.p[i])) {
			return refuse(refusal, 400, "Host is malformed");
		}
	}
	return ++seen->host > 1 ? refuse(refusal, 400, "more than one Host") : 0;
}

static int see_length(struct parse_head *head, struct seen *seen, struct span value,
		struct parse_refusal *refusal)
{
	uint64_t v = 0;

	if (++seen->length > 1) {
		return refuse(refusal, 400, "more than one Content-Length");
	}
	for (size_t i = 0; i < value.n; i++) {
		if (value.p[i] < '0' || value.p[i] > '9') {
			return refuse(refusal, 400, "Content-Length is no number");
		}
		v = v * 10 + (uint64_t)(value.p[i] - '0');
	}
	/* 18 digits never overflow. */
	if (value.n == 0 || value.n > 18) {
		return refuse(refusal, 400, "Content-Length is no number, or too large");
	}
	head->length = v;
	return 0;
}

static int see_coding(struct parse_head *head, struct seen *seen, struct span value,
		struct parse_refusal *refusal)
{
	if (++seen->coding > 1 || head->is_10) {
		return refuse(refusal, 400, "Transfer-Encoding must not be here");
	}
	if (!parse_same_name(value, "chunked")) {
		return refuse(refusal, 501, "only the transfer coding chunked is known");
	}
	head->is_chunked = true;
	return 0;
}

static int see_connection(struct parse_head *head, struct seen *seen, struct span value,
		struct parse_refusal *refusal)
{
	struct span token = { .p = NULL };

	(void)head;
	(void)refusal;
	while (span_next(&value, ',', &token)) {
		token = parse_trim(token);
		seen->is_close |= parse_same_name(token, "close");
		seen->is_keep_alive |= parse_same_name(token, "keep-alive");
	}
	return 0;
}

static int see_expect(struct parse_head *head, struct seen *seen, struct span value,
		struct parse_refusal *refusal)
{
	(void)seen;
	if (!parse_same_name(value, "100-continue")) {
		return refuse(refusal, 417, "only the expectation 100-continue is known");
	}
	/* RFC 9110 section 10.1.1: not of an HTTP/1.0 client. */
	head->expects = !head->is_10;
	return 0;
}

static const struct {
	const char *name;
	int (*see)(struct parse_head *head, struct seen *seen, struct span value,
			struct parse_refusal *refusal);
} fields_that_count[] = {
	{ "host", see_host },
	{ "content-length", see_length },
	{ "transfer-encoding", see_coding },
	{ "connection", see_connection },
	{ "expect", see_expect },
};

static int see_field(struct parse_head *head, struct seen *seen, const struct parse_field *f,
		struct parse_refusal *refusal)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields_that_count); i++) {
		if (parse_same_name(f->name, fields_that_count[i].name)) {
			return fields_that_count[i].see(head, seen, f->value, refusal);
		}
	}
	return 0;
}

int parse_head(struct span bytes, struct parse_head *head, struct parse_refusal *out_refusal)
{
	struct seen seen = { .host = 0 };

	if (request_line(bytes, head, out_refusal) < 0) {
		return -1;
	}
	if (split_fields(bytes, head, out_refusal) < 0) {
		return -1;
	}
	for (size_t i = 0; i < head->fields_n; i++) {
		if (see_field(head, &seen, &head->fields[i], out_refusal) < 0) {
			return -1;
		}
	}
	if (seen.length > 0 && seen.coding > 0) {
		return refuse(out_refusal, 400, "both Content-Length and Transfer-Encoding");
	}
	if (seen.host == 0 && !head->is_10) {
		return refuse(out_refusal, 400, "Host is missing");
	}
	head->keep_alive = !seen.is_close && (!head->is_10 || seen.is_keep_alive);
	head->expects = head->expects && (head->is_chunked || head->length > 0);
	return 0;
}
