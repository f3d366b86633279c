/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does the file system of the store take id-mapped mounts (mount_setattr(2)), and does overlayfs
 * take such layers (Linux 5.19)? Tried once: layers/mapped says yes for good, a file with the
 * kernel's release says no for that kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <string.h>
#include <sys/utsname.h>

#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/log.h>
#include <osbx/mem.h>
#include <osbx/str.h>
#include <osbx/sys.h>

#include "store_internal.h"
#include "store_struct.h"

#define UNMAPPED_FILE STORE_LAYERS "/.unmapped"
#define OVERLAY_MAJOR 5
#define OVERLAY_MINOR 19
#define RELEASE_MAX   128

/* The number that s begins with; -1 if it begins with none. */
static int leading_number(const char *s)
{
	autofree char *digits = mem_dup(s, strspn(s, "0123456789"));
	uint64_t v = 0;

	return str_to_u64(digits, INT32_MAX, &v) == 0 ? (int)v : -1;
}

bool store_kernel_maps(const char *release)
{
	const char *dot = strchr(release, '.');
	int major = leading_number(release);
	int minor = dot ? leading_number(dot + 1) : -1;

	return major > OVERLAY_MAJOR || (major == OVERLAY_MAJOR && minor >= OVERLAY_MINOR);
}

/* 0, or -errno of what was refused. */
static int mount_try(const struct store *st, int userns_fd)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)userns_fd };
	autoclose int tree = sys_open_tree(st->root_fd, STORE_LAYERS, OPEN_TREE_CLONE);

	return tree < 0 ? tree : sys_mount_setattr(tree, 0, &attr);
}

/* Was it refused before, by this kernel? */
static bool is_known_refused(const struct store *st, const char *release)
{
	AUTO(buf) struct buf text = BUF_INIT(RELEASE_MAX);

	return file_read_at(st->root_fd, UNMAPPED_FILE, &text) == 0 &&
	       span_eq(buf_span(&text), span_of(release));
}

static int mapped_try(const struct store *st, const struct idmap *map, const char *release,
		bool *out_works, struct error *e)
{
	autoclose int userns = -1;
	int r = 0;

	if (!store_kernel_maps(release) || is_known_refused(st, release)) {
		*out_works = false;
		return 0;
	}
	if (idmap_userns_open(map, &userns, e) < 0) {
		return -1;
	}
	r = mount_try(st, userns);
	if (r < 0) {
		log_debug("id-mapped mounts of %s are refused: %s", st->root, strerror(-r));
		r = file_write_at(st->root_fd, UNMAPPED_FILE, span_of(release), false);
		*out_works = false;
		return r < 0 && r != -EROFS
				       ? error_sys(e, -r, "write %s/%s", st->root, UNMAPPED_FILE)
				       : 0;
	}
	*out_works = true;
	return 0;
}

int store_settle_mode(struct store *st, struct idmap *map, struct error *e)
{
	struct utsname u;
	bool works = false;
	int r = 0;

	if (map->mode != IDMAP_MAPPED || store_layers_find(st, IDMAP_MAPPED) >= 0) {
		return 0;
	}
	if (uname(&u) < 0) {
		return error_sys(e, errno, "uname");
	}
	if (mapped_try(st, map, u.release, &works, e) < 0) {
		return -1;
	}
	if (!works) {
		map->mode = IDMAP_SHARED;
		return 0;
	}
	r = store_layers_fd(st, IDMAP_MAPPED);
	return r < 0 && r != -EROFS ? error_sys(e, -r, "make %s/%s", st->root, STORE_LAYERS) : 0;
}
