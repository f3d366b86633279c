/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/span.h>
#include <osbx/str.h>

#include "layer_internal.h"
#include "lowers.h"

struct lowers {
	size_t n;
	int roots[LOWERS_MAX];
	char *cached; /* path that dirs are of; NULL: none */
	bool cached_follow;
	struct lowers_dirs dirs;
};

struct lowers *lowers_new(const int *fds, size_t n)
{
	struct lowers *lw = mem_new(struct lowers);

	assert(n <= LOWERS_MAX);

	for (size_t i = 0; i < n; i++) {
		lw->roots[i] = fds[i];
	}
	lw->n = n;
	return lw;
}

static void dirs_done(struct lowers_dirs *dirs)
{
	for (size_t i = 0; i < dirs->n; i++) {
		fd_close(&dirs->fds[i]);
	}
	dirs->n = 0;
}

void lowers_forget(struct lowers *lw)
{
	dirs_done(&lw->dirs);
	free(lw->cached);
	lw->cached = NULL;
}

void lowers_free(struct lowers *lw)
{
	if (lw) {
		lowers_forget(lw);
		free(lw);
	}
}

bool lowers_is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

bool lowers_is_opaque(int dir_fd)
{
	char value = '\0';

	return fgetxattr(dir_fd, LAYER_XATTR_OPAQUE, &value, 1) == 1 && value == 'y';
}

static int open_dir(int dir_fd, const char *name)
{
	return fd_open_at(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

static int open_roots(const struct lowers *lw, struct lowers_dirs *dirs)
{
	for (size_t i = 0; i < lw->n; i++) {
		int fd = open_dir(lw->roots[i], ".");

		if (fd < 0) {
			return fd;
		}
		dirs->layers[dirs->n] = i;
		dirs->fds[dirs->n++] = fd;
	}
	return 0;
}

int lowers_find(const struct lowers_dirs *dirs, size_t first_layer, const char *name,
		struct lowers_entry *out_entry)
{
	struct lowers_entry entry = { .dir_fd = -1 };

	for (size_t i = 0; i < dirs->n; i++) {
		if (dirs->layers[i] < first_layer) {
			continue;
		}
		if (fstatat(dirs->fds[i], name, &entry.st, AT_SYMLINK_NOFOLLOW) == 0) {
			entry.dir_fd = dirs->fds[i];
			break;
		}
		if (errno != ENOENT) {
			return -errno;
		}
	}
	if (entry.dir_fd < 0 || lowers_is_whiteout(&entry.st)) {
		return 0;
	}
	*out_entry = entry;
	return 1;
}

/* The directories that are merged at name in the directories `from`. */
static int step(const struct lowers_dirs *from, const char *name, struct lowers_dirs *to)
{
	for (size_t i = 0; i < from->n; i++) {
		int fd = open_dir(from->fds[i], name);

		if (fd == -ENOENT) {
			continue;
		}
		if (fd == -ENOTDIR || fd == -ELOOP) {
			return 0;
		}
		if (fd < 0) {
			return fd;
		}
		to->layers[to->n] = from->layers[i];
		to->fds[to->n++] = fd;
		if (lowers_is_opaque(fd)) {
			return 0;
		}
	}
	return 0;
}

/* The link at name, as the path that goes on from there, or NULL when it is none. */
static char *read_link(const struct lowers_dirs *dirs, struct span before, const char *name,
		struct span after)
{
	struct lowers_entry entry = { .dir_fd = -1 };
	char target[LIMIT_PATH_BYTES];
	ssize_t n = 0;
	autofree char *joined = NULL;

	if (lowers_find(dirs, 0, name, &entry) <= 0 || !S_ISLNK(entry.st.st_mode)) {
		return NULL;
	}
	n = readlinkat(entry.dir_fd, name, target, sizeof(target) - 1);
	if (n <= 0) {
		return NULL;
	}
	target[n] = '\0';
	if (target[0] == '/') {
		before.n = 0;
	}
	joined = mem_printf("%.*s/%s/%.*s", (int)before.n, before.p, target, (int)after.n, after.p);
	return path_normalise(joined);
}

/* Walk path from the roots into dirs. 0, or -errno; *out_next is the path to go on with when a
 * link was met. */
static int walk(const struct lowers *lw, const char *path, bool follow, struct lowers_dirs *dirs,
		char **out_next)
{
	struct span rest = span_of(path);
	struct span name = { .n = 0 };
	int rc = open_roots(lw, dirs);

	while (rc == 0 && dirs->n > 0 && span_next(&rest, '/', &name)) {
		autofree char *text = mem_dup(name.p, name.n);
		struct lowers_dirs next = { .n = 0 };

		if (name.n == 0) {
			continue;
		}
		rc = step(dirs, text, &next);
		if (rc == 0 && next.n == 0 && follow) {
			struct span before = { .p = path, .n = (size_t)(name.p - path) };

			*out_next = read_link(dirs, before, text, rest);
		}
		dirs_done(dirs);
		*dirs = next;
	}
	return rc;
}

int lowers_enter(struct lowers *lw, const char *path, bool follow,
		const struct lowers_dirs **out_dirs)
{
	autofree char *at = mem_strdup(path);
	unsigned int links = 0;

	if (lw->cached && lw->cached_follow == follow && str_eq(lw->cached, path)) {
		*out_dirs = &lw->dirs;
		return 0;
	}
	lowers_forget(lw);
	while (at) {
		char *next = NULL;
		int rc = 0;

		dirs_done(&lw->dirs);
		rc = walk(lw, at, follow, &lw->dirs, &next);
		if (rc == 0 && next &&
				(++links > LAYER_LINKS_MAX || strlen(next) >= LIMIT_PATH_BYTES)) {
			rc = -ELOOP;
		}
		free(at);
		at = next;
		if (rc < 0) {
			return rc;
		}
	}
	lw->cached = mem_strdup(path);
	lw->cached_follow = follow;
	*out_dirs = &lw->dirs;
	return 0;
}
