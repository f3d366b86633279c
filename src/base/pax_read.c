/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   header ── 'x', 'L', 'K' ──▶ kept for the entry that follows ──▶ header
 *     │  └──── 'g' ───────────▶ dropped: what it could say is not ours to believe
 *     └─────── an entry ──────▶ its data, its padding ──▶ header
 *
 * A block of zeros ends the archive. What extends an entry is bounded in size and number.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/buf.h>
#include <osbx/fd.h>
#include <osbx/pax.h>
#include <osbx/span.h>
#include <osbx/str.h>

#include "pax.h"

#define RECORDS_BYTES_MAX 65536
#define GLOBAL_BYTES_MAX  (1U << 20)
#define EXTENSIONS_MAX    16
#define ID_MAX            4294967294U /* (uid_t)-1 is none */

/* What the extensions before an entry say. */
struct extension {
	bool has_size;
	bool has_uid;
	bool has_gid;
	struct pax_entry *entry; /* its name and target are those of the extension unless empty */
	uint64_t size;
	uint64_t uid;
	uint64_t gid;
};

void pax_reader_init(struct pax_reader *r, int fd)
{
	r->fd = fd;
	r->failed = false;
	r->begun = false;
	r->left = 0;
	r->pad = 0;
	r->at = 0;
	r->filled = 0;
}

static int broken(struct error *e, const char *what)
{
	return error_set(e, ERRC_INVALID, "tar stream: %s", what);
}

static int fill(struct pax_reader *r, struct error *e)
{
	ssize_t n = fd_read(r->fd, r->bytes, sizeof(r->bytes));

	r->at = 0;
	r->filled = n > 0 ? (size_t)n : 0;
	if (n < 0) {
		r->failed = true;
		return error_sys(e, (int)-n, "read the tar stream");
	}
	return n > 0;
}

/* Up to n bytes of the stream: their number, 0 at its end, -1. */
static ssize_t take_some(struct pax_reader *r, void *p, size_t n, struct error *e)
{
	if (r->at == r->filled) {
		int got = fill(r, e);

		if (got <= 0) {
			return got;
		}
	}
	if (n > r->filled - r->at) {
		n = r->filled - r->at;
	}
	if (p) {
		memcpy(p, r->bytes + r->at, n);
	}
	r->at += n;
	return (ssize_t)n;
}

/* Exactly n bytes; p NULL: drop them. */
static int take_all(struct pax_reader *r, void *p, uint64_t n, struct error *e)
{
	char *at = p;

	while (n > 0) {
		size_t want = n < PAX_READER_BYTES ? (size_t)n : PAX_READER_BYTES;
		ssize_t got = take_some(r, at, want, e);

		if (got == 0) {
			r->failed = true;
			return broken(e, "it ends too early");
		}
		if (got < 0) {
			return -1;
		}
		at = at ? at + got : NULL;
		n -= (uint64_t)got;
	}
	return 0;
}

static bool is_compressed(const char *p)
{
	static const struct span magics[] = {
		{ .p = "\x1f\x8b", .n = 2 },
		{ .p = "BZh", .n = 3 },
		{ .p = "\xfd"
		       "7zXZ",
				.n = 5 },
		{ .p = "\x28\xb5\x2f\xfd", .n = 4 },
	};
	const struct span head = { .p = p, .n = PAX_BLOCK };

	for (size_t i = 0; i < ARRAY_SIZE(magics); i++) {
		if (span_has_prefix(head, magics[i])) {
			return true;
		}
	}
	return false;
}

/* Octal digits between blanks and NULs, or base 256 as GNU tar writes it. */
static int number_take(const char *field, size_t size, uint64_t *out)
{
	const unsigned char *p = (const unsigned char *)field;
	uint64_t v = 0;
	size_t i = 0;

	if (p[0] & 0x80U) {
		v = p[0] & 0x7fU;
		for (i = 1; i < size; i++) {
			if (v >> 55U) {
				return -1;
			}
			v = v << 8U | p[i];
		}
		*out = v;
		return 0;
	}
	while (i < size && p[i] == ' ') {
		i++;
	}
	for (; i < size && p[i] >= '0' && p[i] <= '7'; i++) {
		v = v << 3U | (uint64_t)(p[i] - '0'); /* twelve digits at most: no overflow */
	}
	for (; i < size; i++) {
		if (p[i] != ' ' && p[i] != '\0') {
			return -1;
		}
	}
	*out = v;
	return 0;
}

static int header_check(const struct pax_reader *r, const struct pax_header *h, struct error *e)
{
	uint64_t sum = 0;

	if (number_take(h->checksum, sizeof(h->checksum), &sum) == 0 && sum == pax_checksum(h)) {
		return 0;
	}
	if (!r->begun && is_compressed((const char *)h)) {
		(void)error_set(e, ERRC_UNSUPPORTED, "tar stream: it is compressed");
		return error_hint(e, "decompress it on the way, as gzip -d does");
	}
	return broken(e, r->begun ? "a header has a wrong checksum" : "this is no tar archive");
}

/* 1: a header, 0: the end. */
static int header_take(struct pax_reader *r, struct pax_header *h, struct error *e)
{
	static const struct pax_header zeros;

	if (take_all(r, NULL, r->left + r->pad, e) < 0) {
		return -1;
	}
	r->left = 0;
	r->pad = 0;
	memset(h, 0, sizeof(*h));
	if (take_all(r, h, sizeof(*h), e) < 0) {
		if (!r->begun && is_compressed((const char *)h)) {
			error_clear(e); /* so little of it */
			return header_check(r, h, e);
		}
		return -1;
	}
	if (memcmp(h, &zeros, sizeof(zeros)) == 0) {
		return 0;
	}
	if (header_check(r, h, e) < 0) {
		return -1;
	}
	r->begun = true;
	return 1;
}

static void data_begin(struct pax_reader *r, uint64_t size)
{
	r->left = size;
	r->pad = (uint32_t)((PAX_BLOCK - size % PAX_BLOCK) % PAX_BLOCK);
}

/* A path out of a record: whole, without NUL. */
static int path_take(char *out, struct span value, struct error *e)
{
	if (value.n == 0 || value.n >= LIMIT_PATH_BYTES || memchr(value.p, '\0', value.n)) {
		return broken(e, "a name is empty, too long or has a NUL in it");
	}
	memcpy(out, value.p, value.n);
	out[value.n] = '\0';
	return 0;
}

static int record_number(struct span value, uint64_t *out, bool *out_has, struct error *e)
{
	autofree char *text = span_dup(value);

	if (!text || str_to_u64(text, INT64_MAX, out) < 0) {
		return broken(e, "a pax record is not a number");
	}
	*out_has = true;
	return 0;
}

static int record_apply(struct extension *x, struct span key, struct span value, struct error *e)
{
	if (span_eq(key, span_of("path"))) {
		return path_take(x->entry->name, value, e);
	}
	if (span_eq(key, span_of("linkpath"))) {
		return path_take(x->entry->target, value, e);
	}
	if (span_eq(key, span_of("size"))) {
		return record_number(value, &x->size, &x->has_size, e);
	}
	if (span_eq(key, span_of("uid"))) {
		return record_number(value, &x->uid, &x->has_uid, e);
	}
	if (span_eq(key, span_of("gid"))) {
		return record_number(value, &x->gid, &x->has_gid, e);
	}
	if (span_has_prefix(key, span_of("GNU.sparse."))) {
		return error_set(e, ERRC_UNSUPPORTED, "tar stream: it has sparse files");
	}
	return 0;
}

/* "LENGTH KEY=VALUE\n", where LENGTH counts all of it. */
static int record_take(struct extension *x, struct span *rest, struct error *e)
{
	size_t n = 0;
	size_t i = 0;

	for (; i < rest->n && rest->p[i] >= '0' && rest->p[i] <= '9' && n <= rest->n; i++) {
		n = n * 10 + (size_t)(rest->p[i] - '0');
	}
	if (i == 0 || i >= rest->n || rest->p[i] != ' ' || n > rest->n || n < i + 3 ||
			rest->p[n - 1] != '\n') {
		return broken(e, "a pax record is broken");
	}
	const struct span body = { .p = rest->p + i + 1, .n = n - i - 2 };
	const char *equals = memchr(body.p, '=', body.n);

	if (!equals || equals == body.p) {
		return broken(e, "a pax record is broken");
	}
	const struct span key = { .p = body.p, .n = (size_t)(equals - body.p) };

	*rest = span_from(*rest, n);
	return record_apply(x, key, span_from(body, key.n + 1), e);
}

static int bytes_take(struct pax_reader *r, uint64_t size, struct buf *out, struct error *e)
{
	if (size > out->max || buf_reserve(out, (size_t)size + 1) < 0) {
		return broken(e, "what describes an entry is too long");
	}
	data_begin(r, size);
	if (take_all(r, out->p, size, e) < 0) {
		return -1;
	}
	r->left = 0;
	out->n = (size_t)size;
	return 0;
}

static int records_take(struct pax_reader *r, uint64_t size, struct extension *x, struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(RECORDS_BYTES_MAX);

	if (bytes_take(r, size, &text, e) < 0) {
		return -1;
	}
	struct span rest = buf_span(&text);

	while (rest.n > 0) {
		if (record_take(x, &rest, e) < 0) {
			return -1;
		}
	}
	return 0;
}

/* GNU tar ends the name with a NUL. */
static int long_name_take(struct pax_reader *r, uint64_t size, char *out, struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(LIMIT_PATH_BYTES + 1);

	if (bytes_take(r, size, &text, e) < 0) {
		return -1;
	}
	struct span name = buf_span(&text);

	if (name.n > 0 && name.p[name.n - 1] == '\0') {
		name.n--;
	}
	return path_take(out, name, e);
}

/* 1: it was one, 0: it is an entry, -1. */
static int extension_take(struct pax_reader *r, const struct pax_header *h, struct extension *x,
		struct error *e)
{
	uint64_t size = 0;
	int done = 0;

	if (!h->type || !strchr("xgLK", h->type)) {
		return 0;
	}
	if (number_take(h->size, sizeof(h->size), &size) < 0 || size > GLOBAL_BYTES_MAX) {
		return broken(e, "what describes an entry is too long");
	}
	switch (h->type) {
	case 'x':
		done = records_take(r, size, x, e);
		break;
	case 'g':
		data_begin(r, size);
		break;
	default:
		done = long_name_take(
				r, size, h->type == 'L' ? x->entry->name : x->entry->target, e);
	}
	return done < 0 ? -1 : 1;
}

static int type_take(const struct pax_header *h, enum pax_type *out, struct error *e)
{
	switch (h->type) {
	case '\0':
	case '0':
	case '7':
		*out = PAX_FILE;
		return 0;
	case '1':
		*out = PAX_HARDLINK;
		return 0;
	case '2':
		*out = PAX_SYMLINK;
		return 0;
	case '5':
		*out = PAX_DIR;
		return 0;
	case '3':
	case '4':
	case '6':
		*out = PAX_SPECIAL;
		return 0;
	case 'S':
		return error_set(e, ERRC_UNSUPPORTED, "tar stream: it has sparse files");
	default:
		return error_set(e, ERRC_UNSUPPORTED, "tar stream: entry of type 0x%02x",
				(unsigned char)h->type);
	}
}

static void field_take(char *out, const char *field, size_t size)
{
	size_t n = strnlen(field, size);

	memcpy(out, field, n);
	out[n] = '\0';
}

static void name_take(const struct pax_header *h, char *out)
{
	/* GNU tar has other things where POSIX has the prefix. */
	bool is_posix = memcmp(h->magic, "ustar", sizeof(h->magic)) == 0;
	size_t n = is_posix ? strnlen(h->prefix, sizeof(h->prefix)) : 0;

	if (n > 0) {
		memcpy(out, h->prefix, n);
		out[n++] = '/';
	}
	field_take(out + n, h->name, sizeof(h->name));
}

static int numbers_take(const struct pax_header *h, const struct extension *x, struct error *e)
{
	struct pax_entry *entry = x->entry;
	uint64_t mode = 0;
	uint64_t uid = 0;
	uint64_t gid = 0;
	uint64_t size = 0;
	uint64_t mtime = 0;

	if (number_take(h->mode, sizeof(h->mode), &mode) < 0 ||
			number_take(h->uid, sizeof(h->uid), &uid) < 0 ||
			number_take(h->gid, sizeof(h->gid), &gid) < 0 ||
			number_take(h->size, sizeof(h->size), &size) < 0) {
		return broken(e, "a number in a header is broken");
	}
	uid = x->has_uid ? x->uid : uid;
	gid = x->has_gid ? x->gid : gid;
	size = x->has_size ? x->size : size;
	if (uid > ID_MAX || gid > ID_MAX || size > INT64_MAX) {
		return broken(e, "a number in a header is too large");
	}
	/* A time that is negative or broken is none. */
	if (number_take(h->mtime, sizeof(h->mtime), &mtime) < 0 || mtime > PAX_OCTAL_MAX) {
		mtime = 0;
	}
	entry->mode = (mode_t)mode & 07777;
	entry->uid = (uint32_t)uid;
	entry->gid = (uint32_t)gid;
	entry->size = size;
	entry->mtime = (struct timespec){ .tv_sec = (time_t)mtime };
	return 0;
}

static int entry_take(struct pax_reader *r, const struct pax_header *h, const struct extension *x,
		struct error *e)
{
	struct pax_entry *entry = x->entry;

	if (type_take(h, &entry->type, e) < 0 || numbers_take(h, x, e) < 0) {
		return -1;
	}
	if (entry->name[0] == '\0') {
		name_take(h, entry->name);
	}
	bool is_link = entry->type == PAX_SYMLINK || entry->type == PAX_HARDLINK;

	if (is_link && entry->target[0] == '\0') {
		field_take(entry->target, h->link, sizeof(h->link));
	}
	if (entry->name[0] == '\0' || (is_link && entry->target[0] == '\0')) {
		return broken(e, "an entry has no name or a link no target");
	}
	if (entry->type != PAX_FILE && entry->size > 0) {
		return broken(e, "an entry that is no file has data");
	}
	/* The format of Unix V7 has no type for directories. */
	if (h->type == '\0' && str_has_suffix(entry->name, "/") && entry->size == 0) {
		entry->type = PAX_DIR;
	}
	data_begin(r, entry->size);
	return 1;
}

int pax_next(struct pax_reader *r, struct pax_entry *out, struct error *e)
{
	struct extension x = { .entry = out };

	out->name[0] = '\0';
	out->target[0] = '\0';
	for (int i = 0; i < EXTENSIONS_MAX; i++) {
		struct pax_header h;
		int got = header_take(r, &h, e);

		if (got <= 0) {
			return got;
		}
		got = extension_take(r, &h, &x, e);
		if (got <= 0) {
			return got < 0 ? -1 : entry_take(r, &h, &x, e);
		}
	}
	return broken(e, "too much describes one entry");
}

ssize_t pax_read(struct pax_reader *r, void *p, size_t n, struct error *e)
{
	if (n > r->left) {
		n = (size_t)r->left;
	}
	if (n == 0) {
		return 0;
	}
	ssize_t got = take_some(r, p, n, e);

	if (got == 0) {
		r->failed = true;
		return broken(e, "it ends too early");
	}
	r->left -= got > 0 ? (uint64_t)got : 0;
	return got;
}

int pax_drain(struct pax_reader *r, struct error *e)
{
	ssize_t got = 0;

	do {
		got = take_some(r, NULL, PAX_READER_BYTES, e);
	} while (got > 0);
	return got < 0 ? -1 : 0;
}
