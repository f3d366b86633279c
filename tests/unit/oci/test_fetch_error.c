/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/mem.h>
#include <osbx/str.h>

#include "../../../oci/fetch_error.h"
#include "../unit.h"

static const struct {
	const char *body;
	const char *code;
	const char *message;
} answers[] = {
	{ "{\"errors\":[{\"code\":\"MANIFEST_UNKNOWN\",\"message\":\"manifest unknown\"}]}",
			"MANIFEST_UNKNOWN", "manifest unknown" },
	{ "{\"errors\":[{\"code\":\"A\",\"message\":\"b\"},{\"code\":\"C\",\"message\":\"d\"}]}",
			"A", "b" },
	{ "{\"errors\":[{\"code\":\"DENIED\",\"detail\":{\"x\":[1]}}]}", "DENIED", "" },
	{ "{\"details\":\"incorrect username or password\"}", "",
			"incorrect username or password" },
	{ "{\"error\":\"invalid_grant\",\"error_description\":\"expired\"}", "", "expired" },
	{ "{\"error\":\"invalid_grant\"}", "", "invalid_grant" },
	{ "{\"message\":\"no\"}", "", "no" },
	{ "{\"errors\":[{\"message\":\"a\\u001b[31m\\u0007\\u009b\\nb\"}]}", "", "a?[31m???b" },
	{ "{\"errors\":[]}", "", "" },
	{ "{\"errors\":{}}", "", "" },
	{ "{\"errors\":[1]}", "", "" },
	{ "{\"errors\":[{\"code\":7,\"message\":[]}]}", "", "" },
	{ "{\"errors\":[{\"code\":\"A\",\"code\":\"B\"}]}", "", "" },
	{ "[]", "", "" },
	{ "<html>502</html>", "", "" },
	{ "", "", "" },
};

START_TEST(answers_are_read)
{
	struct answer a;

	answer_parse(span_of(answers[_i].body), &a);
	ck_assert_str_eq(a.code, answers[_i].code);
	ck_assert_str_eq(a.message, answers[_i].message);
}
END_TEST

START_TEST(answers_are_bounded)
{
	autofree char *value = mem_array(5001, 1);
	autofree char *body = NULL;
	struct answer a;

	memset(value, 'a', 5000);
	body = mem_printf("{\"errors\":[{\"code\":\"%s\",\"message\":\"%s\"}]}", value, value);
	answer_parse(span_of(body), &a);
	ck_assert_uint_eq(strlen(a.code), ANSWER_CODE_MAX - 1);
	ck_assert_uint_eq(strlen(a.message), ANSWER_MESSAGE_MAX - 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fetch_error");
	TCase *tc = tcase_create("all");

	tcase_add_loop_test(tc, answers_are_read, 0, (int)ARRAY_SIZE(answers));
	tcase_add_test(tc, answers_are_bounded);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
