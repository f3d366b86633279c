/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layers are named by descriptor through /proc/self/fd: as short as mount(2)'s one page of
 * options needs for 128 layers, exactly the directories that were opened, and no path of the host
 * is shown in the guest's /proc/mounts. ("lowerdir+" takes descriptors themselves since Linux
 * 6.13, and then shows their paths.)
 */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <osbx/buf.h>
#include <osbx/fd.h>
#include <osbx/sys.h>

#include "mount_internal.h"

#define ROOT_DIR  "root"
#define NAME_MAX_ 32

/* Set by name of the caller; user.overlay.*: a user namespace may not use trusted.*. Without
 * index, a lower directory may be shared and be made anew. */
#define FIXED_OPTIONS "userxattr,index=off"

static void fd_name(int fd, char out[NAME_MAX_])
{
	(void)snprintf(out, NAME_MAX_, "/proc/self/fd/%d", fd);
}

static int set_dir(int fs_fd, const char *key, int dir_fd)
{
	char name[NAME_MAX_];

	fd_name(dir_fd, name);
	return sys_fsconfig_set(fs_fd, key, name);
}

/* Mount descriptor or -errno. */
static int mount_new(const struct overlay *o, int fs_fd)
{
	int r = fscontext_options(
			fs_fd, o->is_volatile ? FIXED_OPTIONS ",volatile" : FIXED_OPTIONS);

	/* The topmost layer first. */
	for (size_t i = o->lowers_n; i > 0 && r == 0; i--) {
		r = set_dir(fs_fd, "lowerdir+", o->lower_fds[i - 1]);
	}
	if (r == 0) {
		r = set_dir(fs_fd, "upperdir", o->upper_fd);
	}
	if (r == 0) {
		r = set_dir(fs_fd, "workdir", o->work_fd);
	}
	return r < 0 ? r : fscontext_mount(fs_fd, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

static int root_dir_make(int staging_fd, struct error *e)
{
	if (mkdirat(staging_fd, ROOT_DIR, 0755) < 0 && errno != EEXIST) {
		return error_sys(e, errno, "make the mount point of the root");
	}
	return 0;
}

static int root_attach(int mount_fd, int staging_fd, struct error *e)
{
	if (root_dir_make(staging_fd, e) < 0) {
		return -1;
	}
	autoclose int dst_fd = fd_open_at(staging_fd, ROOT_DIR, O_PATH | O_DIRECTORY, 0);
	int r = dst_fd < 0 ? dst_fd : sys_move_mount(mount_fd, dst_fd);

	return r < 0 ? error_sys(e, -r, "attach the root") : 0;
}

/* All options of mount(2) as one string. 0 or -EMSGSIZE: more than a page. */
static int old_options(const struct overlay *o, struct buf *out)
{
	int r = buf_append_str(out, FIXED_OPTIONS ",lowerdir=");

	for (size_t i = o->lowers_n; i > 0 && r == 0; i--) {
		r = buf_appendf(out, "%s/proc/self/fd/%d", i == o->lowers_n ? "" : ":",
				o->lower_fds[i - 1]);
	}
	if (r == 0) {
		r = buf_appendf(out, ",upperdir=/proc/self/fd/%d,workdir=/proc/self/fd/%d%s",
				o->upper_fd, o->work_fd, o->is_volatile ? ",volatile" : "");
	}
	return r;
}

int overlay_mount_old(const struct overlay *o, int staging_fd, int *out_root_fd, struct error *e)
{
	char dst[sizeof("/proc/self/fd/2147483647/" ROOT_DIR)];
	AUTO(buf) struct buf options = BUF_INIT((size_t)sysconf(_SC_PAGESIZE) - 1);

	if (old_options(o, &options) < 0) {
		return error_set(e, ERRC_LIMIT, "%zu layers are more than this kernel takes",
				o->lowers_n);
	}
	if (root_dir_make(staging_fd, e) < 0) {
		return -1;
	}
	(void)snprintf(dst, sizeof(dst), "/proc/self/fd/%d/" ROOT_DIR, staging_fd);
	int r = sys_mount("overlay", dst, "overlay", MS_NOSUID | MS_NODEV, options.p);

	if (r < 0) {
		return error_sys(e, -r, "overlay");
	}
	int fd = fd_open_at(staging_fd, ROOT_DIR, O_PATH | O_DIRECTORY, 0);

	if (fd < 0) {
		return error_sys(e, -fd, "open the root");
	}
	*out_root_fd = fd;
	return 0;
}

static int overlay_fail(int fs_fd, int errnum, struct error *e)
{
	char log[256] = "";

	if (fs_fd >= 0) {
		fscontext_log(fs_fd, log, sizeof(log));
	}
	if (log[0] != '\0') {
		(void)error_sys(e, errnum, "overlay: %s", log);
	} else {
		(void)error_sys(e, errnum, "overlay");
	}
	if (errnum == ENODEV) {
		(void)error_hint(e, "modprobe overlay");
	} else if (errnum == EPERM) {
		(void)error_hint(e, "an ordinary user needs Linux 5.11 or later, and an outer "
				    "container may refuse overlay mounts");
	} else if (errnum == EINVAL) {
		(void)error_hint(e,
				"the sandboxes' directory must lie on a file system that can be "
				"the upper layer of an overlay: ext4, xfs, btrfs, tmpfs");
	}
	return -1;
}

/* Where overlay cannot work in its directories it mounts all the same, read-only. */
static int check_writable(int root_fd, struct error *e)
{
	struct statvfs fs;

	if (fstatvfs(root_fd, &fs) < 0) {
		return error_sys(e, errno, "look at the overlay");
	}
	if ((fs.f_flag & ST_RDONLY) == 0) {
		return 0;
	}
	(void)error_set(e, ERRC_UNSUPPORTED, "overlay came out read-only");
	return error_hint(e, "root of the sandbox must be able to write to its directories upper "
			     "and work; more in the kernel's log");
}

int overlay_mount(const struct overlay *o, int staging_fd, int *out_root_fd, struct error *e)
{
	autoclose int fs = fscontext_open("overlay");
	autoclose int mount_fd = fs < 0 ? fs : mount_new(o, fs);

	if (mount_fd >= 0) {
		if (check_writable(mount_fd, e) < 0 || root_attach(mount_fd, staging_fd, e) < 0) {
			return -1;
		}
		*out_root_fd = TAKE_FD(mount_fd);
		return 0;
	}
	if (mount_fd == -EINVAL || mount_fd == -ENOSYS) {
		struct error old = ERROR_INIT;

		if (overlay_mount_old(o, staging_fd, out_root_fd, &old) == 0) {
			return 0;
		}
	}
	return overlay_fail(fs, -mount_fd, e);
}
