/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>

#include <osbx/json.h>
#include <osbx/limits.h>
#include <osbx/mem.h>

#include "../unit.h"

static struct json *parse(const char *text)
{
	struct error e = ERROR_INIT;
	struct json *v = json_parse(span_of(text), &e);

	ck_assert_msg(v != NULL, "%s: %s", text, e.text);
	ck_assert_int_eq(e.code, ERRC_OK);
	return v;
}

static const char *const good[] = {
	"{}",
	"[]",
	"0",
	"-0",
	"\"\"",
	"true",
	" \t\r\n false \n",
	"null",
	"[1,2,3]",
	"[[[]],{}]",
	"{\"a\":{\"b\":[{\"c\":null}]}}",
	"{\"\":1}",
	"{\"a\":1,\"A\":2}",
	"[0.5,-1.25e+10,1E5,1e-300]",
	"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\uD834\\uDD1E\\ud834\\udd1e\"",
	"\"\x7f\xc3\xa9\xe2\x82\xac\xf0\x90\x8d\x88\"",
	"[ 1 , 2 ]",
	"{ \"a\" : 1 , \"b\" : 2 }",
	"123456789012345678901234567890123456789012345678901234567890123",
};

START_TEST(accepts)
{
	json_free(parse(good[_i]));
}
END_TEST

static const struct {
	const char *text;
	const char *value;
} decoded[] = {
	{ "\"\"", "" },
	{ "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t" },
	{ "\"\\u0041\\u007f\"", "A\x7f" },
	{ "\"\\u0080\\u07ff\"", "\xc2\x80\xdf\xbf" },
	{ "\"\\u0800\\uffff\"", "\xe0\xa0\x80\xef\xbf\xbf" },
	{ "\"\\ud800\\udc00\\uDBFF\\uDFFF\"", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf" },
	{ "\"\xe2\x82\xac\"", "\xe2\x82\xac" },
};

START_TEST(strings_are_decoded)
{
	AUTO(json) struct json *v = parse(decoded[_i].text);
	autofree char *text = mem_printf("{%s:%s}", decoded[_i].text, decoded[_i].text);
	AUTO(json) struct json *object = parse(text);

	ck_assert_str_eq(json_string(v), decoded[_i].value);
	ck_assert_str_eq(json_name(json_first(object)), decoded[_i].value);
	ck_assert_str_eq(json_string(json_first(object)), decoded[_i].value);
}
END_TEST

static const char *const bad[] = {
	"",
	" ",
	"{",
	"}",
	"[",
	"]",
	"[1",
	"[1,",
	"[1,]",
	"[,1]",
	"[1 2]",
	"[1}",
	"{]",
	"{\"a\"}",
	"{\"a\":}",
	"{\"a\":1,}",
	"{,\"a\":1}",
	"{a:1}",
	"{1:1}",
	"{'a':1}",
	"{\"a\":1 \"b\":2}",
	"{\"a\" 1}",
	"{} {}",
	"{}x",
	"[]]",
	"1 2",
	"nul",
	"nulll",
	"True",
	"NaN",
	"Infinity",
	"-Infinity",
	"+1",
	"01",
	"-01",
	"00",
	"1.",
	".5",
	"1.e5",
	"1e",
	"1e+",
	"--1",
	"-",
	"0x10",
	"1e999",
	"-1e999",
	"1234567890123456789012345678901234567890123456789012345678901234",
	"\"",
	"\"a",
	"\"\\\"",
	"\"\\x\"",
	"\"\\u12\"",
	"\"\\u12G4\"",
	"\"\\U0041\"",
	"\"\\u0000\"",
	"\"a\\u0000b\"",
	"{\"a\\u0000b\":1}",
	"\"\\ud834\"",
	"\"\\ud834x\"",
	"\"\\ud834\\n\"",
	"\"\\ud834\\u0041\"",
	"\"\\udd1e\"",
	"\"\\udd1e\\ud834\"",
	"\"\\",
	"\"\\u",
	"\"a\nb\"",
	"\"a\tb\"",
	"\"\x01\"",
	"\"\x1f\"",
	"\"\xff\"",
	"\"\xc0\x80\"",
	"\"\xed\xa0\x80\"",
	"\"\xe2\x82\"",
	"\xef\xbb\xbf{}",
	"\x0b{}",
	"{}\x0c",
	"[1,\x01 2]",
	"/* c */ 1",
	"// c\n1",
	"{\"a\":1,\"a\":2}",
	"{\"a\":1,\"\\u0061\":2}",
	"[{\"x\":{\"a\":1,\"b\":1,\"a\":1}}]",
	"{\"\":1,\"\":1}",
};

START_TEST(refuses)
{
	struct error e = ERROR_INIT;

	ck_assert_msg(json_parse(span_of(bad[_i]), &e) == NULL, "accepted: %s", bad[_i]);
	ck_assert_int_eq(e.code, ERRC_INVALID);
	ck_assert_int_eq(strncmp(e.text, "json: ", 6), 0);
}
END_TEST

START_TEST(bytes_are_counted)
{
	struct error e = ERROR_INIT;
	/* A buffer that ends where the text ends: reading on is an error of the sanitizer. */
	autofree char *p = malloc(3);
	AUTO(json) struct json *v = NULL;

	memcpy(p, "[12", 3);
	ck_assert_ptr_null(json_parse((struct span){ .p = p, .n = 3 }, &e));
	error_clear(&e);
	v = json_parse((struct span){ .p = p + 1, .n = 2 }, &e);
	ck_assert_ptr_nonnull(v);
	memcpy(p, "\"\\u", 3);
	ck_assert_ptr_null(json_parse((struct span){ .p = p, .n = 3 }, &e));
	error_clear(&e);
	memcpy(p, "tru", 3);
	ck_assert_ptr_null(json_parse((struct span){ .p = p, .n = 3 }, &e));
	error_clear(&e);
	ck_assert_ptr_null(json_parse((struct span){ .p = NULL, .n = 0 }, &e));
	error_clear(&e);
	ck_assert_ptr_null(json_parse((struct span){ .p = "1\0", .n = 2 }, &e));
	error_clear(&e);
	ck_assert_ptr_null(json_parse((struct span){ .p = "\"a\0b\"", .n = 5 }, &e));
}
END_TEST

static char *nested(int depth, char open, char close)
{
	char *text = mem_array((size_t)depth * 2 + 1, 1);

	memset(text, open, (size_t)depth);
	memset(text + depth, close, (size_t)depth);
	return text;
}

START_TEST(depth_is_bounded)
{
	struct error e = ERROR_INIT;
	autofree char *fits = nested(LIMIT_JSON_DEPTH, '[', ']');
	autofree char *deep = nested(LIMIT_JSON_DEPTH + 1, '[', ']');
	autofree char *abyss = nested(2000000, '[', ']');
	AUTO(buf) struct buf b = BUF_INIT(1 << 16);

	json_free(parse(fits));
	ck_assert_ptr_null(json_parse(span_of(deep), &e));
	error_clear(&e);
	ck_assert_ptr_null(json_parse(span_of(abyss), &e));
	error_clear(&e);
	for (int i = 0; i <= LIMIT_JSON_DEPTH; i++) {
		ck_assert_int_eq(buf_append_str(&b, "{\"a\":"), 0);
	}
	ck_assert_ptr_null(json_parse(buf_span(&b), &e));
	ck_assert_ptr_nonnull(strstr(e.text, "deep"));
}
END_TEST

START_TEST(nodes_are_bounded)
{
	struct error e = ERROR_INIT;
	AUTO(buf) struct buf b = BUF_INIT(1 << 20);
	AUTO(json) struct json *v = NULL;

	/* With the array itself, exactly the limit. */
	ck_assert_int_eq(buf_append_str(&b, "[0"), 0);
	for (int i = 2; i < LIMIT_JSON_NODES; i++) {
		ck_assert_int_eq(buf_append_str(&b, ",0"), 0);
	}
	ck_assert_int_eq(buf_append_str(&b, "]"), 0);
	v = json_parse(buf_span(&b), &e);
	ck_assert_ptr_nonnull(v);
	ck_assert_uint_eq(json_size(v), LIMIT_JSON_NODES - 1);
	b.p[b.n - 1] = ',';
	ck_assert_int_eq(buf_append_str(&b, "0]"), 0);
	ck_assert_ptr_null(json_parse(buf_span(&b), &e));
	ck_assert_ptr_nonnull(strstr(e.text, "too many"));
}
END_TEST

/* As many names as a document may hold, in the worst order: fast, or the test runs out of time. */
START_TEST(duplicates_among_many_names)
{
	struct error e = ERROR_INIT;
	AUTO(buf) struct buf b = BUF_INIT(4 << 20);
	AUTO(json) struct json *v = NULL;

	ck_assert_int_eq(buf_append_str(&b, "{\"n0\":0"), 0);
	for (int i = 1; i < LIMIT_JSON_NODES - 2; i++) {
		ck_assert_int_eq(buf_appendf(&b, ",\"n%d\":0", i), 0);
	}
	ck_assert_int_eq(buf_append_str(&b, "}"), 0);
	v = json_parse(buf_span(&b), &e);
	ck_assert_ptr_nonnull(v);
	b.n--;
	ck_assert_int_eq(buf_append_str(&b, ",\"n777\":0}"), 0);
	ck_assert_ptr_null(json_parse(buf_span(&b), &e));
	ck_assert_str_eq(e.text, "json: duplicate name \"n777\"");
}
END_TEST

START_TEST(get_and_types)
{
	AUTO(json) struct json *v = parse("{\"s\":\"x\",\"n\":null,\"a\":[1],\"o\":{},\"t\":true}");
	bool b = false;

	ck_assert(json_is_object(v) && !json_is_array(v) && !json_is_string(v));
	ck_assert(json_is_string(json_get(v, "s")));
	ck_assert(json_is_array(json_get(v, "a")));
	ck_assert(json_is_object(json_get(v, "o")));
	ck_assert_str_eq(json_string(json_get(v, "s")), "x");
	ck_assert_ptr_null(json_get(v, "n"));
	ck_assert_ptr_null(json_get(v, "missing"));
	ck_assert_ptr_null(json_get(v, "S"));
	ck_assert_ptr_null(json_get(json_get(v, "a"), "s"));
	ck_assert_ptr_null(json_get(NULL, "s"));
	ck_assert_ptr_null(json_string(json_get(v, "t")));
	ck_assert_ptr_null(json_string(NULL));
	ck_assert(!json_is_object(NULL) && !json_is_array(NULL) && !json_is_string(NULL));
	ck_assert_int_eq(json_bool(json_get(v, "t"), &b), 0);
	ck_assert(b);
	ck_assert_int_eq(json_bool(json_get(v, "s"), &b), -EINVAL);
	ck_assert_int_eq(json_bool(NULL, &b), -EINVAL);
	ck_assert(b);
	json_free(NULL);
}
END_TEST

START_TEST(lookup_minds_case)
{
	AUTO(json) struct json *v = parse("{\"Env\":\"first\",\"env\":\"second\"}");

	ck_assert_str_eq(json_string(json_get(v, "env")), "second");
	ck_assert_str_eq(json_string(json_get(v, "Env")), "first");
	ck_assert_ptr_null(json_get(v, "ENV"));
}
END_TEST

static const struct {
	const char *text;
	uint64_t max;
	int result;
	uint64_t value;
} numbers[] = {
	{ "0", 0, 0, 0 },
	{ "-0", 0, 0, 0 },
	{ "1", 0, -ERANGE, 0 },
	{ "65535", 65535, 0, 65535 },
	{ "65536", 65535, -ERANGE, 0 },
	{ "1e3", 5000, 0, 1000 },
	{ "1.0", 5, 0, 1 },
	{ "1.5", 5, -EINVAL, 0 },
	{ "-1", 5, -EINVAL, 0 },
	{ "-0.5", 5, -EINVAL, 0 },
	{ "9007199254740991", UINT64_MAX, 0, UINT64_C(9007199254740991) },
	{ "9007199254740992", UINT64_MAX, -ERANGE, 0 },
	{ "9007199254740993", UINT64_MAX, -ERANGE, 0 },
	{ "18446744073709551616", UINT64_MAX, -ERANGE, 0 },
	{ "1e300", UINT64_MAX, -ERANGE, 0 },
	{ "\"1\"", 5, -EINVAL, 0 },
	{ "true", 5, -EINVAL, 0 },
	{ "null", 5, -EINVAL, 0 },
	{ "[1]", 5, -EINVAL, 0 },
};

START_TEST(u64)
{
	AUTO(json) struct json *v = parse(numbers[_i].text);
	uint64_t n = 12345;

	ck_assert_int_eq(json_u64(v, numbers[_i].max, &n), numbers[_i].result);
	ck_assert_uint_eq(n, numbers[_i].result == 0 ? numbers[_i].value : 12345);
	ck_assert_int_eq(json_u64(NULL, 5, &n), -EINVAL);
}
END_TEST

START_TEST(iterates)
{
	AUTO(json) struct json *v = parse("{\"a\":1,\"b\":[true,null],\"c\":\"x\"}");
	char names[8] = "";
	size_t n = 0;

	json_for_each(child, v) {
		ck_assert_uint_lt(n, sizeof(names) - 1);
		names[n++] = json_name(child)[0];
	}
	ck_assert_str_eq(names, "abc");
	ck_assert_uint_eq(json_size(v), 3);
	ck_assert_uint_eq(json_size(json_get(v, "b")), 2);
	ck_assert_uint_eq(json_size(json_get(v, "c")), 0);
	ck_assert_uint_eq(json_size(NULL), 0);
	ck_assert_ptr_null(json_first(NULL));
	ck_assert_ptr_null(json_next(NULL));
	ck_assert_ptr_null(json_name(NULL));
	ck_assert_ptr_null(json_name(json_first(json_get(v, "b"))));
}
END_TEST

START_TEST(writes)
{
	AUTO(buf) struct buf b = BUF_INIT(1000);
	struct json_writer w = JSON_WRITER(&b);

	json_object_begin(&w, NULL);
	json_add_string(&w, "s", "a\"b\\c\n\t\x01\x7f\xe2\x82\xac");
	json_add_string(&w, "bad\xff", "\xc3");
	json_add_string(&w, "nothing", NULL);
	json_array_begin(&w, "list");
	json_add_u64(&w, NULL, UINT64_MAX);
	json_add_i64(&w, NULL, INT64_MIN);
	json_add_bool(&w, NULL, true);
	json_array_begin(&w, NULL);
	json_array_end(&w);
	json_object_begin(&w, NULL);
	json_object_end(&w);
	json_add_bool(&w, NULL, false);
	json_array_end(&w);
	json_object_begin(&w, "o");
	json_add_u64(&w, "x", 0);
	json_object_end(&w);
	json_object_end(&w);
	ck_assert(!w.failed);
	ck_assert_uint_eq(w.depth, 0);
	ck_assert_str_eq(b.p,
			"{\"s\":\"a\\\"b\\\\c\\n\\t\\u0001\\u007f\xe2\x82\xac\","
			"\"bad\xef\xbf\xbd\":\"\xef\xbf\xbd\",\"nothing\":null,"
			"\"list\":[18446744073709551615,-9223372036854775808,true,[],{},false],"
			"\"o\":{\"x\":0}}");
	json_free(parse(b.p));
}
END_TEST

START_TEST(writer_fails_sticky)
{
	AUTO(buf) struct buf b = BUF_INIT(4);
	struct json_writer w = JSON_WRITER(&b);

	json_array_begin(&w, NULL);
	json_add_string(&w, NULL, "too long");
	ck_assert(w.failed);
	json_add_u64(&w, NULL, 1);
	json_array_end(&w);
	ck_assert(w.failed);
	ck_assert_uint_le(b.n, 4);
}
END_TEST

START_TEST(end_of_nothing_aborts)
{
	AUTO(buf) struct buf b = BUF_INIT(4);
	struct json_writer w = JSON_WRITER(&b);

	json_object_end(&w);
}
END_TEST

START_TEST(value_as_it_was)
{
	static const char text[] =
			"{\"a\":[1,-2,0.5,1e+300,123456789012345,0.1,[],{},[[[]]]],"
			"\"b\":{\"c\":{\"d\":\"\xe2\x82\xac\\n\"},\"e\":true},\"f\":null,"
			"\"g\":false}";
	AUTO(json) struct json *v = parse(text);
	AUTO(buf) struct buf b = BUF_INIT(1000);
	struct json_writer w = JSON_WRITER(&b);

	json_add_value(&w, NULL, v);
	ck_assert_str_eq(b.p, text);

	buf_reset(&b);
	w = (struct json_writer)JSON_WRITER(&b);
	json_object_begin(&w, NULL);
	json_add_value(&w, "x", json_get(json_get(v, "b"), "c"));
	json_add_value(&w, "y", json_first(json_get(v, "a")));
	json_add_value(&w, "z", NULL);
	json_object_end(&w);
	ck_assert_str_eq(b.p, "{\"x\":{\"d\":\"\xe2\x82\xac\\n\"},\"y\":1,\"z\":null}");
	ck_assert_uint_eq(w.depth, 0);
}
END_TEST

START_TEST(deepest_value_is_written)
{
	autofree char *text = nested(LIMIT_JSON_DEPTH, '[', ']');
	AUTO(json) struct json *v = parse(text);
	AUTO(buf) struct buf b = BUF_INIT(1000);
	struct json_writer w = JSON_WRITER(&b);

	json_add_value(&w, NULL, v);
	ck_assert_str_eq(b.p, text);
}
END_TEST

static const char *const doubles[] = { "0.1", "1e-05", "0.30000000000000004",
	"1.7976931348623157e+308", "5e-324", "-0", "9007199254740993", "100", "1000000000000000" };

START_TEST(numbers_read_back_the_same)
{
	AUTO(json) struct json *v = parse(doubles[_i]);
	AUTO(buf) struct buf b = BUF_INIT(100);
	struct json_writer w = JSON_WRITER(&b);

	json_add_value(&w, NULL, v);
	ck_assert_double_eq(strtod(b.p, NULL), strtod(doubles[_i], NULL));
	json_free(parse(b.p));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("json");
	TCase *tc = tcase_create("all");

	tcase_add_loop_test(tc, accepts, 0, ARRAY_SIZE(good));
	tcase_add_loop_test(tc, strings_are_decoded, 0, ARRAY_SIZE(decoded));
	tcase_add_loop_test(tc, refuses, 0, ARRAY_SIZE(bad));
	tcase_add_test(tc, bytes_are_counted);
	tcase_add_test(tc, depth_is_bounded);
	tcase_add_test(tc, nodes_are_bounded);
	tcase_add_test(tc, duplicates_among_many_names);
	tcase_add_test(tc, get_and_types);
	tcase_add_test(tc, lookup_minds_case);
	tcase_add_loop_test(tc, u64, 0, ARRAY_SIZE(numbers));
	tcase_add_test(tc, iterates);
	tcase_add_test(tc, writes);
	tcase_add_test(tc, writer_fails_sticky);
	tcase_add_test_raise_signal(tc, end_of_nothing_aborts, SIGABRT);
	tcase_add_test(tc, value_as_it_was);
	tcase_add_test(tc, deepest_value_is_written);
	tcase_add_loop_test(tc, numbers_read_back_the_same, 0, ARRAY_SIZE(doubles));
	tcase_set_timeout(tc, 20);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
