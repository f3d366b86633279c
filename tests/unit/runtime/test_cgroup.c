/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <sys/wait.h>

#include <osbx/cgroup.h>
#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/mem.h>
#include <osbx/str.h>
#include <osbx/sys.h>

#include "../unit.h"

static struct cgroup cg;
static struct id id;

static void start(void)
{
	struct error e = ERROR_INIT;

	id_new(&id);
	ck_assert_msg(cgroup_start(&id, &cg, &e) == 0, "%s", e.text);
	ck_assert_int_ge(cg.dir_fd, 0);
	ck_assert_int_ge(cg.base_fd, 0);
}

/* A process in a cgroup (its directory descriptor) that lives until it is killed. */
static pid_t live_in(int dir_fd)
{
	int pidfd = -1;
	pid_t pid = sys_clone(0, dir_fd, &pidfd);

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		for (;;) {
			pause();
		}
	}
	close(pidfd);
	return pid;
}

static void expect_killed(pid_t pid)
{
	int status = 0;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(WTERMSIG(status), SIGKILL);
}

/* The kernel reaps them. */
static void ignore_children(void)
{
	const struct sigaction sa = { .sa_handler = SIG_IGN };

	ck_assert_int_eq(sigaction(SIGCHLD, &sa, NULL), 0);
}

static bool exists(int dir_fd, const char *name)
{
	return faccessat(dir_fd, name, F_OK, 0) == 0;
}

/* To a cgroup beside BASE/osbx, and back. The descriptor of BASE. */
static int aside_enter(void)
{
	int own = openat(cg.base_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	ck_assert_int_ge(own, 0);
	ck_assert(mkdirat(own, "osbx-aside", 0755) == 0 || errno == EEXIST);
	ck_assert_int_eq(file_put_at(own, "osbx-aside/cgroup.procs", "0"), 0);
	return own;
}

static void aside_leave(int own)
{
	ck_assert_int_eq(file_put_at(own, "cgroup.procs", "0"), 0);
	ck_assert_int_eq(unlinkat(own, "osbx-aside", AT_REMOVEDIR), 0);
}

START_TEST(made_and_removed)
{
	start();
	autoclose int own = openat(cg.base_fd, "..", O_PATH | O_CLOEXEC);

	ck_assert(exists(cg.base_fd, id.text));
	ck_assert(exists(own, "osbx"));
	cgroup_stop(&cg);
	ck_assert_int_eq(cg.dir_fd, -1);
	ck_assert_int_eq(cg.base_fd, -1);
	cgroup_stop(&cg);
	cgroup_stop(NULL);
}
END_TEST

START_TEST(the_same_twice_is_an_error)
{
	struct cgroup second = CGROUP_INIT;
	struct error e = ERROR_INIT;

	start();
	ck_assert_int_eq(cgroup_start(&id, &second, &e), -1);
	ck_assert_int_eq(e.sysno, EEXIST);
	ck_assert_ptr_nonnull(strstr(e.text, id.text));
	ck_assert_int_eq(second.dir_fd, -1);
	cgroup_stop(&cg);
}
END_TEST

START_TEST(leaves_go_with_it)
{
	start();
	autoclose int base = fd_dup(cg.base_fd, 0);

	ck_assert_int_eq(mkdirat(cg.dir_fd, "init", 0755), 0);
	ck_assert_int_eq(mkdirat(cg.dir_fd, "cmd-1", 0755), 0);
	cgroup_stop(&cg);
	ck_assert(!exists(base, id.text));
}
END_TEST

START_TEST(kill_reaches_leaves)
{
	start();
	ck_assert_int_eq(mkdirat(cg.dir_fd, "main", 0755), 0);
	autoclose int leaf = openat(cg.dir_fd, "main", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	pid_t here = live_in(cg.dir_fd);
	pid_t there = live_in(leaf);

	ck_assert_int_eq(cgroup_kill(&cg), 0);
	expect_killed(here);
	expect_killed(there);
	cgroup_stop(&cg);
}
END_TEST

/* Whoever forgot to kill: nothing is left all the same. */
START_TEST(stop_kills_what_lives)
{
	start();
	autoclose int base = fd_dup(cg.base_fd, 0);
	pid_t pid = live_in(cg.dir_fd);

	ignore_children();
	cgroup_stop(&cg);
	ck_assert(!exists(base, id.text));
	ck_assert_int_eq(kill(pid, 0), -1);
}
END_TEST

START_TEST(freezes_and_thaws)
{
	start();
	pid_t pid = live_in(cg.dir_fd);

	ck_assert_int_eq(cgroup_freeze(&cg, true), 0);
	ck_assert_int_eq(cgroup_freeze(&cg, false), 0);
	ck_assert_int_eq(cgroup_freeze(&cg, true), 0);
	/* Also frozen it can be killed. */
	ck_assert_int_eq(cgroup_kill(&cg), 0);
	expect_killed(pid);
	cgroup_stop(&cg);
}
END_TEST

START_TEST(sweep_removes_what_is_left)
{
	start();
	autoclose int base = fd_dup(cg.base_fd, 0);

	ck_assert_int_eq(mkdirat(cg.dir_fd, "main", 0755), 0);
	(void)live_in(cg.dir_fd);
	fd_close(&cg.dir_fd);
	fd_close(&cg.base_fd);
	ignore_children();
	ck_assert_int_eq(cgroup_sweep(&id, NULL), 0);
	ck_assert(!exists(base, id.text));
	ck_assert_int_eq(cgroup_sweep(&id, NULL), 0);
}
END_TEST

/* Where the record says, even if that is not where the sweeper is. */
START_TEST(sweep_goes_where_the_record_says)
{
	start();
	autofree char *path = cgroup_path(&cg);
	autoclose int base = fd_dup(cg.base_fd, 0);

	ck_assert_ptr_nonnull(path);
	autofree char *out = mem_printf("%.*s/../osbx/%s",
			(int)(strlen(path) - strlen(id.text) - 1), path, id.text);
	autofree char *file = mem_printf("/tmp/osbx/%s", id.text);

	(void)live_in(cg.dir_fd);
	autoclose int aside = aside_enter();

	fd_close(&cg.dir_fd);
	fd_close(&cg.base_fd);
	ignore_children();
	/* None of these is one; below the own cgroup there is none. */
	ck_assert_int_eq(cgroup_sweep(&id, NULL), 0);
	ck_assert_int_eq(cgroup_sweep(&id, ""), 0);
	ck_assert_int_eq(cgroup_sweep(&id, out), 0);
	ck_assert_int_eq(cgroup_sweep(&id, file), 0);
	ck_assert(exists(base, id.text));
	ck_assert_int_eq(cgroup_sweep(&id, path), 0);
	ck_assert(!exists(base, id.text));
	ck_assert_int_eq(cgroup_sweep(&id, path), 0);
	aside_leave(aside);
}
END_TEST

START_TEST(nothing_without_a_cgroup)
{
	struct cgroup none = CGROUP_INIT;

	ck_assert_int_eq(cgroup_freeze(&none, true), -EOPNOTSUPP);
	ck_assert_int_eq(cgroup_kill(&none), -EOPNOTSUPP);
	cgroup_stop(&none);
}
END_TEST

/* Container root may make cgroups and move processes, and not touch a limit. */
START_TEST(delegated)
{
	static const struct {
		const char *name;
		bool is_given;
	} rows[] = {
		{ ".", true },
		{ "cgroup.procs", true },
		{ "cgroup.threads", true },
		{ "cgroup.subtree_control", true },
		{ "cgroup.freeze", false },
		{ "cgroup.kill", false },
		{ "cgroup.max.descendants", false },
	};
	struct stat st;

	start();
	ck_assert_int_eq(cgroup_delegate(&cg, 4711, 4712), 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		bool is_given = rows[i].is_given && geteuid() == 0;

		if (fstatat(cg.dir_fd, rows[i].name, &st, 0) < 0) {
			continue; /* before Linux 5.14 */
		}
		ck_assert_uint_eq(st.st_uid, is_given ? 4711 : geteuid());
		ck_assert_uint_eq(st.st_gid, is_given ? 4712 : getegid());
	}
	cgroup_stop(&cg);
	ck_assert_int_eq(cgroup_delegate(&cg, 4711, 4712), 0);
}
END_TEST

/* Not an error: an ordinary user to whom nothing was delegated. */
START_TEST(absence_is_no_failure)
{
	struct error e = ERROR_INIT;

	if (geteuid() != 0) {
		return;
	}
	ck_assert_int_eq(setgroups(0, NULL), 0);
	ck_assert_int_eq(setresgid(65534, 65534, 65534), 0);
	ck_assert_int_eq(setresuid(65534, 65534, 65534), 0);
	id_new(&id);
	cg.dir_fd = 0;
	ck_assert_msg(cgroup_start(&id, &cg, &e) == 0, "%s", e.text);
	ck_assert_int_eq(cg.dir_fd, -1);
	ck_assert_int_eq(cg.base_fd, -1);
	ck_assert_int_eq(cgroup_sweep(&id, NULL), 0);
}
END_TEST

/* The last one removes the parent while the next one begins in it. */
START_TEST(many_come_and_go)
{
	pid_t pids[4];
	int status = 0;

	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			for (int n = 0; n < 50; n++) {
				start();
				cgroup_stop(&cg);
			}
			_exit(0);
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
		ck_assert_int_eq(status, 0);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cgroup");
	TCase *tc = tcase_create("all");
	struct error e = ERROR_INIT;

	id_new(&id);
	if (cgroup_start(&id, &cg, &e) < 0 || cg.dir_fd < 0) {
		printf("1..0 # SKIP no cgroup of version 2 that this user may write to\n");
		return 77;
	}
	cgroup_stop(&cg);
	tcase_add_test(tc, made_and_removed);
	tcase_add_test(tc, the_same_twice_is_an_error);
	tcase_add_test(tc, leaves_go_with_it);
	tcase_add_test(tc, kill_reaches_leaves);
	tcase_add_test(tc, stop_kills_what_lives);
	tcase_add_test(tc, freezes_and_thaws);
	tcase_add_test(tc, sweep_removes_what_is_left);
	tcase_add_test(tc, sweep_goes_where_the_record_says);
	tcase_add_test(tc, nothing_without_a_cgroup);
	tcase_add_test(tc, delegated);
	tcase_add_test(tc, absence_is_no_failure);
	tcase_add_test(tc, many_come_and_go);
	tcase_set_timeout(tc, 60);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
