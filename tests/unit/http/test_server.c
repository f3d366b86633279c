/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/un.h>

#include <osbx/fd.h>

#include "served.h"

#define PING "GET /ping HTTP/1.1\r\nHost: x\r\n\r\n"

static int ctx_mark;

static void stop(void)
{
	served_stop();
}

/* A listening socket with an address of the kernel's choice. */
static int listening(struct sockaddr_un *out_a, socklen_t *out_n)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*out_a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	*out_n = sizeof(*out_a);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)out_a, sizeof(sa_family_t)), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)out_a, out_n), 0);
	ck_assert_int_eq(listen(fd, 100), 0);
	return fd;
}

static void dial(struct peer *p, size_t i, const struct sockaddr_un *a, socklen_t n)
{
	*p = (struct peer){
		.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
		.got = BUF_INIT(PEER_MAX),
		.is_reading = true,
	};
	ck_assert_int_eq(connect(p->fd, (const struct sockaddr *)a, n), 0);
	peers[i] = p;
}

START_TEST(listener)
{
	struct sockaddr_un a;
	socklen_t n = 0;
	AUTO(peer) struct peer p = { .fd = -1 };

	served_start();
	ck_assert_int_eq(http_listen(served, listening(&a, &n), 3), 0);
	dial(&p, 0, &a, n);
	peer_say(&p, PING);
	PEER_UNTIL(peer_has(&p, "200 OK"));
	http_listen_stop(served);
	buf_reset(&p.got);
	peer_say(&p, PING);
	PEER_UNTIL(peer_has(&p, "200 OK"));
	int again = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_lt(connect(again, (struct sockaddr *)&a, n), 0);
	close(again);
}
END_TEST

/* A connection over TCP, where bytes that nobody has read reset it at its close. */
static void dial_tcp(struct peer *p)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&a, &n), 0);
	ck_assert_int_eq(listen(fd, 10), 0);
	ck_assert_int_eq(http_listen(served, fd, 1), 0);
	*p = (struct peer){
		.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
		.got = BUF_INIT(PEER_MAX),
		.is_reading = true,
	};
	ck_assert_int_eq(connect(p->fd, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(fd_set_nonblock(p->fd, true), 0);
	peers[0] = p;
}

static const struct {
	const char *head;
	size_t body;
	const char *has;
} unread[] = {
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n", 1000000,
			"HTTP/1.1 413 " },
	{ "POST /nope HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n", 1000000,
			"HTTP/1.1 404 " },
	{ "nonsense\r\n\r\n", 1000000, "HTTP/1.1 400 " },
	{ "GET /ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" PING, 1000000,
			"HTTP/1.1 200 " },
};

START_TEST(answers_survive_unread_bytes)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	autofree char *body = mem_array(unread[_i].body, 1);
	size_t at = 0;

	served_start();
	dial_tcp(&p);
	p.is_reading = false;
	peer_say(&p, unread[_i].head);
	while (at < unread[_i].body) {
		ssize_t n = send(p.fd, body + at, unread[_i].body - at, MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN) {
			break;
		}
		at += n > 0 ? (size_t)n : 0;
		peer_step();
	}
	p.is_reading = true;
	PEER_UNTIL(p.eof);
	ck_assert(peer_has(&p, unread[_i].has));
}
END_TEST

START_TEST(gone_peer_over_tcp)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	const struct linger reset = { .l_onoff = 1 };

	served_start();
	dial_tcp(&p);
	peer_say(&p, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
	PEER_UNTIL(served_later);
	if (_i == 0) {
		/* Closed in order it could still be reading: only writing tells. */
		peer_hang_up(&p);
		for (int i = 0; i < 5; i++) {
			peer_step();
		}
		ck_assert_int_eq(served_closed, 0);
		http_begin(served_later, 200, NULL, UINT64_MAX);
	} else {
		ck_assert_int_eq(setsockopt(p.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
		peer_hang_up(&p);
	}
	PEER_UNTIL(served_closed == 1);
	PEER_UNTIL(http_conns(served) == 0);
}
END_TEST

START_TEST(too_many_connections)
{
	struct peer p[3];

	served_start_with((struct http_opts){ .conns_max = 2 });
	for (size_t i = 0; i < 3; i++) {
		served_connect(&p[i], i);
	}
	PEER_UNTIL(p[2].eof);
	ck_assert(peer_has(&p[2], "HTTP/1.1 503 Service Unavailable"));
	ck_assert(peer_has(&p[2], "\r\nRetry-After: 1\r\n"));
	peer_say(&p[0], PING);
	PEER_UNTIL(peer_has(&p[0], "200 OK"));
	peer_done(&p[0]);
	peer_done(&p[2]);
	PEER_UNTIL(http_conns(served) == 1);
	served_connect(&p[0], 0);
	peer_say(&p[0], PING);
	PEER_UNTIL(peer_has(&p[0], "200 OK"));
	peer_done(&p[0]);
	peer_done(&p[1]);
}
END_TEST

static bool admit_pong(struct http_req *rq)
{
	if (http_field(rq, "x-secret").n > 0) {
		return true;
	}
	http_reply(rq, 401, "text/plain", span_of("no"));
	return false;
}

/* Who may not ask keeps nobody out who may: silent ones, half a head, a refused request. */
START_TEST(room_is_made)
{
	static const char *const says[] = { "", "GET /ping",
		"GET /ping HTTP/1.1\r\nHost: x\r\n\r\n" };
	struct peer p[6];
	struct peer late;

	served_start_with((struct http_opts){
			.conns_max = 3, .makes_room = true, .admit = admit_pong });
	for (size_t i = 0; i < ARRAY_SIZE(p); i++) {
		served_connect(&p[i], i);
		peer_say(&p[i], says[i % ARRAY_SIZE(says)]);
		peer_step();
	}
	served_connect(&late, ARRAY_SIZE(p));
	peer_say(&late, "GET /ping HTTP/1.1\r\nHost: x\r\nX-Secret: 1\r\n\r\n");
	PEER_UNTIL(peer_has(&late, "200 OK"));
	ck_assert_uint_le(http_conns(served), 3);
	ck_assert(!peer_has(&late, "503"));
	for (size_t i = 0; i < ARRAY_SIZE(p); i++) {
		peer_done(&p[i]);
	}
	peer_done(&late);
}
END_TEST

/* Even those that are told so are not without number. */
START_TEST(very_many_connections)
{
	int refused = 0;

	served_start_with((struct http_opts){ .conns_max = 1 });
	for (int i = 0; i < 100; i++) {
		int fds[2];

		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
		refused += http_adopt(served, fds[1], 0) < 0;
	}
	ck_assert_int_gt(refused, 50);
	ck_assert_uint_le(http_conns(served), 40);
}
END_TEST

/* A listener without descriptors to accept with tries again, and does not spin. */
START_TEST(no_descriptors)
{
	struct sockaddr_un a;
	socklen_t n = 0;
	AUTO(peer) struct peer p = { .fd = -1 };
	struct rlimit old;

	served_start();
	ck_assert_int_eq(http_listen(served, listening(&a, &n), 3), 0);
	dial(&p, 0, &a, n);
	peer_say(&p, PING);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	/* peer_step needs none. */
	const struct rlimit none = { .rlim_cur = 3, .rlim_max = old.rlim_max };

	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	for (int i = 0; i < 5; i++) {
		peer_step();
	}
	ck_assert_uint_eq(http_conns(served), 0);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
	PEER_UNTIL(peer_has(&p, "200 OK"));
}
END_TEST

/* What is said, and what becomes of it when nothing more comes. */
static const struct {
	const char *bytes;
	const char *answer; /* NULL: closed without a word */
} slow[] = {
	{ "", NULL },
	{ "\r\n", NULL },
	{ "GET /ping HTTP", "HTTP/1.1 408 " },
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab", "HTTP/1.1 408 " },
	{ "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n",
			"HTTP/1.1 408 " },
	{ PING, "HTTP/1.1 200 OK" },
	{ "POST /nope HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab", "HTTP/1.1 404 " },
	{ "POST /later HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n", "HTTP/1.1 408 " },
};

START_TEST(slow_peers)
{
	AUTO(peer) struct peer p = { .fd = -1 };

	served_start_with((struct http_opts){ .head_ms = 50, .body_ms = 50, .idle_ms = 50 });
	served_connect(&p, 0);
	peer_say(&p, slow[_i].bytes);
	PEER_UNTIL(p.eof);
	if (slow[_i].answer) {
		ck_assert_msg(p.got.p && strncmp(p.got.p, slow[_i].answer,
							 strlen(slow[_i].answer)) == 0,
				"%s", buf_span(&p.got).p);
	} else {
		ck_assert_uint_eq(p.got.n, 0);
	}
	PEER_UNTIL(http_conns(served) == 0);
	ck_assert_ptr_null(served_later);
}
END_TEST

/* A head has one limit, however it drips. */
START_TEST(dripping_head)
{
	AUTO(peer) struct peer p = { .fd = -1 };

	served_start_with((struct http_opts){ .head_ms = 300 });
	served_connect(&p, 0);
	peer_say(&p, "GET /ping HTTP/1.1\r\n");
	while (!p.eof) {
		(void)!send(p.fd, "A", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
		peer_step();
	}
	ck_assert(peer_has(&p, "HTTP/1.1 408 ") || peer_has(&p, "HTTP/1.1 431 "));
	ck_assert(peer_has(&p, "HTTP/1.1 408 "));
}
END_TEST

/* An answer that nobody takes, after its handler is done with it. */
START_TEST(peer_that_does_not_read)
{
	AUTO(peer) struct peer p = { .fd = -1 };
	autofree char *body = mem_array(8U << 20, 1);

	served_start_with((struct http_opts){ .body_ms = 50 });
	served_connect(&p, 0);
	p.is_reading = false;
	peer_say(&p, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
	PEER_UNTIL(served_later);
	http_reply(TAKE_PTR(served_later), 200, NULL, (struct span){ .p = body, .n = 8U << 20 });
	ck_assert_uint_eq(http_conns(served), 1);
	PEER_UNTIL(http_conns(served) == 0);
}
END_TEST

static bool admit(struct http_req *rq)
{
	ck_assert_ptr_eq(rq->server_ctx, &ctx_mark);
	if (rq->route && (rq->route->flags & HTTP_ROUTE_OPEN)) {
		return true;
	}
	if (!span_eq(http_field(rq, "token"), span_of("secret"))) {
		http_reply(rq, 401, NULL, span_of("no"));
		return false;
	}
	return true;
}

static const char *describe(struct http_req *rq, int status, const char *what, struct buf *out)
{
	ck_assert_int_eq(buf_appendf(out, "{%d %s %s}", status, what,
					 rq ? (rq->route ? "route" : "request") : "none"),
			0);
	return "application/json";
}

static void fields(struct http_req *rq, struct buf *out)
{
	ck_assert_ptr_nonnull(rq);
	ck_assert_int_eq(buf_append_str(out, "X-Id: 1\r\n"), 0);
}

static const struct http_route own_routes[] = {
	{ HTTP_GET, "/open", served_ping, HTTP_ROUTE_OPEN },
	{ HTTP_POST, "/small", served_echo, .body_max = 2 },
};

static const struct {
	const char *request;
	const char *answer;
} hooked[] = {
	{ "GET /open HTTP/1.1\r\nHost: x\r\n\r\n",
			"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Id: 1\r\n\r\n" },
	{ "GET /nope HTTP/1.1\r\nHost: x\r\n\r\n",
			"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nX-Id: 1\r\n\r\nno" },
	{ "OPTIONS /open HTTP/1.1\r\nHost: x\r\n\r\n",
			"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nX-Id: 1\r\n\r\nno" },
	{ "GET /nope HTTP/1.1\r\nHost: x\r\nToken: secret\r\n\r\n",
			"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\n"
			"Content-Length: 35\r\nX-Id: 1\r\n\r\n{404 there is nothing here request}" },
	{ "POST /small HTTP/1.1\r\nHost: x\r\nToken: secret\r\nContent-Length: 3\r\n\r\n",
			"HTTP/1.1 413 Content Too Large\r\nContent-Type: application/json\r\n"
			"Content-Length: 34\r\nConnection: close\r\nX-Id: 1\r\n\r\n"
			"{413 the body is too large route}" },
	{ "nonsense\r\n\r\n", "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"
			      "Content-Length: 43\r\nConnection: close\r\nX-Id: 1\r\n\r\n"
			      "{400 the request line is malformed none}" },
};

START_TEST(hooks)
{
	AUTO(buf) struct buf got = BUF_INIT(PEER_MAX);
	const char *body = strstr(hooked[_i].answer, "\r\n\r\n") + 4;

	served_start_with((struct http_opts){
			.routes = own_routes,
			.routes_n = ARRAY_SIZE(own_routes),
			.admit = admit,
			.describe = describe,
			.fields = fields,
			.ctx = &ctx_mark,
	});
	served_talk(span_of(hooked[_i].request), 0, &got);
	autofree char *length = mem_printf("Content-Length: %zu\r\n", strlen(body));

	ck_assert_ptr_nonnull(strstr(got.p, length));
	ck_assert_str_eq(strstr(got.p, "\r\n\r\n") + 4, body);
	ck_assert_ptr_nonnull(strstr(got.p, "\r\nX-Id: 1\r\n\r\n"));
	ck_assert_mem_eq(got.p, hooked[_i].answer, 20);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("http/server");
	TCase *tc = tcase_create("server");

	tcase_add_checked_fixture(tc, NULL, stop);
	tcase_add_test(tc, listener);
	tcase_add_loop_test(tc, answers_survive_unread_bytes, 0, ARRAY_SIZE(unread));
	tcase_add_loop_test(tc, gone_peer_over_tcp, 0, 2);
	tcase_add_test(tc, too_many_connections);
	tcase_add_test(tc, room_is_made);
	tcase_add_test(tc, very_many_connections);
	tcase_add_test(tc, no_descriptors);
	tcase_add_loop_test(tc, slow_peers, 0, ARRAY_SIZE(slow));
	tcase_add_test(tc, dripping_head);
	tcase_add_test(tc, peer_that_does_not_read);
	tcase_add_loop_test(tc, hooks, 0, ARRAY_SIZE(hooked));
	tcase_set_timeout(tc, 60);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
