/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include <osbx/mem.h>
#include <osbx/str.h>

#include "../../../oci/auth.h"
#include "../unit.h"

#define REALM "https://auth.example/token"

static const struct {
	const char *field;
	int rc;
	bool basic;
	bool bearer;
	const char *realm;
	const char *service;
	const char *error;
} challenges[] = {
	{ "", 0, false, false, NULL, NULL, NULL },
	{ " , ,", 0, false, false, NULL, NULL, NULL },
	{ "Basic realm=\"x\"", 0, true, false, NULL, NULL, NULL },
	{ "basic", 0, true, false, NULL, NULL, NULL },
	{ "BASIC realm=x", 0, true, false, NULL, NULL, NULL },
	{ "Bearer realm=\"" REALM
	  "\",service=\"s\",scope=\"repository:a/b:pull,push\",error=\"invalid_token\"",
			0, false, true, REALM, "s", "invalid_token" },
	{ "bearer REALM = \"" REALM "\" , Service=s", 0, false, true, REALM, "s", NULL },
	{ "Bearer realm=\"a\\\"b\\\\c\"", 0, false, true, "a\"b\\c", NULL, NULL },
	{ "Bearer realm=\"\"", 0, false, true, "", NULL, NULL },
	{ "Bearer", 0, false, true, NULL, NULL, NULL },
	{ "Negotiate, Basic realm=\"x\", Bearer realm=\"y\", service=z", 0, true, true, "y", "z",
			NULL },
	{ "Negotiate YWJj/+==, Bearer realm=\"y\"", 0, false, true, "y", NULL, NULL },
	{ "Digest realm=\"d\", nonce=\"n\", Basic realm=\"x\"", 0, true, false, NULL, NULL, NULL },
	/* Of two the first counts. */
	{ "Bearer realm=\"a\",service=\"1\",Bearer realm=\"b\",service=\"2\"", 0, false, true, "a",
			"1", NULL },
	{ "Bearer realm=\"y\", unknown=\"z\", charset=UTF-8", 0, false, true, "y", NULL, NULL },
	{ "Bearer  realm=\"y\",,service=s,", 0, false, true, "y", "s", NULL },

	{ "Bearer realm=\"y", -EINVAL, false, false, NULL, NULL, NULL },
	{ "Bearer realm=\"y\\", -EINVAL, false, false, NULL, NULL, NULL },
	{ "Bearer realm=\"y\" service=\"z\"", -EINVAL, false, false, NULL, NULL, NULL },
	{ "Bearer realm=\"y\", realm=\"z\"", -EINVAL, false, false, NULL, NULL, NULL },
	{ "Bearer realm=, service=x", -EINVAL, false, false, NULL, NULL, NULL },
	{ "Bearer realm=\"y\tz\"", -EINVAL, false, false, NULL, NULL, NULL },
	{ "Bearer realm=\"y\nX: z\"", -EINVAL, false, false, NULL, NULL, NULL },
	{ "Bearer realm=\"\xc3\xa4\"", -EINVAL, false, false, NULL, NULL, NULL },
	{ "Bearer Basic realm=x", -EINVAL, false, false, NULL, NULL, NULL },
	{ "\"Bearer\" realm=x", -EINVAL, false, false, NULL, NULL, NULL },
	{ "Bearer: realm=x", -EINVAL, false, false, NULL, NULL, NULL },
	{ "=x", -EINVAL, false, false, NULL, NULL, NULL },
	{ "a, b, c, d, e, f, g, h", 0, false, false, NULL, NULL, NULL },
	{ "a, b, c, d, e, f, g, h, i", -E2BIG, false, false, NULL, NULL, NULL },
	{ "x a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1,m=1,n=1,o=1,p=1", 0, false, false,
			NULL, NULL, NULL },
	{ "x a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1,m=1,n=1,o=1,p=1,q=1", -E2BIG, false,
			false, NULL, NULL, NULL },
};

static void same(const char *got, const char *want)
{
	ck_assert_msg(want ? got && str_eq(got, want) : !got, "got %s, not %s", got ? got : "none",
			want ? want : "none");
}

START_TEST(challenge_is_parsed)
{
	AUTO(auth_challenge) struct auth_challenge c = { .n = 0 };
	int rc = auth_challenge_add(&c, span_of(challenges[_i].field));

	ck_assert_msg(rc == challenges[_i].rc, "%s: %d", challenges[_i].field, rc);
	if (rc == 0) {
		ck_assert_int_eq(c.basic, challenges[_i].basic);
		ck_assert_int_eq(c.bearer, challenges[_i].bearer);
		same(c.realm, challenges[_i].realm);
		same(c.service, challenges[_i].service);
		same(c.error, challenges[_i].error);
	}
}
END_TEST

START_TEST(challenges_of_several_fields)
{
	AUTO(auth_challenge) struct auth_challenge c = { .n = 0 };

	ck_assert_int_eq(auth_challenge_add(&c, span_of("Basic realm=\"x\"")), 0);
	ck_assert_int_eq(auth_challenge_add(&c, span_of("Bearer realm=\"y\"")), 0);
	ck_assert_int_eq(auth_challenge_add(&c, span_of("Bearer realm=\"z\",error=\"e\"")), 0);
	ck_assert(c.basic && c.bearer);
	same(c.realm, "y");
	same(c.error, NULL);
}
END_TEST

START_TEST(challenge_is_bounded)
{
	AUTO(auth_challenge) struct auth_challenge c = { .n = 0 };
	autofree char *long_value = mem_array(AUTH_HEADER_MAX + 2, 1);
	autofree char *field = NULL;

	memset(long_value, 'a', AUTH_HEADER_MAX + 1);
	ck_assert_int_eq(auth_challenge_add(&c, span_of(long_value)), -E2BIG);
	long_value[2047] = '\0';
	field = mem_printf("Bearer realm=\"%s\"", long_value);
	ck_assert_int_eq(auth_challenge_add(&c, span_of(field)), 0);
	ck_assert_uint_eq(strlen(c.realm), 2047);
	auth_challenge_done(&c);
	free(field);
	field = mem_printf("Bearer realm=\"%sb\"", long_value);
	ck_assert_int_eq(auth_challenge_add(&c, span_of(field)), -E2BIG);
}
END_TEST

/* Bytes behind the end of the field are not looked at. */
START_TEST(challenge_ends_with_its_field)
{
	static const char text[] = "Bearer realm=\"abcdef\"";

	for (size_t n = 0; n < sizeof(text) - 1; n++) {
		AUTO(auth_challenge) struct auth_challenge c = { .n = 0 };
		autofree char *exact = mem_array(n + 1, 1);
		int rc = 0;

		memcpy(exact, text, n);
		rc = auth_challenge_add(&c, (struct span){ .p = exact, .n = n });
		ck_assert(rc == 0 || rc == -EINVAL);
		ck_assert_ptr_null(c.realm);
	}
}
END_TEST

static const struct {
	const char *body;
	const char *token;
	uint64_t expires_s;
} tokens[] = {
	{ "{\"token\":\"abc\"}", "abc", 60 },
	{ "{\"access_token\":\"abc\"}", "abc", 60 },
	{ "{\"token\":\"a.b-c\",\"access_token\":\"x\",\"expires_in\":300}", "a.b-c", 300 },
	{ "{\"token\":null,\"access_token\":\"x\",\"expires_in\":null}", "x", 60 },
	{ "{\"token\":\"abc\",\"expires_in\":0,\"issued_at\":\"2026\",\"more\":[1]}", "abc", 60 },
	{ "{\"token\":\"abc\",\"expires_in\":100000000000}", "abc", AUTH_EXPIRES_S_MAX },
	{ "", NULL, 0 },
	{ "<html>", NULL, 0 },
	{ "[]", NULL, 0 },
	{ "\"abc\"", NULL, 0 },
	{ "{}", NULL, 0 },
	{ "{\"token\":\"\"}", NULL, 0 },
	{ "{\"token\":1}", NULL, 0 },
	{ "{\"token\":\"a b\"}", NULL, 0 },
	{ "{\"token\":\"a\\r\\nX: y\"}", NULL, 0 },
	{ "{\"token\":\"a\\u0000b\"}", NULL, 0 },
	{ "{\"token\":\"\\u00e4\"}", NULL, 0 },
	{ "{\"token\":\"a\",\"token\":\"b\"}", NULL, 0 },
	{ "{\"token\":\"a\",\"Token\":\"b\"}", NULL, 0 },
	{ "{\"token\":\"a\",\"expires_in\":-1}", NULL, 0 },
	{ "{\"token\":\"a\",\"expires_in\":1.5}", NULL, 0 },
	{ "{\"token\":\"a\",\"expires_in\":\"300\"}", NULL, 0 },
	{ "{\"token\":\"a\"} x", NULL, 0 },
};

START_TEST(token_is_parsed)
{
	AUTO(auth_token) struct auth_token t = { .token = NULL };
	struct error e = ERROR_INIT;
	int rc = auth_token_parse(span_of(tokens[_i].body), &t, &e);

	ck_assert_msg((rc == 0) == (tokens[_i].token != NULL), "%s: %s", tokens[_i].body, e.text);
	same(t.token, tokens[_i].token);
	ck_assert_uint_eq(t.expires_s, tokens[_i].expires_s);
	ck_assert_int_eq(e.code, rc == 0 ? ERRC_OK : ERRC_INVALID);
}
END_TEST

START_TEST(token_is_bounded)
{
	AUTO(auth_token) struct auth_token t = { .token = NULL };
	autofree char *value = mem_array(AUTH_TOKEN_MAX + 2, 1);
	autofree char *body = NULL;
	struct error e = ERROR_INIT;

	memset(value, 'a', AUTH_TOKEN_MAX + 1);
	body = mem_printf("{\"token\":\"%s\"}", value);
	ck_assert_int_eq(auth_token_parse(span_of(body), &t, &e), -1);
	ck_assert_int_eq(e.code, ERRC_LIMIT);
	error_clear(&e);
	free(body);
	body = mem_printf("{\"token\":\"%s\"}", value + 1);
	ck_assert_int_eq(auth_token_parse(span_of(body), &t, &e), 0);
	ck_assert_uint_eq(strlen(t.token), AUTH_TOKEN_MAX);
}
END_TEST

/* RFC 4648 section 10, behind a name that keeps the rest aligned. */
static const struct {
	const char *user;
	const char *password;
	const char *value;
} basics[] = {
	{ "", "", "Basic Og==" },
	{ "ab", "", "Basic YWI6" },
	{ "ab", "f", "Basic YWI6Zg==" },
	{ "ab", "fo", "Basic YWI6Zm8=" },
	{ "ab", "foo", "Basic YWI6Zm9v" },
	{ "ab", "foobar", "Basic YWI6Zm9vYmFy" },
	{ "Aladdin", "open sesame", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==" },
	{ "a", "\xff\xfe\xfb\xf0", "Basic YTr//vvw" },
};

START_TEST(basic_is_encoded)
{
	AUTO(auth_secret) char *value = auth_basic(basics[_i].user, basics[_i].password);

	ck_assert_str_eq(value, basics[_i].value);
}
END_TEST

START_TEST(credential_is_empty_behind_done)
{
	struct credential c = CREDENTIAL_INIT;

	c.user = mem_strdup("u");
	c.password = mem_strdup("p");
	c.identity_token = mem_strdup("t");
	credential_done(&c);
	ck_assert(!c.user && !c.password && !c.identity_token);
	credential_done(&c);
	credential_done(NULL);
	auth_secret_free(NULL);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("auth");
	TCase *tc = tcase_create("all");

	tcase_add_loop_test(tc, challenge_is_parsed, 0, (int)ARRAY_SIZE(challenges));
	tcase_add_test(tc, challenges_of_several_fields);
	tcase_add_test(tc, challenge_is_bounded);
	tcase_add_test(tc, challenge_ends_with_its_field);
	tcase_add_loop_test(tc, token_is_parsed, 0, (int)ARRAY_SIZE(tokens));
	tcase_add_test(tc, token_is_bounded);
	tcase_add_loop_test(tc, basic_is_encoded, 0, (int)ARRAY_SIZE(basics));
	tcase_add_test(tc, credential_is_empty_behind_done);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
