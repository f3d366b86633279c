/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <osbx/fd.h>
#include <osbx/path.h>

#include "execd.h"

#define PTMX_PATH "/dev/pts/ptmx"

static int master_open(int root_fd, int *out_fd, struct error *e)
{
	struct stat st;
	struct statfs fs;
	autoclose int fd = path_open_nolink(root_fd, PTMX_PATH, O_RDWR | O_NOCTTY, 0);

	if (fd < 0) {
		return error_sys(e, -fd, "open %s", PTMX_PATH);
	}
	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0) {
		return error_sys(e, errno, "look at %s", PTMX_PATH);
	}
	if (fs.f_type != DEVPTS_SUPER_MAGIC || !S_ISCHR(st.st_mode) ||
			st.st_rdev != makedev(5, 2)) {
		return error_set(e, ERRC_DENIED, "%s is not the terminal multiplexer of a devpts",
				PTMX_PATH);
	}
	*out_fd = TAKE_FD(fd);
	return 0;
}

int pty_open(int root_fd, int *out_master_fd, int *out_slave_fd, struct error *e)
{
	autoclose int master_fd = -1;
	int unlock = 0;

	if (master_open(root_fd, &master_fd, e) < 0) {
		return -1;
	}
	if (ioctl(master_fd, TIOCSPTLCK, &unlock) < 0) {
		return error_sys(e, errno, "unlock the pty");
	}
	/* By descriptor: a path could lead to something else by now. */
	int slave_fd = ioctl(master_fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (slave_fd < 0) {
		return error_sys(e, errno, "open the other end of the pty");
	}
	*out_slave_fd = slave_fd;
	*out_master_fd = TAKE_FD(master_fd);
	return 0;
}
