/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <osbx/fd.h>

#include "../unit.h"

static bool is_cloexec(int fd)
{
	int flags = fcntl(fd, F_GETFD);

	ck_assert_int_ge(flags, 0);
	return (flags & FD_CLOEXEC) != 0;
}

START_TEST(sanitize_opens_and_marks)
{
	int leaked = dup(1);
	struct stat null;
	struct stat st;

	ck_assert_int_ge(leaked, 3);
	ck_assert(!is_cloexec(leaked));
	close(0);
	close(2);
	ck_assert_int_eq(fd_sanitize(), 0);
	ck_assert(is_cloexec(leaked));
	ck_assert_int_eq(stat("/dev/null", &null), 0);
	for (int fd = 0; fd <= 2; fd += 2) {
		ck_assert(!is_cloexec(fd));
		ck_assert_int_eq(fstat(fd, &st), 0);
		ck_assert_uint_eq(st.st_rdev, null.st_rdev);
	}
	ck_assert(!is_cloexec(1));
}
END_TEST

START_TEST(open_sets_cloexec)
{
	autoclose int file = fd_open_at(unit_fd, "f", O_RDWR | O_CREAT, 0640);
	struct stat st;

	ck_assert_int_ge(file, 0);
	ck_assert(is_cloexec(file));
	ck_assert_int_eq(fstat(file, &st), 0);
	ck_assert_int_eq(st.st_mode & 0777 & ~0640U, 0);
	ck_assert_int_eq(fd_open_at(unit_fd, "missing", O_RDONLY, 0), -ENOENT);
	ck_assert_int_eq(fd_open("/proc/self/missing", O_RDONLY, 0), -ENOENT);
}
END_TEST

START_TEST(close_forgets)
{
	int fd = dup(1);
	int number = fd;

	errno = EXDEV;
	fd_close(&fd);
	ck_assert_int_eq(fd, -1);
	ck_assert_int_eq(errno, EXDEV);
	ck_assert_int_eq(fcntl(number, F_GETFD), -1);
	fd_close(&fd);
	ck_assert_int_eq(fd, -1);
}
END_TEST

START_TEST(pairs_are_cloexec)
{
	int fds[2] = { -1, -1 };
	int type = 0;
	socklen_t n = sizeof(type);

	ck_assert_int_eq(fd_pipe(fds, O_NONBLOCK), 0);
	ck_assert(is_cloexec(fds[0]) && is_cloexec(fds[1]));
	ck_assert_int_ne(fcntl(fds[0], F_GETFL) & O_NONBLOCK, 0);
	fd_close(&fds[0]);
	fd_close(&fds[1]);
	ck_assert_int_eq(fd_pipe(fds, 0x7fffffff), -EINVAL);
	ck_assert_int_eq(fds[0], -1);

	ck_assert_int_eq(fd_seqpacket_pair(fds), 0);
	ck_assert(is_cloexec(fds[0]) && is_cloexec(fds[1]));
	ck_assert_int_eq(getsockopt(fds[0], SOL_SOCKET, SO_TYPE, &type, &n), 0);
	ck_assert_int_eq(type, SOCK_SEQPACKET);
	fd_close(&fds[0]);
	fd_close(&fds[1]);
}
END_TEST

START_TEST(dup_goes_above)
{
	autoclose int copy = fd_dup(1, 100);

	ck_assert_int_ge(copy, 100);
	ck_assert(is_cloexec(copy));
	ck_assert_int_eq(fd_dup(-1, 0), -EBADF);
}
END_TEST

static volatile sig_atomic_t alarms;

static void alarm_on_signal(int sig)
{
	(void)sig;
	alarms++;
}

/* A signal without SA_RESTART interrupts the call; a child then makes it complete. */
static void interrupt_soon(int fd_of_child, const char *bytes, size_t n)
{
	const struct sigaction sa = { .sa_handler = alarm_on_signal };
	pid_t parent = getpid();

	ck_assert_int_eq(sigaction(SIGALRM, &sa, NULL), 0);
	if (fork() == 0) {
		usleep(50000);
		kill(parent, SIGALRM);
		usleep(50000);
		_exit(write(fd_of_child, bytes, n) == (ssize_t)n ? 0 : 1);
	}
}

START_TEST(read_restarts)
{
	int fds[2];
	char c[4];

	ck_assert_int_eq(fd_pipe(fds, 0), 0);
	interrupt_soon(fds[1], "abc", 3);
	ck_assert_int_eq(fd_read(fds[0], c, sizeof(c)), 3);
	ck_assert_int_eq(alarms, 1);
	ck_assert_int_eq(fd_read(-1, c, 1), -EBADF);
}
END_TEST

static void fill(int fd, size_t n)
{
	autofree char *bytes = malloc(n + 1);

	for (size_t i = 0; i < n; i++) {
		bytes[i] = (char)('a' + i % 23);
	}
	ck_assert_int_eq(fd_write_all(fd, bytes, n), 0);
}

START_TEST(read_all_is_bounded)
{
	autoclose int fd = fd_open_at(unit_fd, "f", O_RDWR | O_CREAT, 0600);
	AUTO(buf) struct buf exact = BUF_INIT(200000);
	AUTO(buf) struct buf small = BUF_INIT(199999);
	AUTO(buf) struct buf none = BUF_INIT(0);

	fill(fd, 200000);
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	ck_assert_int_eq(fd_read_all(fd, &exact), 0);
	ck_assert_uint_eq(exact.n, 200000);
	ck_assert_int_eq(exact.p[199999], 'a' + 199999 % 23);
	ck_assert_int_eq(exact.p[200000], '\0');
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	ck_assert_int_eq(fd_read_all(fd, &small), -EMSGSIZE);
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	ck_assert_int_eq(fd_read_all(fd, &none), -EMSGSIZE);
	ck_assert_int_eq(fd_read_all(fd, &none), -EMSGSIZE);
	ck_assert_int_eq(lseek(fd, 0, SEEK_END), 200000);
	ck_assert_int_eq(fd_read_all(fd, &none), 0);
	ck_assert_int_eq(fd_read_all(unit_fd, &small), -EISDIR);
}
END_TEST

START_TEST(write_all_is_complete)
{
	const struct sigaction sa = { .sa_handler = alarm_on_signal };
	const size_t n = 1 << 20;
	pid_t parent = getpid();
	int fds[2];
	int status = 0;

	/* More than a pipe holds, read slowly, with signals in between. */
	ck_assert_int_eq(sigaction(SIGALRM, &sa, NULL), 0);
	ck_assert_int_eq(fd_pipe(fds, 0), 0);
	if (fork() == 0) {
		AUTO(buf) struct buf b = BUF_INIT(n);

		close(fds[1]);
		usleep(20000);
		kill(parent, SIGALRM);
		usleep(20000);
		kill(parent, SIGALRM);
		_exit(fd_read_all(fds[0], &b) == 0 && b.n == n && b.p[n - 1] == 'x' ? 0 : 1);
	}
	{
		autofree char *bytes = malloc(n);

		memset(bytes, 'x', n);
		ck_assert_int_eq(fd_write_all(fds[1], bytes, n), 0);
	}
	fd_close(&fds[1]);
	ck_assert_int_gt(wait(&status), 0);
	ck_assert_int_eq(status, 0);
	ck_assert_int_ge(alarms, 1);
	ck_assert_int_eq(fd_write_all(-1, "x", 1), -EBADF);
	ck_assert_int_eq(fd_write_all(-1, NULL, 0), 0);
}
END_TEST

enum copy_end {
	COPY_END_FILE,
	COPY_END_PIPE,
	COPY_END_APPEND,
	COPY_END_COUNT,
};

/* All pairs of ends, so that each way of copying is taken. */
START_TEST(copy_between)
{
	enum copy_end from_kind = (enum copy_end)(_i / COPY_END_COUNT);
	enum copy_end to_kind = (enum copy_end)(_i % COPY_END_COUNT);
	const size_t n = 60000;
	int from[2] = { -1, -1 };
	int to[2] = { -1, -1 };
	AUTO(buf) struct buf b = BUF_INIT(n);

	if (from_kind == COPY_END_PIPE) {
		ck_assert_int_eq(fd_pipe(from, 0), 0);
		fill(from[1], n);
		fd_close(&from[1]);
	} else {
		from[0] = fd_open_at(unit_fd, "from", O_RDWR | O_CREAT, 0600);
		fill(from[0], n);
		ck_assert_int_eq(lseek(from[0], 0, SEEK_SET), 0);
	}
	if (to_kind == COPY_END_PIPE) {
		ck_assert_int_eq(fd_pipe(to, 0), 0);
	} else {
		to[1] = fd_open_at(unit_fd, "to",
				O_WRONLY | O_CREAT | (to_kind == COPY_END_APPEND ? O_APPEND : 0),
				0600);
		to[0] = fd_open_at(unit_fd, "to", O_RDONLY, 0);
	}
	ck_assert_int_eq(fd_copy(from[0], to[1], n), n);
	fd_close(&to[1]);
	ck_assert_int_eq(fd_read_all(to[0], &b), 0);
	ck_assert_uint_eq(b.n, n);
	for (size_t i = 0; i < n; i++) {
		ck_assert_int_eq(b.p[i], 'a' + i % 23);
	}
	fd_close(&from[0]);
	fd_close(&to[0]);
}
END_TEST

START_TEST(copy_is_bounded)
{
	autoclose int from = fd_open_at(unit_fd, "from", O_RDWR | O_CREAT, 0600);
	autoclose int to = fd_open_at(unit_fd, "to", O_RDWR | O_CREAT, 0600);
	struct stat st;

	fill(from, 1000);
	ck_assert_int_eq(lseek(from, 0, SEEK_SET), 0);
	ck_assert_int_eq(fd_copy(from, to, 999), -EFBIG);
	ck_assert_int_eq(fstat(to, &st), 0);
	ck_assert_int_le(st.st_size, 999);
	ck_assert_int_eq(lseek(from, 0, SEEK_SET), 0);
	ck_assert_int_eq(fd_copy(from, to, 0), -EFBIG);
	ck_assert_int_eq(lseek(from, 0, SEEK_SET), 0);
	ck_assert_int_eq(fd_copy(from, to, UINT64_MAX), 1000);
	ck_assert_int_eq(fd_copy(from, to, 0), 0);
	ck_assert_int_eq(fd_copy(-1, to, 10), -EBADF);
	ck_assert_int_eq(fd_copy(from, -1, 0), 0);
}
END_TEST

START_TEST(copy_of_proc_has_bytes)
{
	autoclose int from = fd_open("/proc/self/status", O_RDONLY, 0);
	autoclose int to = fd_open_at(unit_fd, "to", O_RDWR | O_CREAT, 0600);

	ck_assert_int_gt(fd_copy(from, to, 1 << 20), 100);
}
END_TEST

START_TEST(flags_are_set_and_cleared)
{
	int fds[2];

	ck_assert_int_eq(fd_pipe(fds, 0), 0);
	ck_assert_int_eq(fd_set_nonblock(fds[0], true), 0);
	ck_assert_int_ne(fcntl(fds[0], F_GETFL) & O_NONBLOCK, 0);
	ck_assert_int_eq(fd_set_nonblock(fds[0], false), 0);
	ck_assert_int_eq(fcntl(fds[0], F_GETFL) & O_NONBLOCK, 0);
	ck_assert_int_eq(fd_set_cloexec(fds[0], false), 0);
	ck_assert(!is_cloexec(fds[0]));
	ck_assert_int_eq(fd_set_cloexec(fds[0], true), 0);
	ck_assert(is_cloexec(fds[0]));
	ck_assert_int_eq(fd_set_nonblock(-1, true), -EBADF);
	ck_assert_int_eq(fd_set_cloexec(-1, true), -EBADF);
}
END_TEST

START_TEST(reopen_leaves_the_callers_flags)
{
	int fds[2];
	autoclose int again = -1;
	autoclose int file = fd_open_at(unit_fd, "f", O_RDWR | O_CREAT, 0600);
	char c = 0;

	ck_assert_int_eq(fd_pipe(fds, 0), 0);
	again = fd_reopen_nonblock(fds[0], O_RDONLY);
	ck_assert_int_ge(again, 0);
	ck_assert(is_cloexec(again));
	ck_assert_int_eq(fcntl(fds[0], F_GETFL) & O_NONBLOCK, 0);
	ck_assert_int_eq(fd_read(again, &c, 1), -EAGAIN);
	ck_assert_int_eq(fd_write_all(fds[1], "x", 1), 0);
	ck_assert_int_eq(fd_read(again, &c, 1), 1);
	/* A file would be read from its beginning again. */
	ck_assert_int_eq(fd_reopen_nonblock(file, O_RDONLY), -EOPNOTSUPP);
	ck_assert_int_eq(fd_reopen_nonblock(-1, O_RDONLY), -EBADF);
}
END_TEST

START_TEST(memfd_is_sealed)
{
	autoclose int fd = fd_memfd_sealed("unit", "abc", 3, false);
	char c[8];

	ck_assert_int_ge(fd, 0);
	ck_assert(is_cloexec(fd));
	ck_assert_int_eq(fd_read(fd, c, sizeof(c)), 3);
	ck_assert_mem_eq(c, "abc", 3);
	ck_assert_int_eq(fd_write_all(fd, "x", 1), -EPERM);
	ck_assert_int_eq(ftruncate(fd, 0), -1);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1);
	ck_assert_ptr_eq(mmap(NULL, 3, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
}
END_TEST

/* Who may still write to it is not shut out for ever, but told. */
START_TEST(memfd_that_is_mapped)
{
	autoclose int fd = fd_memfd("unit", false);

	ck_assert_int_eq(ftruncate(fd, 3), 0);
	void *map = mmap(NULL, 3, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	ck_assert_ptr_ne(map, MAP_FAILED);
	ck_assert_int_eq(fd_memfd_seal(fd, "abc", 3), -EBUSY);
	ck_assert_int_eq(munmap(map, 3), 0);
	ck_assert_int_eq(fd_memfd_seal(fd, "abc", 3), 0);
}
END_TEST

START_TEST(memfd_executes)
{
	autoclose int self = fd_open("/proc/self/exe", O_RDONLY, 0);
	autoclose int truth = fd_open("/bin/true", O_RDONLY, 0);
	AUTO(buf) struct buf b = BUF_INIT(1 << 20);
	autoclose int fd = -1;
	int status = -1;

	ck_assert_int_ge(self, 0);
	ck_assert_int_eq(fd_read_all(truth, &b), 0);
	fd = fd_memfd_sealed("true", b.p, b.n, true);
	ck_assert_int_ge(fd, 0);
	if (fork() == 0) {
		char name[] = "true";
		char *argv[] = { name, NULL };

		fexecve(fd, argv, environ);
		_exit(99);
	}
	ck_assert_int_gt(wait(&status), 0);
	ck_assert_int_eq(status, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fd");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_test(tc, sanitize_opens_and_marks);
	tcase_add_test(tc, open_sets_cloexec);
	tcase_add_test(tc, close_forgets);
	tcase_add_test(tc, pairs_are_cloexec);
	tcase_add_test(tc, dup_goes_above);
	tcase_add_test(tc, read_restarts);
	tcase_add_test(tc, read_all_is_bounded);
	tcase_add_test(tc, write_all_is_complete);
	tcase_add_loop_test(tc, copy_between, 0, COPY_END_COUNT * COPY_END_COUNT);
	tcase_add_test(tc, copy_is_bounded);
	tcase_add_test(tc, copy_of_proc_has_bytes);
	tcase_add_test(tc, flags_are_set_and_cleared);
	tcase_add_test(tc, reopen_leaves_the_callers_flags);
	tcase_add_test(tc, memfd_is_sealed);
	tcase_add_test(tc, memfd_that_is_mapped);
	tcase_add_test(tc, memfd_executes);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
