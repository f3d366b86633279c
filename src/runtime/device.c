/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <osbx/cleanup.h>

#include "mount_internal.h"

int device_open(const char *path, uint32_t major, uint32_t minor)
{
	struct stat st;
	autoclose int fd = mount_clone(AT_FDCWD, path, false);

	if (fd < 0) {
		return fd;
	}
	if (fstat(fd, &st) < 0) {
		return -errno;
	}
	/* What carries the name may be anything on a strange host (CVE-2025-31133). */
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(major, minor)) {
		return -ENODEV;
	}
	return TAKE_FD(fd);
}
