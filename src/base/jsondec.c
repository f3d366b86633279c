/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <osbx/jsondec.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/str.h>
#include <osbx/strv.h>

#include "json_scan.h"

/* Put a member's name before the text: "config" + "." + "Env[2]: expected a string". */
static int path_prepend(struct error *e, const char *name, const char *separator)
{
	char tail[ERROR_TEXT_MAX];
	int n = 0;

	memcpy(tail, e->text, sizeof(tail));
	n = snprintf(e->text, sizeof(e->text), "%s%s%s", name, separator, tail);
	e->truncated |= n < 0 || (size_t)n >= sizeof(e->text);
	return -1;
}

static uint64_t bytes_max(const struct jsondec_field *f)
{
	return f->max ? f->max : LIMIT_ARGS_BYTES;
}

static int decode_string(
		const struct json *v, const struct jsondec_field *f, void *out, struct error *e)
{
	char **member = out;
	const char *s = json_string(v);

	if (!s) {
		return error_set(e, ERRC_INVALID, ": expected a string");
	}
	if (strlen(s) > bytes_max(f)) {
		return error_set(e, ERRC_LIMIT, ": longer than %" PRIu64 " bytes", bytes_max(f));
	}
	free(*member);
	*member = mem_strdup(s);
	return 0;
}

static int decode_strv(
		const struct json *v, const struct jsondec_field *f, void *out, struct error *e)
{
	struct strv *member = out;
	uint64_t bytes = 0;
	size_t i = 0;

	if (!json_is_array(v)) {
		return error_set(e, ERRC_INVALID, ": expected an array of strings");
	}
	strv_done(member);
	json_for_each(child, v) {
		const char *s = json_string(child);

		if (!s) {
			return error_set(e, ERRC_INVALID, "[%zu]: expected a string", i);
		}
		bytes += strlen(s) + 1;
		if (bytes > bytes_max(f)) {
			return error_set(e, ERRC_LIMIT, ": longer than %" PRIu64 " bytes in all",
					bytes_max(f));
		}
		if (strv_add(member, s) < 0) {
			return error_set(e, ERRC_LIMIT, ": more than %d strings", LIMIT_ARGS);
		}
		i++;
	}
	return 0;
}

static int decode_u64(
		const struct json *v, const struct jsondec_field *f, void *out, struct error *e)
{
	/* A maximum of 0 would allow nothing: none was given. */
	const uint64_t max = f->max ? f->max : UINT64_MAX;
	int r = json_u64(v, max, out);

	if (r == -ERANGE) {
		return error_set(e, ERRC_LIMIT, ": larger than %" PRIu64,
				max < JSON_U64_MAX ? max : JSON_U64_MAX);
	}
	return r < 0 ? error_set(e, ERRC_INVALID, ": expected a whole number, 0 or more") : 0;
}

static int decode_bool(
		const struct json *v, const struct jsondec_field *f, void *out, struct error *e)
{
	(void)f;
	return json_bool(v, out) < 0 ? error_set(e, ERRC_INVALID, ": expected true or false") : 0;
}

static int decode_object(
		const struct json *v, const struct jsondec_field *f, void *out, struct error *e)
{
	if (!json_is_object(v)) {
		return error_set(e, ERRC_INVALID, ": expected an object");
	}
	/* As deep as our own tables. */
	return jsondec_object(v, f->fields, out, e) < 0 ? path_prepend(e, "", ".") : 0;
}

/* A custom decoder's text is a sentence, or begins with an index of its own. */
static int decode_custom(
		const struct json *v, const struct jsondec_field *f, void *out, struct error *e)
{
	if (f->decode(v, out, e) == 0) {
		return 0;
	}
	return e->text[0] == '[' ? -1 : path_prepend(e, "", ": ");
}

/* Each decoder's error text begins with what stands between the member's name and the rest. */
static int (*const decoders[])(
		const struct json *v, const struct jsondec_field *f, void *out, struct error *e) = {
	[JSONDEC_STRING] = decode_string,
	[JSONDEC_STRV] = decode_strv,
	[JSONDEC_U64] = decode_u64,
	[JSONDEC_BOOL] = decode_bool,
	[JSONDEC_OBJECT] = decode_object,
	[JSONDEC_CUSTOM] = decode_custom,
};
_Static_assert(ARRAY_SIZE(decoders) == JSONDEC_KIND_COUNT, "decoders is complete");

static const struct jsondec_field *field_of(const struct jsondec_field *fields, const char *name)
{
	for (const struct jsondec_field *f = fields; f->name; f++) {
		if (str_eq(f->name, name)) {
			return f;
		}
	}
	return NULL;
}

/* Members that no row names: those that a reader without regard to case takes for a field (Go's
 * does) are refused, others only if the table is strict. */
static int check_unknown(const struct json *v, const struct jsondec_field *fields, bool is_strict,
		struct error *e)
{
	json_for_each(child, v) {
		const char *name = json_name(child);

		if (field_of(fields, name)) {
			continue;
		}
		for (const struct jsondec_field *f = fields; f->name; f++) {
			if (strcasecmp(f->name, name) == 0) {
				return error_set(e, ERRC_INVALID, "%s: expected the name \"%s\"",
						name, f->name);
			}
		}
		if (is_strict) {
			return error_set(e, ERRC_INVALID, "%s: unknown member", name);
		}
	}
	return 0;
}

int jsondec_object(const struct json *v, const struct jsondec_field *fields, void *out,
		struct error *e)
{
	unsigned int last_flags = 0;
	const struct jsondec_field *f = fields;

	if (!json_is_object(v)) {
		return error_set(e, ERRC_INVALID, "expected an object");
	}
	for (; f->name; f++) {
		const struct json *member = json_get(v, f->name);

		assert((unsigned int)f->kind < JSONDEC_KIND_COUNT);
		last_flags = f->flags;
		if (!member && (f->flags & JSONDEC_REQUIRED) != 0) {
			return error_set(e, ERRC_INVALID, "%s: missing", f->name);
		}
		if (member && decoders[f->kind](member, f, (char *)out + f->offset, e) < 0) {
			return path_prepend(e, f->name, "");
		}
	}
	return check_unknown(v, fields, ((last_flags | f->flags) & JSONDEC_STRICT) != 0, e);
}
