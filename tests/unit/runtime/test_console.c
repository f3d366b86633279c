/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <osbx/clock.h>
#include <osbx/console.h>
#include <osbx/fd.h>
#include <osbx/mem.h>

#include "../unit.h"

/* A pty: its master in our hands, its slave as a descriptor of somebody. */
struct pty {
	int master;
	int slave;
};

static struct pty pty_make(void)
{
	struct pty p = { .master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC) };

	ck_assert_int_ge(p.master, 0);
	ck_assert_int_eq(grantpt(p.master), 0);
	ck_assert_int_eq(unlockpt(p.master), 0);
	p.slave = open(ptsname(p.master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	ck_assert_int_ge(p.slave, 0);
	return p;
}

/* A reader that went away is an errno, as in the keeper. */
static void sigpipe_set(sighandler_t handler)
{
	const struct sigaction sa = { .sa_handler = handler };

	ck_assert_int_eq(sigaction(SIGPIPE, &sa, NULL), 0);
}

struct fixture {
	struct loop *loop;
	struct console *console;
	struct console_opts opts;
	struct loop_source timer;
	int child[3];
	int in_far; /* the far ends of the caller's descriptors */
	int out_far;
	int err_far;
	bool done;
};

static void on_done(void *ctx)
{
	struct fixture *f = ctx;

	ck_assert(!f->done);
	f->done = true;
	loop_stop(f->loop, 0);
}

static void fixture_done(struct fixture *f)
{
	console_free(f->console);
	loop_free(f->loop);
}
AUTO_DEFINE(fixture, struct fixture, fixture_done);

static void fixture_init(struct fixture *f)
{
	int in[2];
	int out[2];
	int err[2];

	sigpipe_set(SIG_IGN);
	ck_assert_int_eq(fd_pipe(in, 0), 0);
	ck_assert_int_eq(fd_pipe(out, 0), 0);
	ck_assert_int_eq(fd_pipe(err, 0), 0);
	*f = (struct fixture){ .in_far = in[1], .out_far = out[0], .err_far = err[0] };
	f->loop = loop_new();
	ck_assert_ptr_nonnull(f->loop);
	f->opts = (struct console_opts){
		.stdin_open = true,
		.in_fd = in[0],
		.out_fd = out[1],
		.err_fd = err[1],
		.on_done = on_done,
		.ctx = f,
	};
}

static void console_make(struct fixture *f)
{
	struct error e = ERROR_INIT;

	f->console = console_new(f->loop, &f->opts, f->child, &e);
	ck_assert_ptr_nonnull(f->console);
}

static void timer_on_end(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)src;
	(void)events;
	loop_stop(loop, 1);
}

static void run_for(struct fixture *f, int ms)
{
	loop_timer(f->loop, &f->timer, clock_boot_ms() + ms, timer_on_end);
	ck_assert_int_ge(loop_run(f->loop), 0);
	loop_remove(f->loop, &f->timer);
}

static const char *text_of(int fd)
{
	static char text[4096];
	ssize_t n = 0;

	ck_assert_int_eq(fd_set_nonblock(fd, true), 0);
	n = read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	return text;
}

/* The workload's own copies of its descriptors. */
static void child_take(struct fixture *f, int mine[3])
{
	struct error e = ERROR_INIT;

	for (size_t i = 0; i < 3; i++) {
		mine[i] = f->child[i] >= 0 ? fd_dup(f->child[i], 0) : -1;
	}
	ck_assert_int_eq(console_child_started(f->console, -1, &e), 0);
}

START_TEST(connects_three_pipes)
{
	AUTO(fixture) struct fixture f = { .loop = NULL };
	int mine[3];

	fixture_init(&f);
	console_make(&f);
	child_take(&f, mine);
	ck_assert_int_eq(write(f.in_far, "in", 2), 2);
	ck_assert_int_eq(write(mine[1], "out", 3), 3);
	ck_assert_int_eq(write(mine[2], "err", 3), 3);
	run_for(&f, 50);
	ck_assert_str_eq(text_of(mine[0]), "in");
	ck_assert_str_eq(text_of(f.out_far), "out");
	ck_assert_str_eq(text_of(f.err_far), "err");
	ck_assert(!f.done);
	close(mine[1]);
	run_for(&f, 20);
	ck_assert(!f.done);
	close(mine[2]);
	run_for(&f, 10000);
	ck_assert(f.done);
}
END_TEST

START_TEST(the_end_of_input_arrives)
{
	AUTO(fixture) struct fixture f = { .loop = NULL };
	char c = 0;
	int mine[3];

	fixture_init(&f);
	console_make(&f);
	child_take(&f, mine);
	fd_close(&f.in_far);
	run_for(&f, 50);
	ck_assert_int_eq(read(mine[0], &c, 1), 0);
}
END_TEST

START_TEST(without_input_there_is_no_pipe)
{
	AUTO(fixture) struct fixture f = { .loop = NULL };
	int mine[3];

	fixture_init(&f);
	f.opts.stdin_open = false;
	console_make(&f);
	ck_assert_int_eq(f.child[0], -1);
	ck_assert_int_ge(f.child[1], 0);
	child_take(&f, mine);
	ck_assert_int_eq(write(f.in_far, "secret", 6), 6);
	run_for(&f, 20);
	/* Nobody has touched the caller's input. */
	ck_assert_str_eq(text_of(f.opts.in_fd), "secret");
}
END_TEST

START_TEST(descriptors_do_not_leak)
{
	AUTO(fixture) struct fixture f = { .loop = NULL };

	fixture_init(&f);
	console_make(&f);
	for (size_t i = 0; i < 3; i++) {
		ck_assert_int_ne(fcntl(f.child[i], F_GETFD) & FD_CLOEXEC, 0);
		/* What a workload gets blocks, as programs expect. */
		ck_assert_int_eq(fcntl(f.child[i], F_GETFL) & O_NONBLOCK, 0);
		ck_assert_int_ne(f.child[i], f.opts.in_fd);
	}
	console_free(TAKE_PTR(f.console));
	for (size_t i = 0; i < 3; i++) {
		ck_assert_int_eq(fcntl(f.child[i], F_GETFD), -1);
	}
}
END_TEST

START_TEST(an_end_does_not_wait_for_others)
{
	AUTO(fixture) struct fixture f = { .loop = NULL };
	int mine[3];

	fixture_init(&f);
	console_make(&f);
	child_take(&f, mine);
	ck_assert_int_eq(write(mine[1], "last", 4), 4);
	/* mine[1] and mine[2] stay open. */
	console_child_ended(f.console);
	ck_assert(f.done);
	ck_assert_str_eq(text_of(f.out_far), "last");
}
END_TEST

START_TEST(an_end_waits_for_a_slow_reader)
{
	AUTO(fixture) struct fixture f = { .loop = NULL };
	autofree char *bytes = mem_array(60000, 1);
	int mine[3];
	int got = 0;

	fixture_init(&f);
	ck_assert_int_ge(fcntl(f.opts.out_fd, F_SETPIPE_SZ, 4096), 0);
	console_make(&f);
	child_take(&f, mine);
	ck_assert_int_eq(write(mine[1], bytes, 60000), 60000);
	console_child_ended(f.console);
	ck_assert(!f.done);
	ck_assert_int_eq(fd_set_nonblock(f.out_far, true), 0);
	for (int64_t end = clock_boot_ms() + 10000; !f.done && clock_boot_ms() < end;) {
		ssize_t n = read(f.out_far, bytes, 60000);

		got += n > 0 ? (int)n : 0;
		run_for(&f, 1);
	}
	ck_assert(f.done);
	got += (int)strlen(text_of(f.out_far)); /* zero bytes: nothing more to count */
	ck_assert_int_ge(got, 60000 - 4096);
}
END_TEST

START_TEST(what_nobody_reads_can_be_given_up)
{
	AUTO(fixture) struct fixture f = { .loop = NULL };
	struct error e = ERROR_INIT;
	autofree char *bytes = mem_array(60000, 1);
	int mine[3];

	fixture_init(&f);
	ck_assert_int_ge(fcntl(f.opts.out_fd, F_SETPIPE_SZ, 4096), 0);
	console_make(&f);
	child_take(&f, mine);
	ck_assert_int_eq(write(mine[1], bytes, 60000), 60000);
	console_child_ended(f.console);
	ck_assert(!f.done);
	console_drop(f.console);
	ck_assert(f.done);
	ck_assert_int_eq(console_check(f.console, &e), 0);
}
END_TEST

START_TEST(names_the_stream_that_failed)
{
	AUTO(fixture) struct fixture f = { .loop = NULL };
	struct error e = ERROR_INIT;
	int mine[3];

	fixture_init(&f);
	f.opts.err_fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	ck_assert_int_ge(f.opts.err_fd, 0);
	console_make(&f);
	child_take(&f, mine);
	ck_assert_int_eq(console_check(f.console, &e), 0);
	ck_assert_int_eq(write(mine[2], "x", 1), 1);
	run_for(&f, 50);
	ck_assert_int_eq(console_check(f.console, &e), -1);
	ck_assert_str_eq(e.text, "standard error");
	ck_assert_int_eq(e.sysno, ENOSPC);
}
END_TEST

/* The caller at a terminal of its own; the guest on another. */
static struct pty terminal_make(struct fixture *f)
{
	struct pty caller = pty_make();

	f->opts.in_fd = caller.slave;
	f->opts.out_fd = caller.slave;
	f->opts.tty = true;
	return caller;
}

static bool is_raw(int fd)
{
	struct termios t;

	ck_assert_int_eq(tcgetattr(fd, &t), 0);
	return !(t.c_lflag & (ICANON | ECHO | ISIG));
}

START_TEST(joins_two_terminals)
{
	AUTO(fixture) struct fixture f = { .loop = NULL };
	const struct winsize size = { .ws_row = 33, .ws_col = 99 };
	const struct winsize other = { .ws_row = 44, .ws_col = 111 };
	struct error e = ERROR_INIT;
	struct winsize seen = { 0 };
	struct pty caller;
	struct pty guest = pty_make();

	fixture_init(&f);
	caller = terminal_make(&f);
	ck_assert_int_eq(ioctl(caller.slave, TIOCSWINSZ, &size), 0);
	console_make(&f);
	ck_assert_int_eq(f.child[1], -1);
	ck_assert_int_eq(console_child_started(f.console, guest.master, &e), 0);
	ck_assert(is_raw(caller.slave));
	ck_assert_int_eq(ioctl(guest.slave, TIOCGWINSZ, &seen), 0);
	ck_assert_int_eq(seen.ws_row, 33);
	ck_assert_int_eq(ioctl(caller.slave, TIOCSWINSZ, &other), 0);
	console_resize(f.console);
	ck_assert_int_eq(ioctl(guest.slave, TIOCGWINSZ, &seen), 0);
	ck_assert_int_eq(seen.ws_col, 111);
	/* Typed: it goes to the guest, and its echo comes from there. */
	ck_assert_int_eq(write(caller.master, "ls\r", 3), 3);
	run_for(&f, 50);
	ck_assert_str_eq(text_of(guest.slave), "ls\n");
	ck_assert_str_eq(text_of(caller.master), "ls\r\n");
	ck_assert_int_eq(write(guest.slave, "file\n", 5), 5);
	close(guest.slave);
	console_child_ended(f.console);
	if (!f.done) {
		run_for(&f, 10000);
	}
	ck_assert(f.done);
	ck_assert_str_eq(text_of(caller.master), "file\r\n");
	console_free(TAKE_PTR(f.console));
	ck_assert(!is_raw(caller.slave));
	ck_assert_int_eq(fcntl(caller.slave, F_GETFL) & O_NONBLOCK, 0);
}
END_TEST

START_TEST(leaves_and_enters_raw_mode)
{
	AUTO(fixture) struct fixture f = { .loop = NULL };
	struct error e = ERROR_INIT;
	struct pty guest = pty_make();
	struct pty caller;

	fixture_init(&f);
	caller = terminal_make(&f);
	console_make(&f);
	ck_assert(!is_raw(caller.slave));
	ck_assert_int_eq(console_child_started(f.console, guest.master, &e), 0);
	console_suspend(f.console);
	ck_assert(!is_raw(caller.slave));
	console_resume(f.console);
	ck_assert(is_raw(caller.slave));
	console_resume(f.console);
	ck_assert(is_raw(caller.slave));
	console_free(TAKE_PTR(f.console));
	ck_assert(!is_raw(caller.slave));
}
END_TEST

START_TEST(a_terminal_that_only_shows_stays_as_it_is)
{
	AUTO(fixture) struct fixture f = { .loop = NULL };
	struct error e = ERROR_INIT;
	struct pty guest = pty_make();
	struct pty caller;

	fixture_init(&f);
	caller = terminal_make(&f);
	f.opts.stdin_open = false;
	console_make(&f);
	ck_assert_int_eq(console_child_started(f.console, guest.master, &e), 0);
	ck_assert(!is_raw(caller.slave));
	ck_assert_int_eq(write(guest.slave, "x\n", 2), 2);
	run_for(&f, 50);
	ck_assert_str_eq(text_of(caller.master), "x\r\r\n");
}
END_TEST

START_TEST(the_end_of_a_piped_input_is_a_character)
{
	AUTO(fixture) struct fixture f = { .loop = NULL };
	struct error e = ERROR_INIT;
	struct pty guest = pty_make();
	char text[16] = "";

	fixture_init(&f);
	f.opts.tty = true;
	console_make(&f);
	ck_assert_int_eq(console_child_started(f.console, guest.master, &e), 0);
	ck_assert_int_eq(write(f.in_far, "line\n", 5), 5);
	fd_close(&f.in_far);
	run_for(&f, 50);
	ck_assert_int_eq(read(guest.slave, text, sizeof(text)), 5);
	ck_assert_int_eq(read(guest.slave, text, sizeof(text)), 0);
}
END_TEST

START_TEST(refuses_what_is_no_terminal)
{
	AUTO(fixture) struct fixture f = { .loop = NULL };
	struct error e = ERROR_INIT;
	struct pty guest = pty_make();
	const int wrong[] = { open("/dev/null", O_RDWR | O_CLOEXEC), guest.slave, -1 };

	fixture_init(&f);
	f.opts.tty = true;
	console_make(&f);
	ck_assert_int_eq(console_child_started(f.console, wrong[_i], &e), -1);
	ck_assert_int_eq(e.code, ERRC_SYSTEM);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("console");
	TCase *tc = tcase_create("all");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, connects_three_pipes);
	tcase_add_test(tc, the_end_of_input_arrives);
	tcase_add_test(tc, without_input_there_is_no_pipe);
	tcase_add_test(tc, descriptors_do_not_leak);
	tcase_add_test(tc, an_end_does_not_wait_for_others);
	tcase_add_test(tc, an_end_waits_for_a_slow_reader);
	tcase_add_test(tc, what_nobody_reads_can_be_given_up);
	tcase_add_test(tc, names_the_stream_that_failed);
	tcase_add_test(tc, joins_two_terminals);
	tcase_add_test(tc, leaves_and_enters_raw_mode);
	tcase_add_test(tc, a_terminal_that_only_shows_stays_as_it_is);
	tcase_add_test(tc, the_end_of_a_piped_input_is_a_character);
	tcase_add_loop_test(tc, refuses_what_is_no_terminal, 0, 3);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
