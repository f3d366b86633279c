/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation of the walk that stands in for openat2(2).
 *
 * `todo` is what is still to be resolved, `done` the components that are, relative to the root and
 * free of links; `dir_fd` is the directory that `done` names. Each step opens one component
 * O_PATH | O_NOFOLLOW below `dir_fd` and looks at the open object: a directory is entered, the text
 * of a link is put before the rest of `todo` (an absolute one goes on at the root).
 *
 * The kernel's ".." is never used: a directory that is moved out of the root during the walk would
 * lead outside. ".." drops the last component of `done` and enters what is left anew from the
 * root, again without following links. So whatever others do to the tree meanwhile, each object
 * that is reached was reached by names below the root.
 *
 * A magic link of procfs, at which openat2 says ELOOP, is taken by its text like any other: it
 * leads below the root or nowhere, and never jumps.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <osbx/fd.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/str.h>
#include <osbx/sys.h>

/* Linux follows 40 links and answers ELOOP at the next. */
#define WALK_LINKS_MAX 40
/* openat2 says EAGAIN when anything on the machine was renamed while it met "..". */
#define OPENAT2_RETRIES 16

#define WALK_NO_LINKS 1U /* a link is -ELOOP */
#define WALK_MKDIRS   2U /* missing directories are made */

struct walk {
	int root_fd;
	int dir_fd; /* root_fd itself at the root: not ours then */
	unsigned int how;
	int flags;
	mode_t mode;
	unsigned int links;
	size_t own; /* bytes at the end of todo that are the caller's, not a link's */
	char *todo;
	char *at; /* in todo */
	char *done;
};

static void walk_enter(struct walk *w, int dir_fd)
{
	if (w->dir_fd != w->root_fd) {
		fd_close(&w->dir_fd);
	}
	w->dir_fd = dir_fd;
}

static void walk_done(struct walk *w)
{
	walk_enter(w, w->root_fd);
	free(w->todo);
	free(w->done);
}
AUTO_DEFINE(walk, struct walk, walk_done);

static int open_dir_nolink(int dir_fd, const char *name)
{
	return fd_open_at(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
}

/* Enter the directory that `done` names, from the root. */
static int walk_again(struct walk *w)
{
	autofree char *names = mem_strdup(w->done);
	char *save = names;
	char *name = NULL;

	walk_enter(w, w->root_fd);
	while ((name = strsep(&save, "/"))) {
		int fd = -1;

		if (name[0] == '\0') {
			continue;
		}
		fd = open_dir_nolink(w->dir_fd, name);
		if (fd < 0) {
			return fd;
		}
		walk_enter(w, fd);
	}
	return 0;
}

static int walk_up(struct walk *w)
{
	char *slash = strrchr(w->done, '/');

	if (!slash) {
		return 0;
	}
	*slash = '\0';
	return walk_again(w);
}

/* Put the text of the link before the rest of the path. */
static int walk_link(struct walk *w, int link_fd)
{
	char target[LIMIT_PATH_BYTES];
	ssize_t n = 0;
	char *todo = NULL;

	if ((w->how & WALK_NO_LINKS) != 0 || ++w->links > WALK_LINKS_MAX) {
		return -ELOOP;
	}
	n = readlinkat(link_fd, "", target, sizeof(target) - 1);
	if (n <= 0) {
		return n < 0 ? -errno : -ENOENT;
	}
	target[n] = '\0';
	if (strlen(w->at) < w->own) {
		w->own = strlen(w->at);
	}
	todo = mem_printf("%s%s", target, w->at);
	free(w->todo);
	w->todo = todo;
	w->at = todo;
	if (target[0] == '/') {
		w->done[0] = '\0';
		walk_enter(w, w->root_fd);
	}
	return 0;
}

static int walk_into(struct walk *w, const char *name, int fd)
{
	char *longer = mem_printf("%s/%s", w->done, name);

	free(w->done);
	w->done = longer;
	walk_enter(w, fd);
	return 0;
}

/* The directory that is missing, if the caller asked for it by its own words. */
static int walk_mkdir(struct walk *w, const char *name, bool is_own)
{
	if ((w->how & WALK_MKDIRS) == 0) {
		return -ENOENT;
	}
	if (!is_own) {
		return -ELOOP;
	}
	if (mkdirat(w->dir_fd, name, w->mode) < 0 && errno != EEXIST) {
		return -errno;
	}
	return open_dir_nolink(w->dir_fd, name);
}

/* One component that is not the last. */
static int walk_step(struct walk *w, const char *name, bool is_own)
{
	struct stat st;
	autoclose int fd = fd_open_at(w->dir_fd, name, O_PATH | O_NOFOLLOW, 0);

	if (fd == -ENOENT) {
		fd = walk_mkdir(w, name, is_own);
	}
	if (fd < 0) {
		return fd;
	}
	if (fstat(fd, &st) < 0) {
		return -errno;
	}
	if (S_ISLNK(st.st_mode)) {
		return walk_link(w, fd);
	}
	if (!S_ISDIR(st.st_mode)) {
		return -ENOTDIR;
	}
	return walk_into(w, name, TAKE_FD(fd));
}

/* The last component: the descriptor, or -EAGAIN after a link was put into todo. */
static int walk_last(struct walk *w, const char *name)
{
	const int flags = w->flags | O_NOFOLLOW;
	struct stat st;
	autoclose int fd = fd_open_at(w->dir_fd, name, O_PATH | O_NOFOLLOW, 0);
	int r = 0;

	if (fd == -ENOENT && (w->flags & O_CREAT) != 0) {
		return fd_open_at(w->dir_fd, name, flags, w->mode);
	}
	if (fd < 0) {
		return fd;
	}
	if (fstat(fd, &st) < 0) {
		return -errno;
	}
	if (S_ISLNK(st.st_mode) && (w->how & WALK_NO_LINKS) != 0) {
		return -ELOOP;
	}
	/* O_EXCL: a link is a file that exists. O_NOFOLLOW: the kernel answers for us. */
	if (S_ISLNK(st.st_mode) && (w->flags & O_NOFOLLOW) == 0 &&
			(w->flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL)) {
		r = walk_link(w, fd);
		return r < 0 ? r : -EAGAIN;
	}
	return fd_open_at(w->dir_fd, name, flags, w->mode);
}

/* Cut the next component off todo; NULL at the end. Slashes behind it stay in todo, so that
 * "link/" is not the last component. */
static char *walk_name(struct walk *w, bool *out_is_own)
{
	size_t n = 0;
	char *name = NULL;

	w->at += strspn(w->at, "/");
	n = strcspn(w->at, "/");
	if (n == 0) {
		return NULL;
	}
	*out_is_own = strlen(w->at) <= w->own;
	name = mem_dup(w->at, n);
	w->at += n;
	return name;
}

static int walk_run(struct walk *w)
{
	for (;;) {
		bool is_own = false;
		autofree char *name = walk_name(w, &is_own);
		int r = 0;

		if (!name) {
			/* O_NOFOLLOW has nothing to say about ".". */
			return fd_open_at(w->dir_fd, ".", w->flags & ~O_NOFOLLOW, w->mode);
		}
		if (str_eq(name, ".")) {
			continue;
		}
		if (str_eq(name, "..")) {
			r = walk_up(w);
		} else if (w->at[0] != '\0' || (w->how & WALK_MKDIRS) != 0) {
			r = walk_step(w, name, is_own);
		} else {
			r = walk_last(w, name);
			if (r != -EAGAIN) {
				return r;
			}
			r = 0;
		}
		if (r < 0) {
			return r;
		}
	}
}

/* Resolve path as openat2 with RESOLVE_IN_ROOT does. */
static int walk(int root_fd, const char *path, int flags, mode_t mode, unsigned int how)
{
	AUTO(walk)
	struct walk w = {
		.root_fd = root_fd,
		.dir_fd = root_fd,
		.how = how,
		.flags = flags,
		.mode = mode,
		.own = strlen(path),
		.todo = mem_strdup(path),
		.done = mem_strdup(""),
	};

	w.at = w.todo;
	return walk_run(&w);
}

static int path_check(const char *path)
{
	if (path[0] == '\0') {
		return -ENOENT;
	}
	return strnlen(path, LIMIT_PATH_BYTES) < LIMIT_PATH_BYTES ? 0 : -ENAMETOOLONG;
}

/* openat2, or the walk where it is refused or always disturbed by renames. */
static int path_open(int root_fd, const char *path, int flags, mode_t mode, unsigned int how)
{
	const uint64_t resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS |
				 ((how & WALK_NO_LINKS) != 0 ? RESOLVE_NO_SYMLINKS : 0);
	/* openat2 refuses a mode that would not be used. */
	const uint64_t used_mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE
						   ? mode & 07777
						   : 0;
	int fd = -EAGAIN;

	if ((flags & O_CREAT) != 0 && str_has_suffix(path, "/")) {
		return -EISDIR;
	}
	flags |= O_CLOEXEC | O_NOCTTY;
	/* O_PATH goes with few flags; openat ignores the others, openat2 refuses them. */
	if ((flags & O_PATH) != 0) {
		flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	}
	for (int i = 0; i < OPENAT2_RETRIES && (fd == -EAGAIN || fd == -EINTR); i++) {
		fd = sys_openat2(root_fd, path, (uint64_t)(unsigned int)flags, used_mode, resolve);
	}
	if (fd == -ENOSYS || fd == -EPERM || fd == -EAGAIN) {
		return walk(root_fd, path, flags, mode, how);
	}
	return fd;
}

int path_open_beneath(int root_fd, const char *path, int flags, mode_t mode)
{
	int r = path_check(path);

	return r < 0 ? r : path_open(root_fd, path, flags, mode, 0);
}

static bool has_dotdot(const char *path)
{
	while (*path) {
		size_t n = strcspn(path, "/");

		if (n == 2 && path[0] == '.' && path[1] == '.') {
			return true;
		}
		path += n;
		path += strspn(path, "/");
	}
	return false;
}

int path_open_nolink(int root_fd, const char *path, int flags, mode_t mode)
{
	struct stat st;
	int r = path_check(path);
	autoclose int fd = -1;

	if (r < 0) {
		return r;
	}
	if (has_dotdot(path)) {
		return -EXDEV;
	}
	fd = path_open(root_fd, path, flags, mode, WALK_NO_LINKS);
	/* O_PATH | O_NOFOLLOW opens the link itself. */
	if (fd >= 0 && (flags & O_PATH) != 0) {
		if (fstat(fd, &st) < 0) {
			return -errno;
		}
		if (S_ISLNK(st.st_mode)) {
			return -ELOOP;
		}
	}
	return fd < 0 ? fd : TAKE_FD(fd);
}

int path_mkdirs_beneath(int root_fd, const char *path, mode_t mode)
{
	int fd = path_open_beneath(root_fd, path, O_PATH | O_DIRECTORY, 0);

	if (fd != -ENOENT || path[0] == '\0') {
		return fd;
	}
	return walk(root_fd, path, O_PATH | O_DIRECTORY, mode, WALK_MKDIRS);
}

int path_parent_beneath(int root_fd, const char *path, mode_t mode, const char **out_name)
{
	const char *name = path_last(path);
	autofree char *parent = NULL;
	int fd = -1;

	if (str_eq(name, "") || str_eq(name, ".") || str_eq(name, "..")) {
		return -EINVAL;
	}
	/* "/" before it: the parent of a lone name is the root. */
	parent = mem_printf("/%.*s", (int)(name - path), path);
	fd = path_mkdirs_beneath(root_fd, parent, mode);
	if (fd >= 0) {
		*out_name = name;
	}
	return fd;
}

char *path_normalise(const char *path)
{
	/* Never longer than "/" and path. */
	char *out = mem_array(strlen(path) + 2, 1);
	size_t used = 0;

	while (*path) {
		size_t n = strcspn(path, "/");

		if (n == 2 && memcmp(path, "..", 2) == 0) {
			while (used > 0 && out[--used] != '/') {
			}
			out[used] = '\0';
		} else if (n > 0 && !(n == 1 && path[0] == '.')) {
			out[used++] = '/';
			memcpy(out + used, path, n);
			used += n;
			out[used] = '\0';
		}
		path += n;
		path += strspn(path, "/");
	}
	if (used == 0) {
		out[0] = '/';
		out[1] = '\0';
	}
	return out;
}

bool path_is_below(const char *path, const char *dir)
{
	const char *rest = str_after(path, dir);

	if (!rest) {
		return false;
	}
	return rest[0] == '\0' || rest[0] == '/' || str_eq(dir, "/");
}

const char *path_last(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}
