/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <osbx/cleanup.h>
#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "range.h"

#define SCAN_BYTES ((size_t)256 << 10)

static struct span trim(struct span s)
{
	while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t')) {
		s = span_from(s, 1);
	}
	while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t')) {
		s.n--;
	}
	return s;
}

/* Digits; more than fit are the largest number there is: a range may end beyond any file. */
static bool number(struct span s, uint64_t *out_v)
{
	uint64_t v = 0;

	for (size_t i = 0; i < s.n; i++) {
		const uint64_t digit = (uint64_t)(unsigned char)s.p[i] - '0';

		if (digit > 9) {
			return false;
		}
		v = v > (UINT64_MAX - digit) / 10 ? UINT64_MAX : v * 10 + digit;
	}
	*out_v = v;
	return s.n > 0;
}

enum range range_parse(struct span value, uint64_t size, uint64_t *out_start, uint64_t *out_n)
{
	static const char unit[] = "bytes=";
	uint64_t first = 0;
	uint64_t last = UINT64_MAX;

	value = trim(value);
	if (value.n < sizeof(unit) - 1 || strncasecmp(value.p, unit, sizeof(unit) - 1) != 0) {
		return RANGE_MALFORMED;
	}
	value = trim(span_from(value, sizeof(unit) - 1));
	if (memchr(value.p, ',', value.n)) {
		return RANGE_WHOLE;
	}
	const char *dash = memchr(value.p, '-', value.n);

	if (!dash) {
		return RANGE_MALFORMED;
	}
	const struct span from = trim((struct span){ .p = value.p, .n = (size_t)(dash - value.p) });
	const struct span to = trim(span_from(value, (size_t)(dash - value.p) + 1));

	if ((to.n > 0 && !number(to, &last)) || (from.n > 0 && !number(from, &first)) ||
			(from.n == 0 && to.n == 0) || (from.n > 0 && last < first)) {
		return RANGE_MALFORMED;
	}
	if (from.n == 0) {
		/* The last so many bytes. */
		first = last < size ? size - last : 0;
		if (last == 0) {
			return RANGE_BEYOND;
		}
		last = UINT64_MAX;
	}
	if (first >= size) {
		return RANGE_BEYOND;
	}
	*out_start = first;
	*out_n = (last < size ? last + 1 : size) - first;
	return RANGE_PART;
}

/* Lines of a file, read in pieces; the length of a line does not matter. */
struct scan {
	uint64_t line; /* number of the one that is being read */
	uint64_t first;
	uint64_t limit;
	uint64_t offset; /* of the piece */
	uint64_t start;
	bool has_start;
	uint64_t end;
	bool has_end;
};

static void scan_piece(struct scan *s, const char *p, size_t n)
{
	const char *at = p;

	while (!s->has_end && at < p + n) {
		const char *newline = memchr(at, '\n', (size_t)(p + n - at));

		if (!newline) {
			break;
		}
		at = newline + 1;
		s->line++;
		if (!s->has_start && s->line == s->first) {
			s->start = s->offset + (uint64_t)(at - p);
			s->has_start = true;
		}
		if (s->limit > 0 && s->has_start && s->line - s->first == s->limit) {
			s->end = s->offset + (uint64_t)(at - p);
			s->has_end = true;
		}
	}
	s->offset += n;
}

int range_lines(int fd, uint64_t first, uint64_t limit, uint64_t *out_start, uint64_t *out_n)
{
	autofree char *piece = mem_array(SCAN_BYTES, 1);
	struct scan s = { .line = 1, .first = first, .limit = limit, .has_start = first <= 1 };

	while (!s.has_end) {
		ssize_t n = pread(fd, piece, SCAN_BYTES, (off_t)s.offset);

		if (n < 0 && errno != EINTR) {
			return -errno;
		}
		if (n == 0) {
			s.end = s.offset;
			s.has_end = true;
		}
		if (n > 0) {
			scan_piece(&s, piece, (size_t)n);
		}
	}
	*out_start = s.has_start ? s.start : s.end;
	*out_n = s.has_start ? s.end - s.start : 0;
	return 0;
}

/* What a quoted string of a field may hold without harm at any client. */
static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* RFC 8187: attr-char. */
static bool is_attr_char(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       (c != '\0' && strchr("!#$&+-.^_`|~", c));
}

int range_disposition(const char *name, struct buf *out)
{
	bool is_whole = true;
	int r = buf_append_str(out, "attachment; filename=\"");

	for (const char *p = name; *p && r == 0; p++) {
		const bool plain = is_plain((unsigned char)*p);

		is_whole = is_whole && plain;
		r = buf_append(out, plain ? p : "_", 1);
	}
	if (r == 0) {
		r = buf_append_str(out, is_whole ? "\"" : "\"; filename*=UTF-8''");
	}
	for (const char *p = name; !is_whole && *p && r == 0; p++) {
		r = is_attr_char((unsigned char)*p) ? buf_append(out, p, 1)
						    : buf_appendf(out, "%%%02X", (unsigned char)*p);
	}
	return r;
}

void range_http_date(time_t t, char *out, size_t out_size)
{
	static const char days[7][4] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
	static const char months[12][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug",
		"Sep", "Oct", "Nov", "Dec" };
	struct tm tm;

	if (!gmtime_r(&t, &tm) || tm.tm_year > 9999 - 1900 || tm.tm_year < -1900) {
		t = 0;
		(void)gmtime_r(&t, &tm);
	}
	(void)snprintf(out, out_size, "%s, %02d %s %04d %02d:%02d:%02d GMT", days[tm.tm_wday],
			tm.tm_mday, months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min,
			tm.tm_sec);
}
