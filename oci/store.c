/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/mem.h>
#include <osbx/path.h>

#include "store_internal.h"
#include "store_struct.h"

#define STORE_LOCK   "lock"
#define STORE_LAYOUT "oci-layout"

const char store_layout_text[] = "{\"imageLayoutVersion\":\"1.0.0\"}";

static const char index_empty[] =
		"{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_INDEX "\",\"manifests\":[]}";

static const char *const store_dirs[] = {
	"blobs",
	STORE_BLOBS,
	STORE_LAYERS,
	STORE_CHAINS,
	STORE_STAGING,
};

void store_free(struct store *st)
{
	if (!st) {
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(st->layers_fd); i++) {
		fd_close(&st->layers_fd[i]);
	}
	fd_close(&st->staging_fd);
	fd_close(&st->root_fd);
	free(st->root);
	free(st);
}

int store_root_fd(const struct store *st)
{
	return st->root_fd;
}

const char *store_root(const struct store *st)
{
	return st->root;
}

int store_hold(struct store *st, enum lock_mode mode, struct error *e)
{
	int fd = lock_open_at(st->root_fd, STORE_LOCK, mode);

	/* Nobody here can remove what is about to be read. */
	if (fd == -EROFS && mode == LOCK_MODE_SHARED) {
		fd = fd_dup(st->root_fd, 0);
	}
	return fd < 0 ? error_sys(e, -fd, "lock store %s", st->root) : fd;
}

/* Layers and names of this directory are believed, so it must be the caller's own. */
static int root_check(const struct store *st, struct error *e)
{
	struct stat s;

	if (fstat(st->root_fd, &s) < 0) {
		return error_sys(e, errno, "store %s", st->root);
	}
	if (s.st_uid != geteuid()) {
		error_set(e, ERRC_DENIED, "store %s belongs to user %u", st->root,
				(unsigned int)s.st_uid);
		return error_hint(e, "set OSBX_ROOT to a directory of your own");
	}
	if ((s.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
		error_set(e, ERRC_DENIED, "store %s can be written by others", st->root);
		return error_hint(e, "chmod go-w %s", st->root);
	}
	return 0;
}

static int file_make(const struct store *st, const char *name, const char *text)
{
	if (faccessat(st->root_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
		return 0;
	}
	return file_write_at(st->root_fd, name, span_of(text), true);
}

/* The layout file is written last: whoever sees it sees a whole store. */
static int root_make(const struct store *st, struct error *e)
{
	autoclose int lock = -1;
	int r = 0;

	if (faccessat(st->root_fd, STORE_LAYOUT, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
		return 0;
	}
	/* Another process that makes it may add an image at once. */
	lock = lock_open_at(st->root_fd, STORE_INDEX_LOCK, LOCK_MODE_EXCLUSIVE);
	if (lock < 0) {
		return error_sys(e, -lock, "make store %s", st->root);
	}
	for (size_t i = 0; i < ARRAY_SIZE(store_dirs) && r == 0; i++) {
		r = file_mkdir_at(st->root_fd, store_dirs[i], 0700);
	}
	if (r == 0) {
		r = file_make(st, STORE_INDEX, index_empty);
	}
	if (r == 0) {
		r = file_make(st, STORE_LAYOUT, store_layout_text);
	}
	return r < 0 ? error_sys(e, -r, "make store %s", st->root) : 0;
}

struct store *store_open(const char *root, struct error *e)
{
	AUTO(store) struct store *st = mem_new(struct store);
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(st->layers_fd); i++) {
		st->layers_fd[i] = -1;
	}
	st->staging_fd = -1;
	st->root = path_normalise(root);
	st->root_fd = fd_open(st->root, O_RDONLY | O_DIRECTORY, 0);
	if (st->root_fd == -ENOENT) {
		r = file_mkdirs(st->root, 0700);
		st->root_fd = r < 0 ? r : fd_open(st->root, O_RDONLY | O_DIRECTORY, 0);
	}
	if (st->root_fd < 0) {
		error_sys(e, -st->root_fd, "open store %s", st->root);
		return NULL;
	}
	if (root_check(st, e) < 0 || root_make(st, e) < 0) {
		return NULL;
	}
	return TAKE_PTR(st);
}

int store_staging(struct store *st, struct staging *out_staging, struct error *e)
{
	int r = 0;

	if (st->staging_fd < 0) {
		st->staging_fd = fd_open_at(
				st->root_fd, STORE_STAGING, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	}
	r = st->staging_fd < 0 ? st->staging_fd : staging_open(st->staging_fd, "", out_staging);
	return r < 0 ? error_sys(e, -r, "make a directory below %s/%s", st->root, STORE_STAGING)
		     : 0;
}

struct blob_path {
	char text[sizeof(STORE_BLOBS) + 1 + DIGEST_HEX_LEN];
};

static struct blob_path blob_path(const struct digest *d)
{
	struct blob_path p = { .text = STORE_BLOBS "/" };

	memcpy(p.text + sizeof(STORE_BLOBS), digest_hex(d), DIGEST_HEX_LEN);
	return p;
}

int store_blob_open(const struct store *st, const struct digest *d)
{
	return fd_open_at(st->root_fd, blob_path(d).text, O_RDONLY | O_NOFOLLOW, 0);
}

bool store_has_blob(const struct store *st, const struct digest *d, uint64_t size)
{
	struct stat s;

	return fstatat(st->root_fd, blob_path(d).text, &s, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(s.st_mode) && (uint64_t)s.st_size == size;
}

bool store_has_any_blob(const struct store *st, const struct digest *d)
{
	return faccessat(st->root_fd, blob_path(d).text, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int store_blob_publish(struct store *st, int dir_fd, const char *name, const struct digest *d)
{
	return renameat(dir_fd, name, st->root_fd, blob_path(d).text) < 0 ? -errno : 0;
}

static int layers_open(struct store *st, enum idmap_mode mode, bool make)
{
	int *fd = &st->layers_fd[mode];
	char path[64];
	int r = 0;

	if (*fd >= 0) {
		return *fd;
	}
	(void)snprintf(path, sizeof(path), "%s/%s", STORE_LAYERS, idmap_mode_name(mode));
	if (make) {
		r = file_mkdir_at(st->root_fd, path, 0700);
		if (r < 0) {
			return r;
		}
	}
	r = fd_open_at(st->root_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (r >= 0) {
		*fd = r;
	}
	return r;
}

int store_layers_find(struct store *st, enum idmap_mode mode)
{
	return layers_open(st, mode, false);
}

int store_layers_fd(struct store *st, enum idmap_mode mode)
{
	return layers_open(st, mode, true);
}

bool store_has_layer(int layers_fd, const struct digest *chain)
{
	return layers_fd >= 0 &&
	       faccessat(layers_fd, digest_hex(chain), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}
