/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "api_internal.h"

#define NAME_MAX_BYTES   63
#define PREFIX_MAX_BYTES 253
#define RESERVED         "opensandbox.io/"

#define ALNUM "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static const char *const hidden_prefixes[] = {
	RESERVED,
	"org.opencontainers.image.",
	"com.docker.",
	"desktop.docker.",
};

/* [A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])? of at most max bytes. */
static bool is_name(const char *s, size_t n)
{
	if (n == 0 || n > NAME_MAX_BYTES || strspn(s, ALNUM "-_.") < n) {
		return false;
	}
	return isalnum((unsigned char)s[0]) && isalnum((unsigned char)s[n - 1]);
}

/* A DNS subdomain (RFC 1123) in lower case. */
static bool is_subdomain(struct span s)
{
	struct span label;

	if (s.n == 0 || s.n > PREFIX_MAX_BYTES) {
		return false;
	}
	bool ends_with_dot = s.p[s.n - 1] == '.';

	while (span_next(&s, '.', &label)) {
		if (label.n == 0 || label.n > NAME_MAX_BYTES || label.p[0] == '-' ||
				label.p[label.n - 1] == '-') {
			return false;
		}
		for (size_t i = 0; i < label.n; i++) {
			if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-", label.p[i])) {
				return false;
			}
		}
	}
	return !ends_with_dot;
}

bool metadata_key_is_valid(const char *key)
{
	const char *slash = strchr(key, '/');

	if (!slash) {
		return is_name(key, strlen(key));
	}
	return is_subdomain((struct span){ .p = key, .n = (size_t)(slash - key) }) &&
	       is_name(slash + 1, strlen(slash + 1));
}

bool metadata_value_is_valid(const char *value)
{
	return value[0] == '\0' || is_name(value, strlen(value));
}

bool metadata_is_reserved(const char *key)
{
	return str_after(key, RESERVED) != NULL;
}

bool metadata_is_hidden(const char *label)
{
	for (size_t i = 0; i < ARRAY_SIZE(hidden_prefixes); i++) {
		if (str_after(label, hidden_prefixes[i])) {
			return true;
		}
	}
	return false;
}

static int pair_check(const char *key, const char *value, const char *code, struct refusal *why)
{
	if (!metadata_key_is_valid(key)) {
		return refuse(why, 400, code,
				"metadata key \"%.80s\": not a label: [PREFIX/]NAME of letters, "
				"digits and inner - _ ., at most 63 bytes",
				key);
	}
	if (metadata_is_reserved(key)) {
		return refuse(why, 400, code, "metadata key \"%.80s\": " RESERVED " is reserved",
				key);
	}
	if (!metadata_value_is_valid(value)) {
		return refuse(why, 400, code,
				"metadata value of \"%.80s\": empty, or letters, digits and inner "
				"- _ ., at most 63 bytes",
				key);
	}
	return 0;
}

int metadata_add(struct strv *labels, const char *key, const char *value, struct refusal *why)
{
	if (pair_check(key, value, API_INVALID_LABEL, why) < 0) {
		return -1;
	}
	if (labels->n >= LIMIT_LABELS || strv_addf(labels, "%s=%s", key, value) < 0) {
		return refuse(why, 400, API_INVALID_LABEL, "more than %d labels", LIMIT_LABELS);
	}
	return 0;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9') {
		return c - '0';
	}
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decode escapes once, in place. Number of escapes, -1 for a NUL. */
static int decode_once(char *s)
{
	char *to = s;
	int n = 0;

	for (const char *at = s; *at; at++) {
		int high = *at == '%' ? hex_value(at[1]) : -1;
		int low = high < 0 ? -1 : hex_value(at[2]);

		if (low < 0) {
			*to++ = *at;
			continue;
		}
		if (high + low == 0) {
			return -1;
		}
		*to++ = (char)(high << 4 | low);
		at += 2;
		n++;
	}
	*to = '\0';
	return n;
}

/* A '%' can be in no label, so clients that encode twice or three times are all understood. */
static int decode_all(char *s)
{
	int n = 0;

	do {
		n = decode_once(s);
	} while (n > 0);
	return n;
}

int metadata_filter(const char *text, struct strv *out_pairs)
{
	AUTO(strv) struct strv pairs = STRV_INIT;
	struct span rest = span_of(text);
	struct span piece;

	while (text[0] != '\0' && span_next(&rest, '&', &piece)) {
		autofree char *pair = span_dup(piece);
		char *eq = pair ? strchr(pair, '=') : NULL;

		if (!eq || eq == pair || pairs.n >= LIMIT_LABELS) {
			return -1;
		}
		*eq = '\0';
		if (decode_all(pair) < 0 || decode_all(eq + 1) < 0 || strchr(pair, '=') ||
				strv_addf(&pairs, "%s=%s", pair, eq + 1) < 0) {
			return -1;
		}
	}
	*out_pairs = TAKE(pairs, (struct strv)STRV_INIT);
	return 0;
}

static bool has_label(const struct strv *labels, const char *label)
{
	strv_for_each(labels, i) {
		if (str_eq(labels->v[i], label)) {
			return true;
		}
	}
	return false;
}

bool metadata_matches(const struct strv *labels, const struct strv *pairs)
{
	strv_for_each(pairs, i) {
		if (metadata_is_hidden(pairs->v[i]) || !has_label(labels, pairs->v[i])) {
			return false;
		}
	}
	return true;
}

static bool is_of_key(const char *label, const char *key)
{
	const char *rest = str_after(label, key);

	return rest && rest[0] == '=';
}

static bool is_patched(const struct json *patch, const char *label)
{
	json_for_each(member, patch) {
		if (is_of_key(label, json_name(member))) {
			return true;
		}
	}
	return false;
}

int metadata_patch(const struct json *patch, const struct strv *labels, struct strv *out_labels,
		struct refusal *why)
{
	AUTO(strv) struct strv result = STRV_INIT;

	strv_for_each(labels, i) {
		if (!is_patched(patch, labels->v[i]) && strv_add(&result, labels->v[i]) < 0) {
			return refuse(why, 400, API_METADATA_LABEL, "too many labels");
		}
	}
	json_for_each(member, patch) {
		const char *key = json_name(member);
		const char *value = json_string(member);

		/* What is null, is removed. */
		if (!value && json_get(patch, key)) {
			return refuse_field(why, key, "expected a string or null");
		}
		if (pair_check(key, value ? value : "", API_METADATA_LABEL, why) < 0) {
			return -1;
		}
		if (value && (result.n >= LIMIT_LABELS ||
					     strv_addf(&result, "%s=%s", key, value) < 0)) {
			return refuse(why, 400, API_METADATA_LABEL, "more than %d labels",
					LIMIT_LABELS);
		}
	}
	*out_labels = TAKE(result, (struct strv)STRV_INIT);
	return 0;
}
