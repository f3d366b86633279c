/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: runtime
 * mountplan - what will be mounted, in which order, as data.
 *
 * mountplan_build is a pure function of the spec (golden dumps in tests/golden/mountplan);
 * mountplan_apply runs the rows in the child through sys_*. Every destination is opened beneath
 * the new root and mounted on by descriptor; nothing is looked up twice (CVE-2021-30465,
 * CVE-2025-31133, CVE-2025-52565). /proc, /sys and /dev of the image must be directories or absent
 * (CVE-2019-19921, CVE-2023-28642, CVE-2026-41579).
 */
#ifndef OSBX_MOUNTPLAN_H
#define OSBX_MOUNTPLAN_H

#include <stddef.h>

#include <osbx/buf.h>
#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/spec.h>

enum mount_kind {
	MOUNT_FS,   /* new instance of a file system: proc, sysfs, tmpfs, devpts, mqueue, cgroup2 */
	MOUNT_TREE, /* a tree of the spec, or a path beneath it */
	MOUNT_FILE, /* a small file kept on the staging tmpfs */
	MOUNT_DIR,  /* an empty directory, if nothing is there */
	MOUNT_DEVICE,   /* a device node of the host, checked by its number */
	MOUNT_HOST_SYS, /* the host's /sys, recursive, read-only (network host) */
	MOUNT_SYMLINK,  /* /dev/fd → /proc/self/fd … */
	MOUNT_MASK,     /* hide: an empty read-only directory, or the null device over a file */
	MOUNT_READONLY, /* make a path of the tree read-only, recursively */
	MOUNT_SEAL,     /* make the root itself read-only */
	MOUNT_KIND_COUNT,
};

#define MOUNT_OPTIONAL  1U /* a missing destination or file system type is not an error */
#define MOUNT_STRICT    2U /* no link in any component of the destination */
#define MOUNT_RECURSIVE 4U /* TREE: with the mounts below it */

struct mount_op {
	enum mount_kind kind;
	const char *dst;     /* inside, absolute; borrowed from constants or the spec */
	const char *source;  /* fs type, link target, device path, or content; borrowed */
	const char *options; /* FS: "size=65536k,mode=755"; borrowed or owned by the plan */
	const char *path;    /* TREE: beneath the tree */
	uint32_t tree;       /* TREE */
	uint32_t attrs;      /* MOUNT_ATTR_RDONLY | NOSUID | NODEV | NOEXEC */
	uint32_t flags;      /* MOUNT_OPTIONAL, MOUNT_STRICT */
	uint32_t device[2];  /* DEVICE: major, minor */
	mode_t mode;         /* FILE */
};

struct mountplan {
	size_t n;
	size_t cap;
	struct mount_op *ops;
	size_t owned_n;
	char **owned; /* option strings made for this plan */
};

/* Where the rows are applied. Descriptors are borrowed. */
struct mount_ctx {
	int root_fd;         /* root of the overlay mount, O_PATH */
	int staging_fd;      /* private tmpfs for small files and masks */
	int sys_fd;          /* detached clone of the host's /sys, or -1 */
	const int *tree_fds; /* by index of spec.trees */
	size_t trees_n;
	/* Called before the row of /sys, NULL: nothing to do. A sysfs shows the network namespace
	 * of its mounter. */
	int (*before_sys)(void *arg, struct error *e);
	void *arg;
};

void mountplan_done(struct mountplan *p);
AUTO_DEFINE(mountplan, struct mountplan, mountplan_done);
/* Rows for this spec. ERRC_INVALID: a destination that is "/" or hides what osbx needs. */
int mountplan_build(const struct spec *spec, struct mountplan *out_plan, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* Run all rows; the error names kind and destination. In the child. */
int mountplan_apply(const struct mountplan *plan, const struct mount_ctx *ctx,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3);
/* One line a row. 0 or -EMSGSIZE. */
int mountplan_dump(const struct mountplan *plan, struct buf *out) NONNULL(1, 2) MUST_CHECK;

#endif
