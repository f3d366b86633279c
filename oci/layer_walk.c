/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * `walk` is the directory that was entered last: a stack of descriptors, one for each component of
 * `walk.path`, none of which is a link. A tar names the files of one directory in a row, so most
 * entries find their directory on top, and the next directory shares most of the stack.
 *
 * To enter a directory, the stack is cut back to the components that both have in common, then each
 * further one is opened O_PATH | O_NOFOLLOW below the top. A link is read and its text put before
 * what is still to be entered; ".." in it takes the top off, an absolute one takes all off. So
 * nothing above the root can be reached, and nothing depends on what a name meant before.
 *
 * Entries are only ever removed or replaced in the directory on top, so the stack never holds a
 * directory that is gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "layer_internal.h"

/* mkdir until the end: no set-group-id bit that files would inherit, no one else may look in. */
#define MODE_UNTIL_END 0700

/* What is still to be entered. */
struct layer_todo {
	char *text;
	char *at; /* in text; NULL at the end */
	unsigned int links;
	const struct timespec *mtime;
};

static void layer_todo_done(struct layer_todo *todo)
{
	free(todo->text);
}
AUTO_DEFINE(layer_todo, struct layer_todo, layer_todo_done);

int layer_here(const struct layer *l)
{
	const struct layer_walk *w = &l->walk;

	return w->n == 0 ? l->opts.root_fd : w->levels[w->n - 1].fd;
}

int layer_path_of(const struct layer *l, const char *name, char *out, size_t size)
{
	const struct layer_walk *w = &l->walk;
	size_t n = strlen(name);
	size_t sep = w->len > 0 ? 1 : 0;

	if (w->len + sep + n >= size) {
		return -ENAMETOOLONG;
	}
	memcpy(out, w->path, w->len);
	if (sep > 0) {
		out[w->len] = '/';
	}
	memcpy(out + w->len + sep, name, n + 1);
	return 0;
}

static void pop_to(struct layer_walk *w, size_t n)
{
	while (w->n > n) {
		fd_close(&w->levels[--w->n].fd);
	}
	w->len = w->n > 0 ? w->levels[w->n - 1].end : 0;
	w->path[w->len] = '\0';
}

void layer_walk_done(struct layer *l)
{
	pop_to(&l->walk, 0);
	free(l->walk.levels);
}

static int push(struct layer *l, const char *name, int fd)
{
	struct layer_walk *w = &l->walk;
	char path[LIMIT_PATH_BYTES];
	int rc = layer_path_of(l, name, path, sizeof(path));

	if (rc < 0) {
		fd_close(&fd);
		return rc;
	}
	if (w->n == w->cap) {
		size_t cap = w->cap == 0 ? 32 : w->cap * 2;

		w->levels = mem_resize(w->levels, w->cap, cap, sizeof(*w->levels));
		w->cap = cap;
	}
	w->len = strlen(path);
	memcpy(w->path, path, w->len + 1);
	w->levels[w->n++] = (struct layer_level){ .fd = fd, .end = w->len };
	return 0;
}

/* Cut the stack back to what it has in common with dir; how much of dir that is. */
static size_t keep_common(struct layer_walk *w, struct span dir)
{
	size_t n = 0;
	size_t used = 0;

	while (n < w->n) {
		size_t end = w->levels[n].end;
		bool is_component = dir.n == end || (dir.n > end && dir.p[end] == '/');

		if (!is_component || memcmp(dir.p + used, w->path + used, end - used) != 0) {
			break;
		}
		used = end;
		n++;
	}
	pop_to(w, n);
	return used;
}

int layer_clear(struct layer *l, const char *name)
{
	if (unlinkat(layer_here(l), name, 0) == 0 || errno == ENOENT) {
		return 0;
	}
	if (errno != EISDIR && errno != EPERM) {
		return -errno;
	}
	return file_remove_tree_at(layer_here(l), name);
}

static int is_dir(int dir_fd, const char *name)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		return -errno;
	}
	return S_ISDIR(st.st_mode);
}

int layer_make_dir(struct layer *l, const char *name, struct error *e)
{
	int here = layer_here(l);
	int rc = 0;

	if (mkdirat(here, name, MODE_UNTIL_END) == 0) {
		return 0;
	}
	if (errno != EEXIST) {
		return error_sys(e, errno, "make directory");
	}
	rc = is_dir(here, name);
	if (rc > 0) {
		return 0;
	}
	rc = rc < 0 ? rc : layer_clear(l, name);
	if (rc < 0) {
		return error_sys(e, -rc, "replace by a directory");
	}
	if (mkdirat(here, name, MODE_UNTIL_END) < 0) {
		return error_sys(e, errno, "make directory");
	}
	/* The entry that stood here hid what lower layers have under this name. */
	return layer_make_opaque(here, name, e);
}

static int make_implied(
		struct layer *l, const char *name, const struct timespec *mtime, struct error *e)
{
	struct layer_attr attr = { .mode = 0755, .mtime = *mtime };
	char path[LIMIT_PATH_BYTES];
	int rc = layer_path_of(l, name, path, sizeof(path));

	if (rc < 0) {
		return error_sys(e, -rc, "make directory");
	}
	return layer_make_dir(l, name, e) < 0 ? -1 : layer_record_dir(l, path, true, &attr, e);
}

/* The text of a link goes before what is still to be entered. 1, 0 when name is no link. */
static int take_link(struct layer *l, const char *name, struct layer_todo *todo, struct error *e)
{
	char target[LIMIT_PATH_BYTES];
	ssize_t n = readlinkat(layer_here(l), name, target, sizeof(target) - 1);
	const char *rest = todo->at ? todo->at : "";
	char *joined = NULL;

	if (n < 0) {
		return errno == EINVAL ? 0 : error_sys(e, errno, "read link");
	}
	if (++todo->links > LAYER_LINKS_MAX) {
		return error_sys(e, ELOOP, "follow links");
	}
	target[n] = '\0';
	if ((size_t)n + strlen(rest) > (size_t)2 * LIMIT_PATH_BYTES) {
		return error_sys(e, ENAMETOOLONG, "follow links");
	}
	joined = mem_printf("%s/%s", target, rest);
	free(todo->text);
	todo->text = joined;
	todo->at = joined;
	if (target[0] == '/') {
		pop_to(&l->walk, 0);
	}
	return 1;
}

static int open_dir(struct layer *l, const char *name)
{
	return fd_open_at(layer_here(l), name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
}

/* Enter one component; make it when it is missing, also in the place of a file. */
static int enter_component(
		struct layer *l, const char *name, struct layer_todo *todo, struct error *e)
{
	int fd = open_dir(l, name);
	int rc = 0;

	if (fd == -ENOTDIR || fd == -ELOOP) {
		rc = take_link(l, name, todo, e);
		if (rc != 0) {
			return rc < 0 ? -1 : 0;
		}
	} else if (fd < 0 && fd != -ENOENT) {
		return error_sys(e, -fd, "open directory");
	}
	if (fd < 0) {
		if (make_implied(l, name, todo->mtime, e) < 0) {
			return -1;
		}
		fd = open_dir(l, name);
		if (fd < 0) {
			return error_sys(e, -fd, "open directory");
		}
	}
	rc = push(l, name, fd);
	return rc < 0 ? error_sys(e, -rc, "enter directory") : 0;
}

int layer_enter(struct layer *l, struct span dir, const struct timespec *mtime, struct error *e)
{
	size_t used = keep_common(&l->walk, dir);
	AUTO(layer_todo) struct layer_todo todo = { .mtime = mtime };
	char *name = NULL;

	if (used == dir.n) {
		return 0;
	}
	todo.text = mem_dup(dir.p + used, dir.n - used);
	todo.at = todo.text;
	while ((name = strsep(&todo.at, "/"))) {
		if (str_eq(name, "..")) {
			pop_to(&l->walk, l->walk.n > 0 ? l->walk.n - 1 : 0);
		} else if (name[0] != '\0' && !str_eq(name, ".") &&
				enter_component(l, name, &todo, e) < 0) {
			return -1;
		}
	}
	return 0;
}
