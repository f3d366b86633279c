/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/socket.h>

#include "served.h"

#define GET_LATER "GET /later HTTP/1.1\r\nHost: x\r\n"

static int drained;

static void on_drain(struct http_req *rq)
{
	ck_assert_ptr_eq(rq, served_later);
	ck_assert_uint_lt(http_pending(rq), 16U << 10);
	drained++;
}

static struct http_req *begin(struct peer *p, const char *head)
{
	served_connect(p, 0);
	peer_say(p, head);
	PEER_UNTIL(served_later);
	drained = 0;
	return served_later;
}

static void expect_answer(struct peer *p, const char *text)
{
	PEER_UNTIL(p->got.n > strlen(text));
	served_mask(&p->got);
	ck_assert_str_eq(p->got.p, text);
}

START_TEST(chunked_answer)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	struct http_req *rq = begin(&p, GET_LATER "\r\n");

	ck_assert(!http_has_begun(rq));
	http_reply_field(rq, "X-A", "1");
	http_reply_field(rq, "X-A", "2");
	http_begin(rq, 200, "text/event-stream", UINT64_MAX);
	ck_assert(http_has_begun(rq));
	http_write(rq, span_of("hello"));
	http_write(rq, span_of(""));
	http_write(rq, span_of("0123456789abcdefg"));
	http_reply_trailer(rq, "X-B", "3");
	http_end(TAKE_PTR(served_later));
	expect_answer(&p, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
			  "Transfer-Encoding: chunked\r\nX-A: 1\r\nX-A: 2\r\n\r\n"
			  "5\r\nhello\r\n11\r\n0123456789abcdefg\r\n0\r\nX-B: 3\r\n\r\n");
}
END_TEST

START_TEST(answer_of_known_length)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	struct http_req *rq = begin(&p, GET_LATER "\r\n");

	http_begin(rq, 206, NULL, 5);
	http_write(rq, span_of("he"));
	http_write(rq, span_of("llo"));
	http_end(TAKE_PTR(served_later));
	expect_answer(&p, "HTTP/1.1 206 Partial Content\r\nContent-Length: 5\r\n\r\nhello");
}
END_TEST

START_TEST(answer_until_close)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	struct http_req *rq = begin(&p, "GET /later HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");

	http_begin(rq, 200, NULL, UINT64_MAX);
	http_write(rq, span_of("hello"));
	http_end(TAKE_PTR(served_later));
	PEER_UNTIL(p.eof);
	served_mask(&p.got);
	ck_assert_str_eq(p.got.p, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello");
}
END_TEST

START_TEST(no_body)
{
	static const struct {
		const char *request;
		int status;
		const char *answer;
	} rows[] = {
		{ GET_LATER "\r\n", 204, "HTTP/1.1 204 No Content\r\n\r\n" },
		{ GET_LATER "\r\n", 304, "HTTP/1.1 304 Not Modified\r\n\r\n" },
		{ "HEAD /later HTTP/1.1\r\nHost: x\r\n\r\n", 200,
				"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" },
	};
	AUTO(peer) struct peer p = { .fd = -1 };
	struct http_req *rq = begin(&p, rows[_i].request);

	http_begin(rq, rows[_i].status, NULL, UINT64_MAX);
	http_write(rq, span_of("hello"));
	http_end(TAKE_PTR(served_later));
	PEER_UNTIL(p.got.n > 0);
	peer_say(&p, "GET /ping HTTP/1.1\r\nHost: x\r\n\r\n");
	PEER_UNTIL(peer_has(&p, "Content-Length: 0\r\n\r\n"));
	served_mask(&p.got);
	ck_assert_uint_gt(p.got.n, strlen(rows[_i].answer));
	ck_assert_mem_eq(p.got.p, rows[_i].answer, strlen(rows[_i].answer));
	ck_assert_mem_eq(p.got.p + strlen(rows[_i].answer), "HTTP/1.1 ", 9);
}
END_TEST

START_TEST(one_date)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	struct http_req *rq = begin(&p, GET_LATER "\r\n");

	http_reply_field(rq, "date", "then");
	http_reply(TAKE_PTR(served_later), 200, NULL, span_of("x"));
	(void)rq;
	PEER_UNTIL(peer_has(&p, "\r\n\r\nx"));
	ck_assert_str_eq(p.got.p, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\ndate: then\r\n\r\nx");
}
END_TEST

START_TEST(aborted)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	struct http_req *rq = begin(&p, GET_LATER "\r\n");

	http_begin(rq, 200, NULL, UINT64_MAX);
	http_write(rq, span_of("hello"));
	http_abort(TAKE_PTR(served_later));
	ck_assert_uint_eq(http_conns(served), 0);
	PEER_UNTIL(p.eof);
	ck_assert(peer_has(&p, "5\r\nhello\r\n"));
	ck_assert(!peer_has(&p, "0\r\n\r\n"));
	ck_assert_int_eq(served_closed, 0);
}
END_TEST

/* An answer that became shorter than it was announced must not look whole. */
START_TEST(short_answers_are_cut)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	struct http_req *rq = begin(&p, GET_LATER "\r\n");

	http_begin(rq, 200, NULL, 10);
	http_write(rq, span_of("hello"));
	http_end(TAKE_PTR(served_later));
	PEER_UNTIL(p.eof);
	ck_assert(peer_has(&p, "Content-Length: 10\r\n"));
	ck_assert_uint_eq(http_conns(served), 0);
}
END_TEST

START_TEST(back_pressure)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	struct http_req *rq = begin(&p, GET_LATER "\r\n");
	autofree char *piece = mem_array(32768, 1);
	size_t written = 0;

	memset(piece, 'x', 32768);
	p.is_reading = false;
	rq->on_drain = on_drain;
	http_begin(rq, 200, NULL, UINT64_MAX);
	while (http_pending(rq) < 256U << 10) {
		ck_assert_uint_lt(written, 64U << 20);
		http_write(rq, (struct span){ .p = piece, .n = 32768 });
		written += 32768;
	}
	for (int i = 0; i < 5; i++) {
		peer_step();
	}
	ck_assert_int_eq(drained, 0);
	ck_assert_uint_ge(http_pending(rq), 256U << 10);
	p.is_reading = true;
	PEER_UNTIL(drained == 1);
	/* Once for each time that it was full. */
	PEER_UNTIL(http_pending(rq) == 0);
	for (int i = 0; i < 5; i++) {
		peer_step();
	}
	ck_assert_int_eq(drained, 1);
	http_end(TAKE_PTR(served_later));
	PEER_UNTIL(peer_has(&p, "\r\n0\r\n\r\n"));
	ck_assert_uint_gt(p.got.n, written);
}
END_TEST

START_TEST(large_answers_arrive_whole)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	struct http_req *rq = begin(&p, GET_LATER "\r\n");
	size_t n = 10U << 20;
	autofree char *body = mem_array(n, 1);

	for (size_t i = 0; i < n; i++) {
		body[i] = (char)(i * 7 + i / 1000);
	}
	http_reply(rq, 200, NULL, (struct span){ .p = body, .n = n });
	served_later = NULL;
	ck_assert_uint_eq(http_busy(served), 0);
	PEER_UNTIL(p.got.n > n);
	ck_assert_mem_eq(p.got.p + p.got.n - n, body, n);
}
END_TEST

/* A peer that reads nothing for ever is dropped when more waits for it than is reasonable. */
START_TEST(output_is_bounded)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	struct http_req *rq = begin(&p, GET_LATER "\r\n");
	autofree char *piece = mem_array(1U << 20, 1);

	p.is_reading = false;
	http_begin(rq, 200, NULL, UINT64_MAX);
	for (int i = 0; i < 70; i++) {
		http_write(rq, (struct span){ .p = piece, .n = 1U << 20 });
		ck_assert_uint_le(http_pending(rq), 65U << 20);
	}
	PEER_UNTIL(served_closed == 1);
}
END_TEST

static void field_with_line_end(struct http_req *rq)
{
	http_reply_field(rq, "X-A", "b\r\nX-C: d");
}

START_TEST(fields_cannot_be_smuggled)
{
	AUTO(peer) struct peer p = { .fd = -1 };

	field_with_line_end(begin(&p, GET_LATER "\r\n"));
}
END_TEST

START_TEST(reasons)
{
	ck_assert_str_eq(http_reason(200), "OK");
	ck_assert_str_eq(http_reason(503), "Service Unavailable");
	ck_assert_str_eq(http_reason(599), "");
	ck_assert_str_eq(http_reason(-1), "");
}
END_TEST

START_TEST(fields_of_a_request)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	struct http_req *rq = begin(&p, GET_LATER "A:  b c \t\r\nB:\r\nA: d\r\n"
						  "Accept: x, Text/Plain ,y\r\naccept: z\r\n\r\n");
	struct span name = { .p = NULL };
	struct span value = { .p = NULL };

	ck_assert(span_eq(http_field(rq, "a"), span_of("b c")));
	ck_assert_ptr_nonnull(http_field(rq, "b").p);
	ck_assert_uint_eq(http_field(rq, "b").n, 0);
	ck_assert_ptr_null(http_field(rq, "c").p);
	ck_assert(http_field_at(rq, 3, &name, &value));
	ck_assert(span_eq(name, span_of("A")) && span_eq(value, span_of("d")));
	ck_assert(!http_field_at(rq, 6, &name, &value));
	ck_assert(http_field_has(rq, "accept", "text/plain"));
	ck_assert(http_field_has(rq, "accept", "z"));
	ck_assert(!http_field_has(rq, "accept", "text"));
	ck_assert(!http_field_has(rq, "b", "x"));
	ck_assert_uint_eq(rq->listener, 7);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("http/reply");
	TCase *tc = tcase_create("reply");

	tcase_add_checked_fixture(tc, served_start, served_stop);
	tcase_add_test(tc, chunked_answer);
	tcase_add_test(tc, answer_of_known_length);
	tcase_add_test(tc, answer_until_close);
	tcase_add_loop_test(tc, no_body, 0, 3);
	tcase_add_test(tc, one_date);
	tcase_add_test(tc, aborted);
	tcase_add_test(tc, short_answers_are_cut);
	tcase_add_test(tc, back_pressure);
	tcase_add_test(tc, large_answers_arrive_whole);
	tcase_add_test(tc, output_is_bounded);
	tcase_add_test_raise_signal(tc, fields_cannot_be_smuggled, SIGABRT);
	tcase_add_test(tc, reasons);
	tcase_add_test(tc, fields_of_a_request);
	tcase_set_timeout(tc, 60);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
