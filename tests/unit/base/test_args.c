/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>

#include <osbx/args.h>
#include <osbx/fd.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/str.h>
#include <osbx/strv.h>

#include "../unit.h"

struct wish {
	bool detach;
	bool tty;
	const char *name;
	struct strv env;
	uint64_t pids;
	uint64_t memory;
	int level;
	int asked;
};

static int level_parse(void *out, const char *value, struct error *e)
{
	struct wish *w = out;

	if (str_eq(value, "high")) {
		w->level = 9;
		return 0;
	}
	return error_set(e, ERRC_INVALID, "no level \"%s\"", value);
}

static int asked_parse(void *out, const char *value, struct error *e)
{
	struct wish *w = out;

	(void)e;
	ck_assert_ptr_null(value);
	w->asked++;
	return 0;
}

static const struct args_option options[] = {
	{ "detach", 'd', ARGS_FLAG, offsetof(struct wish, detach), NULL, "run in the background",
			NULL },
	{ "tty", 't', ARGS_FLAG, offsetof(struct wish, tty), NULL, "give it a terminal", NULL },
	{ "name", 'n', ARGS_STRING, offsetof(struct wish, name), "NAME", "name it", NULL },
	{ "env", 'e', ARGS_LIST, offsetof(struct wish, env), "K[=V]", "set a variable", NULL },
	{ "pids-limit", 0, ARGS_U64, offsetof(struct wish, pids), "N", "limit processes", NULL },
	{ "memory", 'm', ARGS_SIZE, offsetof(struct wish, memory), "SIZE", "limit memory", NULL },
	{ "level", 'l', ARGS_CALLBACK, 0, "LEVEL", "choose a level", level_parse },
	{ "ask", 'a', ARGS_CALLBACK, 0, NULL, "ask again", asked_parse },
	{ "rm", 0, ARGS_IGNORED, 0, NULL, "accepted, it is the default", NULL },
	{ "an-option-that-is-wider-than-others", 0, ARGS_STRING, offsetof(struct wish, name),
			"VALUE", "help on the next line", NULL },
	{ .name = NULL },
};

static const struct args_command run = {
	.name = "run",
	.synopsis = "[options] IMAGE [--] [COMMAND [ARG...]]",
	.summary = "run a command in a new sandbox",
	.options = options,
	.stop_at_operand = true,
	.operands_min = 1,
	.operands_max = -1,
};

static const struct args_command rm = {
	.name = "rm",
	.synopsis = "[options] ID...",
	.summary = "remove sandboxes",
	.options = options,
	.operands_min = 0,
	.operands_max = 3,
};

static void wish_done(struct wish *w)
{
	strv_done(&w->env);
}
AUTO_DEFINE(wish, struct wish, wish_done);

static struct strv words; /* of the last line */

static void words_free(void)
{
	strv_done(&words);
}

/* Split a line at blanks ("_" stands for an empty argument) and parse it. */
static int parse(const struct args_command *cmd, const char *line, struct wish *w,
		char ***out_operands, struct error *e)
{
	static char *argv[32];
	struct span rest = span_of(line);
	struct span piece;

	strv_done(&words);
	ck_assert_int_eq(strv_add(&words, cmd->name), 0);
	while (line[0] != '\0' && span_next(&rest, ' ', &piece)) {
		size_t n = span_eq(piece, span_of("_")) ? 0 : piece.n;

		ck_assert_int_eq(strv_take(&words, mem_dup(piece.p, n)), 0);
	}
	/* The parser may permute its vector; its strings stay ours. */
	ck_assert_uint_lt(words.n, ARRAY_SIZE(argv));
	memcpy(argv, words.v, (words.n + 1) * sizeof(*argv));
	return args_parse(cmd, (int)words.n, argv, w, out_operands, e);
}

/* Operands joined by '|'. */
static char *joined(char **operands)
{
	struct buf b = BUF_INIT(1000);

	for (size_t i = 0; operands[i]; i++) {
		ck_assert_int_eq(buf_appendf(&b, "%s%s", i > 0 ? "|" : "", operands[i]), 0);
	}
	return buf_take(&b);
}

START_TEST(all_kinds)
{
	struct error e = ERROR_INIT;
	AUTO(wish) struct wish w = { .level = 0 };
	char **operands = NULL;

	ck_assert_int_eq(
			parse(&run,
					"-d --name a --name=b -e X=1 --env Y --env=Z=a=b --pids-limit 7 "
					"--memory=64m --level high --ask -a --rm img sh",
					&w, &operands, &e),
			0);
	ck_assert(w.detach && !w.tty);
	ck_assert_str_eq(w.name, "b");
	ck_assert_uint_eq(w.env.n, 3);
	ck_assert_str_eq(w.env.v[2], "Z=a=b");
	ck_assert_uint_eq(w.pids, 7);
	ck_assert_uint_eq(w.memory, 64 << 20);
	ck_assert_int_eq(w.level, 9);
	ck_assert_int_eq(w.asked, 2);
	ck_assert_str_eq(operands[0], "img");
	ck_assert_str_eq(operands[1], "sh");
	ck_assert_ptr_null(operands[2]);
}
END_TEST

static const struct {
	const struct args_command *cmd;
	const char *line;
	const char *operands;
	bool detach, tty;
	const char *name;
} lines[] = {
	{ &run, "img", "img", false, false, NULL },
	{ &run, "-dt img", "img", true, true, NULL },
	{ &run, "-td img", "img", true, true, NULL },
	{ &run, "-tdnfoo img", "img", true, true, "foo" },
	{ &run, "-tdn foo img", "img", true, true, "foo" },
	{ &run, "-n=foo img", "img", false, false, "=foo" },
	{ &run, "-n -d img", "img", false, false, "-d" },
	{ &run, "--name -- img", "img", false, false, "--" },
	{ &run, "--name= img", "img", false, false, "" },
	{ &run, "--name _ img", "img", false, false, "" },
	/* Options end at the first operand. */
	{ &run, "-d img -t --name x", "img|-t|--name|x", true, false, NULL },
	{ &run, "img --help", "img|--help", false, false, NULL },
	{ &run, "img -- sh -c x", "img|--|sh|-c|x", false, false, NULL },
	{ &run, "-- -img -d", "-img|-d", false, false, NULL },
	{ &run, "-d -- img", "img", true, false, NULL },
	{ &run, "- x", "-|x", false, false, NULL },
	{ &run, "_ x", "|x", false, false, NULL },
	/* Elsewhere they may follow. */
	{ &rm, "", "", false, false, NULL },
	{ &rm, "a -d b --name x c", "a|b|c", true, false, "x" },
	{ &rm, "a -- -d", "a|-d", false, false, NULL },
	{ &rm, "-d a -- b -t", "a|b|-t", true, false, NULL },
	{ &rm, "-dt", "", true, true, NULL },
	{ &rm, "a --", "a", false, false, NULL },
	{ &rm, "--", "", false, false, NULL },
	{ &rm, "-- --", "--", false, false, NULL },
};

START_TEST(grammar)
{
	struct error e = ERROR_INIT;
	AUTO(wish) struct wish w = { .level = 0 };
	char **operands = NULL;
	autofree char *got = NULL;

	ck_assert_int_eq(parse(lines[_i].cmd, lines[_i].line, &w, &operands, &e), 0);
	got = joined(operands);
	ck_assert_str_eq(got, lines[_i].operands);
	ck_assert_int_eq(w.detach, lines[_i].detach);
	ck_assert_int_eq(w.tty, lines[_i].tty);
	ck_assert_pstr_eq(w.name, lines[_i].name);
}
END_TEST

static const struct {
	const struct args_command *cmd;
	const char *line;
	const char *error;
	const char *hint; /* NULL: the way to the help */
} failures[] = {
	{ &run, "--nam x img", "unknown option --nam", "did you mean --name?" },
	{ &run, "--detac img", "unknown option --detac", "did you mean --detach?" },
	{ &run, "--names=x img", "unknown option --names", "did you mean --name?" },
	{ &run, "--pids 5 img", "unknown option --pids", "did you mean --pids-limit?" },
	{ &run, "--hepl", "unknown option --hepl", "did you mean --help?" },
	{ &run, "--volume=x img", "unknown option --volume", NULL },
	{ &run, "-pids-limit=5 img", "unknown option -p", "did you mean --pids-limit?" },
	{ &run, "--=x img", "unknown option --" },
	{ &run, "-x img", "unknown option -x" },
	{ &run, "-dx img", "unknown option -x" },
	{ &run, "---d img", "unknown option ---d" },
	{ &run, "--detach=true img", "option --detach: takes no value" },
	{ &run, "--rm=false img", "option --rm: takes no value" },
	{ &run, "--name", "option --name: missing NAME" },
	{ &run, "-dn", "option --name: missing NAME" },
	{ &run, "--pids-limit=-1 img", "option --pids-limit: expected a number" },
	{ &run, "--pids-limit= img", "option --pids-limit: expected a number" },
	{ &run, "--pids-limit 18446744073709551616 img", "option --pids-limit: number too large" },
	{ &run, "-m 1.5g img", "option --memory: expected a size such as 512m or 2g" },
	{ &run, "-m 99999999999t img", "option --memory: number too large" },
	{ &run, "-l low img", "option --level: no level \"low\"" },
	{ &run, "-d", "run: missing argument, usage: osbx run [options] IMAGE [--] [COMMAND [ARG...]]" },
	{ &rm, "a b c d", "rm: too many arguments, usage: osbx rm [options] ID..." },
};

START_TEST(refusals)
{
	struct error e = ERROR_INIT;
	AUTO(wish) struct wish w = { .level = 0 };
	char **operands = NULL;

	ck_assert_int_eq(parse(failures[_i].cmd, failures[_i].line, &w, &operands, &e), -1);
	ck_assert_str_eq(e.text, failures[_i].error);
	ck_assert_int_eq(e.code, ERRC_INVALID);
	ck_assert_str_eq(e.hint, failures[_i].hint          ? failures[_i].hint
				 : failures[_i].cmd == &run ? "see osbx run --help"
							    : "see osbx rm --help");
	ck_assert_ptr_null(operands);
}
END_TEST

START_TEST(lists_are_bounded)
{
	struct error e = ERROR_INIT;
	AUTO(wish) struct wish w = { .level = 0 };
	static char env[] = "-eX";
	static char *argv[LIMIT_ARGS + 3];
	char **operands = NULL;

	for (int i = 0; i <= LIMIT_ARGS + 1; i++) {
		argv[i] = env;
	}
	ck_assert_int_eq(args_parse(&rm, LIMIT_ARGS + 2, argv, &w, &operands, &e), -1);
	ck_assert_str_eq(e.text, "option --env: given too often");
	ck_assert_int_eq(e.code, ERRC_INVALID);
}
END_TEST

/* What a call prints to standard output; the caller frees. */
static char *help_of(const struct args_command *cmd, const char *line, int *out_result)
{
	struct error e = ERROR_INIT;
	AUTO(wish) struct wish w = { .level = 0 };
	struct buf b = BUF_INIT(1 << 16);
	char **operands = NULL;
	int kept = dup(1);
	int fd = fd_open_at(unit_fd, "out", O_RDWR | O_CREAT | O_TRUNC, 0600);

	ck_assert_int_eq(dup2(fd, 1), 1);
	*out_result = parse(cmd, line, &w, &operands, &e);
	ck_assert_int_eq(dup2(kept, 1), 1);
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	ck_assert_int_eq(fd_read_all(fd, &b), 0);
	close(fd);
	close(kept);
	return buf_take(&b);
}

START_TEST(help_is_aligned)
{
	int result = 0;
	autofree char *text = help_of(&run, "-d --help", &result);

	ck_assert_int_eq(result, 1);
	ck_assert_str_eq(text, "Usage: osbx run [options] IMAGE [--] [COMMAND [ARG...]]\n"
			       "\n"
			       "run a command in a new sandbox\n"
			       "\n"
			       "Options:\n"
			       "  -d, --detach        run in the background\n"
			       "  -t, --tty           give it a terminal\n"
			       "  -n, --name NAME     name it\n"
			       "  -e, --env K[=V]     set a variable\n"
			       "      --pids-limit N  limit processes\n"
			       "  -m, --memory SIZE   limit memory\n"
			       "  -l, --level LEVEL   choose a level\n"
			       "  -a, --ask           ask again\n"
			       "      --rm            accepted, it is the default\n"
			       "      --an-option-that-is-wider-than-others VALUE\n"
			       "                      help on the next line\n"
			       "  -h, --help          print this help\n");
}
END_TEST

START_TEST(help_needs_no_operands)
{
	int result = 0;
	autofree char *text = help_of(&run, "-h", &result);

	ck_assert_int_eq(result, 1);
	ck_assert_ptr_nonnull(strstr(text, "Usage: osbx run"));
}
END_TEST

static const struct args_option own_h[] = {
	{ "hostname", 'h', ARGS_STRING, offsetof(struct wish, name), "NAME", "host name", NULL },
	{ .name = NULL },
};

static const struct args_command with_own_h = {
	.name = "x",
	.synopsis = "",
	.summary = "y",
	.options = own_h,
};

static const struct args_command without_options = {
	.name = "version",
	.synopsis = "",
	.summary = "print the version",
};

START_TEST(own_letter_h_wins)
{
	struct error e = ERROR_INIT;
	AUTO(wish) struct wish w = { .level = 0 };
	char **operands = NULL;
	int result = 0;
	autofree char *text = help_of(&with_own_h, "--help", &result);

	ck_assert_int_eq(parse(&with_own_h, "-h box", &w, &operands, &e), 0);
	ck_assert_str_eq(w.name, "box");
	ck_assert_int_eq(result, 1);
	ck_assert_ptr_nonnull(strstr(text, "\n  -h, --hostname NAME  host name\n"));
	ck_assert_ptr_nonnull(strstr(text, "\n      --help           print this help\n"));
}
END_TEST

START_TEST(no_options_at_all)
{
	struct error e = ERROR_INIT;
	char **operands = NULL;
	int result = 0;
	autofree char *text = help_of(&without_options, "--help", &result);

	ck_assert_int_eq(result, 1);
	ck_assert_ptr_nonnull(strstr(text, "  -h, --help  print this help\n"));
	ck_assert_int_eq(parse(&without_options, "", NULL, &operands, &e), 0);
	ck_assert_ptr_null(operands[0]);
	ck_assert_int_eq(parse(&without_options, "-v", NULL, &operands, &e), -1);
}
END_TEST

START_TEST(options_without_a_struct_abort)
{
	struct error e = ERROR_INIT;
	char **operands = NULL;

	(void)!parse(&rm, "-d", NULL, &operands, &e);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("args");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_checked_fixture(tc, NULL, words_free);
	tcase_add_test(tc, all_kinds);
	tcase_add_loop_test(tc, grammar, 0, ARRAY_SIZE(lines));
	tcase_add_loop_test(tc, refusals, 0, ARRAY_SIZE(failures));
	tcase_add_test(tc, lists_are_bounded);
	tcase_add_test(tc, help_is_aligned);
	tcase_add_test(tc, help_needs_no_operands);
	tcase_add_test(tc, own_letter_h_wins);
	tcase_add_test(tc, no_options_at_all);
	tcase_add_test_raise_signal(tc, options_without_a_struct_abort, SIGABRT);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
