/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/mem.h>
#include <osbx/str.h>

#include "../../../execd/code_jupyter.h"
#include "../unit.h"

static struct json *parse(const char *text)
{
	struct error e = ERROR_INIT;
	struct json *v = json_parse(span_of(text), &e);

	ck_assert_msg(v, "%s: %s", text, e.text);
	return v;
}

static const struct {
	const char *url;
	uint16_t port; /* 0: refused */
	const char *host, *base;
} places[] = {
	{ "http://127.0.0.1:44771", 44771, "127.0.0.1:44771", "" },
	{ "http://localhost", 80, "localhost", "" },
	{ "http://127.9.9.9:1/", 1, "127.9.9.9:1", "" },
	{ "http://[::1]:8888/user/a//", 8888, "[::1]:8888", "/user/a" },
	{ "https://127.0.0.1:1", 0, NULL, NULL },
	{ "127.0.0.1:44771", 0, NULL, NULL },
	{ "http://10.0.0.1:80", 0, NULL, NULL },
	{ "http://127.0.0.1.example:80", 0, NULL, NULL },
	{ "http://localhost.example", 0, NULL, NULL },
	{ "http://u@127.0.0.1:80", 0, NULL, NULL },
	{ "http://127.0.0.1:0", 0, NULL, NULL },
	{ "http://127.0.0.1:65536", 0, NULL, NULL },
	{ "http://127.0.0.1:8x", 0, NULL, NULL },
	{ "http://127.0.0.1:", 0, NULL, NULL },
	{ "http://127.0.0.1:80/a b", 0, NULL, NULL },
	{ "http://127.0.0.1:80/a\r\nX: y", 0, NULL, NULL },
	{ "http://127.0.0.1:80/a?b", 0, NULL, NULL },
	{ "", 0, NULL, NULL },
};

START_TEST(where_a_server_is)
{
	AUTO(jupyter_place) struct jupyter_place p = { .port = 0 };
	struct error e = ERROR_INIT;
	int r = jupyter_place_parse(places[_i].url, &p, &e);

	ck_assert_msg((r == 0) == (places[_i].port != 0), "%s", places[_i].url);
	if (r == 0) {
		ck_assert_uint_eq(p.port, places[_i].port);
		ck_assert_str_eq(p.host, places[_i].host);
		ck_assert_str_eq(p.base, places[_i].base);
	} else {
		ck_assert_ptr_nonnull(strstr(e.text, "JUPYTER_HOST"));
	}
}
END_TEST

START_TEST(kernels)
{
	AUTO(buf) struct buf list = BUF_INIT(4096);
	AUTO(json)
	struct json *specs = parse(
			"{\"default\":\"python3\",\"kernelspecs\":{"
			"\"python3\":{\"spec\":{\"language\":\"python\"}},"
			"\"p\":{\"spec\":{\"language\":\"Python\"}},"
			"\"b\":{\"spec\":{\"language\":\"bash\"}},"
			"\"x\":{\"spec\":[]},\"y\":1,\"z\":{\"spec\":{\"language\":\"a\\u001bb\"}}}}");
	AUTO(json)
	struct json *alone = parse(
			"{\"kernelspecs\":{\"python3\":{\"spec\":{\"language\":\"python\"}}}}");

	ck_assert_str_eq(jupyter_kernel_find(specs, "python"), "p");
	ck_assert_str_eq(jupyter_kernel_find(specs, "bash"), "b");
	ck_assert_ptr_null(jupyter_kernel_find(specs, "java"));
	ck_assert_ptr_null(jupyter_kernel_find(NULL, "java"));
	ck_assert_str_eq(jupyter_kernel_find(alone, "python"), "python3");
	jupyter_languages_list(specs, &list);
	ck_assert_str_eq(list.p, "python, Python, bash, a?b");
}
END_TEST

START_TEST(ids)
{
	autofree char *long_id = mem_printf("%065d", 0);

	ck_assert(jupyter_id_is_valid("0b7c-A_9"));
	ck_assert(!jupyter_id_is_valid(NULL));
	ck_assert(!jupyter_id_is_valid(""));
	ck_assert(!jupyter_id_is_valid("../x"));
	ck_assert(!jupyter_id_is_valid("a b"));
	ck_assert(!jupyter_id_is_valid("a%2e"));
	ck_assert(!jupyter_id_is_valid(long_id));
}
END_TEST

START_TEST(requests)
{
	AUTO(buf) struct buf out = BUF_INIT(4096);
	const struct jupyter_request r = { .session = "s",
		.n = 7,
		.channel = "shell",
		.type = "execute_request",
		.code = "a\n\"b\"" };

	jupyter_request_put(&r, &out);
	AUTO(json) struct json *v = parse(out.p);
	const struct json *content = json_get(v, "content");
	bool history = false;

	ck_assert_str_eq(json_string(json_get(json_get(v, "header"), "msg_id")), "s-7");
	ck_assert_str_eq(json_string(json_get(v, "channel")), "shell");
	ck_assert_str_eq(json_string(json_get(content, "code")), "a\n\"b\"");
	ck_assert_int_eq(json_bool(json_get(content, "store_history"), &history), 0);
	ck_assert(history);
}
END_TEST

static const struct {
	const char *language, *cwd, *env, *code;
} wishes[] = {
	{ "python", NULL, NULL, NULL },
	{ "python", "/a\"b", "A=1'\n",
			"__import__('os').environ.update({\"A\":\"1'\\n\"})\n"
			"__import__('os').chdir([\"/a\\\"b\"][0])\n" },
	{ "bash", "/a'b", "A=$x=", "export A='$x='\ncd '/a'\\''b'\n" },
	{ "javascript", "/a", NULL, "process.chdir([\"/a\"][0]);\n" },
	{ "java", "/a", NULL, NULL },
};

START_TEST(preludes)
{
	AUTO(strv) struct strv envs = STRV_INIT;
	struct error e = ERROR_INIT;
	autofree char *code = NULL;

	if (wishes[_i].env) {
		ck_assert_int_eq(strv_add(&envs, wishes[_i].env), 0);
	}
	ck_assert_int_eq(jupyter_prelude(wishes[_i].language, wishes[_i].cwd, &envs, &code, &e), 0);
	ck_assert_pstr_eq(code, wishes[_i].code);
}
END_TEST

START_TEST(variables_that_cannot_be_set)
{
	AUTO(strv) struct strv envs = STRV_INIT;
	struct error e = ERROR_INIT;
	char *code = NULL;

	ck_assert_int_eq(strv_add(&envs, "A=b"), 0);
	ck_assert_int_eq(jupyter_prelude("java", NULL, &envs, &code, &e), -1);
	ck_assert_int_eq(e.code, ERRC_UNSUPPORTED);
}
END_TEST

static const struct {
	const char *document;
	enum jupyter_kind kind;
	const char *parent;
} messages[] = {
	{ "{\"header\":{\"msg_type\":\"stream\"},\"parent_header\":{\"msg_id\":\"p\"}}",
			JUPYTER_STREAM, "p" },
	{ "{\"header\":{\"msg_type\":\"update_display_data\"},\"parent_header\":{}}",
			JUPYTER_DISPLAY, "" },
	{ "{\"header\":{\"msg_type\":\"status\"},\"content\":{\"execution_state\":\"idle\"}}",
			JUPYTER_IDLE, "" },
	{ "{\"header\":{\"msg_type\":\"status\"},\"content\":{\"execution_state\":\"busy\"}}",
			JUPYTER_OTHER, "" },
	{ "{\"header\":{\"msg_type\":\"status\"},\"content\":{\"execution_state\":"
	  "\"restarting\"}}",
			JUPYTER_DEAD, "" },
	{ "{\"header\":{\"msg_type\":\"status\"},\"content\":7}", JUPYTER_OTHER, "" },
	{ "{\"header\":[],\"parent_header\":\"x\"}", JUPYTER_OTHER, "" },
	{ "{\"header\":{\"msg_type\":1}}", JUPYTER_OTHER, "" },
	{ "[]", JUPYTER_OTHER, "" },
};

START_TEST(messages_from_kernels)
{
	AUTO(json) struct json *document = parse(messages[_i].document);
	struct jupyter_message m;

	jupyter_message_read(document, &m);
	ck_assert_int_eq(m.kind, messages[_i].kind);
	ck_assert_str_eq(m.parent, messages[_i].parent);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("execd/code_jupyter_text");
	TCase *tc = tcase_create("code_jupyter_text");

	tcase_add_loop_test(tc, where_a_server_is, 0, ARRAY_SIZE(places));
	tcase_add_test(tc, kernels);
	tcase_add_test(tc, ids);
	tcase_add_test(tc, requests);
	tcase_add_loop_test(tc, preludes, 0, ARRAY_SIZE(wishes));
	tcase_add_test(tc, variables_that_cannot_be_set);
	tcase_add_loop_test(tc, messages_from_kernels, 0, ARRAY_SIZE(messages));
	suite_add_tcase(s, tc);
	return unit_run(s);
}
