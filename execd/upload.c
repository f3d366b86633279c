/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the parts of the body are read as they come. The metadata parts and the file
 * parts are paired by their numbers, whatever the order: a file whose metadata is known goes
 * straight to the directory of its target, without a name (outfile.h); one that comes first is kept
 * in memory, within limits. Nothing is published before the body is complete and the numbers are
 * right, so what is cut short leaves nothing. Only of a great many files the first ones are
 * published earlier, because each that waits holds descriptors.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <osbx/buf.h>
#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/multipart.h>
#include <osbx/str.h>

#include "api.h"
#include "attrs.h"
#include "files.h"
#include "outfile.h"
#include "place.h"

#define METADATA_BYTES_MAX ((size_t)64 << 10)
#define FILES_MAX          100000
#define WAITING_MAX        128 /* files that are complete and not published */

/* A pair. */
struct item {
	bool has_metadata;
	char *path; /* as given */
	struct attrs attrs;
	bool is_staged; /* out is the whole file */
	struct outfile out;
	int spool_fd; /* a file that came before its metadata, else -1 */
};

struct upload {
	struct files *f;
	struct multipart *m;
	struct item *items;
	size_t room;
	size_t metadata_n;
	size_t files_n;
	size_t published;
	uint64_t spooled; /* bytes */
};

static void item_done(struct item *i)
{
	outfile_done(&i->out);
	fd_close(&i->spool_fd);
	free(TAKE_PTR(i->path));
}

static void upload_done(struct upload *u)
{
	const size_t n = u->metadata_n > u->files_n ? u->metadata_n : u->files_n;

	for (size_t i = 0; i < n; i++) {
		item_done(&u->items[i]);
	}
	free(TAKE_PTR(u->items));
	multipart_free(TAKE_PTR(u->m));
}
AUTO_DEFINE(upload, struct upload, upload_done);

static int invalid(struct files *f, const char *code, struct error *e, const char *text)
{
	f->invalid_code = code;
	return error_set(e, ERRC_INVALID, "%s", text);
}

/* What the reader of parts says. */
static int part_failed(struct files *f, int r, struct error *e)
{
	if (r == -EMSGSIZE) {
		return invalid(f, API_INVALID_FILE, e, "the head of a part is too long");
	}
	return invalid(f, API_INVALID_FILE, e, "the form is malformed or cut short");
}

/* Item number n, which is the next one of metadata or files. */
static struct item *item_at(struct upload *u, size_t n, struct error *e)
{
	if (n == FILES_MAX) {
		(void)error_set(e, ERRC_LIMIT, "more than %d files in one request", FILES_MAX);
		return NULL;
	}
	if (n == u->room) {
		const size_t room = u->room ? 2 * u->room : 8;

		u->items = mem_resize(u->items, u->room, room, sizeof(*u->items));
		for (size_t i = u->room; i < room; i++) {
			u->items[i].out = (struct outfile)OUTFILE_INIT;
			u->items[i].spool_fd = -1;
		}
		u->room = room;
	}
	return &u->items[n];
}

static int metadata_read(struct upload *u, struct buf *b, struct error *e)
{
	struct span data;
	int r = 0;

	while ((r = multipart_peek(u->m, &data)) > 0) {
		if (buf_append(b, data.p, data.n) < 0) {
			return invalid(u->f, API_INVALID_METADATA, e,
					"the metadata are larger than 64 KiB");
		}
		multipart_take(u->m, data.n);
	}
	return r < 0 ? part_failed(u->f, r, e) : 0;
}

static int take_metadata(struct upload *u, struct error *e)
{
	AUTO(buf) struct buf b = BUF_INIT(METADATA_BYTES_MAX);
	struct item *item = item_at(u, u->metadata_n, e);

	if (!item || metadata_read(u, &b, e) < 0) {
		return -1;
	}
	AUTO(json) struct json *v = json_parse(buf_span(&b), e);

	u->f->invalid_code = API_INVALID_METADATA;
	if (!v) {
		return error_wrap(e, "invalid metadata format");
	}
	const char *path = json_string(json_get(v, "path"));

	if (!path || path[0] == '\0') {
		return error_set(e, ERRC_INVALID, "metadata path is empty");
	}
	if (attrs_parse(u->f, v, &item->attrs, e) < 0) {
		return error_wrap(e, "invalid metadata format");
	}
	item->path = mem_strdup(path);
	item->has_metadata = true;
	u->metadata_n++;
	return 0;
}

/* Open the target of an item whose metadata is known. */
static int stage_open(struct upload *u, struct item *item, struct error *e)
{
	AUTO(place) struct place p = PLACE_INIT;

	u->f->invalid_code = API_INVALID_FILE;
	if (place_open_new(u->f, item->path, &p, e) < 0 || place_follow(u->f, &p, e) < 0) {
		return -1;
	}
	return outfile_open(u->f, &p, &item->out, e);
}

static int stage_part(struct upload *u, struct item *item, struct error *e)
{
	struct span data;
	int r = 0;

	if (stage_open(u, item, e) < 0) {
		return -1;
	}
	while ((r = multipart_peek(u->m, &data)) > 0) {
		if (outfile_write(&item->out, data.p, data.n, e) < 0) {
			return -1;
		}
		multipart_take(u->m, data.n);
	}
	item->is_staged = r == 0;
	return r < 0 ? part_failed(u->f, r, e) : 0;
}

static int spool_part(struct upload *u, struct item *item, struct error *e)
{
	struct span data;
	int r = 0;

	item->spool_fd = fd_memfd("osbx-spool", false);
	if (item->spool_fd < 0) {
		return error_sys(e, -TAKE_FD(item->spool_fd), "keep a file in memory");
	}
	while ((r = multipart_peek(u->m, &data)) > 0) {
		u->spooled += data.n;
		if (u->spooled > OUTFILE_SPOOL_MAX) {
			return error_set(e, ERRC_LIMIT,
					"more than %u MiB of files come before their metadata",
					(unsigned int)(OUTFILE_SPOOL_MAX >> 20));
		}
		int written = fd_write_all(item->spool_fd, data.p, data.n);

		if (written < 0) {
			return error_sys(e, -written, "keep a file in memory");
		}
		multipart_take(u->m, data.n);
	}
	return r < 0 ? part_failed(u->f, r, e) : 0;
}

/* A file that was kept in memory goes where all others are. */
static int stage_spool(struct upload *u, struct item *item, struct error *e)
{
	if (stage_open(u, item, e) < 0) {
		return -1;
	}
	if (lseek(item->spool_fd, 0, SEEK_SET) < 0) {
		return error_sys(e, errno, "read a file in memory");
	}
	int64_t n = fd_copy(item->spool_fd, item->out.fd, OUTFILE_SPOOL_MAX);

	if (n < 0) {
		return files_sys(e, (int)-n, "write to", item->path);
	}
	item->out.bytes = (uint64_t)n;
	item->is_staged = true;
	fd_close(&item->spool_fd);
	return 0;
}

/* Publish all pairs that are complete, in their order. */
static int publish(struct upload *u, struct error *e)
{
	while (u->published < u->metadata_n && u->published < u->files_n) {
		struct item *item = &u->items[u->published];

		if ((!item->is_staged && stage_spool(u, item, e) < 0) ||
				outfile_publish(u->f, &item->out, &item->attrs, e) < 0) {
			return -1;
		}
		item_done(item);
		u->published++;
	}
	return 0;
}

static int take_file(struct upload *u, struct error *e)
{
	struct item *item = item_at(u, u->files_n, e);

	if (!item) {
		return -1;
	}
	/* From here on it is cleaned up. */
	u->files_n++;
	int r = item->has_metadata ? stage_part(u, item, e) : spool_part(u, item, e);

	return r == 0 && u->files_n - u->published > WAITING_MAX ? publish(u, e) : r;
}

static int take_parts(struct upload *u, struct error *e)
{
	struct multipart_part part;
	int r = 0;

	while ((r = multipart_next(u->m, &part)) > 0) {
		int taken = 0;

		/* As for the reference, only a part with a file name is a file. */
		if (part.filename && str_eq(part.name, "metadata")) {
			taken = take_metadata(u, e);
		} else if (part.filename && str_eq(part.name, "file")) {
			taken = take_file(u, e);
		}
		if (taken < 0) {
			return -1;
		}
	}
	return r < 0 ? part_failed(u->f, r, e) : 0;
}

static int check_counts(const struct upload *u, struct error *e)
{
	if (u->metadata_n == 0) {
		return invalid(u->f, API_INVALID_METADATA, e, "metadata file is missing");
	}
	if (u->files_n == 0) {
		return invalid(u->f, API_INVALID_CONTENT, e, "file is missing");
	}
	if (u->metadata_n != u->files_n) {
		u->f->invalid_code = API_INVALID_FILE;
		return error_set(e, ERRC_INVALID, "metadata and file count mismatch: %zu vs %zu",
				u->metadata_n, u->files_n);
	}
	return 0;
}

static ssize_t read_body(void *ctx, void *p, size_t n)
{
	return http_blocking_read(ctx, p, n);
}

static int upload(struct files *f, struct error *e)
{
	AUTO(upload) struct upload u = { .f = f };
	int r = 0;

	u.m = multipart_new(http_field(f->rq, "content-type"), read_body, f->rq, &r);
	if (!u.m) {
		return invalid(f, API_INVALID_FILE, e, "the body is no multipart form");
	}
	if (take_parts(&u, e) < 0 || check_counts(&u, e) < 0 || publish(&u, e) < 0) {
		return -1;
	}
	api_ok(f->rq);
	return 0;
}

void files_upload(struct http_req *rq)
{
	files_serve(rq, upload);
}
