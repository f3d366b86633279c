/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/keeper.h>
#include <osbx/mem.h>
#include <osbx/packet.h>
#include <osbx/sys.h>

#include "../unit.h"

/* What a sandbox's PID 1 does in a test: a child of the test with the other end of the channel. */
struct fake {
	int sock;
	struct packet start; /* spec, stdin, stdout, stderr */
};

struct fixture {
	struct execd_process process;
	struct idmap map;
	struct cgroup cgroup;
	struct keeper_opts opts;
	struct launch launch;
	int fake_sock;
	int caller_in; /* the test's ends of what the keeper takes for the caller's descriptors */
	int caller_out;
	int caller_err;
};

static void fixture_done(struct fixture *f)
{
	execd_process_done(&f->process);
	launch_done(&f->launch);
	fd_close(&f->fake_sock);
}
AUTO_DEFINE(fixture, struct fixture, fixture_done);

static void fixture_init(struct fixture *f)
{
	int in[2];
	int out[2];
	int err[2];
	int sock[2];

	ck_assert_int_eq(fd_pipe(in, 0), 0);
	ck_assert_int_eq(fd_pipe(out, 0), 0);
	ck_assert_int_eq(fd_pipe(err, 0), 0);
	ck_assert_int_eq(fd_seqpacket_pair(sock), 0);
	*f = (struct fixture){
		.map = { .mode = IDMAP_SINGLE,
				.uids_n = 1,
				.gids_n = 1,
				.uids = { { .outside = geteuid(), .count = 1 } },
				.gids = { { .outside = getegid(), .count = 1 } } },
		.cgroup = CGROUP_INIT,
		.launch = LAUNCH_INIT,
		.fake_sock = sock[1],
		.caller_in = in[1],
		.caller_out = out[0],
		.caller_err = err[0],
	};
	ck_assert_int_eq(strv_add(&f->process.argv, "true"), 0);
	f->launch.control_fd = sock[0];
	f->opts = (struct keeper_opts){
		.in_fd = in[0],
		.out_fd = out[1],
		.err_fd = err[1],
		.stop_signal = SIGQUIT,
		.process = &f->process,
		.map = &f->map,
		.cgroup = &f->cgroup,
	};
}

static void fake_take_start(struct fake *x)
{
	if (packet_recv(x->sock, &x->start, -1) != 1 || x->start.type != EXECD_MSG_START) {
		_exit(99);
	}
}

static void fake_send(const struct fake *x, enum execd_msg type, const void *p, uint32_t n, int fd)
{
	if (execd_send(x->sock, type, p, n, &fd, fd >= 0 ? 1 : 0) < 0) {
		_exit(98);
	}
}

static void fake_started(const struct fake *x, int master_fd)
{
	const struct execd_started s = { .tag = 1, .pid = 2 };

	fake_send(x, EXECD_MSG_STARTED, &s, sizeof(s), master_fd);
}

static void fake_exited(const struct fake *x, int status)
{
	const struct execd_exited s = { .tag = 1, .status = status };

	fake_send(x, EXECD_MSG_EXITED, &s, sizeof(s), -1);
}

/* The next signal; its tag in *out_tag. */
static int fake_signal(const struct fake *x, uint32_t *out_tag)
{
	struct packet p;
	int r = packet_recv(x->sock, &p, -1);
	const struct execd_signal *s =
			r == 1 && p.type == EXECD_MSG_SIGNAL ? execd_payload(&p, sizeof(*s)) : NULL;

	if (!s) {
		_exit(97);
	}
	*out_tag = s->tag;
	return s->signo;
}

static void fake_start(struct fixture *f, void (*run)(struct fake *x))
{
	struct fake x = { .sock = f->fake_sock };

	f->launch.pid = fork();
	ck_assert_int_ge(f->launch.pid, 0);
	if (f->launch.pid == 0) {
		/* Not the caller's descriptors: their ends would never come. */
		close(f->opts.in_fd);
		close(f->opts.out_fd);
		close(f->opts.err_fd);
		close(f->launch.control_fd);
		close(f->caller_in);
		run(&x);
		_exit(0);
	}
	f->launch.pidfd = sys_pidfd_open(f->launch.pid);
	ck_assert_int_ge(f->launch.pidfd, 0);
	fd_close(&f->fake_sock);
}

/* Run a keeper over a fake. signo: sent to ourselves once it has the signals, 0: none. */
static int keep_with(struct fixture *f, void (*run)(struct fake *x), int signo, int *out_status,
		struct error *e)
{
	fake_start(f, run);
	AUTO(keeper) struct keeper *k = keeper_new(&f->opts, e);

	ck_assert_ptr_nonnull(k);
	if (signo) {
		ck_assert_int_eq(kill(getpid(), signo), 0);
	}
	ck_assert_int_eq(keeper_queue(k, f->launch.control_fd, e), 0);
	ck_assert_int_eq(keeper_start(k, &f->launch, e), 0);
	return keeper_run(k, out_status, e);
}

/* All that can be read now, as a string. */
static const char *text_of(int fd)
{
	static char text[4096];
	ssize_t n = 0;

	ck_assert_int_eq(fd_set_nonblock(fd, true), 0);
	n = read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	return text;
}

static void run_output(struct fake *x)
{
	fake_take_start(x);
	fake_started(x, -1);
	(void)!write(x->start.fds[2], "out\0put", 7);
	(void)!write(x->start.fds[3], "error", 5);
	fake_exited(x, 7);
}

START_TEST(gives_status_and_output)
{
	AUTO(fixture) struct fixture f = { .fake_sock = -1 };
	struct error e = ERROR_INIT;
	int status = -1;

	fixture_init(&f);
	ck_assert_int_eq(keep_with(&f, run_output, 0, &status, &e), 0);
	ck_assert_int_eq(status, 7);
	ck_assert_int_eq(memcmp(text_of(f.caller_out), "out\0put", 8), 0);
	ck_assert_str_eq(text_of(f.caller_err), "error");
}
END_TEST

/* What was said, in its order: e(xited), q(uiet), and the output that was there at the latter. */
struct said {
	struct fixture *f;
	char text[64];
};

static void said_exited(void *ctx)
{
	struct said *s = ctx;

	(void)snprintf(s->text, sizeof(s->text), "e");
}

static void said_quiet(void *ctx)
{
	struct said *s = ctx;
	const char *out = text_of(s->f->caller_out);

	(void)snprintf(s->text + strlen(s->text), sizeof(s->text) - strlen(s->text), "q(%s)", out);
}

static void run_alone(struct fake *x)
{
	const struct execd_exited s = { .tag = 1, .alone = 1 };

	fake_take_start(x);
	fake_started(x, -1);
	(void)!write(x->start.fds[2], "late", 4);
	fake_send(x, EXECD_MSG_EXITED, &s, sizeof(s), -1);
	/* The output's end comes behind that message, and death behind both. */
	(void)usleep(50000);
	packet_done(&x->start);
	(void)usleep(50000);
}

static void run_not_alone(struct fake *x)
{
	fake_take_start(x);
	fake_started(x, -1);
	packet_done(&x->start);
	(void)usleep(50000);
	fake_exited(x, 0);
}

START_TEST(says_when_nothing_runs_any_more)
{
	static const struct {
		void (*run)(struct fake *x);
		const char *said;
	} rows[] = {
		{ run_alone, "eq(late)" },
		{ run_not_alone, "e" },
	};
	AUTO(fixture) struct fixture f = { .fake_sock = -1 };
	struct error e = ERROR_INIT;
	struct said said = { .f = &f };
	int status = -1;

	fixture_init(&f);
	f.opts.on_exited = said_exited;
	f.opts.on_quiet = said_quiet;
	f.opts.ctx = &said;
	ck_assert_int_eq(keep_with(&f, rows[_i].run, 0, &status, &e), 0);
	ck_assert_str_eq(said.text, rows[_i].said);
}
END_TEST

static void run_stdin_is_null(struct fake *x)
{
	struct stat st;
	struct stat null;
	char c = 0;

	fake_take_start(x);
	fake_started(x, -1);
	bool same = fstat(x->start.fds[1], &st) == 0 && stat("/dev/null", &null) == 0 &&
		    st.st_rdev == null.st_rdev && read(x->start.fds[1], &c, 1) == 0 &&
		    write(x->start.fds[1], "x", 1) < 0;

	fake_exited(x, same ? 0 : 1);
}

START_TEST(has_no_input_unless_asked)
{
	AUTO(fixture) struct fixture f = { .fake_sock = -1 };
	struct error e = ERROR_INIT;
	int status = -1;

	fixture_init(&f);
	ck_assert_int_eq(write(f.caller_in, "secret", 6), 6);
	ck_assert_int_eq(keep_with(&f, run_stdin_is_null, 0, &status, &e), 0);
	ck_assert_int_eq(status, 0);
}
END_TEST

static void run_cat(struct fake *x)
{
	char text[64];
	ssize_t n = 0;

	fake_take_start(x);
	fake_started(x, -1);
	while ((n = read(x->start.fds[1], text, sizeof(text))) > 0) {
		(void)!write(x->start.fds[2], text, (size_t)n);
	}
	fake_exited(x, 0);
}

START_TEST(forwards_input_and_its_end)
{
	AUTO(fixture) struct fixture f = { .fake_sock = -1 };
	struct error e = ERROR_INIT;
	int status = -1;

	fixture_init(&f);
	f.opts.interactive = true;
	ck_assert_int_eq(write(f.caller_in, "typed", 5), 5);
	fd_close(&f.caller_in);
	ck_assert_int_eq(keep_with(&f, run_cat, 0, &status, &e), 0);
	ck_assert_int_eq(status, 0);
	ck_assert_str_eq(text_of(f.caller_out), "typed");
}
END_TEST

static void run_failed(struct fake *x)
{
	struct execd_failed failed = { .tag = 1 };

	fake_take_start(x);
	(void)error_set(&failed.error, ERRC_NO_COMMAND, "exec: \"x\": not found");
	fake_send(x, EXECD_MSG_FAILED, &failed, sizeof(failed), -1);
	pause();
}

START_TEST(reports_a_command_that_cannot_start)
{
	AUTO(fixture) struct fixture f = { .fake_sock = -1 };
	struct error e = ERROR_INIT;
	int status = -1;

	fixture_init(&f);
	ck_assert_int_eq(keep_with(&f, run_failed, 0, &status, &e), -1);
	ck_assert_int_eq(e.code, ERRC_NO_COMMAND);
	ck_assert_str_eq(e.text, "exec: \"x\": not found");
	ck_assert_int_eq(status, -1);
}
END_TEST

static void run_nothing(struct fake *x)
{
	fake_take_start(x);
}

START_TEST(an_early_end_is_an_error)
{
	AUTO(fixture) struct fixture f = { .fake_sock = -1 };
	struct error e = ERROR_INIT;
	int status = -1;

	fixture_init(&f);
	ck_assert_int_eq(keep_with(&f, run_nothing, 0, &status, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INTERNAL);
}
END_TEST

static void run_killed(struct fake *x)
{
	fake_take_start(x);
	fake_started(x, -1);
	kill(getpid(), SIGKILL);
}

START_TEST(a_killed_pid_1_is_an_error)
{
	AUTO(fixture) struct fixture f = { .fake_sock = -1 };
	struct error e = ERROR_INIT;
	int status = -1;

	fixture_init(&f);
	ck_assert_int_eq(keep_with(&f, run_killed, 0, &status, &e), -1);
	ck_assert_int_eq(e.code, ERRC_UNAVAILABLE);
}
END_TEST

static void run_confused(struct fake *x)
{
	fake_take_start(x);
	fake_exited(x, 0);
	pause();
}

static void run_status(struct fake *x)
{
	fake_take_start(x);
	fake_started(x, -1);
	fake_exited(x, 256);
	pause();
}

START_TEST(refuses_what_is_not_its_turn)
{
	static void (*const runs[])(struct fake *) = { run_confused, run_status };
	AUTO(fixture) struct fixture f = { .fake_sock = -1 };
	struct error e = ERROR_INIT;
	int status = -1;

	fixture_init(&f);
	ck_assert_int_eq(keep_with(&f, runs[_i], 0, &status, &e), -1);
	ck_assert_int_eq(e.code, ERRC_SYSTEM);
}
END_TEST

/* Ends with the number of the first signal for the main process. */
static void run_signal(struct fake *x)
{
	uint32_t tag = 0;

	fake_take_start(x);
	fake_started(x, -1);
	int signo = fake_signal(x, &tag);

	fake_exited(x, tag == 1 ? signo : 255);
}

static const struct {
	int sent;
	int want;
} signal_cases[] = {
	{ SIGINT, SIGINT },
	{ SIGTERM, SIGTERM },
	{ SIGQUIT, SIGQUIT },
	{ SIGUSR1, SIGUSR1 },
	{ SIGUSR2, SIGUSR2 },
	{ SIGALRM, SIGALRM },
	{ SIGABRT, SIGABRT },
	{ 40, 40 },
	/* Stop begins with the image's own signal. */
	{ SIGHUP, SIGQUIT },
};

START_TEST(forwards_signals)
{
	AUTO(fixture) struct fixture f = { .fake_sock = -1 };
	struct error e = ERROR_INIT;
	int status = -1;

	fixture_init(&f);
	ck_assert_int_eq(keep_with(&f, run_signal, signal_cases[_i].sent, &status, &e), 0);
	ck_assert_int_eq(status, signal_cases[_i].want);
}
END_TEST

/* Ends with the numbers of the first two. */
static void run_two_signals(struct fake *x)
{
	uint32_t tag = 0;

	fake_take_start(x);
	fake_started(x, open("/dev/ptmx", O_RDWR | O_NOCTTY));
	int first = fake_signal(x, &tag);

	fake_exited(x, first * 10 + fake_signal(x, &tag));
}

START_TEST(a_terminal_that_hangs_up_does_so_inside)
{
	AUTO(fixture) struct fixture f = { .fake_sock = -1 };
	struct error e = ERROR_INIT;
	int status = -1;

	fixture_init(&f);
	f.opts.tty = true;
	ck_assert_int_eq(keep_with(&f, run_two_signals, SIGHUP, &status, &e), 0);
	ck_assert_int_eq(status, SIGHUP * 10 + SIGQUIT);
}
END_TEST

/* Ends with 0 if no signal came within a while. */
static void run_quiet(struct fake *x)
{
	struct pollfd p = { .fd = x->sock, .events = POLLIN };

	fake_take_start(x);
	fake_started(x, -1);
	fake_exited(x, poll(&p, 1, 100));
}

static const int own_signals[] = { SIGWINCH, SIGCHLD, SIGPIPE, SIGURG, SIGCONT };

START_TEST(keeps_its_own_signals)
{
	AUTO(fixture) struct fixture f = { .fake_sock = -1 };
	struct error e = ERROR_INIT;
	int status = -1;

	fixture_init(&f);
	ck_assert_int_eq(keep_with(&f, run_quiet, own_signals[_i], &status, &e), 0);
	ck_assert_int_eq(status, 0);
}
END_TEST

static const int nohup_signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP };

START_TEST(leaves_ignored_signals_ignored)
{
	const struct sigaction sa = { .sa_handler = SIG_IGN };
	AUTO(fixture) struct fixture f = { .fake_sock = -1 };
	struct error e = ERROR_INIT;
	int status = -1;

	fixture_init(&f);
	ck_assert_int_eq(sigaction(nohup_signals[_i], &sa, NULL), 0);
	ck_assert_int_eq(keep_with(&f, run_quiet, nohup_signals[_i], &status, &e), 0);
	ck_assert_int_eq(status, 0);
}
END_TEST

/* Is stopped with all processes, then lets the test go on. */
static void run_stopped(struct fake *x)
{
	struct pollfd p = { .fd = x->sock, .events = POLLIN };
	uint32_t tag = 9;

	fake_take_start(x);
	fake_started(x, -1);
	if (fake_signal(x, &tag) != SIGSTOP || tag != 0) {
		fake_exited(x, 1);
		return;
	}
	do {
		kill(getppid(), SIGCONT);
	} while (poll(&p, 1, 20) == 0);
	fake_exited(x, fake_signal(x, &tag) == SIGCONT && tag == 0 ? 0 : 2);
}

START_TEST(a_stop_stops_all)
{
	AUTO(fixture) struct fixture f = { .fake_sock = -1 };
	struct error e = ERROR_INIT;
	int status = -1;

	fixture_init(&f);
	ck_assert_int_eq(keep_with(&f, run_stopped, SIGTSTP, &status, &e), 0);
	ck_assert_int_eq(status, 0);
}
END_TEST

/* Writes on a terminal of its own. */
static void run_terminal(struct fake *x)
{
	int master_fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	int slave_fd = -1;

	fake_take_start(x);
	if (x->start.fds_n != 1 || grantpt(master_fd) < 0 || unlockpt(master_fd) < 0) {
		_exit(96);
	}
	slave_fd = open(ptsname(master_fd), O_RDWR | O_NOCTTY | O_CLOEXEC);
	fake_started(x, master_fd);
	close(master_fd);
	(void)!write(slave_fd, "line\n", 5);
	fake_exited(x, 3);
}

START_TEST(reads_a_terminal_to_its_end)
{
	AUTO(fixture) struct fixture f = { .fake_sock = -1 };
	struct error e = ERROR_INIT;
	int status = -1;

	fixture_init(&f);
	f.opts.tty = true;
	ck_assert_int_eq(keep_with(&f, run_terminal, 0, &status, &e), 0);
	ck_assert_int_eq(status, 3);
	ck_assert_str_eq(text_of(f.caller_out), "line\r\n");
}
END_TEST

START_TEST(lost_output_is_an_error)
{
	AUTO(fixture) struct fixture f = { .fake_sock = -1 };
	struct error e = ERROR_INIT;
	int status = -1;

	fixture_init(&f);
	f.opts.out_fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	ck_assert_int_ge(f.opts.out_fd, 0);
	ck_assert_int_eq(keep_with(&f, run_output, 0, &status, &e), -1);
	ck_assert_int_eq(e.sysno, ENOSPC);
	ck_assert_str_eq(e.text, "standard output");
}
END_TEST

/* More than the caller's pipe takes, then an end by signal. */
static void run_stalled(struct fake *x)
{
	static const char bytes[60000];
	uint32_t tag = 0;

	fake_take_start(x);
	fake_started(x, -1);
	(void)!write(x->start.fds[2], bytes, sizeof(bytes));
	fake_exited(x, 128 + fake_signal(x, &tag));
}

START_TEST(a_signal_ends_it_though_the_reader_has_stalled)
{
	AUTO(fixture) struct fixture f = { .fake_sock = -1 };
	struct error e = ERROR_INIT;
	int status = -1;

	fixture_init(&f);
	ck_assert_int_ge(fcntl(f.opts.out_fd, F_SETPIPE_SZ, 4096), 0);
	int64_t began_ms = clock_boot_ms();

	ck_assert_int_eq(keep_with(&f, run_stalled, SIGTERM, &status, &e), 0);
	ck_assert_int_eq(status, 128 + SIGTERM);
	/* What was promised: a moment of grace, and no more. */
	ck_assert_int_ge(clock_boot_ms() - began_ms, 900);
	ck_assert_int_lt(clock_boot_ms() - began_ms, 10000);
}
END_TEST

START_TEST(gives_the_signals_back)
{
	AUTO(fixture) struct fixture f = { .fake_sock = -1 };
	struct error e = ERROR_INIT;
	sigset_t before;
	sigset_t after;

	fixture_init(&f);
	ck_assert_int_eq(sigprocmask(SIG_BLOCK, NULL, &before), 0);
	struct keeper *k = keeper_new(&f.opts, &e);

	ck_assert_ptr_nonnull(k);
	ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
	keeper_free(k);
	ck_assert_int_eq(sigprocmask(SIG_BLOCK, NULL, &after), 0);
	for (int signo = 1; signo < NSIG; signo++) {
		ck_assert_int_eq(sigismember(&before, signo), sigismember(&after, signo));
	}
}
END_TEST

START_TEST(holds_early_signals_for_the_sandbox)
{
	AUTO(fixture) struct fixture f = { .fake_sock = -1 };
	struct error e = ERROR_INIT;
	sigset_t before;
	int status = -1;

	fixture_init(&f);
	ck_assert_int_eq(keeper_hold_signals(&before), 0);
	ck_assert_int_eq(sigismember(&before, SIGTERM), 0);
	ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
	ck_assert_int_eq(keep_with(&f, run_signal, 0, &status, &e), 0);
	ck_assert_int_eq(status, SIGTERM);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("keeper");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, gives_status_and_output);
	tcase_add_loop_test(tc, says_when_nothing_runs_any_more, 0, 2);
	tcase_add_test(tc, has_no_input_unless_asked);
	tcase_add_test(tc, forwards_input_and_its_end);
	tcase_add_test(tc, reports_a_command_that_cannot_start);
	tcase_add_test(tc, an_early_end_is_an_error);
	tcase_add_test(tc, a_killed_pid_1_is_an_error);
	tcase_add_loop_test(tc, refuses_what_is_not_its_turn, 0, 2);
	tcase_add_loop_test(tc, forwards_signals, 0, ARRAY_SIZE(signal_cases));
	tcase_add_test(tc, a_terminal_that_hangs_up_does_so_inside);
	tcase_add_loop_test(tc, keeps_its_own_signals, 0, ARRAY_SIZE(own_signals));
	tcase_add_loop_test(tc, leaves_ignored_signals_ignored, 0, ARRAY_SIZE(nohup_signals));
	tcase_add_test(tc, a_stop_stops_all);
	tcase_add_test(tc, reads_a_terminal_to_its_end);
	tcase_add_test(tc, lost_output_is_an_error);
	tcase_add_test(tc, a_signal_ends_it_though_the_reader_has_stalled);
	tcase_add_test(tc, gives_the_signals_back);
	tcase_add_test(tc, holds_early_signals_for_the_sandbox);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
