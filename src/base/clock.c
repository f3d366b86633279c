/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdio.h>
#include <time.h>

#include <osbx/clock.h>

/* 9999-12-31T23:59:59.999Z, the last moment that RFC 3339 can write. */
#define RFC3339_LAST_MS 253402300799999

static int64_t clock_us(clockid_t which)
{
	struct timespec ts = { 0 };

	/* Fails only for a clock that does not exist. */
	if (clock_gettime(which, &ts) < 0) {
		return 0;
	}
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t clock_boot_ms(void)
{
	return clock_us(CLOCK_BOOTTIME) / 1000;
}

int64_t clock_boot_us(void)
{
	return clock_us(CLOCK_BOOTTIME);
}

int64_t clock_wall_ms(void)
{
	return clock_us(CLOCK_REALTIME) / 1000;
}

void clock_rfc3339(int64_t wall_ms, char *out, size_t out_size)
{
	struct tm tm = { 0 };
	time_t seconds = 0;
	char date[CLOCK_RFC3339_MAX];

	assert(out_size > 0);

	if (wall_ms < 0) {
		wall_ms = 0;
	}
	if (wall_ms > RFC3339_LAST_MS) {
		wall_ms = RFC3339_LAST_MS;
	}
	seconds = (time_t)(wall_ms / 1000);
	(void)gmtime_r(&seconds, &tm);
	(void)strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(out, out_size, "%s.%03dZ", date, (int)(wall_ms % 1000));
}
