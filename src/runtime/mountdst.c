/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * A destination that exists is opened, with all links resolved below the root. For one that does
 * not, the longest part of the path that exists is opened; the rest is made on that descriptor,
 * one component at a time and following no link, so that nothing is looked up twice. It is made
 * only if that part lies in the root or in another file system that osbx mounted itself: a volume
 * belongs to the host, and a directory made there would stay.
 *
 * Where the first missing component is a link that leads to nothing (/etc/resolv.conf of images
 * that were taken from machines with systemd-resolved), its target is put into the path and the
 * search begins anew.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <osbx/fd.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/str.h>

#include "mount_internal.h"

#define LINKS_MAX 16

#define MODE_DIR  0755
#define MODE_FILE 0644

int mountdst_init(struct mountdst *d, int root_fd, struct error *e)
{
	*d = (struct mountdst){ .root_fd = root_fd };
	return mountdst_own(d, root_fd, e);
}

void mountdst_done(struct mountdst *d)
{
	if (d) {
		free(d->own);
		d->own = NULL;
		d->own_n = 0;
	}
}

int mountdst_own(struct mountdst *d, int mount_fd, struct error *e)
{
	struct stat st;

	if (fstat(mount_fd, &st) < 0) {
		return error_sys(e, errno, "look at a mount");
	}
	d->own = mem_resize(d->own, d->own_n, d->own_n + 1, sizeof(*d->own));
	d->own[d->own_n++] = st.st_dev;
	return 0;
}

bool mountdst_is_own(const struct mountdst *d, dev_t dev)
{
	for (size_t i = 0; i < d->own_n; i++) {
		if (d->own[i] == dev) {
			return true;
		}
	}
	return false;
}

/* Length of path without its last component and the slashes before it. */
static size_t parent_length(const char *path, size_t n)
{
	while (n > 0 && path[n - 1] == '/') {
		n--;
	}
	while (n > 0 && path[n - 1] != '/') {
		n--;
	}
	while (n > 0 && path[n - 1] == '/') {
		n--;
	}
	return n;
}

/* The longest part of path that exists, as a directory descriptor; *out_rest is what follows. */
static int open_existing(const struct mountdst *d, const char *path, const char **out_rest)
{
	size_t n = strlen(path);

	for (;;) {
		n = parent_length(path, n);
		/* "/" before it: at n = 0 it is the root. */
		autofree char *part = mem_printf("/%.*s", (int)n, path);
		int fd = path_open_beneath(d->root_fd, part, O_PATH | O_DIRECTORY, 0);

		if (fd != -ENOENT || n == 0) {
			*out_rest = path + n + strspn(path + n, "/");
			return fd;
		}
	}
}

/* If name in dir_fd is a link: the path with the link's text in its place, else NULL. */
static char *path_through_link(int dir_fd, const char *path, const char *rest)
{
	char target[LIMIT_PATH_BYTES];
	autofree char *name = mem_dup(rest, strcspn(rest, "/"));
	const char *tail = rest + strlen(name);
	ssize_t n = readlinkat(dir_fd, name, target, sizeof(target) - 1);

	if (n <= 0) {
		return NULL;
	}
	target[n] = '\0';
	if (target[0] == '/') {
		return mem_printf("%s%s", target, tail);
	}
	return mem_printf("%.*s/%s%s", (int)(rest - path), path, target, tail);
}

static int make_file(int dir_fd, const char *name)
{
	autoclose int fd = fd_open_at(
			dir_fd, name, O_RDONLY | O_CREAT | O_EXCL | O_NOFOLLOW, MODE_FILE);

	return fd < 0 ? fd : TAKE_FD(fd);
}

static int make_dir(int dir_fd, const char *name)
{
	if (mkdirat(dir_fd, name, MODE_DIR) < 0 && errno != EEXIST) {
		return -errno;
	}
	return fd_open_at(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
}

/* Make all components of rest below dir_fd. fd or -errno. */
static int make_rest(int dir_fd, const char *rest, bool want_dir)
{
	autofree char *names = mem_strdup(rest);
	char *at = names;
	char *name = NULL;
	autoclose int fd = fd_dup(dir_fd, 0);

	while (fd >= 0 && (name = strsep(&at, "/"))) {
		const bool is_last = !at || at[strspn(at, "/")] == '\0';

		if (name[0] == '\0' || str_eq(name, ".")) {
			continue;
		}
		/* Behind something that did not exist: it would have to be taken by text. */
		if (str_eq(name, "..")) {
			return -EXDEV;
		}
		int next = is_last && !want_dir ? make_file(fd, name) : make_dir(fd, name);

		fd_close(&fd);
		fd = next;
	}
	return fd < 0 ? fd : TAKE_FD(fd);
}

/* Procfs, sysfs, devpts: what lies there is the kernel's, also when a link of the image leads
 * there (CVE-2025-52881). */
static int check_existing(const char *path, bool want_dir, int fd, struct error *e)
{
	struct stat st;
	struct statfs fs;

	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0) {
		return error_sys(e, errno, "look at it");
	}
	if (fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC ||
			fs.f_type == DEVPTS_SUPER_MAGIC || fs.f_type == CGROUP2_SUPER_MAGIC ||
			S_ISCHR(st.st_mode)) {
		return error_set(e, ERRC_DENIED, "%s leads into a file system of the kernel", path);
	}
	if (want_dir != S_ISDIR(st.st_mode)) {
		return error_set(e, ERRC_INVALID,
				"it is %sa directory in the image, the source is %sone",
				want_dir ? "not " : "", want_dir ? "" : "not ");
	}
	return 0;
}

/* One round: *out_fd is set, or *path changed to go through a link. */
static int make_missing(
		const struct mountdst *d, char **path, bool want_dir, int *out_fd, struct error *e)
{
	const char *rest = NULL;
	struct stat st;
	autoclose int dir_fd = open_existing(d, *path, &rest);

	if (dir_fd < 0) {
		return error_sys(e, -dir_fd, "open the directory it is in");
	}
	char *through = path_through_link(dir_fd, *path, rest);

	if (through) {
		free(*path);
		*path = through;
		return 0;
	}
	if (fstat(dir_fd, &st) < 0) {
		return error_sys(e, errno, "look at the directory it is in");
	}
	if (!mountdst_is_own(d, st.st_dev)) {
		(void)error_set(e, ERRC_INVALID, "it is missing in what is mounted above it");
		return error_hint(e, "create it there first, or choose another place: osbx makes "
				     "nothing in directories of this machine");
	}
	int fd = make_rest(dir_fd, rest, want_dir);

	if (fd < 0) {
		return error_sys(e, -fd, "make it");
	}
	*out_fd = fd;
	return 0;
}

int mountdst_open(const struct mountdst *d, const char *path, bool want_dir, int *out_fd,
		struct error *e)
{
	autofree char *at = mem_strdup(path);

	for (int links = 0; links < LINKS_MAX; links++) {
		int made = -1;
		autoclose int fd = path_open_beneath(d->root_fd, at, O_PATH, 0);

		if (fd >= 0) {
			if (check_existing(path, want_dir, fd, e) < 0) {
				return -1;
			}
			*out_fd = TAKE_FD(fd);
			return 0;
		}
		if (fd != -ENOENT) {
			return error_sys(e, -fd, "open it");
		}
		if (make_missing(d, &at, want_dir, &made, e) < 0) {
			return -1;
		}
		if (made >= 0) {
			*out_fd = made;
			return 0;
		}
	}
	return error_sys(e, ELOOP, "open it");
}

static int make_strict(const struct mountdst *d, const char *path)
{
	autofree char *parent = mem_printf("/%.*s", (int)parent_length(path, strlen(path)), path);
	autoclose int dir_fd = path_open_nolink(d->root_fd, parent, O_PATH | O_DIRECTORY, 0);

	return dir_fd < 0 ? dir_fd : make_dir(dir_fd, path_last(path));
}

int mountdst_open_strict(const struct mountdst *d, const char *path, int *out_fd, struct error *e)
{
	int fd = path_open_nolink(d->root_fd, path, O_PATH | O_DIRECTORY, 0);

	if (fd == -ENOENT) {
		fd = make_strict(d, path);
	}
	if (fd == -ELOOP || fd == -ENOTDIR) {
		return error_set(e, ERRC_DENIED,
				"the image has something else than a directory there");
	}
	if (fd < 0) {
		return error_sys(e, -fd, "open it");
	}
	*out_fd = fd;
	return 0;
}
