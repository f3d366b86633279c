/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include <osbx/mem.h>
#include <osbx/str.h>

#include "http_internal.h"

static int hex_digit(char ch)
{
	if (ch >= '0' && ch <= '9') {
		return ch - '0';
	}
	if (ch >= 'a' && ch <= 'f') {
		return ch - 'a' + 10;
	}
	return ch >= 'A' && ch <= 'F' ? ch - 'A' + 10 : -1;
}

/* NULL for a bad escape or a NUL. Caller frees. */
static char *decode(struct span in, bool plus_is_space)
{
	autofree char *out = mem_array(in.n + 1, 1);
	size_t n = 0;

	for (size_t i = 0; i < in.n; i++) {
		char ch = in.p[i];

		if (ch == '%') {
			if (in.n - i < 3) {
				return NULL;
			}
			int high = hex_digit(in.p[i + 1]);
			int low = hex_digit(in.p[i + 2]);

			if (high < 0 || low < 0) {
				return NULL;
			}
			ch = (char)(high << 4 | low);
			i += 2;
		} else if (ch == '+' && plus_is_space) {
			ch = ' ';
		}
		if (ch == '\0') {
			return NULL;
		}
		out[n++] = ch;
	}
	return TAKE_PTR(out);
}

int http_query_next(const struct http_req *rq, size_t *at, char **out_name, char **out_value)
{
	struct span rest = span_from(rq->query, *at);
	struct span pair = { .p = NULL };
	struct span name = { .p = NULL };

	/* Empty pairs ("a=1&&b=2") are nothing. */
	do {
		if (rest.n == 0) {
			return 0;
		}
		(void)span_next(&rest, '&', &pair);
	} while (pair.n == 0);
	size_t next = rest.p ? (size_t)(rest.p - rq->query.p) : rq->query.n;
	struct span value = pair;

	(void)span_next(&value, '=', &name);
	autofree char *name_text = decode(name, true);
	autofree char *value_text = decode(value.p ? value : span_of(""), true);

	if (!name_text || !value_text) {
		return -EINVAL;
	}
	*at = next;
	*out_name = TAKE_PTR(name_text);
	*out_value = TAKE_PTR(value_text);
	return 1;
}

int http_query(const struct http_req *rq, const char *name, char **out_value)
{
	size_t at = 0;

	for (;;) {
		char *pair_name = NULL;
		char *pair_value = NULL;
		int r = http_query_next(rq, &at, &pair_name, &pair_value);

		if (r <= 0) {
			if (r == 0) {
				*out_value = NULL;
			}
			return r;
		}
		bool is_it = str_eq(pair_name, name);

		free(pair_name);
		if (is_it) {
			*out_value = pair_value;
			return 0;
		}
		free(pair_value);
	}
}

char *http_param(const struct http_req *rq, size_t i)
{
	return i < HTTP_PARAMS_MAX && rq->params[i].p ? decode(rq->params[i], false) : NULL;
}

bool http_secret_eq(struct span a, struct span b)
{
	unsigned int difference = a.n == b.n ? 0 : 1;

	/* The time tells the length of a, which is what the peer sent, and nothing of b. */
	for (size_t i = 0; i < a.n; i++) {
		volatile const char *other = i < b.n ? &b.p[i] : &a.p[i];

		difference |= (unsigned int)(unsigned char)a.p[i] ^ (unsigned char)*other;
	}
	return difference == 0;
}
