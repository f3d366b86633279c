/* SPDX-License-Identifier: Apache-2.0 */
#include "served.h"

static const struct {
	const char *query;
	const char *pairs; /* "name=value;" of each, decoded */
	int end;           /* 0 or -EINVAL */
} queries[] = {
	{ "", "", 0 },
	{ "a", "a=;", 0 },
	{ "a=", "a=;", 0 },
	{ "=b", "=b;", 0 },
	{ "a=b", "a=b;", 0 },
	{ "a=b&c=d", "a=b;c=d;", 0 },
	{ "&&a=b&&c=d&", "a=b;c=d;", 0 },
	{ "a=b=c", "a=b=c;", 0 },
	{ "a+b=c+d", "a b=c d;", 0 },
	{ "a%20b=%2f%2F%c3%bc", "a b=//\xc3\xbc;", 0 },
	{ "a=%26%3d", "a=&=;", 0 },
	{ "a=b&c=%", "a=b;", -EINVAL },
	{ "a=%4", "", -EINVAL },
	{ "a=%4&b=c", "", -EINVAL },
	{ "a=%zz", "", -EINVAL },
	{ "a=%00", "", -EINVAL },
	{ "%00", "", -EINVAL },
	{ "a=b?c", "a=b?c;", 0 },
};

START_TEST(pairs)
{
	struct http_req rq = { .query = span_of(queries[_i].query) };
	AUTO(buf) struct buf all = BUF_INIT(1000);
	size_t at = 0;
	int r = 1;

	while (r > 0) {
		autofree char *name = NULL;
		autofree char *value = NULL;

		r = http_query_next(&rq, &at, &name, &value);
		if (r > 0) {
			ck_assert_int_eq(buf_appendf(&all, "%s=%s;", name, value), 0);
		}
	}
	ck_assert_int_eq(r, queries[_i].end);
	ck_assert_str_eq(buf_span(&all).p, queries[_i].pairs);
}
END_TEST

START_TEST(one_name)
{
	struct http_req rq = { .query = span_of("a=1&b=2&a=3&%63=4&d=%") };
	static const struct {
		const char *name;
		const char *value;
		int r;
	} rows[] = { { "a", "1", 0 }, { "b", "2", 0 }, { "c", "4", 0 }, { "A", NULL, -EINVAL } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		autofree char *value = NULL;

		ck_assert_int_eq(http_query(&rq, rows[i].name, &value), rows[i].r);
		ck_assert_pstr_eq(value, rows[i].value);
	}
	rq.query = span_of("x=1");
	autofree char *value = mem_strdup("old");
	char *absent = value;

	ck_assert_int_eq(http_query(&rq, "y", &absent), 0);
	ck_assert_ptr_null(absent);
}
END_TEST

START_TEST(params)
{
	struct http_req rq = { .params = { span_of("a%20b+c"), span_of("%2"), span_of("%00") } };
	autofree char *first = http_param(&rq, 0);

	/* '+' is a space in queries only. */
	ck_assert_str_eq(first, "a b+c");
	ck_assert_ptr_null(http_param(&rq, 1));
	ck_assert_ptr_null(http_param(&rq, 2));
	ck_assert_ptr_null(http_param(&rq, 3));
	ck_assert_ptr_null(http_param(&rq, 4));
}
END_TEST

START_TEST(secrets)
{
	static const struct {
		const char *a, *b;
		bool same;
	} rows[] = {
		{ "", "", true },
		{ "a", "a", true },
		{ "abc", "abd", false },
		{ "bbc", "abc", false },
		{ "abc", "ab", false },
		{ "ab", "abc", false },
		{ "", "a", false },
		{ "a", "", false },
		{ "\xff", "\x7f", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		ck_assert_int_eq(http_secret_eq(span_of(rows[i].a), span_of(rows[i].b)),
				rows[i].same);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("http/query");
	TCase *tc = tcase_create("query");

	tcase_add_loop_test(tc, pairs, 0, ARRAY_SIZE(queries));
	tcase_add_test(tc, one_name);
	tcase_add_test(tc, params);
	tcase_add_test(tc, secrets);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
