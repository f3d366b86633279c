/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>

#include <osbx/host.h>
#include <osbx/mem.h>
#include <osbx/plan.h>

#include "../unit.h"

#define SKELETON "layers/single/" PLAN_HOST_LOWER

static const struct idmap single = { .mode = IDMAP_SINGLE };

static void skeleton_make(const struct idmap *map)
{
	struct error e = ERROR_INIT;

	/* store_open makes this one. */
	ck_assert_int_eq(file_mkdir_at(unit_fd, "layers", 0700), 0);
	ck_assert_int_eq(host_skeleton(unit_fd, map, &e), 0);
}

static struct stat at(const char *name)
{
	autofree char *path = mem_printf(SKELETON "/%s", name);
	struct stat st;

	ck_assert_msg(fstatat(unit_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0, "%s", name);
	return st;
}

static const struct {
	const char *name;
	mode_t mode;
} dirs[] = {
	{ "", S_IFDIR | 0755 },
	{ "root", S_IFDIR | 0700 },
	{ "home", S_IFDIR | 0755 },
	{ "tmp", S_IFDIR | 01777 },
	{ "var/tmp", S_IFDIR | 01777 },
	{ "run", S_IFDIR | 0755 },
	{ "srv", S_IFDIR | 0755 },
	{ "usr", S_IFDIR | 0755 },
	{ "etc/passwd", S_IFREG | 0644 },
	{ "etc/os-release", S_IFLNK | 0777 },
};

START_TEST(has_modes_of_its_own)
{
	umask(077);
	skeleton_make(&single);
	ck_assert_uint_eq(at(dirs[_i].name).st_mode, dirs[_i].mode);
}
END_TEST

static size_t entries(const char *name)
{
	autofree char *path = mem_printf("%s/%s", unit_path, name);
	DIR *dir = opendir(path);
	size_t n = 0;

	ck_assert_ptr_nonnull(dir);
	for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
		n += strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
	}
	closedir(dir);
	return n;
}

START_TEST(is_empty_where_people_are)
{
	static const char *const empty[] = { "home", "root", "run", "srv", "tmp", "usr", "mnt",
		"opt", "var/tmp", "var/lib", "var/log" };

	skeleton_make(&single);
	for (size_t i = 0; i < ARRAY_SIZE(empty); i++) {
		autofree char *path = mem_printf(SKELETON "/%s", empty[i]);

		ck_assert_uint_eq(entries(path), 0);
	}
}
END_TEST

START_TEST(has_the_hosts_links)
{
	static const char *const names[] = { "bin", "sbin", "lib", "lib64" };

	skeleton_make(&single);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		autofree char *host = mem_printf("/%s", names[i]);
		autofree char *here = mem_printf(SKELETON "/%s", names[i]);
		char want[64] = "";
		char got[64] = "";

		if (readlink(host, want, sizeof(want) - 1) > 0) {
			ck_assert_int_gt(readlinkat(unit_fd, here, got, sizeof(got) - 1), 0);
			ck_assert_str_eq(got, want);
		}
	}
}
END_TEST

START_TEST(knows_root_and_nobody)
{
	AUTO(buf) struct buf text = BUF_INIT(4096);

	skeleton_make(&single);
	ck_assert_int_eq(file_read_at(unit_fd, SKELETON "/etc/passwd", &text), 0);
	ck_assert_ptr_nonnull(strstr(text.p, "root:x:0:0:root:/root:/bin/sh\n"));
	ck_assert_ptr_nonnull(strstr(text.p, "nobody:x:65534:65534:"));
	ck_assert_int_eq(faccessat(unit_fd, SKELETON "/etc/shadow", F_OK, 0), -1);
}
END_TEST

START_TEST(is_made_once)
{
	skeleton_make(&single);
	struct stat first = at("etc");

	skeleton_make(&single);
	ck_assert_uint_eq(at("etc").st_ino, first.st_ino);
	/* And no staging is left. */
	ck_assert_uint_eq(entries("layers/single"), 1);
}
END_TEST

START_TEST(belongs_to_container_root)
{
	struct idmap shared = { .mode = IDMAP_SHARED,
		.uids_n = 1,
		.gids_n = 1,
		.uids = { { .outside = 700000, .count = 65536 } },
		.gids = { { .outside = 800000, .count = 65536 } } };
	struct stat st;

	if (geteuid() != 0) {
		skeleton_make(&single);
		ck_assert_uint_eq(at("etc/passwd").st_uid, geteuid());
		return;
	}
	skeleton_make(&shared);
	ck_assert_int_eq(fstatat(unit_fd, "layers/shared/" PLAN_HOST_LOWER, &st, 0), 0);
	ck_assert_uint_eq(st.st_uid, 700000);
	ck_assert_int_eq(fstatat(unit_fd, "layers/shared/" PLAN_HOST_LOWER "/etc/passwd", &st, 0),
			0);
	ck_assert_uint_eq(st.st_uid, 700000);
	ck_assert_uint_eq(st.st_gid, 800000);
}
END_TEST

START_TEST(mount_points_of_images)
{
	static const char *const files[] = { "etc/hostname", "etc/hosts", "etc/resolv.conf" };
	struct error e = ERROR_INIT;
	struct stat st;

	umask(077);
	ck_assert_int_eq(file_mkdir_at(unit_fd, "layers", 0700), 0);
	ck_assert_int_eq(host_points(unit_fd, &single, &e), 0);
	ck_assert_int_eq(host_points(unit_fd, &single, &e), 0);
	ck_assert_uint_eq(entries("layers/single"), 1);
	ck_assert_uint_eq(entries("layers/single/" PLAN_POINTS_LOWER), 4);
	ck_assert_uint_eq(entries("layers/single/" PLAN_POINTS_LOWER "/etc"), ARRAY_SIZE(files));
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		autofree char *path =
				mem_printf("layers/single/" PLAN_POINTS_LOWER "/%s", files[i]);

		ck_assert_int_eq(fstatat(unit_fd, path, &st, 0), 0);
		ck_assert_uint_eq(st.st_mode, S_IFREG | 0644);
		ck_assert_int_eq(st.st_size, 0);
	}
}
END_TEST

START_TEST(says_what_failed)
{
	struct error e = ERROR_INIT;
	int fd = openat(unit_fd, "layers", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(host_skeleton(unit_fd, &single, &e), -1);
	ck_assert_int_eq(e.sysno, ENOTDIR);
	ck_assert_ptr_nonnull(strstr(e.text, "@host"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("host_skeleton");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_loop_test(tc, has_modes_of_its_own, 0, ARRAY_SIZE(dirs));
	tcase_add_test(tc, is_empty_where_people_are);
	tcase_add_test(tc, has_the_hosts_links);
	tcase_add_test(tc, knows_root_and_nobody);
	tcase_add_test(tc, is_made_once);
	tcase_add_test(tc, belongs_to_container_root);
	tcase_add_test(tc, mount_points_of_images);
	tcase_add_test(tc, says_what_failed);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
