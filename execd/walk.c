/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a directory is read whole, sorted and closed before any of its entries is
 * told. What is in work is a stack of such lists; to enter a directory it is opened anew by its
 * path from the top, in which no link may be (CVE-2018-15664 is a walk that trusts names).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <osbx/buf.h>
#include <osbx/fd.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/str.h>

#include "files.h"
#include "walk.h"

struct item {
	union {
		size_t offset; /* in names, while the list grows */
		const char *name;
	};
	bool is_told;
	struct fileinfo info;
};

/* A directory that is in work. */
struct level {
	struct buf names;
	struct item *items;
	size_t n;
	size_t room;
	size_t at;     /* next one */
	size_t path_n; /* bytes of the walk's path that name this directory, with a '/' */
};

struct walk {
	const struct walk_opts *opts;
	struct level *levels;
	size_t n;
	size_t room;
	struct buf path; /* of the entry in work, below the top */
};

static void level_done(struct level *l)
{
	buf_done(&l->names);
	free(TAKE_PTR(l->items));
}
AUTO_DEFINE(level, struct level, level_done);

static void walk_done(struct walk *w)
{
	while (w->n > 0) {
		level_done(&w->levels[--w->n]);
	}
	free(TAKE_PTR(w->levels));
	buf_done(&w->path);
}
AUTO_DEFINE(walk, struct walk, walk_done);

static int compare(const void *a, const void *b)
{
	const struct item *x = a;
	const struct item *y = b;

	return strcmp(x->name, y->name);
}

/* Look at an entry; false when nobody wants to know of it. */
static bool look(const struct walk_opts *o, int fd, const struct dirent *d, struct item *out)
{
	struct stat st;
	bool is_dir = d->d_type == DT_DIR;

	if (d->d_type == DT_UNKNOWN || !o->wants || o->wants(o->ctx, d->d_name, is_dir)) {
		if (fstatat(fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
			return false;
		}
		is_dir = S_ISDIR(st.st_mode);
		out->info = fileinfo_of(&st);
		out->is_told = !o->wants || o->wants(o->ctx, d->d_name, is_dir);
	} else {
		out->info.mode = is_dir ? S_IFDIR : S_IFREG;
	}
	return is_dir || out->is_told;
}

static int level_add(const struct walk_opts *o, struct level *l, int fd, const struct dirent *d)
{
	struct item item = { .is_told = false };

	if (str_eq(d->d_name, ".") || str_eq(d->d_name, "..") || !look(o, fd, d, &item)) {
		return 0;
	}
	if (l->n == l->room) {
		const size_t room = l->room ? 2 * l->room : 32;

		l->items = mem_resize(l->items, l->room, room, sizeof(*l->items));
		l->room = room;
	}
	item.offset = l->names.n;
	l->items[l->n++] = item;
	return buf_append(&l->names, d->d_name, strlen(d->d_name) + 1);
}

/* Read a directory; fd is taken over. */
static int level_read(const struct walk_opts *o, struct level *l, int fd)
{
	const struct dirent *d = NULL;
	DIR *dir = fdopendir(fd);
	int r = 0;

	if (!dir) {
		r = -errno;
		fd_close(&fd);
		return r;
	}
	while (r == 0 && (d = readdir(dir))) {
		r = level_add(o, l, dirfd(dir), d);
	}
	(void)closedir(dir);
	for (size_t i = 0; i < l->n; i++) {
		l->items[i].name = l->names.p + l->items[i].offset;
	}
	if (r == 0 && l->n > 1) {
		qsort(l->items, l->n, sizeof(*l->items), compare);
	}
	return r;
}

/* Put the directory that the walk's path names on the stack. */
static int enter_dir(struct walk *w)
{
	const bool is_top = w->path.n == 0;
	AUTO(level)
	struct level l = { .names = BUF_INIT(WALK_NAMES_BYTES_MAX), .path_n = w->path.n };
	const int flags = O_RDONLY | O_DIRECTORY | O_NONBLOCK;
	int fd = is_top ? fd_open_at(w->opts->dir_fd, ".", flags, 0)
			: path_open_nolink(w->opts->dir_fd, w->path.p, flags, 0);
	int r = fd < 0 ? fd : level_read(w->opts, &l, fd);

	if (r < 0) {
		return r == -EMSGSIZE || is_top ? r : 0;
	}
	if (w->n == w->room) {
		const size_t room = w->room ? 2 * w->room : 8;

		w->levels = mem_resize(w->levels, w->room, room, sizeof(*w->levels));
		w->room = room;
	}
	w->levels[w->n++] = TAKE(l, (struct level){ .n = 0 });
	return 0;
}

static void tell(const struct walk *w, const struct item *item)
{
	const char *top = str_eq(w->opts->path, "/") ? "" : w->opts->path;
	autofree char *path = mem_printf("%s/%s", top, w->path.p);

	w->opts->tell(w->opts->ctx, path, &item->info);
}

/* The next entry of the deepest directory. */
static int step(struct walk *w)
{
	struct level *l = &w->levels[w->n - 1];

	w->path.n = l->path_n;
	if (l->at == l->n) {
		level_done(&w->levels[--w->n]);
		return 0;
	}
	const struct item *item = &l->items[l->at++];

	/* What is longer cannot be opened, and not be asked for either. */
	if (buf_append_str(&w->path, item->name) < 0) {
		return 0;
	}
	if (item->is_told) {
		tell(w, item);
	}
	if (!S_ISDIR(item->info.mode) || w->n >= w->opts->depth ||
			buf_append_str(&w->path, "/") < 0) {
		return 0;
	}
	return enter_dir(w);
}

int walk_tree(const struct walk_opts *opts, struct error *e)
{
	AUTO(walk) struct walk w = { .opts = opts, .path = BUF_INIT(LIMIT_PATH_BYTES) };
	int r = opts->depth > 0 ? enter_dir(&w) : 0;

	while (r == 0 && w.n > 0) {
		r = step(&w);
	}
	if (r == -EMSGSIZE) {
		return error_set(e, ERRC_LIMIT,
				"a directory below \"%.100s\" has more than %zu "
				"bytes of names",
				opts->path, WALK_NAMES_BYTES_MAX);
	}
	return r < 0 ? files_sys(e, -r, "read", opts->path) : 0;
}
