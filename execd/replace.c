/* SPDX-License-Identifier: Apache-2.0 */
/* Replace a text in files. A file of any size is read in pieces, and written anew only when the
 * text is in it; it keeps owner and mode. Links are followed to the file. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "api.h"
#include "files.h"
#include "outfile.h"
#include "place.h"

#define PIECE_BYTES      ((size_t)256 << 10)
#define ANSWER_BYTES_MAX ((size_t)64 << 20)

struct replacing {
	struct span from;
	struct span to;
	struct outfile *out; /* NULL: only look whether there is anything to do */
	uint64_t count;
	char *p; /* what is read and not looked at */
	size_t n;
	size_t room;
};

static int put(struct replacing *r, const char *p, size_t n, struct error *e)
{
	return r->out && n > 0 ? outfile_write(r->out, p, n, e) : 0;
}

/* Work on what is there. What is left could be the beginning of the text. */
static int replace_piece(struct replacing *r, bool is_last, struct error *e)
{
	size_t at = 0;

	for (;;) {
		const char *hit = memmem(r->p + at, r->n - at, r->from.p, r->from.n);

		if (!hit) {
			break;
		}
		r->count++;
		if (!r->out) {
			return 0;
		}
		if (put(r, r->p + at, (size_t)(hit - r->p) - at, e) < 0 ||
				put(r, r->to.p, r->to.n, e) < 0) {
			return -1;
		}
		at = (size_t)(hit - r->p) + r->from.n;
	}
	size_t keep = is_last ? 0 : r->from.n - 1;

	keep = keep < r->n - at ? keep : r->n - at;
	if (put(r, r->p + at, r->n - at - keep, e) < 0) {
		return -1;
	}
	memmove(r->p, r->p + r->n - keep, keep);
	r->n = keep;
	return 0;
}

/* From the beginning to the end, or to the first hit when nothing is written. */
static int replace_pass(struct replacing *r, int fd, const char *path, struct error *e)
{
	ssize_t n = 1;

	r->n = 0;
	r->count = 0;
	if (lseek(fd, 0, SEEK_SET) < 0) {
		return files_sys(e, errno, "read", path);
	}
	while (n > 0 && (r->out || r->count == 0)) {
		n = fd_read(fd, r->p + r->n, r->room - r->n);
		if (n < 0) {
			return files_sys(e, (int)-n, "read", path);
		}
		r->n += (size_t)n;
		if (replace_piece(r, n == 0, e) < 0) {
			return -1;
		}
	}
	return 0;
}

static int replace_in(struct files *f, struct replacing *r, struct place *p, struct error *e)
{
	AUTO(outfile) struct outfile o = OUTFILE_INIT;
	autoclose int fd = place_reopen(f, p, O_RDONLY);

	if (fd < 0) {
		return files_sys(e, -fd, "open", p->path);
	}
	if (replace_pass(r, fd, p->path, e) < 0) {
		return -1;
	}
	if (r->count == 0) {
		return 0;
	}
	if (outfile_open(f, p, &o, e) < 0) {
		return -1;
	}
	r->out = &o;
	int done = replace_pass(r, fd, o.place.path, e);

	r->out = NULL;
	return done < 0 ? -1 : outfile_publish_same(f, &o, e);
}

static int replace_one(struct files *f, const struct json *v, uint64_t *out_count, struct error *e)
{
	AUTO(place) struct place p = PLACE_INIT;
	const char *from = json_string(json_get(v, "old"));
	const char *to = json_string(json_get(v, "new"));

	if (!from || from[0] == '\0') {
		return error_set(e, ERRC_INVALID, "\"%.200s\": the old text is missing or empty",
				json_name(v));
	}
	if (place_find(f, json_name(v), &p, e) < 0) {
		return -1;
	}
	if (!S_ISREG(p.st.st_mode)) {
		return error_set(e, ERRC_SYSTEM, "\"%.200s\" is not a regular file", p.path);
	}
	struct replacing r = { .from = span_of(from), .to = span_of(to ? to : "") };

	r.room = PIECE_BYTES + 2 * r.from.n;
	autofree char *piece = mem_array(r.room, 1);

	r.p = piece;
	int done = replace_in(f, &r, &p, e);

	*out_count = r.count;
	return done;
}

static bool is_true(const struct files *f, const char *name)
{
	autofree char *text = NULL;

	return http_query(f->rq, name, &text) == 0 && text &&
	       (str_eq(text, "true") || str_eq(text, "1") || str_eq(text, "True"));
}

static int replace(struct files *f, struct error *e)
{
	AUTO(json) struct json *body = NULL;
	AUTO(buf) struct buf b = BUF_INIT(ANSWER_BYTES_MAX);
	struct json_writer w = JSON_WRITER(&b);

	if (files_body(f, &body, e) < 0) {
		return -1;
	}
	if (!json_is_object(body)) {
		return error_set(e, ERRC_INVALID, "the body: expected an object of paths");
	}
	json_object_begin(&w, NULL);
	json_for_each(v, body) {
		uint64_t count = 0;

		if (replace_one(f, v, &count, e) < 0) {
			return -1;
		}
		json_object_begin(&w, json_name(v));
		json_add_u64(&w, "replacedCount", count);
		json_object_end(&w);
	}
	json_object_end(&w);
	if (is_true(f, "verbose")) {
		api_json(f->rq, 200, &b);
	} else {
		api_ok(f->rq);
	}
	return 0;
}

void files_replace(struct http_req *rq)
{
	files_serve(rq, replace);
}
