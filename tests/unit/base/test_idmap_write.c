/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/wait.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/idmap.h>
#include <osbx/mem.h>
#include <osbx/str.h>
#include <osbx/sys.h>

#include "../unit.h"

static struct idmap single(void)
{
	struct idmap map = {
		.mode = IDMAP_SINGLE,
		.uids_n = 1,
		.gids_n = 1,
		.uids = { { .outside = geteuid(), .count = 1 } },
		.gids = { { .outside = getegid(), .count = 1 } },
	};

	return map;
}

/* A file of procfs with runs of blanks made one. */
static char *proc_text(const char *path)
{
	AUTO(buf) struct buf b = BUF_INIT(4096);
	AUTO(buf) struct buf out = BUF_INIT(4096);

	ck_assert_int_eq(file_read_at(AT_FDCWD, path, &b), 0);
	for (size_t i = 0; i < b.n; i++) {
		bool blank = b.p[i] == ' ' &&
			     (out.n == 0 || out.p[out.n - 1] == ' ' || out.p[out.n - 1] == '\n');

		if (!blank) {
			ck_assert_int_eq(buf_append(&out, &b.p[i], 1), 0);
		}
	}
	return buf_take(&out);
}

static void expect_no_child(void)
{
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	ck_assert_int_eq(errno, ECHILD);
}

START_TEST(single_id)
{
	struct idmap map = single();
	struct error e = ERROR_INIT;
	autofree char *uids = mem_printf("0 %u 1\n", geteuid());

	ck_assert_int_eq(sys_unshare(CLONE_NEWUSER), 0);
	ck_assert_msg(idmap_write(&map, getpid(), &e) == 0, "%s", e.text);
	autofree char *got = proc_text("/proc/self/uid_map");
	autofree char *setgroups = proc_text("/proc/self/setgroups");

	ck_assert_str_eq(got, uids);
	ck_assert_str_eq(setgroups, "deny\n");
	/* A map is written once. */
	ck_assert_int_eq(idmap_write(&map, getpid(), &e), -1);
	ck_assert_int_eq(e.code, ERRC_SYSTEM);
	ck_assert_ptr_nonnull(strstr(e.text, "write /proc/"));
}
END_TEST

START_TEST(map_that_is_not_ours_to_write)
{
	struct idmap map = single();
	struct error e = ERROR_INIT;

	ck_assert_int_eq(sys_unshare(CLONE_NEWUSER), 0);
	map.uids[0].outside = geteuid() + 1;
	ck_assert_int_eq(idmap_write(&map, getpid(), &e), -1);
	ck_assert_int_eq(e.sysno, EPERM);
	ck_assert_ptr_nonnull(strstr(e.text, "uid_map"));
	ck_assert_uint_gt(strlen(e.hint), 0);
}
END_TEST

START_TEST(process_that_is_not_there)
{
	struct idmap map = single();
	struct error e = ERROR_INIT;
	pid_t pid = sys_fork();

	if (pid == 0) {
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert_int_eq(idmap_write(&map, pid, &e), -1);
	ck_assert_int_eq(e.sysno, ENOENT);
}
END_TEST

/* As PID 1 with the old /proc: 0 if the map is refused with the right words. */
static int write_as_first(void)
{
	struct idmap map = single();
	struct error e = ERROR_INIT;
	int status = 1;

	if (sys_unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0) {
		return 2;
	}
	pid_t pid = sys_fork();

	if (pid == 0) {
		/* What /proc calls 1 is not ours to write. */
		int r = idmap_write(&map, getpid(), &e);

		_exit(getpid() == 1 && r < 0 && e.code == ERRC_UNSUPPORTED &&
								strstr(e.text, "another pid namespace") &&
								strstr(e.hint, "mount")
						? 0
						: 1);
	}
	return waitpid(pid, &status, 0) == pid ? status : 3;
}

/* "unshare --pid": the number of a child is somebody else's in /proc. */
START_TEST(procfs_of_another_pid_namespace)
{
	int status = 0;
	pid_t pid = sys_fork();

	if (pid == 0) {
		_exit(write_as_first() == 0 ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(namespace_held_by_a_descriptor)
{
	struct idmap map = single();
	struct error e = ERROR_INIT;
	autoclose int fd = -1;
	struct stat mine;
	struct stat other;

	ck_assert_msg(idmap_userns_open(&map, &fd, &e) == 0, "%s", e.text);
	expect_no_child();
	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(stat("/proc/self/ns/user", &mine), 0);
	ck_assert_int_eq(fstat(fd, &other), 0);
	ck_assert_uint_ne(mine.st_ino, other.st_ino);
	autofree char *wanted = mem_printf("0 %u 1\n", geteuid());

	ck_assert_int_eq(sys_setns(fd, CLONE_NEWUSER), 0);
	ck_assert_uint_eq(geteuid(), 0);
	autofree char *got = proc_text("/proc/self/uid_map");

	/* Seen from inside, its parent's ids are those outside. */
	ck_assert_str_eq(got, wanted);
}
END_TEST

START_TEST(failure_leaves_no_child)
{
	struct idmap map = single();
	struct error e = ERROR_INIT;
	int fd = -7;
	int before = open("/dev/null", O_RDONLY | O_CLOEXEC);

	map.uids[0].count = 0;
	ck_assert_int_eq(idmap_userns_open(&map, &fd, &e), -1);
	ck_assert_int_eq(e.sysno, EINVAL);
	ck_assert_int_eq(fd, -7);
	expect_no_child();
	autoclose int after = open("/dev/null", O_RDONLY | O_CLOEXEC);

	ck_assert_int_eq(after, before + 1);
	fd_close(&before);
}
END_TEST

START_TEST(ignored_child_signal)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct idmap map = single();
	struct error e = ERROR_INIT;
	autoclose int fd = -1;

	/* The kernel reaps by itself then. */
	ck_assert_int_eq(sigaction(SIGCHLD, &ignore, NULL), 0);
	ck_assert_msg(idmap_userns_open(&map, &fd, &e) == 0, "%s", e.text);
	ck_assert_int_ge(fd, 0);
}
END_TEST

START_TEST(chosen_map_works)
{
	struct idmap map;
	struct error e = ERROR_INIT;
	autoclose int fd = -1;

	ck_assert_msg(idmap_choose(&map, &e) == 0, "%s", e.text);
	ck_assert_msg(idmap_userns_open(&map, &fd, &e) == 0, "%s (%s)", e.text, e.hint);
	expect_no_child();
	ck_assert_int_eq(sys_setns(fd, CLONE_NEWUSER), 0);
	ck_assert_int_eq(sys_setresgid(0), 0);
	ck_assert_int_eq(sys_setresuid(0), 0);
	autofree char *got = proc_text("/proc/self/gid_map");
	AUTO(buf) struct buf wanted = BUF_INIT(4096);

	for (size_t i = 0; i < map.gids_n; i++) {
		ck_assert_int_eq(buf_appendf(&wanted, "%u %u %u\n", map.gids[i].inside,
						 map.gids[i].outside, map.gids[i].count),
				0);
	}
	ck_assert_str_eq(got, wanted.p);
	gid_t group = 1;

	ck_assert_int_eq(sys_setgroups(1, &group), map.setgroups ? 0 : -EPERM);
}
END_TEST

START_TEST(creation_refused)
{
	struct idmap map = single();
	struct error e = ERROR_INIT;
	int fd = -7;

	/* In a namespace of its own where no more are allowed. */
	ck_assert_int_eq(sys_unshare(CLONE_NEWUSER), 0);
	ck_assert_int_eq(idmap_write(&map, getpid(), &e), 0);
	ck_assert_int_eq(file_put_at(AT_FDCWD, "/proc/sys/user/max_user_namespaces", "0"), 0);
	ck_assert_int_eq(idmap_userns_open(&map, &fd, &e), -1);
	ck_assert_int_eq(e.sysno, ENOSPC);
	ck_assert_ptr_nonnull(strstr(e.hint, "max_user_namespaces"));
	ck_assert_int_eq(fd, -7);
}
END_TEST

START_TEST(helpers_refuse_and_are_quoted)
{
	struct idmap map = single();
	struct error e = ERROR_INIT;
	int fd = -7;

	/* Nobody was given such ids; the helpers ask for an entry of root, too. */
	map.helpers = true;
	map.uids[0].outside = 3999999999U;
	map.gids[0].outside = 3999999999U;
	ck_assert_int_eq(idmap_userns_open(&map, &fd, &e), -1);
	ck_assert_msg(str_after(e.text, "newuidmap failed with status 1: ") != NULL, "%s", e.text);
	ck_assert_ptr_null(strchr(e.text, '\n'));
	ck_assert_ptr_nonnull(strstr(e.hint, "/etc/subuid"));
	ck_assert_int_eq(e.truncated, 0);
	ck_assert_int_eq(fd, -7);
	expect_no_child();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("idmap_write");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, single_id);
	tcase_add_test(tc, map_that_is_not_ours_to_write);
	tcase_add_test(tc, process_that_is_not_there);
	tcase_add_test(tc, procfs_of_another_pid_namespace);
	tcase_add_test(tc, namespace_held_by_a_descriptor);
	tcase_add_test(tc, failure_leaves_no_child);
	tcase_add_test(tc, ignored_child_signal);
	tcase_add_test(tc, chosen_map_works);
	tcase_add_test(tc, creation_refused);
	tcase_add_test(tc, helpers_refuse_and_are_quoted);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
