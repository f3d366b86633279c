/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include <osbx/str.h>
#include <osbx/utf8.h>

const char *str_after(const char *s, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(s, prefix, n) == 0 ? s + n : NULL;
}

bool str_has_suffix(const char *s, const char *suffix)
{
	size_t n = strlen(s);
	size_t m = strlen(suffix);

	return n >= m && memcmp(s + (n - m), suffix, m) == 0;
}

bool str_is_digits(const char *s)
{
	return str_is_made_of(s, "0123456789");
}

bool str_is_made_of(const char *s, const char *set)
{
	return s[0] != '\0' && s[strspn(s, set)] == '\0';
}

/* The number that n leading digits of s make. */
static int digits_to_u64(const char *s, size_t n, uint64_t max, uint64_t *out_v)
{
	uint64_t v = 0;

	if (n == 0) {
		return -EINVAL;
	}
	for (size_t i = 0; i < n; i++) {
		uint64_t digit = (uint64_t)(s[i] - '0');

		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, digit, &v)) {
			return -ERANGE;
		}
	}
	if (v > max) {
		return -ERANGE;
	}
	*out_v = v;
	return 0;
}

int str_to_u64(const char *s, uint64_t max, uint64_t *out_v)
{
	if (!str_is_digits(s)) {
		return -EINVAL;
	}
	return digits_to_u64(s, strlen(s), max, out_v);
}

/* Binary logarithm of a size suffix, -1 if it is none. */
static int suffix_shift(const char *suffix)
{
	static const char units[] = "kmgt";
	const char *unit = NULL;

	if (str_eq(suffix, "") || str_eq(suffix, "b") || str_eq(suffix, "B")) {
		return 0;
	}
	unit = strchr(units, suffix[0] | 0x20);
	if (!unit || *unit == '\0') {
		return -1;
	}
	suffix++;
	if (suffix[0] == 'i' && suffix[1] != '\0') {
		suffix++;
	}
	if (suffix[0] == 'b' || suffix[0] == 'B') {
		suffix++;
	}
	return suffix[0] == '\0' ? 10 * (int)(unit - units + 1) : -1;
}

int str_to_size(const char *s, uint64_t *out_bytes)
{
	size_t n = strspn(s, "0123456789");
	int shift = suffix_shift(s + n);
	uint64_t v = 0;
	int r = 0;

	if (shift < 0) {
		return -EINVAL;
	}
	r = digits_to_u64(s, n, UINT64_MAX >> shift, &v);
	if (r < 0) {
		return r;
	}
	*out_bytes = v << shift;
	return 0;
}

/* Largest first: each may be given once, in this order. */
static const struct {
	const char *name;
	int64_t ms;
} duration_units[] = {
	{ "d", 24LL * 3600 * 1000 },
	{ "h", 3600LL * 1000 },
	{ "m", 60LL * 1000 },
	{ "s", 1000 },
	{ "ms", 1 },
};

#define DURATION_MAX_MS (3653LL * 24 * 3600 * 1000)

/* Index of the unit that s begins with, at or behind first. -EINVAL. */
static int duration_unit(const char *s, size_t n, size_t first)
{
	for (size_t i = first; i < ARRAY_SIZE(duration_units); i++) {
		if (strlen(duration_units[i].name) == n &&
				memcmp(duration_units[i].name, s, n) == 0) {
			return (int)i;
		}
	}
	return -EINVAL;
}

int str_to_duration(const char *s, int64_t *out_ms)
{
	int64_t sum = 0;
	size_t next = 0;

	if (s[0] == '\0') {
		return -EINVAL;
	}
	while (*s != '\0') {
		size_t digits = strspn(s, "0123456789");
		size_t letters = strspn(s + digits, "dhms");
		bool is_bare = next == 0 && s[digits] == '\0';
		int unit = is_bare ? 3 : duration_unit(s + digits, letters, next);
		uint64_t value = 0;

		if (digits == 0 || unit < 0) {
			return -EINVAL;
		}
		for (size_t i = 0; i < digits; i++) {
			value = value * 10 + (uint64_t)(s[i] - '0');
			if (value > DURATION_MAX_MS) {
				return -ERANGE;
			}
		}
		if ((int64_t)value > (DURATION_MAX_MS - sum) / duration_units[unit].ms) {
			return -ERANGE;
		}
		sum += (int64_t)value * duration_units[unit].ms;
		next = (size_t)unit + 1;
		s += digits + letters;
	}
	*out_ms = sum;
	return 0;
}

void str_from_size(uint64_t bytes, char *out, size_t out_size)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	size_t u = 0;
	uint64_t unit = 1;
	uint64_t tenths = 0;

	assert(out_size > 0);

	while (u + 1 < ARRAY_SIZE(units) && bytes / unit >= 1024) {
		unit <<= 10;
		u++;
	}
	tenths = bytes % unit * 10 / unit;
	if (tenths == 0) {
		(void)snprintf(out, out_size, "%" PRIu64 " %s", bytes / unit, units[u]);
	} else {
		(void)snprintf(out, out_size, "%" PRIu64 ".%" PRIu64 " %s", bytes / unit, tenths,
				units[u]);
	}
}

/* Would a terminal obey this well-formed character? C1 is U+0080..U+009F, in UTF-8 c2 80..c2 9f;
 * the bytes 80..9f alone are no character (but an 8-bit terminal obeys them). */
static bool is_control(const char *p, size_t len)
{
	const unsigned char *u = (const unsigned char *)p;

	if (len == 1) {
		return u[0] < 0x20 || u[0] == 0x7f;
	}
	return len == 2 && u[0] == 0xc2 && u[1] < 0xa0;
}

void str_printable(const char *s, char *out, size_t out_size)
{
	size_t n = strlen(s);
	size_t used = 0;

	assert(out_size > 0);

	for (size_t i = 0; i < n;) {
		size_t len = utf8_len(s + i, n - i);
		bool keep = len > 0 && !is_control(s + i, len);
		size_t need = keep ? len : 1;

		if (need >= out_size - used) {
			break;
		}
		if (keep) {
			memcpy(out + used, s + i, len);
		} else {
			out[used] = '?';
		}
		used += need;
		i += len > 0 ? len : 1;
	}
	out[used] = '\0';
}
