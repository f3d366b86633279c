/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/mem.h>

#include "../../../src/runtime/console_flow.h"
#include "../unit.h"

#define MIB (1U << 20)

/* A reader that went away is an errno, as in the keeper. */
static void sigpipe_set(sighandler_t handler)
{
	const struct sigaction sa = { .sa_handler = handler };

	ck_assert_int_eq(sigaction(SIGPIPE, &sa, NULL), 0);
}

struct fixture {
	struct loop *loop;
	struct flow flow;
	struct loop_source timer;
	int source; /* the test writes here */
	int target; /* and reads here */
	bool ended;
};

static void on_end(void *ctx)
{
	struct fixture *f = ctx;

	f->ended = true;
	loop_stop(f->loop, 0);
}

static void fixture_done(struct fixture *f)
{
	flow_stop(&f->flow);
	loop_free(f->loop);
}
AUTO_DEFINE(fixture, struct fixture, fixture_done);

/* A flow from our pipe to what the test gives for the caller's. */
static void fixture_init(struct fixture *f, int target_fd)
{
	int pipe_fds[2];

	*f = (struct fixture){ .source = -1, .target = -1 };
	sigpipe_set(SIG_IGN);
	ck_assert_int_eq(fd_pipe(pipe_fds, 0), 0);
	f->loop = loop_new();
	ck_assert_ptr_nonnull(f->loop);
	f->source = pipe_fds[1];
	f->flow = (struct flow){
		.loop = f->loop,
		.from = { .fd = pipe_fds[0], .owned = true },
		.to = { .fd = target_fd, .foreign = true },
		.lazy = true,
		.on_end = on_end,
		.ctx = f,
	};
}

static void timer_on_end(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)src;
	(void)events;
	loop_stop(loop, 1);
}

/* Let the loop run until the flow ends, or for ms. */
static void run_for(struct fixture *f, int ms)
{
	loop_timer(f->loop, &f->timer, clock_boot_ms() + ms, timer_on_end);
	ck_assert_int_ge(loop_run(f->loop), 0);
	loop_remove(f->loop, &f->timer);
}

static int pipe_target(struct fixture *f, int size)
{
	int fds[2];

	ck_assert_int_eq(fd_pipe(fds, 0), 0);
	if (size > 0) {
		ck_assert_int_ge(fcntl(fds[1], F_SETPIPE_SZ, size), 0);
	}
	f->target = fds[0];
	return fds[1];
}

static void fill(char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		p[i] = (char)(i * 7 + i / 251);
	}
}

/* A child that writes n bytes of the pattern and ends. */
static pid_t writer(struct fixture *f, size_t n)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		autofree char *p = mem_array(n, 1);

		fill(p, n);
		sigpipe_set(SIG_DFL);
		close(f->flow.from.fd);
		_exit(fd_write_all(f->source, p, n) < 0);
	}
	fd_close(&f->source);
	return pid;
}

/* A child that reads target until its end and succeeds when it was the pattern. */
static pid_t reader(struct fixture *f, int target_fd, size_t n)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		autofree char *want = mem_array(n, 1);
		AUTO(buf) struct buf got = BUF_INIT(16 * MIB);

		fill(want, n);
		close(target_fd);
		if (f->flow.prepared) {
			close(f->flow.to.fd); /* opened anew: another writer */
		}
		close(f->source);
		_exit(fd_read_all(f->target, &got) < 0 || got.n != n ||
				memcmp(got.p, want, n) != 0);
	}
	fd_close(&f->target);
	return pid;
}

static int status_of(pid_t pid)
{
	int status = 0;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static const size_t sizes[] = { 0, 1, 4096, 65536, 65537, 5 * MIB + 3 };

START_TEST(moves_all_bytes_between_pipes)
{
	AUTO(fixture) struct fixture f = { .loop = NULL };
	int target_fd = -1;

	fixture_init(&f, -1);
	target_fd = pipe_target(&f, 0);
	f.flow.to.fd = target_fd;
	pid_t read_pid = reader(&f, target_fd, sizes[_i]);
	pid_t write_pid = writer(&f, sizes[_i]);

	ck_assert_int_eq(flow_start(&f.flow), 0);
	run_for(&f, 20000);
	ck_assert(f.ended);
	close(target_fd);
	ck_assert_int_eq(status_of(write_pid), 0);
	ck_assert_int_eq(status_of(read_pid), 0);
	ck_assert_int_eq(f.flow.failure, 0);
	ck_assert(_i == 0 || f.flow.splice);
}
END_TEST

static void expect_file(int fd, size_t skip, size_t n)
{
	autofree char *want = mem_array(n, 1);
	AUTO(buf) struct buf got = BUF_INIT(16 * MIB);

	fill(want, n);
	ck_assert_int_ge(lseek(fd, (off_t)skip, SEEK_SET), 0);
	ck_assert_int_eq(fd_read_all(fd, &got), 0);
	ck_assert_uint_eq(got.n, n);
	ck_assert_int_eq(memcmp(got.p, want, n), 0);
}

/* Behind what is there already, also where splice refuses (O_APPEND). */
START_TEST(moves_all_bytes_to_a_file)
{
	AUTO(fixture) struct fixture f = { .loop = NULL };
	int fd = openat(unit_fd, "out", O_RDWR | O_CREAT | O_CLOEXEC | (_i ? O_APPEND : 0), 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, "head", 4), 4);
	fixture_init(&f, fd);
	pid_t pid = writer(&f, 3 * MIB);

	ck_assert_int_eq(flow_start(&f.flow), 0);
	run_for(&f, 20000);
	ck_assert(f.ended);
	ck_assert_int_eq(status_of(pid), 0);
	ck_assert_int_eq(f.flow.splice, _i == 0);
	expect_file(fd, 4, 3 * MIB);
	/* The caller's description is as it was. */
	ck_assert_int_eq(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
}
END_TEST

START_TEST(moves_all_bytes_to_a_socket)
{
	AUTO(fixture) struct fixture f = { .loop = NULL };
	int fds[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	fixture_init(&f, fds[1]);
	f.target = fds[0];
	pid_t read_pid = reader(&f, fds[1], 2 * MIB);
	pid_t write_pid = writer(&f, 2 * MIB);

	ck_assert_int_eq(flow_start(&f.flow), 0);
	run_for(&f, 20000);
	ck_assert(f.ended);
	ck_assert_int_eq(fcntl(fds[1], F_GETFL) & O_NONBLOCK, 0);
	close(fds[1]);
	ck_assert_int_eq(status_of(write_pid), 0);
	ck_assert_int_eq(status_of(read_pid), 0);
}
END_TEST

START_TEST(takes_input_of_any_kind)
{
	AUTO(fixture) struct fixture f = { .loop = NULL };
	autofree char *bytes = mem_array(2 * MIB, 1);
	int target_fd = -1;
	int fd = openat(unit_fd, "in", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	fill(bytes, 2 * MIB);
	ck_assert_int_eq(fd_write_all(fd, bytes, 2 * MIB), 0);
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	fixture_init(&f, -1);
	close(f.flow.from.fd);
	target_fd = pipe_target(&f, 0);
	f.flow.from = (struct flow_end){ .fd = fd, .foreign = true };
	f.flow.to = (struct flow_end){ .fd = target_fd, .owned = true };
	f.flow.lazy = false;
	pid_t pid = reader(&f, target_fd, 2 * MIB);

	ck_assert_int_eq(flow_start(&f.flow), 0);
	run_for(&f, 20000);
	ck_assert(f.ended);
	ck_assert_int_eq(status_of(pid), 0);
	/* Never by splice: the guest would get the caller's own pages. */
	ck_assert(!f.flow.splice);
	/* The position of the caller's file is where reading ended. */
	ck_assert_int_eq(lseek(fd, 0, SEEK_CUR), 2 * MIB);
}
END_TEST

START_TEST(a_slow_reader_stops_the_writer)
{
	AUTO(fixture) struct fixture f = { .loop = NULL };
	int in_pipe = 0;
	int target_fd = -1;

	fixture_init(&f, -1);
	target_fd = pipe_target(&f, 4096);
	f.flow.to.fd = target_fd;
	pid_t pid = writer(&f, MIB);

	ck_assert_int_eq(flow_start(&f.flow), 0);
	run_for(&f, 100);
	ck_assert(!f.ended);
	/* What nobody has read stands in the two pipes, not in our memory. */
	ck_assert_int_eq(ioctl(f.target, FIONREAD, &in_pipe), 0);
	ck_assert_int_le(in_pipe, 4096);
	ck_assert_int_eq(waitpid(pid, NULL, WNOHANG), 0);
	pid_t read_pid = reader(&f, target_fd, MIB);

	run_for(&f, 20000);
	ck_assert(f.ended);
	close(target_fd);
	ck_assert_int_eq(status_of(pid), 0);
	ck_assert_int_eq(status_of(read_pid), 0);
}
END_TEST

START_TEST(a_reader_that_left_ends_the_writer)
{
	AUTO(fixture) struct fixture f = { .loop = NULL };
	int target_fd = -1;

	fixture_init(&f, -1);
	target_fd = pipe_target(&f, 0);
	f.flow.to.fd = target_fd;
	fd_close(&f.target);
	pid_t pid = writer(&f, MIB);

	ck_assert_int_eq(flow_start(&f.flow), 0);
	run_for(&f, 20000);
	ck_assert(f.ended);
	ck_assert_int_eq(f.flow.failure, 0);
	ck_assert_int_eq(status_of(pid), 128 + SIGPIPE);
}
END_TEST

START_TEST(a_full_disk_is_a_failure)
{
	AUTO(fixture) struct fixture f = { .loop = NULL };
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	fixture_init(&f, fd);
	pid_t pid = writer(&f, 4096);

	ck_assert_int_eq(flow_start(&f.flow), 0);
	run_for(&f, 20000);
	ck_assert(f.ended);
	ck_assert_int_eq(f.flow.failure, -ENOSPC);
	(void)status_of(pid);
}
END_TEST

START_TEST(drains_and_does_not_wait)
{
	AUTO(fixture) struct fixture f = { .loop = NULL };
	char text[16] = "";
	int target_fd = -1;

	fixture_init(&f, -1);
	target_fd = pipe_target(&f, 0);
	f.flow.to.fd = target_fd;
	ck_assert_int_eq(flow_start(&f.flow), 0);
	ck_assert_int_eq(write(f.source, "last words", 10), 10);
	/* f.source stays open, as in a process that has fled. */
	flow_drain(&f.flow);
	ck_assert(f.ended);
	ck_assert_int_eq(read(f.target, text, sizeof(text)), 10);
	ck_assert_str_eq(text, "last words");
}
END_TEST

START_TEST(drains_no_endless_writer)
{
	AUTO(fixture) struct fixture f = { .loop = NULL };
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	pid_t pid = -1;

	ck_assert_int_ge(fd, 0);
	fixture_init(&f, fd);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		static const char bytes[4096];

		sigpipe_set(SIG_DFL);
		close(f.flow.from.fd);
		while (write(f.source, bytes, sizeof(bytes)) > 0) {
		}
		_exit(0);
	}
	ck_assert_int_eq(flow_start(&f.flow), 0);
	run_for(&f, 20);
	ck_assert(!f.ended);
	flow_drain(&f.flow);
	if (!f.ended) {
		run_for(&f, 20000);
	}
	ck_assert(f.ended);
	ck_assert_int_eq(status_of(pid), 128 + SIGPIPE);
}
END_TEST

START_TEST(stops_without_a_word)
{
	AUTO(fixture) struct fixture f = { .loop = NULL };

	fixture_init(&f, 1);
	flow_stop(&f.flow);
	ck_assert_int_eq(flow_start(&f.flow), 0);
	flow_stop(&f.flow);
	flow_stop(&f.flow);
	flow_drain(&f.flow);
	ck_assert(!f.ended);
	ck_assert_int_lt(write(f.source, "x", 1), 0);
}
END_TEST

static size_t add_words(void *ctx, char *out, size_t size)
{
	(void)ctx;
	ck_assert_uint_ge(size, 4);
	memcpy(out, "end.", 4);
	return 4;
}

START_TEST(adds_what_the_end_means)
{
	AUTO(fixture) struct fixture f = { .loop = NULL };
	int fd = openat(unit_fd, "out", O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND, 0600);
	char text[16] = "";

	ck_assert_int_ge(fd, 0);
	fixture_init(&f, fd);
	f.flow.on_eof = add_words;
	ck_assert_int_eq(write(f.source, "body ", 5), 5);
	fd_close(&f.source);
	ck_assert_int_eq(flow_start(&f.flow), 0);
	run_for(&f, 20000);
	ck_assert(f.ended);
	ck_assert_int_eq(pread(fd, text, sizeof(text), 0), 9);
	ck_assert_str_eq(text, "body end.");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("console_flow");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, moves_all_bytes_between_pipes, 0, 6);
	tcase_add_loop_test(tc, moves_all_bytes_to_a_file, 0, 2);
	tcase_add_test(tc, moves_all_bytes_to_a_socket);
	tcase_add_test(tc, takes_input_of_any_kind);
	tcase_add_test(tc, a_slow_reader_stops_the_writer);
	tcase_add_test(tc, a_reader_that_left_ends_the_writer);
	tcase_add_test(tc, a_full_disk_is_a_failure);
	tcase_add_test(tc, drains_and_does_not_wait);
	tcase_add_test(tc, drains_no_endless_writer);
	tcase_add_test(tc, stops_without_a_word);
	tcase_add_test(tc, adds_what_the_end_means);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
