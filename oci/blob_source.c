/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <osbx/fd.h>
#include <osbx/limits.h>
#include <osbx/path.h>

#include "layout.h"

/* O_NONBLOCK: a FIFO under a blob's name must not hold us up. */
#define BLOB_OPEN_FLAGS (O_RDONLY | O_NONBLOCK)

static int file_check(int fd, uint64_t size, const char *name, struct error *e)
{
	struct stat s;

	if (fstat(fd, &s) < 0) {
		return error_sys(e, errno, "blob %s", name);
	}
	if (!S_ISREG(s.st_mode)) {
		return error_set(e, ERRC_INVALID, "blob %s is not a regular file", name);
	}
	if ((uint64_t)s.st_size != size) {
		return error_set(e, ERRC_INVALID,
				"blob %s has %lld bytes instead of the %llu its manifest says",
				name, (long long)s.st_size, (unsigned long long)size);
	}
	return 0;
}

int blob_source_open(const struct blob_source *src, const struct digest *d, uint64_t size,
		bool *out_is_file, struct error *e)
{
	char path[sizeof(STORE_BLOBS) + 1 + DIGEST_HEX_LEN];
	autoclose int fd = -1;
	bool is_file = true;

	(void)snprintf(path, sizeof(path), STORE_BLOBS "/%s", digest_hex(d));
	fd = path_open_nolink(src->dir_fd, path, BLOB_OPEN_FLAGS, 0);
	if (fd == -ELOOP) {
		is_file = false;
		fd = path_open_beneath(src->dir_fd, path, BLOB_OPEN_FLAGS, 0);
	}
	if (fd == -ENOENT) {
		error_set(e, ERRC_INVALID, "blob %s is missing", d->text);
		return is_file ? -1
			       : error_hint(e, "links that lead out of the layout are not "
					       "followed: cp -rL makes a copy without links");
	}
	if (fd < 0) {
		return error_sys(e, -fd, "open blob %s", d->text);
	}
	if (file_check(fd, size, d->text, e) < 0) {
		return -1;
	}
	*out_is_file = is_file;
	return TAKE_FD(fd);
}

static int bytes_check(struct span text, const struct descriptor *d, struct error *e)
{
	struct digest got = { .text = "" };

	if (digest_of(text, &got, e) < 0) {
		return -1;
	}
	if (!digest_eq(&got, &d->digest)) {
		return error_set(e, ERRC_INVALID, "blob %s: its bytes have the digest %s",
				d->digest.text, got.text);
	}
	return 0;
}

static int remote_read(const struct blob_remote *remote, const struct descriptor *d,
		struct buf *out_text, bool *out_stored, struct error *e)
{
	if (remote->read(remote->ctx, d, out_text, e) < 0) {
		return -1;
	}
	if (out_text->n != d->size) {
		return error_set(e, ERRC_INVALID,
				"blob %s has %zu bytes instead of the %llu its descriptor says",
				d->digest.text, out_text->n, (unsigned long long)d->size);
	}
	if (bytes_check(buf_span(out_text), d, e) < 0) {
		return -1;
	}
	*out_stored = false;
	return 0;
}

int blob_read(const struct store *st, const struct blob_source *src, const struct descriptor *d,
		struct buf *out_text, bool *out_stored, struct error *e)
{
	autoclose int fd = -1;
	bool is_file = false;
	bool stored = false;
	int r = 0;

	assert(out_text->n == 0);

	if (descriptor_check(d, e) < 0) {
		return -1;
	}
	if (d->size > out_text->max) {
		return error_set(e, ERRC_LIMIT, "document %s is larger than %zu bytes",
				d->digest.text, out_text->max);
	}
	fd = store_blob_open(st, &d->digest);
	stored = fd >= 0;
	if (stored && file_check(fd, d->size, d->digest.text, e) < 0) {
		return -1;
	}
	if (!stored && src->remote) {
		return remote_read(src->remote, d, out_text, out_stored, e);
	}
	if (!stored && src->dir_fd < 0) {
		error_set(e, ERRC_NOT_FOUND, "blob %s is missing in the store", d->digest.text);
		return error_hint(e, "load or pull the image again");
	}
	if (!stored) {
		fd = blob_source_open(src, &d->digest, d->size, &is_file, e);
	}
	if (fd < 0) {
		return -1;
	}
	r = fd_read_all(fd, out_text);
	if (r < 0) {
		return error_sys(e, -r, "read blob %s", d->digest.text);
	}
	if (!stored && bytes_check(buf_span(out_text), d, e) < 0) {
		return -1;
	}
	*out_stored = stored;
	return 0;
}
