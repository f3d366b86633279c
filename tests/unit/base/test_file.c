/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/mem.h>

#include "../unit.h"

static size_t entries(int dir_fd)
{
	size_t n = 0;
	DIR *dir = fdopendir(openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir)) {
		n++;
	}
	closedir(dir);
	return n - 2;
}

static void text_write(int dir_fd, const char *name, const char *text)
{
	ck_assert_int_eq(file_write_at(dir_fd, name, span_of(text), false), 0);
}

static bool is_there(int dir_fd, const char *name)
{
	return faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

START_TEST(write_and_read)
{
	AUTO(buf) struct buf b = BUF_INIT(6);
	AUTO(buf) struct buf small = BUF_INIT(5);
	struct stat st;

	text_write(unit_fd, "f", "first");
	ck_assert_int_eq(file_write_at(unit_fd, "f", span_of("second"), true), 0);
	ck_assert_int_eq(file_read_at(unit_fd, "f", &b), 0);
	ck_assert_str_eq(b.p, "second");
	ck_assert_int_eq(file_read_at(unit_fd, "f", &small), -EMSGSIZE);
	ck_assert_int_eq(fstatat(unit_fd, "f", &st, 0), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0600);
	ck_assert_uint_eq(entries(unit_fd), 1);
	ck_assert_int_eq(file_write_at(unit_fd, "empty", (struct span){ .p = NULL }, false), 0);
	ck_assert_int_eq(fstatat(unit_fd, "empty", &st, 0), 0);
	ck_assert_int_eq(st.st_size, 0);
	ck_assert_int_eq(file_read_at(unit_fd, "missing", &b), -ENOENT);
}
END_TEST

START_TEST(write_replaces_a_link_itself)
{
	AUTO(buf) struct buf b = BUF_INIT(100);

	text_write(unit_fd, "target", "old");
	ck_assert_int_eq(symlinkat("target", unit_fd, "link"), 0);
	text_write(unit_fd, "link", "new");
	ck_assert_int_eq(file_read_at(unit_fd, "target", &b), 0);
	ck_assert_str_eq(b.p, "old");
}
END_TEST

START_TEST(failed_write_leaves_nothing)
{
	AUTO(buf) struct buf b = BUF_INIT(100);
	const struct rlimit limit = { .rlim_cur = 4, .rlim_max = 4 };
	const struct sigaction ignore = { .sa_handler = SIG_IGN };

	ck_assert_int_eq(mkdirat(unit_fd, "dir", 0755), 0);
	ck_assert_int_eq(file_write_at(unit_fd, "dir", span_of("x"), false), -EISDIR);
	ck_assert_int_eq(file_write_at(unit_fd, "missing/f", span_of("x"), false), -ENOENT);
	text_write(unit_fd, "f", "old");
	ck_assert_int_eq(sigaction(SIGXFSZ, &ignore, NULL), 0);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ck_assert_int_eq(file_write_at(unit_fd, "f", span_of("larger"), false), -EFBIG);
	ck_assert_int_eq(file_read_at(unit_fd, "f", &b), 0);
	ck_assert_str_eq(b.p, "old");
	ck_assert_uint_eq(entries(unit_fd), 2);
}
END_TEST

START_TEST(put_is_one_write)
{
	AUTO(buf) struct buf b = BUF_INIT(100);
	struct stat st;

	text_write(unit_fd, "f", "12345");
	ck_assert_int_eq(file_put_at(unit_fd, "f", "99"), 0);
	ck_assert_int_eq(file_read_at(unit_fd, "f", &b), 0);
	/* Neither created nor truncated: kernel files know neither. */
	ck_assert_str_eq(b.p, "99345");
	ck_assert_int_eq(file_put_at(unit_fd, "missing", "1"), -ENOENT);
	ck_assert_int_eq(fstatat(unit_fd, "missing", &st, 0), -1);
	ck_assert_int_eq(file_put_at(AT_FDCWD, "/proc/self/oom_score_adj", "no number"), -EINVAL);
	ck_assert_int_eq(file_put_at(AT_FDCWD, "/dev/full", "x"), -ENOSPC);
}
END_TEST

START_TEST(mkdir_takes_what_is_there)
{
	struct stat st;

	umask(0);
	ck_assert_int_eq(file_mkdir_at(unit_fd, "d", 0710), 0);
	ck_assert_int_eq(file_mkdir_at(unit_fd, "d", 0777), 0);
	ck_assert_int_eq(fstatat(unit_fd, "d", &st, 0), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0710);
	text_write(unit_fd, "f", "");
	ck_assert_int_eq(file_mkdir_at(unit_fd, "f", 0700), -ENOTDIR);
	ck_assert_int_eq(file_mkdir_at(unit_fd, "x/y", 0700), -ENOENT);
	ck_assert_int_eq(symlinkat("d", unit_fd, "to-dir"), 0);
	ck_assert_int_eq(file_mkdir_at(unit_fd, "to-dir", 0700), 0);
	ck_assert_int_eq(symlinkat("nowhere", unit_fd, "dangling"), 0);
	ck_assert_int_eq(file_mkdir_at(unit_fd, "dangling", 0700), -ENOENT);
}
END_TEST

START_TEST(mkdirs_makes_all)
{
	autofree char *path = mem_printf("/proc/self/fd/%d/a//b/c/", unit_fd);

	ck_assert_int_eq(file_mkdirs(path, 0700), 0);
	ck_assert_int_eq(file_mkdirs(path, 0700), 0);
	ck_assert(is_there(unit_fd, "a/b/c"));
	text_write(unit_fd, "a/f", "");
	{
		autofree char *below = mem_printf("/proc/self/fd/%d/a/f/x/y", unit_fd);

		ck_assert_int_eq(file_mkdirs(below, 0700), -ENOTDIR);
	}
	ck_assert_int_eq(file_mkdirs("/", 0700), 0);
	ck_assert_int_eq(file_mkdirs("/proc/self/fd/x/y", 0700), -ENOENT);
}
END_TEST

START_TEST(mkdirs_of_a_relative_path_aborts)
{
	(void)!file_mkdirs("a/b", 0700);
}
END_TEST

START_TEST(sync_syncs)
{
	int fds[2];

	ck_assert_int_eq(file_sync_dir(unit_fd), 0);
	ck_assert_int_eq(file_sync_dir(-1), -EBADF);
	ck_assert_int_eq(fd_pipe(fds, 0), 0);
	ck_assert_int_eq(file_sync_dir(fds[0]), -EINVAL);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("file");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_test(tc, write_and_read);
	tcase_add_test(tc, write_replaces_a_link_itself);
	tcase_add_test(tc, failed_write_leaves_nothing);
	tcase_add_test(tc, put_is_one_write);
	tcase_add_test(tc, mkdir_takes_what_is_there);
	tcase_add_test(tc, mkdirs_makes_all);
	tcase_add_test_raise_signal(tc, mkdirs_of_a_relative_path_aborts, SIGABRT);
	tcase_add_test(tc, sync_syncs);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
