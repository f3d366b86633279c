/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/jsondec.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/str.h>
#include <osbx/strv.h>

#include "../unit.h"

struct inner {
	char *name;
	uint64_t port;
};

struct outer {
	char *text;
	struct strv list;
	uint64_t number;
	bool flag;
	struct inner inner;
	int custom;
};

static int custom_decode(const struct json *v, void *out, struct error *e)
{
	const char *s = json_string(v);

	if (!s) {
		return error_set(e, ERRC_INVALID, "[%d]: not this", 3);
	}
	if (!str_eq(s, "yes")) {
		return error_set(e, ERRC_LIMIT, "expected yes");
	}
	*(int *)out = 42;
	return 0;
}

static const struct jsondec_field inner_fields[] = {
	{ "name", JSONDEC_STRING, offsetof(struct inner, name), JSONDEC_REQUIRED, 4, NULL, NULL },
	{ "port", JSONDEC_U64, offsetof(struct inner, port), 0, 65535, NULL, NULL },
	{ NULL },
};

static const struct jsondec_field outer_fields[] = {
	{ "text", JSONDEC_STRING, offsetof(struct outer, text), 0, 0, NULL, NULL },
	{ "list", JSONDEC_STRV, offsetof(struct outer, list), 0, 20, NULL, NULL },
	{ "number", JSONDEC_U64, offsetof(struct outer, number), 0, 0, NULL, NULL },
	{ "flag", JSONDEC_BOOL, offsetof(struct outer, flag), 0, 0, NULL, NULL },
	{ "inner", JSONDEC_OBJECT, offsetof(struct outer, inner), 0, 0, inner_fields, NULL },
	{ "custom", JSONDEC_CUSTOM, offsetof(struct outer, custom), 0, 0, NULL, custom_decode },
	{ NULL },
};

static void outer_done(struct outer *o)
{
	free(o->text);
	free(o->inner.name);
	strv_done(&o->list);
}
AUTO_DEFINE(outer, struct outer, outer_done);

static int decode(const char *text, const struct jsondec_field *fields, void *out, struct error *e)
{
	AUTO(json) struct json *v = json_parse(span_of(text), e);

	ck_assert_msg(v != NULL, "%s: %s", text, e->text);
	return jsondec_object(v, fields, out, e);
}

START_TEST(fills_all_kinds)
{
	struct error e = ERROR_INIT;
	AUTO(outer) struct outer o = { .number = 1 };

	ck_assert_int_eq(
			decode("{\"text\":\"t\",\"list\":[\"a\",\"bc\"],\"number\":9007199254740991,"
			       "\"flag\":true,\"inner\":{\"name\":\"abcd\",\"port\":65535},"
			       "\"custom\":\"yes\",\"unknown\":[1]}",
					outer_fields, &o, &e),
			0);
	ck_assert_str_eq(o.text, "t");
	ck_assert_uint_eq(o.list.n, 2);
	ck_assert_str_eq(o.list.v[1], "bc");
	ck_assert_uint_eq(o.number, UINT64_C(9007199254740991));
	ck_assert(o.flag);
	ck_assert_str_eq(o.inner.name, "abcd");
	ck_assert_uint_eq(o.inner.port, 65535);
	ck_assert_int_eq(o.custom, 42);
}
END_TEST

START_TEST(absent_and_null_leave_the_member)
{
	struct error e = ERROR_INIT;
	AUTO(outer) struct outer o = { .number = 7, .custom = 8 };

	ck_assert_int_eq(decode("{}", outer_fields, &o, &e), 0);
	ck_assert_int_eq(decode("{\"text\":null,\"list\":null,\"number\":null,\"flag\":null,"
				"\"inner\":null,\"custom\":null}",
					 outer_fields, &o, &e),
			0);
	ck_assert_ptr_null(o.text);
	ck_assert_uint_eq(o.list.n, 0);
	ck_assert_uint_eq(o.number, 7);
	ck_assert_int_eq(o.custom, 8);
}
END_TEST

START_TEST(decoding_twice_replaces)
{
	struct error e = ERROR_INIT;
	AUTO(outer) struct outer o = { .number = 0 };

	ck_assert_int_eq(
			decode("{\"text\":\"a\",\"list\":[\"a\",\"b\"]}", outer_fields, &o, &e), 0);
	ck_assert_int_eq(decode("{\"text\":\"b\",\"list\":[\"c\"]}", outer_fields, &o, &e), 0);
	ck_assert_str_eq(o.text, "b");
	ck_assert_uint_eq(o.list.n, 1);
	ck_assert_str_eq(o.list.v[0], "c");
}
END_TEST

static const struct {
	const char *text;
	enum errc code;
	const char *error;
} failures[] = {
	{ "[]", ERRC_INVALID, "expected an object" },
	{ "null", ERRC_INVALID, "expected an object" },
	{ "{\"text\":1}", ERRC_INVALID, "text: expected a string" },
	{ "{\"list\":\"a\"}", ERRC_INVALID, "list: expected an array of strings" },
	{ "{\"list\":{}}", ERRC_INVALID, "list: expected an array of strings" },
	{ "{\"list\":[\"a\",\"b\",3]}", ERRC_INVALID, "list[2]: expected a string" },
	{ "{\"list\":[null]}", ERRC_INVALID, "list[0]: expected a string" },
	{ "{\"list\":[\"1234567890\",\"123456789\"]}", ERRC_LIMIT,
			"list: longer than 20 bytes in all" },
	{ "{\"number\":-1}", ERRC_INVALID, "number: expected a whole number, 0 or more" },
	{ "{\"number\":\"1\"}", ERRC_INVALID, "number: expected a whole number, 0 or more" },
	{ "{\"number\":9007199254740992}", ERRC_LIMIT, "number: larger than 9007199254740991" },
	{ "{\"flag\":1}", ERRC_INVALID, "flag: expected true or false" },
	{ "{\"inner\":[]}", ERRC_INVALID, "inner: expected an object" },
	{ "{\"inner\":{}}", ERRC_INVALID, "inner.name: missing" },
	{ "{\"inner\":{\"name\":null}}", ERRC_INVALID, "inner.name: missing" },
	{ "{\"inner\":{\"name\":\"abcde\"}}", ERRC_LIMIT, "inner.name: longer than 4 bytes" },
	{ "{\"inner\":{\"name\":\"a\",\"port\":65536}}", ERRC_LIMIT,
			"inner.port: larger than 65535" },
	{ "{\"custom\":\"no\"}", ERRC_LIMIT, "custom: expected yes" },
	{ "{\"custom\":[]}", ERRC_INVALID, "custom[3]: not this" },
	{ "{\"Text\":\"a\"}", ERRC_INVALID, "Text: expected the name \"text\"" },
	{ "{\"text\":\"a\",\"TEXT\":\"b\"}", ERRC_INVALID, "TEXT: expected the name \"text\"" },
	{ "{\"inner\":{\"name\":\"a\",\"Name\":\"b\"}}", ERRC_INVALID,
			"inner.Name: expected the name \"name\"" },
};

START_TEST(errors_carry_the_path)
{
	struct error e = ERROR_INIT;
	AUTO(outer) struct outer o = { .number = 0 };

	ck_assert_int_eq(decode(failures[_i].text, outer_fields, &o, &e), -1);
	ck_assert_str_eq(e.text, failures[_i].error);
	ck_assert_int_eq(e.code, failures[_i].code);
}
END_TEST

START_TEST(no_value_is_no_object)
{
	struct error e = ERROR_INIT;
	AUTO(outer) struct outer o = { .number = 0 };

	ck_assert_int_eq(jsondec_object(NULL, outer_fields, &o, &e), -1);
	ck_assert_str_eq(e.text, "expected an object");
}
END_TEST

static const struct jsondec_field strict_fields[] = {
	{ "a", JSONDEC_BOOL, 0, 0, 0, NULL, NULL },
	{ "b", JSONDEC_BOOL, 1, JSONDEC_REQUIRED | JSONDEC_STRICT, 0, NULL, NULL },
	{ NULL },
};

static const struct jsondec_field strict_end_fields[] = {
	{ "b", JSONDEC_BOOL, 1, 0, 0, NULL, NULL },
	{ .name = NULL, .flags = JSONDEC_STRICT },
};

START_TEST(strict_refuses_unknown)
{
	struct error e = ERROR_INIT;
	bool members[2] = { false, false };

	ck_assert_int_eq(decode("{\"b\":true}", strict_fields, members, &e), 0);
	ck_assert(members[1]);
	ck_assert_int_eq(decode("{\"b\":true,\"c\":1}", strict_fields, members, &e), -1);
	ck_assert_str_eq(e.text, "c: unknown member");
	error_clear(&e);
	ck_assert_int_eq(decode("{\"a\":true}", strict_fields, members, &e), -1);
	ck_assert_str_eq(e.text, "b: missing");
	error_clear(&e);
	ck_assert_int_eq(decode("{\"a\":true}", strict_end_fields, members, &e), -1);
	ck_assert_str_eq(e.text, "a: unknown member");
}
END_TEST

START_TEST(lists_are_bounded)
{
	static const struct jsondec_field fields[] = {
		{ "list", JSONDEC_STRV, 0, 0, 0, NULL, NULL },
		{ NULL },
	};
	struct error e = ERROR_INIT;
	AUTO(strv) struct strv sv = STRV_INIT;
	AUTO(buf) struct buf b = BUF_INIT(1 << 20);

	ck_assert_int_eq(buf_append_str(&b, "{\"list\":[\"\""), 0);
	for (int i = 0; i < LIMIT_ARGS; i++) {
		ck_assert_int_eq(buf_append_str(&b, ",\"\""), 0);
	}
	ck_assert_int_eq(buf_append_str(&b, "]}"), 0);
	ck_assert_int_eq(decode(b.p, fields, &sv, &e), -1);
	ck_assert_int_eq(e.code, ERRC_LIMIT);
	ck_assert_str_eq(e.text, "list: more than 131072 strings");
}
END_TEST

START_TEST(long_names_do_not_overflow)
{
	struct error e = ERROR_INIT;
	bool members[2] = { false, false };
	AUTO(buf) struct buf b = BUF_INIT(4096);

	ck_assert_int_eq(buf_append_str(&b, "{\"b\":true,\""), 0);
	for (int i = 0; i < 1000; i++) {
		ck_assert_int_eq(buf_append_str(&b, "x"), 0);
	}
	ck_assert_int_eq(buf_append_str(&b, "\":1}"), 0);
	ck_assert_int_eq(decode(b.p, strict_fields, members, &e), -1);
	ck_assert_int_eq(e.truncated, 1);
	ck_assert_uint_eq(strlen(e.text), ERROR_TEXT_MAX - 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("jsondec");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, fills_all_kinds);
	tcase_add_test(tc, absent_and_null_leave_the_member);
	tcase_add_test(tc, decoding_twice_replaces);
	tcase_add_loop_test(tc, errors_carry_the_path, 0, ARRAY_SIZE(failures));
	tcase_add_test(tc, no_value_is_no_object);
	tcase_add_test(tc, strict_refuses_unknown);
	tcase_add_test(tc, lists_are_bounded);
	tcase_add_test(tc, long_names_do_not_overflow);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
