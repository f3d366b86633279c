/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/str.h>
#include <osbx/sys.h>

#include "layer_internal.h"

#define MODE_AT_CREATION 0777

/* One entry on its way: where it goes and what it is. */
struct item {
	const struct tar_entry *entry;
	const char *path; /* normalised, relative */
	const char *name; /* last component; in the directory that was entered */
	struct layer_attr attr;
	struct tar *tar;
};

struct layer *layer_new(const struct layer_opts *opts)
{
	struct layer *l = mem_new(struct layer);

	l->opts = *opts;
	(void)umask(0);
	return l;
}

void layer_free(struct layer *l)
{
	if (!l) {
		return;
	}
	layer_walk_done(l);
	layer_records_done(l);
	free(l);
}

const struct layer_stats *layer_stats(const struct layer *l)
{
	return &l->stats;
}

/* A name that is taken gives way: the later entry wins. */
static int retry_cleared(struct layer *l, const char *name, int failed)
{
	return failed == -EEXIST && layer_clear(l, name) == 0;
}

static int create_file(struct layer *l, const struct item *item)
{
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
	mode_t mode = item->attr.mode & MODE_AT_CREATION;
	int fd = fd_open_at(layer_here(l), item->name, flags, mode);

	if (fd < 0 && retry_cleared(l, item->name, fd)) {
		fd = fd_open_at(layer_here(l), item->name, flags, mode);
	}
	return fd;
}

static int write_at(int fd, struct span data, uint64_t offset)
{
	while (data.n > 0) {
		ssize_t n = pwrite(fd, data.p, data.n, (off_t)offset);

		if (n < 0 && errno != EINTR) {
			return -errno;
		}
		if (n > 0) {
			data = span_from(data, (size_t)n);
			offset += (uint64_t)n;
		}
	}
	return 0;
}

/* Holes stay holes; what is behind the last byte of data is one too. */
static int write_data(const struct item *item, int fd, struct error *e)
{
	uint64_t size = item->entry->size;
	uint64_t end = 0;
	struct span data = { .n = 0 };
	uint64_t offset = 0;
	int rc = 0;

	while ((rc = tar_data(item->tar, &data, &offset, e)) > 0) {
		if (offset > size || data.n > size - offset) {
			return error_set(e, ERRC_INVALID, "data beyond its size");
		}
		rc = write_at(fd, data, offset);
		if (rc < 0) {
			return error_sys(e, -rc, "write");
		}
		if (data.n > 0) {
			end = offset + data.n;
		}
	}
	if (rc == 0 && end < size && ftruncate(fd, (off_t)size) < 0) {
		return error_sys(e, errno, "set size");
	}
	return rc;
}

static int add_file(struct layer *l, const struct item *item, struct error *e)
{
	autoclose int fd = -1;

	if (item->entry->size > l->opts.file_max) {
		(void)error_set(e, ERRC_LIMIT, "file is larger than the image may be");
		return error_hint(e,
				"if the image is trusted, raise the limit with --unpack-max SIZE");
	}
	fd = create_file(l, item);
	if (fd < 0) {
		return error_sys(e, -fd, "create file");
	}
	if (write_data(item, fd, e) < 0 || layer_xattrs_apply(l, fd, item->tar, e) < 0) {
		return -1;
	}
	return layer_attr_apply(l, fd, &item->attr, item->attr.mode & MODE_AT_CREATION, e);
}

static int dir_xattrs(struct layer *l, const struct item *item, struct error *e)
{
	autoclose int fd = -1;

	if (!tar_has_xattrs(item->tar)) {
		return 0;
	}
	fd = fd_open_at(layer_here(l), item->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	return fd < 0 ? error_sys(e, -fd, "open directory")
		      : layer_xattrs_apply(l, fd, item->tar, e);
}

static int add_dir(struct layer *l, const struct item *item, struct error *e)
{
	char path[LIMIT_PATH_BYTES];
	int rc = layer_path_of(l, item->name, path, sizeof(path));

	if (rc < 0) {
		return error_sys(e, -rc, "make directory");
	}
	if (layer_make_dir(l, item->name, e) < 0 || dir_xattrs(l, item, e) < 0) {
		return -1;
	}
	return layer_record_dir(l, path, false, &item->attr, e);
}

static int add_symlink(struct layer *l, const struct item *item, struct error *e)
{
	const char *target = item->entry->target;
	int here = layer_here(l);

	if (symlinkat(target, here, item->name) < 0 &&
			(!retry_cleared(l, item->name, -errno) ||
					symlinkat(target, here, item->name) < 0)) {
		return error_sys(e, errno, "make link");
	}
	return layer_attr_apply_at(l, item->name, &item->attr, e);
}

static int add_hardlink(struct layer *l, const struct item *item, struct error *e)
{
	autofree char *target = path_normalise(item->entry->target);
	int rc = 0;

	if (str_eq(target, "/")) {
		return error_set(e, ERRC_INVALID, "hard link to the root directory");
	}
	rc = layer_link_own(l, item->name, target + 1, e);
	if (rc != 0) {
		return rc < 0 ? -1 : 0;
	}
	/* It may be below, or come later: layer_finish sees. Whatever has the name now is older. */
	rc = layer_clear(l, item->name);
	if (rc < 0) {
		return error_sys(e, -rc, "replace");
	}
	return layer_record_link(l, item->name, target + 1, e);
}

static int add_fifo(struct layer *l, const struct item *item, struct error *e)
{
	mode_t mode = S_IFIFO | item->attr.mode;
	int rc = sys_mknod_at(layer_here(l), item->name, mode, 0);

	if (rc < 0 && retry_cleared(l, item->name, rc)) {
		rc = sys_mknod_at(layer_here(l), item->name, mode, 0);
	}
	if (rc < 0) {
		return error_sys(e, -rc, "make fifo");
	}
	return layer_attr_apply_at(l, item->name, &item->attr, e);
}

/* Nodes are of no use in a sandbox, whose /dev is its own, and not ours to make. */
static int skip_entry(struct layer *l, const struct item *item, struct error *e)
{
	(void)item;
	(void)e;
	l->stats.devices++;
	return 0;
}

typedef int (*add_fn)(struct layer *l, const struct item *item, struct error *e);

static const add_fn add_by_type[] = {
	[TAR_FILE] = add_file,
	[TAR_DIR] = add_dir,
	[TAR_SYMLINK] = add_symlink,
	[TAR_HARDLINK] = add_hardlink,
	[TAR_FIFO] = add_fifo,
	[TAR_DEVICE] = skip_entry,
	[TAR_OTHER] = skip_entry,
};
_Static_assert(ARRAY_SIZE(add_by_type) == TAR_TYPE_COUNT, "one function a type");

static const add_fn archive_by_type[] = {
	[TAR_FILE] = add_file,
	[TAR_DIR] = add_dir,
	[TAR_SYMLINK] = add_symlink,
	[TAR_HARDLINK] = add_hardlink,
	[TAR_FIFO] = skip_entry,
	[TAR_DEVICE] = skip_entry,
	[TAR_OTHER] = skip_entry,
};
_Static_assert(ARRAY_SIZE(archive_by_type) == TAR_TYPE_COUNT, "one function a type");

/* CVE-2021-29136: an entry that made the root a link sent later layers elsewhere. */
static int add_root(struct layer *l, const struct item *item, struct error *e)
{
	if (item->entry->type != TAR_DIR) {
		return error_set(e, ERRC_INVALID, "the root is not a directory");
	}
	if (layer_xattrs_apply(l, l->opts.root_fd, item->tar, e) < 0) {
		return -1;
	}
	return layer_record_dir(l, "", false, &item->attr, e);
}

static int add_whiteout(
		struct layer *l, const struct item *item, const char *hidden, struct error *e)
{
	size_t n = (size_t)(item->name - item->path);

	return layer_record_whiteout(
			l, (struct span){ .p = item->path, .n = n > 0 ? n - 1 : 0 }, hidden, e);
}

static int check_names(const char *path, struct error *e)
{
	struct span rest = span_of(path);
	struct span name = { .n = 0 };

	if (rest.n >= LIMIT_PATH_BYTES) {
		return error_set(e, ERRC_LIMIT, "path of %zu bytes", rest.n);
	}
	while (span_next(&rest, '/', &name)) {
		if (name.n > NAME_MAX) {
			return error_set(
					e, ERRC_LIMIT, "name of %zu bytes: %.32s…", name.n, name.p);
		}
	}
	return 0;
}

static int add_by_name(struct layer *l, struct item *item, struct error *e)
{
	const char *hidden = NULL;
	struct span dir = { .p = item->path, .n = (size_t)(item->name - item->path) };

	switch (l->opts.archive ? WHITEOUT_NONE : whiteout_of(item->path, &hidden)) {
	case WHITEOUT_PLAIN:
	case WHITEOUT_OPAQUE:
		return add_whiteout(l, item, hidden, e);
	case WHITEOUT_IGNORED:
		return 0;
	case WHITEOUT_INVALID:
		return error_set(e, ERRC_INVALID, "not a valid whiteout");
	case WHITEOUT_NONE:
	case WHITEOUT_COUNT:
		break;
	}
	if (layer_attr_of(l, item->entry, &item->attr, e) < 0) {
		return -1;
	}
	if (item->path[0] == '\0') {
		return add_root(l, item, e);
	}
	dir.n -= dir.n > 0 ? 1 : 0;
	if (layer_enter(l, dir, &item->attr.mtime, e) < 0) {
		return -1;
	}
	return (l->opts.archive ? archive_by_type : add_by_type)[item->entry->type](l, item, e);
}

static int add_entry(struct layer *l, struct tar *t, const struct tar_entry *entry, struct error *e)
{
	autofree char *path = path_normalise(entry->name);
	struct item item = { .entry = entry, .path = path + 1, .tar = t };
	uint64_t before =
			atomic_fetch_add_explicit(&l->opts.usage->entries, 1, memory_order_relaxed);

	if (before >= l->opts.entries_max) {
		return error_set(e, ERRC_LIMIT, "more than %llu entries",
				(unsigned long long)l->opts.entries_max);
	}
	item.name = path_last(item.path);
	if (check_names(item.path, e) < 0 || add_by_name(l, &item, e) < 0) {
		return error_wrap(e, "%.128s%s", entry->name, strlen(entry->name) > 128 ? "…" : "");
	}
	return 0;
}

int layer_unpack(struct layer *l, struct stream *stream, struct error *e)
{
	AUTO(tar) struct tar *t = tar_new(stream, e);
	struct tar_entry entry = { .name = NULL };
	int rc = 0;

	if (!t) {
		return -1;
	}
	while ((rc = tar_next(t, &entry, e)) > 0) {
		if (add_entry(l, t, &entry, e) < 0) {
			return -1;
		}
	}
	return rc;
}
