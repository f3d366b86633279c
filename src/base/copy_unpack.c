/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * The first entry of the stream and what lies at the path decide where everything goes: `base_fd`
 * is a directory that was there before, `prefix` stands for the first component of the names (empty
 * for the content of a directory). Each name is then a path below base_fd in which no component is
 * a link, "..", or anything but a directory: links that the stream brings are made, never followed.
 * The parent of the last entry stays open, for most entries have the same one.
 *
 * A file is made anew (O_EXCL) after what was there has been removed: whatever it was linked to
 * keeps its content.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <osbx/copy.h>
#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/pax.h>
#include <osbx/str.h>

#define CHUNK_BYTES 131072
#define HOLE_BYTES  4096
/* Directories whose own rights would keep us out until all is done. */
#define DEFERRED_MAX 65536
/* Links from the path to where a single file goes: as many as the kernel follows. */
#define LINKS_MAX 40
#define NEW_FILE  (O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW)
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW)

struct deferred {
	struct deferred *next;
	mode_t mode;
	char name[];
};

struct unpack {
	const struct copy_opts *opts;
	struct copy_result *result;
	int base_fd;
	char prefix[LIMIT_PATH_BYTES];
	char top[LIMIT_PATH_BYTES]; /* first component of all names; empty: any */
	int parent_fd;
	char parent[LIMIT_PATH_BYTES]; /* names parent_fd */
	mode_t mask;
	struct deferred *deferred;
	unsigned int deferred_n;
	struct pax_reader reader;
	struct pax_entry entry;
	char name[LIMIT_PATH_BYTES];   /* of the entry, below base_fd */
	char target[LIMIT_PATH_BYTES]; /* of a hard link, likewise */
	char chunk[CHUNK_BYTES];
};

static void unpack_free(struct unpack *u)
{
	fd_close(&u->base_fd);
	fd_close(&u->parent_fd);
	while (u->deferred) {
		struct deferred *next = u->deferred->next;

		free(u->deferred);
		u->deferred = next;
	}
	free(u);
}
AUTO_DEFINE_PTR(unpack, struct unpack, unpack_free);

/* The stream's own text is not to reach a terminal. */
static int name_fail(const char *name, int sysno, const char *what, struct error *e)
{
	char text[128];

	str_printable(name, text, sizeof(text));
	return error_sys(e, sysno, "%s \"%s\"", what, text);
}

static int refuse(const char *name, const char *why, struct error *e)
{
	char text[128];

	str_printable(name, text, sizeof(text));
	return error_set(e, ERRC_CONFLICT, "\"%s\": %s", text, why);
}

static int refuse_name(const char *name, struct error *e)
{
	char text[128];

	str_printable(name, text, sizeof(text));
	return error_set(e, ERRC_DENIED, "the stream names \"%s\", which could lead elsewhere",
			text);
}

/* Remove empty components and "." from name, as a path that begins nowhere but here. */
static int name_clean(char *name, struct error *e)
{
	const char *from = name;
	char *to = name;

	if (name[0] == '/') {
		return refuse_name(name, e);
	}
	while (*from) {
		size_t n = strcspn(from, "/");

		if (n == 2 && from[0] == '.' && from[1] == '.') {
			return refuse_name(name, e);
		}
		if (n > 0 && !(n == 1 && from[0] == '.')) {
			if (to > name) {
				*to++ = '/';
			}
			memmove(to, from, n);
			to += n;
		}
		from += n;
		from += strspn(from, "/");
	}
	*to = '\0';
	return 0;
}

/* Where a cleaned name of the stream goes. */
static int name_place(const struct unpack *u, const char *name, char *out, struct error *e)
{
	size_t top_n = strlen(u->top);
	const char *rest = name;

	if (top_n > 0) {
		rest = str_after(name, u->top);
		if (!rest || (rest[0] != '\0' && rest[0] != '/')) {
			return refuse_name(name, e);
		}
		rest += strspn(rest, "/");
	}
	const char *slash = u->prefix[0] && rest[0] ? "/" : "";
	int n = snprintf(out, LIMIT_PATH_BYTES, "%s%s%s", u->prefix, slash, rest);

	if (n < 0 || n >= LIMIT_PATH_BYTES) {
		return error_set(e, ERRC_LIMIT, "a path of the copy has more than %d bytes",
				LIMIT_PATH_BYTES - 1);
	}
	return 0;
}

/* The directory of that path below base_fd; a link on the way is -ENOTDIR. Missing ones are made
 * where only an archive of others leaves them out. */
static int parent_walk(const struct unpack *u, const char *path)
{
	autofree char *names = mem_strdup(path);
	autoclose int fd = fd_open_at(u->base_fd, ".", O_PATH | O_DIRECTORY, 0);
	char *save = names;
	char *name = NULL;

	while (fd >= 0 && (name = strsep(&save, "/"))) {
		const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW;
		int next = fd_open_at(fd, name, flags, 0);

		if (next == -ENOENT && (u->opts->flags & COPY_ANY)) {
			next = mkdirat(fd, name, 0755) < 0 && errno != EEXIST
					       ? -errno
					       : fd_open_at(fd, name, flags, 0);
		}
		fd_close(&fd);
		fd = next;
	}
	return fd < 0 ? fd : TAKE_FD(fd);
}

/* Directory (borrowed) and last component of a path below base_fd; not of "". */
static int parent_open(struct unpack *u, char *path, const char **out_last, struct error *e)
{
	char *slash = strrchr(path, '/');
	const char *parent = slash ? path : "";

	*out_last = slash ? slash + 1 : path;
	if (!slash) {
		return u->base_fd;
	}
	*slash = '\0';
	if (u->parent_fd < 0 || !str_eq(u->parent, parent)) {
		fd_close(&u->parent_fd);
		u->parent_fd = parent_walk(u, parent);
		memcpy(u->parent, parent, strlen(parent) + 1);
	}
	int r = u->parent_fd;

	if (r == -ENOTDIR) {
		(void)refuse(path, "a link or file is where a directory must be", e);
	} else if (r < 0) {
		(void)name_fail(path, -r, "directory", e);
	}
	*slash = '/';
	return r < 0 ? -1 : r;
}

/* Make room for what is no directory. 0, or -EBUSY: something is mounted there. */
static int room_make(int dir_fd, const char *last, const char *name, struct error *e)
{
	struct stat st;

	if (unlinkat(dir_fd, last, 0) == 0 || errno == ENOENT) {
		return 0;
	}
	int sysno = errno;

	if (fstatat(dir_fd, last, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode)) {
		return refuse(name, "there is a directory already, and no file takes its place", e);
	}
	return sysno == EBUSY ? -EBUSY : name_fail(name, sysno, "replace", e);
}

static mode_t mode_of(const struct unpack *u)
{
	bool exact = (u->opts->flags & COPY_ARCHIVE) && !(u->opts->flags & COPY_PLAIN);

	return u->entry.mode & (exact ? 07777 : 0777);
}

/* Owner, then mode: a change of owner clears set-id bits. */
static int attributes_set(const struct unpack *u, int fd, mode_t also, struct error *e)
{
	const struct pax_entry *entry = &u->entry;
	struct stat st;

	if (!(u->opts->flags & COPY_ARCHIVE)) {
		return 0;
	}
	if (fstat(fd, &st) < 0) {
		return name_fail(u->name, errno, "look at", e);
	}
	if ((st.st_uid != entry->uid || st.st_gid != entry->gid) &&
			fchown(fd, entry->uid, entry->gid) < 0) {
		(void)name_fail(u->name, errno, "keep the owner of", e);
		return error_hint(e, "owners %u:%u may not exist there; leave out --archive",
				entry->uid, entry->gid);
	}
	return fchmod(fd, mode_of(u) | also) < 0 ? name_fail(u->name, errno, "set the mode of", e)
						 : 0;
}

static bool is_zero(const char *p, size_t n)
{
	return p[0] == '\0' && memcmp(p, p + 1, n - 1) == 0;
}

/* Zeros become holes: a sparse file does not grow on its way. */
static int chunk_write(int fd, const char *p, size_t n)
{
	for (size_t at = 0; at < n;) {
		size_t part = n - at < HOLE_BYTES ? n - at : HOLE_BYTES;
		bool hole = is_zero(p + at, part);

		while (at + part < n && part % HOLE_BYTES == 0) {
			size_t more = n - at - part < HOLE_BYTES ? n - at - part : HOLE_BYTES;

			if (is_zero(p + at + part, more) != hole) {
				break;
			}
			part += more;
		}
		int r = hole ? (lseek(fd, (off_t)part, SEEK_CUR) < 0 ? -errno : 0)
			     : fd_write_all(fd, p + at, part);

		if (r < 0) {
			return r;
		}
		at += part;
	}
	return 0;
}

static int data_take(struct unpack *u, int fd, struct error *e)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, u->entry.mtime };

	for (;;) {
		size_t filled = 0;
		ssize_t n = 0;

		/* Whole chunks: pieces of a pipe would hide holes. */
		do {
			n = pax_read(&u->reader, u->chunk + filled, CHUNK_BYTES - filled, e);
			filled += n > 0 ? (size_t)n : 0;
		} while (n > 0 && filled < CHUNK_BYTES);
		if (n < 0) {
			return -1;
		}
		int r = chunk_write(fd, u->chunk, filled);

		if (r < 0) {
			return name_fail(u->name, -r, "write", e);
		}
		if (filled < CHUNK_BYTES) {
			break;
		}
	}
	if (ftruncate(fd, (off_t)u->entry.size) < 0) {
		return name_fail(u->name, errno, "write", e);
	}
	(void)futimens(fd, times);
	return 0;
}

/* A file that is mounted (etc/hosts of a sandbox) can only be written to. */
static int mounted_open(int dir_fd, const char *last)
{
	autoclose int fd = fd_open_at(dir_fd, last, O_WRONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	struct stat st;

	if (fd < 0) {
		return fd;
	}
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		return -EBUSY;
	}
	return ftruncate(fd, 0) < 0 ? -errno : TAKE_FD(fd);
}

static int file_make(struct unpack *u, struct error *e)
{
	const char *last = NULL;
	int dir_fd = parent_open(u, u->name, &last, e);
	int r = dir_fd < 0 ? -1 : room_make(dir_fd, last, u->name, e);

	if (r == -1) {
		return -1;
	}
	autoclose int fd = r == -EBUSY ? mounted_open(dir_fd, last)
				       : fd_open_at(dir_fd, last, NEW_FILE, mode_of(u) & 0777);

	if (fd < 0) {
		return name_fail(u->name, -fd, "make", e);
	}
	if (data_take(u, fd, e) < 0) {
		return -1;
	}
	return r == 0 ? attributes_set(u, fd, 0, e) : 0;
}

static int symlink_make(struct unpack *u, struct error *e)
{
	const struct pax_entry *entry = &u->entry;
	const char *last = NULL;
	int dir_fd = parent_open(u, u->name, &last, e);
	int r = dir_fd < 0 ? -1 : room_make(dir_fd, last, u->name, e);

	if (r == -1) {
		return -1;
	}
	if (r < 0 || symlinkat(entry->target, dir_fd, last) < 0) {
		return name_fail(u->name, r < 0 ? -r : errno, "make the link", e);
	}
	if ((u->opts->flags & COPY_ARCHIVE) &&
			(entry->uid != geteuid() || entry->gid != getegid()) &&
			fchownat(dir_fd, last, entry->uid, entry->gid, AT_SYMLINK_NOFOLLOW) < 0) {
		return name_fail(u->name, errno, "keep the owner of", e);
	}
	return 0;
}

/* To a file that the copy has brought, or that lies below the same directory. */
static int hardlink_make(struct unpack *u, struct error *e)
{
	const char *from = NULL;
	const char *last = NULL;

	if (name_clean(u->entry.target, e) < 0 ||
			name_place(u, u->entry.target, u->target, e) < 0) {
		return -1;
	}
	if (u->target[0] == '\0') {
		return refuse_name(u->entry.target, e);
	}
	if (str_eq(u->target, u->name)) {
		return 0;
	}
	int dir_fd = parent_open(u, u->target, &from, e);
	autoclose int from_fd = dir_fd < 0 ? -1 : fd_dup(dir_fd, 0);

	if (from_fd < 0) {
		return dir_fd < 0 ? -1 : name_fail(u->target, -from_fd, "directory", e);
	}
	dir_fd = parent_open(u, u->name, &last, e);
	int r = dir_fd < 0 ? -1 : room_make(dir_fd, last, u->name, e);

	if (r == -1) {
		return -1;
	}
	return r < 0 || linkat(from_fd, from, dir_fd, last, 0) < 0
			       ? name_fail(u->name, r < 0 ? -r : errno, "make the hard link", e)
			       : 0;
}

/* Later, when all is in it. */
static int mode_defer(struct unpack *u, mode_t mode, struct error *e)
{
	const size_t n = strlen(u->name) + 1;

	if (u->deferred_n == DEFERRED_MAX) {
		return error_set(e, ERRC_LIMIT, "more than %d directories without write permission",
				DEFERRED_MAX);
	}
	struct deferred *d = mem_array(1, sizeof(*d) + n);

	d->mode = mode;
	d->next = u->deferred;
	memcpy(d->name, u->name, n);
	u->deferred = d;
	u->deferred_n++;
	return 0;
}

/* From the inmost to the outmost: a directory that shuts us out comes after what is in it. */
static int modes_apply(struct unpack *u, struct error *e)
{
	for (struct deferred *d = u->deferred; d; d = d->next) {
		const char *last = NULL;

		memcpy(u->name, d->name, strlen(d->name) + 1);
		int dir_fd = parent_open(u, u->name, &last, e);

		if (dir_fd < 0) {
			return -1;
		}
		autoclose int fd = fd_open_at(dir_fd, last, DIR_FLAGS, 0);

		if (fd < 0 || fchmod(fd, d->mode) < 0) {
			return name_fail(u->name, fd < 0 ? -fd : errno, "set the mode of", e);
		}
	}
	return 0;
}

static int dir_make(struct unpack *u, struct error *e)
{
	const bool archive = (u->opts->flags & COPY_ARCHIVE) != 0;
	const mode_t mode = mode_of(u);
	const char *last = NULL;
	struct stat st;
	int dir_fd = parent_open(u, u->name, &last, e);

	if (dir_fd < 0) {
		return -1;
	}
	if (mkdirat(dir_fd, last, (mode & 0777) | S_IRWXU) < 0) {
		int sysno = errno;

		if (sysno != EEXIST || fstatat(dir_fd, last, &st, AT_SYMLINK_NOFOLLOW) < 0) {
			return name_fail(u->name, sysno, "make the directory", e);
		}
		return S_ISDIR(st.st_mode) ? 0
					   : refuse(u->name,
							     "there is something else already, and "
							     "no directory takes its place",
							     e);
	}
	if (archive) {
		autoclose int fd = fd_open_at(dir_fd, last, DIR_FLAGS, 0);

		if (fd < 0) {
			return name_fail(u->name, -fd, "open", e);
		}
		if (attributes_set(u, fd, S_IRWXU, e) < 0) {
			return -1;
		}
	}
	return (mode & S_IRWXU) == S_IRWXU ? 0 : mode_defer(u, archive ? mode : mode & ~u->mask, e);
}

static int entry_make(struct unpack *u, struct error *e)
{
	if (name_clean(u->entry.name, e) < 0 || name_place(u, u->entry.name, u->name, e) < 0) {
		return -1;
	}
	if (u->name[0] == '\0') {
		/* The directory at the path, which was there before. */
		return u->entry.type == PAX_DIR ? 0 : refuse_name(".", e);
	}
	switch (u->entry.type) {
	case PAX_FILE:
		return file_make(u, e);
	case PAX_DIR:
		return dir_make(u, e);
	case PAX_SYMLINK:
		return symlink_make(u, e);
	case PAX_HARDLINK:
		return hardlink_make(u, e);
	case PAX_SPECIAL:
		u->result->left_out++;
		return 0;
	}
	return error_set(e, ERRC_INTERNAL, "entry of a copy");
}

/* Where a path leads whose last component may be a link to what is not there yet, or is no
 * directory: the directory becomes base_fd, the name the prefix. */
static int place_find(struct unpack *u, struct error *e)
{
	autofree char *path = mem_strdup(u->opts->path);

	for (int i = 0; i <= LINKS_MAX; i++) {
		char target[LIMIT_PATH_BYTES];

		for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--) {
			path[n - 1] = '\0';
		}
		const char *last = path_last(path);

		if (last[0] == '\0' || str_eq(last, ".") || str_eq(last, "..") ||
				strlen(path) >= LIMIT_PATH_BYTES) {
			break;
		}
		autofree char *parent = mem_printf("/%.*s", (int)(last - path), path);

		fd_close(&u->base_fd);
		u->base_fd = path_open_beneath(u->opts->root_fd, parent, O_PATH | O_DIRECTORY, 0);
		if (u->base_fd < 0) {
			return error_sys(e, -u->base_fd, "directory of %s", u->opts->path);
		}
		ssize_t n = readlinkat(u->base_fd, last, target, sizeof(target) - 1);

		if (n <= 0) {
			memcpy(u->prefix, last, strlen(last) + 1);
			return 0;
		}
		target[n] = '\0';
		char *next = mem_printf("%s%s", target[0] == '/' ? "" : parent, target);

		free(path);
		path = next;
	}
	return error_sys(e, ELOOP, "%s", u->opts->path);
}

/* The first component of a name; "" for ".". */
static void top_of(const char *name, char *out)
{
	size_t n = strcspn(name, "/");

	memcpy(out, name, n);
	out[n] = '\0';
	if (str_eq(out, ".")) {
		out[0] = '\0';
	}
}

/* Decide by what is there and what comes first. */
static int place_choose(struct unpack *u, struct error *e)
{
	const struct copy_opts *opts = u->opts;
	const bool is_dir = u->entry.type == PAX_DIR;

	u->base_fd = path_open_beneath(opts->root_fd, opts->path, O_PATH | O_DIRECTORY, 0);
	if (u->base_fd >= 0) {
		if (!(opts->flags & COPY_ANY)) {
			top_of(u->entry.name, u->top);
			memcpy(u->prefix, u->top, strlen(u->top) + 1);
		}
		return 0;
	}
	int r = TAKE_FD(u->base_fd);

	if ((opts->flags & COPY_ANY) || (r != -ENOENT && r != -ENOTDIR)) {
		return error_sys(e, -r, "%s", opts->path);
	}
	if (!is_dir && str_has_suffix(opts->path, "/")) {
		return error_sys(e, -r, "%s", opts->path);
	}
	if (is_dir && r == -ENOTDIR) {
		return error_set(e, ERRC_CONFLICT, "%s: no directory takes the place of a file",
				opts->path);
	}
	top_of(u->entry.name, u->top);
	return place_find(u, e);
}

static int unpack_run(struct unpack *u, struct error *e)
{
	int got = pax_next(&u->reader, &u->entry, e);

	if (got == 0 && !(u->opts->flags & COPY_ANY)) {
		u->result->stream = true;
		return error_set(e, ERRC_INVALID, "tar stream: nothing is in it");
	}
	if (got >= 0 && place_choose(u, e) < 0) {
		return -1;
	}
	while (got > 0) {
		if (entry_make(u, e) < 0) {
			return -1;
		}
		got = pax_next(&u->reader, &u->entry, e);
	}
	return got < 0 || modes_apply(u, e) < 0 ? -1 : pax_drain(&u->reader, e);
}

int copy_unpack(const struct copy_opts *opts, struct copy_result *out_result, struct error *e)
{
	AUTO(unpack) struct unpack *u = mem_new(struct unpack);

	assert(opts->path[0] == '/');
	*out_result = (struct copy_result){ .left_out = 0 };
	u->base_fd = -1;
	u->parent_fd = -1;
	if (strlen(opts->path) >= LIMIT_PATH_BYTES) {
		return error_sys(e, ENAMETOOLONG, "path");
	}
	u->opts = opts;
	u->result = out_result;
	u->mask = umask(0);
	(void)umask(u->mask);
	pax_reader_init(&u->reader, opts->stream_fd);
	int r = unpack_run(u, e);

	out_result->stream = out_result->stream || u->reader.failed;
	return r;
}
