/* SPDX-License-Identifier: Apache-2.0 */
#include "../../../execd/expand.h"
#include "../unit.h"

static const char *lookup(void *ctx, const char *name)
{
	(void)ctx;
	if (strcmp(name, "HOME") == 0) {
		return "/home/u";
	}
	if (strcmp(name, "A") == 0) {
		return "$B ~";
	}
	return strcmp(name, "EMPTY_1") == 0 ? "" : NULL;
}

static const struct {
	const char *in;
	const char *out;
} good[] = {
	{ "", "" },
	{ "/a b/c", "/a b/c" },
	{ "~", "/home/u" },
	{ "~/x", "/home/u/x" },
	{ "~x/y", "~x/y" },
	{ "/~", "/~" },
	{ "$HOME/x", "/home/u/x" },
	{ "${HOME}x", "/home/ux" },
	{ "/$A/$A", "/$B ~/$B ~" },
	{ "a$EMPTY_1-${EMPTY_1}b", "a-b" },
	{ "5$", "5$" },
	{ "cost$5", "cost$5" },
	{ "$$HOME", "$/home/u" },
	{ "$/x", "$/x" },
};

START_TEST(expands)
{
	AUTO(buf) struct buf b = BUF_INIT(100);
	struct error e = ERROR_INIT;

	ck_assert_int_eq(buf_append_str(&b, "="), 0);
	ck_assert_int_eq(expand_path(span_of(good[_i].in), lookup, NULL, &b, &e), 0);
	ck_assert_str_eq(b.p + 1, good[_i].out);
	ck_assert_uint_eq(b.n, strlen(good[_i].out) + 1);
}
END_TEST

static const struct {
	struct span in;
	enum errc code;
	const char *text;
} bad[] = {
	{ { "/$NONE/x", 8 }, ERRC_INVALID, "variable \"NONE\" in the path is not defined" },
	{ { "/${NONE}", 8 }, ERRC_INVALID, "variable \"NONE\" in the path is not defined" },
	{ { "/${HOME", 7 }, ERRC_INVALID, "\"${\" in the path without a name and \"}\"" },
	{ { "/${}", 4 }, ERRC_INVALID, "\"${\" in the path without a name and \"}\"" },
	{ { "/${5}", 5 }, ERRC_INVALID, "\"${\" in the path without a name and \"}\"" },
	{ { "/${HOME-x}", 10 }, ERRC_INVALID, "\"${\" in the path without a name and \"}\"" },
	{ { "a\0b", 3 }, ERRC_INVALID, "the path holds a NUL" },
	{ { "$HOME$HOME$HOME", 15 }, ERRC_LIMIT, "the path is longer than 20 bytes" },
};

START_TEST(refuses)
{
	AUTO(buf) struct buf b = BUF_INIT(20);
	struct error e = ERROR_INIT;

	ck_assert_int_eq(buf_append_str(&b, "="), 0);
	ck_assert_int_eq(expand_path(bad[_i].in, lookup, NULL, &b, &e), -1);
	ck_assert_int_eq(e.code, bad[_i].code);
	ck_assert_str_eq(e.text, bad[_i].text);
	ck_assert_uint_eq(b.n, 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("expand");
	TCase *t = tcase_create("expand");

	tcase_add_loop_test(t, expands, 0, ARRAY_SIZE(good));
	tcase_add_loop_test(t, refuses, 0, ARRAY_SIZE(bad));
	suite_add_tcase(s, t);
	return unit_run(s);
}
