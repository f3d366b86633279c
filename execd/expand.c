/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/types.h>

#include <osbx/cleanup.h>
#include <osbx/str.h>

#include "expand.h"
#include "shown.h"

#define NAME_FIRST "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
#define NAME_MORE  NAME_FIRST "0123456789"

struct expansion {
	expand_lookup_fn lookup;
	void *ctx;
	struct buf *out;
};

static int put(struct expansion *x, const char *p, size_t n, struct error *e)
{
	if (buf_append(x->out, p, n) < 0) {
		return error_set(e, ERRC_LIMIT, "the path is longer than %zu bytes", x->out->max);
	}
	return 0;
}

static int put_variable(struct expansion *x, const char *name, struct error *e)
{
	const char *value = x->lookup(x->ctx, name);

	if (!value) {
		return error_set(e, ERRC_INVALID, "variable \"%s\" in the path is not defined",
				shown(name).text);
	}
	return put(x, value, strlen(value), e);
}

/* What begins with the '$' at p. Bytes taken, or -1. */
static ssize_t put_dollar(struct expansion *x, const char *p, struct error *e)
{
	const bool braced = p[1] == '{';
	const char *name = p + 1 + braced;
	const size_t n = name[0] != '\0' && strchr(NAME_FIRST, name[0]) ? strspn(name, NAME_MORE)
									: 0;

	if (braced && (n == 0 || name[n] != '}')) {
		return error_set(e, ERRC_INVALID, "\"${\" in the path without a name and \"}\"");
	}
	if (n == 0) {
		return put(x, "$", 1, e) < 0 ? -1 : 1;
	}
	autofree char *copy = span_dup((struct span){ .p = name, .n = n });

	if (put_variable(x, copy, e) < 0) {
		return -1;
	}
	return name + n + braced - p;
}

static int expand(struct expansion *x, const char *p, struct error *e)
{
	if (p[0] == '~' && (p[1] == '\0' || p[1] == '/')) {
		if (put_variable(x, "HOME", e) < 0) {
			return -1;
		}
		p++;
	}
	while (*p != '\0') {
		size_t n = strcspn(p, "$");

		if (put(x, p, n, e) < 0) {
			return -1;
		}
		p += n;
		if (*p == '$') {
			ssize_t taken = put_dollar(x, p, e);

			if (taken < 0) {
				return -1;
			}
			p += taken;
		}
	}
	return 0;
}

int expand_path(struct span path, expand_lookup_fn lookup, void *ctx, struct buf *out,
		struct error *e)
{
	struct expansion x = { .lookup = lookup, .ctx = ctx, .out = out };
	const size_t before = out->n;
	autofree char *text = span_dup(path);

	if (!text) {
		return error_set(e, ERRC_INVALID, "the path holds a NUL");
	}
	if (expand(&x, text, e) < 0) {
		out->n = before;
		if (out->p) {
			out->p[before] = '\0';
		}
		return -1;
	}
	return 0;
}
