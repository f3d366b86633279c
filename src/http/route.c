/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/span.h>

#include "http_internal.h"

static const char *const method_names[HTTP_METHOD_COUNT] = {
	[HTTP_GET] = "GET",
	[HTTP_HEAD] = "HEAD",
	[HTTP_POST] = "POST",
	[HTTP_PUT] = "PUT",
	[HTTP_PATCH] = "PATCH",
	[HTTP_DELETE] = "DELETE",
	[HTTP_OPTIONS] = "OPTIONS",
	[HTTP_METHOD_OTHER] = NULL,
};

enum http_method route_method(struct span name)
{
	for (size_t i = 0; i < HTTP_METHOD_OTHER; i++) {
		if (span_eq(name, span_of(method_names[i]))) {
			return (enum http_method)i;
		}
	}
	return HTTP_METHOD_OTHER;
}

void route_allow(unsigned int methods, struct buf *out)
{
	for (size_t i = 0; i < HTTP_METHOD_OTHER; i++) {
		if (!(methods & 1U << i)) {
			continue;
		}
		/* Cannot fail: all names are shorter than any buffer. */
		if ((out->n > 0 && buf_append_str(out, ", ") < 0) ||
				buf_append_str(out, method_names[i]) < 0) {
			return;
		}
	}
}

static bool is_param(struct span piece)
{
	return piece.n > 2 && piece.p[0] == '{' && piece.p[piece.n - 1] == '}';
}

/* Does the path match? Parameters are set as far as it does. */
static bool match(const char *pattern, struct span path, struct span params[HTTP_PARAMS_MAX])
{
	struct span pieces = span_of(pattern);
	struct span want = { .p = NULL };
	struct span have = { .p = NULL };
	size_t n = 0;

	while (span_next(&pieces, '/', &want)) {
		if (is_param(want) && n == HTTP_PARAMS_MAX) {
			return false;
		}
		if (is_param(want) && want.p[want.n - 2] == '*') {
			/* From its '/' on, which span_next has just dropped. */
			params[n] = path.p ? (struct span){ .p = path.p - 1, .n = path.n + 1 }
					   : span_of("");
			return true;
		}
		if (!span_next(&path, '/', &have)) {
			return false;
		}
		if (!is_param(want)) {
			if (!span_eq(want, have)) {
				return false;
			}
		} else if (have.n == 0) {
			return false;
		} else {
			params[n++] = have;
		}
	}
	return !path.p;
}

static bool takes(const struct http_route *route, enum http_method method)
{
	return (route->flags & HTTP_ROUTE_ANY) || route->method == method ||
	       (method == HTTP_HEAD && route->method == HTTP_GET);
}

/* The first row of the table that takes path and method. */
void route_find(const struct http_server *s, struct http_req *rq, struct route_match *out_match)
{
	struct route_match found = { .methods = 1U << HTTP_OPTIONS };

	for (size_t i = 0; i < s->opts.routes_n; i++) {
		const struct http_route *route = &s->opts.routes[i];
		struct span params[HTTP_PARAMS_MAX] = { { .p = NULL } };

		if (!match(route->pattern, rq->path, params)) {
			continue;
		}
		found.path_exists = true;
		found.methods |= 1U << route->method;
		if (route->method == HTTP_GET) {
			found.methods |= 1U << HTTP_HEAD;
		}
		if (takes(route, rq->method)) {
			found.route = route;
			memcpy(rq->params, params, sizeof(params));
			break;
		}
	}
	*out_match = found;
}
