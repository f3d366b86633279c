/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/dirs.h>
#include <osbx/mem.h>

#include "../unit.h"

static char *below(const char *name)
{
	return mem_printf("%s/%s", unit_path, name);
}

/* Both given by name; the test changes what it is about. */
static void given(void)
{
	autofree char *root = below("root");
	autofree char *runtime = below("runtime");

	setenv("OSBX_ROOT", root, 1);
	setenv("OSBX_RUNTIME", runtime, 1);
}

static void fails(enum errc code, const char *part)
{
	struct dirs d = DIRS_INIT;
	struct error e = ERROR_INIT;

	ck_assert_int_eq(dirs_open(&d, &e), -1);
	ck_assert_msg(e.code == code && strstr(e.text, part), "%d: %s", (int)e.code, e.text);
	ck_assert_int_eq(d.root_fd, -1);
	ck_assert_ptr_null(d.root);
}

START_TEST(makes_what_is_named)
{
	AUTO(dirs) struct dirs d = DIRS_INIT;
	struct error e = ERROR_INIT;
	autofree char *root = below("a/b/root");
	struct stat st;

	given();
	setenv("OSBX_ROOT", root, 1);
	umask(0);
	ck_assert_int_eq(dirs_open(&d, &e), 0);
	ck_assert_str_eq(d.root, root);
	ck_assert_int_eq(fstat(d.root_fd, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0700);
	ck_assert_int_eq(fstat(d.runtime_fd, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0700);
	ck_assert_int_ne(fcntl(d.root_fd, F_GETFD) & FD_CLOEXEC, 0);
}
END_TEST

START_TEST(wants_absolute_paths)
{
	given();
	setenv("OSBX_ROOT", "some/where", 1);
	fails(ERRC_INVALID, "OSBX_ROOT=some/where");
	given();
	setenv("OSBX_RUNTIME", "./run", 1);
	fails(ERRC_INVALID, "OSBX_RUNTIME=./run");
}
END_TEST

START_TEST(refuses_what_others_may_write)
{
	given();
	ck_assert_int_eq(mkdirat(unit_fd, "root", 0700), 0);
	ck_assert_int_eq(fchmodat(unit_fd, "root", 0770, 0), 0);
	fails(ERRC_DENIED, "others may write");
	ck_assert_int_eq(fchmodat(unit_fd, "root", 0755, 0), 0);
	ck_assert_int_eq(mkdirat(unit_fd, "runtime", 0700), 0);
	ck_assert_int_eq(fchmodat(unit_fd, "runtime", 0707, 0), 0);
	fails(ERRC_DENIED, "others may write");
}
END_TEST

START_TEST(refuses_what_belongs_to_another)
{
	if (geteuid() != 0) {
		/* The root directory is nobody's but root's. */
		given();
		setenv("OSBX_ROOT", "/usr", 1);
	} else {
		given();
		ck_assert_int_eq(mkdirat(unit_fd, "root", 0700), 0);
		ck_assert_int_eq(fchownat(unit_fd, "root", 12345, 12345, 0), 0);
	}
	fails(ERRC_DENIED, "belongs to user");
}
END_TEST

START_TEST(says_what_is_in_the_way)
{
	autofree char *file = below("file/root");
	int fd = openat(unit_fd, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	close(fd);
	given();
	setenv("OSBX_ROOT", file, 1);
	fails(ERRC_SYSTEM, "file/root");
}
END_TEST

/* As an ordinary user has them; root of the initial namespace has fixed places. */
START_TEST(follows_the_base_directories)
{
	AUTO(dirs) struct dirs d = DIRS_INIT;
	struct error e = ERROR_INIT;
	autofree char *data = below("data");
	autofree char *want_root = below("data/osbx");
	autofree char *want_runtime = below("xdg/osbx");
	autofree char *xdg = below("xdg");

	ck_assert_int_eq(chmod(unit_path, 0777), 0);
	if (geteuid() == 0) {
		ck_assert_int_eq(setgid(12345), 0);
		ck_assert_int_eq(setuid(12345), 0);
	}
	unsetenv("OSBX_ROOT");
	unsetenv("OSBX_RUNTIME");
	setenv("XDG_DATA_HOME", data, 1);
	setenv("XDG_RUNTIME_DIR", xdg, 1);
	ck_assert_int_eq(dirs_open(&d, &e), 0);
	ck_assert_str_eq(d.root, want_root);
	ck_assert_str_eq(d.runtime, want_runtime);
}
END_TEST

START_TEST(falls_back_to_home_and_tmp)
{
	AUTO(dirs) struct dirs d = DIRS_INIT;
	struct error e = ERROR_INIT;
	autofree char *want_root = below(".local/share/osbx");
	autofree char *want_runtime = NULL;

	ck_assert_int_eq(chmod(unit_path, 0777), 0);
	if (geteuid() == 0) {
		ck_assert_int_eq(setgid(12345), 0);
		ck_assert_int_eq(setuid(12345), 0);
	}
	want_runtime = mem_printf("/tmp/osbx-%u", (unsigned int)geteuid());
	unsetenv("OSBX_ROOT");
	unsetenv("OSBX_RUNTIME");
	unsetenv("XDG_RUNTIME_DIR");
	/* Relative values are to be ignored. */
	setenv("XDG_DATA_HOME", "relative", 1);
	setenv("HOME", unit_path, 1);
	ck_assert_int_eq(dirs_open(&d, &e), 0);
	ck_assert_str_eq(d.root, want_root);
	ck_assert_str_eq(d.runtime, want_runtime);
	ck_assert_int_eq(rmdir(want_runtime), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("dirs");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_test(tc, makes_what_is_named);
	tcase_add_test(tc, wants_absolute_paths);
	tcase_add_test(tc, refuses_what_others_may_write);
	tcase_add_test(tc, refuses_what_belongs_to_another);
	tcase_add_test(tc, says_what_is_in_the_way);
	tcase_add_test(tc, follows_the_base_directories);
	tcase_add_test(tc, falls_back_to_home_and_tmp);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
