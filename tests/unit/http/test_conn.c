/* SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>
#include <sys/socket.h>

#include "served.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\n"

/* What is said, and the statuses of all answers before the server closes. */
static const struct {
	const char *bytes;
	const char *statuses;
} talks[] = {
	/* Ordinary requests. */
	{ GET("/ping") "\r\n", "200" },
	{ GET("/ping") "\r\n" GET("/ping") "\r\n", "200 200" },
	{ GET("/ping") "Connection: close\r\n\r\n" GET("/ping") "\r\n", "200" },
	{ GET("/ping") "Connection: foo, Close\r\n\r\n" GET("/ping") "\r\n", "200" },
	{ "\r\n\r\n" GET("/ping") "\r\n", "200" },
	{ GET("/ping") "Content-Length: 0\r\n\r\n" GET("/ping") "\r\n", "200 200" },
	{ GET("/ping") "Content-Length: 2\r\n\r\nab" GET("/ping") "\r\n", "200 200" },
	{ "HEAD /hello/x HTTP/1.1\r\nHost: x\r\n\r\n" GET("/ping") "\r\n", "200 200" },
	{ "GET /ping HTTP/1.0\r\n\r\n" GET("/ping") "\r\n", "200" },
	{ "GET /ping HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" GET("/ping") "\r\n", "200 200" },
	{ "GET http://example.org/ping HTTP/1.1\r\nHost: x\r\n\r\n", "200" },
	{ "GET http://example.org HTTP/1.1\r\nHost: x\r\n\r\n", "404" },
	{ "GET http:///ping HTTP/1.1\r\nHost: x\r\n\r\n", "400" },
	{ "GET ping HTTP/1.1\r\nHost: x\r\n\r\n", "400" },
	{ "GET * HTTP/1.1\r\nHost: x\r\n\r\n", "400" },
	{ "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "204" },
	{ "OPTIONS /ping HTTP/1.1\r\nHost: x\r\n\r\n" GET("/ping") "\r\n", "204 200" },
	{ "OPTIONS /nope HTTP/1.1\r\nHost: x\r\n\r\n", "404" },
	{ GET("/ping?a=b") "\r\n", "200" },
	{ GET("/p%69ng") "\r\n" GET("/ping/") "\r\n" GET("//ping") "\r\n", "404 404 404" },
	{ "PUT /ping HTTP/1.1\r\nHost: x\r\n\r\n" GET("/ping") "\r\n", "405 200" },
	{ "TRACE /ping HTTP/1.1\r\nHost: x\r\n\r\n" GET("/ping") "\r\n", "501 200" },
	{ "TRACE /any/x HTTP/1.1\r\nHost: x\r\n\r\n", "200" },
	{ "CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n" GET("/ping") "\r\n", "501" },
	{ "FOO /ping HTTP/1.1\r\nHost: x\r\n\r\n", "501" },
	/* Bodies. */
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello" GET("/ping") "\r\n",
			"200 200" },
	{ "POST /echo HTTP/1.1\r\nHost: x\r\n\r\n" GET("/ping") "\r\n", "200 200" },
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
	  "3\r\nabc\r\n0A;x=\"y\"\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n" GET("/ping") "\r\n",
			"200 200" },
	{ "POST /stream HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n"
	  "3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n" GET("/ping") "\r\n",
			"200 200" },
	{ "POST /stream HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n" GET("/ping") "\r\n",
			"200 200" },
	{ "POST /nope HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello" GET("/ping") "\r\n",
			"404 200" },
	{ "POST /nope HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
	  "3\r\nabc\r\n0\r\n\r\n" GET("/ping") "\r\n",
			"404 200" },
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100001\r\n\r\n", "413" },
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhell", "400" },
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab", "400" },
	{ "POST /later HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n", "400" },
	/* Expectations. */
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n",
			"200" },
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 200-ok\r\nContent-Length: 1\r\n\r\na", "417" },
	{ "POST /nope HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
			"404" },
	/* What two parsers could understand differently: refused and closed. */
	{ "GET /ping HTTP/1.1\r\n\r\n" GET("/ping") "\r\n", "400" },
	{ "GET /ping HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", "400" },
	{ "GET /ping HTTP/1.1\r\nHost: x y\r\n\r\n", "400" },
	{ "GET /ping HTTP/1.1\nHost: x\n\n", "400" },
	{ "GET /ping HTTP/1.1\r\nHost: x\n\r\n", "400" },
	{ "GET /ping HTTP/1.1\r\nHost: x\rA: b\r\n\r\n", "400" },
	{ GET("/ping") " folded\r\n\r\n", "400" },
	{ GET("/ping") "A: b\r\n\tc\r\n\r\n", "400" },
	{ " GET /ping HTTP/1.1\r\nHost: x\r\n\r\n", "400" },
	{ "GET  /ping HTTP/1.1\r\nHost: x\r\n\r\n", "400" },
	{ "GET /ping  HTTP/1.1\r\nHost: x\r\n\r\n", "400" },
	{ "GET /ping HTTP/1.1 \r\nHost: x\r\n\r\n", "400" },
	{ "GET /ping\r\nHost: x\r\n\r\n", "400" },
	{ "GET\t/ping\tHTTP/1.1\r\nHost: x\r\n\r\n", "400" },
	{ "GET /ping http/1.1\r\nHost: x\r\n\r\n", "400" },
	{ "GET /ping HTTP/1.10\r\nHost: x\r\n\r\n", "400" },
	{ "GET /ping HTTP/2.0\r\nHost: x\r\n\r\n", "505" },
	{ "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505" },
	{ "GET /ping#a HTTP/1.1\r\nHost: x\r\n\r\n", "400" },
	{ GET("/ping") "A : b\r\n\r\n", "400" },
	{ GET("/ping") "A\r\n\r\n", "400" },
	{ GET("/ping") ": b\r\n\r\n", "400" },
	{ GET("/ping") "A\x01: b\r\n\r\n", "400" },
	{ GET("/ping") "A: \x01\r\n\r\n", "400" },
	{ GET("/ping") "A: \x7f\r\n\r\n", "400" },
	{ GET("/ping") "A(b): c\r\n\r\n", "400" },
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
			"400" },
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
			"400" },
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5, 5\r\n\r\nhello", "400" },
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\nhello", "400" },
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\nhello", "400" },
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0x5\r\n\r\nhello", "400" },
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5 5\r\n\r\nhello", "400" },
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n\r\nhello", "400" },
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551621\r\n\r\nhello",
			"400" },
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n"
	  "\r\n0\r\n\r\n",
			"400" },
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n"
	  "\r\n0\r\n\r\n",
			"400" },
	{ "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400" },
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
	  "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
			"400" },
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n", "400" },
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
			"501" },
	/* Chunks. */
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", "400" },
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", "400" },
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", "400" },
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n",
			"400" },
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3 \r\nabc\r\n",
			"400" },
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\n", "400" },
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n",
			"400" },
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
	  "fffffffffffffffff\r\n",
			"400" },
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;a\rb\r\nabc\r\n",
			"400" },
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
	  "0\r\nA: b\r\n c\r\n\r\n",
			"400" },
	{ "POST /later HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", "400" },
	/* Of another protocol. */
	{ "\x16\x03\x01\x02", "400" },
	{ "", "" },
	{ "\r\n", "" },
	{ "GET /pi", "" },
};

static size_t number_at(const char *digits)
{
	size_t n = 0;

	for (; *digits >= '0' && *digits <= '9'; digits++) {
		n = n * 10 + (size_t)(*digits - '0');
	}
	return n;
}

/* "200 404": of the answers one behind the other; their lengths must be right for that. */
static void statuses_of(const struct buf *got, char *out, size_t out_size)
{
	struct span rest = buf_span(got);
	bool is_head = false;

	out[0] = '\0';
	while (rest.p && rest.n > 0) {
		ck_assert_msg(span_has_prefix(rest, span_of("HTTP/1.1 ")), "%.*s", (int)rest.n,
				rest.p);
		size_t used = strlen(out);

		snprintf(out + used, out_size - used, "%s%.3s", used ? " " : "", rest.p + 9);
		const char *end = memmem(rest.p, rest.n, "\r\n\r\n", 4);
		const char *length = memmem(rest.p, rest.n, "Content-Length: ", 16);
		const char *chunked = memmem(rest.p, rest.n, "chunked", 7);

		ck_assert_ptr_nonnull(end);
		size_t n = (size_t)(end - rest.p) + 4;

		if (length && length < end && !is_head) {
			n += number_at(length + 16);
		} else if (chunked && chunked < end) {
			const char *last = memmem(rest.p, rest.n, "0\r\n\r\n", 5);

			ck_assert_ptr_nonnull(last);
			n = (size_t)(last - rest.p) + 5;
		}
		ck_assert_uint_le(n, rest.n);
		rest = span_from(rest, n);
	}
}

static bool begins_with_head(const char *bytes)
{
	return strncmp(bytes, "HEAD ", 5) == 0;
}

START_TEST(talks_are_answered)
{
	const char *bytes = talks[_i].bytes;
	AUTO(buf) struct buf whole = BUF_INIT(PEER_MAX);
	char statuses[64];

	served_talk(span_of(bytes), 0, &whole);
	if (begins_with_head(bytes)) {
		/* Its length is that of a body that is not there. */
		ck_assert_ptr_nonnull(
				strstr(buf_span(&whole).p, "Content-Length: 7\r\n\r\nHTTP/1.1"));
	} else {
		statuses_of(&whole, statuses, sizeof(statuses));
		ck_assert_msg(strcmp(statuses, talks[_i].statuses) == 0, "%s: %s", bytes, statuses);
	}
	for (size_t piece = 1; piece < 8; piece += piece) {
		AUTO(buf) struct buf pieces = BUF_INIT(PEER_MAX);

		served_talk(span_of(bytes), piece, &pieces);
		/* A streamed body comes back in the pieces that it came in. */
		if (!strstr(bytes, "/stream")) {
			ck_assert_msg(span_eq(buf_span(&pieces), buf_span(&whole)), "%s: %s", bytes,
					buf_span(&pieces).p);
		} else {
			statuses_of(&pieces, statuses, sizeof(statuses));
			ck_assert_str_eq(statuses, talks[_i].statuses);
		}
	}
}
END_TEST

START_TEST(nul_is_refused)
{
	static const char bytes[] = "GET /ping HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n";
	AUTO(buf) struct buf got = BUF_INIT(PEER_MAX);

	served_talk((struct span){ .p = bytes, .n = sizeof(bytes) - 1 }, 0, &got);
	ck_assert_ptr_nonnull(strstr(got.p, "HTTP/1.1 400 "));
}
END_TEST

/* A head with a target of target_n bytes, and fields_n fields of field_n bytes beside Host. */
static void big_head(struct buf *b, size_t target_n, size_t fields_n, size_t field_n)
{
	autofree char *fill = mem_array(PEER_MAX, 1);

	memset(fill, 'a', PEER_MAX - 1);
	ck_assert_int_eq(buf_appendf(b, "GET /%.*s HTTP/1.1\r\nHost: x\r\n", (int)target_n - 1,
					 fill),
			0);
	for (size_t i = 0; i < fields_n; i++) {
		ck_assert_int_eq(buf_appendf(b, "A: %.*s\r\n", (int)field_n, fill), 0);
	}
	ck_assert_int_eq(buf_append_str(b, "\r\n"), 0);
}

static const struct {
	size_t target, fields, field;
	const char *status;
} sizes[] = {
	{ HTTP_TARGET_BYTES_MAX, 1, 1, "404" },
	{ HTTP_TARGET_BYTES_MAX + 1, 1, 1, "414" },
	{ 10U << 20, 1, 1, "414" },
	{ 1, HTTP_FIELDS_MAX - 1, 10, "404" },
	{ 1, HTTP_FIELDS_MAX, 10, "431" },
	{ 1, 1, (31U << 10), "404" },
	{ 1, 1, HTTP_HEAD_BYTES_MAX, "431" },
	{ 1, 1, 20U << 20, "431" },
};

START_TEST(heads_have_a_size)
{
	AUTO(buf) struct buf head = BUF_INIT(PEER_MAX);
	AUTO(buf) struct buf got = BUF_INIT(PEER_MAX);

	big_head(&head, sizes[_i].target, sizes[_i].fields, sizes[_i].field);
	served_talk(buf_span(&head), 0, &got);
	ck_assert_ptr_nonnull(got.p);
	ck_assert_int_eq(strncmp(got.p + 9, sizes[_i].status, 3), 0);
}
END_TEST

START_TEST(pipelined_answers_keep_their_order)
{
	AUTO(peer) struct peer p = { .fd = -1 };

	served_connect(&p, 0);
	peer_say(&p, GET("/later") "\r\n" GET("/hello/a") "\r\n" GET("/later") "\r\n" GET(
				     "/hello/b") "\r\n");
	PEER_UNTIL(served_later);
	ck_assert_uint_eq(http_busy(served), 1);
	for (int i = 0; i < 5; i++) {
		peer_step();
	}
	ck_assert_uint_eq(p.got.n, 0);
	struct http_req *first = TAKE_PTR(served_later);

	http_reply(first, 200, NULL, span_of("1"));
	PEER_UNTIL(served_later);
	http_reply(TAKE_PTR(served_later), 200, NULL, span_of("2"));
	PEER_UNTIL(peer_has(&p, "hello b"));
	served_mask(&p.got);
	ck_assert_str_eq(p.got.p, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1"
				  "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
				  "Content-Length: 7\r\n\r\nhello a"
				  "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n2"
				  "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
				  "Content-Length: 7\r\n\r\nhello b");
}
END_TEST

/* What comes behind a request stays in the kernel but for one read. */
START_TEST(pipelined_bytes_are_not_hoarded)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	static const char fill[65536];
	size_t sent = 0;

	served_connect(&p, 0);
	peer_say(&p, GET("/later") "\r\n");
	PEER_UNTIL(served_later);
	for (int idle = 0; idle < 20;) {
		ssize_t n = send(p.fd, fill, sizeof(fill), MSG_DONTWAIT | MSG_NOSIGNAL);

		sent += n > 0 ? (size_t)n : 0;
		idle = n > 0 ? 0 : idle + 1;
		peer_step();
	}
	ck_assert_uint_lt(sent, 4U << 20);
}
END_TEST

START_TEST(half_closed_peers_are_answered)
{
	AUTO(peer) struct peer p = { .fd = -1 };

	served_connect(&p, 0);
	peer_say(&p, GET("/later") "\r\n");
	ck_assert_int_eq(shutdown(p.fd, SHUT_WR), 0);
	PEER_UNTIL(served_later);
	for (int i = 0; i < 5; i++) {
		peer_step();
	}
	ck_assert_int_eq(served_closed, 0);
	http_reply(TAKE_PTR(served_later), 200, NULL, span_of("x"));
	PEER_UNTIL(p.eof);
	ck_assert(peer_has(&p, "\r\n\r\nx"));
	PEER_UNTIL(http_conns(served) == 0);
}
END_TEST

START_TEST(gone_peers_are_noticed)
{
	AUTO(peer) struct peer p = { .fd = -1 };

	served_connect(&p, 0);
	peer_say(&p, GET("/later") "\r\n");
	PEER_UNTIL(served_later);
	if (_i == 1) {
		http_begin(served_later, 200, NULL, UINT64_MAX);
		http_write(served_later, span_of("x"));
	}
	peer_hang_up(&p);
	PEER_UNTIL(served_closed == 1);
	PEER_UNTIL(http_conns(served) == 0);
	ck_assert_uint_eq(http_busy(served), 0);
}
END_TEST

START_TEST(gone_peers_are_noticed_by_a_write)
{
	AUTO(peer) struct peer p = { .fd = -1 };

	served_connect(&p, 0);
	peer_say(&p, GET("/later") "\r\n");
	PEER_UNTIL(served_later);
	peer_hang_up(&p);
	http_begin(served_later, 200, NULL, UINT64_MAX);
	for (int i = 0; i < 10; i++) {
		http_write(served_later, span_of("x"));
		ck_assert_uint_eq(http_pending(served_later), 0);
	}
	ck_assert_int_eq(served_closed, 0);
	PEER_UNTIL(served_closed == 1);
}
END_TEST

START_TEST(requests_end_with_their_server)
{
	AUTO(peer) struct peer p = { .fd = -1 };

	served_connect(&p, 0);
	peer_say(&p, GET("/later") "\r\n");
	PEER_UNTIL(served_later);
	http_server_free(TAKE_PTR(served));
	ck_assert_int_eq(served_closed, 1);
	PEER_UNTIL(p.eof);
}
END_TEST

START_TEST(expectations_are_met)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	const char *path = _i == 0 ? "/echo" : "/stream";
	autofree char *head = mem_printf("POST %s HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\n"
					 "Content-Length: 5\r\n\r\n",
			path);

	served_connect(&p, 0);
	peer_say(&p, head);
	/* The stream is begun before its first byte is asked for. */
	if (_i == 0) {
		PEER_UNTIL(peer_has(&p, "\r\n\r\n"));
		ck_assert_str_eq(p.got.p, "HTTP/1.1 100 Continue\r\n\r\n");
		buf_reset(&p.got);
	}
	peer_say(&p, "hello");
	PEER_UNTIL(peer_has(&p, "hello"));
	ck_assert(!peer_has(&p, "100 Continue"));
}
END_TEST

/* No "100 Continue" to whoever did not wait. */
START_TEST(expectations_in_a_hurry)
{
	AUTO(buf) struct buf got = BUF_INIT(PEER_MAX);

	served_talk(span_of("POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
			    "Content-Length: 5\r\n\r\nhello"),
			0, &got);
	ck_assert_str_eq(got.p, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
				"Content-Length: 5\r\n\r\nhello");
}
END_TEST

/* A client that sends on after an answer of error sees it. */
START_TEST(answers_outlive_unread_bodies)
{
	AUTO(buf) struct buf request = BUF_INIT(PEER_MAX);
	AUTO(buf) struct buf got = BUF_INIT(PEER_MAX);
	autofree char *body = mem_array(8U << 20, 1);

	ck_assert_int_eq(buf_append_str(&request, "POST /echo HTTP/1.1\r\nHost: x\r\n"
						  "Content-Length: 8388608\r\n\r\n"),
			0);
	ck_assert_int_eq(buf_append(&request, body, 8U << 20), 0);
	served_talk(buf_span(&request), 0, &got);
	ck_assert_ptr_nonnull(got.p);
	ck_assert_ptr_nonnull(strstr(got.p, "HTTP/1.1 413 "));
	ck_assert_ptr_nonnull(strstr(got.p, "\r\nConnection: close\r\n"));
}
END_TEST

START_TEST(methods_of_a_path_are_told)
{
	AUTO(buf) struct buf got = BUF_INIT(PEER_MAX);

	served_talk(span_of("DELETE /later HTTP/1.1\r\nHost: x\r\n\r\n"
			    "OPTIONS /later HTTP/1.1\r\nHost: x\r\n\r\n"),
			0, &got);
	ck_assert_str_eq(got.p, "HTTP/1.1 405 Method Not Allowed\r\n"
				"Content-Type: text/plain; charset=utf-8\r\n"
				"Content-Length: 31\r\n"
				"Allow: GET, HEAD, POST, OPTIONS\r\n\r\n"
				"the method is not allowed here\n"
				"HTTP/1.1 204 No Content\r\n"
				"Allow: GET, HEAD, POST, OPTIONS\r\n\r\n");
}
END_TEST

START_TEST(idle_connections_hold_no_buffers)
{
	struct peer p;
	int fds[400];
	size_t before = mallinfo2().uordblks;

	/* As many as fit under the usual limit of descriptors. */
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		served_connect(&p, 0);
		fds[i] = p.fd;
		peer_say(&p, GET("/hello/x") "\r\n");
		PEER_UNTIL(peer_has(&p, "hello x"));
		p.fd = -1;
		peer_done(&p);
	}
	ck_assert_uint_eq(http_conns(served), ARRAY_SIZE(fds));
	ck_assert_uint_eq(http_busy(served), 0);
	ck_assert_uint_lt(mallinfo2().uordblks, before + ARRAY_SIZE(fds) * 1024);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		close(fds[i]);
	}
	PEER_UNTIL(http_conns(served) == 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("http/conn");
	TCase *tc = tcase_create("conn");

	tcase_add_checked_fixture(tc, served_start, served_stop);
	tcase_add_loop_test(tc, talks_are_answered, 0, ARRAY_SIZE(talks));
	tcase_add_test(tc, nul_is_refused);
	tcase_add_loop_test(tc, heads_have_a_size, 0, ARRAY_SIZE(sizes));
	tcase_add_test(tc, pipelined_answers_keep_their_order);
	tcase_add_test(tc, pipelined_bytes_are_not_hoarded);
	tcase_add_test(tc, half_closed_peers_are_answered);
	tcase_add_loop_test(tc, gone_peers_are_noticed, 0, 2);
	tcase_add_test(tc, gone_peers_are_noticed_by_a_write);
	tcase_add_test(tc, requests_end_with_their_server);
	tcase_add_loop_test(tc, expectations_are_met, 0, 2);
	tcase_add_test(tc, expectations_in_a_hurry);
	tcase_add_test(tc, answers_outlive_unread_bodies);
	tcase_add_test(tc, methods_of_a_path_are_told);
	tcase_add_test(tc, idle_connections_hold_no_buffers);
	tcase_set_timeout(tc, 60);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
