/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <osbx/mem.h>
#include <osbx/path.h>

#include "layer_internal.h"

struct link_target {
	const char *path; /* as the tar says, normalised */
	int dir_fd;
	const char *name;
	struct stat st;
};

/* The directory part of a path, "." for a lone name. */
static char *parent_of(const char *path)
{
	size_t n = (size_t)(path_last(path) - path);

	return n > 1 ? mem_dup(path, n - 1) : mem_strdup(".");
}

/* Only the target's directory may be reached through links; a link as the target is itself linked
 * (CVE-2026-17106 and its kin followed it). */
static int link_to(struct layer *l, const char *name, const struct link_target *target,
		struct error *e)
{
	int here = layer_here(l);
	struct stat old;

	if (!S_ISREG(target->st.st_mode) && !S_ISLNK(target->st.st_mode) &&
			!S_ISFIFO(target->st.st_mode)) {
		return error_set(e, ERRC_INVALID, "hard link to %.128s, which is no file",
				target->path);
	}
	if (fstatat(here, name, &old, AT_SYMLINK_NOFOLLOW) == 0 &&
			old.st_ino == target->st.st_ino && old.st_dev == target->st.st_dev) {
		return 0;
	}
	if (linkat(target->dir_fd, target->name, here, name, 0) == 0) {
		return 0;
	}
	if (errno == EEXIST && layer_clear(l, name) == 0 &&
			linkat(target->dir_fd, target->name, here, name, 0) == 0) {
		return 0;
	}
	return error_sys(e, errno, "hard link to %.128s", target->path);
}

int layer_link_own(struct layer *l, const char *name, const char *target, struct error *e)
{
	autofree char *dir = parent_of(target);
	autoclose int fd = path_open_beneath(l->opts.root_fd, dir, O_PATH | O_DIRECTORY, 0);
	struct link_target to = { .path = target, .dir_fd = fd, .name = path_last(target) };

	if (fd < 0 || fstatat(fd, to.name, &to.st, AT_SYMLINK_NOFOLLOW) < 0) {
		return 0;
	}
	return link_to(l, name, &to, e) < 0 ? -1 : 1;
}

static int link_below(struct layer *l, const struct layer_link *link, struct lowers *below,
		struct error *e)
{
	autofree char *dir = parent_of(link->target);
	const struct lowers_dirs *dirs = NULL;
	struct lowers_entry entry = { .dir_fd = -1 };
	struct link_target to = { .path = link->target, .name = path_last(link->target) };
	int rc = lowers_enter(below, dir[0] == '.' && dir[1] == '\0' ? "" : dir, true, &dirs);

	if (rc == 0) {
		rc = lowers_find(dirs, 0, to.name, &entry);
	}
	if (rc == 0) {
		return error_set(e, ERRC_INVALID,
				"hard link to %.128s, which neither this layer nor one below has",
				link->target);
	}
	if (rc < 0) {
		return error_sys(e, -rc, "find %.128s", link->target);
	}
	to.dir_fd = entry.dir_fd;
	to.st = entry.st;
	return link_to(l, link->name, &to, e);
}

static int make_link(struct layer *l, const struct layer_link *link, struct lowers *below,
		struct error *e)
{
	const struct timespec never = { .tv_sec = 0 };
	struct stat st;
	int rc = 0;

	if (layer_enter(l, span_of(link->path), &never, e) < 0) {
		return -1;
	}
	/* A later entry of this layer took the name. */
	if (fstatat(layer_here(l), link->name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		return 0;
	}
	rc = layer_link_own(l, link->name, link->target, e);
	if (rc != 0) {
		return rc < 0 ? -1 : 0;
	}
	return link_below(l, link, below, e);
}

int layer_link_lower(struct layer *l, struct lowers *below, struct error *e)
{
	for (size_t i = 0; i < l->links_n; i++) {
		const struct layer_link *link = &l->links[i];

		if (make_link(l, link, below, e) < 0) {
			return error_wrap(e, "%.96s%s%.96s", link->path, link->path[0] ? "/" : "",
					link->name);
		}
	}
	return 0;
}
