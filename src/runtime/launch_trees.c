/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <sys/stat.h>

#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/sys.h>

#include "launch_internal.h"

/* Whose ids the trees are mapped by. */
struct mapper {
	const struct spec *spec;
	int userns_fd; /* of the sandbox; borrowed */
	/* That of the last owner of a volume: those of one request mostly have one owner. */
	uid_t uid;
	gid_t gid;
	int owner_fd; /* -1: none yet */
};

static void mapper_done(struct mapper *m)
{
	fd_close(&m->owner_fd);
}
AUTO_DEFINE(mapper, struct mapper, mapper_done);

static size_t owner_ranges(uint32_t first, uint32_t owner, struct idmap_range *out)
{
	const uint32_t n = IDMAP_SANDBOX_IDS;
	const uint32_t at = owner - first;

	/* Group 0 of somebody's directory is not given away with it. */
	if (owner == 0 || owner == first) {
		out[0] = (struct idmap_range){ .inside = first, .outside = first, .count = n };
		return 1;
	}
	out[0] = (struct idmap_range){ .inside = owner, .outside = first, .count = 1 };
	if (owner < first || at >= n) {
		out[1] = (struct idmap_range){
			.inside = first + 1,
			.outside = first + 1,
			.count = n - 1,
		};
		return 2;
	}
	/* The owner is one of the sandbox's own ids: it changes places with root. */
	size_t used = 1;

	out[used++] = (struct idmap_range){ .inside = first, .outside = owner, .count = 1 };
	if (at > 1) {
		out[used++] = (struct idmap_range){
			.inside = first + 1,
			.outside = first + 1,
			.count = at - 1,
		};
	}
	if (at < n - 1) {
		out[used++] = (struct idmap_range){
			.inside = owner + 1,
			.outside = owner + 1,
			.count = n - 1 - at,
		};
	}
	return used;
}

void launch_owner_map(const struct idmap *sandbox, uid_t uid, gid_t gid, struct idmap *out_map)
{
	const uint32_t first_uid = idmap_outside(sandbox->uids, sandbox->uids_n, 0);
	const uint32_t first_gid = idmap_outside(sandbox->gids, sandbox->gids_n, 0);

	assert(uid != 0);
	*out_map = (struct idmap){ .mode = IDMAP_MAPPED, .setgroups = true };
	out_map->uids_n = owner_ranges(first_uid, uid, out_map->uids);
	out_map->gids_n = owner_ranges(first_gid, gid, out_map->gids);
}

/* The user namespace by which a volume of this owner is mapped. 0 or -1. */
static int owner_find(struct mapper *m, const struct stat *st, struct error *e)
{
	struct idmap map;

	if (m->owner_fd >= 0 && m->uid == st->st_uid && m->gid == st->st_gid) {
		return 0;
	}
	fd_close(&m->owner_fd);
	launch_owner_map(&m->spec->map, st->st_uid, st->st_gid, &map);
	if (idmap_userns_open(&map, &m->owner_fd, e) < 0) {
		return -1;
	}
	m->uid = st->st_uid;
	m->gid = st->st_gid;
	return 0;
}

static int tree_clone(const struct spec_tree *t, struct error *e)
{
	const unsigned int flags = OPEN_TREE_CLONE | (t->recursive ? AT_RECURSIVE : 0);
	int fd = t->fd >= 0 ? sys_open_tree(t->fd, "", flags | AT_EMPTY_PATH)
			    : sys_open_tree(AT_FDCWD, t->path, flags);

	return fd < 0 ? error_sys(e, -fd, "clone the tree %s", t->path) : fd;
}

static int map_fail(const struct spec_tree *t, int userns_fd, int errnum, struct error *e)
{
	autofree char *point = NULL;
	autofree char *type = NULL;

	if (t->recursive && launch_refused_mount(t, userns_fd, &point, &type)) {
		(void)error_sys(e, errnum,
				"%s cannot be shown in the sandbox: %s (%s) below it "
				"cannot be id-mapped",
				t->path, point, type);
		return error_hint(e, "name the parts that you need as volumes of their own");
	}
	(void)error_sys(e, errnum, "%s%s cannot be id-mapped", t->path,
			t->recursive ? " or a file system mounted below it" : "");
	return error_hint(e, "id-mapped mounts need Linux 5.12 or later and a file system that "
			     "can do them: ext4, xfs, btrfs, overlay since 5.19, tmpfs since 6.3");
}

static int tree_map(const struct spec_tree *t, int tree_fd, int userns_fd, struct error *e)
{
	const unsigned int flags = t->recursive ? AT_RECURSIVE : 0;
	/* Private: a clone of a shared mount would carry what is mounted on it in the sandbox
	 * back to the host. */
	struct mount_attr attr = { .propagation = MS_PRIVATE };
	int r = 0;

	if (userns_fd >= 0) {
		attr.attr_set = MOUNT_ATTR_IDMAP;
		attr.userns_fd = (uint64_t)userns_fd;
		r = sys_mount_setattr(tree_fd, flags, &attr);
		if (r == 0) {
			return 0;
		}
		if (!t->ids_optional) {
			return map_fail(t, userns_fd, -r, e);
		}
		attr = (struct mount_attr){ .propagation = MS_PRIVATE };
	}
	r = sys_mount_setattr(tree_fd, flags, &attr);
	return r < 0 ? error_sys(e, -r, "make the clone of %s private", t->path) : 0;
}

/* Which user namespace maps this tree, in *out_fd: -1 for none. Borrowed. */
static int tree_userns(struct mapper *m, const struct spec_tree *t, int tree_fd, int *out_fd,
		struct error *e)
{
	struct stat st;

	*out_fd = t->ids == SPEC_TREE_AS_IS ? -1 : m->userns_fd;
	if (t->ids != SPEC_TREE_OWNER) {
		return 0;
	}
	if (fstat(tree_fd, &st) < 0) {
		return error_sys(e, errno, "look at %s", t->path);
	}
	if (st.st_uid == 0) {
		return 0;
	}
	if (owner_find(m, &st, e) < 0) {
		return error_wrap(e, "%s", t->path);
	}
	*out_fd = m->owner_fd;
	return 0;
}

int launch_trees_open(const struct spec *spec, int userns_fd, int *out_fds, struct error *e)
{
	AUTO(mapper)
	struct mapper m = { .spec = spec, .userns_fd = userns_fd, .owner_fd = -1 };

	for (size_t i = 0; i < spec->trees_n; i++) {
		out_fds[i] = -1;
	}
	for (size_t i = 0; i < spec->trees_n; i++) {
		const struct spec_tree *t = &spec->trees[i];
		int by_fd = -1;
		autoclose int fd = tree_clone(t, e);

		if (fd < 0 || tree_userns(&m, t, fd, &by_fd, e) < 0 ||
				tree_map(t, fd, by_fd, e) < 0) {
			return -1;
		}
		out_fds[i] = TAKE_FD(fd);
	}
	return 0;
}
