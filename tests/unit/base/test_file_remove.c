/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <osbx/fd.h>
#include <osbx/file.h>

#include "../unit.h"

/* What only an ordinary user meets: go on as one, owning the test's directory. */
static void become_user(void)
{
	if (geteuid() == 0) {
		ck_assert_int_eq(fchown(unit_fd, 65534, 65534), 0);
		ck_assert_int_eq(setresgid(65534, 65534, 65534), 0);
		ck_assert_int_eq(setresuid(65534, 65534, 65534), 0);
	}
}

static bool is_there(int dir_fd, const char *name)
{
	return faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void touch(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	close(fd);
}

static void make_dir(int dir_fd, const char *name)
{
	ck_assert_int_eq(mkdirat(dir_fd, name, 0700), 0);
}

/* A chain of directories, each with a file, with one descriptor. */
static void chain_make(int dir_fd, const char *top, int depth, const char *name)
{
	int fd = dup(dir_fd);

	for (int i = 0; i < depth; i++) {
		const char *here = i == 0 ? top : name;
		int below = -1;

		make_dir(fd, here);
		below = openat(fd, here, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		ck_assert_int_ge(below, 0);
		close(fd);
		fd = below;
		touch(fd, "file");
	}
	close(fd);
}

START_TEST(missing_is_success)
{
	ck_assert_int_eq(file_remove_tree_at(unit_fd, "missing"), 0);
	ck_assert_int_eq(file_remove_tree_at(unit_fd, "missing/x"), 0);
	ck_assert_int_eq(file_remove_tree_at(-1, "x"), -EBADF);
}
END_TEST

START_TEST(single_things)
{
	make_dir(unit_fd, "outside");
	touch(unit_fd, "outside/kept");
	touch(unit_fd, "file");
	make_dir(unit_fd, "empty");
	ck_assert_int_eq(symlinkat("outside", unit_fd, "link"), 0);
	ck_assert_int_eq(symlinkat("nowhere", unit_fd, "dangling"), 0);
	ck_assert_int_eq(mkfifoat(unit_fd, "fifo", 0600), 0);
	ck_assert_int_eq(file_remove_tree_at(unit_fd, "file"), 0);
	ck_assert_int_eq(file_remove_tree_at(unit_fd, "empty"), 0);
	ck_assert_int_eq(file_remove_tree_at(unit_fd, "link"), 0);
	ck_assert_int_eq(file_remove_tree_at(unit_fd, "dangling"), 0);
	ck_assert_int_eq(file_remove_tree_at(unit_fd, "fifo"), 0);
	ck_assert(!is_there(unit_fd, "file") && !is_there(unit_fd, "empty"));
	ck_assert(!is_there(unit_fd, "link") && !is_there(unit_fd, "dangling"));
	ck_assert(!is_there(unit_fd, "fifo"));
	ck_assert(is_there(unit_fd, "outside/kept"));
	ck_assert_int_eq(file_remove_tree_at(unit_fd, "outside/kept"), 0);
	ck_assert(!is_there(unit_fd, "outside/kept") && is_there(unit_fd, "outside"));
}
END_TEST

START_TEST(links_are_not_followed)
{
	make_dir(unit_fd, "outside");
	touch(unit_fd, "outside/kept");
	make_dir(unit_fd, "tree");
	make_dir(unit_fd, "tree/a");
	ck_assert_int_eq(symlinkat("../outside", unit_fd, "tree/link"), 0);
	ck_assert_int_eq(symlinkat("../../outside", unit_fd, "tree/a/link"), 0);
	ck_assert_int_eq(symlinkat("..", unit_fd, "tree/a/up"), 0);
	ck_assert_int_eq(symlinkat(".", unit_fd, "tree/a/self"), 0);
	ck_assert_int_eq(linkat(unit_fd, "outside/kept", unit_fd, "tree/hard", 0), 0);
	ck_assert_int_eq(file_remove_tree_at(unit_fd, "tree"), 0);
	ck_assert(!is_there(unit_fd, "tree"));
	ck_assert(is_there(unit_fd, "outside/kept"));
}
END_TEST

START_TEST(many_entries)
{
	char name[64];

	make_dir(unit_fd, "tree");
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "tree/a-rather-long-directory-name-%d", i);
		make_dir(unit_fd, name);
		snprintf(name, sizeof(name), "tree/a-rather-long-directory-name-%d/f", i);
		touch(unit_fd, name);
		for (int k = 0; k < 4; k++) {
			snprintf(name, sizeof(name), "tree/a-rather-long-file-name-%d-%d", i, k);
			touch(unit_fd, name);
		}
	}
	ck_assert_int_eq(file_remove_tree_at(unit_fd, "tree"), 0);
	ck_assert(!is_there(unit_fd, "tree"));
}
END_TEST

/* Deeper than any path, with less descriptors than levels. */
START_TEST(unbounded_depth)
{
	const struct rlimit limit = { .rlim_cur = 48, .rlim_max = 48 };
	static const int depths[] = { 23, 24, 25, 26, 48, 49, 50, 3000 };

	chain_make(unit_fd, "tree", depths[_i], "a-name-that-makes-long-paths");
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_int_eq(file_remove_tree_at(unit_fd, "tree"), 0);
	ck_assert(!is_there(unit_fd, "tree"));
}
END_TEST

/* The names that moved directories would get exist already, as all kinds of things. */
START_TEST(names_of_moved_directories_collide)
{
	make_dir(unit_fd, "tree");
	touch(unit_fd, "tree/0");
	make_dir(unit_fd, "tree/1");
	chain_make(unit_fd, "tree/2", 60, "0");
	chain_make(unit_fd, "tree/3", 60, "1");
	chain_make(unit_fd, "tree/4", 60, "x");
	ck_assert_int_eq(symlinkat("..", unit_fd, "tree/5"), 0);
	ck_assert_int_eq(file_remove_tree_at(unit_fd, "tree"), 0);
	ck_assert(!is_there(unit_fd, "tree"));
}
END_TEST

START_TEST(wide_and_deep)
{
	make_dir(unit_fd, "tree");
	for (int i = 0; i < 8; i++) {
		char name[32];

		snprintf(name, sizeof(name), "tree/branch-%d", i);
		chain_make(unit_fd, name, 40 + i, "x");
	}
	ck_assert_int_eq(file_remove_tree_at(unit_fd, "tree"), 0);
	ck_assert(!is_there(unit_fd, "tree"));
}
END_TEST

START_TEST(unreadable_directories)
{
	static const mode_t modes[] = { 0000, 0100, 0200, 0300, 0400, 0500, 0600 };

	become_user();
	chain_make(unit_fd, "tree", 3, "a");
	chain_make(unit_fd, "tree/b", 40, "c");
	ck_assert_int_eq(fchmodat(unit_fd, "tree/a/a", modes[_i], 0), 0);
	ck_assert_int_eq(fchmodat(unit_fd, "tree/a", modes[_i], 0), 0);
	{
		int fd = dup(unit_fd);

		/* On to the deepest level that is entered; what lies below has to be moved up. */
		for (int i = 0; i < 24; i++) {
			int below = openat(fd,
					i == 0   ? "tree"
					: i == 1 ? "b"
						 : "c",
					O_PATH | O_DIRECTORY | O_CLOEXEC);

			ck_assert_int_ge(below, 0);
			close(fd);
			fd = below;
		}
		ck_assert_int_eq(fchmodat(fd, "c", modes[_i], 0), 0);
		close(fd);
	}
	ck_assert_int_eq(fchmodat(unit_fd, "tree", modes[_i], 0), 0);
	ck_assert_int_eq(file_remove_tree_at(unit_fd, "tree"), 0);
	ck_assert(!is_there(unit_fd, "tree"));
}
END_TEST

/* One directory cannot be emptied: the rest goes, the first failure is told, the loop ends. */
START_TEST(goes_on_after_a_failure)
{
	make_dir(unit_fd, "tree");
	make_dir(unit_fd, "tree/a");
	make_dir(unit_fd, "tree/theirs");
	touch(unit_fd, "tree/theirs/kept");
	touch(unit_fd, "tree/z");
	chain_make(unit_fd, "tree/b", 60, "c");
	ck_assert_int_eq(fchownat(unit_fd, "tree/a", 65534, 65534, 0), 0);
	ck_assert_int_eq(fchownat(unit_fd, "tree", 65534, 65534, 0), 0);
	{
		int fd = dup(unit_fd);

		for (int i = 0; i < 61; i++) {
			const char *name = i == 0 ? "tree" : i == 1 ? "b" : "c";
			int below = -1;

			ck_assert_int_eq(fchownat(fd, name, 65534, 65534, 0), 0);
			below = openat(fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
			close(fd);
			fd = below;
		}
		close(fd);
	}
	become_user();
	ck_assert_int_eq(file_remove_tree_at(unit_fd, "tree"), -EACCES);
	ck_assert(is_there(unit_fd, "tree/theirs"));
	ck_assert(!is_there(unit_fd, "tree/a"));
	ck_assert(!is_there(unit_fd, "tree/b"));
	ck_assert(!is_there(unit_fd, "tree/z"));
}
END_TEST

static void map_file(const char *name, unsigned int id)
{
	char text[32];

	snprintf(text, sizeof(text), "0 %u 1", id);
	ck_assert_int_eq(file_put_at(AT_FDCWD, name, text), 0);
}

/* A mount namespace where mounting is allowed; false where the machine forbids them. */
static bool enter_mount_namespace(void)
{
	unsigned int uid = geteuid();
	unsigned int gid = getegid();

	if (uid != 0) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0) {
			return false;
		}
		ck_assert_int_eq(file_put_at(AT_FDCWD, "/proc/self/setgroups", "deny"), 0);
		map_file("/proc/self/uid_map", uid);
		map_file("/proc/self/gid_map", gid);
	} else if (unshare(CLONE_NEWNS) < 0) {
		return false;
	}
	if (mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
		return false;
	}
	/* The old descriptor's mount belongs to the old namespace. */
	close(unit_fd);
	unit_fd = open(unit_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return unit_fd >= 0;
}

/* A bind mount of the same file system differs from its surroundings in nothing but the mount. */
START_TEST(mounts_are_not_entered)
{
	char path[128];
	char source[128];
	int r = 0;

	if (!enter_mount_namespace()) {
		ck_abort_msg("no mount namespace");
	}
	make_dir(unit_fd, "outside");
	touch(unit_fd, "outside/kept");
	make_dir(unit_fd, "tree");
	make_dir(unit_fd, "tree/bind");
	make_dir(unit_fd, "tree/tmpfs");
	touch(unit_fd, "tree/file");
	snprintf(path, sizeof(path), "%s/tree/bind", unit_path);
	snprintf(source, sizeof(source), "%s/outside", unit_path);
	ck_assert_int_eq(mount(source, path, NULL, MS_BIND, NULL), 0);
	snprintf(path, sizeof(path), "%s/tree/tmpfs", unit_path);
	ck_assert_int_eq(mount("tmpfs", path, "tmpfs", 0, NULL), 0);
	touch(unit_fd, "tree/tmpfs/kept");

	r = file_remove_tree_at(unit_fd, "tree");
	ck_assert(r == -EBUSY || r == -EXDEV);
	ck_assert(is_there(unit_fd, "outside/kept"));
	ck_assert(is_there(unit_fd, "tree/tmpfs/kept"));
	ck_assert(!is_there(unit_fd, "tree/file"));
	/* The mount point itself as the tree. */
	ck_assert_int_eq(file_remove_tree_at(unit_fd, "tree/bind"), -EBUSY);
	ck_assert(is_there(unit_fd, "outside/kept"));
	ck_assert_int_eq(umount2(path, MNT_DETACH), 0);
	snprintf(path, sizeof(path), "%s/tree/bind", unit_path);
	ck_assert_int_eq(umount2(path, MNT_DETACH), 0);
	ck_assert_int_eq(file_remove_tree_at(unit_fd, "tree"), 0);
}
END_TEST

START_TEST(descriptors_are_closed)
{
	int before = dup(unit_fd);
	int after = -1;

	close(before);
	chain_make(unit_fd, "tree", 60, "a");
	ck_assert_int_eq(file_remove_tree_at(unit_fd, "tree"), 0);
	after = dup(unit_fd);
	close(after);
	ck_assert_int_eq(before, after);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("file_remove");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_test(tc, missing_is_success);
	tcase_add_test(tc, single_things);
	tcase_add_test(tc, links_are_not_followed);
	tcase_add_test(tc, many_entries);
	tcase_add_loop_test(tc, unbounded_depth, 0, 8);
	tcase_add_test(tc, names_of_moved_directories_collide);
	tcase_add_test(tc, wide_and_deep);
	tcase_add_loop_test(tc, unreadable_directories, 0, 7);
	if (geteuid() == 0) {
		/* Needs files of two users; for one alone, mounts_are_not_entered says the same. */
		tcase_add_test(tc, goes_on_after_a_failure);
	}
	tcase_add_test(tc, mounts_are_not_entered);
	tcase_add_test(tc, descriptors_are_closed);
	tcase_set_timeout(tc, 30);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
