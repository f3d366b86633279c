/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/str.h>

#include "../../../src/runtime/mount_internal.h"
#include "../unit.h"

/* The root of an image: what is there before. */
static void image_make(void)
{
	static const char *const dirs[] = { "etc", "var", "run", "data", "data/in" };
	static const char *const links[][2] = {
		{ "../run/systemd/resolve/stub.conf", "etc/resolv.conf" },
		{ "/etc/real", "etc/abs" },
		{ "../../../../../../etc", "data/up" },
		{ "/run", "var/run" },
		{ "/nowhere/deep", "var/dangling" },
		{ "b", "a" },
		{ "a", "b" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		ck_assert_int_eq(mkdirat(unit_fd, dirs[i], 0755), 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
		ck_assert_int_eq(symlinkat(links[i][0], unit_fd, links[i][1]), 0);
	}
	int fd = openat(unit_fd, "data/file", O_CREAT | O_WRONLY | O_CLOEXEC, 0640);

	ck_assert_int_ge(fd, 0);
	close(fd);
}

/* Is fd what path names from the root, without any link? */
static void expect_is(int fd, const char *path)
{
	struct stat is;
	struct stat want;

	ck_assert_int_eq(fstat(fd, &is), 0);
	ck_assert_msg(fstatat(unit_fd, path, &want, AT_SYMLINK_NOFOLLOW) == 0, "%s", path);
	ck_assert_uint_eq(is.st_ino, want.st_ino);
	ck_assert_uint_eq(is.st_dev, want.st_dev);
}

static const struct {
	const char *path;
	bool want_dir;
	const char *is; /* where it must be; NULL: an error */
	enum errc code;
	int sysno;
} rows[] = {
	/* what exists */
	{ "/data/in", true, "data/in", ERRC_OK, 0 },
	{ "/data/file", false, "data/file", ERRC_OK, 0 },
	{ "data//in/.", true, "data/in", ERRC_OK, 0 },
	{ "/var/run", true, "run", ERRC_OK, 0 },
	{ "/data/up", true, "etc", ERRC_OK, 0 },
	{ "/../../data/in", true, "data/in", ERRC_OK, 0 },
	{ "/data/in", false, NULL, ERRC_INVALID, 0 },
	{ "/data/file", true, NULL, ERRC_INVALID, 0 },
	{ "/data/file/x", true, NULL, ERRC_SYSTEM, ENOTDIR },
	{ "/a", true, NULL, ERRC_SYSTEM, ELOOP },
	/* what is missing */
	{ "/new", true, "new", ERRC_OK, 0 },
	{ "/new", false, "new", ERRC_OK, 0 },
	{ "/data/in/x/y/z", true, "data/in/x/y/z", ERRC_OK, 0 },
	{ "/data/in/x/y/z", false, "data/in/x/y/z", ERRC_OK, 0 },
	{ "/new//x///y/", true, "new/x/y", ERRC_OK, 0 },
	{ "/new/./x", false, "new/x", ERRC_OK, 0 },
	{ "/var/run/lock", true, "run/lock", ERRC_OK, 0 },
	{ "/data/up/x", false, "etc/x", ERRC_OK, 0 },
	{ "/new/../x", true, NULL, ERRC_SYSTEM, EXDEV },
	{ "/data/../new", true, "new", ERRC_OK, 0 },
	/* links to what is missing */
	{ "/etc/resolv.conf", false, "run/systemd/resolve/stub.conf", ERRC_OK, 0 },
	{ "/etc/abs", false, "etc/real", ERRC_OK, 0 },
	{ "/etc/abs", true, "etc/real", ERRC_OK, 0 },
	{ "/var/dangling/x/y", false, "nowhere/deep/x/y", ERRC_OK, 0 },
	{ "/a/x", true, NULL, ERRC_SYSTEM, ELOOP },
};

START_TEST(finds_or_makes)
{
	AUTO(mountdst) struct mountdst d = { .own_n = 0 };
	struct error e = ERROR_INIT;
	int fd = -1;

	image_make();
	ck_assert_int_eq(mountdst_init(&d, unit_fd, &e), 0);
	int r = mountdst_open(&d, rows[_i].path, rows[_i].want_dir, &fd, &e);

	ck_assert_msg(e.code == rows[_i].code, "%s: %s", rows[_i].path, e.text);
	ck_assert_int_eq(e.sysno, rows[_i].sysno);
	if (rows[_i].is) {
		struct stat st;

		ck_assert_int_eq(r, 0);
		expect_is(fd, rows[_i].is);
		ck_assert_int_eq(fstat(fd, &st), 0);
		ck_assert_int_eq(S_ISDIR(st.st_mode), rows[_i].want_dir);
		close(fd);
		return;
	}
	ck_assert_int_eq(r, -1);
	ck_assert_int_eq(fd, -1);
}
END_TEST

/* The same in a file system that is not ours: what exists is taken, nothing is made. */
START_TEST(makes_nothing_in_a_volume)
{
	AUTO(mountdst) struct mountdst d = { .own_n = 0 };
	struct error e = ERROR_INIT;
	int fd = -1;
	struct stat before;
	struct stat after;

	image_make();
	ck_assert_int_eq(mountdst_init(&d, unit_fd, &e), 0);
	d.own_n = 0;
	ck_assert_int_eq(mountdst_open(&d, "/data/in", true, &fd, &e), 0);
	close(fd);
	fd = -1;
	ck_assert_int_eq(fstatat(unit_fd, "data/in", &before, 0), 0);
	ck_assert_int_eq(mountdst_open(&d, "/data/in/x/y", true, &fd, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
	ck_assert_ptr_nonnull(strstr(e.text, "mounted above it"));
	ck_assert_int_ne(e.hint[0], '\0');
	ck_assert_int_eq(fd, -1);
	ck_assert_int_eq(fstatat(unit_fd, "data/in", &after, 0), 0);
	ck_assert_uint_eq(before.st_nlink, after.st_nlink);
	error_clear(&e);
	ck_assert_int_eq(mountdst_open(&d, "/etc/resolv.conf", false, &fd, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
}
END_TEST

START_TEST(own_file_systems_are_added)
{
	AUTO(mountdst) struct mountdst d = { .own_n = 0 };
	struct error e = ERROR_INIT;
	autoclose int proc = open("/proc", O_PATH | O_CLOEXEC);

	ck_assert_int_eq(mountdst_init(&d, unit_fd, &e), 0);
	ck_assert_int_eq(mountdst_own(&d, proc, &e), 0);
	ck_assert_uint_eq(d.own_n, 2);
	ck_assert_int_eq(mountdst_own(&d, -1, &e), -1);
	ck_assert_int_eq(e.sysno, EBADF);
	mountdst_done(&d);
	mountdst_done(NULL);
}
END_TEST

static const struct {
	const char *path;
	bool want_dir;
} kernels[] = {
	{ "/proc/self", true },
	{ "/proc/version", false },
	{ "/sys/kernel", true },
	{ "/dev/null", false },
	{ "/dev/pts", true },
};

/* CVE-2025-52881: a link of the image, or the request itself, leads into procfs. */
START_TEST(nothing_of_the_kernels)
{
	AUTO(mountdst) struct mountdst d = { .own_n = 0 };
	autoclose int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct error e = ERROR_INIT;
	int fd = -1;

	ck_assert_int_eq(mountdst_init(&d, root, &e), 0);
	ck_assert_int_eq(mountdst_open(&d, kernels[_i].path, kernels[_i].want_dir, &fd, &e), -1);
	ck_assert_int_eq(e.code, ERRC_DENIED);
}
END_TEST

static const struct {
	const char *path;
	bool ok;
	enum errc code;
} stricts[] = {
	{ "/data/in", true, ERRC_OK },
	{ "/proc", true, ERRC_OK },      /* made */
	{ "/data/proc", true, ERRC_OK }, /* made */
	{ "/var/run", false, ERRC_DENIED },
	{ "/var/run/x", false, ERRC_DENIED },
	{ "/var/dangling", false, ERRC_DENIED },
	{ "/data/up/x", false, ERRC_DENIED },
	{ "/data/file", false, ERRC_DENIED },
	{ "/data/file/x", false, ERRC_DENIED },
	{ "/missing/x", false, ERRC_SYSTEM },
};

START_TEST(strict_follows_no_link)
{
	AUTO(mountdst) struct mountdst d = { .own_n = 0 };
	struct error e = ERROR_INIT;
	int fd = -1;

	image_make();
	ck_assert_int_eq(mountdst_init(&d, unit_fd, &e), 0);
	int r = mountdst_open_strict(&d, stricts[_i].path, &fd, &e);

	ck_assert_int_eq(e.code, stricts[_i].code);
	ck_assert_int_eq(r, stricts[_i].ok ? 0 : -1);
	if (r == 0) {
		expect_is(fd, stricts[_i].path + 1);
		close(fd);
	}
}
END_TEST

static size_t fds_open(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 256; fd++) {
		n += fcntl(fd, F_GETFD) >= 0;
	}
	return n;
}

START_TEST(descriptors_are_closed)
{
	AUTO(mountdst) struct mountdst d = { .own_n = 0 };
	struct error e = ERROR_INIT;

	image_make();
	ck_assert_int_eq(mountdst_init(&d, unit_fd, &e), 0);
	size_t before = fds_open();

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct error one = ERROR_INIT;
		int fd = -1;

		if (mountdst_open(&d, rows[i].path, rows[i].want_dir, &fd, &one) == 0) {
			close(fd);
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(stricts); i++) {
		struct error one = ERROR_INIT;
		int fd = -1;

		if (mountdst_open_strict(&d, stricts[i].path, &fd, &one) == 0) {
			close(fd);
		}
	}
	ck_assert_uint_eq(fds_open(), before);
}
END_TEST

START_TEST(long_links_end)
{
	AUTO(mountdst) struct mountdst d = { .own_n = 0 };
	autofree char *dots = mem_array(3900, 1);
	struct error e = ERROR_INIT;
	int fd = -1;

	/* Its text is put into the path, and the path may not grow for ever. */
	for (size_t i = 0; i < 3898; i++) {
		dots[i] = i % 2 ? '/' : '.';
	}
	dots[3897] = 'x';
	ck_assert_int_eq(symlinkat(dots, unit_fd, "long"), 0);
	autofree char *path = mem_printf("/long/%s", dots + 3600);

	ck_assert_int_eq(mountdst_init(&d, unit_fd, &e), 0);
	ck_assert_int_eq(mountdst_open(&d, path, true, &fd, &e), -1);
	ck_assert_int_eq(e.sysno, ENAMETOOLONG);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("mountdst");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_loop_test(tc, finds_or_makes, 0, ARRAY_SIZE(rows));
	tcase_add_test(tc, makes_nothing_in_a_volume);
	tcase_add_test(tc, own_file_systems_are_added);
	tcase_add_loop_test(tc, nothing_of_the_kernels, 0, ARRAY_SIZE(kernels));
	tcase_add_loop_test(tc, strict_follows_no_link, 0, ARRAY_SIZE(stricts));
	tcase_add_test(tc, descriptors_are_closed);
	tcase_add_test(tc, long_links_end);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
