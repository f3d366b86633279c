/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <osbx/clock.h>
#include <osbx/str.h>

#include "api_internal.h"

/* Exactly n digits at *at. */
static int digits_take(const char **at, size_t n, int64_t max, int64_t *out)
{
	char text[16];
	uint64_t v = 0;

	if (strlen(*at) < n) {
		return -EINVAL;
	}
	memcpy(text, *at, n);
	text[n] = '\0';
	if (str_to_u64(text, (uint64_t)max, &v) < 0) {
		return -EINVAL;
	}
	*at += n;
	*out = (int64_t)v;
	return 0;
}

static int char_take(const char **at, const char *set)
{
	if (**at == '\0' || !strchr(set, **at)) {
		return -EINVAL;
	}
	(*at)++;
	return 0;
}

/* ".123456789" in milliseconds, the rest cut off. */
static int fraction_take(const char **at, int64_t *out_ms)
{
	size_t n = 0;

	*out_ms = 0;
	if (**at != '.' && **at != ',') {
		return 0;
	}
	(*at)++;
	n = strspn(*at, "0123456789");
	if (n == 0 || n > 9) {
		return -EINVAL;
	}
	for (size_t i = 0; i < 3; i++) {
		*out_ms = 10 * *out_ms + (i < n ? (*at)[i] - '0' : 0);
	}
	*at += n;
	return 0;
}

/* "Z" or "+HH:MM". */
static int zone_take(const char **at, int64_t *out_minutes)
{
	int64_t hours = 0;
	int64_t minutes = 0;
	bool is_west = **at == '-';

	if (char_take(at, "Zz") == 0) {
		*out_minutes = 0;
		return 0;
	}
	if (char_take(at, "+-") < 0 || digits_take(at, 2, 23, &hours) < 0) {
		return -EINVAL;
	}
	if (**at == ':') {
		(*at)++;
	}
	if (digits_take(at, 2, 59, &minutes) < 0) {
		return -EINVAL;
	}
	*out_minutes = (is_west ? -1 : 1) * (60 * hours + minutes);
	return 0;
}

struct calendar {
	int64_t year;
	int64_t month;
	int64_t day;
	int64_t hour;
	int64_t minute;
	int64_t second;
};

static int calendar_take(const char **at, struct calendar *c)
{
	const struct {
		int64_t *to;
		size_t n;
		int64_t max;
		const char *behind;
	} parts[] = {
		{ &c->year, 4, 9999, "-" },
		{ &c->month, 2, 12, "-" },
		{ &c->day, 2, 31, "Tt " },
		{ &c->hour, 2, 23, ":" },
		{ &c->minute, 2, 59, ":" },
		{ &c->second, 2, 60, NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (digits_take(at, parts[i].n, parts[i].max, parts[i].to) < 0 ||
				(parts[i].behind && char_take(at, parts[i].behind) < 0)) {
			return -EINVAL;
		}
	}
	return c->year < 1970 || c->month < 1 || c->day < 1 ? -EINVAL : 0;
}

int time_parse(const char *text, int64_t *out_wall_ms)
{
	struct calendar c = { .year = 0 };
	int64_t ms = 0;
	int64_t zone = 0;

	if (calendar_take(&text, &c) < 0 || fraction_take(&text, &ms) < 0) {
		return -EINVAL;
	}
	/* One without a zone is UTC. */
	if (*text != '\0' && zone_take(&text, &zone) < 0) {
		return -EINVAL;
	}
	if (*text != '\0') {
		return -EINVAL;
	}
	struct tm tm = {
		.tm_year = (int)c.year - 1900,
		.tm_mon = (int)c.month - 1,
		.tm_mday = (int)c.day,
		.tm_hour = (int)c.hour,
		.tm_min = (int)c.minute,
		.tm_sec = (int)c.second,
	};
	int day = tm.tm_mday;
	time_t seconds = timegm(&tm);

	/* 31 February is not 3 March. */
	if (tm.tm_mday != day && c.second < 60) {
		return -EINVAL;
	}
	*out_wall_ms = 1000 * ((int64_t)seconds - 60 * zone) + ms;
	return 0;
}

void view_time(struct json_writer *w, const char *name, int64_t wall_ms)
{
	char text[40];

	clock_rfc3339(wall_ms, text, sizeof(text));
	/* Microseconds, as the reference writes them. */
	char *z = strchr(text, 'Z');

	if (z && strlen(text) + 4 < sizeof(text)) {
		memcpy(z, "000Z", 5);
	}
	json_add_string(w, name, text);
}
