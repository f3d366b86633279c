/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <osbx/cleanup.h>
#include <osbx/lock.h>

#include "../unit.h"

START_TEST(exclusive_is_alone)
{
	autoclose int first = lock_open_at(unit_fd, "lock", LOCK_MODE_EXCLUSIVE);
	autoclose int again = -1;
	struct stat st;

	ck_assert_int_ge(first, 0);
	ck_assert_int_ne(fcntl(first, F_GETFD) & FD_CLOEXEC, 0);
	ck_assert_int_eq(fstat(first, &st), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0600);
	ck_assert_int_eq(lock_try_at(unit_fd, "lock", LOCK_MODE_EXCLUSIVE), -EWOULDBLOCK);
	ck_assert_int_eq(lock_try_at(unit_fd, "lock", LOCK_MODE_SHARED), -EWOULDBLOCK);
	close(TAKE_FD(first));
	again = lock_try_at(unit_fd, "lock", LOCK_MODE_EXCLUSIVE);
	ck_assert_int_ge(again, 0);
}
END_TEST

START_TEST(shared_is_shared)
{
	autoclose int a = lock_open_at(unit_fd, "lock", LOCK_MODE_SHARED);
	autoclose int b = lock_try_at(unit_fd, "lock", LOCK_MODE_SHARED);

	ck_assert_int_ge(a, 0);
	ck_assert_int_ge(b, 0);
	ck_assert_int_eq(lock_try_at(unit_fd, "lock", LOCK_MODE_EXCLUSIVE), -EWOULDBLOCK);
}
END_TEST

START_TEST(ends_with_its_process)
{
	autoclose int mine = -1;
	int ready[2];
	pid_t child = -1;
	char c = 0;

	ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
	child = fork();
	if (child == 0) {
		if (lock_open_at(unit_fd, "lock", LOCK_MODE_EXCLUSIVE) < 0) {
			_exit(1);
		}
		(void)!write(ready[1], "x", 1);
		pause();
	}
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	ck_assert_int_eq(lock_try_at(unit_fd, "lock", LOCK_MODE_EXCLUSIVE), -EWOULDBLOCK);
	kill(child, SIGKILL);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	mine = lock_try_at(unit_fd, "lock", LOCK_MODE_EXCLUSIVE);
	ck_assert_int_ge(mine, 0);
}
END_TEST

static void nothing_on_signal(int sig)
{
	(void)sig;
}

/* While we wait, signals come and the owner removes the file: what we get is the new one. */
START_TEST(waits_for_the_current_file)
{
	const struct sigaction sa = { .sa_handler = nothing_on_signal };
	int held = lock_open_at(unit_fd, "lock", LOCK_MODE_EXCLUSIVE);
	autoclose int mine = -1;
	pid_t parent = getpid();
	pid_t child = -1;
	struct stat there;
	struct stat now;

	ck_assert_int_ge(held, 0);
	ck_assert_int_eq(sigaction(SIGALRM, &sa, NULL), 0);
	child = fork();
	if (child == 0) {
		usleep(50000);
		kill(parent, SIGALRM);
		usleep(50000);
		/* The lock ends with its last descriptor, this one. */
		unlinkat(unit_fd, "lock", 0);
		_exit(0);
	}
	close(held);
	mine = lock_open_at(unit_fd, "lock", LOCK_MODE_EXCLUSIVE);
	ck_assert_int_ge(mine, 0);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	ck_assert_int_eq(fstat(mine, &now), 0);
	ck_assert_uint_eq(now.st_nlink, 1);
	ck_assert_int_eq(fstatat(unit_fd, "lock", &there, 0), 0);
	ck_assert_uint_eq(now.st_ino, there.st_ino);
}
END_TEST

START_TEST(refuses_what_is_no_lock_file)
{
	ck_assert_int_eq(symlinkat("elsewhere", unit_fd, "link"), 0);
	ck_assert_int_eq(lock_open_at(unit_fd, "link", LOCK_MODE_SHARED), -ELOOP);
	ck_assert_int_eq(faccessat(unit_fd, "elsewhere", F_OK, 0), -1);
	ck_assert_int_eq(lock_open_at(unit_fd, ".", LOCK_MODE_SHARED), -EISDIR);
	ck_assert_int_eq(lock_try_at(unit_fd, "missing/lock", LOCK_MODE_SHARED), -ENOENT);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("lock");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_test(tc, exclusive_is_alone);
	tcase_add_test(tc, shared_is_shared);
	tcase_add_test(tc, ends_with_its_process);
	tcase_add_test(tc, waits_for_the_current_file);
	tcase_add_test(tc, refuses_what_is_no_lock_file);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
