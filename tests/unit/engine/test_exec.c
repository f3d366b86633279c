/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/strv.h>

#include "fake_keeper.h"

#define PIPE_BYTES 65536 /* pipe(7): what one holds */

static int out_fd = -1;

static int run(struct fake *f, bool detach, int in_fd, int *out_status, struct error *e)
{
	AUTO(strv) struct strv argv = STRV_INIT;
	AUTO(strv) struct strv env = STRV_INIT;
	autoclose int null_fd = fd_open("/dev/null", O_RDWR, 0);

	ck_assert_int_eq(strv_add(&argv, "cmd"), 0);
	ck_assert_int_eq(strv_add(&argv, "arg"), 0);
	ck_assert_int_eq(strv_add(&env, "A=b"), 0);
	const struct exec_opts opts = {
		.argv = &argv,
		.env = &env,
		.cwd = "/cwd",
		.user = "5",
		.interactive = in_fd >= 0,
		.detach = detach,
		.in_fd = in_fd >= 0 ? in_fd : null_fd,
		.out_fd = out_fd,
		.err_fd = null_fd,
	};

	return sandbox_exec(&f->dirs, &f->id, &opts, out_status, e);
}

static void output_open(void)
{
	unit_dir_make();
	out_fd = openat(unit_fd, "output", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_ge(out_fd, 0);
}

static void output_close(void)
{
	close(out_fd);
	unit_dir_close();
}

static void output_is(const char *want)
{
	char got[64] = "";

	ck_assert_int_ge(pread(out_fd, got, sizeof(got) - 1, 0), 0);
	ck_assert_str_eq(got, want);
}

static void serve_output(int sock, struct packet *p)
{
	AUTO(execd_process) struct execd_process process = { .caps = 0 };
	struct ctl_exec request;

	fake_process(p, &process);
	memcpy(&request, p->payload, sizeof(request));
	CHECK(request.flags == 0 && p->fds_n == 4 && process.copy == 0);
	CHECK(process.argv.n == 2 && strcmp(process.argv.v[1], "arg") == 0);
	CHECK(strcmp(process.cwd, "/cwd") == 0 && strcmp(process.user, "5") == 0);
	fake_started(sock);
	CHECK(fd_write_all(p->fds[2], "output\n", 7) == 0);
	packet_done(p);
	fake_ended(sock, 3);
}

START_TEST(output_and_status)
{
	struct fake f;
	struct error e = ERROR_INIT;
	int status = -1;

	fake_start(&f, serve_output);
	ck_assert_msg(run(&f, false, -1, &status, &e) == 0, "%s", e.text);
	ck_assert_int_eq(status, 3);
	output_is("output\n");
	fake_end(&f);
}
END_TEST

/* The end is told while all that a pipe holds is still on its way. */
static void serve_full_pipe(int sock, struct packet *p)
{
	static const char text[PIPE_BYTES] = { [0] = 'a', [PIPE_BYTES - 1] = 'z' };

	fake_started(sock);
	CHECK(fd_write_all(p->fds[2], text, sizeof(text)) == 0);
	packet_done(p);
	fake_ended(sock, 0);
}

START_TEST(output_behind_the_end)
{
	struct fake f;
	struct error e = ERROR_INIT;
	int status = -1;
	char last = 0;

	fake_start(&f, serve_full_pipe);
	ck_assert_int_eq(run(&f, false, -1, &status, &e), 0);
	ck_assert_int_eq(lseek(out_fd, 0, SEEK_END), PIPE_BYTES);
	ck_assert_int_eq(pread(out_fd, &last, 1, PIPE_BYTES - 1), 1);
	ck_assert_int_eq(last, 'z');
	fake_end(&f);
}
END_TEST

static void serve_echo(int sock, struct packet *p)
{
	AUTO(buf) struct buf text = BUF_INIT(64);

	fake_started(sock);
	CHECK(fd_read_all(p->fds[1], &text) == 0);
	CHECK(fd_write_all(p->fds[2], text.p, text.n) == 0);
	packet_done(p);
	fake_ended(sock, 0);
}

START_TEST(input_is_forwarded)
{
	struct fake f;
	struct error e = ERROR_INIT;
	int status = -1;
	int fds[2];

	ck_assert_int_eq(fd_pipe(fds, 0), 0);
	ck_assert_int_eq(fd_write_all(fds[1], "typed", 5), 0);
	close(fds[1]);
	fake_start(&f, serve_echo);
	ck_assert_int_eq(run(&f, false, fds[0], &status, &e), 0);
	output_is("typed");
	close(fds[0]);
	fake_end(&f);
}
END_TEST

static void serve_failure(int sock, struct packet *p)
{
	struct error e = ERROR_INIT;

	packet_done(p);
	(void)error_set(&e, ERRC_NO_COMMAND, "no such command");
	fake_answer(sock, CTL_MSG_FAILED, &e, sizeof(e));
}

START_TEST(failure_is_told)
{
	struct fake f;
	struct error e = ERROR_INIT;
	int status = -1;

	fake_start(&f, serve_failure);
	ck_assert_int_eq(run(&f, false, -1, &status, &e), -1);
	ck_assert_int_eq(e.code, ERRC_NO_COMMAND);
	ck_assert_int_eq(status, -1);
	fake_end(&f);
}
END_TEST

static void serve_nothing(int sock, struct packet *p)
{
	(void)sock;
	packet_done(p);
}

static void serve_half(int sock, struct packet *p)
{
	fake_started(sock);
	packet_done(p);
}

static void serve_nonsense(int sock, struct packet *p)
{
	fake_started(sock);
	packet_done(p);
	fake_answer(sock, CTL_MSG_ENDED, "x", 1);
}

static void serve_another_language(int sock, struct packet *p)
{
	packet_done(p);
	fake_answer(sock, CTL_MSG_OK, NULL, 0);
}

static const struct {
	fake_fn fn;
	enum errc code;
} broken[] = {
	{ serve_nothing, ERRC_UNAVAILABLE },
	{ serve_half, ERRC_UNAVAILABLE },
	{ serve_nonsense, ERRC_SYSTEM },
	{ serve_another_language, ERRC_INTERNAL },
};

START_TEST(keeper_that_breaks_off)
{
	struct fake f;
	struct error e = ERROR_INIT;
	int status = -1;

	fake_start(&f, broken[_i].fn);
	ck_assert_int_eq(run(&f, false, -1, &status, &e), -1);
	ck_assert_int_eq(e.code, broken[_i].code);
	fake_end(&f);
}
END_TEST

static void serve_detached(int sock, struct packet *p)
{
	struct ctl_exec request;
	struct packet more;

	memcpy(&request, p->payload, sizeof(request));
	CHECK(request.flags == CTL_EXEC_DETACH);
	fake_started(sock);
	packet_done(p);
	/* It does not wait for the end. */
	CHECK(packet_recv(sock, &more, -1) == 0);
}

START_TEST(detached)
{
	struct fake f;
	struct error e = ERROR_INIT;
	int status = -1;

	fake_start(&f, serve_detached);
	ck_assert_int_eq(run(&f, true, -1, &status, &e), 0);
	ck_assert_int_eq(status, 0);
	fake_end(&f);
}
END_TEST

static void serve_until_signal(int sock, struct packet *p)
{
	struct ctl_signal s;
	struct packet more;

	fake_started(sock);
	packet_done(p);
	CHECK(kill(getppid(), SIGINT) == 0);
	CHECK(packet_recv(sock, &more, -1) == 1 && more.type == CTL_MSG_EXEC_SIGNAL);
	memcpy(&s, more.payload, sizeof(s));
	CHECK(s.signo == SIGINT);
	fake_ended(sock, 128 + s.signo);
}

START_TEST(signals_are_forwarded)
{
	struct fake f;
	struct error e = ERROR_INIT;
	int status = -1;

	fake_start(&f, serve_until_signal);
	ck_assert_int_eq(run(&f, false, -1, &status, &e), 0);
	ck_assert_int_eq(status, 128 + SIGINT);
	fake_end(&f);
}
END_TEST

START_TEST(nobody_there)
{
	struct fake f = { .dirs = DIRS_INIT };
	struct error e = ERROR_INIT;
	int status = -1;

	setenv("OSBX_ROOT", unit_path, 1);
	setenv("OSBX_RUNTIME", unit_path, 1);
	ck_assert_int_eq(dirs_open(&f.dirs, &e), 0);
	id_new(&f.id);
	ck_assert_int_eq(run(&f, false, -1, &status, &e), -1);
	ck_assert_int_eq(e.code, ERRC_CONFLICT);
	dirs_done(&f.dirs);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("exec");
	TCase *tc = tcase_create("all");

	tcase_add_unchecked_fixture(tc, unit_base_make, unit_base_remove);
	tcase_add_checked_fixture(tc, output_open, output_close);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, output_and_status);
	tcase_add_test(tc, output_behind_the_end);
	tcase_add_test(tc, input_is_forwarded);
	tcase_add_test(tc, failure_is_told);
	tcase_add_loop_test(tc, keeper_that_breaks_off, 0, ARRAY_SIZE(broken));
	tcase_add_test(tc, detached);
	tcase_add_test(tc, signals_are_forwarded);
	tcase_add_test(tc, nobody_there);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
