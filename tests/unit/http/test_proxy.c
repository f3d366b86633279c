/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdint.h>

#include <osbx/http.h>
#include <osbx/http_proxy.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "peer.h"

static const char *const drop[] = { "x-secret", "x-other", NULL };
static const char *const drop_response[] = { "x-powered-by", NULL };

static struct http_server *server;
static struct peer client, backend;
static struct http_proxy_opts opts;
static bool is_started;
static int failed; /* 1 + enum http_proxy_failure, 0: not */
static int ended;
static int marker;

static void on_fail(struct http_req *rq, enum http_proxy_failure why)
{
	ck_assert_ptr_eq(rq->ctx, &marker);
	ck_assert_int_eq(failed, 0);
	failed = 1 + (int)why;
	http_reply(rq, why == HTTP_PROXY_TIMEOUT ? 504 : 502, NULL, span_of("no answer"));
}

static void on_end(void *ctx)
{
	ck_assert_ptr_eq(ctx, &marker);
	ended++;
}

static void handler(struct http_req *rq)
{
	peer_done(&backend);
	int fd = peer_open(&backend, 1);

	opts.target = rq->target;
	rq->ctx = &marker;
	is_started = true;
	http_proxy_start(rq, peer_loop, fd, &opts);
}

static const struct http_route routes[] = {
	{ .pattern = "/{rest*}", .handler = handler, .flags = HTTP_ROUTE_STREAM | HTTP_ROUTE_ANY },
};
static const struct http_opts server_opts = { .routes = routes, .routes_n = ARRAY_SIZE(routes) };

static void setup(void)
{
	peer_loop = loop_new();
	server = http_server_new(peer_loop, &server_opts);
	opts = (struct http_proxy_opts){
		.host = "backend:80",
		.drop = drop,
		.drop_response = drop_response,
		.fail = on_fail,
		.on_end = on_end,
	};
}

static void teardown(void)
{
	peer_done(&client);
	peer_done(&backend);
	http_server_free(server);
	loop_free(peer_loop);
}

/* A new client says this. */
static void ask(const char *request)
{
	peer_done(&client);
	peer_done(&backend);
	is_started = false;
	failed = 0;
	ended = 0;
	ck_assert_int_eq(http_adopt(server, peer_open(&client, 0), 0), 0);
	peer_say(&client, request);
	PEER_UNTIL(is_started);
}

#define GET "GET /p?q=1 HTTP/1.1\r\nHost: x\r\n\r\n"

/* The client asks and the backend has the whole of it. */
static void ask_get(void)
{
	ask(GET);
	PEER_UNTIL(peer_has(&backend, "\r\n\r\n"));
}

static const char *body_of(const struct peer *p)
{
	const char *end = memmem(p->got.p, p->got.n, "\r\n\r\n", 4);

	ck_assert_ptr_nonnull(end);
	return end + 4;
}

static size_t body_n(const struct peer *p)
{
	return p->got.n - (size_t)(body_of(p) - p->got.p);
}

static bool has_head(const struct peer *p)
{
	return peer_has(p, "\r\n\r\n");
}

/* A chunked body, its data as text and behind it what follows the last chunk's line; "(cut)" when
 * it is not complete. */
static char *dechunk(const char *p, size_t n)
{
	AUTO(buf) struct buf out = BUF_INIT(PEER_MAX);
	const char *end = p + n;

	for (;;) {
		char *line = memchr(p, '\n', (size_t)(end - p));
		size_t size = 0;

		if (!line) {
			ck_assert_int_eq(buf_append_str(&out, "(cut)"), 0);
			break;
		}
		for (; *p != '\r'; p++) {
			ck_assert_msg(strchr("0123456789abcdef", *p), "%s", p);
			size = size * 16 + (size_t)(*p >= 'a' ? *p - 'a' + 10 : *p - '0');
		}
		p = line + 1;
		if (size == 0) {
			ck_assert_int_eq(buf_append(&out, p, (size_t)(end - p)), 0);
			break;
		}
		ck_assert_uint_le(size + 2, (size_t)(end - p));
		ck_assert_int_eq(buf_append(&out, p, size), 0);
		ck_assert_int_eq(memcmp(p + size, "\r\n", 2), 0);
		p += size + 2;
	}
	return buf_take(&out);
}

START_TEST(the_head_of_a_request)
{
	opts.add_request = "X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-Proto: http\r\n";
	ask("GET /a%20b/?x=%2F HTTP/1.1\r\nHost: outside\r\nAccept: */*\r\nX-Secret: s\r\n"
	    "Connection: keep-alive, X-Named\r\nKeep-Alive: 5\r\nX-Named: n\r\nTE: trailers\r\n"
	    "connection: x-named-too\r\nX-Named-Too: n\r\nProxy-Authorization: p\r\nCookie: a\r\n"
	    "Cookie: b\r\nProxy-Connection: close\r\nUpgrade: h2c\r\nX-Empty:\r\n\r\n");
	PEER_UNTIL(peer_has(&backend, "\r\n\r\n"));
	ck_assert_str_eq(backend.got.p,
			"GET /a%20b/?x=%2F HTTP/1.1\r\nHost: backend:80\r\nAccept: */*\r\n"
			"Cookie: a\r\nCookie: b\r\nX-Empty: \r\nConnection: close\r\n"
			"X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-Proto: http\r\n\r\n");
	opts.add_request = NULL;
	ask("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
	PEER_UNTIL(peer_has(&backend, "\r\n\r\n"));
	ck_assert_str_eq(backend.got.p,
			"POST / HTTP/1.1\r\nHost: backend:80\r\nContent-Length: 0\r\n"
			"Connection: close\r\n\r\n");
}
END_TEST

START_TEST(the_head_of_an_answer)
{
	opts.add_response = "X-Added: 1\r\nX-Added: 2\r\n";
	ask_get();
	peer_say(&backend, "HTTP/1.0 299 Any reason\r\nDate: then\r\nSet-Cookie: a=1\r\n"
			   "Set-Cookie: b=2\r\nX-Powered-By: p\r\nConnection: x-hop, keep-alive\r\n"
			   "X-Hop: 1\r\nKeep-Alive: 1\r\nContent-Length: 2\r\nX-Latin: \xe4\r\n"
			   "Content-Type: text/x\r\n\r\nok");
	PEER_UNTIL(has_head(&client) && body_n(&client) == 2 && ended);
	ck_assert_str_eq(client.got.p,
			"HTTP/1.1 299 \r\nContent-Length: 2\r\nDate: then\r\nSet-Cookie: a=1\r\n"
			"Set-Cookie: b=2\r\nX-Latin: \xe4\r\nContent-Type: text/x\r\n"
			"X-Added: 1\r\nX-Added: 2\r\n\r\nok");
	ck_assert_int_eq(failed, 0);
	ck_assert_int_eq(ended, 1);
	/* The connection goes on, with a backend of its own. */
	is_started = false;
	peer_say(&client, GET);
	PEER_UNTIL(is_started);
}
END_TEST

START_TEST(locations)
{
	static const struct {
		const char *from, *want;
	} rows[] = {
		{ "/", "/proxy/80/" },
		{ "/x?y=/proxy/80", "/proxy/80/x?y=/proxy/80" },
		{ "/proxy/80", "/proxy/80" },
		{ "/proxy/80/x", "/proxy/80/x" },
		{ "/proxy/80?x", "/proxy/80?x" },
		{ "/proxy/8000", "/proxy/80/proxy/8000" },
		{ "//other/x", "//other/x" },
		{ "http://other/x", "http://other/x" },
		{ "http://backend:80/x?y", "/proxy/80/x?y" },
		{ "HTTP://Backend/x", "/proxy/80/x" },
		{ "http://backend", "/proxy/80/" },
		{ "http://backend:80?x", "/proxy/80/?x" },
		{ "http://backend:80//x", "/proxy/80//x" },
		{ "http://backend:80/proxy/80/x", "/proxy/80/x" },
		{ "http://backend:8000/x", "http://backend:8000/x" },
		{ "http://backend:80@other/x", "http://backend:80@other/x" },
		{ "http://backend.other/x", "http://backend.other/x" },
		{ "https://backend/x", "https://backend/x" },
		{ "relative", "relative" },
		{ "", "" },
	};

	opts.location_prefix = "/proxy/80";
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		autofree char *answer = mem_printf(
				"HTTP/1.1 302 Found\r\nlocation: %s\r\nContent-Length: 0\r\n\r\n",
				rows[i].from);
		autofree char *want = mem_printf("\r\nlocation: %s\r\n", rows[i].want);

		ask_get();
		peer_say(&backend, answer);
		PEER_UNTIL(has_head(&client));
		ck_assert_msg(peer_has(&client, want), "%s", client.got.p);
	}
}
END_TEST

/* What a client has sent as the prefix, as often as the backend says. */
START_TEST(locations_are_bounded)
{
	static char prefix[16 << 10];
	AUTO(buf) struct buf answer = BUF_INIT(64 << 10);

	memset(prefix, '0', sizeof(prefix) - 1);
	prefix[0] = '/';
	opts.location_prefix = prefix;
	ck_assert_int_eq(buf_append_str(&answer, "HTTP/1.1 302 Found\r\n"), 0);
	for (int i = 0; i < 90; i++) {
		ck_assert_int_eq(buf_append_str(&answer, "Location: /\r\n"), 0);
	}
	ck_assert_int_eq(buf_append_str(&answer, "Content-Length: 0\r\n\r\n"), 0);
	ask_get();
	peer_say(&backend, answer.p);
	PEER_UNTIL(failed != 0);
	ck_assert_int_eq(failed, 1 + HTTP_PROXY_RESPONSE);
}
END_TEST

/* The same for every cut between two writes of the backend. */
static void expect_answer(const char *answer, bool must_close, const char *want_body)
{
	size_t n = strlen(answer);

	for (size_t cut = 1; cut <= n; cut++) {
		ask_get();
		peer_send(&backend, answer, cut);
		peer_step();
		/* Behind the end of the answer nobody listens. */
		(void)send(backend.fd, answer + cut, n - cut, MSG_NOSIGNAL);
		if (must_close) {
			(void)shutdown(backend.fd, SHUT_WR);
		}
		PEER_UNTIL(ended);
		PEER_UNTIL(has_head(&client));
		bool is_chunked = peer_has(&client, "Transfer-Encoding: chunked\r\n");

		PEER_UNTIL(is_chunked ? peer_has(&client, "0\r\n") && str_has_suffix(client.got.p,
										      "\r\n\r\n")
				      : body_n(&client) >= strlen(want_body));
		autofree char *body = is_chunked ? dechunk(body_of(&client), body_n(&client))
						 : mem_strdup(body_of(&client));

		ck_assert_msg(str_eq(body, want_body), "cut at %zu: %s", cut, body);
		ck_assert_int_eq(failed, 0);
		ck_assert_int_eq(ended, 1);
	}
}

START_TEST(bodies_of_answers)
{
	expect_answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false, "hello");
	expect_answer("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", false, "");
	expect_answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, too much", false,
			"hello");
	expect_answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		      "3;ext=1\r\nhel\r\n02\r\nlo\r\n0\r\n\r\n",
			false, "hello\r\n");
	expect_answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nTrailer: X-Sum\r\n\r\n"
		      "5\r\nhello\r\n0\r\nX-Sum: 1\r\nConnection: x\r\nno colon\r\nX-B:2\r\n\r\n",
			false, "helloX-Sum: 1\r\nX-B: 2\r\n\r\n");
	expect_answer("HTTP/1.1 200 OK\r\n\r\nuntil the end", true, "until the end\r\n");
	expect_answer("HTTP/1.0 200 OK\r\n\r\n", true, "\r\n");
	/* Those in between are not passed on. */
	expect_answer("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
		      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
			false, "ok");
}
END_TEST

START_TEST(answers_without_a_body)
{
	static const struct {
		const char *request, *answer, *has, *has_not;
	} rows[] = {
		{ "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n",
				"HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n",
				"Content-Length: 77\r\n", "chunked" },
		{ "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n",
				"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "200 OK",
				"Content-Length" },
		{ GET, "HTTP/1.1 204 No Content\r\nX: y\r\n\r\n", "X: y\r\n", "Content-Length" },
		{ GET, "HTTP/1.1 304 Not Modified\r\nETag: y\r\n\r\n", "ETag: y\r\n", "chunked" },
		{ GET, "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "304 Not Modified",
				"chunked" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		ask(rows[i].request);
		PEER_UNTIL(peer_has(&backend, "\r\n\r\n"));
		peer_say(&backend, rows[i].answer);
		PEER_UNTIL(ended && has_head(&client));
		peer_step();
		ck_assert_uint_eq(body_n(&client), 0);
		ck_assert_msg(peer_has(&client, rows[i].has), "row %zu: %s", i, client.got.p);
		ck_assert_msg(!peer_has(&client, rows[i].has_not), "row %zu: %s", i, client.got.p);
		/* The next answer is one of its own: nothing was left over. */
		is_started = false;
		peer_say(&client, GET);
		PEER_UNTIL(is_started);
	}
}
END_TEST

START_TEST(answers_that_are_none)
{
	static const char *const bad[] = {
		"SSH-2.0-x\r\n\r\n",
		"HTTP/2 200 OK\r\n\r\n",
		"HTTP/1.1 20 OK\r\n\r\n",
		"HTTP/1.1 099 OK\r\n\r\n",
		"HTTP/1.1 2000 OK\r\n\r\n",
		"HTTP/1.1 200 OK\n\n",
		"HTTP/1.1 200 OK\r\nX: y\n\r\n",
		"HTTP/1.1 200 OK\r\nX : y\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX y\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX: y\r\n z\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX: \x01\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
		"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
		"",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		ask_get();
		peer_say(&backend, bad[i]);
		if (bad[i][0] == '\0') {
			peer_hang_up(&backend);
		}
		PEER_UNTIL(ended && has_head(&client));
		ck_assert_msg(peer_has(&client, "HTTP/1.1 502 "), "row %zu: %s", i, client.got.p);
		ck_assert_int_eq(failed, 1 + HTTP_PROXY_RESPONSE);
		ck_assert_int_eq(ended, 1);
	}
}
END_TEST

START_TEST(a_head_that_is_too_long)
{
	ask_get();
	peer_say(&backend, "HTTP/1.1 200 OK\r\nX: ");
	while (!ended) {
		char bytes[4096];

		memset(bytes, 'x', sizeof(bytes));
		(void)send(backend.fd, bytes, sizeof(bytes), MSG_NOSIGNAL | MSG_DONTWAIT);
		peer_step();
		ck_assert_uint_lt(backend.got.n, 1U << 20);
	}
	PEER_UNTIL(peer_has(&client, "HTTP/1.1 502 "));
}
END_TEST

START_TEST(answers_that_are_cut)
{
	static const char *const answers[] = {
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		size_t head_n = (size_t)(strstr(answers[i], "\r\n\r\n") - answers[i]) + 4;

		for (size_t cut = 0; cut < strlen(answers[i]); cut++) {
			ask_get();
			peer_send(&backend, answers[i], cut);
			peer_hang_up(&backend);
			PEER_UNTIL(ended);
			if (cut < head_n) {
				PEER_UNTIL(peer_has(&client, "HTTP/1.1 502 "));
				continue;
			}
			PEER_UNTIL(client.eof);
			ck_assert_int_eq(failed, 0);
			ck_assert_msg(peer_has(&client, "HTTP/1.1 200 OK"), "%s", client.got.p);
			ck_assert_msg(!peer_has(&client, "\r\n0\r\n"), "%s", client.got.p);
		}
	}
	/* Chunks that are no chunks. */
	ask_get();
	peer_say(&backend, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX\r\n");
	PEER_UNTIL(ended && client.eof);
	ck_assert_int_eq(failed, 0);
}
END_TEST

START_TEST(bodies_of_requests)
{
	static const struct {
		const char *request, *framing, *body;
	} rows[] = {
		{ "PUT /f HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
				"\r\nContent-Length: 5\r\n", "hello" },
		{ "POST /f HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
		  "3;x\r\nhel\r\n0002\r\nlo\r\n0\r\nX-Trailer: 1\r\n\r\n",
				"\r\nTransfer-Encoding: chunked\r\n", "hello\r\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t n = strlen(rows[i].request);
		size_t head_n = (size_t)(strstr(rows[i].request, "\r\n\r\n") - rows[i].request) + 4;

		for (size_t cut = head_n; cut <= n; cut++) {
			autofree char *first = mem_dup(rows[i].request, cut);

			ask(first);
			peer_step();
			peer_send(&client, rows[i].request + cut, n - cut);
			PEER_UNTIL(i == 0 ? has_head(&backend) && body_n(&backend) == 5
					  : peer_has(&backend, "\r\n0\r\n\r\n"));
			autofree char *body = i == 0 ? mem_strdup(body_of(&backend))
						     : dechunk(body_of(&backend), body_n(&backend));

			ck_assert_msg(peer_has(&backend, rows[i].framing), "%s", backend.got.p);
			ck_assert_str_eq(body, rows[i].body);
			peer_say(&backend, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
			PEER_UNTIL(ended && peer_has(&client, "\r\n\r\nok"));
		}
	}
}
END_TEST

START_TEST(a_client_that_waits_for_100)
{
	ask("PUT /f HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
	PEER_UNTIL(peer_has(&client, "HTTP/1.1 100 Continue\r\n\r\n"));
	PEER_UNTIL(has_head(&backend));
	ck_assert(!peer_has(&backend, "Expect"));
	peer_say(&client, "hi");
	PEER_UNTIL(body_n(&backend) == 2);
}
END_TEST

/* The backend refuses what the client is still sending. */
START_TEST(an_early_answer)
{
	static const char bytes[65536];

	ask("POST /f HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n");
	PEER_UNTIL(has_head(&backend));
	backend.is_reading = false;
	for (int i = 0; i < 50; i++) {
		(void)send(client.fd, bytes, sizeof(bytes), MSG_NOSIGNAL | MSG_DONTWAIT);
		peer_step();
	}
	peer_say(&backend, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nno!");
	if (_i == 0) {
		peer_hang_up(&backend);
	}
	PEER_UNTIL(ended && peer_has(&client, "\r\n\r\nno!"));
	ck_assert(peer_has(&client, "HTTP/1.1 413 "));
	ck_assert_int_eq(failed, 0);
}
END_TEST

/* A backend that does not read stops the client; nothing is lost, nothing is piled up. */
START_TEST(back_pressure_of_a_request)
{
	size_t total = 8U << 20;
	autofree char *bytes = mem_array(1, 65536);
	autofree char *head = mem_printf(
			"POST /f HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", total);
	size_t sent = 0;
	int stuck = 0;

	ask(head);
	PEER_UNTIL(has_head(&backend));
	backend.is_reading = false;
	while (sent < total) {
		for (size_t i = 0; i < 65536; i++) {
			bytes[i] = (char)((sent + i) / 251);
		}
		size_t left = total - sent < 65536 ? total - sent : 65536;
		ssize_t n = send(client.fd, bytes, left, MSG_NOSIGNAL | MSG_DONTWAIT);

		sent += n > 0 ? (size_t)n : 0;
		stuck = n > 0 ? 0 : stuck + 1;
		if (stuck == 50) {
			ck_assert_uint_lt(sent, total / 2);
			backend.is_reading = true;
		}
		peer_step();
	}
	PEER_UNTIL(body_n(&backend) == total);
	for (size_t i = 0; i < total; i += 1001) {
		ck_assert_int_eq(body_of(&backend)[i], (char)(i / 251));
	}
}
END_TEST

START_TEST(back_pressure_of_an_answer)
{
	size_t total = 8U << 20;
	autofree char *bytes = mem_array(1, 65536);
	autofree char *head = mem_printf("HTTP/1.1 200 OK\r\n%s: %s\r\n\r\n",
			_i == 0 ? "Content-Length" : "X", _i == 0 ? "8388608" : "y");
	size_t sent = 0;
	int stuck = 0;

	ask_get();
	peer_say(&backend, head);
	PEER_UNTIL(has_head(&client));
	client.is_reading = false;
	memset(bytes, 'd', 65536);
	while (sent < total) {
		size_t left = total - sent < 65536 ? total - sent : 65536;
		ssize_t n = send(backend.fd, bytes, left, MSG_NOSIGNAL | MSG_DONTWAIT);

		sent += n > 0 ? (size_t)n : 0;
		stuck = n > 0 ? 0 : stuck + 1;
		if (stuck == 50) {
			ck_assert_uint_lt(sent, total / 2);
			client.is_reading = true;
		}
		peer_step();
	}
	peer_hang_up(&backend);
	PEER_UNTIL(ended);
	PEER_UNTIL(_i == 0 ? body_n(&client) == total
			   : str_has_suffix(client.got.p, "\r\n0\r\n\r\n"));
	if (_i == 1) {
		autofree char *body = dechunk(body_of(&client), body_n(&client));

		ck_assert_uint_eq(strlen(body), total + 2);
	}
}
END_TEST

START_TEST(events_go_out_as_they_come)
{
	ask_get();
	peer_say(&backend, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
			   "Transfer-Encoding: chunked\r\n\r\n");
	PEER_UNTIL(has_head(&client));
	for (int i = 0; i < 20; i++) {
		autofree char *event = mem_printf("data: %d\n\n", i);
		autofree char *chunk = mem_printf("%zx\r\n%s\r\n", strlen(event), event);

		peer_say(&backend, chunk);
		/* Before the next one is there. */
		PEER_UNTIL(peer_has(&client, chunk));
	}
}
END_TEST

#define UPGRADE                                                                        \
	"GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" \
	"Sec-WebSocket-Key: k\r\n\r\n"
#define SWITCH                                                                              \
	"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" \
	"Sec-WebSocket-Accept: a\r\n\r\n"

START_TEST(a_tunnel)
{
	opts.add_response = "X-Added: 1\r\n";
	ask(UPGRADE "early");
	PEER_UNTIL(has_head(&backend));
	ck_assert_str_eq(backend.got.p,
			"GET /ws HTTP/1.1\r\nHost: backend:80\r\nSec-WebSocket-Key: k\r\n"
			"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
	peer_say(&backend, SWITCH "first");
	PEER_UNTIL(peer_has(&client, "first") && peer_has(&backend, "early"));
	ck_assert_str_eq(client.got.p,
			"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
			"Upgrade: websocket\r\nSec-WebSocket-Accept: a\r\nX-Added: 1\r\n\r\nfirst");
	peer_send(&client, "\0bytes\xff\r\n", 9);
	PEER_UNTIL(body_n(&backend) == 14);
	ck_assert_int_eq(memcmp(body_of(&backend), "early\0bytes\xff\r\n", 14), 0);
	/* Each direction closes for itself. */
	ck_assert_int_eq(shutdown(client.fd, SHUT_WR), 0);
	PEER_UNTIL(backend.eof);
	ck_assert_int_eq(ended, 0);
	peer_say(&backend, "last");
	PEER_UNTIL(peer_has(&client, "firstlast"));
	ck_assert(!client.eof);
	peer_hang_up(&backend);
	PEER_UNTIL(client.eof && ended);
	ck_assert_int_eq(ended, 1);
	ck_assert_int_eq(failed, 0);
}
END_TEST

START_TEST(a_tunnel_has_back_pressure)
{
	size_t total = 4U << 20;
	struct peer *from = _i == 0 ? &client : &backend;
	struct peer *to = _i == 0 ? &backend : &client;
	autofree char *bytes = mem_array(1, 65536);
	size_t sent = 0;
	int stuck = 0;

	ask(UPGRADE);
	PEER_UNTIL(has_head(&backend));
	peer_say(&backend, SWITCH);
	PEER_UNTIL(has_head(&client));
	buf_reset(&to->got);
	to->is_reading = false;
	while (sent < total) {
		for (size_t i = 0; i < 65536; i++) {
			bytes[i] = (char)((sent + i) / 251);
		}
		ssize_t n = send(from->fd, bytes, 65536, MSG_NOSIGNAL | MSG_DONTWAIT);

		sent += n > 0 ? (size_t)n : 0;
		stuck = n > 0 ? 0 : stuck + 1;
		if (stuck == 50) {
			ck_assert_uint_lt(sent, total / 2);
			to->is_reading = true;
		}
		peer_step();
	}
	peer_hang_up(from);
	PEER_UNTIL(to->eof);
	ck_assert_uint_eq(to->got.n, sent);
	for (size_t i = 0; i < sent; i += 1001) {
		ck_assert_int_eq(to->got.p[i], (char)(i / 251));
	}
	peer_hang_up(to);
	PEER_UNTIL(ended);
}
END_TEST

START_TEST(an_upgrade_that_is_refused)
{
	ask(UPGRADE);
	PEER_UNTIL(has_head(&backend));
	peer_say(&backend, "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
	PEER_UNTIL(ended && peer_has(&client, "\r\n\r\nno"));
	/* What would be another HTTP is not even asked for. */
	static const char *const never[] = { "h2c", "HTTP/2.0", "TLS/1.0", "websocket, h2c",
		"H2C" };

	for (size_t i = 0; i < ARRAY_SIZE(never); i++) {
		autofree char *request = mem_printf("GET / HTTP/1.1\r\nHost: x\r\nUpgrade: %s\r\n"
						    "Connection: upgrade\r\n\r\n",
				never[i]);

		ask(request);
		PEER_UNTIL(has_head(&backend));
		ck_assert(!peer_has(&backend, "pgrade"));
	}
	/* Nor with a body. */
	ask("POST / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
	    "Content-Length: 2\r\n\r\nhi");
	PEER_UNTIL(has_head(&backend));
	ck_assert(!peer_has(&backend, "pgrade"));
	/* 101 that does not say to what. */
	ask(UPGRADE);
	PEER_UNTIL(has_head(&backend));
	peer_say(&backend, "HTTP/1.1 101 Switching Protocols\r\n\r\n");
	PEER_UNTIL(peer_has(&client, "HTTP/1.1 502 "));
}
END_TEST

START_TEST(a_backend_that_is_silent)
{
	opts.timeout_ms = 50;
	ask_get();
	PEER_UNTIL(peer_has(&client, "HTTP/1.1 504 "));
	ck_assert_int_eq(failed, 1 + HTTP_PROXY_TIMEOUT);
	ck_assert_int_eq(ended, 1);
	/* Behind the head of its answer it may take its time. */
	ask_get();
	peer_say(&backend, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
	int64_t end_ms = clock_boot_ms() + 200;

	PEER_UNTIL(clock_boot_ms() > end_ms);
	peer_say(&backend, "ok");
	PEER_UNTIL(peer_has(&client, "\r\n\r\nok"));
}
END_TEST

START_TEST(a_client_that_leaves)
{
	ask_get();
	peer_hang_up(&client);
	PEER_UNTIL(ended && backend.eof);
	ck_assert_int_eq(failed, 0);
	ask_get();
	peer_say(&backend, "HTTP/1.1 200 OK\r\n\r\nbegun");
	PEER_UNTIL(peer_has(&client, "begun"));
	peer_hang_up(&client);
	PEER_UNTIL(ended && backend.eof);
	ck_assert_int_eq(ended, 1);
}
END_TEST

int main(void)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	Suite *s = suite_create("proxy");
	TCase *tc = tcase_create("proxy");

	/* pump.h */
	(void)sigaction(SIGPIPE, &ignore, NULL);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, the_head_of_a_request);
	tcase_add_test(tc, the_head_of_an_answer);
	tcase_add_test(tc, locations);
	tcase_add_test(tc, locations_are_bounded);
	tcase_add_test(tc, bodies_of_answers);
	tcase_add_test(tc, answers_without_a_body);
	tcase_add_test(tc, answers_that_are_none);
	tcase_add_test(tc, a_head_that_is_too_long);
	tcase_add_test(tc, answers_that_are_cut);
	tcase_add_test(tc, bodies_of_requests);
	tcase_add_test(tc, a_client_that_waits_for_100);
	tcase_add_loop_test(tc, an_early_answer, 0, 2);
	tcase_add_test(tc, back_pressure_of_a_request);
	tcase_add_loop_test(tc, back_pressure_of_an_answer, 0, 2);
	tcase_add_test(tc, events_go_out_as_they_come);
	tcase_add_test(tc, a_tunnel);
	tcase_add_loop_test(tc, a_tunnel_has_back_pressure, 0, 2);
	tcase_add_test(tc, an_upgrade_that_is_refused);
	tcase_add_test(tc, a_backend_that_is_silent);
	tcase_add_test(tc, a_client_that_leaves);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
