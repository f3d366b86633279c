/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pty.h>
#include <sys/wait.h>

#include <osbx/fd.h>
#include <osbx/mem.h>

#include "../../../src/engine/logpump.h"
#include "../unit.h"

struct fixture {
	struct loop *loop;
	struct logpump *pump;
	int child[3];
	int done;
};

static void on_done(void *ctx)
{
	struct fixture *f = ctx;

	f->done++;
	loop_stop(f->loop, 7);
}

static void pump_make(struct fixture *f, bool tty)
{
	const struct logpump_opts opts = {
		.tty = tty, .dir_fd = unit_fd, .on_done = on_done, .ctx = f
	};
	struct error e = ERROR_INIT;

	*f = (struct fixture){ .loop = loop_new() };
	ck_assert_ptr_nonnull(f->loop);
	f->pump = logpump_new(f->loop, &opts, f->child, &e);
	ck_assert_msg(f->pump != NULL, "%s", e.text);
	ck_assert_int_eq(f->child[0], -1);
}

static void pump_free(struct fixture *f)
{
	logpump_free(f->pump);
	loop_free(f->loop);
}

/* A child that has the ends of a workload and writes to them as text says. */
static pid_t writer(const struct fixture *f, const char *to_stdout, size_t times)
{
	size_t n = strlen(to_stdout);
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		int r = fd_write_all(f->child[2], "err\n", 4);

		for (size_t i = 0; i < times && r == 0; i++) {
			r = fd_write_all(f->child[1], to_stdout, n);
		}
		_exit(r == 0 ? 0 : 1);
	}
	return pid;
}

static void run_to_the_end(struct fixture *f)
{
	struct error e = ERROR_INIT;

	ck_assert_int_eq(logpump_child_started(f->pump, -1, &e), 0);
	ck_assert_int_eq(loop_run(f->loop), 7);
	ck_assert_int_eq(f->done, 1);
}

static void wait_for(pid_t pid)
{
	int status = -1;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

/* Records of the log: bytes of text of a stream, and the number of whole lines. */
static size_t logged(enum log_stream stream, size_t *out_lines)
{
	AUTO(line_reader) struct line_reader r = { .fd = -1 };
	struct log_record record;
	size_t bytes = 0;
	int got = 0;

	*out_lines = 0;
	line_reader_init(&r, unit_fd, LOG_FILE, LOG_FILES);
	while ((got = log_record_next(&r, &record)) == 1) {
		if (record.stream == stream) {
			bytes += record.text.n;
			*out_lines += record.is_partial ? 0 : 1;
		}
	}
	ck_assert_int_eq(got, 0);
	return bytes;
}

START_TEST(both_streams_are_logged)
{
	struct fixture f;
	size_t lines = 0;

	pump_make(&f, false);
	pid_t pid = writer(&f, "a line\npart", 1);

	run_to_the_end(&f);
	wait_for(pid);
	ck_assert_uint_eq(logged(LOG_STDOUT, &lines), 10);
	ck_assert_uint_eq(lines, 1);
	ck_assert_uint_eq(logged(LOG_STDERR, &lines), 3);
	ck_assert_uint_eq(lines, 1);
	pump_free(&f);
}
END_TEST

/* More than all files together may hold: the end is there, no file is too large. */
START_TEST(flood_is_bounded)
{
	static char line[4096];
	struct fixture f;
	size_t lines = 0;
	struct stat st;

	memset(line, 'x', sizeof(line) - 2);
	line[sizeof(line) - 2] = '\n';
	pump_make(&f, false);
	pid_t pid = writer(&f, line, (size_t)(LOG_FILES + 1) * LOG_FILE_BYTES / sizeof(line));

	run_to_the_end(&f);
	wait_for(pid);
	ck_assert_uint_ge(
			logged(LOG_STDOUT, &lines), (size_t)(LOG_FILES - 1) * (LOG_FILE_BYTES / 2));
	for (int i = 0; i < LOG_FILES; i++) {
		autofree char *name = i == 0 ? mem_strdup(LOG_FILE) : mem_printf(LOG_FILE ".%d", i);

		ck_assert_int_eq(fstatat(unit_fd, name, &st, 0), 0);
		ck_assert_int_le(st.st_size, LOG_FILE_BYTES);
	}
	ck_assert_int_lt(fstatat(unit_fd, LOG_FILE ".3", &st, 0), 0);
	pump_free(&f);
}
END_TEST

/* A process that was left behind holds the pipe: its end is not waited for, what is in it is not
 * lost. */
START_TEST(end_with_a_pipe_that_is_held)
{
	struct fixture f;
	struct error e = ERROR_INIT;
	size_t lines = 0;

	pump_make(&f, false);
	int held = dup(f.child[1]);

	ck_assert_int_eq(fd_write_all(held, "last words\n", 11), 0);
	ck_assert_int_eq(logpump_child_started(f.pump, -1, &e), 0);
	logpump_child_ended(f.pump);
	ck_assert_int_eq(f.done, 1);
	ck_assert_uint_eq(logged(LOG_STDOUT, &lines), 10);
	/* Nobody reads any more. */
	ck_assert_int_eq(fcntl(held, F_SETFL, O_NONBLOCK), 0);
	close(held);
	pump_free(&f);
}
END_TEST

START_TEST(terminal)
{
	struct fixture f;
	struct error e = ERROR_INIT;
	size_t lines = 0;
	int master = -1;
	int slave = -1;

	pump_make(&f, true);
	ck_assert_int_eq(f.child[1], -1);
	ck_assert_int_eq(openpty(&master, &slave, NULL, NULL, NULL), 0);
	ck_assert_int_eq(fd_write_all(slave, "said\n", 5), 0);
	ck_assert_int_eq(logpump_child_started(f.pump, master, &e), 0);
	close(slave);
	ck_assert_int_eq(loop_run(f.loop), 7);
	ck_assert_uint_eq(logged(LOG_STDOUT, &lines), 5); /* with its carriage return */
	ck_assert_uint_eq(lines, 1);
	pump_free(&f);
}
END_TEST

START_TEST(no_terminal_is_refused)
{
	struct fixture f;
	struct error e = ERROR_INIT;
	int fds[2];

	pump_make(&f, true);
	ck_assert_int_eq(fd_pipe(fds, 0), 0);
	ck_assert_int_eq(logpump_child_started(f.pump, fds[0], &e), -1);
	close(fds[1]);
	pump_free(&f);
}
END_TEST

START_TEST(no_place_for_a_log)
{
	const struct logpump_opts opts = { .dir_fd = -1, .on_done = on_done };
	struct loop *loop = loop_new();
	struct error e = ERROR_INIT;
	int child[3];

	ck_assert_ptr_null(logpump_new(loop, &opts, child, &e));
	ck_assert_int_eq(e.sysno, EBADF);
	loop_free(loop);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("logpump");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, both_streams_are_logged);
	tcase_add_test(tc, flood_is_bounded);
	tcase_add_test(tc, end_with_a_pipe_that_is_held);
	tcase_add_test(tc, terminal);
	tcase_add_test(tc, no_terminal_is_refused);
	tcase_add_test(tc, no_place_for_a_log);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
