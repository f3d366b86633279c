/* SPDX-License-Identifier: Apache-2.0 */
#include "../../../src/http/http_internal.h"
#include "served.h"

static void handler(struct http_req *rq)
{
	(void)rq;
}

static const struct http_route table[] = {
	{ HTTP_GET, "/", handler },
	{ HTTP_GET, "/a/b", handler },
	{ HTTP_POST, "/a/b", handler },
	{ HTTP_GET, "/a/{x}", handler },
	{ HTTP_DELETE, "/a/{x}", handler },
	{ HTTP_GET, "/a/{x}/c/{y}", handler },
	{ HTTP_HEAD, "/head", handler },
	{ HTTP_GET, "/p/{port}/{rest*}", handler, HTTP_ROUTE_ANY },
	{ HTTP_GET, "/{a}/{b}/{c}/{d}", handler },
};

static const struct {
	enum http_method method;
	const char *path;
	int row;            /* -1: none */
	const char *params; /* "x|y|" */
} paths[] = {
	{ HTTP_GET, "/", 0, "" },
	{ HTTP_HEAD, "/", 0, "" },
	{ HTTP_GET, "/a/b", 1, "" },
	{ HTTP_POST, "/a/b", 2, "" },
	{ HTTP_GET, "/a/bb", 3, "bb|" },
	{ HTTP_DELETE, "/a/b", 4, "b|" },
	{ HTTP_GET, "/a/%2F", 3, "%2F|" },
	{ HTTP_GET, "/a/", -1, "" },
	{ HTTP_GET, "/a", -1, "" },
	{ HTTP_GET, "/a/b/", -1, "" },
	{ HTTP_GET, "//a/b", -1, "" },
	{ HTTP_GET, "/a/1/c/2", 5, "1|2|" },
	{ HTTP_GET, "/a//c/2", -1, "" },
	{ HTTP_GET, "/1/2/3/4", 8, "1|2|3|4|" },
	{ HTTP_GET, "/1/2/3/4/5", -1, "" },
	{ HTTP_HEAD, "/head", 6, "" },
	{ HTTP_GET, "/head", -1, "" },
	{ HTTP_PUT, "/p/80", 7, "80||" },
	{ HTTP_OPTIONS, "/p/80/", 7, "80|/|" },
	{ HTTP_METHOD_OTHER, "/p/80/a//b/", 7, "80|/a//b/|" },
	{ HTTP_GET, "/p//a", -1, "" },
	{ HTTP_GET, "/p/", -1, "" },
	{ HTTP_GET, "", -1, "" },
	{ HTTP_GET, "*", -1, "" },
};

START_TEST(rows)
{
	struct http_server s = { .opts = { .routes = table, .routes_n = ARRAY_SIZE(table) } };
	struct http_req rq = {
		.method = paths[_i].method,
		.path = span_of(paths[_i].path),
	};
	struct route_match found = { .route = NULL };
	AUTO(buf) struct buf params = BUF_INIT(100);

	route_find(&s, &rq, &found);
	int row = found.route ? (int)(found.route - table) : -1;

	ck_assert_msg(row == paths[_i].row, "%s: %d", paths[_i].path, row);
	for (size_t i = 0; i < HTTP_PARAMS_MAX && rq.params[i].p; i++) {
		ck_assert_int_eq(buf_appendf(&params, "%.*s|", (int)rq.params[i].n, rq.params[i].p),
				0);
	}
	ck_assert_str_eq(buf_span(&params).p, paths[_i].params);
}
END_TEST

START_TEST(methods)
{
	struct http_server s = { .opts = { .routes = table, .routes_n = ARRAY_SIZE(table) } };
	struct http_req rq = { .method = HTTP_PATCH, .path = span_of("/a/b") };
	struct route_match found = { .route = NULL };
	AUTO(buf) struct buf allow = BUF_INIT(100);

	route_find(&s, &rq, &found);
	ck_assert_ptr_null(found.route);
	ck_assert(found.path_exists);
	route_allow(found.methods, &allow);
	ck_assert_str_eq(buf_span(&allow).p, "GET, HEAD, POST, DELETE, OPTIONS");
	ck_assert_int_eq(route_method(span_of("PATCH")), HTTP_PATCH);
	ck_assert_int_eq(route_method(span_of("patch")), HTTP_METHOD_OTHER);
	ck_assert_int_eq(route_method(span_of("")), HTTP_METHOD_OTHER);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("http/route");
	TCase *tc = tcase_create("route");

	tcase_add_loop_test(tc, rows, 0, ARRAY_SIZE(paths));
	tcase_add_test(tc, methods);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
