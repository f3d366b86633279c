/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <osbx/conf.h>
#include <osbx/mem.h>
#include <osbx/str.h>

struct sample {
	char mode[32];
	char host[64];
	char mirror[64];
	int sets;
};

static int set_mode(void *out, const char *arg, const char *value, struct error *e)
{
	struct sample *s = out;

	ck_assert_ptr_null(arg);
	if (!str_eq(value, "enforce") && !str_eq(value, "best-effort")) {
		return error_set(e, ERRC_INVALID, "limits: expected enforce or best-effort");
	}
	(void)snprintf(s->mode, sizeof(s->mode), "%s", value);
	s->sets++;
	return 0;
}

static int set_mirror(void *out, const char *arg, const char *value, struct error *e)
{
	struct sample *s = out;

	(void)e;
	(void)snprintf(s->host, sizeof(s->host), "%s", arg ? arg : "-");
	(void)snprintf(s->mirror, sizeof(s->mirror), "%s", value);
	s->sets++;
	return 0;
}

static const struct conf_key keys[] = {
	{ "sandbox", "limits", set_mode },
	{ "registry", "mirror", set_mirror },
	{ .section = NULL },
};

static char path[] = "/tmp/osbx-conf-XXXXXX";

static int parse(const char *text, struct sample *s, struct error *e)
{
	char name[sizeof(path)];

	memcpy(name, path, sizeof(path));
	int fd = mkstemp(name);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	(void)close(fd);
	int r = conf_parse(name, keys, s, e);

	(void)unlink(name);
	return r;
}

START_TEST(values_reach_their_setters)
{
	struct error e = ERROR_INIT;
	struct sample s = { .sets = 0 };

	ck_assert_int_eq(parse("# comment\n[sandbox]\nlimits = best-effort\n\n"
			       "[registry \"docker.io\"]\nmirror=localhost:5000\n",
					 &s, &e),
			0);
	ck_assert_str_eq(s.mode, "best-effort");
	ck_assert_str_eq(s.host, "docker.io");
	ck_assert_str_eq(s.mirror, "localhost:5000");
	ck_assert_int_eq(s.sets, 2);
}
END_TEST

static const struct {
	const char *text;
	const char *says;
} bad[] = {
	{ "[sandbox]\nlimit=enforce\n", ":2: limit: unknown key in [sandbox]" },
	{ "[sandbx]\nlimits=enforce\n", ":2: [sandbx]: unknown section" },
	{ "[sandbox]\n\nlimits=maybe\n", ":3: limits: expected enforce or best-effort" },
	{ "[sandbox]\nrubbish\n", ":2: not a key=value line" },
	{ "limits=enforce\n", ":1: []: unknown section" },
	{ "[registry \"x]\nmirror=a\n", ":2: [registry \"x]: expected" },
};

START_TEST(comments_alone_are_no_entries)
{
	struct error e = ERROR_INIT;
	struct sample s = { .sets = 0 };

	ck_assert_int_eq(parse("", &s, &e), 0);
	ck_assert_int_eq(parse("\n \t\r\n# limits = none\n  ; x\n", &s, &e), 0);
	ck_assert_int_eq(parse("# x\n  limits = none\n", &s, &e), -1);
}
END_TEST

START_TEST(a_mistake_is_named_with_its_line)
{
	struct error e = ERROR_INIT;
	struct sample s = { .sets = 0 };

	ck_assert_int_eq(parse(bad[_i].text, &s, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
	ck_assert_msg(strstr(e.text, bad[_i].says) != NULL, "text: %s", e.text);
}
END_TEST

START_TEST(the_first_mistake_wins)
{
	struct error e = ERROR_INIT;
	struct sample s = { .sets = 0 };

	ck_assert_int_eq(parse("[sandbox]\na=1\nlimits=enforce\nb=2\n", &s, &e), -1);
	ck_assert_ptr_nonnull(strstr(e.text, ":2: a: unknown key"));
	ck_assert_int_eq(s.sets, 0);
}
END_TEST

START_TEST(long_lines_are_not_cut)
{
	struct error e = ERROR_INIT;
	struct sample s = { .sets = 0 };
	char text[512];

	memset(text, 'x', sizeof(text));
	memcpy(text, "[sandbox]\nlimits=", 17);
	text[sizeof(text) - 1] = '\0';
	ck_assert_int_eq(parse(text, &s, &e), -1);
	ck_assert_ptr_nonnull(strstr(e.text, ":2: line is too long"));
}
END_TEST

START_TEST(a_missing_file_is_no_mistake)
{
	struct error e = ERROR_INIT;
	struct sample s = { .sets = 0 };

	ck_assert_int_eq(conf_parse("/nonexistent/osbx.conf", keys, &s, &e), 0);
	ck_assert_int_eq(s.sets, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("conf");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, values_reach_their_setters);
	tcase_add_test(tc, comments_alone_are_no_entries);
	tcase_add_loop_test(tc, a_mistake_is_named_with_its_line, 0, ARRAY_SIZE(bad));
	tcase_add_test(tc, the_first_mistake_wins);
	tcase_add_test(tc, long_lines_are_not_cut);
	tcase_add_test(tc, a_missing_file_is_no_mistake);
	suite_add_tcase(s, tc);

	SRunner *r = srunner_create(s);

	srunner_set_tap(r, "-");
	srunner_run_all(r, CK_SILENT);
	int failed = srunner_ntests_failed(r);

	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
