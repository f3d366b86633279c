/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <osbx/cleanup.h>
#include <osbx/fd.h>
#include <osbx/lock.h>

static const int lock_ops[] = {
	[LOCK_MODE_SHARED] = LOCK_SH,
	[LOCK_MODE_EXCLUSIVE] = LOCK_EX,
};

/* Is fd still the file of that name? Its owner may have removed it while we waited. */
static int lock_is_current(int fd, int dir_fd, const char *name)
{
	struct stat mine;
	struct stat there;

	if (fstat(fd, &mine) < 0) {
		return -errno;
	}
	if (fstatat(dir_fd, name, &there, AT_SYMLINK_NOFOLLOW) < 0) {
		return errno == ENOENT ? 0 : -errno;
	}
	return mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

static int lock_get(int dir_fd, const char *name, int op)
{
	for (;;) {
		autoclose int fd = fd_open_at(dir_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
		int r = 0;

		if (fd < 0) {
			return fd;
		}
		do {
			r = flock(fd, op);
		} while (r < 0 && errno == EINTR);
		if (r < 0) {
			return -errno;
		}
		r = lock_is_current(fd, dir_fd, name);
		if (r != 0) {
			return r < 0 ? r : TAKE_FD(fd);
		}
	}
}

int lock_open_at(int dir_fd, const char *name, enum lock_mode mode)
{
	return lock_get(dir_fd, name, lock_ops[mode]);
}

int lock_try_at(int dir_fd, const char *name, enum lock_mode mode)
{
	return lock_get(dir_fd, name, lock_ops[mode] | LOCK_NB);
}
