/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a stack of open directories; `entry.name` is the path of what is looked at,
 * as the stream names it. Each entry of a directory is looked at by fstatat, opened without
 * following a link, and looked at again: whoever changes the tree meanwhile can have another file
 * of the tree's packed, or an error, but nothing that the names do not lead to.
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <osbx/copy.h>
#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/pax.h>
#include <osbx/str.h>

#define LEVELS_MAX  256
#define CHUNK_BYTES 131072
/* Files of several names of which the first one is known; what comes later is packed as a copy. */
#define LINKS_MAX  65536
#define LINK_SLOTS 4096

#define FILE_FLAGS (O_RDONLY | O_NONBLOCK | O_NOFOLLOW)
#define DIR_FLAGS  (O_RDONLY | O_DIRECTORY | O_NOFOLLOW)

struct pack_link {
	dev_t dev;
	ino_t ino;
	struct pack_link *next;
	char name[];
};

struct pack_level {
	DIR *dir;
	size_t name_n; /* of entry.name, the directory's own */
	dev_t dev;
};

struct pack {
	const struct copy_opts *opts;
	struct copy_result *result;
	unsigned int height;
	struct pack_level levels[LEVELS_MAX];
	struct pax_entry entry;
	struct pack_link *links[LINK_SLOTS];
	unsigned int links_n;
	char chunk[CHUNK_BYTES];
};

static void pack_free(struct pack *p)
{
	for (unsigned int i = 0; i < p->height; i++) {
		(void)closedir(p->levels[i].dir);
	}
	for (size_t i = 0; i < LINK_SLOTS; i++) {
		while (p->links[i]) {
			struct pack_link *next = p->links[i]->next;

			free(p->links[i]);
			p->links[i] = next;
		}
	}
	free(p);
}
AUTO_DEFINE_PTR(pack, struct pack, pack_free);

static int pack_fail(const struct pack *p, int sysno, const char *what, struct error *e)
{
	return error_sys(e, sysno, "%s \"%s\"", what, p->entry.name);
}

static int stream_fail(struct pack *p, int r, struct error *e)
{
	p->result->stream = true;
	return error_sys(e, -r, "write the copy");
}

static int header_send(struct pack *p, const struct stat *st, enum pax_type type, struct error *e)
{
	struct pax_entry *entry = &p->entry;

	entry->type = type;
	entry->mode = st->st_mode & 07777;
	entry->uid = st->st_uid;
	entry->gid = st->st_gid;
	entry->size = type == PAX_FILE ? (uint64_t)st->st_size : 0;
	entry->mtime = st->st_mtim;
	int r = pax_write_header(p->opts->stream_fd, entry);

	return r < 0 ? stream_fail(p, r, e) : 0;
}

/* The first name of a file that has several and was met before, else NULL; this one is noted. */
static const char *link_find(struct pack *p, const struct stat *st)
{
	struct pack_link **slot = &p->links[(st->st_ino ^ st->st_dev) % LINK_SLOTS];
	const size_t n = strlen(p->entry.name) + 1;

	for (const struct pack_link *l = *slot; l; l = l->next) {
		if (l->dev == st->st_dev && l->ino == st->st_ino) {
			return l->name;
		}
	}
	if (p->links_n < LINKS_MAX) {
		struct pack_link *l = mem_array(1, sizeof(*l) + n);

		l->dev = st->st_dev;
		l->ino = st->st_ino;
		l->next = *slot;
		memcpy(l->name, p->entry.name, n);
		*slot = l;
		p->links_n++;
	}
	return NULL;
}

/* The size bytes that the header has promised. */
static int data_send(struct pack *p, int fd, uint64_t size, struct error *e)
{
	uint64_t left = size;

	while (left > 0) {
		size_t want = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
		ssize_t n = fd_read(fd, p->chunk, want);

		if (n <= 0) {
			return n < 0 ? pack_fail(p, (int)-n, "read", e)
				     : error_set(e, ERRC_CONFLICT,
						       "\"%s\" became shorter while it was read",
						       p->entry.name);
		}
		int r = fd_write_all(p->opts->stream_fd, p->chunk, (size_t)n);

		if (r < 0) {
			return stream_fail(p, r, e);
		}
		left -= (uint64_t)n;
	}
	int r = pax_write_padding(p->opts->stream_fd, size);

	return r < 0 ? stream_fail(p, r, e) : 0;
}

/* Files of procfs and the like have content and say 0: read first. */
static int sizeless_send(struct pack *p, int fd, struct stat *st, struct error *e)
{
	size_t used = 0;
	ssize_t n = 0;

	do {
		n = fd_read(fd, p->chunk + used, CHUNK_BYTES - used);
		used += n > 0 ? (size_t)n : 0;
	} while (n > 0 && used < CHUNK_BYTES);
	if (n < 0) {
		return pack_fail(p, (int)-n, "read", e);
	}
	if (used == CHUNK_BYTES) {
		return error_set(e, ERRC_LIMIT,
				"\"%s\" has no size that is known before it is read",
				p->entry.name);
	}
	st->st_size = (off_t)used;
	if (header_send(p, st, PAX_FILE, e) < 0) {
		return -1;
	}
	int r = fd_write_all(p->opts->stream_fd, p->chunk, used);

	if (r == 0) {
		r = pax_write_padding(p->opts->stream_fd, used);
	}
	return r < 0 ? stream_fail(p, r, e) : 0;
}

/* What is open is a file; nobody reads a device by its name in a tree. */
static int file_send(struct pack *p, int fd, struct error *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0) {
		return pack_fail(p, errno, "look at", e);
	}
	if (!S_ISREG(st.st_mode)) {
		return error_set(e, ERRC_CONFLICT, "\"%s\" was replaced while it was read",
				p->entry.name);
	}
	const char *first = st.st_nlink > 1 ? link_find(p, &st) : NULL;

	if (first) {
		memcpy(p->entry.target, first, strlen(first) + 1);
		int r = header_send(p, &st, PAX_HARDLINK, e);

		p->entry.target[0] = '\0';
		return r;
	}
	if (st.st_size == 0) {
		return sizeless_send(p, fd, &st, e);
	}
	if (header_send(p, &st, PAX_FILE, e) < 0) {
		return -1;
	}
	return data_send(p, fd, (uint64_t)st.st_size, e);
}

static int link_send(struct pack *p, int dir_fd, const char *name, const struct stat *st,
		struct error *e)
{
	char *target = p->entry.target;
	ssize_t n = readlinkat(dir_fd, name, target, LIMIT_PATH_BYTES - 1);

	if (n <= 0) {
		return pack_fail(p, n < 0 ? errno : ENOENT, "read the link", e);
	}
	target[n] = '\0';
	int r = header_send(p, st, PAX_SYMLINK, e);

	target[0] = '\0';
	return r;
}

/* What the kernel shows as files there is no copy of, and may be endless. */
static bool is_kernel_view(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 &&
	       (fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC ||
			       fs.f_type == CGROUP2_SUPER_MAGIC || fs.f_type == CGROUP_SUPER_MAGIC);
}

/* Take the open directory over: its header, and a level of its own. */
static int dir_enter(struct pack *p, int fd, struct error *e)
{
	autoclose int own_fd = fd;
	struct stat st;

	if (fstat(fd, &st) < 0) {
		return pack_fail(p, errno, "look at", e);
	}
	if (p->height > 0 && st.st_dev != p->levels[p->height - 1].dev && is_kernel_view(fd)) {
		p->result->left_out++;
		return 0;
	}
	if (p->height == LEVELS_MAX) {
		return error_set(e, ERRC_LIMIT, "directories are nested more than %d deep",
				LEVELS_MAX);
	}
	if (header_send(p, &st, PAX_DIR, e) < 0) {
		return -1;
	}
	struct pack_level *level = &p->levels[p->height];

	level->dir = fdopendir(fd);
	if (!level->dir) {
		return pack_fail(p, errno, "read", e);
	}
	(void)TAKE_FD(own_fd);
	level->dev = st.st_dev;
	level->name_n = strlen(p->entry.name);
	p->height++;
	return 0;
}

/* An entry of a directory. */
static int entry_send(struct pack *p, int dir_fd, const char *name, struct error *e)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		/* Removed since the directory was read. */
		return errno == ENOENT ? 0 : pack_fail(p, errno, "look at", e);
	}
	if (S_ISLNK(st.st_mode)) {
		return link_send(p, dir_fd, name, &st, e);
	}
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
		p->result->left_out++;
		return 0;
	}
	autoclose int fd =
			fd_open_at(dir_fd, name, S_ISDIR(st.st_mode) ? DIR_FLAGS : FILE_FLAGS, 0);

	if (fd < 0) {
		return fd == -ENOENT ? 0 : pack_fail(p, -fd, "open", e);
	}
	return S_ISDIR(st.st_mode) ? dir_enter(p, TAKE_FD(fd), e) : file_send(p, fd, e);
}

/* Put name behind the name of the deepest directory. */
static int name_join(struct pack *p, const char *name, struct error *e)
{
	size_t at = p->levels[p->height - 1].name_n;
	size_t n = strlen(name) + 1;

	p->entry.name[at] = '\0';
	if (at + 1 + n > sizeof(p->entry.name)) {
		return error_set(e, ERRC_LIMIT, "a path below the directory has more than %d bytes",
				LIMIT_PATH_BYTES - 1);
	}
	p->entry.name[at] = '/';
	memcpy(p->entry.name + at + 1, name, n);
	return 0;
}

static int tree_send(struct pack *p, struct error *e)
{
	while (p->height > 0) {
		struct pack_level *level = &p->levels[p->height - 1];

		errno = 0;
		const struct dirent *d = readdir(level->dir);

		if (!d) {
			p->entry.name[level->name_n] = '\0';
			if (errno != 0) {
				return pack_fail(p, errno, "read", e);
			}
			(void)closedir(level->dir);
			p->height--;
		} else if (!str_eq(d->d_name, ".") && !str_eq(d->d_name, "..") &&
				(name_join(p, d->d_name, e) < 0 ||
						entry_send(p, dirfd(level->dir), d->d_name, e) <
								0)) {
			return -1;
		}
	}
	return 0;
}

/* The last component of the path, or "." where it names a directory by itself. */
static void top_name(struct pack *p)
{
	const char *path = p->opts->path;
	size_t n = strlen(path);

	while (n > 0 && path[n - 1] == '/') {
		n--;
	}
	size_t from = n;

	while (from > 0 && path[from - 1] != '/') {
		from--;
	}
	memcpy(p->entry.name, path + from, n - from);
	p->entry.name[n - from] = '\0';
	if (p->entry.name[0] == '\0' || str_eq(p->entry.name, "..")) {
		memcpy(p->entry.name, ".", 2);
	}
}

/* Open what the path names: O_PATH first, for only files and directories are to be opened. */
static int source_open(struct pack *p, struct stat *st, struct error *e)
{
	const struct copy_opts *opts = p->opts;
	int follow = (opts->flags & COPY_FOLLOW) ? 0 : O_NOFOLLOW;
	autoclose int fd = path_open_beneath(opts->root_fd, opts->path, O_PATH | follow, 0);

	if (fd < 0 || fstat(fd, st) < 0) {
		return error_sys(e, fd < 0 ? -fd : errno, "%s", opts->path);
	}
	if (S_ISLNK(st->st_mode)) {
		return TAKE_FD(fd);
	}
	if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode)) {
		return error_set(e, ERRC_UNSUPPORTED, "%s: neither a file nor a directory",
				opts->path);
	}
	int flags = S_ISDIR(st->st_mode) ? O_RDONLY | O_DIRECTORY : O_RDONLY | O_NONBLOCK;

	fd_close(&fd);
	fd = path_open_beneath(opts->root_fd, opts->path, flags | follow, 0);
	return fd < 0 ? error_sys(e, -fd, "%s", opts->path) : TAKE_FD(fd);
}

static int pack_run(struct pack *p, struct error *e)
{
	struct stat st = { .st_mode = 0 };
	autoclose int fd = source_open(p, &st, e);
	int r = 0;

	if (fd < 0) {
		return -1;
	}
	if (S_ISLNK(st.st_mode)) {
		r = link_send(p, fd, "", &st, e);
	} else if (S_ISDIR(st.st_mode)) {
		r = dir_enter(p, TAKE_FD(fd), e);
	} else {
		r = file_send(p, fd, e);
	}
	if (r < 0 || tree_send(p, e) < 0) {
		return -1;
	}
	r = pax_write_end(p->opts->stream_fd);
	return r < 0 ? stream_fail(p, r, e) : 0;
}

int copy_pack(const struct copy_opts *opts, struct copy_result *out_result, struct error *e)
{
	AUTO(pack) struct pack *p = mem_new(struct pack);

	assert(opts->path[0] == '/');
	*out_result = (struct copy_result){ .left_out = 0 };
	if (strlen(opts->path) >= LIMIT_PATH_BYTES) {
		return error_sys(e, ENAMETOOLONG, "path");
	}
	p->opts = opts;
	p->result = out_result;
	top_name(p);
	return pack_run(p, e);
}
