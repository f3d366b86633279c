/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * range - the parts of a download: byte ranges (RFC 9110 section 14), lines, the name for the
 * client (RFC 6266).
 */
#ifndef OSBX_EXECD_RANGE_H
#define OSBX_EXECD_RANGE_H

#include <stdint.h>
#include <time.h>

#include <osbx/buf.h>
#include <osbx/compiler.h>
#include <osbx/span.h>

enum range {
	RANGE_WHOLE,     /* more than one range: the whole file, as the RFC allows */
	RANGE_PART,      /* *out_start and *out_n */
	RANGE_BEYOND,    /* begins behind the end, or is empty */
	RANGE_MALFORMED, /* no range of bytes */
};

#define HTTP_DATE_MAX 32

/* Value of a Range field for a file of size bytes. */
enum range range_parse(struct span value, uint64_t size, uint64_t *out_start, uint64_t *out_n)
		NONNULL(3, 4) MUST_CHECK;
/* Where `limit` lines (0: all) begin that begin with line number `first` (1 is the first), and how
 * many bytes they have; the last one need not end with a newline. 0 or -errno. */
int range_lines(int fd, uint64_t first, uint64_t limit, uint64_t *out_start, uint64_t *out_n)
		NONNULL(4, 5) MUST_CHECK;
/* "attachment; filename=…" of a file's name: quoted text of ASCII, and the whole name in UTF-8
 * beside it when that is not the same. 0 or -EMSGSIZE. */
int range_disposition(const char *name, struct buf *out) NONNULL(1, 2) MUST_CHECK;
/* "Mon, 30 Nov 2026 21:59:34 GMT", always terminated. */
void range_http_date(time_t t, char *out, size_t out_size) NONNULL(2);

#endif
