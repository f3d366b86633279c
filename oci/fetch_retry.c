/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/mem.h>
#include <osbx/str.h>

#include "fetch_retry.h"

#define DOUBLINGS_MAX  20
#define FIELD_MAX      64
#define MINUTE_S       60U
#define HOUR_S         3600U
#define LIMIT_S_MAX    UINT64_C(31536000) /* a year */
#define LIMIT_RATE_MAX 1000000000U

int64_t retry_pause_ms(const struct fetch_timing *t, uint32_t tries, uint32_t random)
{
	uint32_t doublings = tries > DOUBLINGS_MAX ? DOUBLINGS_MAX : tries - 1;
	int64_t pause = t->backoff_min_ms << doublings;

	if (pause > t->backoff_max_ms) {
		pause = t->backoff_max_ms;
	}
	pause += random % (uint32_t)(pause / 2 + 1);
	return pause > t->backoff_max_ms ? t->backoff_max_ms : pause;
}

/* The number at the start of *text, which is moved behind it. */
static int number_take(const char **text, uint64_t *out_v)
{
	char digits[24];
	size_t n = strspn(*text, "0123456789");

	if (n >= sizeof(digits)) {
		return -EINVAL;
	}
	memcpy(digits, *text, n);
	digits[n] = '\0';
	*text += n;
	return str_to_u64(digits, INT64_MAX, out_v) < 0 ? -EINVAL : 0;
}

static bool byte_take(const char **text, char c)
{
	if (**text != c) {
		return false;
	}
	(*text)++;
	return true;
}

int retry_range_parse(const char *field, struct retry_range *out_range)
{
	struct retry_range r = { RETRY_RANGE_UNKNOWN, RETRY_RANGE_UNKNOWN, RETRY_RANGE_UNKNOWN };
	const char *p = str_after(field, "bytes ");
	bool is_range = false;

	if (!p) {
		return -EINVAL;
	}
	is_range = !byte_take(&p, '*');
	if (is_range && (number_take(&p, &r.first) < 0 || !byte_take(&p, '-') ||
					number_take(&p, &r.last) < 0 || r.last < r.first)) {
		return -EINVAL;
	}
	if (!byte_take(&p, '/')) {
		return -EINVAL;
	}
	if (!byte_take(&p, '*') && number_take(&p, &r.total) < 0) {
		return -EINVAL;
	}
	if (*p != '\0' || (is_range && r.last >= r.total)) {
		return -EINVAL;
	}
	*out_range = r;
	return 0;
}

/* "100;w=21600": a number and its window in seconds. */
static bool rate_parse(const char *field, uint64_t *out_n, uint64_t *out_window_s)
{
	const char *p = field;

	if (!p || number_take(&p, out_n) < 0 || *out_n > LIMIT_RATE_MAX) {
		return false;
	}
	p = str_after(p, ";w=");
	return p && str_to_u64(p, LIMIT_S_MAX, out_window_s) == 0 && *out_window_s > 0;
}

bool retry_limit_text(const char *field, char *out, size_t out_size)
{
	static const struct {
		uint32_t seconds;
		const char *name;
	} units[] = { { HOUR_S, "hour" }, { MINUTE_S, "minute" }, { 1, "second" } };
	uint64_t n = 0;
	uint64_t window_s = 0;

	out[0] = '\0';
	if (!rate_parse(field, &n, &window_s)) {
		return false;
	}
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		uint64_t count = window_s / units[i].seconds;

		if (window_s % units[i].seconds != 0) {
			continue;
		}
		(void)snprintf(out, out_size, "%" PRIu64 " pulls in %" PRIu64 " %s%s", n, count,
				units[i].name, count == 1 ? "" : "s");
		return true;
	}
	return false;
}

bool retry_is_exhausted(const char *field)
{
	uint64_t n = 1;
	const char *p = field;

	return p && number_take(&p, &n) == 0 && n == 0 && (*p == '\0' || *p == ';');
}
