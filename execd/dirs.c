/* SPDX-License-Identifier: Apache-2.0 */
/* Directories: list, make, remove. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/str.h>

#include "api.h"
#include "attrs.h"
#include "files.h"
#include "place.h"
#include "walk.h"

#define DEPTH_MAX INT32_MAX

struct listing {
	struct files *f;
	struct files_array out;
};

static void tell(void *ctx, const char *path, const struct fileinfo *info)
{
	struct listing *l = ctx;

	fileinfo_write(&l->out.w, NULL, path, info, &l->f->names);
	files_array_flush(&l->out);
}

static int depth_of(const struct files *f, uint64_t *out_depth, struct error *e)
{
	autofree char *text = NULL;

	*out_depth = 1;
	if (http_query(f->rq, "depth", &text) < 0) {
		return error_set(e, ERRC_INVALID, "the query cannot be decoded");
	}
	if (text && text[0] && str_to_u64(text, DEPTH_MAX, out_depth) < 0) {
		return error_set(e, ERRC_INVALID, "depth is not a number from 0 to %d", DEPTH_MAX);
	}
	return 0;
}

/* The directory itself, not one that a link leads to. */
static int open_dir(const struct files *f, const char *given, struct place *out, struct error *e)
{
	AUTO(place) struct place p = PLACE_INIT;
	struct stat st;

	if (place_open(f, given, &p, e) < 0) {
		return -1;
	}
	if (fstatat(p.dir_fd, p.name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		return files_sys(e, errno, "list", p.path);
	}
	if (!S_ISDIR(st.st_mode)) {
		return error_set(e, ERRC_INVALID, "\"%.200s\" is %s, not a directory", p.path,
				S_ISLNK(st.st_mode) ? "a symbolic link" : "a file");
	}
	p.fd = fd_open_at(p.dir_fd, p.name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	if (p.fd < 0) {
		return files_sys(e, -TAKE_FD(p.fd), "list", p.path);
	}
	*out = TAKE(p, (struct place)PLACE_INIT);
	return 0;
}

static int list(struct files *f, struct error *e)
{
	AUTO(place) struct place p = PLACE_INIT;
	struct listing l = { .f = f };
	autofree char *given = NULL;
	uint64_t depth = 1;

	f->invalid_code = API_MISSING_QUERY;
	if (files_query(f, "path", &given, e) < 0) {
		return -1;
	}
	f->invalid_code = API_INVALID_QUERY;
	if (depth_of(f, &depth, e) < 0 || open_dir(f, given, &p, e) < 0) {
		return -1;
	}
	const struct walk_opts opts = {
		.dir_fd = p.fd, .path = p.path, .depth = depth, .tell = tell, .ctx = &l
	};

	files_array_begin(&l.out, f->rq);
	int r = walk_tree(&opts, e);

	if (r == 0) {
		files_array_end(&l.out);
	}
	files_array_done(&l.out);
	return r;
}

void files_list(struct http_req *rq)
{
	files_serve(rq, list);
}

/* The mode is exactly what was asked for, whatever the umask; one that is there already stays as it
 * is, as with mkdir -p. */
static int make_dir(struct files *f, const struct json *v, struct error *e)
{
	AUTO(place) struct place p = PLACE_INIT;
	struct attrs a = ATTRS_INIT;

	if (attrs_parse(f, v, &a, e) < 0 || place_open_new(f, json_name(v), &p, e) < 0 ||
			place_make_dirs(&p, e) < 0) {
		return -1;
	}
	if (mkdirat(p.dir_fd, p.name, 0777) < 0) {
		int sysno = errno;

		if (sysno != EEXIST) {
			return files_sys(e, sysno, "make the directory", p.path);
		}
		if (place_follow(f, &p, e) < 0) {
			return -1;
		}
		return p.fd >= 0 && S_ISDIR(p.st.st_mode)
				       ? 0
				       : error_sys(e, EEXIST, "make the directory \"%.200s\"",
							 p.path);
	}
	p.fd = fd_open_at(p.dir_fd, p.name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	if (p.fd < 0) {
		return files_sys(e, -TAKE_FD(p.fd), "make the directory", p.path);
	}
	return attrs_apply(f, p.fd, &a, p.path, e);
}

static int make(struct files *f, struct error *e)
{
	return files_body_each(f, make_dir, e);
}

void files_make_dirs(struct http_req *rq)
{
	files_serve(rq, make);
}

static int remove_dir(struct files *f, const char *given, struct error *e)
{
	AUTO(place) struct place p = PLACE_INIT;

	if (place_open(f, given, &p, e) < 0) {
		if (e->code == ERRC_NOT_FOUND) {
			error_clear(e);
			return 0;
		}
		return -1;
	}
	if (str_eq(p.name, ".")) {
		return error_set(e, ERRC_SYSTEM, "the root directory is not removed");
	}
	int r = file_remove_tree_at(p.dir_fd, p.name);

	return r < 0 ? files_sys(e, -r, "remove", p.path) : 0;
}

static int remove_all(struct files *f, struct error *e)
{
	AUTO(strv) struct strv paths = STRV_INIT;

	f->invalid_code = API_INVALID_QUERY;
	if (files_query_paths(f, &paths, e) < 0) {
		return -1;
	}
	strv_for_each(&paths, i) {
		if (remove_dir(f, paths.v[i], e) < 0) {
			return -1;
		}
	}
	api_ok(f->rq);
	return 0;
}

void files_remove_dirs(struct http_req *rq)
{
	files_serve(rq, remove_all);
}
