/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whiteouts say what of the layers below is gone, so they are made last, where and only where there
 * is something below to hide: overlayfs lists the names of whiteouts in a directory that it does
 * not merge, and ignores the opaque mark of a layer's root.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/str.h>
#include <osbx/sys.h>

#include "layer_internal.h"

/* Parents before children, and the opaque mark of a directory before the whiteouts in it. */
static int compare(const void *va, const void *vb)
{
	const struct layer_whiteout *a = va;
	const struct layer_whiteout *b = vb;
	int rc = strcmp(a->dir, b->dir);

	if (rc != 0 || !a->name || !b->name) {
		return rc != 0 ? rc : (a->name ? 1 : 0) - (b->name ? 1 : 0);
	}
	return strcmp(a->name, b->name);
}

static int make_device(int dir_fd, const char *name, struct error *e)
{
	int rc = sys_mknod_at(dir_fd, name, S_IFCHR, 0);

	if (rc == 0) {
		return 0;
	}
	(void)error_sys(e, -rc, "make whiteout of %.128s", name);
	return rc == -EPERM ? error_hint(e, "the store needs Linux 5.8 and must not itself stand on "
					    "overlayfs: set OSBX_ROOT to another file system")
			    : -1;
}

/* Hide what layers below have as name in the directory entered last: a directory of this layer
 * becomes opaque, any other entry hides it anyway. */
static int hide_name(struct layer *l, const char *name, struct error *e)
{
	int here = layer_here(l);
	struct stat st;

	if (fstatat(here, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		return S_ISDIR(st.st_mode) ? layer_make_opaque(here, name, e) : 0;
	}
	return errno == ENOENT ? make_device(here, name, e)
			       : error_sys(e, errno, "look for %.128s", name);
}

static const struct dirent *next_entry(DIR *dir)
{
	errno = 0;
	return readdir(dir);
}

static int hide_all_of(struct layer *l, const struct lowers_dirs *dirs, DIR *dir, struct error *e)
{
	const struct dirent *entry = NULL;

	while ((entry = next_entry(dir))) {
		struct lowers_entry below = { .dir_fd = -1 };
		const char *name = entry->d_name;
		int rc = 0;

		if (str_eq(name, ".") || str_eq(name, "..")) {
			continue;
		}
		rc = lowers_find(dirs, 1, name, &below);
		if (rc < 0) {
			return error_sys(e, -rc, "look for %.128s", name);
		}
		if (rc > 0 && hide_name(l, name, e) < 0) {
			return -1;
		}
	}
	return errno == 0 ? 0 : error_sys(e, errno, "list layer below");
}

/* overlayfs merges the roots of all layers, opaque or not: hide each name. */
static int hide_root(struct layer *l, const struct lowers_dirs *dirs, struct error *e)
{
	for (size_t i = 0; i < dirs->n; i++) {
		int fd = -1;
		DIR *dir = NULL;
		int rc = 0;

		if (dirs->layers[i] == 0) {
			continue;
		}
		fd = fd_open_at(dirs->fds[i], ".", O_RDONLY | O_DIRECTORY, 0);
		if (fd < 0) {
			return error_sys(e, -fd, "open layer below");
		}
		dir = fdopendir(fd);
		if (!dir) {
			rc = error_sys(e, errno, "open layer below");
			fd_close(&fd);
			return rc;
		}
		rc = hide_all_of(l, dirs, dir, e);
		(void)closedir(dir);
		if (rc < 0) {
			return -1;
		}
	}
	return 0;
}

static int hide_contents(
		struct layer *l, const char *dir, const struct lowers_dirs *dirs, struct error *e)
{
	return dir[0] == '\0' ? hide_root(l, dirs, e) : layer_make_opaque(layer_here(l), ".", e);
}

static int hide(struct layer *l, const struct layer_whiteout *w, struct lowers *all,
		struct error *e)
{
	const struct timespec never = { .tv_sec = 0 };
	const struct lowers_dirs *dirs = NULL;
	struct lowers_entry below = { .dir_fd = -1 };
	bool is_merged = false;
	int rc = lowers_enter(all, w->dir, false, &dirs);

	if (rc == 0 && dirs->n > 0) {
		is_merged = dirs->layers[dirs->n - 1] > 0;
	}
	if (rc == 0 && is_merged && w->name) {
		rc = lowers_find(dirs, 1, w->name, &below);
		is_merged = rc > 0;
	}
	if (rc < 0) {
		return error_sys(e, -rc, "look below");
	}
	if (!is_merged) {
		return 0;
	}
	/* What is merged has no link in its path: entering follows none either. */
	if (layer_enter(l, span_of(w->dir), &never, e) < 0) {
		return -1;
	}
	rc = w->name ? hide_name(l, w->name, e) : hide_contents(l, w->dir, dirs, e);
	/* Whiteouts of files leave the merged directories as they are. */
	if (!w->name || S_ISDIR(below.st.st_mode) || dirs->layers[0] != 0) {
		lowers_forget(all);
	}
	return rc;
}

int layer_hide(struct layer *l, struct lowers *all, struct error *e)
{
	if (l->whiteouts_n > 0) {
		qsort(l->whiteouts, l->whiteouts_n, sizeof(*l->whiteouts), compare);
	}
	for (size_t i = 0; i < l->whiteouts_n; i++) {
		const struct layer_whiteout *w = &l->whiteouts[i];

		if (hide(l, w, all, e) < 0) {
			return error_wrap(e, "%.96s%s.wh.%.96s", w->dir, w->dir[0] ? "/" : "",
					w->name ? w->name : ".wh..opq");
		}
	}
	return 0;
}
