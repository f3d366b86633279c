/* SPDX-License-Identifier: Apache-2.0 */
/* Each test does something in a child that has given up everything, and looks how it fared. */
#include <errno.h>
#include <linux/landlock.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/secfilter.h>

#include "../../../oci/fetch_confine.h"
#include "../unit.h"

#define NOBODY      65534
#define NOT_ENTERED 201

static int held_fd = -1;
static char file[160];

static int status_of(pid_t pid)
{
	int status = 0;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Exit status of a child that runs what in confinement: 0 or an errno; 1000 + signal. */
static int confined(int (*what)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		struct secfilter filter = { .n = 0 };
		struct error e = ERROR_INIT;
		const struct curl_lib *lib = NULL;
		int pair[2];

		secfilter_builtin(SECFILTER_FETCH, &filter);
		lib = confine_limits(&e) < 0 ? NULL : curl_lib_load(&e);
		confine_preload();
		if (!lib || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 ||
				confine(lib, filter.insns, filter.n, pair[0], &e) < 0) {
			fprintf(stderr, "%s\n", e.text);
			_exit(NOT_ENTERED);
		}
		_exit(what());
	}
	return status_of(pid);
}

static void make(void)
{
	unit_dir_make();
	ck_assert_int_eq(chmod(unit_path, 0755), 0);
	ck_assert_int_eq(file_write_at(unit_fd, "file", span_of("text"), false), 0);
	ck_assert_int_eq(fchmodat(unit_fd, "file", 0666, 0), 0);
	snprintf(file, sizeof(file), "%s/file", unit_path);
	held_fd = open(file, O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(held_fd, 0);
}

static void done(void)
{
	fd_close(&held_fd);
	unit_dir_close();
}

static int try_nothing(void)
{
	return 0;
}

static int try_ids(void)
{
	return geteuid() == NOBODY && getuid() == NOBODY && getegid() == NOBODY &&
					       getgroups(0, NULL) == 0
			       ? 0
			       : EINVAL;
}

static int try_open_file(void)
{
	return open(file, O_RDONLY) < 0 ? errno : 0;
}

static int try_open_write(void)
{
	return open(file, O_WRONLY) < 0 ? errno : 0;
}

static int try_open_hosts(void)
{
	return open("/etc/nsswitch.conf", O_RDONLY) < 0 ? errno : 0;
}

static int try_create(void)
{
	return open("/tmp/osbx-unit-new", O_RDONLY | O_CREAT, 0600) < 0 ? errno : 0;
}

static int try_held(void)
{
	return pwrite(held_fd, "more", 4, 4) == 4 && ftruncate(held_fd, 6) == 0 ? 0 : errno;
}

static int try_unix(void)
{
	return socket(AF_UNIX, SOCK_STREAM, 0) < 0 ? errno : 0;
}

static int try_inet(void)
{
	return socket(AF_INET, SOCK_STREAM, 0) < 0 || socket(AF_INET6, SOCK_STREAM, 0) < 0 ? errno
											   : 0;
}

static int try_fork(void)
{
	pid_t pid = fork();

	return pid < 0 ? errno : 0;
}

static int try_exec(void)
{
	static char *const argv[] = { NULL };

	return execve("/bin/true", argv, argv) < 0 ? errno : 0;
}

static int try_listen(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return listen(fd, 1) < 0 ? errno : 0;
}

static int try_core(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_max == 0 ? 0 : EINVAL;
}

static int try_ca(void)
{
	autoclose int fd = fd_memfd_sealed("ca", "pem", 3, false);
	autofree char *path = mem_printf("/proc/self/fd/%d", fd);
	char text[4] = "";
	autoclose int again = open(path, O_RDONLY | O_CLOEXEC);

	return again < 0 ? errno : read(again, text, sizeof(text)) == 3 ? 0 : EIO;
}

static void *resolve(void *out)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;

	*(int *)out = getaddrinfo("localhost", "443", &hints, &found) == 0 ? 0 : EAGAIN;
	if (found) {
		freeaddrinfo(found);
	}
	return NULL;
}

/* As libcurl does it: on a thread. */
static int try_resolve(void)
{
	pthread_t thread;
	int result = EBUSY;

	if (pthread_create(&thread, NULL, resolve, &result) != 0) {
		return ECHILD;
	}
	(void)pthread_join(thread, NULL);
	return result;
}

static bool has_landlock(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) > 0;
}

static const struct {
	int (*what)(void);
	int result;
} tries[] = {
	{ try_nothing, 0 },
	{ try_open_write, EACCES },
	{ try_create, EACCES },
	{ try_open_hosts, 0 },
	{ try_held, 0 },
	{ try_unix, EAFNOSUPPORT },
	{ try_inet, 0 },
	{ try_fork, EPERM },
	{ try_exec, 1000 + SIGSYS },
	{ try_listen, 1000 + SIGSYS },
	{ try_core, 0 },
	{ try_ca, 0 },
	{ try_resolve, 0 },
};

START_TEST(what_is_left)
{
	ck_assert_int_eq(confined(tries[_i].what), tries[_i].result);
}
END_TEST

START_TEST(files_of_the_user_are_out_of_reach)
{
	ck_assert_int_eq(confined(try_open_file), has_landlock() ? EACCES : 0);
}
END_TEST

START_TEST(root_becomes_nobody)
{
	if (geteuid() == 0) {
		ck_assert_int_eq(confined(try_ids), 0);
	}
}
END_TEST

START_TEST(no_filter_no_work)
{
	pid_t pid = fork();

	if (pid == 0) {
		struct error e = ERROR_INIT;
		const struct curl_lib *lib = curl_lib_load(&e);
		int pair[2];

		_exit(lib && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 &&
								confine(lib, NULL, 0, pair[0], &e) <
										0 &&
								e.code == ERRC_INTERNAL
						? 0
						: 1);
	}
	ck_assert_int_eq(status_of(pid), 0);
}
END_TEST

/* The parent ended before the death signal was armed. */
START_TEST(an_orphan_ends)
{
	pid_t pid = fork();

	if (pid == 0) {
		struct secfilter filter = { .n = 0 };
		struct error e = ERROR_INIT;
		const struct curl_lib *lib = curl_lib_load(&e);
		int pair[2];

		secfilter_builtin(SECFILTER_FETCH, &filter);
		if (!lib || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0) {
			_exit(1);
		}
		close(pair[1]);
		_exit(confine(lib, filter.insns, filter.n, pair[0],
				      &e) < 0 && strcmp(e.text, "parent is gone") == 0
						? 0
						: 1);
	}
	ck_assert_int_eq(status_of(pid), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fetch_confine");
	TCase *tc = tcase_create("all");

	tcase_add_unchecked_fixture(tc, unit_base_make, unit_base_remove);
	tcase_add_checked_fixture(tc, make, done);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, what_is_left, 0, (int)(sizeof(tries) / sizeof(tries[0])));
	tcase_add_test(tc, files_of_the_user_are_out_of_reach);
	tcase_add_test(tc, root_becomes_nobody);
	tcase_add_test(tc, no_filter_no_work);
	tcase_add_test(tc, an_orphan_ends);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
