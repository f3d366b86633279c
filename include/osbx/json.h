/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * json - bounded JSON (RFC 8259): strict UTF-8, depth and node count limited, a duplicate name in
 * one object is refused (two readers must not see two documents).
 */
#ifndef OSBX_JSON_H
#define OSBX_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <osbx/buf.h>
#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/span.h>

struct json; /* a value; all others of its document are borrowed from the root */

/* Parse a whole document. Root owned by the caller, NULL on failure (ERRC_INVALID). */
struct json *json_parse(struct span text, struct error *e) MUST_CHECK NONNULL(2);
/* Before parsing what is not ours: a NUL and half a surrogate pair in a string, which others write
 * and json_parse refuses, become U+FFFD. In place. */
void json_mend(struct buf *text) NONNULL(1);
void json_free(struct json *root);
AUTO_DEFINE_PTR(json, struct json, json_free);
/* The same for a document that holds secrets: it is overwritten first. */
void json_free_secret(struct json *root);
/* Member of an object, NULL when absent, null, or v is no object. */
const struct json *json_get(const struct json *v, const char *name) NONNULL(2);
/* Is it absent or null? */
bool json_is_null(const struct json *v);
/* Type questions; false for NULL. */
bool json_is_object(const struct json *v);
bool json_is_array(const struct json *v);
bool json_is_string(const struct json *v);
/* String value (no embedded NUL by construction), NULL when v is no string. */
const char *json_string(const struct json *v);
/* Integral number 0..max (also beyond 2^53 it is refused). 0, -EINVAL or -ERANGE. */
int json_u64(const struct json *v, uint64_t max, uint64_t *out_v) NONNULL(3) MUST_CHECK;
/* true/false into out_v. 0 or -EINVAL. */
int json_bool(const struct json *v, bool *out_v) NONNULL(2) MUST_CHECK;
/* Iterate the children of an array or object: first child, next sibling, name of a member. */
const struct json *json_first(const struct json *v);
const struct json *json_next(const struct json *v);
const char *json_name(const struct json *v);
#define json_for_each(child, v) \
	for (const struct json *child = json_first(v); (child); (child) = json_next(child))
/* Number of children. */
size_t json_size(const struct json *v);

/* Writing: append tokens to a buffer. Commas are placed by the writer. */
struct json_writer {
	struct buf *out;
	unsigned int depth;
	bool need_comma;
	bool failed; /* the buffer's maximum was passed, sticky */
};
#define JSON_WRITER(buf_ptr)     \
	{                        \
		.out = (buf_ptr) \
	}
/* Open and close an object or array; name is NULL for the document itself and inside arrays. */
void json_object_begin(struct json_writer *w, const char *name) NONNULL(1);
void json_object_end(struct json_writer *w) NONNULL(1);
void json_array_begin(struct json_writer *w, const char *name) NONNULL(1);
void json_array_end(struct json_writer *w) NONNULL(1);
/* name is NULL inside arrays. Invalid UTF-8 becomes U+FFFD. A NULL value writes null. */
void json_add_string(struct json_writer *w, const char *name, const char *value) NONNULL(1);
void json_add_u64(struct json_writer *w, const char *name, uint64_t value) NONNULL(1);
void json_add_i64(struct json_writer *w, const char *name, int64_t value) NONNULL(1);
void json_add_bool(struct json_writer *w, const char *name, bool value) NONNULL(1);
/* A parsed value as it was. */
void json_add_value(struct json_writer *w, const char *name, const struct json *value) NONNULL(1);

#endif
