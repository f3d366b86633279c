/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Apart from all else, since struct statx is defined by the kernel's header and by a C library's
 * sys/stat.h: not at all by musl before 1.2.5, without mount identifiers by later ones.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <osbx/fd.h>

int fd_mount_of(int fd, struct fd_mount *out)
{
	struct statx st;

	if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_MODE | STATX_MNT_ID, &st) <
			0) {
		return -errno;
	}
	*out = (struct fd_mount){
		.id = st.stx_mask & STATX_MNT_ID ? st.stx_mnt_id : 0,
		.is_root = (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0,
		.dev_major = st.stx_dev_major,
		.dev_minor = st.stx_dev_minor,
		.mode = st.stx_mode,
	};
	return 0;
}
