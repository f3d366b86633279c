/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "layer_internal.h"

#define MODE_SET_IDS 06000 /* chown(2) clears them */

static uint64_t ids_count(const struct idmap_range *ranges, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		sum += ranges[i].count;
	}
	return sum;
}

static int check_id(const struct idmap *map, int64_t id, bool is_group, struct error *e)
{
	const struct idmap_range *ranges = is_group ? map->gids : map->uids;
	size_t n = is_group ? map->gids_n : map->uids_n;
	const char *what = is_group ? "group" : "user";

	if (id < 0 || id >= UINT32_MAX) {
		return error_set(e, ERRC_INVALID, "%s id %" PRId64 " is out of range", what, id);
	}
	if (map->mode == IDMAP_SINGLE || idmap_outside(ranges, n, (uint32_t)id) != UINT32_MAX) {
		return 0;
	}
	(void)error_set(e, ERRC_UNSUPPORTED,
			"image needs %s id %" PRId64 ", there are the ids 0 to %" PRIu64 " only",
			what, id, ids_count(ranges, n) - 1);
	if (map->mode == IDMAP_SUBID) {
		return error_hint(e,
				"give the user more subordinate ids in /etc/subuid and /etc/subgid");
	}
	return error_hint(e, "rebuild the image with owners below %u", IDMAP_SANDBOX_IDS);
}

int layer_attr_of(const struct layer *l, const struct tar_entry *entry, struct layer_attr *out_attr,
		struct error *e)
{
	struct layer_attr attr = { .mode = entry->mode, .mtime = entry->mtime };

	if (l->opts.archive) {
		attr.mode = entry->type == TAR_DIR ? 0700 : 0600;
		*out_attr = attr;
		return 0;
	}
	if (check_id(l->opts.map, entry->uid, false, e) < 0 ||
			check_id(l->opts.map, entry->gid, true, e) < 0) {
		return -1;
	}
	attr.uid = (uid_t)entry->uid;
	attr.gid = (gid_t)entry->gid;
	*out_attr = attr;
	return 0;
}

/* The file system may have no attributes of users (tmpfs before 6.6): what they say is lost, but
 * nothing depends on it. */
static bool is_refused(int sysno)
{
	return sysno == EOPNOTSUPP || sysno == EPERM;
}

/* The form that containers/storage and fuse-overlayfs read: "uid:gid:mode". */
static int record_owner(int fd, const struct layer_attr *attr, struct error *e)
{
	char text[48];
	int n = snprintf(text, sizeof(text), "%u:%u:0%o", attr->uid, attr->gid, attr->mode);

	if (fsetxattr(fd, LAYER_XATTR_OVERRIDE, text, (size_t)n, 0) < 0 && !is_refused(errno)) {
		return error_sys(e, errno, "record owner");
	}
	return 0;
}

int layer_attr_apply(const struct layer *l, int fd, const struct layer_attr *attr,
		mode_t created_mode, struct error *e)
{
	const struct timespec times[2] = { attr->mtime, attr->mtime };
	bool is_owned = attr->uid != 0 || attr->gid != 0;

	if (is_owned && l->opts.map->mode == IDMAP_SINGLE) {
		if (record_owner(fd, attr, e) < 0) {
			return -1;
		}
	} else if (is_owned && fchown(fd, attr->uid, attr->gid) < 0) {
		return error_sys(e, errno, "set owner");
	}
	if ((attr->mode != created_mode || (is_owned && (attr->mode & MODE_SET_IDS) != 0)) &&
			fchmod(fd, attr->mode) < 0) {
		return error_sys(e, errno, "set mode");
	}
	if (futimens(fd, times) < 0) {
		return error_sys(e, errno, "set times");
	}
	return 0;
}

int layer_attr_apply_at(const struct layer *l, const char *name, const struct layer_attr *attr,
		struct error *e)
{
	const struct timespec times[2] = { attr->mtime, attr->mtime };
	int here = layer_here(l);

	if ((attr->uid != 0 || attr->gid != 0) && l->opts.map->mode != IDMAP_SINGLE &&
			fchownat(here, name, attr->uid, attr->gid, AT_SYMLINK_NOFOLLOW) < 0) {
		return error_sys(e, errno, "set owner");
	}
	if (utimensat(here, name, times, AT_SYMLINK_NOFOLLOW) < 0) {
		return error_sys(e, errno, "set times");
	}
	return 0;
}

/* Only what a user may set himself; never what overlayfs (CVE-2021-3493 and its kin) or the
 * container tools would obey. security.capability is of no use without new privileges. */
static bool is_allowed(const char *name)
{
	return str_after(name, "user.") && !str_after(name, "user.overlay.") &&
	       !str_after(name, "user.containers.") && !str_after(name, "user.fuseoverlayfs.");
}

static int set_xattr(int fd, const char *name, const void *value, size_t n, struct error *e)
{
	if (fsetxattr(fd, name, value, n, 0) < 0 && !is_refused(errno)) {
		return error_sys(e, errno, "set attribute %s", name);
	}
	return 0;
}

int layer_xattrs_apply(struct layer *l, int fd, struct tar *t, struct error *e)
{
	struct tar_xattr x = { .n = 0 };
	size_t sum = 0;

	while (tar_xattr(t, &x) > 0) {
		if (l->opts.archive || !x.name || !is_allowed(x.name)) {
			l->stats.xattrs++;
			continue;
		}
		sum += strlen(x.name) + x.n;
		if (sum > LIMIT_XATTR_BYTES) {
			return error_set(e, ERRC_LIMIT, "extended attributes of more than %d bytes",
					LIMIT_XATTR_BYTES);
		}
		if (set_xattr(fd, x.name, x.value, x.n, e) < 0) {
			return -1;
		}
	}
	return 0;
}

int layer_xattrs_copy(int from_fd, int to_fd, struct error *e)
{
	autofree char *names = mem_array(2, LIMIT_XATTR_BYTES);
	char *value = names + LIMIT_XATTR_BYTES;
	ssize_t n = flistxattr(from_fd, names, LIMIT_XATTR_BYTES);

	if (n < 0) {
		return is_refused(errno) ? 0 : error_sys(e, errno, "list attributes");
	}
	for (const char *name = names; name < names + n; name += strlen(name) + 1) {
		ssize_t value_n = 0;

		if (!is_allowed(name) && !str_eq(name, LAYER_XATTR_OVERRIDE)) {
			continue;
		}
		value_n = fgetxattr(from_fd, name, value, LIMIT_XATTR_BYTES);
		if (value_n < 0) {
			return error_sys(e, errno, "read attribute %s", name);
		}
		if (set_xattr(to_fd, name, value, (size_t)value_n, e) < 0) {
			return -1;
		}
	}
	return 0;
}

int layer_make_opaque(int dir_fd, const char *name, struct error *e)
{
	autoclose int fd = fd_open_at(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (fd < 0) {
		return error_sys(e, -fd, "open directory");
	}
	if (fsetxattr(fd, LAYER_XATTR_OPAQUE, "y", 1, 0) < 0) {
		int sysno = errno;

		(void)error_sys(e, sysno, "set attribute %s", LAYER_XATTR_OPAQUE);
		return sysno == EOPNOTSUPP
				       ? error_hint(e, "keep the store on a file system with "
						       "extended attributes of users (OSBX_ROOT)")
				       : -1;
	}
	return 0;
}
