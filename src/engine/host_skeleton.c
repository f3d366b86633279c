/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/host.h>
#include <osbx/id.h>
#include <osbx/lock.h>
#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/plan.h>
#include <osbx/str.h>

#include "host_internal.h"

enum entry_kind {
	ENTRY_DIR,
	ENTRY_FILE, /* text: content */
	ENTRY_LINK, /* text: target */
	ENTRY_KIND_COUNT,
};

struct entry {
	enum entry_kind kind;
	mode_t mode;
	const char *path;
	const char *text;
};

static const struct entry entries[] = {
	{ ENTRY_DIR, 0755, "dev", NULL },
	{ ENTRY_DIR, 0755, "etc", NULL },
	{ ENTRY_DIR, 0755, "etc/pki", NULL },
	{ ENTRY_DIR, 0755, "etc/pki/ca-trust", NULL },
	{ ENTRY_DIR, 0755, "etc/ssl", NULL },
	{ ENTRY_DIR, 0755, "home", NULL },
	{ ENTRY_DIR, 0755, "mnt", NULL },
	{ ENTRY_DIR, 0755, "opt", NULL },
	{ ENTRY_DIR, 0555, "proc", NULL },
	{ ENTRY_DIR, 0700, "root", NULL },
	{ ENTRY_DIR, 0755, "run", NULL },
	{ ENTRY_DIR, 0755, "srv", NULL },
	{ ENTRY_DIR, 0555, "sys", NULL },
	{ ENTRY_DIR, 01777, "tmp", NULL },
	{ ENTRY_DIR, 0755, "usr", NULL },
	{ ENTRY_DIR, 0755, "var", NULL },
	{ ENTRY_DIR, 0755, "var/cache", NULL },
	{ ENTRY_DIR, 0755, "var/lib", NULL },
	{ ENTRY_DIR, 0755, "var/log", NULL },
	{ ENTRY_DIR, 01777, "var/tmp", NULL },
	{ ENTRY_FILE, 0644, "etc/passwd",
			"root:x:0:0:root:/root:/bin/sh\n"
			"daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
			"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" },
	{ ENTRY_FILE, 0644, "etc/group",
			"root:x:0:\ndaemon:x:1:\ntty:x:5:\nusers:x:100:\nnogroup:x:65534:\n" },
	{ ENTRY_FILE, 0644, "etc/nsswitch.conf",
			"passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
			"networks: files\nprotocols: files\nservices: files\n" },
	{ ENTRY_FILE, 0644, "etc/shells", "/bin/sh\n/bin/bash\n" },
	/* Mount points of what is written at each start. */
	{ ENTRY_FILE, 0644, "etc/hostname", "" },
	{ ENTRY_FILE, 0644, "etc/hosts", "" },
	{ ENTRY_FILE, 0644, "etc/resolv.conf", "" },
	{ ENTRY_LINK, 0, "etc/mtab", "../proc/self/mounts" },
	{ ENTRY_LINK, 0, "etc/os-release", "../usr/lib/os-release" },
	{ ENTRY_LINK, 0, "var/lock", "../run/lock" },
	{ ENTRY_LINK, 0, "var/run", "../run" },
};

static const struct entry points[] = {
	{ ENTRY_DIR, 0755, "dev", NULL },
	{ ENTRY_DIR, 0755, "etc", NULL },
	{ ENTRY_DIR, 0555, "proc", NULL },
	{ ENTRY_DIR, 0555, "sys", NULL },
	{ ENTRY_FILE, 0644, "etc/hostname", "" },
	{ ENTRY_FILE, 0644, "etc/hosts", "" },
	{ ENTRY_FILE, 0644, "etc/resolv.conf", "" },
};

struct skeleton {
	int fd;
	uid_t uid; /* that container root is on disk */
	gid_t gid;
};

static int file_make(const struct skeleton *s, const struct entry *entry)
{
	autoclose int fd = fd_open_at(
			s->fd, entry->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);

	if (fd < 0) {
		return fd;
	}
	return fd_write_all(fd, entry->text, strlen(entry->text));
}

static int entry_make(const struct skeleton *s, const struct entry *entry)
{
	int r = 0;

	switch (entry->kind) {
	case ENTRY_DIR:
		r = mkdirat(s->fd, entry->path, 0700) < 0 ? -errno : 0;
		break;
	case ENTRY_FILE:
		r = file_make(s, entry);
		break;
	case ENTRY_LINK:
		r = symlinkat(entry->text, s->fd, entry->path) < 0 ? -errno : 0;
		break;
	case ENTRY_KIND_COUNT:
		break;
	}
	/* Owner first: chown clears set-ID bits. The caller's umask has no say in the mode. */
	if (r == 0 && geteuid() == 0 &&
			fchownat(s->fd, entry->path, s->uid, s->gid, AT_SYMLINK_NOFOLLOW) < 0) {
		r = -errno;
	}
	if (r == 0 && entry->kind != ENTRY_LINK &&
			fchmodat(s->fd, entry->path, entry->mode, 0) < 0) {
		r = -errno;
	}
	return r;
}

/* A mount point for an entry of the host's /etc that exists now; for later ones the runtime makes
 * one at each start. */
static int etc_point_make(void *ctx, const char *name)
{
	const struct skeleton *s = ctx;
	autofree char *path = mem_printf("etc/%s", name);
	autofree char *host = mem_printf("/etc/%s", name);
	struct stat st;

	if (stat(host, &st) < 0) {
		return 0;
	}
	const struct entry entry = {
		.kind = S_ISDIR(st.st_mode) ? ENTRY_DIR : ENTRY_FILE,
		.path = path,
		.mode = S_ISDIR(st.st_mode) ? 0755 : 0644,
		.text = "",
	};

	return entry_make(s, &entry);
}

/* /bin and the like as the host has them. */
static int roots_make(const struct skeleton *s)
{
	int r = 0;

	for (size_t i = 0; i < HOST_ROOTS_N && r == 0; i++) {
		autofree char *host = mem_printf("/%s", host_roots[i]);
		char target[64] = "";
		struct stat st;
		ssize_t n = readlink(host, target, sizeof(target) - 1);
		struct entry entry = { .path = host_roots[i], .mode = 0755, .text = target };

		if (n > 0) {
			target[n] = '\0';
			entry.kind = ENTRY_LINK;
			r = str_after(target, "usr/") || str_after(target, "/usr/")
					    ? entry_make(s, &entry)
					    : 0;
		} else if (lstat(host, &st) == 0 && S_ISDIR(st.st_mode)) {
			r = entry_make(s, &entry);
		}
	}
	return r;
}

static int entries_make(const struct skeleton *s, const struct entry *v, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		r = entry_make(s, &v[i]);
	}
	return r;
}

static int host_fill(struct skeleton *s)
{
	int r = entries_make(s, entries, ARRAY_SIZE(entries));

	r = r < 0 ? r : roots_make(s);
	return r < 0 ? r : host_each_etc(etc_point_make, s);
}

static int points_fill(struct skeleton *s)
{
	return entries_make(s, points, ARRAY_SIZE(points));
}

struct kind {
	const char *name; /* below layers/MODE */
	int (*fill)(struct skeleton *s);
};

static const struct kind host_kind = { PLAN_HOST_LOWER, host_fill };
static const struct kind points_kind = { PLAN_POINTS_LOWER, points_fill };

static int skeleton_fill(struct skeleton *s, const struct kind *kind)
{
	int r = kind->fill(s);

	if (r == 0 && geteuid() == 0 && fchown(s->fd, s->uid, s->gid) < 0) {
		r = -errno;
	}
	return r == 0 && fchmod(s->fd, 0755) < 0 ? -errno : r;
}

/* Fill it in staging_fd and move it to its place; another process may have been faster. */
static int skeleton_publish(
		int layers_fd, int staging_fd, const struct idmap *map, const struct kind *kind)
{
	int r = mkdirat(staging_fd, kind->name, 0700) < 0 ? -errno : 0;
	autoclose int fd =
			r < 0 ? r : fd_open_at(staging_fd, kind->name, O_RDONLY | O_DIRECTORY, 0);
	struct skeleton s = { .fd = fd };

	if (fd < 0) {
		return fd;
	}
	/* Stored as container ids, or as those they are in the one range of all sandboxes. */
	if (map->mode == IDMAP_SHARED) {
		s.uid = idmap_outside(map->uids, map->uids_n, 0);
		s.gid = idmap_outside(map->gids, map->gids_n, 0);
	}
	r = skeleton_fill(&s, kind);
	if (r == 0 && syncfs(fd) < 0) {
		r = -errno;
	}
	if (r == 0 && renameat(staging_fd, kind->name, layers_fd, kind->name) < 0 &&
			errno != EEXIST && errno != ENOTEMPTY) {
		r = -errno;
	}
	return r;
}

/* In a staging directory of the store's own form, so that gc removes what a kill leaves. */
static int skeleton_make(int layers_fd, const struct idmap *map, const struct kind *kind)
{
	char random[17];
	char name[32];

	id_random_hex(random, 8);
	(void)snprintf(name, sizeof(name), ".staging-%s", random);
	int r = mkdirat(layers_fd, name, 0700) < 0 ? -errno : 0;
	autoclose int staging_fd =
			r < 0 ? r : fd_open_at(layers_fd, name, O_RDONLY | O_DIRECTORY, 0);

	if (staging_fd < 0) {
		return staging_fd;
	}
	autoclose int lock_fd = lock_open_at(staging_fd, "lock", LOCK_MODE_EXCLUSIVE);

	r = lock_fd < 0 ? lock_fd : skeleton_publish(layers_fd, staging_fd, map, kind);
	int n = file_remove_tree_at(layers_fd, name);

	return r < 0 ? r : n;
}

static int skeleton_have(
		int root_fd, const struct idmap *map, const struct kind *kind, struct error *e)
{
	autofree char *layers = mem_printf("layers/%s", idmap_mode_name(map->mode));
	autofree char *path = mem_printf("%s/%s", layers, kind->name);

	if (faccessat(root_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
		return 0;
	}
	int r = file_mkdir_at(root_fd, layers, 0700);
	autoclose int layers_fd =
			r < 0 ? r : fd_open_at(root_fd, layers, O_RDONLY | O_DIRECTORY, 0);

	r = layers_fd < 0 ? layers_fd : skeleton_make(layers_fd, map, kind);
	return r < 0 ? error_sys(e, -r, "make %s", path) : 0;
}

int host_skeleton(int root_fd, const struct idmap *map, struct error *e)
{
	return skeleton_have(root_fd, map, &host_kind, e) < 0 ? error_wrap(e, "@host") : 0;
}

int host_points(int root_fd, const struct idmap *map, struct error *e)
{
	return skeleton_have(root_fd, map, &points_kind, e);
}
