/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <osbx/fd.h>

#include "served.h"

#define STREAM_HEAD "POST /later HTTP/1.1\r\nHost: x\r\n"
#define FILE_BYTES  (3U << 20)

static int ended; /* calls of on_end */
static int file_fd = -1;
static bool file_is_chunked;

static void on_end(void *ctx)
{
	ck_assert_ptr_eq(ctx, &ended);
	ended++;
}

static void start(void)
{
	served_start_with((struct http_opts){ .workers_max = 2, .body_ms = 20000 });
	ended = 0;
}

static void stop(void)
{
	served_stop();
	while (waitpid(-1, NULL, 0) > 0) {
	}
}

static struct http_req *begin(struct peer *p, size_t i, const char *head)
{
	served_later = NULL;
	served_connect(p, i);
	peer_say(p, head);
	PEER_UNTIL(served_later);
	struct http_req *rq = TAKE_PTR(served_later);

	/* It must not be called: the worker has the connection. */
	rq->on_close = NULL;
	return rq;
}

static int work(struct http_req *rq, void (*run)(struct http_req *rq, void *ctx))
{
	const struct http_fork_opts opts = {
		.run = run,
		.ctx = &ended,
		.on_end = on_end,
		.keep = &file_fd,
		.keep_n = 1,
	};

	return http_fork(rq, &opts);
}

static void run_reply(struct http_req *rq, void *ctx)
{
	(void)ctx;
	http_reply(rq, 200, "text/plain", span_of("from a worker"));
}

START_TEST(answer)
{
	AUTO(peer) struct peer p = { .fd = -1 };

	ck_assert_int_eq(
			work(begin(&p, 0, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n"), run_reply), 0);
	ck_assert_uint_eq(http_busy(served), 1);
	PEER_UNTIL(peer_has(&p, "from a worker"));
	PEER_UNTIL(ended == 1);
	ck_assert_uint_eq(http_busy(served), 0);
	/* The connection is the parent's again. */
	peer_say(&p, "GET /hello/x HTTP/1.1\r\nHost: x\r\n\r\n");
	PEER_UNTIL(peer_has(&p, "hello x"));
}
END_TEST

/* The body as a number of bytes and a sum, read in pieces of a size. */
static void read_sum(struct http_req *rq, size_t piece)
{
	autofree char *bytes = mem_array(piece, 1);
	unsigned long long sum = 0;
	unsigned long long count = 0;
	ssize_t n = 0;

	while ((n = http_blocking_read(rq, bytes, piece)) > 0) {
		count += (unsigned long long)n;
		for (ssize_t i = 0; i < n; i++) {
			sum += (unsigned char)bytes[i];
		}
	}
	autofree char *text = mem_printf("<%llu %llu %zd>", count, sum, n);

	http_reply(rq, 200, NULL, span_of(text));
}

static void run_read_small(struct http_req *rq, void *ctx)
{
	(void)ctx;
	read_sum(rq, 1000);
}

static void run_read_large(struct http_req *rq, void *ctx)
{
	(void)ctx;
	read_sum(rq, 1U << 20);
}

static void append(struct buf *b, const void *p, size_t n)
{
	ck_assert_int_eq(buf_append(b, p, n), 0);
}

/* A request with n bytes of body, in chunks of a size unless 0, and a small one behind it. */
static void make_upload(struct buf *b, size_t n, size_t chunk, char out_expected[64])
{
	char line[64];
	unsigned long long sum = 0;

	append(b, STREAM_HEAD, strlen(STREAM_HEAD));
	if (chunk) {
		append(b, "Transfer-Encoding: chunked\r\n\r\n", 30);
	} else {
		snprintf(line, sizeof(line), "Content-Length: %zu\r\n\r\n", n);
		append(b, line, strlen(line));
	}
	for (size_t i = 0; i < n; i++) {
		char byte = (char)(i * 31 + i / 977);

		if (chunk && i % chunk == 0) {
			snprintf(line, sizeof(line), "%s%zx\r\n", i ? "\r\n" : "",
					n - i < chunk ? n - i : chunk);
			append(b, line, strlen(line));
		}
		append(b, &byte, 1);
		sum += (unsigned char)byte;
	}
	if (chunk) {
		append(b, "\r\n0\r\n\r\n", 7);
	}
	append(b, "GET /hello/next HTTP/1.1\r\nHost: x\r\n\r\n", 38);
	snprintf(out_expected, 64, "<%zu %llu 0>", n, sum);
}

static const struct {
	size_t n, chunk;
} uploads[] = {
	{ 1, 0 },
	{ 1, 1 },
	{ 3000, 7 },
	{ 3000, 0 },
	{ 300000, 1000 },
	{ 300000, 200000 },
	{ 4000000, 0 },
	{ 4000000, 65536 },
	{ 4000000, 3999999 },
};

START_TEST(body_is_streamed)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	AUTO(buf) struct buf upload = BUF_INIT(PEER_MAX);
	char expected[64];

	make_upload(&upload, uploads[_i / 2].n, uploads[_i / 2].chunk, expected);
	size_t head = (size_t)((char *)memmem(upload.p, upload.n, "\r\n\r\n", 4) - upload.p) + 4;
	size_t first = head + (upload.n - head) / 3;

	served_connect(&p, 0);
	peer_send(&p, upload.p, head);
	PEER_UNTIL(served_later);
	struct http_req *rq = TAKE_PTR(served_later);

	rq->on_close = NULL;
	ck_assert_int_eq(work(rq, _i % 2 ? run_read_large : run_read_small), 0);
	peer_send(&p, upload.p + head, first - head);
	peer_send(&p, upload.p + first, upload.n - first);
	PEER_UNTIL(peer_has(&p, expected));
	/* What was read too far has been given back. */
	PEER_UNTIL(peer_has(&p, "hello next"));
}
END_TEST

/* All that is sent is there before the worker begins: it reads too far for certain. */
START_TEST(request_behind_is_given_back)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	struct http_req *rq = begin(&p, 0, STREAM_HEAD "Transfer-Encoding: chunked\r\n\r\n");

	peer_say(&p, "3\r\nabc\r\n0\r\n\r\nGET /hello/a HTTP/1.1\r\nHost: x\r\n\r\n"
		     "GET /hello/b HTTP/1.1\r\nHost: x\r\n");
	ck_assert_int_eq(work(rq, run_read_small), 0);
	PEER_UNTIL(peer_has(&p, "hello a"));
	ck_assert(peer_has(&p, "<3 294 0>"));
	peer_say(&p, "\r\n");
	PEER_UNTIL(peer_has(&p, "hello b"));
}
END_TEST

START_TEST(expectation)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	struct http_req *rq = begin(&p, 0,
			STREAM_HEAD "Expect: 100-continue\r\n"
				    "Content-Length: 1\r\n\r\n");

	ck_assert_int_eq(work(rq, run_read_small), 0);
	PEER_UNTIL(peer_has(&p, "HTTP/1.1 100 Continue\r\n\r\n"));
	peer_say(&p, "a");
	PEER_UNTIL(peer_has(&p, "<1 97 0>"));
}
END_TEST

START_TEST(cut_bodies)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	struct http_req *rq = begin(&p, 0, STREAM_HEAD "Content-Length: 5\r\n\r\nab");

	ck_assert_int_eq(shutdown(p.fd, SHUT_WR), 0);
	ck_assert_int_eq(work(rq, run_read_small), 0);
	autofree char *expected = mem_printf("<2 195 %d>", -ECONNRESET);

	PEER_UNTIL(peer_has(&p, expected));
	PEER_UNTIL(p.eof && http_conns(served) == 0);
}
END_TEST

START_TEST(malformed_bodies)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	struct http_req *rq = begin(&p, 0, STREAM_HEAD "Transfer-Encoding: chunked\r\n\r\n");

	peer_say(&p, "2\r\nab\r\nxyz");
	ck_assert_int_eq(work(rq, run_read_small), 0);
	autofree char *expected = mem_printf("<2 195 %d>", -EBADMSG);

	PEER_UNTIL(peer_has(&p, expected));
	/* Nothing that follows is taken for a request. */
	PEER_UNTIL(p.eof);
}
END_TEST

static void run_file(struct http_req *rq, void *ctx)
{
	(void)ctx;
	http_begin(rq, 200, NULL, file_is_chunked ? UINT64_MAX : FILE_BYTES - 10);
	if (http_blocking_sendfile(rq, file_fd, 10, FILE_BYTES - 10) < 0) {
		http_abort(rq);
		return;
	}
	http_end(rq);
}

static void file_make(char *bytes)
{
	for (size_t i = 0; i < FILE_BYTES; i++) {
		bytes[i] = (char)(i * 13 + i / 4099);
	}
	file_fd = fd_memfd("file", false);
	ck_assert_int_ge(file_fd, 0);
	ck_assert_int_eq(fd_write_all(file_fd, bytes, FILE_BYTES), 0);
}

START_TEST(file)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	autofree char *bytes = mem_array(FILE_BYTES, 1);

	file_make(bytes);
	file_is_chunked = _i == 1;
	ck_assert_int_eq(work(begin(&p, 0, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n"), run_file), 0);
	PEER_UNTIL(ended == 1);
	peer_say(&p, "GET /hello/x HTTP/1.1\r\nHost: x\r\n\r\n");
	PEER_UNTIL(peer_has(&p, "hello x"));
	char *body = (char *)memmem(p.got.p, p.got.n, "\r\n\r\n", 4) + 4;

	if (_i == 1) {
		ck_assert_mem_eq(body, "2ffff6\r\n", 8);
		ck_assert_mem_eq(body + 8 + FILE_BYTES - 10, "\r\n0\r\n\r\n", 7);
		body += 8;
	}
	ck_assert_mem_eq(body, bytes + 10, FILE_BYTES - 10);
	close(file_fd);
}
END_TEST

START_TEST(file_without_body)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	autofree char *bytes = mem_array(FILE_BYTES, 1);

	file_make(bytes);
	ck_assert_int_eq(
			work(begin(&p, 0, "HEAD /later HTTP/1.1\r\nHost: x\r\n\r\n"), run_file), 0);
	PEER_UNTIL(ended == 1);
	peer_say(&p, "GET /hello/x HTTP/1.1\r\nHost: x\r\n\r\n");
	PEER_UNTIL(peer_has(&p, "hello x"));
	ck_assert(peer_has(&p, "Content-Length: 3145718\r\n\r\nHTTP/1.1 200"));
	close(file_fd);
}
END_TEST

START_TEST(file_that_shrinks)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	autofree char *bytes = mem_array(FILE_BYTES, 1);

	file_make(bytes);
	ck_assert_int_eq(ftruncate(file_fd, 1000), 0);
	ck_assert_int_eq(work(begin(&p, 0, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n"), run_file), 0);
	PEER_UNTIL(p.eof);
	ck_assert(peer_has(&p, "200 OK"));
	ck_assert_uint_lt(p.got.n, 2000);
	PEER_UNTIL(http_conns(served) == 0 && ended == 1);
	close(file_fd);
}
END_TEST

static void run_nothing(struct http_req *rq, void *ctx)
{
	(void)rq;
	(void)ctx;
}

static void run_die(struct http_req *rq, void *ctx)
{
	(void)rq;
	(void)ctx;
	raise(SIGKILL);
}

static void run_die_half_way(struct http_req *rq, void *ctx)
{
	(void)ctx;
	http_begin(rq, 200, NULL, 10);
	http_write(rq, span_of("half"));
	raise(SIGKILL);
}

static void run_half(struct http_req *rq, void *ctx)
{
	(void)ctx;
	http_begin(rq, 200, NULL, UINT64_MAX);
	http_write(rq, span_of("half"));
}

static const struct {
	void (*run)(struct http_req *rq, void *ctx);
	const char *has;
} failures[] = {
	{ run_nothing, "HTTP/1.1 500 " },
	{ run_die, "HTTP/1.1 500 " },
	{ run_die_half_way, "half" },
	{ run_half, "half\r\n" },
};

START_TEST(failing_workers)
{
	AUTO(peer) struct peer p = { .fd = -1 };

	ck_assert_int_eq(work(begin(&p, 0, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n"),
					 failures[_i].run),
			0);
	PEER_UNTIL(p.eof);
	ck_assert(peer_has(&p, failures[_i].has));
	ck_assert(!peer_has(&p, "\r\n0\r\n\r\n"));
	PEER_UNTIL(http_conns(served) == 0 && ended == 1);
	ck_assert_uint_eq(http_busy(served), 0);
}
END_TEST

static void run_wait(struct http_req *rq, void *ctx)
{
	char byte = 0;

	(void)ctx;
	(void)!http_blocking_read(rq, &byte, 1);
	http_reply(rq, 200, NULL, span_of("waited"));
}

START_TEST(too_many_workers)
{
	struct peer p[3];
	const char *head = STREAM_HEAD "Content-Length: 1\r\n\r\n";

	ck_assert_int_eq(work(begin(&p[0], 0, head), run_wait), 0);
	ck_assert_int_eq(work(begin(&p[1], 1, head), run_wait), 0);
	ck_assert_int_eq(work(begin(&p[2], 2, head), run_wait), -EAGAIN);
	PEER_UNTIL(peer_has(&p[2], "HTTP/1.1 503 "));
	ck_assert(peer_has(&p[2], "Retry-After: 1\r\n"));
	peer_say(&p[0], "a");
	peer_say(&p[1], "b");
	PEER_UNTIL(ended == 2);
	ck_assert(peer_has(&p[0], "waited") && peer_has(&p[1], "waited"));
	peer_done(&p[2]);
	ck_assert_int_eq(work(begin(&p[2], 2, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n"), run_reply),
			0);
	PEER_UNTIL(ended == 3);
	for (size_t i = 0; i < 3; i++) {
		peer_done(&p[i]);
	}
}
END_TEST

/* Nothing of other connections, nor of the loop, is left open in a worker. */
static void run_list(struct http_req *rq, void *ctx)
{
	AUTO(buf) struct buf text = BUF_INIT(10000);
	sigset_t blocked;
	int death = 0;

	(void)ctx;
	for (int fd = 3; fd < 1024; fd++) {
		if (fcntl(fd, F_GETFD) >= 0 && buf_appendf(&text, "%d ", fd) < 0) {
			return;
		}
	}
	(void)sigprocmask(SIG_SETMASK, NULL, &blocked);
	(void)prctl(PR_GET_PDEATHSIG, &death);
	if (buf_appendf(&text, "blocked %d death %d", sigismember(&blocked, SIGCHLD), death) == 0) {
		http_reply(rq, 200, NULL, buf_span(&text));
	}
}

START_TEST(what_a_worker_has)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	AUTO(peer) struct peer other = { .fd = -1 };
	sigset_t set;
	int fds = 0;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	file_fd = fd_memfd("file", false);
	served_connect(&other, 1);
	ck_assert_int_eq(work(begin(&p, 0, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n"), run_list), 0);
	PEER_UNTIL(ended == 1 && peer_has(&p, "death"));
	char *body = (char *)memmem(p.got.p, p.got.n, "\r\n\r\n", 4) + 4;

	/* Its connection, its report, and what it was told to keep. */
	for (char *at = body; (at = strchr(at, ' ')); at++) {
		fds++;
	}
	ck_assert_msg(fds == 3 + 3, "%s", body);
	ck_assert_ptr_nonnull(strstr(body, "blocked 0 death 9"));
	close(file_fd);
}
END_TEST

/* A peer that reads nothing ends its worker, in time. */
static void run_flood(struct http_req *rq, void *ctx)
{
	autofree char *bytes = mem_array(1U << 20, 1);

	(void)ctx;
	http_begin(rq, 200, NULL, UINT64_MAX);
	for (int i = 0; i < 100; i++) {
		http_write(rq, (struct span){ .p = bytes, .n = 1U << 20 });
		/* No more than one write waits. */
		if (http_pending(rq) > 0) {
			raise(SIGKILL);
		}
	}
	http_end(rq);
}

START_TEST(back_pressure)
{
	AUTO(peer) struct peer p = { .fd = -1 };

	ck_assert_int_eq(
			work(begin(&p, 0, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n"), run_flood), 0);
	if (_i == 0) {
		peer_hang_up(&p);
		PEER_UNTIL(ended == 1);
	} else {
		p.got.max = 200U << 20;
		PEER_UNTIL(ended == 1);
		PEER_UNTIL(peer_has(&p, "\r\n0\r\n\r\n"));
		ck_assert_uint_gt(p.got.n, 100U << 20);
	}
}
END_TEST

START_TEST(server_that_ends)
{
	AUTO(peer) struct peer p = { .fd = -1 };

	ck_assert_int_eq(work(begin(&p, 0, STREAM_HEAD "Content-Length: 1\r\n\r\n"), run_wait), 0);
	http_server_free(TAKE_PTR(served));
	ck_assert_int_eq(ended, 1);
	peer_hang_up(&p);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("http/fork");
	TCase *tc = tcase_create("fork");

	tcase_add_checked_fixture(tc, start, stop);
	tcase_add_test(tc, answer);
	tcase_add_loop_test(tc, body_is_streamed, 0, 2 * ARRAY_SIZE(uploads));
	tcase_add_test(tc, request_behind_is_given_back);
	tcase_add_test(tc, expectation);
	tcase_add_test(tc, cut_bodies);
	tcase_add_test(tc, malformed_bodies);
	tcase_add_loop_test(tc, file, 0, 2);
	tcase_add_test(tc, file_without_body);
	tcase_add_test(tc, file_that_shrinks);
	tcase_add_loop_test(tc, failing_workers, 0, ARRAY_SIZE(failures));
	tcase_add_test(tc, too_many_workers);
	tcase_add_test(tc, what_a_worker_has);
	tcase_add_loop_test(tc, back_pressure, 0, 2);
	tcase_add_test(tc, server_that_ends);
	tcase_set_timeout(tc, 60);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
