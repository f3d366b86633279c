/* SPDX-License-Identifier: Apache-2.0 */
/*
 * routes - a table of routes beside a list of them in tests/api.
 */
#ifndef OSBX_TESTS_ROUTES_H
#define OSBX_TESTS_ROUTES_H

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include <osbx/fd.h>
#include <osbx/http.h>
#include <osbx/mem.h>
#include <osbx/strv.h>

#include "unit.h"

static const char *const route_methods[HTTP_METHOD_COUNT] = {
	[HTTP_GET] = "GET",
	[HTTP_POST] = "POST",
	[HTTP_PUT] = "PUT",
	[HTTP_PATCH] = "PATCH",
	[HTTP_DELETE] = "DELETE",
};

/* "METHOD /path" with the names of parameters left out: they are not part of the API. Caller frees.
 */
static inline char *route_without_names(const char *method, const char *path)
{
	AUTO(buf) struct buf out = BUF_INIT(512);
	bool is_inside = false;

	ck_assert_int_eq(buf_appendf(&out, "%s ", method), 0);
	for (; *path; path++) {
		if (*path == '}') {
			is_inside = false;
		}
		if (!is_inside || *path == '*') {
			ck_assert_int_eq(buf_append(&out, path, 1), 0);
		}
		if (*path == '{') {
			is_inside = true;
		}
	}
	return buf_take(&out);
}

static inline void routes_listed(const char *path, struct strv *out)
{
	AUTO(buf) struct buf text = BUF_INIT(1 << 20);
	autoclose int fd = fd_open(path, O_RDONLY, 0);
	struct span line;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fd_read_all(fd, &text), 0);
	for (struct span rest = buf_span(&text); span_next(&rest, '\n', &line);) {
		if (line.n == 0 || line.p[0] == '#') {
			continue;
		}
		autofree char *copy = span_dup(line);
		char *space = strchr(copy, ' ');

		ck_assert_ptr_nonnull(space);
		*space = '\0';
		ck_assert_int_eq(strv_take(out, route_without_names(copy, space + 1)), 0);
	}
}

static inline void routes_in(const struct http_route *table, size_t n, struct strv *out)
{
	for (size_t i = 0; i < n; i++) {
		const char *method = table[i].flags & HTTP_ROUTE_ANY
						     ? "ANY"
						     : route_methods[table[i].method];

		ck_assert_ptr_nonnull(method);
		ck_assert_ptr_nonnull(table[i].handler);
		ck_assert_int_eq(strv_take(out, route_without_names(method, table[i].pattern)), 0);
	}
}

static inline bool routes_have(const struct strv *sv, const char *text)
{
	size_t n = 0;

	strv_for_each(sv, i) {
		n += strcmp(sv->v[i], text) == 0;
	}
	return n == 1;
}

/* Each of one list is once in the other. */
static inline void routes_same(const struct strv *table, const struct strv *list)
{
	strv_for_each(list, i) {
		ck_assert_msg(routes_have(table, list->v[i]), "not once in the table: %s",
				list->v[i]);
	}
	strv_for_each(table, i) {
		ck_assert_msg(routes_have(list, table->v[i]), "not once in the list: %s",
				table->v[i]);
	}
}

#endif
