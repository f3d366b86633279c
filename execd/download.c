/* SPDX-License-Identifier: Apache-2.0 */
/* A file as a body: whole, a range of bytes, or some of its lines. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/str.h>

#include "api.h"
#include "files.h"
#include "place.h"
#include "range.h"

#define DISPOSITION_BYTES_MAX 4096 /* a name has 255, each of them three in the long form */
#define READ_BYTES            ((size_t)64 << 10)

struct download {
	struct files *f;
	struct place place;
	int fd;
	uint64_t size;
	char modified[HTTP_DATE_MAX];
	uint64_t first_line; /* 0: bytes are asked for */
	uint64_t lines;      /* 0: all */
};

/* A parameter that counts from 1. */
static int count_of(const struct files *f, const char *name, uint64_t *out, struct error *e)
{
	autofree char *text = NULL;

	if (http_query(f->rq, name, &text) < 0) {
		return error_set(e, ERRC_INVALID, "the query cannot be decoded");
	}
	if (text && (str_to_u64(text, INT64_MAX, out) < 0 || *out == 0)) {
		return error_set(e, ERRC_INVALID, "%s is not a number of 1 or more", name);
	}
	return 0;
}

static int lines_of(struct download *d, struct error *e)
{
	if (count_of(d->f, "offset", &d->first_line, e) < 0 ||
			count_of(d->f, "limit", &d->lines, e) < 0) {
		return -1;
	}
	if (d->lines > 0 && d->first_line == 0) {
		d->first_line = 1;
	}
	if (d->first_line > 0 && http_field(d->f->rq, "range").p) {
		return error_set(e, ERRC_INVALID, "lines and a range of bytes exclude each other");
	}
	return 0;
}

static int open_file(struct download *d, const char *given, struct error *e)
{
	if (place_find(d->f, given, &d->place, e) < 0) {
		return -1;
	}
	if (S_ISDIR(d->place.st.st_mode)) {
		return error_sys(e, EISDIR, "download \"%.200s\"", d->place.path);
	}
	/* A FIFO could keep us waiting, a device never end. */
	if (!S_ISREG(d->place.st.st_mode)) {
		return error_set(
				e, ERRC_INVALID, "\"%.200s\" is not a regular file", d->place.path);
	}
	d->fd = place_reopen(d->f, &d->place, O_RDONLY);
	struct stat st;

	if (d->fd < 0 || fstat(d->fd, &st) < 0) {
		return files_sys(e, d->fd < 0 ? -d->fd : errno, "open", d->place.path);
	}
	d->size = (uint64_t)st.st_size;
	range_http_date(st.st_mtim.tv_sec, d->modified, sizeof(d->modified));
	return 0;
}

/* Fields that every answer with content has. */
static void add_fields(const struct download *d)
{
	AUTO(buf) struct buf b = BUF_INIT(DISPOSITION_BYTES_MAX);

	/* The name that was asked for, not that of a link's file. */
	if (range_disposition(path_last(d->place.path), &b) == 0) {
		http_reply_field(d->f->rq, "Content-Disposition", b.p);
	}
	http_reply_field(d->f->rq, "Accept-Ranges", "bytes");
	http_reply_field(d->f->rq, "Last-Modified", d->modified);
}

static int send_part(const struct download *d, int status, uint64_t start, uint64_t n)
{
	const char *type = d->first_line > 0 ? "text/plain; charset=utf-8"
					     : "application/octet-stream";

	add_fields(d);
	http_begin(d->f->rq, status, type, n);
	if (n > 0 && http_blocking_sendfile(d->f->rq, d->fd, start, n) < 0) {
		http_abort(d->f->rq);
		return 0;
	}
	http_end(d->f->rq);
	return 0;
}

/* A file of procfs or sysfs: it says that it is empty, and is not. */
static int send_unsized(const struct download *d, struct error *e)
{
	autofree char *piece = mem_array(READ_BYTES, 1);
	ssize_t n = fd_read(d->fd, piece, READ_BYTES);

	if (n == 0) {
		return send_part(d, 200, 0, 0);
	}
	if (n < 0) {
		return files_sys(e, (int)-n, "read", d->place.path);
	}
	add_fields(d);
	http_begin(d->f->rq, 200, "application/octet-stream", UINT64_MAX);
	while (n > 0) {
		http_write(d->f->rq, (struct span){ .p = piece, .n = (size_t)n });
		n = fd_read(d->fd, piece, READ_BYTES);
	}
	if (n < 0) {
		http_abort(d->f->rq);
	} else {
		http_end(d->f->rq);
	}
	return 0;
}

static int refuse_range(const struct download *d, const char *why)
{
	char text[48];

	(void)snprintf(text, sizeof(text), "bytes */%" PRIu64, d->size);
	http_reply_field(d->f->rq, "Content-Range", text);
	api_fail(d->f->rq, 416, API_UNKNOWN, "%s", why);
	return 0;
}

static int send_range(const struct download *d, struct span value)
{
	char text[96];
	uint64_t start = 0;
	uint64_t n = 0;

	switch (range_parse(value, d->size, &start, &n)) {
	case RANGE_WHOLE:
		return send_part(d, 200, 0, d->size);
	case RANGE_MALFORMED:
		return refuse_range(d, "invalid range");
	case RANGE_BEYOND:
		return refuse_range(d, "the range begins behind the end of the file");
	case RANGE_PART:
		break;
	}
	(void)snprintf(text, sizeof(text), "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, start,
			start + n - 1, d->size);
	http_reply_field(d->f->rq, "Content-Range", text);
	return send_part(d, 206, start, n);
}

static int send_lines(const struct download *d, struct error *e)
{
	uint64_t start = 0;
	uint64_t n = 0;
	int r = range_lines(d->fd, d->first_line, d->lines, &start, &n);

	return r < 0 ? files_sys(e, -r, "read", d->place.path) : send_part(d, 200, start, n);
}

static int answer_download(const struct download *d, struct error *e)
{
	const struct span range = http_field(d->f->rq, "range");
	const struct span condition = http_field(d->f->rq, "if-range");

	if (d->first_line > 0) {
		return send_lines(d, e);
	}
	/* The rest of another version is worth nothing (RFC 9110 section 13.1.5). */
	if (range.p && (!condition.p || span_eq(condition, span_of(d->modified)))) {
		return send_range(d, range);
	}
	return d->size > 0 ? send_part(d, 200, 0, d->size) : send_unsized(d, e);
}

static int download(struct files *f, struct error *e)
{
	struct download d = { .f = f, .place = PLACE_INIT, .fd = -1 };
	autofree char *given = NULL;
	int r = 0;

	f->invalid_code = API_MISSING_QUERY;
	if (files_query(f, "path", &given, e) < 0) {
		return -1;
	}
	f->invalid_code = API_INVALID_QUERY;
	if (lines_of(&d, e) < 0) {
		return -1;
	}
	f->invalid_code = API_INVALID_FILE;
	r = open_file(&d, given, e);
	if (r == 0) {
		r = answer_download(&d, e);
	}
	fd_close(&d.fd);
	place_done(&d.place);
	return r;
}

void files_download(struct http_req *rq)
{
	files_serve(rq, download);
}
