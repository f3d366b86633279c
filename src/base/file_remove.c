/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a stack of open directories, one level each, of fixed height. A directory
 * that is not empty and lies deeper is moved up into the tree's own top directory and met again
 * there, so that neither depth nor path length cost descriptors, and ".." is never followed. All
 * names are used relative to a directory that is open; a link is removed, never followed.
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#define REMOVE_LEVELS 24

struct remove_level {
	DIR *dir;
	char name[NAME_MAX + 1]; /* in the level above; the lowest one's is top_name */
	bool progress;           /* since the last look from the beginning */
};

struct remove_walk {
	int first_error;
	int dir_fd;           /* the caller's */
	const char *top_name; /* in dir_fd */
	unsigned int height;
	uint64_t moved;        /* directories moved up, numbers their names */
	struct fd_mount mount; /* the tree's */
	struct remove_level levels[REMOVE_LEVELS];
};

static void remove_walk_free(struct remove_walk *w)
{
	if (!w) {
		return;
	}
	for (unsigned int i = 0; i < w->height; i++) {
		(void)closedir(w->levels[i].dir);
	}
	free(w);
}
AUTO_DEFINE_PTR(remove_walk, struct remove_walk, remove_walk_free);

static void remove_note(struct remove_walk *w, int r)
{
	if (r < 0 && w->first_error == 0) {
		w->first_error = r;
	}
}

/*
 * Remove name if that takes one call: 0, -ENOTEMPTY for a directory with entries, or -errno. rmdir
 * of a mount point is EBUSY whatever it holds, hence no way leads into one.
 */
static int remove_single(int dir_fd, const char *name, bool is_dir)
{
	if (!is_dir) {
		if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT) {
			return 0;
		}
		/* EPERM is POSIX's answer for directories, and the one for immutable files. */
		if (errno != EISDIR && errno != EPERM) {
			return -errno;
		}
	}
	if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT) {
		return 0;
	}
	if (errno == ENOTDIR) {
		if (!is_dir) {
			return -EPERM;
		}
		return unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
	}
	return errno == EEXIST ? -ENOTEMPTY : -errno;
}

/* Give the owner of a directory all rights on it. */
static int make_accessible(int dir_fd, const char *name)
{
	autoclose int fd = fd_open_at(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	struct stat st;
	char path[32];

	if (fd < 0) {
		return fd;
	}
	/* fchmod refuses O_PATH, fchmodat2 is Linux 6.6; this path names the open object. */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fstat(fd, &st) < 0 || chmod(path, (st.st_mode & 07777) | S_IRWXU) < 0) {
		return -errno;
	}
	return 0;
}

static int open_readable(int dir_fd, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
	int fd = fd_open_at(dir_fd, name, flags, 0);

	if (fd == -EACCES && make_accessible(dir_fd, name) == 0) {
		fd = fd_open_at(dir_fd, name, flags, 0);
	}
	return fd;
}

/* Is the open directory on the tree's own mount? The first one says which that is. */
static int check_mount(struct remove_walk *w, int fd, mode_t *out_mode)
{
	struct fd_mount m;
	int r = fd_mount_of(fd, &m);

	if (r < 0) {
		return r;
	}
	if (w->height == 0) {
		w->mount = m;
	} else if (w->mount.dev_major != m.dev_major || w->mount.dev_minor != m.dev_minor ||
			w->mount.id != m.id) {
		return -EXDEV;
	}
	*out_mode = m.mode;
	return 0;
}

/* Put a directory on the stack. */
static int remove_enter(struct remove_walk *w, int dir_fd, const char *name)
{
	struct remove_level *level = &w->levels[w->height];
	autoclose int fd = open_readable(dir_fd, name);
	mode_t mode = 0;
	DIR *dir = NULL;
	int r = 0;

	if (fd < 0) {
		return fd;
	}
	r = check_mount(w, fd, &mode);
	if (r < 0) {
		return r;
	}
	if ((mode & S_IRWXU) != S_IRWXU) {
		/* If it fails and matters, removing the entries says so. */
		(void)fchmod(fd, (mode & 07777) | S_IRWXU);
	}
	dir = fdopendir(fd);
	if (!dir) {
		return -errno;
	}
	(void)TAKE_FD(fd);
	level->dir = dir;
	level->progress = false;
	if (w->height > 0) {
		(void)snprintf(level->name, sizeof(level->name), "%s", name);
	}
	w->height++;
	return 0;
}

/* Move a directory from the deepest level into the top one. */
static int remove_move_up(struct remove_walk *w, int dir_fd, const char *name)
{
	int top_fd = dirfd(w->levels[0].dir);
	bool is_accessible = false;
	char to[32];

	for (;;) {
		(void)snprintf(to, sizeof(to), "%llx", (unsigned long long)w->moved++);
		if (renameat(dir_fd, name, top_fd, to) == 0) {
			w->levels[0].progress = true;
			return 0;
		}
		/* A directory that gets another ".." must be writable itself. */
		if (errno == EACCES && !is_accessible) {
			is_accessible = make_accessible(dir_fd, name) == 0;
			if (is_accessible) {
				continue;
			}
			return -EACCES;
		}
		/* The tree may hold such a name itself. */
		if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR && errno != EBUSY) {
			return -errno;
		}
	}
}

static void remove_entry(struct remove_walk *w, const struct dirent *entry)
{
	struct remove_level *level = &w->levels[w->height - 1];
	int dir_fd = dirfd(level->dir);
	int r = remove_single(dir_fd, entry->d_name, entry->d_type == DT_DIR);

	if (r == -ENOTEMPTY) {
		r = w->height < REMOVE_LEVELS ? remove_enter(w, dir_fd, entry->d_name)
					      : remove_move_up(w, dir_fd, entry->d_name);
		/* Gone by itself, or by another osbx. */
		r = r == -ENOENT ? 0 : r;
	} else if (r == 0) {
		level->progress = true;
	}
	remove_note(w, r);
}

/* The deepest level has been read to its end: remove the directory itself. */
static void remove_leave(struct remove_walk *w)
{
	struct remove_level *level = &w->levels[w->height - 1];
	int r = w->height > 1 ? remove_single(dirfd(level[-1].dir), level->name, true)
			      : remove_single(w->dir_fd, w->top_name, true);

	/* File systems may skip entries while others go, and moved ones came late. */
	if (r == -ENOTEMPTY && level->progress) {
		level->progress = false;
		rewinddir(level->dir);
		return;
	}
	(void)closedir(level->dir);
	w->height--;
	if (w->height > 0) {
		w->levels[w->height - 1].progress |= r == 0;
	}
	remove_note(w, r);
}

int file_remove_tree_at(int dir_fd, const char *name)
{
	AUTO(remove_walk) struct remove_walk *w = NULL;
	int r = remove_single(dir_fd, name, false);

	if (r != -ENOTEMPTY) {
		return r;
	}
	w = mem_new(struct remove_walk);
	w->dir_fd = dir_fd;
	w->top_name = name;
	r = remove_enter(w, dir_fd, name);
	if (r < 0) {
		return r == -ENOENT ? 0 : r;
	}
	while (w->height > 0) {
		const struct dirent *entry = NULL;

		errno = 0;
		entry = readdir(w->levels[w->height - 1].dir);
		if (!entry) {
			remove_note(w, -errno);
			remove_leave(w);
		} else if (!str_eq(entry->d_name, ".") && !str_eq(entry->d_name, "..")) {
			remove_entry(w, entry);
		}
	}
	return w->first_error;
}
