/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/str.h>

#include "layer_internal.h"

/* Children before their parents, so that a parent may lose its permissions; of one path, the entry
 * that counts first: the last one of the tar, else the first implied one. */
static int compare(const void *va, const void *vb)
{
	const struct layer_dir *a = va;
	const struct layer_dir *b = vb;
	int rc = strcmp(b->path, a->path);

	if (rc != 0) {
		return rc;
	}
	if (a->implied != b->implied) {
		return a->implied ? 1 : -1;
	}
	return a->seq < b->seq ? 1 : -1;
}

/* A directory that the tar only implies, or a root that it does not name, is as it is below. */
static int inherit(const struct layer *l, struct lowers *below, struct layer_dir *dir, int fd,
		struct error *e)
{
	const struct lowers_dirs *dirs = NULL;
	int rc = lowers_enter(below, dir->path, false, &dirs);
	struct stat st;

	if (rc < 0) {
		return error_sys(e, -rc, "look below");
	}
	if (dirs->n == 0) {
		return 0;
	}
	if (fstat(dirs->fds[0], &st) < 0) {
		return error_sys(e, errno, "look below");
	}
	dir->attr.mode = st.st_mode & 07777;
	dir->attr.mtime = st.st_mtim;
	/* With one id, owners are among the attributes. */
	if (l->opts.map->mode != IDMAP_SINGLE) {
		dir->attr.uid = st.st_uid;
		dir->attr.gid = st.st_gid;
	}
	return layer_xattrs_copy(dirs->fds[0], fd, e);
}

static int finish_dir(struct layer *l, struct layer_dir *dir, struct lowers *below, struct error *e)
{
	const char *path = dir->path[0] ? dir->path : ".";
	autoclose int fd = path_open_nolink(l->opts.root_fd, path, O_RDONLY | O_DIRECTORY, 0);

	/* Another entry of this layer took its place. */
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP) {
		return 0;
	}
	if (fd < 0) {
		return error_sys(e, -fd, "open directory");
	}
	if (dir->implied && inherit(l, below, dir, fd, e) < 0) {
		return -1;
	}
	if (dir->path[0] == '\0') {
		dir->attr.mode |= 0700; /* it must stay possible to enter it */
	}
	return layer_attr_apply(l, fd, &dir->attr, 0700, e);
}

static int finish_dirs(struct layer *l, struct lowers *below, struct error *e)
{
	const char *last = NULL;

	qsort(l->dirs, l->dirs_n, sizeof(*l->dirs), compare);
	for (size_t i = 0; i < l->dirs_n; i++) {
		struct layer_dir *dir = &l->dirs[i];

		if (last && str_eq(last, dir->path)) {
			continue;
		}
		last = dir->path;
		if (finish_dir(l, dir, below, e) < 0) {
			return error_wrap(e, "%.128s", dir->path[0] ? dir->path : "/");
		}
	}
	return 0;
}

static struct lowers *on_top(int root_fd, const int *lower_fds, size_t n)
{
	autofree int *fds = mem_array(n + 1, sizeof(*fds));

	fds[0] = root_fd;
	for (size_t i = 0; i < n; i++) {
		fds[i + 1] = lower_fds[i];
	}
	return lowers_new(fds, n + 1);
}

int layer_finish(struct layer *l, const int *lower_fds, size_t n, struct error *e)
{
	const struct layer_attr root = { .mode = 0755 };
	AUTO(lowers) struct lowers *below = lowers_new(lower_fds, n);
	AUTO(lowers) struct lowers *all = on_top(l->opts.root_fd, lower_fds, n);

	if (layer_record_dir(l, "", true, &root, e) < 0 || layer_link_lower(l, below, e) < 0 ||
			layer_hide(l, all, e) < 0) {
		return -1;
	}
	return finish_dirs(l, below, e);
}
