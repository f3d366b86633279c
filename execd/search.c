/* SPDX-License-Identifier: Apache-2.0 */
/* Files below a directory by a pattern of their names. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include <osbx/str.h>

#include "api.h"
#include "attrs.h"
#include "files.h"
#include "glob.h"
#include "place.h"
#include "walk.h"

#define PATTERN_DEFAULT "**"

struct search {
	struct files *f;
	struct glob *glob;
	struct files_array out;
};

static bool wants(void *ctx, const char *name, bool is_dir)
{
	const struct search *s = ctx;

	return !is_dir && glob_matches(s->glob, name);
}

static void tell(void *ctx, const char *path, const struct fileinfo *info)
{
	struct search *s = ctx;

	fileinfo_write(&s->out.w, NULL, path, info, &s->f->names);
	files_array_flush(&s->out);
}

static int run(struct search *s, const struct place *p, struct error *e)
{
	const struct walk_opts opts = {
		.dir_fd = p->fd,
		.path = p->path,
		.depth = UINT64_MAX,
		.wants = wants,
		.tell = tell,
		.ctx = s,
	};

	files_array_begin(&s->out, s->f->rq);
	if (!S_ISDIR(p->st.st_mode)) {
		const struct fileinfo info = fileinfo_of(&p->st);

		if (wants(s, p->name, false)) {
			tell(s, p->path, &info);
		}
	} else if (walk_tree(&opts, e) < 0) {
		return -1;
	}
	files_array_end(&s->out);
	return 0;
}

static int pattern_of(const struct files *f, struct glob **out_glob, struct error *e)
{
	autofree char *pattern = NULL;

	if (http_query(f->rq, "pattern", &pattern) < 0) {
		return error_set(e, ERRC_INVALID, "the query cannot be decoded");
	}
	return glob_new(pattern && pattern[0] ? pattern : PATTERN_DEFAULT, out_glob, e);
}

static int search(struct files *f, struct error *e)
{
	AUTO(place) struct place p = PLACE_INIT;
	AUTO(glob) struct glob *glob = NULL;
	struct search s = { .f = f };
	autofree char *given = NULL;

	f->invalid_code = API_MISSING_QUERY;
	if (files_query(f, "path", &given, e) < 0) {
		return -1;
	}
	f->invalid_code = API_INVALID_QUERY;
	if (place_find(f, given, &p, e) < 0 || pattern_of(f, &glob, e) < 0) {
		return -1;
	}
	s.glob = glob;
	int r = run(&s, &p, e);

	files_array_done(&s.out);
	return r;
}

void files_search(struct http_req *rq)
{
	files_serve(rq, search);
}
