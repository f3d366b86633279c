/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy_head - the head of an answer, and what may not be passed on of a head.
 *
 * Knows no connection, and not <osbx/http.h>: names of llhttp.h and of that header clash.
 */
#ifndef OSBX_HTTP_PROXY_HEAD_H
#define OSBX_HTTP_PROXY_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <osbx/compiler.h>
#include <osbx/span.h>

#include "parse.h"

struct proxy_answer {
	int status;
	bool is_chunked;
	bool has_length;
	uint64_t length;
	struct span upgrade; /* what 101 changes to, empty: nothing */
	size_t fields_n;
	struct parse_field fields[PARSE_FIELDS_MAX];
};

/* Take the whole head of an answer apart; spans are borrowed from bytes. 0 or -EBADMSG. */
int proxy_answer_parse(struct span bytes, struct proxy_answer *out_answer) NONNULL(2) MUST_CHECK;
/* Is this field for one connection only (RFC 9110 section 7.6.1)? Also what Connection names, and
 * what the framing of a body and an upgrade are told by. */
bool proxy_is_hop(const struct parse_field *fields, size_t n, struct span name);
/* The field's value, p NULL when absent. */
struct span proxy_field(const struct parse_field *fields, size_t n, const char *name) NONNULL(3);
/* Does a list field ("a, b"), in all its lines together, hold this token? */
bool proxy_field_has(const struct parse_field *fields, size_t n, const char *name,
		struct span token) NONNULL(3);

#endif
