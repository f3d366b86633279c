/* SPDX-License-Identifier: Apache-2.0 */
#include "../../../src/api/api_internal.h"
#include "../unit.h"

START_TEST(keys)
{
	static const struct {
		const char *key;
		bool is_valid;
	} rows[] = {
		{ "project", true },
		{ "a", true },
		{ "A-b_c.d9", true },
		{ "example.com/team", true },
		{ "a/b", true },
		{ "", false },
		{ "-a", false },
		{ "a-", false },
		{ "a b", false },
		{ "a%20", false },
		{ "/a", false },
		{ "a/", false },
		{ "a/b/c", false },
		{ "Example.com/a", false },
		{ "-x.com/a", false },
		{ "x..com/a", false },
		{ "x.com./a", false },
		{ "\xc3\xa4", false },
		{ "012345678901234567890123456789012345678901234567890123456789012", true },
		{ "0123456789012345678901234567890123456789012345678901234567890123", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		ck_assert_msg(metadata_key_is_valid(rows[i].key) == rows[i].is_valid, "\"%s\"",
				rows[i].key);
	}
	ck_assert(metadata_value_is_valid(""));
	ck_assert(metadata_value_is_valid("v1.0"));
	ck_assert(!metadata_value_is_valid("v 1"));
	ck_assert(!metadata_value_is_valid("x="));
	ck_assert(metadata_is_reserved("opensandbox.io/id"));
	ck_assert(!metadata_is_reserved("opensandbox.iox/id"));
}
END_TEST

/* Clients encode once, twice or three times. */
START_TEST(filters)
{
	static const struct {
		const char *text;
		const char *pair; /* NULL: malformed */
	} rows[] = {
		{ "tag=a", "tag=a" },
		{ "tag=a&k=v", "tag=a" },
		{ "a%2Fb=c", "a/b=c" },
		{ "a%252Fb=c", "a/b=c" },
		{ "a%25252Fb=c", "a/b=c" },
		{ "tag=", "tag=" },
		{ "", "" },
		{ "tag", NULL },
		{ "=a", NULL },
		{ "tag=a&", NULL },
		{ "tag%00=a", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO(strv) struct strv pairs = STRV_INIT;
		int r = metadata_filter(rows[i].text, &pairs);

		ck_assert_msg((r == 0) == (rows[i].pair != NULL), "\"%s\"", rows[i].text);
		if (rows[i].pair) {
			ck_assert_str_eq(pairs.n > 0 ? pairs.v[0] : "", rows[i].pair);
		}
	}
}
END_TEST

START_TEST(matching)
{
	AUTO(strv) struct strv labels = STRV_INIT;
	AUTO(strv) struct strv pairs = STRV_INIT;

	ck_assert_int_eq(strv_add(&labels, "a=1"), 0);
	ck_assert_int_eq(strv_add(&labels, "b=2"), 0);
	ck_assert_int_eq(strv_add(&labels, "opensandbox.io/x=3"), 0);
	ck_assert(metadata_matches(&labels, &pairs));
	ck_assert_int_eq(strv_add(&pairs, "b=2"), 0);
	ck_assert(metadata_matches(&labels, &pairs));
	ck_assert_int_eq(strv_add(&pairs, "a=2"), 0);
	ck_assert(!metadata_matches(&labels, &pairs));
	strv_done(&pairs);
	ck_assert_int_eq(strv_add(&pairs, "opensandbox.io/x=3"), 0);
	ck_assert_msg(!metadata_matches(&labels, &pairs), "what is hidden is not found either");
}
END_TEST

static int patched(const char *patch, struct strv *out, struct refusal *why)
{
	AUTO(strv) struct strv labels = STRV_INIT;
	struct error e = ERROR_INIT;
	AUTO(json) struct json *v = json_parse(span_of(patch), &e);

	ck_assert_ptr_nonnull(v);
	ck_assert_int_eq(strv_add(&labels, "a=1"), 0);
	ck_assert_int_eq(strv_add(&labels, "ab=2"), 0);
	return metadata_patch(v, &labels, out, why);
}

START_TEST(patches)
{
	AUTO(strv) struct strv out = STRV_INIT;
	struct refusal why = { .status = 0 };

	ck_assert_int_eq(patched("{\"a\":null,\"c\":\"3\"}", &out, &why), 0);
	ck_assert_uint_eq(out.n, 2);
	ck_assert_str_eq(out.v[0], "ab=2");
	ck_assert_str_eq(out.v[1], "c=3");
	strv_done(&out);
	ck_assert_int_eq(patched("{\"a\":\"9\"}", &out, &why), 0);
	ck_assert_uint_eq(out.n, 2);
	ck_assert_str_eq(out.v[1], "a=9");
	ck_assert_int_eq(patched("{\"a\":1}", &out, &why), -1);
	ck_assert_int_eq(why.status, 422);
	ck_assert_int_eq(patched("{\"opensandbox.io/a\":\"1\"}", &out, &why), -1);
	ck_assert_int_eq(why.status, 400);
	ck_assert_str_eq(why.code, "INVALID_METADATA_LABEL");
	ck_assert_int_eq(patched("{\"a b\":null}", &out, &why), -1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("metadata");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, keys);
	tcase_add_test(tc, filters);
	tcase_add_test(tc, matching);
	tcase_add_test(tc, patches);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
