/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each case of resolution runs four times: with openat2, and under a syscall filter that answers
 * ENOSYS, EPERM or EAGAIN for it, so that the walk by components must give the same.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <osbx/cleanup.h>
#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/str.h>
#include <osbx/sys.h>

#include "../unit.h"

static const int openat2_errnos[] = { 0, ENOSYS, EPERM, EAGAIN };

/* From now on openat2 fails so in this process; 0: as it is. */
static void break_openat2(int errno_value)
{
	const struct sock_filter insns[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned int)errno_value),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	if (errno_value == 0) {
		return;
	}
	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(sys_seccomp(insns, ARRAY_SIZE(insns)), 0);
	ck_assert_int_eq(sys_openat2(unit_fd, ".", O_PATH, 0, 0), -errno_value);
}

static void file_make(int dir_fd, const char *path, const char *text)
{
	autoclose int fd = openat(dir_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), strlen(text));
}

static void link_make(int dir_fd, const char *target, const char *path)
{
	ck_assert_int_eq(symlinkat(target, dir_fd, path), 0);
}

/*
 * Beside the root, "outside" holds a secret; the root is a tree of everything that leads astray.
 * Returns the root.
 */
static int tree_make(void)
{
	static const char *const dirs[] = { "outside", "root", "root/etc", "root/a", "root/a/b",
		"root/a/b/c", "root/proc" };
	int root = -1;

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		ck_assert_int_eq(mkdirat(unit_fd, dirs[i], 0755), 0);
	}
	file_make(unit_fd, "outside/secret", "outside");
	file_make(unit_fd, "root/etc/passwd", "inside");
	file_make(unit_fd, "root/a/file", "file");
	file_make(unit_fd, "root/a/b/c/deep", "deep");
	link_make(unit_fd, "/etc/passwd", "root/absolute");
	link_make(unit_fd, "../../../../../../etc/passwd", "root/a/upward");
	link_make(unit_fd, "../outside/secret", "root/escape");
	link_make(unit_fd, "/", "root/top");
	link_make(unit_fd, "a/b", "root/ab");
	link_make(unit_fd, "ab", "root/ab2");
	link_make(unit_fd, "..", "root/a/b/parent");
	link_make(unit_fd, "c", "root/a/b/sibling");
	link_make(unit_fd, "/etc/passwd", "root/a/b/absolute");
	link_make(unit_fd, "loop2", "root/loop1");
	link_make(unit_fd, "loop1", "root/loop2");
	link_make(unit_fd, "self", "root/self");
	link_make(unit_fd, "missing/x", "root/dangling");
	link_make(unit_fd, "created", "root/creates");
	root = openat(unit_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(root, 0);
	return root;
}

static const struct {
	const char *path;
	int flags;
	int result;       /* 0 or -errno */
	const char *text; /* of the file, NULL: not read */
} opens[] = {
	{ "etc/passwd", O_RDONLY, 0, "inside" },
	{ "/etc/passwd", O_RDONLY, 0, "inside" },
	{ "//etc///passwd", O_RDONLY, 0, "inside" },
	{ "./etc/./passwd", O_RDONLY, 0, "inside" },
	{ "../etc/passwd", O_RDONLY, 0, "inside" },
	{ "/../../etc/passwd", O_RDONLY, 0, "inside" },
	{ "a/../etc/passwd", O_RDONLY, 0, "inside" },
	{ "a/b/c/../../../etc/passwd", O_RDONLY, 0, "inside" },
	{ "a/b/c/../../../../../../etc/passwd", O_RDONLY, 0, "inside" },
	{ "absolute", O_RDONLY, 0, "inside" },
	{ "a/b/absolute", O_RDONLY, 0, "inside" },
	{ "ab/absolute", O_RDONLY, 0, "inside" },
	{ "a/upward", O_RDONLY, 0, "inside" },
	{ "escape", O_RDONLY, -ENOENT, NULL },
	{ "../outside/secret", O_RDONLY, -ENOENT, NULL },
	{ "top/top/top/etc/passwd", O_RDONLY, 0, "inside" },
	{ "top/../top/..", O_PATH, 0, NULL },
	{ "ab/c/deep", O_RDONLY, 0, "deep" },
	{ "ab2/c/deep", O_RDONLY, 0, "deep" },
	/* ".." of a link's target is the target's parent, not the link's. */
	{ "ab/../file", O_RDONLY, 0, "file" },
	{ "ab2/../../etc/passwd", O_RDONLY, 0, "inside" },
	{ "a/b/parent/file", O_RDONLY, 0, "file" },
	{ "a/b/parent/b/parent/b/sibling/deep", O_RDONLY, 0, "deep" },
	{ "loop1", O_RDONLY, -ELOOP, NULL },
	{ "loop1/x", O_RDONLY, -ELOOP, NULL },
	{ "self", O_RDONLY, -ELOOP, NULL },
	{ "dangling", O_RDONLY, -ENOENT, NULL },
	{ "missing", O_RDONLY, -ENOENT, NULL },
	{ "missing/..", O_RDONLY, -ENOENT, NULL },
	{ "a/file/x", O_RDONLY, -ENOTDIR, NULL },
	{ "a/file/", O_RDONLY, -ENOTDIR, NULL },
	{ "a/file/..", O_RDONLY, -ENOTDIR, NULL },
	{ "a/file/.", O_RDONLY, -ENOTDIR, NULL },
	{ "absolute/", O_RDONLY, -ENOTDIR, NULL },
	{ "absolute/x", O_RDONLY, -ENOTDIR, NULL },
	{ "", O_RDONLY, -ENOENT, NULL },
	{ "/", O_PATH, 0, NULL },
	{ ".", O_RDONLY | O_DIRECTORY, 0, NULL },
	{ "..", O_RDONLY | O_DIRECTORY, 0, NULL },
	{ "/", O_RDWR, -EISDIR, NULL },
	{ "a", O_RDWR, -EISDIR, NULL },
	{ "a", O_RDONLY | O_DIRECTORY, 0, NULL },
	{ "ab", O_RDONLY | O_DIRECTORY, 0, NULL },
	{ "ab/", O_RDONLY | O_DIRECTORY, 0, NULL },
	{ "a/file", O_RDONLY | O_DIRECTORY, -ENOTDIR, NULL },
	{ "absolute", O_PATH | O_DIRECTORY, -ENOTDIR, NULL },
	{ "absolute", O_RDONLY | O_NOFOLLOW, -ELOOP, NULL },
	{ "absolute", O_PATH | O_NOFOLLOW, 0, NULL },
	{ "ab/", O_PATH | O_NOFOLLOW, 0, NULL },
	{ "ab/c/deep", O_RDONLY | O_NOFOLLOW, 0, "deep" },
	{ "a/file", O_WRONLY | O_CREAT | O_EXCL, -EEXIST, NULL },
	{ "absolute", O_WRONLY | O_CREAT | O_EXCL, -EEXIST, NULL },
	{ "dangling", O_WRONLY | O_CREAT | O_EXCL, -EEXIST, NULL },
	{ "dangling", O_WRONLY | O_CREAT, -ENOENT, NULL },
	{ "new", O_WRONLY | O_CREAT, 0, NULL },
	{ "new", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0, NULL },
	{ "creates", O_WRONLY | O_CREAT, 0, NULL },
	{ "creates", O_WRONLY | O_CREAT | O_NOFOLLOW, -ELOOP, NULL },
	{ "new/", O_WRONLY | O_CREAT, -EISDIR, NULL },
	{ "a", O_WRONLY | O_CREAT, -EISDIR, NULL },
	{ "missing/new", O_WRONLY | O_CREAT, -ENOENT, NULL },
	{ "a", O_TMPFILE | O_RDWR, 0, NULL },
	{ "etc/passwd", O_RDONLY | O_CLOEXEC | O_NOCTTY, 0, "inside" },
	/* Refused by openat2 when given as they are. */
	{ "etc/passwd", O_PATH | O_NOCTTY | O_RDWR | O_NONBLOCK, 0, NULL },
};

START_TEST(open_beneath)
{
	const size_t how = (size_t)_i / ARRAY_SIZE(opens);
	const size_t row = (size_t)_i % ARRAY_SIZE(opens);
	autoclose int root = tree_make();
	autoclose int fd = -1;
	char text[32] = "";
	int expected = opens[row].result;

	break_openat2(openat2_errnos[how]);
	fd = path_open_beneath(root, opens[row].path, opens[row].flags, 0600);
	ck_assert_msg(expected == 0 ? fd >= 0 : fd == expected, "%s: %d, expected %d",
			opens[row].path, fd, expected);
	if (fd >= 0) {
		ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
	}
	if (opens[row].text) {
		ck_assert_int_ge(read(fd, text, sizeof(text) - 1), 0);
		ck_assert_str_eq(text, opens[row].text);
	}
}
END_TEST

START_TEST(root_is_the_top)
{
	autoclose int root = tree_make();
	autoclose int fd = -1;
	struct stat mine;
	struct stat top;

	break_openat2(openat2_errnos[_i]);
	fd = path_open_beneath(root, "a/b/../../../../..", O_PATH, 0);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fstat(fd, &mine), 0);
	ck_assert_int_eq(fstat(root, &top), 0);
	ck_assert_uint_eq(mine.st_ino, top.st_ino);
	ck_assert_int_eq(faccessat(unit_fd, "root/created", F_OK, 0), -1);
	ck_assert_int_eq(path_open_beneath(-1, "a", O_PATH, 0), -EBADF);
}
END_TEST

START_TEST(create_follows_below_the_root)
{
	autoclose int root = tree_make();
	autoclose int fd = -1;

	break_openat2(openat2_errnos[_i]);
	link_make(root, "/../outside/pwned", "creates-outside");
	ck_assert_int_eq(path_open_beneath(root, "creates-outside", O_WRONLY | O_CREAT, 0600),
			-ENOENT);
	fd = path_open_beneath(root, "creates", O_WRONLY | O_CREAT, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(faccessat(root, "created", F_OK, 0), 0);
	ck_assert_int_eq(faccessat(unit_fd, "outside/pwned", F_OK, 0), -1);
}
END_TEST

START_TEST(links_are_counted)
{
	autoclose int root = tree_make();
	autoclose int fd = -1;
	char name[8] = "file";
	char link[8];

	mkdirat(root, "chain", 0755);
	file_make(root, "chain/file", "end");
	for (int i = 1; i <= 41; i++) {
		snprintf(link, sizeof(link), "l%d", i);
		{
			autofree char *path = mem_printf("chain/%s", link);

			link_make(root, name, path);
		}
		snprintf(name, sizeof(name), "%s", link);
	}
	break_openat2(openat2_errnos[_i]);
	fd = path_open_beneath(root, "chain/l40", O_RDONLY, 0);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(path_open_beneath(root, "chain/l41", O_RDONLY, 0), -ELOOP);
}
END_TEST

START_TEST(long_paths)
{
	autoclose int root = tree_make();
	autofree char *path = mem_array(5001, 1);
	autoclose int fd = -1;

	break_openat2(openat2_errnos[_i]);
	for (int i = 0; i < 5000; i++) {
		path[i] = i % 2 ? '/' : '.';
	}
	ck_assert_int_eq(path_open_beneath(root, path, O_PATH, 0), -ENAMETOOLONG);
	ck_assert_int_eq(path_open_nolink(root, path, O_PATH, 0), -ENAMETOOLONG);
	ck_assert_int_eq(path_mkdirs_beneath(root, path, 0755), -ENAMETOOLONG);
	path[4095] = '\0';
	fd = path_open_beneath(root, path, O_PATH, 0);
	ck_assert_int_ge(fd, 0);
	memset(path, 'x', 256);
	path[256] = '\0';
	ck_assert_int_eq(path_open_beneath(root, path, O_PATH, 0), -ENAMETOOLONG);
	ck_assert_int_eq(path_mkdirs_beneath(root, path, 0755), -ENAMETOOLONG);
}
END_TEST

START_TEST(no_magic_links)
{
	autoclose int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	autoclose int tree = tree_make();
	autofree char *path = mem_printf("/proc/self/fd/%d/secret", unit_fd);
	autofree char *jump = mem_printf("/proc/self/root%s", "/etc");

	/* With "/" as the root the walk may follow the text of such a link, but never jumps: the
	 * text of fd/N names a path below the root or nothing. */
	break_openat2(openat2_errnos[_i]);
	if (openat2_errnos[_i] == 0) {
		ck_assert_int_eq(path_open_beneath(root, jump, O_PATH, 0), -ELOOP);
	}
	ck_assert_int_lt(path_open_beneath(root, path, O_PATH, 0), 0);
	ck_assert_int_ge(tree, 0);
}
END_TEST

START_TEST(unreadable_is_refused)
{
	autoclose int root = tree_make();

	ck_assert_int_eq(fchmodat(root, "a", 0, 0), 0);
	if (geteuid() == 0) {
		ck_assert_int_eq(fchownat(root, "a", 65534, 65534, 0), 0);
		ck_assert_int_eq(fchmod(unit_fd, 0755), 0);
		ck_assert_int_eq(setresuid(65534, 65534, 65534), 0);
	}
	break_openat2(openat2_errnos[_i]);
	ck_assert_int_eq(path_open_beneath(root, "a/file", O_RDONLY, 0), -EACCES);
	ck_assert_int_eq(path_open_beneath(root, "a/b/..", O_PATH, 0), -EACCES);
	ck_assert_int_eq(path_mkdirs_beneath(root, "a/new", 0755), -EACCES);
}
END_TEST

static const struct {
	const char *path;
	int flags;
	int result;
} nolinks[] = {
	{ "etc/passwd", O_RDONLY, 0 },
	{ "/etc/passwd", O_RDONLY, 0 },
	{ "a/b/c", O_PATH | O_DIRECTORY, 0 },
	{ ".", O_PATH, 0 },
	{ "absolute", O_RDONLY, -ELOOP },
	{ "absolute", O_PATH, -ELOOP },
	{ "absolute", O_PATH | O_NOFOLLOW, -ELOOP },
	{ "absolute", O_RDONLY | O_NOFOLLOW, -ELOOP },
	{ "ab/c/deep", O_RDONLY, -ELOOP },
	{ "ab/", O_PATH, -ELOOP },
	{ "dangling", O_WRONLY | O_CREAT, -ELOOP },
	{ "..", O_PATH, -EXDEV },
	{ "a/..", O_PATH, -EXDEV },
	{ "a/../etc/passwd", O_RDONLY, -EXDEV },
	{ "../outside/secret", O_RDONLY, -EXDEV },
	{ "a/...", O_PATH, -ENOENT },
	{ "a/..b", O_PATH, -ENOENT },
	{ "", O_PATH, -ENOENT },
	{ "new", O_WRONLY | O_CREAT | O_EXCL, 0 },
	{ "a/file/x", O_PATH, -ENOTDIR },
};

START_TEST(open_nolink)
{
	const size_t how = (size_t)_i / ARRAY_SIZE(nolinks);
	const size_t row = (size_t)_i % ARRAY_SIZE(nolinks);
	autoclose int root = tree_make();
	autoclose int fd = -1;

	break_openat2(openat2_errnos[how]);
	fd = path_open_nolink(root, nolinks[row].path, nolinks[row].flags, 0600);
	ck_assert_msg(nolinks[row].result == 0 ? fd >= 0 : fd == nolinks[row].result,
			"%s: %d, expected %d", nolinks[row].path, fd, nolinks[row].result);
}
END_TEST

static const struct {
	const char *path;
	int result;
	const char *made; /* directory that is there afterwards */
} mkdirs[] = {
	{ "a/b/c", 0, "a/b/c" },
	{ "new", 0, "new" },
	{ "/n/e/w/", 0, "n/e/w" },
	{ "a/b/x/y", 0, "a/b/x/y" },
	{ "ab/x", 0, "a/b/x" },
	{ "ab2/x/y", 0, "a/b/x/y" },
	{ "top/x", 0, "x" },
	{ "a/upward/x", -ENOTDIR, NULL },
	{ "a/../../../x", 0, "x" },
	{ "x/../y", 0, "y" },
	{ "/", 0, "." },
	{ ".", 0, "." },
	{ "", -ENOENT, NULL },
	{ "a/file", -ENOTDIR, NULL },
	{ "a/file/x", -ENOTDIR, NULL },
	{ "absolute", -ENOTDIR, NULL },
	{ "dangling", -ELOOP, NULL },
	{ "dangling/x", -ELOOP, NULL },
	{ "escape/x", -ELOOP, NULL },
	{ "creates/x", -ELOOP, NULL },
	{ "loop1/x", -ELOOP, NULL },
	{ "a/b/parent/x", 0, "a/x" },
};

START_TEST(mkdirs_beneath)
{
	const size_t how = (size_t)_i / ARRAY_SIZE(mkdirs);
	const size_t row = (size_t)_i % ARRAY_SIZE(mkdirs);
	autoclose int root = tree_make();
	autoclose int fd = -1;
	struct stat got;
	struct stat made;

	umask(022);
	break_openat2(openat2_errnos[how]);
	fd = path_mkdirs_beneath(root, mkdirs[row].path, 0755);
	ck_assert_msg(mkdirs[row].result == 0 ? fd >= 0 : fd == mkdirs[row].result,
			"%s: %d, expected %d", mkdirs[row].path, fd, mkdirs[row].result);
	if (mkdirs[row].made) {
		ck_assert_int_eq(fstatat(root, mkdirs[row].made, &made, AT_SYMLINK_NOFOLLOW), 0);
		ck_assert_int_eq(fstat(fd, &got), 0);
		ck_assert_uint_eq(got.st_ino, made.st_ino);
		ck_assert_int_eq(made.st_mode & 07777, 0755);
	}
	/* Nothing appeared outside, or where a dangling link points. */
	ck_assert_int_eq(faccessat(unit_fd, "outside/secret/x", F_OK, 0), -1);
	ck_assert_int_eq(faccessat(unit_fd, "x", F_OK, 0), -1);
	ck_assert_int_eq(faccessat(root, "missing", F_OK, 0), -1);
	ck_assert_int_eq(faccessat(root, "outside", F_OK, 0), -1);
	ck_assert_int_eq(faccessat(root, "created", F_OK, 0), -1);
}
END_TEST

START_TEST(dangling_in_the_middle_of_a_link)
{
	autoclose int root = tree_make();

	break_openat2(openat2_errnos[_i]);
	/* The rest that is the caller's own is longer than the link's missing part. */
	link_make(root, "q", "short");
	ck_assert_int_eq(path_mkdirs_beneath(root, "short/long/path/of/mine", 0755), -ELOOP);
	ck_assert_int_eq(faccessat(root, "q", F_OK, 0), -1);
	link_make(root, "short/r", "twice");
	ck_assert_int_eq(path_mkdirs_beneath(root, "twice/mine", 0755), -ELOOP);
	ck_assert_int_eq(faccessat(root, "q", F_OK, 0), -1);
}
END_TEST

static const struct {
	const char *path;
	int result;
	const char *parent;
	const char *name;
} parents[] = {
	{ "file", 0, ".", "file" },
	{ "/file", 0, ".", "file" },
	{ "a/b/x", 0, "a/b", "x" },
	{ "n/e/w", 0, "n/e", "w" },
	{ "ab/x", 0, "a/b", "x" },
	{ "../x", 0, ".", "x" },
	{ "absolute", 0, ".", "absolute" },
	{ "", -EINVAL, NULL, NULL },
	{ "/", -EINVAL, NULL, NULL },
	{ ".", -EINVAL, NULL, NULL },
	{ "..", -EINVAL, NULL, NULL },
	{ "a/..", -EINVAL, NULL, NULL },
	{ "a/.", -EINVAL, NULL, NULL },
	{ "a/", -EINVAL, NULL, NULL },
	{ "a/file/x", -ENOTDIR, NULL, NULL },
	{ "dangling/x", -ELOOP, NULL, NULL },
};

START_TEST(parent_beneath)
{
	const size_t how = (size_t)_i / ARRAY_SIZE(parents);
	const size_t row = (size_t)_i % ARRAY_SIZE(parents);
	autoclose int root = tree_make();
	autoclose int fd = -1;
	const char *name = "untouched";
	struct stat got;
	struct stat parent;

	break_openat2(openat2_errnos[how]);
	fd = path_parent_beneath(root, parents[row].path, 0755, &name);
	ck_assert_msg(parents[row].result == 0 ? fd >= 0 : fd == parents[row].result,
			"%s: %d, expected %d", parents[row].path, fd, parents[row].result);
	if (fd < 0) {
		ck_assert_str_eq(name, "untouched");
		return;
	}
	ck_assert_str_eq(name, parents[row].name);
	ck_assert_int_eq(fstatat(root, parents[row].parent, &parent, 0), 0);
	ck_assert_int_eq(fstat(fd, &got), 0);
	ck_assert_uint_eq(got.st_ino, parent.st_ino);
}
END_TEST

/*
 * Another process moves a directory out of the root and back while ".." is resolved in it: the
 * secret beside the root must never be reached.
 */
START_TEST(moved_directories_lead_nowhere)
{
	const int rounds = 3000;
	autoclose int root = tree_make();
	pid_t mover = -1;
	int reached = 0;

	break_openat2(openat2_errnos[_i]);
	file_make(unit_fd, "etc-secret", "outside");
	mover = fork();
	if (mover == 0) {
		for (int i = 0; i < 2 * rounds; i++) {
			(void)!renameat(unit_fd, "root/a/b", unit_fd, "outside/b");
			(void)!renameat(unit_fd, "outside/b", unit_fd, "root/a/b");
		}
		_exit(0);
	}
	/* On a busy machine until it was there once: in the end everything is in its place. */
	for (int i = 0; i < rounds || (reached == 0 && i < 1000 * rounds); i++) {
		autoclose int fd = path_open_beneath(root, "a/b/c/../../secret", O_RDONLY, 0);
		autoclose int up = path_open_beneath(root, "a/b/../../../etc-secret", O_RDONLY, 0);
		autoclose int deep = path_open_beneath(root, "a/b/c/deep", O_RDONLY, 0);

		ck_assert_int_lt(fd, 0);
		ck_assert_int_lt(up, 0);
		reached += deep >= 0;
	}
	ck_assert_int_eq(waitpid(mover, NULL, 0), mover);
	ck_assert_int_gt(reached, 0);
}
END_TEST

/* A directory and a link that leads outside by the kernel's reading change places all the time. */
START_TEST(exchanged_links_lead_nowhere)
{
	const int rounds = 3000;
	autoclose int root = tree_make();
	pid_t mover = -1;
	int reached = 0;

	break_openat2(openat2_errnos[_i]);
	ck_assert_int_eq(mkdirat(unit_fd, "outside/c", 0755), 0);
	file_make(root, "a/b/own", "own");
	link_make(root, "../../outside", "a/link");
	mover = fork();
	if (mover == 0) {
		for (int i = 0; i < 4 * rounds; i++) {
			(void)!renameat2(root, "a/b", root, "a/link", RENAME_EXCHANGE);
		}
		_exit(0);
	}
	/* On a busy machine until it was there once: in the end everything is in its place. */
	for (int i = 0; i < rounds || (reached == 0 && i < 1000 * rounds); i++) {
		autoclose int fd = path_open_beneath(root, "a/b/c/../secret", O_RDONLY, 0);
		autoclose int own = path_open_beneath(root, "a/b/c/../own", O_RDONLY, 0);
		autoclose int made = path_mkdirs_beneath(root, "a/b/c/../made", 0755);

		ck_assert_int_lt(fd, 0);
		reached += own >= 0;
		(void)made;
	}
	ck_assert_int_eq(waitpid(mover, NULL, 0), mover);
	ck_assert_int_gt(reached, 0);
	ck_assert_int_eq(faccessat(unit_fd, "outside/made", F_OK, 0), -1);
}
END_TEST

/* No descriptor stays open, whatever the way out. */
START_TEST(descriptors_are_closed)
{
	autoclose int root = tree_make();
	int before = -1;
	int after = -1;

	break_openat2(openat2_errnos[_i]);
	/* The lowest free number, before and after. */
	before = dup(root);
	close(before);
	for (size_t i = 0; i < ARRAY_SIZE(opens); i++) {
		autoclose int fd = path_open_beneath(root, opens[i].path, opens[i].flags, 0600);
		autoclose int dir = path_mkdirs_beneath(root, opens[i].path, 0700);
		autoclose int strict = path_open_nolink(root, opens[i].path, O_PATH, 0);

		(void)fd;
		(void)dir;
		(void)strict;
	}
	after = dup(root);
	close(after);
	ck_assert_int_eq(after, before);
}
END_TEST

static const struct {
	const char *path;
	const char *normal;
} normals[] = {
	{ "", "/" },
	{ "/", "/" },
	{ "//", "/" },
	{ ".", "/" },
	{ "..", "/" },
	{ "a", "/a" },
	{ "/a/b", "/a/b" },
	{ "a//b/", "/a/b" },
	{ "./a/./b/.", "/a/b" },
	{ "/a/../b", "/b" },
	{ "/a/b/../..", "/" },
	{ "/../../a", "/a" },
	{ "a/../../../b/../c", "/c" },
	{ "/...", "/..." },
	{ "/..a/.b", "/..a/.b" },
	{ "/a/b/c/../d", "/a/b/d" },
};

START_TEST(normalise)
{
	autofree char *out = path_normalise(normals[_i].path);

	ck_assert_str_eq(out, normals[_i].normal);
}
END_TEST

START_TEST(below_compares_components)
{
	ck_assert(path_is_below("/a", "/a"));
	ck_assert(path_is_below("/a/b", "/a"));
	ck_assert(path_is_below("/a", "/"));
	ck_assert(path_is_below("/", "/"));
	ck_assert(!path_is_below("/ab", "/a"));
	ck_assert(!path_is_below("/a", "/a/b"));
	ck_assert(!path_is_below("/", "/a"));
}
END_TEST

START_TEST(last_component)
{
	ck_assert_str_eq(path_last("/a/b"), "b");
	ck_assert_str_eq(path_last("b"), "b");
	ck_assert_str_eq(path_last("/a/"), "");
	ck_assert_str_eq(path_last(""), "");
}
END_TEST

int main(void)
{
	const int hows = (int)ARRAY_SIZE(openat2_errnos);
	Suite *s = suite_create("path");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_loop_test(tc, open_beneath, 0, hows * (int)ARRAY_SIZE(opens));
	tcase_add_loop_test(tc, root_is_the_top, 0, hows);
	tcase_add_loop_test(tc, create_follows_below_the_root, 0, hows);
	tcase_add_loop_test(tc, links_are_counted, 0, hows);
	tcase_add_loop_test(tc, long_paths, 0, hows);
	tcase_add_loop_test(tc, no_magic_links, 0, hows);
	tcase_add_loop_test(tc, unreadable_is_refused, 0, hows);
	tcase_add_loop_test(tc, open_nolink, 0, hows * (int)ARRAY_SIZE(nolinks));
	tcase_add_loop_test(tc, mkdirs_beneath, 0, hows * (int)ARRAY_SIZE(mkdirs));
	tcase_add_loop_test(tc, dangling_in_the_middle_of_a_link, 0, hows);
	tcase_add_loop_test(tc, parent_beneath, 0, hows * (int)ARRAY_SIZE(parents));
	tcase_add_loop_test(tc, moved_directories_lead_nowhere, 0, hows);
	tcase_add_loop_test(tc, exchanged_links_lead_nowhere, 0, hows);
	tcase_add_loop_test(tc, descriptors_are_closed, 0, hows);
	tcase_add_loop_test(tc, normalise, 0, ARRAY_SIZE(normals));
	tcase_add_test(tc, below_compares_components);
	tcase_add_test(tc, last_component);
	tcase_set_timeout(tc, 60);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
