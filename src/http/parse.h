/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse - the head of a request, and the framing of its body.
 *
 * Knows no connection, and not <osbx/http.h>: names of llhttp.h and of that header clash.
 */
#ifndef OSBX_HTTP_PARSE_H
#define OSBX_HTTP_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <osbx/compiler.h>
#include <osbx/span.h>

#define PARSE_HEAD_MAX    (32U << 10)
#define PARSE_TARGET_MAX  (16U << 10)
#define PARSE_FIELDS_MAX  100
#define PARSE_TRAILER_MAX (8U << 10) /* trailer fields, and extensions of one chunk */

/* Search for the end of a head, each byte looked at once. */
struct parse_scan {
	size_t at;
	size_t line;  /* offset of the line that at is in */
	size_t lines; /* whole ones, the request line too */
	bool after_cr;
};

struct parse_field {
	struct span name, value;
};

struct parse_head {
	struct span method;
	struct span target; /* without scheme and authority */
	bool is_10;         /* HTTP/1.0 */
	bool keep_alive;
	bool expects; /* "Expect: 100-continue" */
	bool is_chunked;
	uint64_t length; /* of the body, 0 without one */
	size_t fields_n;
	size_t fields_max;
	struct parse_field *fields; /* the caller's memory */
};

/* Why a head is refused: the status of the answer and a sentence. */
struct parse_refusal {
	int status;
	const char *what;
};

/* 1: a whole head of s->at bytes; 0: it goes on; -1: refused. p is the same head again from its
 * beginning. Only CR LF ends a line; control bytes, folded lines and what is too long are refused
 * here, before anything is understood. */
int parse_scan(struct parse_scan *s, struct span bytes, struct parse_refusal *out_refusal)
		NONNULL(1, 3) MUST_CHECK;
/* Take a whole head apart. head->fields and fields_max are set by the caller, spans are borrowed
 * from bytes. 0, or -1: refused, and what is in head is not to be trusted. */
int parse_head(struct span bytes, struct parse_head *head, struct parse_refusal *out_refusal)
		NONNULL(2, 3) MUST_CHECK;
/* Name of a field or of a method (RFC 9110 section 5.6.2)? */
bool parse_is_token(struct span s) MUST_CHECK;
/* Bytes that may stand in a field's value: no control bytes but HTAB. */
bool parse_is_value(struct span s) MUST_CHECK;
/* Compare with an ASCII string without regard to case. */
bool parse_same_name(struct span s, const char *name) NONNULL(2);
/* s without spaces and tabs at its ends. */
struct span parse_trim(struct span s);

/* A body in chunks (RFC 9112 section 7.1). */
enum chunked_state {
	CHUNKED_SIZE, /* no digit yet */
	CHUNKED_SIZE_MORE,
	CHUNKED_EXTENSION,
	CHUNKED_SIZE_LF,
	CHUNKED_DATA, /* left bytes of it are to come */
	CHUNKED_DATA_CR,
	CHUNKED_DATA_LF,
	CHUNKED_TRAILER, /* at the beginning of a line */
	CHUNKED_TRAILER_MORE,
	CHUNKED_TRAILER_LF,
	CHUNKED_END_LF,
	CHUNKED_DONE,
};

struct chunked {
	enum chunked_state state;
	uint64_t left;
	size_t beside; /* bytes of extensions or trailers, which are read and dropped */
};

/* Step over what is framing, up to data (state CHUNKED_DATA), to the end (CHUNKED_DONE) or to the
 * end of the bytes. The number of bytes, or -EBADMSG. */
ssize_t chunked_step(struct chunked *c, struct span bytes) NONNULL(1) MUST_CHECK;
/* n bytes of data have been taken, at most c->left. */
void chunked_take(struct chunked *c, uint64_t n) NONNULL(1);

#endif
