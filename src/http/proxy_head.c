/* SPDX-License-Identifier: Apache-2.0 */
/* As in parse.c: llhttp takes the head apart, and what decides about the length of the body (RFC
 * 9112 section 6.3) is judged here. */
#include <errno.h>
#include <llhttp.h>
#include <string.h>
#include <strings.h>

#include "proxy_head.h"

static const char *const hop_names[] = { "connection", "keep-alive", "proxy-connection", "te",
	"transfer-encoding", "upgrade", "proxy-authorization", "proxy-authenticate",
	"content-length" };

struct parts {
	struct proxy_answer *answer;
	bool is_complete;
};

static int on_name(llhttp_t *parser, const char *at, size_t n)
{
	struct parts *p = parser->data;

	if (p->answer->fields_n == ARRAY_SIZE(p->answer->fields)) {
		return -1;
	}
	p->answer->fields[p->answer->fields_n++] = (struct parse_field){
		.name = { .p = at, .n = n },
		/* A value of no bytes is not told. */
		.value = { .p = at + n },
	};
	return 0;
}

static int on_value(llhttp_t *parser, const char *at, size_t n)
{
	struct parts *p = parser->data;

	if (p->answer->fields_n == 0) {
		return -1;
	}
	p->answer->fields[p->answer->fields_n - 1].value = (struct span){ .p = at, .n = n };
	return 0;
}

static int on_complete(llhttp_t *parser)
{
	struct parts *p = parser->data;

	p->is_complete = true;
	/* The body is not llhttp's. */
	return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
	.on_header_field = on_name,
	.on_header_value = on_value,
	.on_headers_complete = on_complete,
};

/* "HTTP/1.x 200" */
static int status_line(struct span bytes, struct proxy_answer *a)
{
	const char *p = bytes.p;

	if (bytes.n < 12 || memcmp(p, "HTTP/1.", 7) != 0 || (p[7] != '0' && p[7] != '1') ||
			p[8] != ' ') {
		return -EBADMSG;
	}
	for (size_t i = 9; i < 12; i++) {
		if (p[i] < '0' || p[i] > '9') {
			return -EBADMSG;
		}
		a->status = a->status * 10 + (p[i] - '0');
	}
	return a->status >= 100 ? 0 : -EBADMSG;
}

static int length_see(struct proxy_answer *a, struct span value)
{
	uint64_t v = 0;

	/* 18 digits never overflow. */
	if (a->has_length || value.n == 0 || value.n > 18) {
		return -EBADMSG;
	}
	for (size_t i = 0; i < value.n; i++) {
		if (value.p[i] < '0' || value.p[i] > '9') {
			return -EBADMSG;
		}
		v = v * 10 + (uint64_t)(value.p[i] - '0');
	}
	a->has_length = true;
	a->length = v;
	return 0;
}

static int framing_see(struct proxy_answer *a, const struct parse_field *f)
{
	if (parse_same_name(f->name, "content-length")) {
		return length_see(a, f->value);
	}
	if (parse_same_name(f->name, "transfer-encoding")) {
		/* Another coding would have to be undone before it can be passed on. */
		if (a->is_chunked || !parse_same_name(f->value, "chunked")) {
			return -EBADMSG;
		}
		a->is_chunked = true;
	}
	return 0;
}

static int fields_see(struct proxy_answer *a)
{
	for (size_t i = 0; i < a->fields_n; i++) {
		struct parse_field *f = &a->fields[i];

		if (!parse_is_token(f->name) || !parse_is_value(f->value)) {
			return -EBADMSG;
		}
		f->value = parse_trim(f->value);
		if (framing_see(a, f) < 0) {
			return -EBADMSG;
		}
	}
	/* What is both is read in two ways (RFC 9112 section 6.3). */
	return a->is_chunked && a->has_length ? -EBADMSG : 0;
}

int proxy_answer_parse(struct span bytes, struct proxy_answer *out_answer)
{
	struct parts parts = { .answer = out_answer };
	llhttp_t parser;

	*out_answer = (struct proxy_answer){ .status = 0 };
	if (status_line(bytes, out_answer) < 0) {
		return -EBADMSG;
	}
	llhttp_init(&parser, HTTP_RESPONSE, &settings);
	parser.data = &parts;
	llhttp_errno_t r = llhttp_execute(&parser, bytes.p, bytes.n);

	/* llhttp leaves at an upgrade, or where on_complete told it to. */
	if ((r != HPE_PAUSED && r != HPE_PAUSED_UPGRADE && r != HPE_OK) || !parts.is_complete) {
		return -EBADMSG;
	}
	if (fields_see(out_answer) < 0) {
		return -EBADMSG;
	}
	if (proxy_field_has(out_answer->fields, out_answer->fields_n, "connection",
			    span_of("upgrade"))) {
		out_answer->upgrade =
				proxy_field(out_answer->fields, out_answer->fields_n, "upgrade");
	}
	return 0;
}

struct span proxy_field(const struct parse_field *fields, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (parse_same_name(fields[i].name, name)) {
			return fields[i].value;
		}
	}
	return (struct span){ .p = NULL };
}

static bool list_has(struct span list, struct span token)
{
	struct span piece = { .p = NULL };

	while (span_next(&list, ',', &piece)) {
		piece = parse_trim(piece);
		if (piece.n == token.n && strncasecmp(piece.p, token.p, token.n) == 0) {
			return true;
		}
	}
	return false;
}

bool proxy_field_has(
		const struct parse_field *fields, size_t n, const char *name, struct span token)
{
	for (size_t i = 0; i < n; i++) {
		if (parse_same_name(fields[i].name, name) && list_has(fields[i].value, token)) {
			return true;
		}
	}
	return false;
}

bool proxy_is_hop(const struct parse_field *fields, size_t n, struct span name)
{
	for (size_t i = 0; i < ARRAY_SIZE(hop_names); i++) {
		if (parse_same_name(name, hop_names[i])) {
			return true;
		}
	}
	return proxy_field_has(fields, n, "connection", name);
}
