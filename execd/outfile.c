/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/id.h>
#include <osbx/str.h>
#include <osbx/sys.h>

#include "files.h"
#include "outfile.h"

#define NEW_MODE 0777 /* the umask's business */

void outfile_done(struct outfile *o)
{
	if (o->temp[0]) {
		(void)unlinkat(o->temp_fd, o->temp, 0);
		o->temp[0] = '\0';
	}
	fd_close(&o->fd);
	fd_close(&o->temp_fd);
	place_done(&o->place);
}

static void temp_name(struct outfile *o)
{
	char random[2 * 8 + 1];

	id_random_hex(random, 8);
	(void)snprintf(o->temp, sizeof(o->temp), ".osbx-%s.tmp", random);
}

static int open_temp(struct outfile *o)
{
	o->temp_fd = fd_open_at(o->place.dir_fd, ".", O_PATH | O_DIRECTORY, 0);
	if (o->temp_fd < 0) {
		return TAKE_FD(o->temp_fd);
	}
	int fd = fd_open_at(o->temp_fd, ".", O_TMPFILE | O_RDWR, NEW_MODE);

	/* EOPNOTSUPP by the file system; EISDIR and ENOENT by an emulated kernel. */
	if (fd == -EOPNOTSUPP || fd == -EISDIR || fd == -ENOENT || fd == -EINVAL) {
		temp_name(o);
		fd = fd_open_at(o->temp_fd, o->temp, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW,
				NEW_MODE);
		if (fd < 0) {
			o->temp[0] = '\0';
		}
	}
	return fd;
}

static int check_target(const struct place *p, struct error *e)
{
	if (p->fd < 0 && !p->missing && str_eq(p->name, ".")) {
		return files_sys(e, EISDIR, "write to", p->path);
	}
	if (p->fd >= 0 && S_ISDIR(p->st.st_mode)) {
		return files_sys(e, EISDIR, "write to", p->path);
	}
	if (p->fd >= 0 && !S_ISREG(p->st.st_mode)) {
		(void)files_sys(e, EINVAL, "not a regular file:", p->path);
		e->sysno = 0;
		return -1;
	}
	return 0;
}

int outfile_open(const struct files *f, struct place *place, struct outfile *out, struct error *e)
{
	AUTO(outfile) struct outfile o = OUTFILE_INIT;

	(void)f;
	o.place = TAKE(*place, (struct place)PLACE_INIT);
	if (check_target(&o.place, e) < 0) {
		return -1;
	}
	o.fd = open_temp(&o);
	if (o.place.fd >= 0 && (o.fd == -EACCES || o.fd == -EPERM || o.fd == -EROFS)) {
		o.is_spool = true;
		o.fd = fd_memfd("osbx-spool", false);
	}
	if (o.fd < 0) {
		return files_sys(e, -TAKE_FD(o.fd), "write to", o.place.path);
	}
	*out = TAKE(o, (struct outfile)OUTFILE_INIT);
	return 0;
}

int outfile_write(struct outfile *o, const void *p, size_t n, struct error *e)
{
	if (o->is_spool && n > OUTFILE_SPOOL_MAX - o->bytes) {
		return error_set(e, ERRC_LIMIT,
				"the directory of \"%.100s\" is not writable, and more than %u MiB "
				"are not written to a file in its place",
				o->place.path, (unsigned int)(OUTFILE_SPOOL_MAX >> 20));
	}
	int r = fd_write_all(o->fd, p, n);

	o->bytes += n;
	return r < 0 ? files_sys(e, -r, "write to", o->place.path) : 0;
}

/* Copy the content into the file that is there. */
static int overwrite(const struct files *f, struct outfile *o)
{
	/* The object that place_follow has checked, whatever its name means by now. */
	autoclose int fd = place_reopen(f, &o->place, O_WRONLY);

	if (fd < 0) {
		return fd;
	}
	if (lseek(o->fd, 0, SEEK_SET) < 0 || ftruncate(fd, 0) < 0) {
		return -errno;
	}
	int64_t n = fd_copy(o->fd, fd, o->bytes);

	return n < 0 ? (int)n : 0;
}

/* Give the content a name in the directory of the target. */
static int link_temp(const struct files *f, struct outfile *o)
{
	char self[32];

	if (o->temp[0]) {
		return 0;
	}
	(void)snprintf(self, sizeof(self), "self/fd/%d", o->fd);
	temp_name(o);
	if (linkat(f->proc_fd, self, o->temp_fd, o->temp, AT_SYMLINK_FOLLOW) < 0) {
		int r = -errno;

		o->temp[0] = '\0';
		return r;
	}
	return 0;
}

static int rename_new(struct outfile *o)
{
	struct stat st;
	int r = sys_rename_new(o->temp_fd, o->temp, o->place.dir_fd, o->place.name);

	if (r != -EINVAL) {
		return r;
	}
	/* A file system without RENAME_NOREPLACE: the best there is. */
	if (fstatat(o->place.dir_fd, o->place.name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		return -EEXIST;
	}
	return renameat(o->temp_fd, o->temp, o->place.dir_fd, o->place.name) < 0 ? -errno : 0;
}

static int publish(const struct files *f, struct outfile *o, bool is_new, struct error *e)
{
	int r = 0;

	if (o->place.missing && place_make_dirs(&o->place, e) < 0) {
		return -1;
	}
	r = o->is_spool ? overwrite(f, o) : link_temp(f, o);
	if (r == 0 && !o->is_spool) {
		if (is_new) {
			r = rename_new(o);
		} else {
			r = renameat(o->temp_fd, o->temp, o->place.dir_fd, o->place.name) < 0
					    ? -errno
					    : 0;
		}
		if (r == 0) {
			o->temp[0] = '\0';
		} else if (r == -EBUSY && o->place.fd >= 0 && !is_new) {
			/* A mount point. */
			r = overwrite(f, o);
		}
	}
	return r < 0 ? files_sys(e, -r, "write to", o->place.path) : 0;
}

/* What is not said is as it was. */
static struct attrs attrs_fill(const struct outfile *o, const struct attrs *a)
{
	struct attrs filled = *a;

	if (!filled.has_mode && o->place.fd >= 0) {
		filled.mode = o->place.st.st_mode & 0777;
		filled.has_mode = true;
	}
	return filled;
}

int outfile_publish(
		const struct files *f, struct outfile *o, const struct attrs *a, struct error *e)
{
	const struct attrs filled = attrs_fill(o, a);

	if (o->is_spool) {
		return publish(f, o, false, e) < 0
				       ? -1
				       : attrs_apply(f, o->place.fd, a, o->place.path, e);
	}
	return attrs_apply(f, o->fd, &filled, o->place.path, e) < 0 ? -1 : publish(f, o, false, e);
}

int outfile_publish_same(const struct files *f, struct outfile *o, struct error *e)
{
	const struct stat *st = &o->place.st;
	struct attrs same = ATTRS_INIT;
	struct stat mine;
	struct error ignored = ERROR_INIT;

	if (o->is_spool) {
		return publish(f, o, false, e);
	}
	if (fstat(o->fd, &mine) < 0) {
		return files_sys(e, errno, "stat", o->place.path);
	}
	same.mode = st->st_mode & 07777;
	same.has_mode = true;
	if (mine.st_uid != st->st_uid) {
		same.uid = st->st_uid;
	}
	if (mine.st_gid != st->st_gid) {
		same.gid = st->st_gid;
	}
	if (attrs_apply(f, o->fd, &same, o->place.path, &ignored) == 0) {
		return publish(f, o, false, e);
	}
	int r = overwrite(f, o);

	return r < 0 ? files_sys(e, -r, "write to", o->place.path) : 0;
}

int outfile_publish_new(
		const struct files *f, struct outfile *o, const struct attrs *a, struct error *e)
{
	return attrs_apply(f, o->fd, a, o->place.path, e) < 0 ? -1 : publish(f, o, true, e);
}
