/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <osbx/mem.h>
#include <osbx/str.h>

#include "api_internal.h"
#include "handlers.h"

#define PAGE_SIZE_DEFAULT 20
#define PAGE_MAX          1000000
#define STATES_MAX        16

struct filter {
	struct strv states;
	struct strv pairs;
	uint64_t page;
	uint64_t page_size;
};

static void filter_done(struct filter *f)
{
	strv_done(&f->states);
	strv_done(&f->pairs);
}
AUTO_DEFINE(filter, struct filter, filter_done);

/* A whole number from 1 to max. -1: answered. */
static int number_read(struct http_req *rq, const char *name, const char *text, uint64_t max,
		uint64_t *out)
{
	uint64_t v = 0;

	if (str_to_u64(text, max, &v) < 0 || v == 0) {
		autofree char *what = mem_printf(
				"expected a whole number from 1 to %llu", (unsigned long long)max);

		api_fail_field(rq, "query", name, what);
		return -1;
	}
	*out = v;
	return 0;
}

static int pair_read(struct http_req *rq, const char *name, const char *value, struct filter *f)
{
	if (str_eq(name, "state")) {
		if (f->states.n >= STATES_MAX || strv_add(&f->states, value) < 0) {
			api_fail_field(rq, "query", name, "too many states");
			return -1;
		}
	} else if (str_eq(name, "metadata")) {
		strv_done(&f->pairs);
		if (metadata_filter(value, &f->pairs) < 0) {
			api_fail(rq, 400, API_METADATA_FORMAT,
					"metadata: expected KEY=VALUE pairs between '&'");
			return -1;
		}
	} else if (str_eq(name, "page")) {
		return number_read(rq, name, value, PAGE_MAX, &f->page);
	} else if (str_eq(name, "pageSize")) {
		return number_read(rq, name, value, API_PAGE_MAX, &f->page_size);
	}
	return 0;
}

static int filter_read(struct http_req *rq, struct filter *f)
{
	size_t at = 0;

	for (;;) {
		char *name = NULL;
		char *value = NULL;
		int r = http_query_next(rq, &at, &name, &value);

		if (r < 0) {
			api_fail_field(rq, "query", "", "malformed escape");
			return -1;
		}
		if (r == 0) {
			return 0;
		}
		r = pair_read(rq, name, value, f);
		free(name);
		free(value);
		if (r < 0) {
			return -1;
		}
	}
}

static bool is_wanted(const struct filter *f, const struct sandbox_state *s)
{
	bool in_states = f->states.n == 0;

	strv_for_each(&f->states, i) {
		in_states = in_states || strcasecmp(f->states.v[i], state_name(s->code)) == 0;
	}
	return in_states && metadata_matches(&s->labels, &f->pairs);
}

static void pagination_add(struct json_writer *w, const struct filter *f, uint64_t total)
{
	assert(f->page_size > 0);
	uint64_t pages = (total + f->page_size - 1) / f->page_size;

	json_object_begin(w, "pagination");
	json_add_u64(w, "page", f->page);
	json_add_u64(w, "pageSize", f->page_size);
	json_add_u64(w, "totalItems", total);
	json_add_u64(w, "totalPages", pages);
	json_add_bool(w, "hasNextPage", f->page < pages);
	json_object_end(w);
}

/* Newest first; the list is oldest first, and stable. */
static void list_write(const struct api *api, const struct filter *f, const struct sandbox_list *l,
		struct json_writer *w)
{
	uint64_t first = (f->page - 1) * f->page_size;
	uint64_t total = 0;

	json_object_begin(w, NULL);
	json_array_begin(w, "items");
	for (size_t i = l->n; i-- > 0;) {
		if (!is_wanted(f, &l->v[i].state)) {
			continue;
		}
		if (total >= first && total - first < f->page_size) {
			view_sandbox(api, &l->v[i], w);
		}
		total++;
	}
	json_array_end(w);
	pagination_add(w, f, total);
	json_object_end(w);
}

static void list_work(struct api *api, struct http_req *rq)
{
	AUTO(filter) struct filter f = { .page = 1, .page_size = PAGE_SIZE_DEFAULT };
	AUTO(sandbox_list) struct sandbox_list l = { .n = 0 };
	AUTO(buf) struct buf out = BUF_INIT(API_JSON_MAX);
	struct json_writer w = JSON_WRITER(&out);
	struct error e = ERROR_INIT;

	if (filter_read(rq, &f) < 0) {
		return;
	}
	if (sandbox_list(&api->dirs, true, &l, &e) < 0) {
		api_fail_error(rq, API_QUERY_FAILED, &e);
		return;
	}
	list_write(api, &f, &l, &w);
	if (w.failed) {
		api_fail(rq, 500, API_QUERY_FAILED, "the list is too long: ask for fewer a page");
		return;
	}
	api_json(rq, 200, &out);
}

void sandboxes_get(struct http_req *rq)
{
	api_work_start(rq, list_work);
}
