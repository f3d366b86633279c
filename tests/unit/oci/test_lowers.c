/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/xattr.h>

#include <osbx/fd.h>
#include <osbx/sys.h>

#include "../../../oci/lowers.h"
#include "../unit.h"

/* Three layers, newest first: "2" on "1" on "0". */
static int fds[3];
static struct lowers *lw;

static void dir(const char *path)
{
	ck_assert_int_eq(mkdirat(unit_fd, path, 0755), 0);
}

static void file(const char *path)
{
	int fd = fd_open_at(unit_fd, path, O_CREAT | O_WRONLY, 0644);

	ck_assert_int_ge(fd, 0);
	fd_close(&fd);
}

static void hide(const char *path)
{
	ck_assert_int_eq(sys_mknod_at(unit_fd, path, S_IFCHR, 0), 0);
}

static void opaque(const char *path)
{
	int fd = fd_open_at(unit_fd, path, O_RDONLY | O_DIRECTORY, 0);

	ck_assert_int_eq(fsetxattr(fd, "user.overlay.opaque", "y", 1, 0), 0);
	fd_close(&fd);
}

static void make(void)
{
	unit_dir_make();
	for (int i = 0; i < 3; i++) {
		char name[2] = { (char)('2' - i), '\0' };

		dir(name);
		fds[i] = fd_open_at(unit_fd, name, O_PATH | O_DIRECTORY, 0);
		ck_assert_int_ge(fds[i], 0);
	}
	lw = lowers_new(fds, 3);
}

static void done(void)
{
	lowers_free(lw);
	for (int i = 0; i < 3; i++) {
		fd_close(&fds[i]);
	}
	unit_dir_close();
}

/* Number of the layer that shows path, -1: none. */
static int shown_by(const char *path)
{
	const char *slash = strrchr(path, '/');
	char parent[256] = "";
	const struct lowers_dirs *dirs = NULL;
	struct lowers_entry entry = { .dir_fd = -1 };

	if (slash) {
		snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
	}
	ck_assert_int_eq(lowers_enter(lw, parent, true, &dirs), 0);
	if (lowers_find(dirs, 0, slash ? slash + 1 : path, &entry) == 0) {
		return -1;
	}
	for (size_t i = 0; i < dirs->n; i++) {
		if (dirs->fds[i] == entry.dir_fd) {
			return 2 - (int)dirs->layers[i];
		}
	}
	ck_abort_msg("a descriptor of no directory");
}

START_TEST(newest_wins)
{
	file("0/a");
	file("1/a");
	file("0/b");
	ck_assert_int_eq(shown_by("a"), 1);
	ck_assert_int_eq(shown_by("b"), 0);
	ck_assert_int_eq(shown_by("c"), -1);
}
END_TEST

START_TEST(directories_merge)
{
	const struct lowers_dirs *dirs = NULL;

	dir("0/d");
	file("0/d/x");
	dir("2/d");
	file("2/d/y");
	ck_assert_int_eq(shown_by("d/x"), 0);
	ck_assert_int_eq(shown_by("d/y"), 2);
	ck_assert_int_eq(lowers_enter(lw, "d", false, &dirs), 0);
	ck_assert_uint_eq(dirs->n, 2);
	ck_assert_uint_eq(dirs->layers[0], 0);
	ck_assert_uint_eq(dirs->layers[1], 2);
}
END_TEST

START_TEST(whiteouts_hide)
{
	dir("0/d");
	file("0/d/x");
	dir("0/e");
	file("0/e/x");
	dir("1/d");
	hide("1/d/x");
	hide("1/e");
	ck_assert_int_eq(shown_by("d/x"), -1);
	ck_assert_int_eq(shown_by("d"), 1);
	ck_assert_int_eq(shown_by("e"), -1);
	ck_assert_int_eq(shown_by("e/x"), -1);
	dir("2/e");
	lowers_forget(lw);
	ck_assert_int_eq(shown_by("e"), 2);
	ck_assert_int_eq(shown_by("e/x"), -1);
}
END_TEST

START_TEST(opaque_hides)
{
	dir("0/d");
	file("0/d/x");
	dir("1/d");
	opaque("1/d");
	file("1/d/y");
	dir("2/d");
	ck_assert_int_eq(shown_by("d/x"), -1);
	ck_assert_int_eq(shown_by("d/y"), 1);
}
END_TEST

START_TEST(another_type_ends_the_search)
{
	dir("0/d");
	file("0/d/x");
	file("1/d");
	dir("0/e");
	file("0/e/x");
	file("1/e");
	dir("2/e");
	ck_assert_int_eq(shown_by("d"), 1);
	ck_assert_int_eq(shown_by("d/x"), -1);
	ck_assert_int_eq(shown_by("e/x"), -1);
}
END_TEST

START_TEST(links_are_followed_in_the_merged_view)
{
	const struct lowers_dirs *dirs = NULL;

	dir("0/usr");
	dir("0/usr/lib");
	file("0/usr/lib/x");
	ck_assert_int_eq(symlinkat("usr/lib", unit_fd, "1/lib"), 0);
	ck_assert_int_eq(symlinkat("/../../lib/../lib", unit_fd, "2/abs"), 0);
	ck_assert_int_eq(symlinkat("loop", unit_fd, "0/loop"), 0);
	ck_assert_int_eq(shown_by("lib/x"), 0);
	ck_assert_int_eq(shown_by("abs/x"), 0);
	ck_assert_int_eq(lowers_enter(lw, "lib", false, &dirs), 0);
	ck_assert_uint_eq(dirs->n, 0);
	ck_assert_int_eq(lowers_enter(lw, "loop", true, &dirs), -ELOOP);
}
END_TEST

START_TEST(first_layer_leaves_newer_ones_out)
{
	const struct lowers_dirs *dirs = NULL;
	struct lowers_entry entry = { .dir_fd = -1 };

	file("2/a");
	file("0/b");
	hide("1/b");
	ck_assert_int_eq(lowers_enter(lw, "", false, &dirs), 0);
	ck_assert_int_eq(lowers_find(dirs, 0, "a", &entry), 1);
	ck_assert_int_eq(lowers_find(dirs, 1, "a", &entry), 0);
	ck_assert_int_eq(lowers_find(dirs, 1, "b", &entry), 0);
	ck_assert_int_eq(lowers_find(dirs, 2, "b", &entry), 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("lowers");
	TCase *tc = tcase_create("all");

	tcase_add_unchecked_fixture(tc, unit_base_make, unit_base_remove);
	tcase_add_checked_fixture(tc, make, done);
	tcase_add_test(tc, newest_wins);
	tcase_add_test(tc, directories_merge);
	tcase_add_test(tc, whiteouts_hide);
	tcase_add_test(tc, opaque_hides);
	tcase_add_test(tc, another_type_ends_the_search);
	tcase_add_test(tc, links_are_followed_in_the_merged_view);
	tcase_add_test(tc, first_layer_leaves_newer_ones_out);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
