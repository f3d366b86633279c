/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/spawn.h>
#include <osbx/str.h>
#include <osbx/sys.h>

#include "../unit.h"

#define FDS_SEEN 300
#define SAID_MAX 8192

extern char **environ;

/* This program as the helper that is started: it says what it finds. */

static int child_fds(void)
{
	struct stat st;

	for (int fd = 0; fd < FDS_SEEN; fd++) {
		if (fstat(fd, &st) == 0) {
			printf("%d:%llu:%d ", fd, (unsigned long long)st.st_ino,
					fcntl(fd, F_GETFD));
		}
	}
	return 0;
}

static int child_env(void)
{
	for (char **p = environ; *p; p++) {
		printf("%s;", *p);
	}
	return 0;
}

static int child_signals(void)
{
	sigset_t mask;
	struct sigaction act;
	int death = -1;
	int special = 0;
	int blocked = 0;

	(void)sigprocmask(SIG_SETMASK, NULL, &mask);
	for (int sig = 1; sig < NSIG; sig++) {
		blocked += sigismember(&mask, sig) == 1;
		special += sigaction(sig, NULL, &act) == 0 && act.sa_handler == SIG_IGN;
	}
	(void)prctl(PR_GET_PDEATHSIG, &death);
	printf("blocked=%d ignored=%d death=%d leader=%d", blocked, special, death,
			getsid(0) == getpid());
	return 0;
}

static int child_sleep(void)
{
	/* Until a signal, and none of those tests is one that it survives. */
	return pause();
}

#define PART_FD 7

static int child_part(void)
{
	return send(PART_FD, "here", 4, MSG_NOSIGNAL) == 4 ? 5 : 1;
}

static const struct {
	const char *name;
	int (*run)(void);
} child_modes[] = {
	{ "child-fds", child_fds },
	{ "child-env", child_env },
	{ "child-signals", child_signals },
	{ "child-sleep", child_sleep },
	{ "part", child_part },
};

static int child_main(const char *mode)
{
	for (size_t i = 0; i < ARRAY_SIZE(child_modes); i++) {
		if (str_eq(mode, child_modes[i].name)) {
			return child_modes[i].run();
		}
	}
	return 99;
}

/* From here on the tests. */

static char *const true_argv[] = { (char[]){ "true" }, NULL };

/* Run this program in a mode with opts; what it wrote to stdout. */
static char *run_self(const char *mode, const struct spawn_opts *given)
{
	struct spawn_opts opts = *given;
	struct error e = ERROR_INIT;
	AUTO(buf) struct buf said = BUF_INIT(SAID_MAX);
	autofree char *arg = mem_strdup(mode);
	char *const argv[] = { (char[]){ "self" }, arg, NULL };
	int ends[2];
	autoclose int pidfd = -1;
	pid_t pid = 0;
	int status = -1;

	ck_assert_int_eq(fd_pipe(ends, 0), 0);
	opts.path = spawn_self;
	opts.argv = argv;
	opts.fds[opts.fds_n++] = (struct spawn_fd){ .from = ends[1], .to = 1 };
	ck_assert_msg(spawn_start(&opts, &pidfd, &pid, &e) == 0, "%s", e.text);
	fd_close(&ends[1]);
	ck_assert_int_eq(fd_read_all(ends[0], &said), 0);
	fd_close(&ends[0]);
	ck_assert_int_eq(spawn_wait(pidfd, -1, &status), 0);
	ck_assert_int_eq(status, 0);
	return buf_take(&said);
}

static int run_shell(const char *script)
{
	struct error e = ERROR_INIT;
	autofree char *arg = mem_strdup(script);
	char *const argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, arg, NULL };
	struct spawn_opts opts = { .path = "sh", .argv = argv };
	autoclose int pidfd = -1;
	pid_t pid = 0;
	int status = -1;

	ck_assert_msg(spawn_start(&opts, &pidfd, &pid, &e) == 0, "%s", e.text);
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(fcntl(pidfd, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(spawn_wait(pidfd, 10000, &status), 0);
	/* Reaped: nobody is left to wait for. */
	ck_assert_int_eq(waitpid(pid, NULL, WNOHANG), -1);
	ck_assert_int_eq(errno, ECHILD);
	return status;
}

START_TEST(status_as_a_shell_says_it)
{
	ck_assert_int_eq(run_shell("exit 0"), 0);
	ck_assert_int_eq(run_shell("exit 255"), 255);
	ck_assert_int_eq(run_shell("kill -KILL $$"), 128 + SIGKILL);
	ck_assert_int_eq(run_shell("kill -TERM $$"), 128 + SIGTERM);
}
END_TEST

START_TEST(only_named_descriptors)
{
	struct stat a;
	struct stat b;
	struct stat null;
	int p[2];
	int q[2];

	ck_assert_int_eq(fd_pipe(p, 0), 0);
	ck_assert_int_eq(fd_pipe(q, 0), 0);
	ck_assert_int_eq(fstat(p[0], &a), 0);
	ck_assert_int_eq(fstat(q[0], &b), 0);
	ck_assert_int_eq(stat("/dev/null", &null), 0);
	/* Leaks of somebody who forgot O_CLOEXEC, one between the targets, one above. */
	ck_assert_int_eq(dup2(q[1], 30), 30);
	ck_assert_int_eq(dup2(q[1], 200), 200);
	/* Each source stands where the other shall be; one more lies on a target. */
	ck_assert_int_eq(dup2(p[0], 40), 40);
	ck_assert_int_eq(dup2(q[0], 41), 41);
	struct spawn_opts opts = {
		.fds = { { .from = 40, .to = 41 }, { .from = 41, .to = 40 },
				{ .from = 41, .to = 42 } },
		.fds_n = 3,
	};
	autofree char *said = run_self("child-fds", &opts);
	autofree char *wanted =
			mem_printf("40:%llu:0 41:%llu:0 42:%llu:0 ", (unsigned long long)b.st_ino,
					(unsigned long long)a.st_ino, (unsigned long long)b.st_ino);
	autofree char *first = mem_printf("0:%llu:0 1:", (unsigned long long)null.st_ino);
	autofree char *third = mem_printf(" 2:%llu:0 40:", (unsigned long long)null.st_ino);

	ck_assert_msg(strncmp(said, first, strlen(first)) == 0, "%s", said);
	ck_assert_msg(strstr(said, third) != NULL, "%s", said);
	ck_assert_msg(str_has_suffix(said, wanted), "%s", said);
}
END_TEST

START_TEST(descriptors_here_stay_as_they_are)
{
	int p[2];
	struct spawn_opts opts = { .fds_n = 0 };

	ck_assert_int_eq(fd_pipe(p, 0), 0);
	ck_assert_int_eq(dup2(p[0], 30), 30);
	free(run_self("child-fds", &opts));
	/* Made O_CLOEXEC in the child's own table only. */
	ck_assert_int_eq(fcntl(30, F_GETFD), 0);
}
END_TEST

START_TEST(highest_target)
{
	struct spawn_opts opts = { .fds = { { .from = 0, .to = 255 } }, .fds_n = 1 };
	autofree char *said = run_self("child-fds", &opts);

	ck_assert_ptr_nonnull(strstr(said, " 255:"));
	ck_assert_ptr_null(strstr(said, " 256:"));
}
END_TEST

START_TEST(environment)
{
	char *const env[] = { (char[]){ "A=1" }, (char[]){ "B=" }, NULL };
	struct spawn_opts none = { .fds_n = 0 };
	struct spawn_opts two = { .envp = env };
	autofree char *empty = run_self("child-env", &none);
	autofree char *said = run_self("child-env", &two);

	ck_assert_str_eq(empty, "");
	ck_assert_str_eq(said, "A=1;B=;");
}
END_TEST

static void on_signal(int sig)
{
	(void)sig;
}

START_TEST(signals_are_reset)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction handle = { .sa_handler = on_signal };
	sigset_t mine;
	sigset_t after;
	struct spawn_opts opts = { .fds_n = 0 };
	struct spawn_opts both = { .die_with_parent = true, .new_session = true };

	ck_assert_int_eq(sigaction(SIGPIPE, &ignore, NULL), 0);
	ck_assert_int_eq(sigaction(SIGINT, &ignore, NULL), 0);
	ck_assert_int_eq(sigaction(SIGTERM, &handle, NULL), 0);
	(void)sigemptyset(&mine);
	(void)sigaddset(&mine, SIGUSR1);
	ck_assert_int_eq(sigprocmask(SIG_SETMASK, &mine, NULL), 0);
	autofree char *said = run_self("child-signals", &opts);
	autofree char *said_both = run_self("child-signals", &both);

	ck_assert_str_eq(said, "blocked=0 ignored=0 death=0 leader=0");
	ck_assert_str_eq(said_both, "blocked=0 ignored=0 death=9 leader=1");
	/* Ours are as before. */
	ck_assert_int_eq(sigprocmask(SIG_SETMASK, NULL, &after), 0);
	ck_assert_int_eq(sigismember(&after, SIGUSR1), 1);
	ck_assert_int_eq(sigismember(&after, SIGUSR2), 0);
	ck_assert_int_eq(sigaction(SIGPIPE, NULL, &ignore), 0);
	ck_assert_ptr_eq(ignore.sa_handler, SIG_IGN);
	ck_assert_int_eq(sigaction(SIGTERM, NULL, &handle), 0);
	ck_assert_ptr_eq(handle.sa_handler, on_signal);
}
END_TEST

static int start_sleeper(int keep_fd, int *out_pidfd, pid_t *out_pid)
{
	struct error e = ERROR_INIT;
	char *const argv[] = { (char[]){ "self" }, (char[]){ "child-sleep" }, NULL };
	struct spawn_opts opts = {
		.path = spawn_self,
		.argv = argv,
		.fds = { { .from = keep_fd, .to = 3 } },
		.fds_n = 1,
		.die_with_parent = true,
	};

	return spawn_start(&opts, out_pidfd, out_pid, &e);
}

START_TEST(dies_with_its_parent)
{
	int ends[2];
	int pidfd = -1;
	pid_t sleeper = 0;
	char c;

	ck_assert_int_eq(fd_pipe(ends, 0), 0);
	pid_t pid = fork();

	if (pid == 0) {
		_exit(start_sleeper(ends[1], &pidfd, &sleeper) == 0 ? 0 : 1);
	}
	int status = -1;

	fd_close(&ends[1]);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	/* The sleeper held the other end, and nobody else ends it. */
	ck_assert_int_eq(fd_read(ends[0], &c, 1), 0);
	fd_close(&ends[0]);
}
END_TEST

START_TEST(wait_has_a_deadline)
{
	int ends[2];
	autoclose int pidfd = -1;
	pid_t pid = 0;
	int status = 77;

	ck_assert_int_eq(fd_pipe(ends, 0), 0);
	ck_assert_int_eq(start_sleeper(ends[1], &pidfd, &pid), 0);
	int64_t start_ms = clock_boot_ms();

	ck_assert_int_eq(spawn_wait(pidfd, 30, &status), -ETIMEDOUT);
	ck_assert_int_ge(clock_boot_ms() - start_ms, 29);
	ck_assert_int_eq(spawn_wait(pidfd, 0, &status), -ETIMEDOUT);
	ck_assert_int_eq(status, 77);
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(spawn_wait(pidfd, -1, &status), 0);
	ck_assert_int_eq(status, 128 + SIGKILL);
	ck_assert_int_eq(spawn_wait(-1, 0, &status), -EBADF);
	fd_close(&ends[0]);
	fd_close(&ends[1]);
}
END_TEST

static void expect_failure(const char *path, enum errc code, int sysno)
{
	struct error e = ERROR_INIT;
	struct spawn_opts opts = { .path = path, .argv = true_argv };
	int pidfd = -5;
	pid_t pid = -5;

	ck_assert_int_eq(spawn_start(&opts, &pidfd, &pid, &e), -1);
	ck_assert_msg(e.code == code && e.sysno == sysno, "%s: code %d sysno %d", e.text, e.code,
			e.sysno);
	ck_assert_ptr_nonnull(strstr(e.text, path));
	ck_assert_int_eq(pidfd, -5);
	ck_assert_int_eq(pid, -5);
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
}

START_TEST(failures_of_execve_are_reported)
{
	expect_failure("/nonexistent/program", ERRC_NOT_FOUND, 0);
	expect_failure("no-such-program-anywhere", ERRC_NOT_FOUND, 0);
	expect_failure("/etc/passwd/x", ERRC_NOT_FOUND, 0);
	expect_failure("/etc/passwd", ERRC_SYSTEM, EACCES);
	expect_failure("/", ERRC_SYSTEM, EACCES);
	expect_failure("bin/true", ERRC_INTERNAL, 0);
	expect_failure("../bin/true", ERRC_INTERNAL, 0);
	expect_failure("", ERRC_INTERNAL, 0);
}
END_TEST

START_TEST(failure_of_the_descriptors_is_reported)
{
	struct error e = ERROR_INIT;
	struct spawn_opts opts = {
		.path = "true",
		.argv = true_argv,
		.fds = { { .from = 999, .to = 3 } },
		.fds_n = 1,
	};
	int pidfd = -1;
	pid_t pid = 0;

	ck_assert_int_eq(spawn_start(&opts, &pidfd, &pid, &e), -1);
	ck_assert_int_eq(e.sysno, EBADF);
}
END_TEST

START_TEST(path_of_the_environment_is_not_asked)
{
	autoclose int fd = openat(unit_fd, "only-here", O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
	autofree char *dir = mem_printf("/proc/self/fd/%d", unit_fd);
	char real[256];
	ssize_t n = readlink(dir, real, sizeof(real) - 1);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_gt(n, 0);
	real[n] = '\0';
	ck_assert_int_eq(setenv("PATH", real, 1), 0);
	ck_assert_int_eq(fchdir(unit_fd), 0);
	expect_failure("only-here", ERRC_NOT_FOUND, 0);
	ck_assert_ptr_null(spawn_find("only-here"));
}
END_TEST

START_TEST(find_says_where)
{
	autofree char *sh = spawn_find("sh");

	ck_assert_ptr_nonnull(sh);
	ck_assert_int_eq(sh[0], '/');
	ck_assert(str_has_suffix(sh, "/sh"));
	autofree char *same = spawn_find("/bin/sh");

	ck_assert_str_eq(same, "/bin/sh");
	ck_assert_ptr_null(spawn_find("no-such-program-anywhere"));
	ck_assert_ptr_null(spawn_find("bin/sh"));
	ck_assert_ptr_null(spawn_find(""));
	ck_assert_ptr_null(spawn_find("/etc"));
}
END_TEST

START_TEST(many_in_a_row)
{
	for (int i = 0; i < 50; i++) {
		struct spawn_opts opts = { .fds_n = 0 };

		expect_failure("/nonexistent/program", ERRC_NOT_FOUND, 0);
		free(run_self("child-env", &opts));
	}
}
END_TEST

struct aside_seen {
	pid_t pid;
	int fd;
	bool all_blocked;
	uid_t uid;
	int result;
};

static int aside(void *arg)
{
	struct aside_seen *seen = arg;
	sigset_t mask;

	seen->pid = getpid();
	seen->fd = dup(0);
	(void)sigprocmask(SIG_SETMASK, NULL, &mask);
	seen->all_blocked = sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGCHLD) == 1;
	(void)!sys_unshare(CLONE_NEWUSER);
	seen->uid = getuid();
	return seen->result;
}

/* What it changes of itself is gone with it; memory and descriptors are ours. */
START_TEST(aside_is_a_process_of_its_own)
{
	static const int results[] = { 0, 7, -ENOSPC };

	for (size_t i = 0; i < ARRAY_SIZE(results); i++) {
		struct aside_seen seen = { .fd = -1, .result = results[i] };
		const uid_t uid = getuid();
		sigset_t before;
		sigset_t after;
		sigset_t pending;

		(void)sigprocmask(SIG_SETMASK, NULL, &before);
		ck_assert_int_eq(spawn_aside(aside, &seen), results[i]);
		ck_assert_int_ne(seen.pid, getpid());
		ck_assert_int_gt(seen.pid, 0);
		ck_assert(seen.all_blocked);
		/* The overflow id, in a namespace without maps. */
		ck_assert_uint_eq(seen.uid, 65534);
		ck_assert_uint_eq(getuid(), uid);
		ck_assert_int_ge(fcntl(seen.fd, F_GETFD), 0);
		fd_close(&seen.fd);
		(void)sigprocmask(SIG_SETMASK, NULL, &after);
		/* Not byte by byte: the kernel's mask is shorter than libc's type. */
		for (int signo = 1; signo < NSIG; signo++) {
			ck_assert_int_eq(sigismember(&before, signo), sigismember(&after, signo));
		}
		ck_assert_int_eq(sigpending(&pending), 0);
		ck_assert_int_eq(sigismember(&pending, SIGCHLD), 0);
		/* It is reaped. */
		ck_assert_int_eq(waitpid(seen.pid, NULL, __WALL), -1);
		ck_assert_int_eq(errno, ECHILD);
	}
}
END_TEST

START_TEST(one_target_twice_aborts)
{
	struct error e = ERROR_INIT;
	struct spawn_opts opts = {
		.path = "true",
		.argv = true_argv,
		.fds = { { .from = 0, .to = 3 }, { .from = 1, .to = 3 } },
		.fds_n = 2,
	};
	int pidfd = -1;
	pid_t pid = 0;

	(void)!spawn_start(&opts, &pidfd, &pid, &e);
}
END_TEST

START_TEST(a_part_has_a_socket)
{
	const struct spawn_part part = { .command = "part", .control_fd = PART_FD };
	struct error e = ERROR_INIT;
	int status = -1;
	int sock = -1;
	int pidfd = -1;
	char text[8] = "";

	ck_assert_msg(spawn_part(&part, &sock, &pidfd, &e) == 0, "%s", e.text);
	ck_assert_int_eq(recv(sock, text, sizeof(text) - 1, 0), 4);
	ck_assert_str_eq(text, "here");
	ck_assert_int_eq(spawn_wait(pidfd, -1, &status), 0);
	ck_assert_int_eq(status, 5);
	/* Its end was the only one. */
	ck_assert_int_eq(recv(sock, text, sizeof(text), 0), 0);
	ck_assert_int_eq(fcntl(sock, F_GETFD), FD_CLOEXEC);
	close(sock);
	close(pidfd);
}
END_TEST

int main(int argc, char **argv)
{
	if (argc > 1) {
		return child_main(argv[1]);
	}
	Suite *s = suite_create("spawn");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_test(tc, status_as_a_shell_says_it);
	tcase_add_test(tc, only_named_descriptors);
	tcase_add_test(tc, descriptors_here_stay_as_they_are);
	tcase_add_test(tc, highest_target);
	tcase_add_test(tc, environment);
	tcase_add_test(tc, signals_are_reset);
	tcase_add_test(tc, dies_with_its_parent);
	tcase_add_test(tc, wait_has_a_deadline);
	tcase_add_test(tc, failures_of_execve_are_reported);
	tcase_add_test(tc, failure_of_the_descriptors_is_reported);
	tcase_add_test(tc, path_of_the_environment_is_not_asked);
	tcase_add_test(tc, a_part_has_a_socket);
	tcase_add_test(tc, find_says_where);
	tcase_add_test(tc, many_in_a_row);
	tcase_add_test(tc, aside_is_a_process_of_its_own);
	tcase_add_test_raise_signal(tc, one_target_twice_aborts, SIGABRT);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
