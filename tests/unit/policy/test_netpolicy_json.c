/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/mem.h>
#include <osbx/netpolicy.h>
#include <osbx/str.h>

#include "../unit.h"

static struct json *doc(const char *text)
{
	struct error e = ERROR_INIT;
	struct json *v = json_parse(span_of(text), &e);

	ck_assert_msg(v != NULL, "%s: %s", text, e.text);
	return v;
}

static void parse(const char *text, struct netpolicy *out)
{
	AUTO(json) struct json *v = doc(text);
	struct error e = ERROR_INIT;

	ck_assert_msg(netpolicy_parse(v, out, &e) == 0, "%s: %s", text, e.text);
}

/* The policy as JSON; caller frees. */
static char *format(const struct netpolicy *p)
{
	AUTO(buf) struct buf b = BUF_INIT(1U << 20);
	struct json_writer w = JSON_WRITER(&b);

	netpolicy_format(p, &w, NULL);
	ck_assert(!w.failed);
	return buf_take(&b);
}

#define RULE(action, target)    "{\"action\":\"" action "\",\"target\":\"" target "\"}"
#define ALLOW(target)           RULE("allow", target)
#define DENY(target)            RULE("deny", target)
#define POLICY(fallback, rules) "{\"defaultAction\":\"" fallback "\",\"egress\":[" rules "]}"

static const char *const documents[][2] = {
	{ "{}", POLICY("deny", "") },
	{ "null", POLICY("deny", "") },
	{ "{\"egress\":null}", POLICY("deny", "") },
	{ "{\"egress\":[]}", POLICY("deny", "") },
	{ "{\"defaultAction\":\"allow\"}", POLICY("allow", "") },
	{ "{\"defaultAction\":null}", POLICY("deny", "") },
	{ "{\"defaultAction\":\"deny\",\"more\":[1]}", POLICY("deny", "") },
	{ "{\"egress\":[{\"target\":\"A.test\"}]}", POLICY("deny", DENY("A.test")) },
	{ "{\"egress\":[{\"target\":\"a.test\",\"action\":null,\"note\":1}]}",
			POLICY("deny", DENY("a.test")) },
	{ POLICY("allow", DENY("a.test") "," ALLOW("*.b.test:443/tcp") "," ALLOW("10.0.0.0/8")),
			POLICY("allow", DENY("a.test") "," ALLOW("*.b.test:443/tcp") "," ALLOW(
							"10.0.0.0/8")) },
	{ POLICY("deny", ALLOW("*")), POLICY("allow", "") },
	{ POLICY("allow", ALLOW("a.test") "," DENY("*")), POLICY("deny", ALLOW("a.test")) },
	{ POLICY("deny", ALLOW("a.test") "," DENY("a.test")),
			POLICY("deny", ALLOW("a.test") "," DENY("a.test")) },
};

START_TEST(document_there_and_back)
{
	AUTO(netpolicy) struct netpolicy p = { .n = 0 };
	AUTO(netpolicy) struct netpolicy again = { .n = 0 };

	parse(documents[_i][0], &p);
	autofree char *text = format(&p);

	ck_assert_str_eq(text, documents[_i][1]);
	parse(text, &again);
	autofree char *second = format(&again);

	ck_assert_str_eq(second, text);
}
END_TEST

START_TEST(nothing_is_deny)
{
	AUTO(netpolicy) struct netpolicy p = { .fallback = NETPOLICY_ALLOW };
	struct error e = ERROR_INIT;

	ck_assert_int_eq(netpolicy_parse(NULL, &p, &e), 0);
	ck_assert_int_eq(p.fallback, NETPOLICY_DENY);
	ck_assert_uint_eq(p.n, 0);
}
END_TEST

static const char *const bad_documents[][2] = {
	{ "[]", "a network policy must be an object" },
	{ "\"deny\"", "a network policy must be an object" },
	{ "1.5", "a network policy must be an object" },
	{ "{\"defaultAction\":\"maybe\"}", "defaultAction: must be \"allow\" or \"deny\"" },
	{ "{\"defaultAction\":\"Allow\"}", "defaultAction: must be" },
	{ "{\"defaultAction\":1}", "defaultAction: must be" },
	{ "{\"egress\":{}}", "egress: must be an array" },
	{ "{\"egress\":\"a.test\"}", "egress: must be an array" },
	{ "{\"egress\":[\"a.test\"]}", "egress[0]: must be an object" },
	{ "{\"egress\":[null]}", "egress[0]: must be an object" },
	{ "{\"egress\":[{}]}", "egress[0].target: must be a string" },
	{ "{\"egress\":[{\"target\":1}]}", "egress[0].target: must be a string" },
	{ POLICY("deny", ALLOW("a.test") "," RULE("drop", "b.test")), "egress[1].action: must be" },
	{ POLICY("deny", ALLOW("a.test") "," ALLOW("b.test") "," ALLOW("b test")),
			"egress[2].target: \"b test\" is no host name" },
	{ POLICY("deny", ALLOW("")), "egress[0].target: is empty" },
};

START_TEST(bad_document)
{
	AUTO(json) struct json *v = doc(bad_documents[_i][0]);
	struct netpolicy p = { .fallback = NETPOLICY_ALLOW, .n = 77 };
	struct error e = ERROR_INIT;

	ck_assert_int_eq(netpolicy_parse(v, &p, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
	ck_assert_msg(str_after(e.text, bad_documents[_i][1]) != NULL, "%s", e.text);
	ck_assert_int_eq(p.fallback, NETPOLICY_ALLOW);
	ck_assert_uint_eq(p.n, 77);
}
END_TEST

/* An array of n rules (or targets) without end. */
static char *many(size_t n, bool is_rules)
{
	AUTO(buf) struct buf b = BUF_INIT(1U << 20);

	ck_assert_int_eq(buf_append_str(&b, "["), 0);
	for (size_t i = 0; i < n; i++) {
		ck_assert_int_eq(buf_appendf(&b,
						 is_rules ? "%s{\"target\":\"h%zu.test\"}"
							  : "%s\"h%zu.test\"",
						 i ? "," : "", i),
				0);
	}
	ck_assert_int_eq(buf_append_str(&b, "]"), 0);
	return buf_take(&b);
}

START_TEST(rules_without_end)
{
	autofree char *whole = many(NETPOLICY_RULES_MAX, true);
	autofree char *more = many(NETPOLICY_RULES_MAX + 1, true);
	autofree char *targets = many(NETPOLICY_RULES_MAX + 1, false);
	AUTO(json) struct json *good = doc(whole);
	AUTO(json) struct json *bad = doc(more);
	AUTO(json) struct json *names = doc(targets);
	AUTO(json) struct json *one = doc("[" ALLOW("other.test") "]");
	AUTO(json) struct json *same = doc("[" ALLOW("H7.test") "]");
	AUTO(netpolicy) struct netpolicy p = { .fallback = NETPOLICY_DENY };
	struct error e = ERROR_INIT;
	size_t n = 0;

	ck_assert_int_eq(netpolicy_patch(&p, bad, &e), -1);
	ck_assert_int_eq(e.code, ERRC_LIMIT);
	ck_assert_uint_eq(p.n, 0);
	error_clear(&e);
	ck_assert_int_eq(netpolicy_patch(&p, good, &e), 0);
	ck_assert_uint_eq(p.n, NETPOLICY_RULES_MAX);
	/* One more is too many, one that is there is not. */
	ck_assert_int_eq(netpolicy_patch(&p, one, &e), -1);
	ck_assert_int_eq(e.code, ERRC_LIMIT);
	ck_assert_uint_eq(p.n, NETPOLICY_RULES_MAX);
	error_clear(&e);
	ck_assert_int_eq(netpolicy_patch(&p, same, &e), 0);
	ck_assert_uint_eq(p.n, NETPOLICY_RULES_MAX);
	ck_assert_int_eq(p.rules[0].action, NETPOLICY_ALLOW);
	ck_assert_str_eq(p.rules[1].target, "h0.test");
	ck_assert_int_eq(netpolicy_delete(&p, names, &n, &e), -1);
	ck_assert_int_eq(e.code, ERRC_LIMIT);
}
END_TEST

/* Policy, patch, what becomes of it. */
static const char *const patches[][3] = {
	{ POLICY("deny", ""), "[" ALLOW("a.test") "]", POLICY("deny", ALLOW("a.test")) },
	{ POLICY("allow", ALLOW("a.test")), "[" DENY("b.test") "]",
			POLICY("allow", DENY("b.test") "," ALLOW("a.test")) },
	/* the first one stays */
	{ POLICY("deny", ""), "[" ALLOW("a.test") "," DENY("a.test") "]",
			POLICY("deny", ALLOW("a.test")) },
	{ POLICY("deny", DENY("a.test") "," ALLOW("b.test")), "[" ALLOW("A.TEST") "]",
			POLICY("deny", ALLOW("A.TEST") "," ALLOW("b.test")) },
	{ POLICY("deny", DENY("a.test.")), "[" ALLOW("a.test") "]",
			POLICY("deny", ALLOW("a.test")) },
	{ POLICY("deny", DENY("bücher.test")), "[" ALLOW("xn--bcher-kva.test") "]",
			POLICY("deny", ALLOW("xn--bcher-kva.test")) },
	{ POLICY("deny", DENY("2001:db8:0::1")), "[" ALLOW("2001:db8::1/128") "]",
			POLICY("deny", ALLOW("2001:db8::1/128")) },
	/* other targets */
	{ POLICY("deny", DENY("a.test")), "[" ALLOW("*.a.test") "]",
			POLICY("deny", ALLOW("*.a.test") "," DENY("a.test")) },
	{ POLICY("deny", DENY("a.test")), "[" ALLOW("a.test:443") "]",
			POLICY("deny", ALLOW("a.test:443") "," DENY("a.test")) },
	{ POLICY("deny", DENY("a.test:443")), "[" ALLOW("a.test:443/tcp") "]",
			POLICY("deny", ALLOW("a.test:443/tcp") "," DENY("a.test:443")) },
	{ POLICY("deny", DENY("10.0.0.0/8")), "[" ALLOW("10.0.0.0/9") "]",
			POLICY("deny", ALLOW("10.0.0.0/9") "," DENY("10.0.0.0/8")) },
	/* the order of what comes, before the order of what is there */
	{ POLICY("deny", ALLOW("a.test") "," ALLOW("b.test") "," ALLOW("c.test")),
			"[" DENY("c.test") "," DENY("b.test") "]",
			POLICY("deny", DENY("c.test") "," DENY("b.test") "," ALLOW("a.test")) },
	/* an action that is missing is deny, "*" is the default action */
	{ POLICY("deny", ""), "[{\"target\":\"a.test\"}]", POLICY("deny", DENY("a.test")) },
	{ POLICY("deny", ALLOW("a.test")), "[" ALLOW("*") "]", POLICY("allow", ALLOW("a.test")) },
	/* twins of a policy go as well */
	{ POLICY("deny", ALLOW("a.test") "," DENY("a.test")), "[" ALLOW("b.test") "]",
			POLICY("deny", ALLOW("b.test") "," ALLOW("a.test")) },
};

START_TEST(patch_is_merged)
{
	AUTO(json) struct json *v = doc(patches[_i][1]);
	AUTO(netpolicy) struct netpolicy p = { .n = 0 };
	struct error e = ERROR_INIT;

	parse(patches[_i][0], &p);
	ck_assert_msg(netpolicy_patch(&p, v, &e) == 0, "%s", e.text);
	autofree char *text = format(&p);

	ck_assert_str_eq(text, patches[_i][2]);
}
END_TEST

static const char *const bad_patches[][2] = {
	{ "[]", "a patch must be an array" },
	{ "{}", "a patch must be an array" },
	{ "null", "a patch must be an array" },
	{ POLICY("deny", ALLOW("a.test")), "a patch must be an array" },
	{ "[\"a.test\"]", "[0]: must be an object" },
	{ "[" ALLOW("b.test") "," ALLOW("/") "]", "[1].target: \"/\" is no address" },
	{ "[" ALLOW("b.test") "," RULE("x", "c.test") "]", "[1].action: must be" },
};

START_TEST(bad_patch)
{
	AUTO(json) struct json *v = doc(bad_patches[_i][0]);
	AUTO(netpolicy) struct netpolicy p = { .n = 0 };
	struct error e = ERROR_INIT;

	parse(POLICY("deny", ALLOW("a.test")), &p);
	ck_assert_int_eq(netpolicy_patch(&p, v, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
	ck_assert_msg(str_after(e.text, bad_patches[_i][1]) != NULL, "%s", e.text);
	autofree char *text = format(&p);

	ck_assert_str_eq(text, POLICY("deny", ALLOW("a.test")));
}
END_TEST

static const struct {
	const char *policy, *targets;
	size_t n;
	const char *result;
} deletes[] = {
	{ POLICY("deny", ALLOW("a.test")), "[\"a.test\"]", 1, POLICY("deny", "") },
	{ POLICY("deny", ALLOW("a.test")), "[\"A.Test.\"]", 1, POLICY("deny", "") },
	{ POLICY("deny", ALLOW("a.test")), "[\"b.test\"]", 0, POLICY("deny", ALLOW("a.test")) },
	{ POLICY("deny", ALLOW("a.test")), "[\"*.a.test\"]", 0, POLICY("deny", ALLOW("a.test")) },
	{ POLICY("deny", ALLOW("a.test:443")), "[\"a.test\"]", 0,
			POLICY("deny", ALLOW("a.test:443")) },
	{ POLICY("deny", ALLOW("a.test")), "[\"\",\"no name\",\"*\",\"a.test\"]", 1,
			POLICY("deny", "") },
	{ POLICY("allow", ALLOW("a.test") "," DENY("b.test") "," DENY("a.test")), "[\"a.test\"]", 2,
			POLICY("allow", DENY("b.test")) },
	{ POLICY("deny", ALLOW("10.0.0.0/8") "," ALLOW("::ffff:10.0.0.0/104")), "[\"10.0.0.0/8\"]",
			2, POLICY("deny", "") },
	{ POLICY("deny", ALLOW("a.test") "," ALLOW("b.test") "," ALLOW("c.test")),
			"[\"b.test\",\"b.test\"]", 1,
			POLICY("deny", ALLOW("a.test") "," ALLOW("c.test")) },
};

START_TEST(targets_are_deleted)
{
	AUTO(json) struct json *v = doc(deletes[_i].targets);
	AUTO(netpolicy) struct netpolicy p = { .n = 0 };
	struct error e = ERROR_INIT;
	size_t n = 77;

	parse(deletes[_i].policy, &p);
	ck_assert_int_eq(netpolicy_delete(&p, v, &n, &e), 0);
	ck_assert_uint_eq(n, deletes[_i].n);
	autofree char *text = format(&p);

	ck_assert_str_eq(text, deletes[_i].result);
	/* There is room for as many again. */
	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(netpolicy_add(&p, NETPOLICY_ALLOW, "d.test", &e), 0);
	}
}
END_TEST

START_TEST(bad_delete)
{
	static const char *const bad[] = { "[]", "{}", "null", "\"a.test\"", "[1]",
		"[\"a.test\",null]" };
	AUTO(json) struct json *v = doc(bad[_i]);
	AUTO(netpolicy) struct netpolicy p = { .n = 0 };
	struct error e = ERROR_INIT;
	size_t n = 77;

	parse(POLICY("deny", ALLOW("a.test")), &p);
	ck_assert_int_eq(netpolicy_delete(&p, v, &n, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
	ck_assert_uint_eq(n, 77);
	ck_assert_uint_eq(p.n, 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("netpolicy_json");
	TCase *tc = tcase_create("netpolicy_json");

	suite_add_tcase(s, tc);
	tcase_add_loop_test(tc, document_there_and_back, 0, ARRAY_SIZE(documents));
	tcase_add_test(tc, nothing_is_deny);
	tcase_add_loop_test(tc, bad_document, 0, ARRAY_SIZE(bad_documents));
	tcase_add_test(tc, rules_without_end);
	tcase_add_loop_test(tc, patch_is_merged, 0, ARRAY_SIZE(patches));
	tcase_add_loop_test(tc, bad_patch, 0, ARRAY_SIZE(bad_patches));
	tcase_add_loop_test(tc, targets_are_deleted, 0, ARRAY_SIZE(deletes));
	tcase_add_loop_test(tc, bad_delete, 0, 6);
	return unit_run(s);
}
