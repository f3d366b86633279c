/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <osbx/utf8.h>

#include "json_scan.h"

static void put(struct json_writer *w, const char *p, size_t n)
{
	if (!w->failed && buf_append(w->out, p, n) < 0) {
		w->failed = true;
	}
}

static void put_str(struct json_writer *w, const char *s)
{
	put(w, s, strlen(s));
}

/* The escape of a byte, or NULL if it stands for itself. */
static const char *escape_of(unsigned char c, char out[8])
{
	static const char plain[] = "\"\\\b\f\n\r\t";
	static const char letters[] = "\"\\bfnrt";
	const char *at = NULL;

	if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7f) {
		return NULL;
	}
	at = strchr(plain, c);
	if (at) {
		(void)snprintf(out, 8, "\\%c", letters[at - plain]);
	} else {
		(void)snprintf(out, 8, "\\u%04x", c);
	}
	return out;
}

static void put_quoted(struct json_writer *w, const char *s)
{
	size_t n = strlen(s);
	size_t from = 0;
	char escape[8];

	put(w, "\"", 1);
	for (size_t i = 0; i < n;) {
		size_t len = utf8_len(s + i, n - i);
		const char *instead =
				len == 0 ? "\xef\xbf\xbd" : escape_of((unsigned char)s[i], escape);

		if (instead) {
			put(w, s + from, i - from);
			put_str(w, instead);
			from = i + 1;
		}
		i += len == 0 ? 1 : len;
	}
	put(w, s + from, n - from);
	put(w, "\"", 1);
}

/* What stands before each value. */
static void begin_value(struct json_writer *w, const char *name)
{
	if (w->need_comma) {
		put(w, ",", 1);
	}
	if (name) {
		put_quoted(w, name);
		put(w, ":", 1);
	}
	w->need_comma = true;
}

static void open_container(struct json_writer *w, const char *name, const char *bracket)
{
	begin_value(w, name);
	put_str(w, bracket);
	w->depth++;
	w->need_comma = false;
}

static void close_container(struct json_writer *w, const char *bracket)
{
	assert(w->depth > 0);

	put_str(w, bracket);
	w->depth--;
	w->need_comma = true;
}

void json_object_begin(struct json_writer *w, const char *name)
{
	open_container(w, name, "{");
}

void json_object_end(struct json_writer *w)
{
	close_container(w, "}");
}

void json_array_begin(struct json_writer *w, const char *name)
{
	open_container(w, name, "[");
}

void json_array_end(struct json_writer *w)
{
	close_container(w, "]");
}

void json_add_raw(struct json_writer *w, const char *name, const char *token)
{
	begin_value(w, name);
	put_str(w, token);
}

void json_add_string(struct json_writer *w, const char *name, const char *value)
{
	if (!value) {
		json_add_raw(w, name, "null");
		return;
	}
	begin_value(w, name);
	put_quoted(w, value);
}

void json_add_u64(struct json_writer *w, const char *name, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, value);
	json_add_raw(w, name, text);
}

void json_add_i64(struct json_writer *w, const char *name, int64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRId64, value);
	json_add_raw(w, name, text);
}

void json_add_bool(struct json_writer *w, const char *name, bool value)
{
	json_add_raw(w, name, value ? "true" : "false");
}
