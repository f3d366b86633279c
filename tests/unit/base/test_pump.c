/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/pump.h>

#include "../unit.h"

#define LIMIT_MS 60000

/* near[i] is the test's end of side i. */
struct world {
	struct loop *loop;
	int near[2];
	int side[2];
	struct loop_source step;
	int ended; /* -1: not yet; else errnum */
};

static void on_end(void *ctx, int errnum)
{
	struct world *w = ctx;

	w->ended = errnum;
	loop_stop(w->loop, 0);
}

static void on_step(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)src;
	(void)events;
	loop_stop(loop, 0);
}

/* Let the pump work for a moment. */
static void turn(struct world *w)
{
	loop_timer(w->loop, &w->step, clock_boot_ms() + 1, on_step);
	ck_assert_int_eq(loop_run(w->loop), 0);
	loop_remove(w->loop, &w->step);
}

static void world_open(struct world *w)
{
	*w = (struct world){
		.loop = loop_new(), .near = { -1, -1 }, .side = { -1, -1 }, .ended = -1
	};
	ck_assert_ptr_nonnull(w->loop);
	for (int i = 0; i < 2; i++) {
		int pair[2];

		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
		w->near[i] = pair[0];
		w->side[i] = pair[1];
	}
}

static void world_close(struct world *w)
{
	fd_close(&w->near[0]);
	fd_close(&w->near[1]);
	loop_free(w->loop);
}

static struct pump *pump_with(struct world *w, struct pump_opts opts)
{
	opts.a_fd = w->side[0];
	opts.b_fd = w->side[1];
	opts.on_end = on_end;
	opts.ctx = w;
	struct pump *p = pump_new(w->loop, &opts);

	ck_assert_ptr_nonnull(p);
	return p;
}

static struct pump *pump_of(struct world *w)
{
	return pump_with(w, (struct pump_opts){ .connected = false });
}

/* As much as there is room for on the way from a to b. */
static size_t fill(struct world *w)
{
	static const char chunk[4096];
	size_t sent = 0;

	for (int idle = 0; idle < 50;) {
		ssize_t n = send(w->near[0], chunk, sizeof(chunk), MSG_DONTWAIT | MSG_NOSIGNAL);

		sent += n > 0 ? (size_t)n : 0;
		idle = n > 0 ? 0 : idle + 1;
		turn(w);
		ck_assert_uint_lt(sent, 64U << 20);
	}
	return sent;
}

static void put(int fd, const char *text)
{
	ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* What is there after a while, "" for the end. */
static void expect(struct world *w, int fd, const char *text)
{
	char got[64];
	ssize_t n = -1;

	for (int64_t end = clock_boot_ms() + LIMIT_MS; n < 0 && clock_boot_ms() < end;) {
		turn(w);
		n = recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT);
	}
	ck_assert_int_ge(n, 0);
	got[n] = '\0';
	ck_assert_str_eq(got, text);
}

static void expect_end(struct world *w, int errnum)
{
	for (int64_t end = clock_boot_ms() + LIMIT_MS; w->ended < 0 && clock_boot_ms() < end;) {
		turn(w);
	}
	ck_assert_int_eq(w->ended, errnum);
}

START_TEST(both_ways_and_half_closed)
{
	struct world w;

	world_open(&w);
	const struct pump *p = pump_of(&w);

	put(w.near[0], "question");
	expect(&w, w.near[1], "question");
	ck_assert_int_eq(shutdown(w.near[0], SHUT_WR), 0);
	expect(&w, w.near[1], "");
	put(w.near[1], "answer");
	expect(&w, w.near[0], "answer");
	ck_assert_uint_eq(pump_sent(p), 8);
	ck_assert_uint_eq(pump_received(p), 6);
	ck_assert_int_eq(w.ended, -1);
	ck_assert_int_eq(shutdown(w.near[1], SHUT_WR), 0);
	expect(&w, w.near[0], "");
	expect_end(&w, 0);
	world_close(&w);
}
END_TEST

START_TEST(first_bytes_both_ways)
{
	struct world w;

	world_open(&w);
	struct pump *p = pump_with(&w, (struct pump_opts){ .connected = true,
						       .a_first = span_of("for b"),
						       .b_first = span_of("for a") });

	expect(&w, w.near[0], "for a");
	expect(&w, w.near[1], "for b");
	pump_cut(p);
	world_close(&w);
}
END_TEST

/* Closed both ways behind more than the other side has room for: all of it arrives, then the end.
 */
START_TEST(closed_behind_much)
{
	static char piece[65536];
	size_t got = 0;
	struct world w;

	world_open(&w);
	(void)pump_of(&w);
	size_t sent = fill(&w);

	fd_close(&w.near[0]);
	turn(&w);
	turn(&w);
	ck_assert_int_eq(w.ended, -1);
	for (int64_t end = clock_boot_ms() + LIMIT_MS; got < sent && clock_boot_ms() < end;) {
		ssize_t n = recv(w.near[1], piece, sizeof(piece), MSG_DONTWAIT);

		got += n > 0 ? (size_t)n : 0;
		if (n < 0) {
			turn(&w);
		}
	}
	ck_assert_uint_eq(got, sent);
	expect_end(&w, 0);
	expect(&w, w.near[1], "");
	world_close(&w);
}
END_TEST

START_TEST(first_bytes)
{
	struct world w;

	world_open(&w);
	put(w.near[0], "after");
	struct pump *p = pump_with(&w, (struct pump_opts){ .a_first = span_of("before ") });
	char got[sizeof("before after")] = "";

	for (size_t n = 0; n < strlen("before after");) {
		turn(&w);
		ssize_t more = recv(w.near[1], got + n, sizeof(got) - 1 - n, MSG_DONTWAIT);

		n += more > 0 ? (size_t)more : 0;
	}
	ck_assert_str_eq(got, "before after");
	pump_cut(p);
	ck_assert_int_eq(w.ended, -1);
	expect(&w, w.near[0], "");
	world_close(&w);
}
END_TEST

/* A reader that does not read stops the writer; then not a byte is missing. */
START_TEST(back_pressure)
{
	static char chunk[4096];
	struct world w;
	size_t got = 0;

	world_open(&w);
	(void)pump_of(&w);
	size_t sent = fill(&w);

	ck_assert_int_eq(shutdown(w.near[0], SHUT_WR), 0);
	for (ssize_t n = 1; n != 0;) {
		n = recv(w.near[1], chunk, sizeof(chunk), MSG_DONTWAIT);
		got += n > 0 ? (size_t)n : 0;
		turn(&w);
	}
	ck_assert_uint_eq(got, sent);
	fd_close(&w.near[1]);
	expect_end(&w, 0);
	world_close(&w);
}
END_TEST

static int tcp_listen(struct sockaddr_in *addr)
{
	socklen_t n = sizeof(*addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*addr = (struct sockaddr_in){ .sin_family = AF_INET,
		.sin_addr = { htonl(INADDR_LOOPBACK) } };
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)addr, sizeof(*addr)), 0);
	ck_assert_int_eq(listen(fd, 8), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)addr, &n), 0);
	return fd;
}

static int tcp_dial(const struct sockaddr_in *addr, int flags)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert(connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0 ||
			errno == EINPROGRESS);
	return fd;
}

/* Both sides over TCP, the second one still connecting. */
static void world_tcp(struct world *w, bool refused)
{
	struct sockaddr_in addr;
	int listener = tcp_listen(&addr);

	world_open(w);
	for (int i = 0; i < 2; i++) {
		fd_close(&w->near[i]);
		fd_close(&w->side[i]);
	}
	w->near[0] = tcp_dial(&addr, 0);
	w->side[0] = accept(listener, NULL, NULL);
	ck_assert_int_ge(w->side[0], 0);
	if (refused) {
		fd_close(&listener);
	}
	w->side[1] = tcp_dial(&addr, SOCK_NONBLOCK);
	w->near[1] = refused ? -1 : accept(listener, NULL, NULL);
	fd_close(&listener);
}

/* What went wrong on fd, as its owner sees it. */
static int error_of(int fd)
{
	char byte;

	return recv(fd, &byte, 1, 0) < 0 ? errno : 0;
}

START_TEST(a_refused_connection_is_a_reset)
{
	struct world w;

	world_tcp(&w, true);
	const struct pump_opts opts = {
		.a_fd = w.side[0], .b_fd = w.side[1], .on_end = on_end, .ctx = &w
	};

	put(w.near[0], "hello");
	/* On loopback it may have failed already. */
	if (pump_new(w.loop, &opts)) {
		expect_end(&w, ECONNREFUSED);
	} else {
		ck_assert_int_eq(errno, ECONNREFUSED);
	}
	ck_assert_int_eq(error_of(w.near[0]), ECONNRESET);
	world_close(&w);
}
END_TEST

START_TEST(a_reset_is_passed_on)
{
	const struct linger hard = { .l_onoff = 1 };
	struct world w;

	world_tcp(&w, false);
	(void)pump_of(&w);
	put(w.near[0], "x");
	expect(&w, w.near[1], "x");
	ck_assert_int_eq(setsockopt(w.near[1], SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)), 0);
	fd_close(&w.near[1]);
	expect_end(&w, ECONNRESET);
	ck_assert_int_eq(error_of(w.near[0]), ECONNRESET);
	world_close(&w);
}
END_TEST

START_TEST(a_cut_resets_both)
{
	struct world w;

	world_tcp(&w, false);
	struct pump *p = pump_of(&w);

	put(w.near[1], "x");
	expect(&w, w.near[0], "x");
	pump_cut(p);
	ck_assert_int_eq(error_of(w.near[0]), ECONNRESET);
	ck_assert_int_eq(error_of(w.near[1]), ECONNRESET);
	ck_assert_int_eq(w.ended, -1);
	world_close(&w);
}
END_TEST

START_TEST(idle_ones_end)
{
	struct world w;

	world_open(&w);
	(void)pump_with(&w, (struct pump_opts){ .idle_ms = 20 });
	put(w.near[0], "x");
	expect(&w, w.near[1], "x");
	expect_end(&w, ETIMEDOUT);
	world_close(&w);
}
END_TEST

int main(void)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	Suite *suite = suite_create("pump");
	TCase *tc = tcase_create("pump");

	/* pump.h */
	(void)sigaction(SIGPIPE, &ignore, NULL);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, both_ways_and_half_closed);
	tcase_add_test(tc, first_bytes);
	tcase_add_test(tc, first_bytes_both_ways);
	tcase_add_test(tc, closed_behind_much);
	tcase_add_test(tc, back_pressure);
	tcase_add_test(tc, a_refused_connection_is_a_reset);
	tcase_add_test(tc, a_reset_is_passed_on);
	tcase_add_test(tc, a_cut_resets_both);
	tcase_add_test(tc, idle_ones_end);
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
