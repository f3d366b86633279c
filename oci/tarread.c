/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include <osbx/mem.h>

#include "libs.h"
#include "tarread.h"

struct tar {
	const struct lib_archive *lib;
	struct archive *archive;
	struct archive_entry *entry; /* libarchive's, of the last tar_next */
	struct stream *stream;
	struct error error; /* of the stream, inside libarchive's callback */
	bool seen;          /* any byte: an empty stream is an empty layer */
};

static la_ssize_t archive_on_read(struct archive *a, void *ctx, const void **out_p)
{
	struct tar *t = ctx;
	struct span plain = { .n = 0 };

	(void)a;
	if (t->error.code != ERRC_OK || stream_next(t->stream, &plain, &t->error) < 0) {
		return ARCHIVE_FATAL;
	}
	t->seen = t->seen || plain.n > 0;
	*out_p = plain.p;
	return (la_ssize_t)plain.n;
}

static int fail(struct tar *t, struct error *e)
{
	const char *text = NULL;

	if (t->error.code != ERRC_OK) {
		*e = t->error;
		return -1;
	}
	text = t->lib->archive_error_string(t->archive);
	return error_set(e, ERRC_INVALID, "read tar: %s", text ? text : "broken archive");
}

struct tar *tar_new(struct stream *stream, struct error *e)
{
	const struct lib_archive *lib = lib_archive(e);
	AUTO(tar) struct tar *t = NULL;
	int rc = 0;

	if (!lib) {
		return NULL;
	}
	t = mem_new(struct tar);
	t->lib = lib;
	t->stream = stream;
	t->archive = lib->archive_read_new();
	if (!t->archive || lib->archive_read_support_format_tar(t->archive) != ARCHIVE_OK) {
		error_set(e, ERRC_INTERNAL, "start libarchive");
		return NULL;
	}
	rc = lib->archive_read_open(t->archive, t, NULL, archive_on_read, NULL);
	if (rc != ARCHIVE_OK && (t->seen || t->error.code != ERRC_OK)) {
		(void)fail(t, e);
		return NULL;
	}
	return TAKE_PTR(t);
}

void tar_free(struct tar *t)
{
	if (!t) {
		return;
	}
	if (t->archive) {
		(void)t->lib->archive_read_free(t->archive);
	}
	free(t);
}

static enum tar_type entry_type(struct tar *t)
{
	if (t->lib->archive_entry_hardlink(t->entry)) {
		return TAR_HARDLINK;
	}
	switch (t->lib->archive_entry_filetype(t->entry)) {
	case AE_IFREG:
		return TAR_FILE;
	case AE_IFDIR:
		return TAR_DIR;
	case AE_IFLNK:
		return TAR_SYMLINK;
	case AE_IFIFO:
		return TAR_FIFO;
	case AE_IFCHR:
	case AE_IFBLK:
		return TAR_DEVICE;
	default:
		return TAR_OTHER;
	}
}

/* libarchive goes on behind broken PAX attributes as if they were not there, under another name
 * and size; and it warns of each name that is not ASCII, which is as it should be. */
static bool is_harmless(struct tar *t)
{
	const char *text = t->lib->archive_error_string(t->archive);

	return !text || !strcasestr(text, "pax");
}

static int drain(struct tar *t, struct error *e)
{
	struct span plain = { .n = 0 };

	do {
		if (stream_next(t->stream, &plain, e) < 0) {
			return -1;
		}
	} while (plain.n > 0);
	return 0;
}

static int take_entry(struct tar *t, struct tar_entry *out_entry, struct error *e)
{
	const struct lib_archive *lib = t->lib;
	struct tar_entry entry = {
		.type = entry_type(t),
		.name = lib->archive_entry_pathname(t->entry),
		.mode = lib->archive_entry_perm(t->entry) & 07777,
		.uid = lib->archive_entry_uid(t->entry),
		.gid = lib->archive_entry_gid(t->entry),
		.mtime = { .tv_sec = lib->archive_entry_mtime(t->entry),
				.tv_nsec = lib->archive_entry_mtime_nsec(t->entry) },
	};
	int64_t size = lib->archive_entry_size(t->entry);

	if (!entry.name) {
		return error_set(e, ERRC_INVALID, "read tar: entry without a name");
	}
	if (size < 0) {
		return error_set(e, ERRC_INVALID, "%s: negative size", entry.name);
	}
	entry.size = (uint64_t)size;
	if (entry.type == TAR_HARDLINK) {
		entry.target = lib->archive_entry_hardlink(t->entry);
	} else if (entry.type == TAR_SYMLINK) {
		entry.target = lib->archive_entry_symlink(t->entry);
	}
	if (!entry.target) {
		entry.target = "";
	}
	(void)lib->archive_entry_xattr_reset(t->entry);
	*out_entry = entry;
	return 1;
}

int tar_next(struct tar *t, struct tar_entry *out_entry, struct error *e)
{
	int rc = t->seen ? t->lib->archive_read_next_header(t->archive, &t->entry) : ARCHIVE_EOF;

	if (rc == ARCHIVE_EOF) {
		return drain(t, e);
	}
	if (rc != ARCHIVE_OK && (rc != ARCHIVE_WARN || !is_harmless(t))) {
		return fail(t, e);
	}
	return take_entry(t, out_entry, e);
}

int tar_data(struct tar *t, struct span *out_data, uint64_t *out_offset, struct error *e)
{
	const void *p = NULL;
	size_t n = 0;
	la_int64_t offset = 0;
	int rc = t->lib->archive_read_data_block(t->archive, &p, &n, &offset);

	if (rc == ARCHIVE_EOF) {
		return 0;
	}
	if (rc != ARCHIVE_OK || offset < 0) {
		return fail(t, e);
	}
	*out_data = (struct span){ .p = p, .n = n };
	*out_offset = (uint64_t)offset;
	return 1;
}

bool tar_has_xattrs(struct tar *t)
{
	return t->lib->archive_entry_xattr_count(t->entry) > 0;
}

int tar_xattr(struct tar *t, struct tar_xattr *out_xattr)
{
	struct tar_xattr x = { .name = NULL };

	if (t->lib->archive_entry_xattr_next(t->entry, &x.name, &x.value, &x.n) != ARCHIVE_OK) {
		return 0;
	}
	*out_xattr = x;
	return 1;
}
