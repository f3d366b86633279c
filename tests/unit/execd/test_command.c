/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/stat.h>
#include <sys/wait.h>

#include <osbx/limits.h>

#include "../../../execd/execd.h"
#include "../unit.h"

static char *const no_env[] = { NULL };
static char where[96];

static void file_make(const char *name, const char *text, mode_t mode)
{
	int fd = openat(unit_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	ck_assert_int_eq(fchmod(fd, mode), 0);
	close(fd);
}

static void files_make(void)
{
	char link[32];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", unit_fd);
	ssize_t n = readlink(link, where, sizeof(where) - 1);

	ck_assert_int_gt(n, 0);
	where[n] = '\0';
	ck_assert_int_eq(fchdir(unit_fd), 0);
	ck_assert_int_eq(mkdir("dir", 0755), 0);
	ck_assert_int_eq(mkdir("dir/sub", 0755), 0);
	file_make("plain", "#!/bin/sh\n", 0644);
	file_make("noformat", "neither\n", 0755);
	file_make("nointerp", "#!/no/such/interpreter\n", 0755);
	file_make("script", "#!/bin/sh\nexit 23\n", 0755);
	file_make("dir/script", "#!/bin/sh\nexit 24\n", 0755);
	file_make("dir/plain", "#!/bin/sh\nexit 25\n", 0755);
	ck_assert_int_eq(symlink("loop", "loop"), 0);
}

static struct error fails(const char *name, const char *path_list)
{
	autofree char *copy = strdup(name);
	char *const argv[] = { copy, NULL };
	struct error e = ERROR_INIT;

	ck_assert_int_eq(command_exec(argv, no_env, path_list, &e), -1);
	return e;
}

START_TEST(reasons)
{
	static const struct {
		const char *name;
		const char *path_list;
		enum errc code;
		const char *text;
	} rows[] = {
		{ "./missing", "", ERRC_NO_COMMAND, "exec: \"./missing\": no such file" },
		{ "/nonexistent", "", ERRC_NO_COMMAND, "exec: \"/nonexistent\": no such file" },
		{ "./plain/x", "", ERRC_NO_COMMAND, "exec: \"./plain/x\": no such file" },
		{ "./dir", "", ERRC_NOT_EXECUTABLE, "exec: \"./dir\": is a directory" },
		{ "./plain", "", ERRC_NOT_EXECUTABLE, "exec: \"./plain\"" },
		{ "./loop", "", ERRC_NOT_EXECUTABLE, "exec: \"./loop\"" },
		{ "./noformat", "", ERRC_NOT_EXECUTABLE,
				"exec: \"./noformat\": neither a program for this machine nor a "
				"script that begins with \"#!\"" },
		{ "./nointerp", "", ERRC_NOT_EXECUTABLE,
				"exec: \"./nointerp\": its interpreter does not exist in the image" },
		{ "missing", "/bin:/usr/bin", ERRC_NO_COMMAND,
				"exec: \"missing\": not found in PATH" },
		{ "missing", "", ERRC_NO_COMMAND, "exec: \"missing\": not found in PATH" },
		{ "", "/bin", ERRC_NO_COMMAND, "exec: \"\": not found in PATH" },
		{ "..", ".", ERRC_NO_COMMAND, "exec: \"..\": not found in PATH" },
		/* A directory of that name is no command. */
		{ "sub", "dir", ERRC_NO_COMMAND, "exec: \"sub\": not found in PATH" },
		{ "plain", ".", ERRC_NOT_EXECUTABLE, "exec: \"./plain\"" },
		{ "nointerp", "dir:.:/bin", ERRC_NOT_EXECUTABLE,
				"exec: \"./nointerp\": its interpreter does not exist in the image" },
		/* ENOEXEC ends the search: the shell does not try it either. */
		{ "noformat", ".:dir", ERRC_NOT_EXECUTABLE,
				"exec: \"./noformat\": neither a program for this machine nor a "
				"script that begins with \"#!\"" },
		{ "./a\x1b[2J", "", ERRC_NO_COMMAND, "exec: \"./a?[2J\": no such file" },
	};

	files_make();
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct error e = fails(rows[i].name, rows[i].path_list);

		ck_assert_str_eq(e.text, rows[i].text);
		ck_assert_int_eq(e.code, rows[i].code);
	}
	ck_assert_int_eq(fails("./plain", "").sysno, EACCES);
	ck_assert_int_eq(fails("./loop", "").sysno, ELOOP);
	ck_assert_int_eq(fails("./missing", "").sysno, 0);
}
END_TEST

static int runs(const char *name, const char *path_list)
{
	int status = 0;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		struct error e = ERROR_INIT;
		char copy[32];
		char *const argv[] = { copy, NULL };

		snprintf(copy, sizeof(copy), "%s", name);
		_exit(command_exec(argv, no_env, path_list, &e) == -1 ? 99 : 98);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

START_TEST(search_order)
{
	char list[256];

	files_make();
	ck_assert_int_eq(runs("./script", "dir"), 23);
	ck_assert_int_eq(runs("script", "dir:."), 24);
	ck_assert_int_eq(runs("script", ".:dir"), 23);
	ck_assert_int_eq(runs("script", "/nowhere:plain:dir"), 24);
	/* An empty piece is the working directory, at every place. */
	ck_assert_int_eq(runs("script", ""), 23);
	ck_assert_int_eq(runs("script", ":dir"), 23);
	ck_assert_int_eq(runs("script", "/nowhere:"), 23);
	/* What cannot be executed is passed over. */
	ck_assert_int_eq(runs("plain", ".:dir"), 25);
	snprintf(list, sizeof(list), "%s/dir", where);
	ck_assert_int_eq(runs("script", list), 24);
}
END_TEST

START_TEST(long_paths)
{
	char *list = malloc(3 * LIMIT_PATH_BYTES);

	files_make();
	memset(list, 'x', 2 * LIMIT_PATH_BYTES);
	list[0] = '/';
	memcpy(list + 2 * LIMIT_PATH_BYTES, ":dir", 5);
	ck_assert_int_eq(runs("script", list), 24);
	list[2 * LIMIT_PATH_BYTES] = '\0';
	ck_assert_int_eq(fails("script", list).code, ERRC_NO_COMMAND);
	free(list);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("command");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_test(tc, reasons);
	tcase_add_test(tc, search_order);
	tcase_add_test(tc, long_paths);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
