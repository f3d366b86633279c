/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces of which mounts are made, for mountapply.c and the steps of init. All run in the child.
 */
#ifndef OSBX_RUNTIME_MOUNT_INTERNAL_H
#define OSBX_RUNTIME_MOUNT_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/mountplan.h>

/* "fs", "tree" … */
const char *mount_kind_name(enum mount_kind kind);

/* fscontext.c: new file systems by fsopen(2), clones of old ones. */

/* Begin one of a type; /proc/mounts will name source as its device. fd or -errno. */
int fscontext_open(const char *type) NONNULL(1) MUST_CHECK;
/* "key=value,flag,…". 0 or -errno. */
int fscontext_options(int fs_fd, const char *options) NONNULL(2) MUST_CHECK;
/* Make it and mount it, attached nowhere. Mount fd or -errno. */
int fscontext_mount(int fs_fd, uint32_t attrs) MUST_CHECK;
/* The kernel's last words about a failure, "" if none. */
void fscontext_log(int fs_fd, char *out, size_t out_size) NONNULL(2);

/* A detached clone of what path in dir_fd names (open_tree(2); "": dir_fd itself), with the mounts
 * below it if recursive or if the kernel does not let them be left out: those that were there when
 * a user namespace got its copy of the host's mounts. fd or -errno. */
int mount_clone(int dir_fd, const char *path, bool recursive) NONNULL(2) MUST_CHECK;

/* device.c */

/* A detached bind mount of a device node of the host that has this number, else -ENODEV. */
int device_open(const char *path, uint32_t major, uint32_t minor) NONNULL(1) MUST_CHECK;

/* mountdst.c: where something is mounted. */

/* The file systems in which directories may be made: those that osbx mounted itself. */
struct mountdst {
	int root_fd;
	size_t own_n;
	dev_t *own;
};

/* The root is the first file system of ours. */
int mountdst_init(struct mountdst *d, int root_fd, struct error *e) MUST_CHECK NONNULL(1, 3);
void mountdst_done(struct mountdst *d);
AUTO_DEFINE(mountdst, struct mountdst, mountdst_done);
/* A mount of ours was made. */
int mountdst_own(struct mountdst *d, int mount_fd, struct error *e) MUST_CHECK NONNULL(1, 3);
/* Is this the device of a file system of ours? */
bool mountdst_is_own(const struct mountdst *d, dev_t dev) NONNULL(1);
/* Open path beneath the root, a directory or a file, made if it is missing and lies in a file
 * system of ours; links are followed below the root, also ones that lead to nothing yet. O_PATH
 * descriptor in *out_fd. */
int mountdst_open(const struct mountdst *d, const char *path, bool want_dir, int *out_fd,
		struct error *e) MUST_CHECK NONNULL(1, 2, 4, 5);
/* The same for a directory of osbx itself: no link in any component. */
int mountdst_open_strict(const struct mountdst *d, const char *path, int *out_fd,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);

/* mountfence.c */

/* If the mount point *fd lies in a volume that can be written to: let no directory above it be
 * renamed, and open it anew, where it is after that. */
int mountdst_fence(const struct mountdst *d, int *fd, struct error *e) MUST_CHECK NONNULL(1, 2, 3);

/* overlay.c */

struct overlay {
	const int *lower_fds; /* lowest first; O_PATH */
	size_t lowers_n;
	int upper_fd; /* both on one mount */
	int work_fd;
	bool is_volatile; /* nothing is synced when it goes */
};

/* Mount the overlay at "root" of the staging directory. O_PATH descriptor of its root in
 * *out_root_fd. */
int overlay_mount(const struct overlay *o, int staging_fd, int *out_root_fd,
		struct error *e) MUST_CHECK NONNULL(1, 3, 4);
/* The same by mount(2), below Linux 6.8. */
int overlay_mount_old(const struct overlay *o, int staging_fd, int *out_root_fd,
		struct error *e) MUST_CHECK NONNULL(1, 3, 4);

#endif
