/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/egress.h>
#include <osbx/mem.h>

#include "../unit.h"

static void fill(struct egress *g)
{
	struct error e = ERROR_INIT;

	*g = (struct egress){ .binds_names = true };
	netpolicy_init(&g->policy);
	ck_assert_int_eq(netpolicy_add(&g->policy, NETPOLICY_DENY, "*", &e), 0);
	ck_assert_int_eq(netpolicy_add(&g->policy, NETPOLICY_ALLOW, "a.test:443", &e), 0);
	egress_set_token(g);
}

START_TEST(comes_back)
{
	AUTO(egress) struct egress in = { .closed = NULL };
	AUTO(egress) struct egress out = { .closed = NULL };
	struct error e = ERROR_INIT;
	struct stat st;

	fill(&in);
	in.closed = mem_strdup("why not");
	ck_assert_int_eq(egress_save(&in, unit_fd, &e), 0);
	ck_assert_msg(egress_load(unit_fd, &out, &e) == 0, "%s", e.text);
	ck_assert_str_eq(out.token, in.token);
	ck_assert_str_eq(out.closed, "why not");
	ck_assert(out.binds_names && out.policy.fallback == NETPOLICY_DENY);
	ck_assert_uint_eq(out.policy.n, 1);
	ck_assert_str_eq(out.policy.rules[0].target, "a.test:443");
	/* There is a secret in it. */
	ck_assert_int_eq(fstatat(unit_fd, EGRESS_FILE, &st, 0), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0600);
}
END_TEST

START_TEST(tokens_differ)
{
	struct egress a = { .closed = NULL };
	struct egress b = { .closed = NULL };

	egress_set_token(&a);
	egress_set_token(&b);
	ck_assert_uint_eq(strlen(a.token), NETD_TOKEN_MAX);
	ck_assert_str_ne(a.token, b.token);
}
END_TEST

/* inspect is for everybody's eyes. */
START_TEST(is_shown_without_the_token)
{
	AUTO(buf) struct buf text = BUF_INIT(65536);
	struct json_writer w = JSON_WRITER(&text);
	AUTO(egress) struct egress g = { .closed = NULL };

	fill(&g);
	egress_format(&g, &w, NULL);
	ck_assert(!w.failed);
	ck_assert_ptr_null(strstr(text.p, g.token));
	ck_assert_ptr_nonnull(strstr(text.p, "\"state\":\"enforced\""));
	ck_assert_ptr_nonnull(strstr(text.p, "\"a.test:443\""));
}
END_TEST

static const struct {
	const char *text; /* NULL: no file */
	enum errc code;
} bad[] = {
	{ NULL, ERRC_NOT_FOUND },
	{ "", ERRC_INVALID },
	{ "[]", ERRC_INVALID },
	{ "{\"token\":\"x\"}", ERRC_INVALID },
	{ "{\"policy\":{}}", ERRC_INVALID },
	{ "{\"token\":\"x\",\"policy\":{\"egress\":[{\"target\":\"a b\"}]}}", ERRC_INVALID },
	{ "{\"token\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\","
	  "\"policy\":{}}",
			ERRC_LIMIT },
};

START_TEST(is_strict)
{
	struct egress g = { .binds_names = true };
	struct error e = ERROR_INIT;

	if (bad[_i].text) {
		ck_assert_int_eq(file_write_at(unit_fd, EGRESS_FILE, span_of(bad[_i].text), false),
				0);
	}
	ck_assert_int_eq(egress_load(unit_fd, &g, &e), -1);
	ck_assert_msg(e.code == bad[_i].code, "%d: %s", e.code, e.text);
	ck_assert(g.binds_names && g.token[0] == '\0');
}
END_TEST

int main(void)
{
	Suite *s = suite_create("egress");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_test(tc, comes_back);
	tcase_add_test(tc, tokens_differ);
	tcase_add_test(tc, is_shown_without_the_token);
	tcase_add_loop_test(tc, is_strict, 0, ARRAY_SIZE(bad));
	suite_add_tcase(s, tc);
	return unit_run(s);
}
