/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/request.h>
#include <osbx/str.h>

/* Up to three digits behind the point, as thousandths. */
static int milli_parse(const char *text, uint64_t *out)
{
	const char *point = strchr(text, '.');
	autofree char *whole = mem_dup(text, point ? (size_t)(point - text) : strlen(text));
	const char *digits = point ? point + 1 : "";
	char padded[4] = "000";
	uint64_t units = 0;
	uint64_t rest = 0;

	if (strlen(digits) > 3 || (point && digits[0] == '\0')) {
		return -1;
	}
	memcpy(padded, digits, strlen(digits));
	if ((whole[0] != '\0' && str_to_u64(whole, LIMIT_CPU_MILLI_MAX / 1000, &units) < 0) ||
			str_to_u64(padded, 999, &rest) < 0 || (whole[0] == '\0' && !point)) {
		return -1;
	}
	*out = units * 1000 + rest;
	return 0;
}

int request_set_cpus(struct sandbox_request *r, const char *text, struct error *e)
{
	uint64_t milli = 0;

	if (milli_parse(text, &milli) < 0) {
		(void)error_set(e, ERRC_INVALID, "%s: not a number of CPUs", text);
		return error_hint(e, "for example 2 or 0.5");
	}
	if (milli < LIMIT_CPU_MILLI_MIN || milli > LIMIT_CPU_MILLI_MAX) {
		(void)error_set(e, ERRC_INVALID, "%s: not between 0.01 and %u CPUs", text,
				LIMIT_CPU_MILLI_MAX / 1000);
		return error_hint(e, "leave the option out for no limit");
	}
	r->limits.cpu_milli = milli;
	return 0;
}

int request_set_memory(struct sandbox_request *r, const char *text, struct error *e)
{
	uint64_t bytes = 0;

	if (str_to_size(text, &bytes) < 0) {
		(void)error_set(e, ERRC_INVALID, "%s: not a size", text);
		return error_hint(e, "for example 512m or 2g");
	}
	if (bytes < LIMIT_MEMORY_MIN || bytes > LIMIT_MEMORY_MAX) {
		(void)error_set(e, ERRC_INVALID,
				bytes < LIMIT_MEMORY_MIN
						? "%s: less than the 6m that a sandbox needs"
						: "%s: more than any machine has",
				text);
		return error_hint(e, "leave the option out for no limit");
	}
	r->limits.memory_bytes = bytes;
	return 0;
}

int request_set_pids(struct sandbox_request *r, const char *text, struct error *e)
{
	uint64_t n = 0;

	if (str_to_u64(text, LIMIT_PIDS_MAX, &n) < 0 || n == 0) {
		(void)error_set(e, ERRC_INVALID, "%s: not between 1 and %u processes", text,
				LIMIT_PIDS_MAX);
		return error_hint(e, "leave the option out for no limit");
	}
	r->limits.pids = n;
	return 0;
}

int request_set_limits(struct sandbox_request *r, const char *text, struct error *e)
{
	if (!str_eq(text, "enforce") && !str_eq(text, "best-effort")) {
		return error_set(e, ERRC_INVALID, "expected enforce or best-effort");
	}
	r->best_effort = str_eq(text, "best-effort");
	return 0;
}
