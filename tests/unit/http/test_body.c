/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/socket.h>

#include "served.h"

#define POST_LATER "POST /later HTTP/1.1\r\nHost: x\r\n"

static int told; /* calls of on_body */

static void count(struct http_req *rq)
{
	ck_assert_ptr_eq(rq, served_later);
	told++;
}

/* A request whose body is asked for by the test. */
static struct http_req *begin(struct peer *p, const char *head)
{
	served_connect(p, 0);
	peer_say(p, head);
	PEER_UNTIL(served_later);
	served_later->on_body = count;
	told = 0;
	return served_later;
}

static void expect_data(struct http_req *rq, const char *text)
{
	struct span data = http_body_peek(rq);

	ck_assert_msg(span_eq(data, span_of(text)), "%.*s", (int)data.n, data.p);
}

START_TEST(length_by_pieces)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	struct http_req *rq = begin(&p, POST_LATER "Content-Length: 6\r\n\r\n");

	ck_assert_uint_eq(http_body_length(rq), 6);
	expect_data(rq, "");
	ck_assert(!http_body_done(rq));
	peer_say(&p, "abc");
	PEER_UNTIL(told == 1);
	expect_data(rq, "abc");
	http_body_take(rq, 1);
	expect_data(rq, "bc");
	/* Nothing more is read before all is taken. */
	peer_say(&p, "defGET /ping HTTP/1.1\r\nHost: x\r\n\r\n");
	for (int i = 0; i < 5; i++) {
		peer_step();
	}
	ck_assert_int_eq(told, 1);
	expect_data(rq, "bc");
	http_body_take(rq, 2);
	PEER_UNTIL(told == 2);
	expect_data(rq, "def");
	ck_assert(!http_body_done(rq));
	http_body_take(rq, 3);
	ck_assert(http_body_done(rq));
	expect_data(rq, "");
	http_reply(TAKE_PTR(served_later), 200, NULL, span_of("first"));
	PEER_UNTIL(peer_has(&p, "first") && peer_has(&p, "Content-Length: 0"));
}
END_TEST

START_TEST(chunks_by_pieces)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	struct http_req *rq = begin(&p, POST_LATER "Transfer-Encoding: chunked\r\n\r\n");

	ck_assert_uint_eq(http_body_length(rq), UINT64_MAX);
	expect_data(rq, "");
	/* Framing alone is no news. */
	peer_say(&p, "5\r\n");
	for (int i = 0; i < 5; i++) {
		peer_step();
	}
	ck_assert_int_eq(told, 0);
	peer_say(&p, "ab");
	PEER_UNTIL(told == 1);
	expect_data(rq, "ab");
	http_body_take(rq, 2);
	peer_say(&p, "cde\r\n1\r\nf\r\n");
	PEER_UNTIL(told == 2);
	expect_data(rq, "cde");
	http_body_take(rq, 3);
	expect_data(rq, "f");
	http_body_take(rq, 1);
	ck_assert(!http_body_done(rq));
	/* The end is news. */
	peer_say(&p, "0\r\n\r\n");
	PEER_UNTIL(told == 3);
	ck_assert(http_body_done(rq));
	http_reply(TAKE_PTR(served_later), 200, NULL, span_of("end"));
	PEER_UNTIL(peer_has(&p, "end"));
}
END_TEST

/* Body bytes that came with the head are there at once, and told. */
START_TEST(body_with_head)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	struct http_req *rq = begin(&p, POST_LATER "Content-Length: 3\r\n\r\nabc");

	expect_data(rq, "abc");
	http_body_take(rq, 3);
	ck_assert(http_body_done(rq));
	for (int i = 0; i < 5; i++) {
		peer_step();
	}
	ck_assert_int_eq(told, 0);
	http_reply(TAKE_PTR(served_later), 200, NULL, span_of("end"));
	PEER_UNTIL(peer_has(&p, "end"));
}
END_TEST

static void take_one(struct http_req *rq)
{
	told++;
	expect_data(rq, (const char *[]){ "a", "b", "c" }[told - 1]);
	http_body_take(rq, 1);
	if (http_body_done(rq)) {
		http_reply(TAKE_PTR(served_later), 200, NULL, span_of("taken"));
	}
}

START_TEST(one_piece_a_call)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	struct http_req *rq = begin(&p, POST_LATER "Transfer-Encoding: chunked\r\n\r\n");

	expect_data(rq, "");
	rq->on_body = take_one;
	peer_say(&p, "1\r\na\r\n1\r\nb\r\n1\r\nc\r\n0\r\n\r\n");
	PEER_UNTIL(peer_has(&p, "taken"));
	ck_assert_int_eq(told, 3);
}
END_TEST

static const struct {
	const char *coding;
	const char *bytes; /* of the body, then the end */
} cuts[] = {
	{ "Content-Length: 5", "" },
	{ "Transfer-Encoding: chunked", "5\r\n" },
	{ "Transfer-Encoding: chunked", "0\r\n" },
	{ "Transfer-Encoding: chunked", "zz\r\n" },
};

START_TEST(cut_bodies)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	autofree char *head = mem_printf(POST_LATER "%s\r\n\r\n", cuts[_i].coding);
	struct http_req *rq = begin(&p, head);

	expect_data(rq, "");
	peer_say(&p, cuts[_i].bytes);
	ck_assert_int_eq(shutdown(p.fd, SHUT_WR), 0);
	PEER_UNTIL(served_closed == 1);
	PEER_UNTIL(p.eof);
	ck_assert(peer_has(&p, "HTTP/1.1 400 "));
	ck_assert_int_eq(told, 0);
}
END_TEST

/* After the answer has begun there is nothing to be said but that it is cut. */
START_TEST(cut_bodies_of_begun_answers)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	struct http_req *rq = begin(&p, POST_LATER "Content-Length: 5\r\n\r\n");

	http_begin(rq, 200, NULL, UINT64_MAX);
	ck_assert_int_eq(shutdown(p.fd, SHUT_WR), 0);
	PEER_UNTIL(p.eof);
	ck_assert_int_eq(served_closed, 1);
	ck_assert(peer_has(&p, "HTTP/1.1 200 OK"));
	ck_assert(!peer_has(&p, "\r\n0\r\n"));
}
END_TEST

START_TEST(answered_before_the_body)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	/* Little is dropped and the connection goes on, much is not. */
	bool is_much = _i == 1;
	size_t n = is_much ? 1U << 20 : 60000;
	autofree char *head = mem_printf(POST_LATER "Content-Length: %zu\r\n\r\n", n);
	autofree char *body = mem_array(n, 1);
	struct http_req *rq = begin(&p, head);

	http_reply(rq, is_much ? 403 : 200, NULL, span_of("early"));
	served_later = NULL;
	PEER_UNTIL(peer_has(&p, "early"));
	ck_assert_int_eq(peer_has(&p, "Connection: close"), is_much);
	if (!is_much) {
		peer_send(&p, body, n);
		peer_say(&p, "GET /hello/x HTTP/1.1\r\nHost: x\r\n\r\n");
		PEER_UNTIL(peer_has(&p, "hello x"));
	} else {
		PEER_UNTIL(p.eof);
	}
}
END_TEST

START_TEST(expectation_of_a_stream)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	struct http_req *rq = begin(&p, POST_LATER "Expect: 100-continue\r\n"
						   "Content-Length: 3\r\n\r\n");

	for (int i = 0; i < 5; i++) {
		peer_step();
	}
	ck_assert_uint_eq(p.got.n, 0);
	expect_data(rq, "");
	expect_data(rq, "");
	PEER_UNTIL(p.got.n > 0);
	ck_assert_str_eq(p.got.p, "HTTP/1.1 100 Continue\r\n\r\n");
	peer_say(&p, "abc");
	PEER_UNTIL(told == 1);
	http_body_take(rq, 3);
	http_reply(TAKE_PTR(served_later), 200, NULL, span_of("end"));
	PEER_UNTIL(peer_has(&p, "end"));
}
END_TEST

START_TEST(whole_bodies_of_all_sizes)
{
	static const size_t sizes[] = { 1, 4095, 4096, 65535, 65537, 100000 };
	AUTO(buf) struct buf request = BUF_INIT(PEER_MAX);
	AUTO(buf) struct buf got = BUF_INIT(PEER_MAX);
	size_t n = sizes[_i];

	ck_assert_int_eq(buf_appendf(&request,
					 "POST /echo HTTP/1.1\r\nHost: x\r\n"
					 "Content-Length: %zu\r\n\r\n",
					 n),
			0);
	for (size_t i = 0; i < n; i++) {
		ck_assert_int_eq(buf_append(&request, &"0123456"[i % 7], 1), 0);
	}
	served_talk(buf_span(&request), 0, &got);
	ck_assert_uint_gt(got.n, n);
	ck_assert_mem_eq(got.p + got.n - n, request.p + request.n - n, n);
}
END_TEST

START_TEST(chunked_beyond_the_maximum)
{
	AUTO(buf) struct buf request = BUF_INIT(PEER_MAX);
	AUTO(buf) struct buf got = BUF_INIT(PEER_MAX);

	ck_assert_int_eq(buf_append_str(&request, "POST /echo HTTP/1.1\r\nHost: x\r\n"
						  "Transfer-Encoding: chunked\r\n\r\n"),
			0);
	for (int i = 0; i < 20000; i++) {
		ck_assert_int_eq(buf_append_str(&request, "8\r\n01234567\r\n"), 0);
	}
	served_talk(buf_span(&request), 0, &got);
	ck_assert_ptr_nonnull(got.p);
	ck_assert_ptr_nonnull(strstr(got.p, "HTTP/1.1 413 "));
}
END_TEST

START_TEST(taken_over)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	AUTO(buf) struct buf rest = BUF_INIT(0);
	char byte = 0;

	served_connect(&p, 0);
	peer_say(&p, "GET /later HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\n"
		     "Upgrade: other\r\n\r\nraw\r\nbytes");
	PEER_UNTIL(served_later);
	autoclose int fd = http_take_over(served_later, &rest);

	ck_assert_int_ge(fd, 0);
	ck_assert_str_eq(buf_span(&rest).p, "raw\r\nbytes");
	ck_assert_uint_eq(http_conns(served), 0);
	ck_assert_int_eq(served_closed, 0);
	ck_assert_int_eq(send(fd, "x", 1, 0), 1);
	ck_assert_int_eq(recv(p.fd, &byte, 1, 0), 1);
	ck_assert_int_eq(byte, 'x');
}
END_TEST

int main(void)
{
	Suite *s = suite_create("http/body");
	TCase *tc = tcase_create("body");

	tcase_add_checked_fixture(tc, served_start, served_stop);
	tcase_add_test(tc, length_by_pieces);
	tcase_add_test(tc, chunks_by_pieces);
	tcase_add_test(tc, body_with_head);
	tcase_add_test(tc, one_piece_a_call);
	tcase_add_loop_test(tc, cut_bodies, 0, ARRAY_SIZE(cuts));
	tcase_add_test(tc, cut_bodies_of_begun_answers);
	tcase_add_loop_test(tc, answered_before_the_body, 0, 2);
	tcase_add_test(tc, expectation_of_a_stream);
	tcase_add_loop_test(tc, whole_bodies_of_all_sizes, 0, 6);
	tcase_add_test(tc, chunked_beyond_the_maximum);
	tcase_add_test(tc, taken_over);
	tcase_set_timeout(tc, 60);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
