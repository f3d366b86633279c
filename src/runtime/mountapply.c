/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/mountplan.h>
#include <osbx/path.h>
#include <osbx/str.h>
#include <osbx/sys.h>

#include "mount_internal.h"

#define MASK_DIR "mask"

struct apply {
	const struct mount_ctx *ctx;
	struct mountdst dst;
	unsigned int files_n; /* on the staging tmpfs */
	bool has_mask_dir;
	bool has_volume; /* that can be written to, and what follows may lie in */
};

static void apply_done(struct apply *a)
{
	mountdst_done(&a->dst);
}
AUTO_DEFINE(apply, struct apply, apply_done);

/* Open where a mount of the request goes. */
static int open_dst(struct apply *a, const struct mount_op *op, bool want_dir, int *out_fd,
		struct error *e)
{
	autoclose int fd = -1;

	if (mountdst_open(&a->dst, op->dst, want_dir, &fd, e) < 0 ||
			(a->has_volume && mountdst_fence(&a->dst, &fd, e) < 0)) {
		return -1;
	}
	*out_fd = TAKE_FD(fd);
	return 0;
}

/* Put a detached mount where dst_fd is. */
static int attach(int mount_fd, int dst_fd, struct error *e)
{
	int r = sys_move_mount(mount_fd, dst_fd);

	return r < 0 ? error_sys(e, -r, "attach it") : 0;
}

static int set_attrs(int mount_fd, uint32_t attrs, bool recursive, struct error *e)
{
	const struct mount_attr attr = { .attr_set = attrs };

	if (attrs == 0) {
		return 0;
	}
	int r = sys_mount_setattr(mount_fd, recursive ? AT_RECURSIVE : 0, &attr);

	if (r == -ENOSYS) {
		return error_set(e, ERRC_UNSUPPORTED, "needs mount_setattr(2), Linux 5.12");
	}
	return r < 0 ? error_sys(e, -r, "set its attributes") : 0;
}

/* The kernel gives a new procfs or sysfs only to those who see all of an old one. */
static void hint_revealing(const struct mount_op *op, int errnum, struct error *e)
{
	if (errnum == EPERM && (str_eq(op->source, "proc") || str_eq(op->source, "sysfs"))) {
		(void)error_hint(e,
				"the outer container hides parts of it: podman run --security-opt "
				"unmask=ALL, docker run --security-opt "
				"systempaths=unconfined");
	}
}

static int fs_fail(const struct mount_op *op, int fs_fd, int errnum, struct error *e)
{
	char log[256] = "";

	if (fs_fd >= 0) {
		fscontext_log(fs_fd, log, sizeof(log));
	}
	(void)error_sys(e, errnum, "new %s%s%s%s", op->source, log[0] ? " (" : "", log,
			log[0] ? ")" : "");
	hint_revealing(op, errnum, e);
	return -1;
}

/* Mount descriptor in *out_fd; left at -1 if the kernel has no such file system and needs none. */
static int fs_new(const struct mount_op *op, int *out_fd, struct error *e)
{
	autoclose int fs = fscontext_open(op->source);

	if (fs == -ENODEV && (op->flags & MOUNT_OPTIONAL) != 0) {
		return 0;
	}
	if (fs < 0) {
		return fs_fail(op, -1, -fs, e);
	}
	int r = op->options ? fscontext_options(fs, op->options) : 0;

	if (r == 0) {
		r = fscontext_mount(fs, op->attrs);
	}
	if (r < 0) {
		return fs_fail(op, fs, -r, e);
	}
	*out_fd = r;
	return 0;
}

static int op_fs(struct apply *a, const struct mount_op *op, struct error *e)
{
	autoclose int mount_fd = -1;
	autoclose int dst_fd = -1;

	if (fs_new(op, &mount_fd, e) < 0) {
		return -1;
	}
	if (mount_fd < 0) {
		return 0;
	}
	int r = (op->flags & MOUNT_STRICT) != 0 ? mountdst_open_strict(&a->dst, op->dst, &dst_fd, e)
						: open_dst(a, op, true, &dst_fd, e);

	if (r < 0 || attach(mount_fd, dst_fd, e) < 0) {
		return -1;
	}
	return str_eq(op->source, "tmpfs") ? mountdst_own(&a->dst, mount_fd, e) : 0;
}

/* Attach a clone of what src_fd names at the operation's destination. */
static int bind(struct apply *a, const struct mount_op *op, int src_fd, struct error *e)
{
	const bool recursive = (op->flags & MOUNT_RECURSIVE) != 0;
	struct stat st;
	autoclose int dst_fd = -1;
	autoclose int clone_fd = mount_clone(src_fd, "", recursive);

	if (clone_fd < 0) {
		return error_sys(e, -clone_fd, "clone its source");
	}
	if (fstat(clone_fd, &st) < 0) {
		return error_sys(e, errno, "look at its source");
	}
	if (set_attrs(clone_fd, op->attrs, true, e) < 0 ||
			open_dst(a, op, S_ISDIR(st.st_mode), &dst_fd, e) < 0 ||
			attach(clone_fd, dst_fd, e) < 0) {
		return -1;
	}
	a->has_volume |= S_ISDIR(st.st_mode) && (op->attrs & MOUNT_ATTR_RDONLY) == 0;
	return 0;
}

static int op_tree(struct apply *a, const struct mount_op *op, struct error *e)
{
	assert(op->tree < a->ctx->trees_n);
	const int tree_fd = a->ctx->tree_fds[op->tree];

	if (op->path[0] == '\0') {
		return bind(a, op, tree_fd, e);
	}
	autoclose int fd = path_open_beneath(tree_fd, op->path, O_PATH, 0);

	if (fd < 0) {
		return error_sys(e, -fd, "open its source %s", op->path);
	}
	return bind(a, op, fd, e);
}

static int op_file(struct apply *a, const struct mount_op *op, struct error *e)
{
	char name[16];

	(void)snprintf(name, sizeof(name), "file%u", a->files_n++);
	autoclose int fd =
			fd_open_at(a->ctx->staging_fd, name, O_WRONLY | O_CREAT | O_EXCL, op->mode);
	int r = fd < 0 ? fd : fd_write_all(fd, op->source, strlen(op->source));

	if (r < 0) {
		return error_sys(e, -r, "write its content");
	}
	return bind(a, op, fd, e);
}

/* Where something else is, or a volume begins on the way, the image is taken as it is. */
static int op_dir(struct apply *a, const struct mount_op *op, struct error *e)
{
	autoclose int fd = -1;

	if (mountdst_open(&a->dst, op->dst, true, &fd, e) == 0) {
		return 0;
	}
	if (e->code != ERRC_INVALID && e->code != ERRC_DENIED) {
		return -1;
	}
	error_clear(e);
	return 0;
}

static int op_device(struct apply *a, const struct mount_op *op, struct error *e)
{
	autoclose int fd = device_open(op->source, op->device[0], op->device[1]);

	if (fd < 0) {
		return error_sys(e, -fd, "open the device %s", op->source);
	}
	autoclose int dst_fd = path_open_nolink(
			a->ctx->root_fd, op->dst, O_RDONLY | O_CREAT | O_EXCL, 0444);

	if (dst_fd < 0) {
		return error_sys(e, -dst_fd, "make it");
	}
	return attach(fd, dst_fd, e);
}

static int op_host_sys(struct apply *a, const struct mount_op *op, struct error *e)
{
	const int fd = a->ctx->sys_fd;
	autoclose int dst_fd = -1;

	assert(fd >= 0);
	if (set_attrs(fd, op->attrs, true, e) < 0 ||
			mountdst_open_strict(&a->dst, op->dst, &dst_fd, e) < 0) {
		return -1;
	}
	return attach(fd, dst_fd, e);
}

static int op_symlink(struct apply *a, const struct mount_op *op, struct error *e)
{
	const char *name = path_last(op->dst);
	autofree char *parent = mem_dup(op->dst, (size_t)(name - op->dst));
	autoclose int dir_fd = path_open_nolink(a->ctx->root_fd, parent, O_PATH | O_DIRECTORY, 0);

	if (dir_fd < 0) {
		return error_sys(e, -dir_fd, "open its directory");
	}
	return symlinkat(op->source, dir_fd, name) < 0 ? error_sys(e, errno, "make it") : 0;
}

/* The destination of a mask; left at -1 if it is missing and may be. */
static int open_hidden(struct apply *a, const struct mount_op *op, int *out_fd, struct error *e)
{
	int fd = path_open_nolink(a->ctx->root_fd, op->dst, O_PATH, 0);

	if (fd == -ENOENT && (op->flags & MOUNT_OPTIONAL) != 0) {
		return 0;
	}
	if (fd < 0) {
		return error_sys(e, -fd, "open it");
	}
	*out_fd = fd;
	return 0;
}

static int mask_dir(struct apply *a, int *out_fd, struct error *e)
{
	const int staging = a->ctx->staging_fd;

	if (!a->has_mask_dir && mkdirat(staging, MASK_DIR, 0555) < 0) {
		return error_sys(e, errno, "make an empty directory");
	}
	a->has_mask_dir = true;
	autoclose int fd = mount_clone(staging, MASK_DIR, false);

	if (fd < 0) {
		return error_sys(e, -fd, "clone an empty directory");
	}
	if (set_attrs(fd,
			    MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					    MOUNT_ATTR_NOEXEC,
			    false, e) < 0) {
		return -1;
	}
	*out_fd = TAKE_FD(fd);
	return 0;
}

static int op_mask(struct apply *a, const struct mount_op *op, struct error *e)
{
	struct stat st;
	autoclose int dst_fd = -1;
	autoclose int fd = -1;

	if (open_hidden(a, op, &dst_fd, e) < 0) {
		return -1;
	}
	if (dst_fd < 0) {
		return 0;
	}
	if (fstat(dst_fd, &st) < 0) {
		return error_sys(e, errno, "look at it");
	}
	if (S_ISDIR(st.st_mode)) {
		if (mask_dir(a, &fd, e) < 0) {
			return -1;
		}
	} else {
		fd = device_open("/dev/null", 1, 3);
		if (fd < 0) {
			return error_sys(e, -fd, "open the device /dev/null");
		}
	}
	return attach(fd, dst_fd, e);
}

static int op_readonly(struct apply *a, const struct mount_op *op, struct error *e)
{
	autoclose int dst_fd = -1;

	if (open_hidden(a, op, &dst_fd, e) < 0) {
		return -1;
	}
	if (dst_fd < 0) {
		return 0;
	}
	autoclose int fd =
			sys_open_tree(dst_fd, "", OPEN_TREE_CLONE | AT_EMPTY_PATH | AT_RECURSIVE);

	if (fd < 0) {
		return error_sys(e, -fd, "clone it");
	}
	if (set_attrs(fd, op->attrs, true, e) < 0) {
		return -1;
	}
	return attach(fd, dst_fd, e);
}

static int op_seal(struct apply *a, const struct mount_op *op, struct error *e)
{
	return set_attrs(a->ctx->root_fd, op->attrs, false, e);
}

static int (*const op_apply[])(struct apply *a, const struct mount_op *op, struct error *e) = {
	[MOUNT_FS] = op_fs,
	[MOUNT_TREE] = op_tree,
	[MOUNT_FILE] = op_file,
	[MOUNT_DIR] = op_dir,
	[MOUNT_DEVICE] = op_device,
	[MOUNT_HOST_SYS] = op_host_sys,
	[MOUNT_SYMLINK] = op_symlink,
	[MOUNT_MASK] = op_mask,
	[MOUNT_READONLY] = op_readonly,
	[MOUNT_SEAL] = op_seal,
};
_Static_assert(ARRAY_SIZE(op_apply) == MOUNT_KIND_COUNT, "each kind is applied");

static int op_fail(const struct mount_op *op, struct error *e)
{
	const bool is_wanted = op->kind == MOUNT_TREE || op->kind == MOUNT_DIR ||
			       (op->kind == MOUNT_FS && (op->flags & MOUNT_STRICT) == 0);

	return is_wanted ? error_wrap(e, "mount point %s", op->dst)
			 : error_wrap(e, "mount %s (%s)", op->dst, mount_kind_name(op->kind));
}

int mountplan_apply(const struct mountplan *plan, const struct mount_ctx *ctx, struct error *e)
{
	AUTO(apply) struct apply a = { .ctx = ctx };

	if (mountdst_init(&a.dst, ctx->root_fd, e) < 0) {
		return -1;
	}
	for (size_t i = 0; i < plan->n; i++) {
		const struct mount_op *op = &plan->ops[i];

		if (str_eq(op->dst, "/sys") && ctx->before_sys &&
				ctx->before_sys(ctx->arg, e) < 0) {
			return -1;
		}
		if (op_apply[op->kind](&a, op, e) < 0) {
			return op_fail(op, e);
		}
	}
	return 0;
}
