/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include <osbx/limits.h>
#include <osbx/str.h>

#include "api_internal.h"

#define QUANTITY_TEXT_MAX 32

/* Copy without white space around it. False when it does not fit. */
static bool text_trim(const char *text, char out[QUANTITY_TEXT_MAX])
{
	while (isspace((unsigned char)*text)) {
		text++;
	}
	size_t n = strlen(text);

	while (n > 0 && isspace((unsigned char)text[n - 1])) {
		n--;
	}
	if (n == 0 || n >= QUANTITY_TEXT_MAX) {
		return false;
	}
	memcpy(out, text, n);
	out[n] = '\0';
	return true;
}

/* "N", "N.F", "N." or ".F" in thousandths, rounded up beyond them. */
static int decimal_milli(char *text, uint64_t *out_milli)
{
	char *point = strchr(text, '.');
	uint64_t whole = 0;
	uint64_t milli = 0;
	bool more = false;

	if (point) {
		*point = '\0';
		if (strspn(point + 1, "0123456789") < strlen(point + 1) ||
				(point == text && point[1] == '\0')) {
			return -EINVAL;
		}
		for (size_t i = 1; i <= 3; i++) {
			bool is_there = strlen(point + 1) >= i;

			milli = 10 * milli + (is_there ? (uint64_t)(point[i] - '0') : 0);
		}
		more = strlen(point + 1) > 3 && strspn(point + 4, "0") < strlen(point + 4);
	}
	int r = point == text ? 0 : str_to_u64(text, LIMIT_CPU_MILLI_MAX, &whole);

	if (r < 0) {
		return r;
	}
	*out_milli = 1000 * whole + milli + (more ? 1 : 0);
	return 0;
}

int quantity_cpu(const char *text, uint64_t *out_milli)
{
	char copy[QUANTITY_TEXT_MAX];
	uint64_t milli = 0;

	if (!text_trim(text, copy)) {
		return -EINVAL;
	}
	size_t n = strlen(copy);
	int r = 0;

	if (copy[n - 1] == 'm') {
		copy[n - 1] = '\0';
		r = str_to_u64(copy, LIMIT_CPU_MILLI_MAX, &milli);
	} else {
		r = decimal_milli(copy, &milli);
	}
	if (r == 0 && (milli == 0 || milli > LIMIT_CPU_MILLI_MAX)) {
		r = -ERANGE;
	}
	if (r == 0) {
		*out_milli = milli;
	}
	return r;
}

static const struct {
	const char *suffix;
	uint64_t factor;
} memory_units[] = {
	{ "", 1 },
	{ "b", 1 },
	{ "k", 1000 },
	{ "kb", 1000 },
	{ "ki", 1ULL << 10 },
	{ "m", 1000ULL * 1000 },
	{ "mb", 1000ULL * 1000 },
	{ "mi", 1ULL << 20 },
	{ "g", 1000ULL * 1000 * 1000 },
	{ "gb", 1000ULL * 1000 * 1000 },
	{ "gi", 1ULL << 30 },
	{ "t", 1000ULL * 1000 * 1000 * 1000 },
	{ "tb", 1000ULL * 1000 * 1000 * 1000 },
	{ "ti", 1ULL << 40 },
};

int quantity_memory(const char *text, uint64_t *out_bytes)
{
	char copy[QUANTITY_TEXT_MAX];
	uint64_t n = 0;

	if (!text_trim(text, copy)) {
		return -EINVAL;
	}
	size_t digits = strspn(copy, "0123456789");
	autofree char *suffix = span_dup(span_of(copy + digits));

	copy[digits] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(memory_units); i++) {
		if (strcasecmp(suffix, memory_units[i].suffix) != 0) {
			continue;
		}
		int r = str_to_u64(copy, LIMIT_MEMORY_MAX / memory_units[i].factor, &n);

		if (r == 0 && n == 0) {
			r = -ERANGE;
		}
		if (r == 0) {
			*out_bytes = n * memory_units[i].factor;
		}
		return r;
	}
	return -EINVAL;
}
