/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * jsondec - decode an object into a struct by a table of fields.
 *
 * The error's text carries the path: "config.Env[2]: expected a string". Absent and null are the
 * same. Unknown members are ignored unless the table ends with JSONDEC_STRICT.
 */
#ifndef OSBX_JSONDEC_H
#define OSBX_JSONDEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/json.h>

enum jsondec_kind {
	JSONDEC_STRING, /* char *, owned; free the previous value first */
	JSONDEC_STRV,   /* struct strv; an array of strings */
	JSONDEC_U64,    /* uint64_t */
	JSONDEC_BOOL,   /* bool */
	JSONDEC_OBJECT, /* struct described by .fields */
	JSONDEC_CUSTOM, /* .decode */
	JSONDEC_KIND_COUNT,
};

#define JSONDEC_REQUIRED 1U /* absent or null is an error */
#define JSONDEC_STRICT   2U /* on the last row: unknown members are errors */

struct jsondec_field {
	const char *name; /* NULL ends the table */
	enum jsondec_kind kind;
	size_t offset;
	unsigned int flags;
	uint64_t max; /* JSONDEC_U64: largest value; strings: bytes, 0 = LIMIT_ARGS_BYTES */
	const struct jsondec_field *fields;
	/* Called with the address of the member. */
	int (*decode)(const struct json *v, void *out, struct error *e);
};

/* Fill the struct at out. 0, or -1 with ERRC_INVALID or ERRC_LIMIT and the path in the text. What
 * was decoded before the failure stays in out and is freed by its owner. */
int jsondec_object(const struct json *v, const struct jsondec_field *fields, void *out,
		struct error *e) MUST_CHECK NONNULL(2, 3, 4);

#endif
