/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include <osbx/limits.h>
#include <osbx/mem.h>

#include "../../../execd/envfile.h"
#include "../unit.h"

/* A file's text, then the environment as "NAME=VALUE" joined by '|'. */
static const char *const rows[][2] = {
	{ "", "HOME=/root" },
	{ "A=1\nB=2", "HOME=/root|A=1|B=2" },
	{ "A=1\nA=2\n", "HOME=/root|A=2" },
	{ "# a comment\n\n  \n#B=1\nA=1 # no comment\n", "HOME=/root|A=1 # no comment" },
	{ "export A=1\n  export   B=2\nexportC=3\n", "HOME=/root|A=1|B=2|exportC=3" },
	{ "HOME=/x\n", "HOME=/x" },
	{ "A=$HOME/a\nB=${HOME}b\nC=$NOPE.\nD=$\nE=${\nF=$1\n",
			"HOME=/root|A=/root/a|B=/rootb|C=.|D=$|E=${|F=$1" },
	{ "A=1\nB=$A$A\n", "HOME=/root|A=1|B=11" },
	{ "PATH=/a:$PATH\nPATH=/b:$PATH\n", "HOME=/root|PATH=/b:/a:" },
	{ "A=  x  y \t\r\nB=2", "HOME=/root|A=x  y|B=2" },
	/* As set_env of the clients writes them. */
	{ "A='$HOME \"x\" \\n'\n", "HOME=/root|A=$HOME \"x\" \\n" },
	{ "A='two\nlines'\nB=2\n", "HOME=/root|A=two\nlines|B=2" },
	{ "A=\"it's\"\nB=\"\\\\ \\\" \\n \\r \\t \\x $HOME\"\n",
			"HOME=/root|A=it's|B=\\ \" \n \r \t \\x $HOME" },
	{ "A=''\nB=\"\"\nC=\n", "HOME=/root|A=|B=|C=" },
	/* Mistakes are passed over, to the end of their line. */
	{ "no variable\n=x\n1A=2\nA-B=3\nB=2\n", "HOME=/root|B=2" },
	{ "A='never closed\nB=2\n", "HOME=/root|B=2" },
	{ "A=\"never closed\nB=2\n", "HOME=/root" },
	{ "A='x' behind\nB=2\n", "HOME=/root|A=x|B=2" },
	{ "A = 1\nB=2\n", "HOME=/root|B=2" },
};

START_TEST(reads)
{
	AUTO(strv) struct strv env = STRV_INIT;
	AUTO(buf) struct buf b = BUF_INIT(4096);

	ck_assert_int_eq(strv_add(&env, "HOME=/root"), 0);
	ck_assert_int_eq(envfile_apply(span_of(rows[_i][0]), &env), 0);
	strv_for_each(&env, i) {
		ck_assert_int_eq(buf_appendf(&b, "%s%s", i > 0 ? "|" : "", env.v[i]), 0);
	}
	ck_assert_str_eq(b.p, rows[_i][1]);
}
END_TEST

START_TEST(is_bounded)
{
	AUTO(strv) struct strv env = STRV_INIT;
	AUTO(buf) struct buf b = BUF_INIT(8U << 20);

	for (int i = 0; i < LIMIT_ENV + 1; i++) {
		ck_assert_int_eq(buf_appendf(&b, "V%d=1\n", i), 0);
	}
	ck_assert_int_eq(envfile_apply(buf_span(&b), &env), -E2BIG);
	ck_assert_uint_eq(env.n, LIMIT_ENV);
	/* Each one doubles what is there. */
	strv_done(&env);
	buf_reset(&b);
	ck_assert_int_eq(buf_append_str(&b, "A=0123456789\n"), 0);
	for (int i = 0; i < 64; i++) {
		ck_assert_int_eq(buf_append_str(&b, "A=$A$A\n"), 0);
	}
	(void)!envfile_apply(buf_span(&b), &env);
	ck_assert_uint_le(strv_bytes(&env), LIMIT_ARGS_BYTES);
}
END_TEST

/* A NUL is no part of a variable; the others are read. */
START_TEST(nul_bytes)
{
	static const char text[] = "A=1\0\nB=2\n\0C=3\nD=\"\0\"\nE=5";
	AUTO(strv) struct strv env = STRV_INIT;

	ck_assert_int_eq(envfile_apply((struct span){ .p = text, .n = sizeof(text) - 1 }, &env), 0);
	ck_assert_uint_eq(env.n, 2);
	ck_assert_str_eq(env.v[0], "B=2");
	ck_assert_str_eq(env.v[1], "E=5");
}
END_TEST

static const char *path_of(const char *name)
{
	static char path[160];

	snprintf(path, sizeof(path), "%s/%s", unit_path, name);
	return path;
}

START_TEST(files)
{
	AUTO(strv) struct strv env = STRV_INIT;
	int fd = openat(unit_fd, "env", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_eq(write(fd, "A=1\n", 4), 4);
	close(fd);
	ck_assert_int_eq(envfile_load(path_of("env"), &env), 0);
	ck_assert_str_eq(strv_env_find(&env, "A"), "1");
	ck_assert_int_eq(envfile_load(path_of("missing"), &env), 0);
	ck_assert_int_eq(envfile_load(path_of("env/x"), &env), 0);
	ck_assert_uint_eq(env.n, 1);
	/* What would block, or never end. */
	ck_assert_int_eq(mkfifoat(unit_fd, "fifo", 0600), 0);
	ck_assert_int_eq(envfile_load(path_of("fifo"), &env), -EINVAL);
	ck_assert_int_eq(envfile_load("/dev/zero", &env), -EINVAL);
	ck_assert_int_eq(envfile_load(unit_path, &env), -EINVAL);
	fd = openat(unit_fd, "large", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_eq(ftruncate(fd, ENVFILE_BYTES_MAX + 1), 0);
	close(fd);
	ck_assert_int_eq(envfile_load(path_of("large"), &env), -EMSGSIZE);
	ck_assert_uint_eq(env.n, 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("execd/envfile");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_loop_test(tc, reads, 0, sizeof(rows) / sizeof(rows[0]));
	tcase_add_test(tc, is_bounded);
	tcase_add_test(tc, nul_bytes);
	tcase_add_test(tc, files);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
