/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <osbx/cleanup.h>
#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/id.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "doctor_internal.h"

static const struct fs_type {
	const char *name;
	uint32_t type;
	bool refuses_upper; /* of an overlay: no whiteouts, no d_type or no extended attributes */
} fs_types[] = {
	{ "ext4", EXT4_SUPER_MAGIC, false },
	{ "xfs", XFS_SUPER_MAGIC, false },
	{ "btrfs", BTRFS_SUPER_MAGIC, false },
	{ "tmpfs", TMPFS_MAGIC, false },
	{ "f2fs", F2FS_SUPER_MAGIC, false },
	{ "zfs", 0x2fc12fc1, false },
	{ "bcachefs", 0xca451a4e, false },
	{ "ramfs", RAMFS_MAGIC, false },
	{ "overlay", OVERLAYFS_SUPER_MAGIC, true },
	{ "nfs", NFS_SUPER_MAGIC, true },
	{ "fuse", 0x65735546, true },
	{ "9p", V9FS_MAGIC, true },
	{ "cifs", 0xff534d42, true },
	{ "smb2", 0xfe534d42, true },
	{ "vfat", MSDOS_SUPER_MAGIC, true },
	{ "exfat", EXFAT_SUPER_MAGIC, true },
	{ "ecryptfs", ECRYPTFS_SUPER_MAGIC, true },
	{ "ceph", 0x00c36400, true },
	{ "lustre", 0x0bd00bd0, true },
	{ "gpfs", 0x47504653, true },
	{ "squashfs", SQUASHFS_MAGIC, true },
};

static const struct fs_type *type_find(uint64_t type)
{
	for (size_t i = 0; i < ARRAY_SIZE(fs_types); i++) {
		if (fs_types[i].type == (uint32_t)type) {
			return &fs_types[i];
		}
	}
	return NULL;
}

void doctor_fs_name(uint64_t type, char out[DOCTOR_WORD_MAX])
{
	const struct fs_type *found = type_find(type);

	if (found) {
		(void)snprintf(out, DOCTOR_WORD_MAX, "%s", found->name);
	} else {
		(void)snprintf(out, DOCTOR_WORD_MAX, "file system 0x%x", (unsigned int)type);
	}
}

bool doctor_fs_refuses_upper(uint64_t type)
{
	const struct fs_type *found = type_find(type);

	return found && found->refuses_upper;
}

/* A file of ours that is gone before anybody sees it. */
static int xattr_try(int dir_fd)
{
	char name[48] = ".doctor-";
	size_t n = strlen(name);

	id_random_hex(name + n, 8);
	autoclose int fd = fd_open_at(dir_fd, name, O_RDWR | O_CREAT | O_EXCL, 0600);

	if (fd < 0) {
		return -fd;
	}
	int r = fsetxattr(fd, "user.osbx.doctor", "1", 1, 0) < 0 ? errno : 0;

	(void)unlinkat(dir_fd, name, 0);
	return r;
}

/* The directory, or the nearest above it that exists. fd or -errno. */
static int nearest_open(const char *path, bool *out_exists)
{
	autofree char *at = mem_strdup(path);
	int fd = fd_open(at, O_RDONLY | O_DIRECTORY, 0);

	*out_exists = fd >= 0;
	while (fd == -ENOENT && at[0] != '\0') {
		char *slash = strrchr(at, '/');

		if (slash) {
			*slash = '\0';
		}
		fd = fd_open(slash && at[0] != '\0' ? at : "/", O_PATH | O_DIRECTORY, 0);
	}
	return fd;
}

void doctor_read_place(const char *path, struct doctor_place *out_place)
{
	struct statvfs vfs;
	struct statfs fs;

	*out_place = (struct doctor_place){ .free_inodes = UINT64_MAX };
	(void)snprintf(out_place->path, sizeof(out_place->path), "%s", path);
	autoclose int fd = nearest_open(path, &out_place->exists);

	if (fd < 0 || fstatfs(fd, &fs) < 0 || fstatvfs(fd, &vfs) < 0) {
		return;
	}
	out_place->type = (uint64_t)fs.f_type;
	out_place->read_only = (vfs.f_flag & ST_RDONLY) != 0;
	out_place->nosuid = (vfs.f_flag & ST_NOSUID) != 0;
	out_place->noexec = (vfs.f_flag & ST_NOEXEC) != 0;
	out_place->free_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize;
	/* btrfs and the like say 0 of 0. */
	out_place->free_inodes = vfs.f_files > 0 ? vfs.f_favail : UINT64_MAX;
	if (out_place->exists && !out_place->read_only) {
		out_place->xattr_errno = xattr_try(fd);
	}
}

/* "0::/path" of /proc/self/cgroup. Caller frees; NULL: no version 2, or outside of the cgroup
 * namespace. */
static char *own_cgroup(int root_fd)
{
	AUTO(buf) struct buf text = BUF_INIT(64U << 10);
	struct span line;

	if (file_read_at(root_fd, "proc/self/cgroup", &text) < 0) {
		return NULL;
	}
	for (struct span rest = buf_span(&text); span_next(&rest, '\n', &line);) {
		if (span_has_prefix(line, span_of("0::/")) &&
				!span_has_prefix(line, span_of("0::/.."))) {
			return span_dup(span_from(line, strlen("0::/")));
		}
	}
	return NULL;
}

static const char *const hierarchies[] = { "sys/fs/cgroup", "sys/fs/cgroup/unified" };

/* A directory of the hierarchy of version 2, if it is one. */
static bool read_one(int root_fd, const char *path, struct doctor_cgroup *out)
{
	AUTO(buf) struct buf text = BUF_INIT(sizeof(out->controllers) - 1);
	autoclose int fd = fd_open_at(root_fd, path, O_RDONLY | O_DIRECTORY, 0);

	if (fd < 0 || file_read_at(fd, "cgroup.controllers", &text) < 0) {
		return false;
	}
	out->unified = true;
	out->writable = faccessat(fd, "cgroup.procs", W_OK, AT_EACCESS) == 0 &&
			faccessat(fd, ".", W_OK, AT_EACCESS) == 0;
	(void)snprintf(out->controllers, sizeof(out->controllers), "%.*s",
			(int)strcspn(text.p ? text.p : "", "\n"), text.p ? text.p : "");
	return true;
}

/* Where the manager of systemd makes scopes for this user, as far as it can be asked. */
static void read_manager(int root_fd, struct doctor_facts *f)
{
	struct doctor_cgroup found = { .scope = true };
	autofree char *socket =
			f->uid == 0 ? mem_strdup("run/systemd/private")
				    : mem_printf("run/user/%" PRIu32 "/systemd/private", f->uid);
	autofree char *below = f->uid == 0 ? mem_strdup("")
					   : mem_printf("/user.slice/user-%" PRIu32
							".slice/user@%" PRIu32 ".service",
							     f->uid, f->uid);

	if (!f->systemd || faccessat(root_fd, socket, F_OK, 0) < 0) {
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(hierarchies); i++) {
		autofree char *path = mem_printf("%s%s", hierarchies[i], below);

		if (read_one(root_fd, path, &found) && found.writable) {
			f->cgroup = found;
			return;
		}
	}
}

void doctor_read_cgroup(int root_fd, struct doctor_facts *f)
{
	autofree char *own = own_cgroup(root_fd);

	for (size_t i = 0; own && i < ARRAY_SIZE(hierarchies) && !f->cgroup.unified; i++) {
		autofree char *path = mem_printf("%s/%s", hierarchies[i], own);

		(void)read_one(root_fd, path, &f->cgroup);
	}
	if (!f->cgroup.writable || doctor_controllers_missing(f, NULL) > 0) {
		read_manager(root_fd, f);
	}
}

size_t doctor_controllers_missing(const struct doctor_facts *f, struct buf *out)
{
	static const char *const needed[] = { "cpu", "memory", "pids" };
	size_t missing = 0;

	for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
		struct span rest = span_of(f->cgroup.controllers);
		struct span one = { .n = 0 };
		bool found = false;

		while (!found && span_next(&rest, ' ', &one)) {
			found = span_eq(one, span_of(needed[i]));
		}
		if (!found && out &&
				buf_appendf(out, "%s%s", missing > 0 ? ", " : "", needed[i]) < 0) {
			break;
		}
		missing += !found;
	}
	return missing;
}
