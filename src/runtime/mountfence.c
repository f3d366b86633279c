/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * A mount protects the name it is mounted on, not those above it. Inside a volume that may be
 * written to, the directory above a mount point could be renamed, which takes the mount with it,
 * and another be made in its place, for the sandbox as well as for the host ("/w/.git" above the
 * read-only "/w/.git/hooks"). rename(2) refuses directories that are mount points themselves, so
 * each directory between the root of the volume and the mount point is mounted on itself, from
 * above: what is opened later lies on the new mounts.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/limits.h>
#include <osbx/path.h>
#include <osbx/sys.h>

#include "mount_internal.h"

/* Where fd lies now, without any link. 0 or -errno. */
static int fd_path(int fd, char out[LIMIT_PATH_BYTES + 1])
{
	char name[32];

	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(name, out, LIMIT_PATH_BYTES);

	if (n < 0) {
		return -errno;
	}
	out[n] = '\0';
	return n < LIMIT_PATH_BYTES ? 0 : -ENAMETOOLONG;
}

/* Path of fd from the root of the sandbox, inside out. */
static int path_inside(const struct mountdst *d, int fd, char out[LIMIT_PATH_BYTES + 1],
		const char **out_path, struct error *e)
{
	char root[LIMIT_PATH_BYTES + 1];
	int r = fd_path(d->root_fd, root);

	if (r == 0) {
		r = fd_path(fd, out);
	}
	if (r < 0) {
		return error_sys(e, -r, "ask for its path");
	}
	if (!path_is_below(out, root)) {
		return error_set(e, ERRC_CONFLICT, "it was moved while being mounted");
	}
	*out_path = out + strlen(root);
	return 0;
}

/* Can somebody in the sandbox rename this directory? 1, 0 or -errno. */
static int is_movable(const struct mountdst *d, int fd)
{
	struct stat st;
	struct statvfs fs;
	struct fd_mount m;

	if (fstat(fd, &st) < 0 || fstatvfs(fd, &fs) < 0) {
		return -errno;
	}
	/* Where nobody tells, another mount on top does no harm. */
	bool is_root = fd_mount_of(fd, &m) == 0 && m.is_root;

	return !mountdst_is_own(d, st.st_dev) && (fs.f_flag & ST_RDONLY) == 0 && !is_root;
}

static int pin(const struct mountdst *d, const char *path, struct error *e)
{
	autoclose int fd = path_open_nolink(d->root_fd, path, O_PATH | O_DIRECTORY, 0);
	int r = fd < 0 ? fd : is_movable(d, fd);

	if (r > 0) {
		/* With the file systems of the host that are mounted below it. */
		autoclose int clone_fd = mount_clone(fd, "", true);

		r = clone_fd < 0 ? clone_fd : sys_move_mount(clone_fd, fd);
	}
	return r < 0 ? error_sys(e, -r, "mount %s on itself", path) : 0;
}

static int reopen(const struct mountdst *d, const char *path, int *fd, struct error *e)
{
	struct stat was;
	struct stat is;
	autoclose int now = path_open_nolink(d->root_fd, path, O_PATH, 0);

	if (now < 0) {
		return error_sys(e, -now, "open it again");
	}
	if (fstat(*fd, &was) < 0 || fstat(now, &is) < 0) {
		return error_sys(e, errno, "look at it");
	}
	if (was.st_dev != is.st_dev || was.st_ino != is.st_ino) {
		return error_set(e, ERRC_CONFLICT, "it changed while being mounted");
	}
	fd_close(fd);
	*fd = TAKE_FD(now);
	return 0;
}

int mountdst_fence(const struct mountdst *d, int *fd, struct error *e)
{
	char buf[LIMIT_PATH_BYTES + 1] = "";
	const char *path = buf;
	struct stat st;

	if (fstat(*fd, &st) < 0) {
		return error_sys(e, errno, "look at it");
	}
	if (mountdst_is_own(d, st.st_dev)) {
		return 0;
	}
	if (path_inside(d, *fd, buf, &path, e) < 0) {
		return -1;
	}
	for (char *at = buf + (path - buf) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		int r = pin(d, path, e);

		*at = '/';
		if (r < 0) {
			return -1;
		}
	}
	return reopen(d, path, fd, e);
}
