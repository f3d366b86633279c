/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <osbx/buf.h>
#include <osbx/fd.h>
#include <osbx/pax.h>

#include "pax.h"

/* Two paths, a few numbers, two headers. */
#define HEADERS_BYTES_MAX ((size_t)4 * LIMIT_PATH_BYTES)
#define END_BLOCKS        2U

static const char types[] = {
	[PAX_FILE] = '0',
	[PAX_DIR] = '5',
	[PAX_SYMLINK] = '2',
	[PAX_HARDLINK] = '1',
};

static void octal_put(char *field, size_t size, uint64_t value)
{
	char digits[24];
	int n = snprintf(
			digits, sizeof(digits), "%0*llo", (int)size - 1, (unsigned long long)value);

	assert(n == (int)size - 1);
	memcpy(field, digits, size);
}

static void header_finish(struct pax_header *h)
{
	char digits[8];

	memcpy(h->magic, "ustar", sizeof(h->magic));
	memcpy(h->version, "00", sizeof(h->version));
	/* Six digits and a NUL; the last byte is a blank. */
	(void)snprintf(digits, sizeof(digits), "%06o", pax_checksum(h));
	memcpy(h->checksum, digits, sizeof(digits) - 1);
	h->checksum[sizeof(h->checksum) - 1] = ' ';
}

/* A record holds its own length, in decimal. */
static int record_put(struct buf *records, const char *key, const char *value)
{
	const size_t rest = strlen(key) + strlen(value) + 3; /* " =\n" */
	size_t n = rest + 1;
	char digits[24];

	for (;;) {
		int width = snprintf(digits, sizeof(digits), "%zu", n);

		if (rest + (size_t)width == n) {
			break;
		}
		n = rest + (size_t)width;
	}
	return buf_appendf(records, "%s %s=%s\n", digits, key, value);
}

static int number_put(struct buf *records, const char *key, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return record_put(records, key, text);
}

/* What the fields of a header cannot hold. */
static int records_put(struct buf *records, const struct pax_entry *entry)
{
	int r = 0;

	if (strlen(entry->name) > sizeof(((struct pax_header *)0)->name)) {
		r = record_put(records, "path", entry->name);
	}
	if (r == 0 && strlen(entry->target) > sizeof(((struct pax_header *)0)->link)) {
		r = record_put(records, "linkpath", entry->target);
	}
	if (r == 0 && entry->size > PAX_OCTAL_MAX) {
		r = number_put(records, "size", entry->size);
	}
	if (r == 0 && entry->uid > PAX_IDS_MAX) {
		r = number_put(records, "uid", entry->uid);
	}
	if (r == 0 && entry->gid > PAX_IDS_MAX) {
		r = number_put(records, "gid", entry->gid);
	}
	return r;
}

/* A field that is full has no NUL. */
static void text_put(char *field, size_t size, const char *text)
{
	size_t n = strlen(text);

	memcpy(field, text, n < size ? n : size);
}

static int records_append(struct buf *out, const struct buf *records)
{
	static const char zeros[PAX_BLOCK];
	struct pax_header h = { .type = 'x' };
	const size_t rest = records->n % PAX_BLOCK;

	text_put(h.name, sizeof(h.name), "pax-records");
	octal_put(h.mode, sizeof(h.mode), 0644);
	octal_put(h.uid, sizeof(h.uid), 0);
	octal_put(h.gid, sizeof(h.gid), 0);
	octal_put(h.size, sizeof(h.size), records->n);
	octal_put(h.mtime, sizeof(h.mtime), 0);
	header_finish(&h);
	int r = buf_append(out, &h, sizeof(h));

	if (r == 0) {
		r = buf_append(out, records->p, records->n);
	}
	return r < 0 || rest == 0 ? r : buf_append(out, zeros, PAX_BLOCK - rest);
}

int pax_write_header(int fd, const struct pax_entry *entry)
{
	AUTO(buf) struct buf records = BUF_INIT(HEADERS_BYTES_MAX);
	AUTO(buf) struct buf out = BUF_INIT(HEADERS_BYTES_MAX);
	struct pax_header h = { .type = types[entry->type] };
	const int64_t mtime = entry->mtime.tv_sec;
	int r = records_put(&records, entry);

	assert(entry->type != PAX_SPECIAL && entry->name[0] != '\0');
	text_put(h.name, sizeof(h.name), entry->name);
	text_put(h.link, sizeof(h.link), entry->target);
	octal_put(h.mode, sizeof(h.mode), entry->mode & 07777);
	octal_put(h.uid, sizeof(h.uid), entry->uid > PAX_IDS_MAX ? 0 : entry->uid);
	octal_put(h.gid, sizeof(h.gid), entry->gid > PAX_IDS_MAX ? 0 : entry->gid);
	octal_put(h.size, sizeof(h.size), entry->size > PAX_OCTAL_MAX ? 0 : entry->size);
	/* A time before 1970, or far away, tells nobody anything. */
	octal_put(h.mtime, sizeof(h.mtime),
			mtime < 0 || (uint64_t)mtime > PAX_OCTAL_MAX ? 0 : (uint64_t)mtime);
	header_finish(&h);
	if (r == 0 && records.n > 0) {
		r = records_append(&out, &records);
	}
	if (r == 0) {
		r = buf_append(&out, &h, sizeof(h));
	}
	return r < 0 ? r : fd_write_all(fd, out.p, out.n);
}

int pax_write_padding(int fd, uint64_t size)
{
	static const char zeros[PAX_BLOCK];
	const size_t rest = (size_t)(size % PAX_BLOCK);

	return rest ? fd_write_all(fd, zeros, PAX_BLOCK - rest) : 0;
}

int pax_write_end(int fd)
{
	static const char zeros[END_BLOCKS * PAX_BLOCK];

	return fd_write_all(fd, zeros, sizeof(zeros));
}
