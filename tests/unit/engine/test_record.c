/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/file.h>

#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/record.h>
#include <osbx/state.h>

#include "../unit.h"

static struct dirs dirs;
static const struct idmap single = { .mode = IDMAP_SINGLE };

static void dirs_make(void)
{
	struct error e = ERROR_INIT;
	autofree char *root = mem_printf("%s/root", unit_path);
	autofree char *runtime = mem_printf("%s/runtime", unit_path);

	setenv("OSBX_ROOT", root, 1);
	setenv("OSBX_RUNTIME", runtime, 1);
	ck_assert_int_eq(dirs_open(&dirs, &e), 0);
}

static void make(struct record *r, const char *name)
{
	struct error e = ERROR_INIT;

	record_init(&dirs, r);
	ck_assert_int_eq(record_make(&dirs, r, name, &e), 0);
}

static bool exists(int dir_fd, const char *fmt, const char *id)
{
	autofree char *path = mem_printf("%s%s", fmt, id);

	return faccessat(dir_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Entries of a directory but for "." and "..". */
static size_t entries(int dir_fd, const char *name)
{
	autofree char *command = mem_printf("/proc/self/fd/%d/%s", dir_fd, name);
	struct stat st;

	/* A directory has a link for each directory in it, and two of its own. */
	ck_assert_int_eq(stat(command, &st), 0);
	return st.st_nlink - 2;
}

START_TEST(makes_everything_and_removes_it)
{
	AUTO(record) struct record r = RECORD_INIT;
	struct error e = ERROR_INIT;
	struct stat st;

	dirs_make();
	make(&r, "web");
	ck_assert(exists(dirs.runtime_fd, "sandboxes/", r.id.text));
	ck_assert(exists(dirs.root_fd, "sandboxes/", r.id.text));
	ck_assert(exists(dirs.runtime_fd, "names/", "web"));
	ck_assert(exists(r.dir_fd, "upper", "") && exists(r.dir_fd, "work", ""));
	ck_assert_int_eq(fstat(r.dir_fd, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0700);
	ck_assert(record_is_live(&dirs, r.id.text));
	ck_assert_int_eq(record_remove(&dirs, &r, &single, -1, false, &e), 0);
	ck_assert(!record_is_live(&dirs, r.id.text));
	ck_assert_uint_eq(entries(dirs.runtime_fd, "sandboxes"), 0);
	ck_assert_uint_eq(entries(dirs.root_fd, "sandboxes"), 0);
	ck_assert(!exists(dirs.runtime_fd, "names/", "web"));
}
END_TEST

START_TEST(trees_go_ahead)
{
	AUTO(record) struct record r = RECORD_INIT;
	struct error e = ERROR_INIT;

	dirs_make();
	make(&r, NULL);
	ck_assert_int_eq(mkdirat(r.dir_fd, "upper/a", 0), 0);
	/* What is not known there stays, and so does the directory. */
	ck_assert_int_eq(mkdirat(r.dir_fd, "other", 0700), 0);
	record_clear_files(&dirs, &r);
	ck_assert_int_ge(r.dir_fd, 0);
	ck_assert(!exists(r.dir_fd, "upper", "") && !exists(r.dir_fd, "work", ""));
	ck_assert_int_eq(unlinkat(r.dir_fd, "other", AT_REMOVEDIR), 0);
	record_clear_files(&dirs, &r);
	ck_assert_int_eq(r.dir_fd, -1);
	ck_assert(!exists(dirs.root_fd, "sandboxes/", r.id.text));
	ck_assert(record_is_live(&dirs, r.id.text));
	ck_assert_int_eq(record_remove(&dirs, &r, &single, -1, 0, &e), 0);
	ck_assert_uint_eq(entries(dirs.root_fd, "sandboxes"), 0);
}
END_TEST

START_TEST(is_dead_when_nobody_holds_it)
{
	AUTO(record) struct record r = RECORD_INIT;
	struct id other;

	dirs_make();
	make(&r, NULL);
	id_new(&other);
	ck_assert(!record_is_live(&dirs, other.text));
	fd_close(&r.lock_fd);
	ck_assert(!record_is_live(&dirs, r.id.text));
}
END_TEST

START_TEST(a_live_name_is_taken)
{
	AUTO(record) struct record a = RECORD_INIT;
	AUTO(record) struct record b = RECORD_INIT;
	struct error e = ERROR_INIT;

	dirs_make();
	make(&a, "web");
	record_init(&dirs, &b);
	ck_assert_int_eq(record_make(&dirs, &b, "web", &e), -1);
	ck_assert_int_eq(e.code, ERRC_CONFLICT);
	ck_assert_ptr_nonnull(strstr(e.text, a.id.text));
	ck_assert_int_eq(b.lock_fd, -1);
	/* The one that failed has left nothing. */
	ck_assert_uint_eq(entries(dirs.runtime_fd, "sandboxes"), 1);
	ck_assert_uint_eq(entries(dirs.root_fd, "sandboxes"), 1);
}
END_TEST

START_TEST(a_dead_name_is_free)
{
	AUTO(record) struct record a = RECORD_INIT;
	AUTO(record) struct record b = RECORD_INIT;
	char target[64] = "";

	dirs_make();
	make(&a, "web");
	fd_close(&a.lock_fd);
	make(&b, "web");
	ck_assert_int_eq(readlinkat(dirs.runtime_fd, "names/web", target, sizeof(target)), ID_LEN);
	ck_assert_int_eq(memcmp(target, b.id.text, ID_LEN), 0);
}
END_TEST

START_TEST(frees_only_its_own_name)
{
	AUTO(record) struct record a = RECORD_INIT;
	AUTO(record) struct record b = RECORD_INIT;
	struct error e = ERROR_INIT;

	dirs_make();
	make(&a, "web");
	fd_close(&a.lock_fd);
	make(&b, "web");
	ck_assert_int_eq(record_remove(&dirs, &a, &single, -1, false, &e), 0);
	ck_assert(exists(dirs.runtime_fd, "names/", "web"));
	ck_assert_int_eq(record_free_name(&dirs, "web", b.id.text), 0);
	ck_assert(!exists(dirs.runtime_fd, "names/", "web"));
	ck_assert_int_eq(record_free_name(&dirs, "web", b.id.text), 0);
}
END_TEST

START_TEST(takes_ranges_that_nobody_has)
{
	AUTO(record) struct record a = RECORD_INIT;
	AUTO(record) struct record b = RECORD_INIT;
	struct idmap map_a = { .mode = IDMAP_MAPPED, .uids_n = 1, .gids_n = 1 };
	struct idmap map_b = map_a;
	struct error e = ERROR_INIT;
	uint32_t first = 0;
	uint32_t count = 0;

	dirs_make();
	idmap_root_range(&first, &count);
	make(&a, NULL);
	make(&b, NULL);
	/* Both would begin at the same place. */
	memcpy(b.id.text, a.id.text, 8);
	ck_assert_int_eq(record_take_ids(&dirs, &a, &map_a, &e), 0);
	ck_assert_int_eq(record_take_ids(&dirs, &b, &map_b, &e), 0);
	ck_assert_int_ne(a.slot, b.slot);
	ck_assert_uint_eq(map_a.uids[0].outside, first + (uint32_t)a.slot * IDMAP_SANDBOX_IDS);
	ck_assert_uint_ge(map_b.gids[0].outside, first);
	ck_assert_uint_le(map_b.gids[0].outside, first + (count - IDMAP_SANDBOX_IDS));
	autofree char *path = mem_printf("ids/%d", (int)a.slot);

	ck_assert(exists(dirs.root_fd, path, ""));
	ck_assert_int_eq(record_remove(&dirs, &a, &single, -1, false, &e), 0);
	ck_assert(!exists(dirs.root_fd, path, ""));
}
END_TEST

START_TEST(keeps_files_when_asked)
{
	AUTO(record) struct record r = RECORD_INIT;
	struct error e = ERROR_INIT;
	int fd = -1;

	dirs_make();
	make(&r, "web");
	fd = openat(r.dir_fd, "upper/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(record_remove(&dirs, &r, &single, -1, true, &e), 0);
	ck_assert(exists(r.dir_fd, "upper/file", ""));
	ck_assert(!exists(r.dir_fd, "work", ""));
	ck_assert(!exists(dirs.runtime_fd, "names/", "web"));
	ck_assert(!exists(dirs.runtime_fd, "sandboxes/", r.id.text));
}
END_TEST

static const struct {
	mode_t lower;
	mode_t want;
} mode_cases[] = {
	{ 0755, 0755 },
	{ 0700, 0755 },
	{ 01777, 01777 },
	{ 0500, 0555 },
};

START_TEST(looks_like_the_root_of_the_image)
{
	AUTO(record) struct record r = RECORD_INIT;
	struct error e = ERROR_INIT;
	autoclose int lower_fd = -1;
	struct stat st;

	dirs_make();
	umask(077);
	make(&r, NULL);
	ck_assert_int_eq(mkdirat(unit_fd, "lower", 0700), 0);
	ck_assert_int_eq(fchmodat(unit_fd, "lower", mode_cases[_i].lower, 0), 0);
	if (geteuid() == 0) {
		ck_assert_int_eq(fchownat(unit_fd, "lower", 7, 8, 0), 0);
	}
	lower_fd = openat(unit_fd, "lower", O_PATH | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(record_set_root(&r, lower_fd, &e), 0);
	ck_assert_int_eq(fstatat(r.dir_fd, "upper", &st, 0), 0);
	ck_assert_uint_eq(st.st_mode & 07777, mode_cases[_i].want);
	ck_assert_uint_eq(st.st_uid, geteuid() == 0 ? 7 : geteuid());
}
END_TEST

START_TEST(a_broken_place_leaves_nothing)
{
	AUTO(record) struct record r = RECORD_INIT;
	struct error e = ERROR_INIT;
	int fd = -1;

	dirs_make();
	/* A file where ROOT/sandboxes should be. */
	fd = openat(dirs.root_fd, "sandboxes", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	close(fd);
	record_init(&dirs, &r);
	ck_assert_int_eq(record_make(&dirs, &r, NULL, &e), -1);
	ck_assert_int_eq(e.code, ERRC_SYSTEM);
	ck_assert_uint_eq(entries(dirs.runtime_fd, "sandboxes"), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("record");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_test(tc, makes_everything_and_removes_it);
	tcase_add_test(tc, trees_go_ahead);
	tcase_add_test(tc, is_dead_when_nobody_holds_it);
	tcase_add_test(tc, a_live_name_is_taken);
	tcase_add_test(tc, a_dead_name_is_free);
	tcase_add_test(tc, frees_only_its_own_name);
	tcase_add_test(tc, takes_ranges_that_nobody_has);
	tcase_add_test(tc, keeps_files_when_asked);
	tcase_add_loop_test(tc, looks_like_the_root_of_the_image, 0, ARRAY_SIZE(mode_cases));
	tcase_add_test(tc, a_broken_place_leaves_nothing);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
