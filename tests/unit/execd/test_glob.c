/* SPDX-License-Identifier: Apache-2.0 */
#include "../../../execd/glob.h"
#include "../unit.h"

static const struct {
	const char *pattern;
	const char *name;
	bool matches;
} cases[] = {
	{ "", "", true },
	{ "", "a", false },
	{ "abc", "abc", true },
	{ "abc", "abcd", false },
	{ "abc", "ab", false },
	{ "*", "", true },
	{ "*", "anything.txt", true },
	{ "**", ".hidden", true },
	{ "*.txt", "a.txt", true },
	{ "*.txt", ".txt", true },
	{ "*.txt", "a.txt.gz", false },
	{ "a*b*c", "abc", true },
	{ "a*b*c", "axxbyyc", true },
	{ "a*b*c", "axxbyy", false },
	{ "a**c", "abc", true },
	{ "?", "a", true },
	{ "?", "", false },
	{ "?", "ab", false },
	{ "?", "\xc3\xa4", true },
	{ "??", "\xc3\xa4", false },
	{ "\xc3\xa4*", "\xc3\xa4pfel", true },
	{ "?", "\xe2\x82\xac", true },
	{ "?", "\xf0\x9f\x98\x80", true },
	/* no UTF-8: each byte is one character */
	{ "?", "\xff", true },
	{ "??", "\xc3x", true },
	{ "\xff", "\xff", true },
	{ "\xff", "\xfe", false },
	{ "\xff", "\xc3\xbf", false },
	{ "[abc]", "b", true },
	{ "[abc]", "d", false },
	{ "[a-c]x", "bx", true },
	{ "[!a-c]", "d", true },
	{ "[^a-c]", "a", false },
	{ "[a-]", "-", true },
	{ "[-a]", "-", true },
	{ "[\\]]", "]", true },
	{ "[\\a-\\c]", "b", true },
	{ "[\xc3\xa4-\xc3\xbc]", "\xc3\xb6", true },
	{ "{a,b}", "a", true },
	{ "{a,b}", "b", true },
	{ "{a,b}", "c", false },
	{ "{a,b}", "ab", false },
	{ "*.{js,ts,tsx}", "x.tsx", true },
	{ "*.{js,ts,tsx}", "x.tsx2", false },
	{ "{a}", "a", true },
	{ "{,a}b", "b", true },
	{ "{,a}b", "ab", true },
	{ "{}", "", true },
	{ "x{a,{b,c}d,e*}y", "xbdy", true },
	{ "x{a,{b,c}d,e*}y", "xcdy", true },
	{ "x{a,{b,c}d,e*}y", "xezzzy", true },
	{ "x{a,{b,c}d,e*}y", "xby", false },
	{ "{[,],a}", ",", true },
	{ "a,b}", "a,b}", true },
	{ "\\*", "*", true },
	{ "\\*", "a", false },
	{ "\\{a\\}", "{a}", true },
	{ "**/*.py", "a.py", true },
	{ "**/**/a", "a", true },
	{ "a/**", "a", true },
	{ "a/**", "ab", false },
	{ "src/*.py", "a.py", false },
	{ "/a", "a", false },
	{ "a/**/b", "ab", false },
	{ "{**/,x}a", "a", true },
	{ "a b$", "a b$", true },
	{ "a\nb*", "a\nbc", true },
};

START_TEST(matches)
{
	AUTO(glob) struct glob *g = NULL;
	struct error e = ERROR_INIT;

	ck_assert_int_eq(glob_new(cases[_i].pattern, &g, &e), 0);
	ck_assert_msg(glob_matches(g, cases[_i].name) == cases[_i].matches, "%s on %s",
			cases[_i].pattern, cases[_i].name);
	/* Nothing is left of a match. */
	ck_assert(glob_matches(g, cases[_i].name) == cases[_i].matches);
}
END_TEST

static const char *const bad[] = { "[", "[a", "[]", "[!]", "[a-", "[a\\", "a\\", "{", "{a,b",
	"{a,{b}", "{{{{{{{{{{{{{{{{{a}}}}}}}}}}}}}}}}}" };

START_TEST(refuses)
{
	AUTO(glob) struct glob *g = NULL;
	struct error e = ERROR_INIT;

	ck_assert_int_eq(glob_new(bad[_i], &g, &e), -1);
	ck_assert_int_eq(e.code, ERRC_SYSTEM);
	ck_assert_ptr_null(g);
}
END_TEST

/* Patterns that take a matcher with backtracking longer than anybody waits. */
START_TEST(bounded_work)
{
	static const char *const units[] = { "*a", "{a,*}", "{a,{a,{a,a}}}" };
	char pattern[GLOB_BYTES_MAX] = "";
	char name[256];
	size_t n = 0;
	struct error e = ERROR_INIT;
	AUTO(glob) struct glob *g = NULL;

	while (n + strlen(units[_i]) + 2 < sizeof(pattern)) {
		n += (size_t)snprintf(pattern + n, sizeof(pattern) - n, "%s", units[_i]);
	}
	pattern[n] = 'b';
	pattern[n + 1] = '\0';
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	ck_assert_int_eq(glob_new(pattern, &g, &e), 0);
	ck_assert(!glob_matches(g, name));
}
END_TEST

START_TEST(longest)
{
	char pattern[GLOB_BYTES_MAX + 1];
	AUTO(glob) struct glob *g = NULL;
	struct error e = ERROR_INIT;

	memset(pattern, ',', sizeof(pattern));
	pattern[0] = '{';
	pattern[GLOB_BYTES_MAX - 2] = '}';
	pattern[GLOB_BYTES_MAX - 1] = '\0';
	ck_assert_int_eq(glob_new(pattern, &g, &e), 0);
	ck_assert(glob_matches(g, ""));
	pattern[GLOB_BYTES_MAX - 1] = 'x';
	pattern[GLOB_BYTES_MAX] = '\0';
	glob_free(TAKE_PTR(g));
	ck_assert_int_eq(glob_new(pattern, &g, &e), -1);
	ck_assert_int_eq(e.code, ERRC_LIMIT);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("glob");
	TCase *t = tcase_create("glob");

	tcase_add_loop_test(t, matches, 0, ARRAY_SIZE(cases));
	tcase_add_loop_test(t, refuses, 0, ARRAY_SIZE(bad));
	tcase_add_loop_test(t, bounded_work, 0, 3);
	tcase_add_test(t, longest);
	suite_add_tcase(s, t);
	return unit_run(s);
}
