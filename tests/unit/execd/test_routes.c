/* SPDX-License-Identifier: Apache-2.0 */
/* The route table against tests/api/routes.txt, both ways. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/strv.h>

#include "../../../execd/routes.h"

#include "../unit.h"

#define LIST_FILE OSBX_GOLDEN_DIR "/../api/routes.txt"

static const char *const methods[HTTP_METHOD_COUNT] = {
	[HTTP_GET] = "GET",
	[HTTP_POST] = "POST",
	[HTTP_PUT] = "PUT",
	[HTTP_PATCH] = "PATCH",
	[HTTP_DELETE] = "DELETE",
};

/* "METHOD /path" with the names of parameters left out: they are not part of the API. Caller frees.
 */
static char *without_names(const char *method, const char *path)
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

static void listed(struct strv *out)
{
	AUTO(buf) struct buf text = BUF_INIT(1 << 20);
	autoclose int fd = fd_open(LIST_FILE, O_RDONLY, 0);
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
		ck_assert_int_eq(strv_take(out, without_names(copy, space + 1)), 0);
	}
}

static void in_table(struct strv *out)
{
	for (size_t i = 0; i < routes_n; i++) {
		const char *method = routes[i].flags & HTTP_ROUTE_ANY ? "ANY"
								      : methods[routes[i].method];

		ck_assert_ptr_nonnull(method);
		ck_assert_ptr_nonnull(routes[i].handler);
		ck_assert_int_eq(strv_take(out, without_names(method, routes[i].pattern)), 0);
	}
}

static bool has(const struct strv *sv, const char *text)
{
	size_t n = 0;

	strv_for_each(sv, i) {
		n += strcmp(sv->v[i], text) == 0;
	}
	return n == 1;
}

START_TEST(same_routes)
{
	AUTO(strv) struct strv table = STRV_INIT;
	AUTO(strv) struct strv list = STRV_INIT;

	listed(&list);
	in_table(&table);
	ck_assert_uint_gt(list.n, 40);
	strv_for_each(&list, i) {
		ck_assert_msg(has(&table, list.v[i]), "not once in the table: %s", list.v[i]);
	}
	strv_for_each(&table, i) {
		ck_assert_msg(has(&list, table.v[i]), "not once in the list: %s", table.v[i]);
	}
}
END_TEST

/* Nothing but health is answered without the token. */
START_TEST(open_ones)
{
	for (size_t i = 0; i < routes_n; i++) {
		bool is_health = strcmp(routes[i].pattern, "/ping") == 0 ||
				 strcmp(routes[i].pattern, "/ready") == 0;

		ck_assert_int_eq((routes[i].flags & HTTP_ROUTE_OPEN) != 0, is_health);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("routes");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, same_routes);
	tcase_add_test(tc, open_ones);
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
