/* SPDX-License-Identifier: Apache-2.0 */
/* What is done to files as they are: info, delete, permissions, mv. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/limits.h>
#include <osbx/str.h>
#include <osbx/sys.h>

#include "api.h"
#include "attrs.h"
#include "files.h"
#include "outfile.h"
#include "place.h"

#define INFO_BYTES_MAX ((size_t)64 << 20)

static int info_one(struct files *f, const char *given, struct json_writer *w, struct error *e)
{
	AUTO(place) struct place p = PLACE_INIT;
	struct stat st;

	if (place_open(f, given, &p, e) < 0) {
		return -1;
	}
	if (fstatat(p.dir_fd, p.name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		return files_sys(e, errno, "stat", p.path);
	}
	const struct fileinfo info = fileinfo_of(&st);

	fileinfo_write(w, given, p.path, &info, &f->names);
	return 0;
}

/* An object by paths as they were given; one that is given twice is there once. */
static int info(struct files *f, struct error *e)
{
	AUTO(strv) struct strv paths = STRV_INIT;
	AUTO(buf) struct buf b = BUF_INIT(INFO_BYTES_MAX);
	struct json_writer w = JSON_WRITER(&b);

	f->invalid_code = API_INVALID_QUERY;
	if (files_query_paths(f, &paths, e) < 0) {
		return -1;
	}
	json_object_begin(&w, NULL);
	strv_for_each(&paths, i) {
		size_t j = 0;

		while (!str_eq(paths.v[j], paths.v[i])) {
			j++;
		}
		if (j == i && info_one(f, paths.v[i], &w, e) < 0) {
			return -1;
		}
	}
	json_object_end(&w);
	if (w.failed) {
		return error_set(e, ERRC_LIMIT, "the answer is larger than %zu bytes",
				INFO_BYTES_MAX);
	}
	api_json(f->rq, 200, &b);
	return 0;
}

void files_info(struct http_req *rq)
{
	files_serve(rq, info);
}

static int delete_one(struct files *f, const char *given, struct error *e)
{
	AUTO(place) struct place p = PLACE_INIT;
	struct stat st;

	if (place_open(f, given, &p, e) < 0) {
		if (e->code == ERRC_NOT_FOUND) {
			error_clear(e);
			return 0;
		}
		return -1;
	}
	/* Some file systems say EPERM of a directory, as POSIX does. */
	if (str_eq(p.name, ".") || (fstatat(p.dir_fd, p.name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
						   S_ISDIR(st.st_mode))) {
		return error_sys(e, EISDIR, "delete \"%.200s\"", p.path);
	}
	if (unlinkat(p.dir_fd, p.name, 0) < 0 && errno != ENOENT) {
		return files_sys(e, errno, "delete", p.path);
	}
	return 0;
}

static int delete_all(struct files *f, struct error *e)
{
	AUTO(strv) struct strv paths = STRV_INIT;

	f->invalid_code = API_INVALID_QUERY;
	if (files_query_paths(f, &paths, e) < 0) {
		return -1;
	}
	strv_for_each(&paths, i) {
		if (delete_one(f, paths.v[i], e) < 0) {
			return -1;
		}
	}
	api_ok(f->rq);
	return 0;
}

void files_delete(struct http_req *rq)
{
	files_serve(rq, delete_all);
}

static int permissions_one(struct files *f, const struct json *v, struct error *e)
{
	AUTO(place) struct place p = PLACE_INIT;
	struct attrs a = ATTRS_INIT;

	if (attrs_parse(f, v, &a, e) < 0 || place_find(f, json_name(v), &p, e) < 0) {
		return -1;
	}
	return attrs_apply(f, p.fd, &a, p.path, e);
}

static int permissions(struct files *f, struct error *e)
{
	return files_body_each(f, permissions_one, e);
}

void files_permissions(struct http_req *rq)
{
	files_serve(rq, permissions);
}

/* rename(2) does not cross file systems, and not from a layer of the image to the top one: a file
 * is copied and then removed. Owner and times are kept as far as we may. */
static int move_file(struct files *f, struct place *src, struct place *dest, struct error *e)
{
	AUTO(outfile) struct outfile o = OUTFILE_INIT;
	struct attrs mode = ATTRS_INIT;
	struct stat st;
	autoclose int fd =
			fd_open_at(src->dir_fd, src->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);

	if (fd < 0 || fstat(fd, &st) < 0) {
		return files_sys(e, fd < 0 ? -fd : errno, "open", src->path);
	}
	if (outfile_open(f, dest, &o, e) < 0) {
		return -1;
	}
	int64_t n = fd_copy(fd, o.fd, UINT64_MAX);

	if (n < 0) {
		return files_sys(e, (int)-n, "copy", src->path);
	}
	const struct timespec times[2] = { st.st_atim, st.st_mtim };

	mode.mode = st.st_mode & 0777;
	mode.has_mode = true;
	(void)!fchown(o.fd, st.st_uid, st.st_gid);
	(void)futimens(o.fd, times);
	if (outfile_publish_new(f, &o, &mode, e) < 0) {
		return -1;
	}
	if (unlinkat(src->dir_fd, src->name, 0) < 0) {
		return files_sys(e, errno, "delete", src->path);
	}
	return 0;
}

static int move_link(const struct place *src, const struct place *dest, struct error *e)
{
	char target[LIMIT_PATH_BYTES];
	ssize_t n = readlinkat(src->dir_fd, src->name, target, sizeof(target) - 1);

	if (n < 0) {
		return files_sys(e, errno, "read the link", src->path);
	}
	target[n] = '\0';
	if (symlinkat(target, dest->dir_fd, dest->name) < 0) {
		return files_sys(e, errno, "make the link", dest->path);
	}
	return unlinkat(src->dir_fd, src->name, 0) < 0 ? files_sys(e, errno, "delete", src->path)
						       : 0;
}

static int move_across(struct files *f, struct place *src, struct place *dest,
		const struct stat *st, struct error *e)
{
	if (S_ISREG(st->st_mode)) {
		return move_file(f, src, dest, e);
	}
	if (S_ISLNK(st->st_mode)) {
		return move_link(src, dest, e);
	}
	(void)error_sys(e, EXDEV, "move \"%.100s\" to \"%.100s\"", src->path, dest->path);
	return error_hint(e, "copy it by a command (cp -a) and remove it then");
}

static int move_to(struct files *f, struct place *src, struct place *dest, struct error *e)
{
	struct stat st;
	struct stat there;
	int r = 0;

	if (fstatat(src->dir_fd, src->name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		return files_sys(e, errno, "move", src->path);
	}
	if (place_make_dirs(dest, e) < 0) {
		return -1;
	}
	if (fstatat(dest->dir_fd, dest->name, &there, AT_SYMLINK_NOFOLLOW) == 0) {
		return error_sys(e, EEXIST, "move to \"%.200s\"", dest->path);
	}
	r = sys_rename_new(src->dir_fd, src->name, dest->dir_fd, dest->name);
	/* A file system without RENAME_NOREPLACE, or a directory into itself, which the second one
	 * says again. */
	if (r == -EINVAL) {
		r = renameat(src->dir_fd, src->name, dest->dir_fd, dest->name) < 0 ? -errno : 0;
	}
	if (r == -EXDEV) {
		return move_across(f, src, dest, &st, e);
	}
	return r < 0 ? error_sys(e, -r, "move \"%.100s\" to \"%.100s\"", src->path, dest->path) : 0;
}

static int move_one(struct files *f, const struct json *v, struct error *e)
{
	AUTO(place) struct place src = PLACE_INIT;
	AUTO(place) struct place dest = PLACE_INIT;
	const char *src_given = json_string(json_get(v, "src"));
	const char *dest_given = json_string(json_get(v, "dest"));

	if (!src_given || !dest_given) {
		return error_set(e, ERRC_INVALID, "the body: expected objects with src and dest");
	}
	if (place_open(f, src_given, &src, e) < 0 || place_open_new(f, dest_given, &dest, e) < 0) {
		return -1;
	}
	return move_to(f, &src, &dest, e);
}

static int move_all(struct files *f, struct error *e)
{
	AUTO(json) struct json *body = NULL;

	if (files_body(f, &body, e) < 0) {
		return -1;
	}
	if (!json_is_array(body)) {
		return error_set(e, ERRC_INVALID, "the body: expected an array");
	}
	json_for_each(v, body) {
		if (move_one(f, v, e) < 0) {
			return -1;
		}
	}
	api_ok(f->rq);
	return 0;
}

void files_move(struct http_req *rq)
{
	files_serve(rq, move_all);
}
