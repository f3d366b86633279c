/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include <osbx/http.h>
#include <osbx/http_client.h>
#include <osbx/mem.h>
#include <osbx/str.h>
#include <osbx/websocket.h>

#include "peer.h"

#define NOT_YET 1

static struct http_call *call;
static struct http_call_opts call_opts;
static struct peer far_end;
static struct buf told; /* bodies, pieces in brackets */
static int outcome;
static int status;
static int upgraded_fd;
static char key[WEBSOCKET_KEY_SIZE];
static bool is_answered;
static char *rest;
static bool cancels;

static void on_data(void *ctx, int code, struct span data)
{
	ck_assert_ptr_eq(ctx, &told);
	ck_assert_int_eq(code, 200);
	ck_assert_int_eq(buf_appendf(&told, "[%.*s]", (int)data.n, data.p), 0);
	if (cancels) {
		http_call_cancel(TAKE_PTR(call));
	}
}

static void on_end(void *ctx, int r, const struct http_answer *a)
{
	(void)ctx;
	ck_assert_int_eq(outcome, NOT_YET);
	outcome = r;
	status = a->status;
	upgraded_fd = a->fd;
	ck_assert_int_eq(buf_append(&told, a->body.p, a->body.n), 0);
	if (a->fd >= 0) {
		is_answered = websocket_is_answer(
				key, http_answer_field(a, "sec-websocket-accept"));
		rest = mem_dup(a->rest.p, a->rest.n);
	}
	call = NULL;
}

static void setup(void)
{
	peer_loop = loop_new();
	told = (struct buf)BUF_INIT(PEER_MAX);
	outcome = NOT_YET;
	upgraded_fd = -1;
	cancels = false;
	call_opts = (struct http_call_opts){
		.method = "POST",
		.target = "/a?b",
		.host = "h:1",
		.fields = "X: y\r\n",
		.body = span_of("hi"),
		.body_max = 10,
		.on_end = on_end,
		.ctx = &told,
	};
}

static void teardown(void)
{
	http_call_cancel(TAKE_PTR(call));
	peer_done(&far_end);
	loop_free(peer_loop);
	buf_done(&told);
	free(TAKE_PTR(rest));
	if (upgraded_fd >= 0) {
		close(upgraded_fd);
	}
}

static void start(void)
{
	call = http_call_start(peer_loop, peer_open(&far_end, 0), &call_opts);
	ck_assert_ptr_nonnull(call);
}

START_TEST(request_and_answer)
{
	start();
	PEER_UNTIL(peer_has(&far_end, "hi"));
	ck_assert_str_eq(far_end.got.p,
			"POST /a?b HTTP/1.1\r\nHost: h:1\r\nConnection: close\r\nX: y\r\n"
			"Content-Length: 2\r\n\r\nhi");
	peer_say(&far_end, "HTTP/1.1 201 Made\r\nContent-Length: 3\r\n\r\nyesno");
	PEER_UNTIL(outcome != NOT_YET);
	ck_assert_int_eq(outcome, 0);
	ck_assert_int_eq(status, 201);
	ck_assert_str_eq(told.p, "yes");
}
END_TEST

/* What comes for an answer, and what is made of it. */
static const struct {
	const char *answer;
	int outcome;
	const char *body;
} cases[] = {
	{ "HTTP/1.1 204 No\r\n\r\n", 0, "" },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 0, "" },
	{ "HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", 0, "a" },
	{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\n"
	  "1\r\nc\r\n0\r\nT: v\r\n\r\n",
			0, "abc" },
	{ "HTTP/1.1 200 OK\r\n\r\nto the end", 0, "to the end" },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na", -ECONNRESET, "a" },
	{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", -ECONNRESET, "ab" },
	{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n", -EBADMSG, "" },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na", -EBADMSG, "" },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n0123456789a", -EMSGSIZE, "" },
	{ "HTTP/1.1 101 Up\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n", -EBADMSG, "" },
	{ "HTTP/1.1 20 OK\r\n\r\n", -EBADMSG, "" },
	{ "SSH-2.0-x\r\n\r\n", -EBADMSG, "" },
	{ "HTTP/1.1 200 OK\n\n", -EBADMSG, "" },
	{ "HTTP/1.1 200 OK\r\n", -ECONNRESET, "" },
	{ "", -ECONNRESET, "" },
};

START_TEST(answers)
{
	start();
	peer_say(&far_end, cases[_i].answer);
	ck_assert_int_eq(shutdown(far_end.fd, SHUT_WR), 0);
	PEER_UNTIL(outcome != NOT_YET);
	ck_assert_msg(outcome == cases[_i].outcome, "%d: %d", _i, outcome);
	ck_assert_str_eq(buf_span(&told).p, cases[_i].body);
}
END_TEST

START_TEST(endless_interim_answers)
{
	start();
	for (size_t i = 0; i < 20; i++) {
		peer_say(&far_end, "HTTP/1.1 102 Wait\r\n\r\n");
	}
	PEER_UNTIL(outcome != NOT_YET);
	ck_assert_int_eq(outcome, -EBADMSG);
}
END_TEST

START_TEST(endless_head)
{
	autofree char *line = mem_printf("X: %01000d\r\n", 0);

	start();
	peer_say(&far_end, "HTTP/1.1 200 OK\r\n");
	for (size_t i = 0; i < 40; i++) {
		peer_say(&far_end, line);
	}
	PEER_UNTIL(outcome != NOT_YET);
	ck_assert_int_eq(outcome, -EBADMSG);
}
END_TEST

START_TEST(in_pieces)
{
	call_opts.on_data = on_data;
	start();
	peer_say(&far_end, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n");
	PEER_UNTIL(told.n > 0);
	peer_say(&far_end, "2\r\ncd\r\n0\r\n\r\n");
	PEER_UNTIL(outcome != NOT_YET);
	ck_assert_int_eq(outcome, 0);
	ck_assert_str_eq(told.p, "[ab][cd]");
}
END_TEST

START_TEST(cancelled_in_its_own_call)
{
	call_opts.on_data = on_data;
	cancels = true;
	start();
	peer_say(&far_end, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd");
	PEER_UNTIL(far_end.eof);
	ck_assert_int_eq(outcome, NOT_YET);
	ck_assert_str_eq(told.p, "[abcd]");
}
END_TEST

START_TEST(silence)
{
	call_opts.silence_ms = 20;
	start();
	PEER_UNTIL(outcome != NOT_YET);
	ck_assert_int_eq(outcome, -ETIMEDOUT);
}
END_TEST

/* Our own server at the other end. */
static struct websocket *accepted;

static void echo(struct websocket *ws, void *ctx, bool is_text, struct span data)
{
	if (ctx) {
		ck_assert_int_eq(buf_append(ctx, data.p, data.n), 0);
	} else if (is_text) {
		websocket_send_text(ws, data);
	} else {
		websocket_send_binary(ws, data);
	}
}

static void gone(struct websocket *ws, void *ctx, uint16_t code)
{
	(void)ws;
	if (ctx) {
		ck_assert_int_eq(buf_appendf(ctx, "closed %u", code), 0);
	} else {
		accepted = NULL;
	}
}

static void accept_socket(struct http_req *rq)
{
	static const struct websocket_opts opts = { .on_message = echo, .on_close = gone };

	accepted = websocket_accept(rq, peer_loop, &opts);
	websocket_send_text(accepted, span_of("first;"));
}

START_TEST(websocket)
{
	static const struct http_route routes[] = {
		{ .method = HTTP_GET, .pattern = "/ws", .handler = accept_socket }
	};
	static const struct http_opts opts = { .routes = routes, .routes_n = ARRAY_SIZE(routes) };
	struct http_server *server = http_server_new(peer_loop, &opts);
	const struct websocket_opts client_opts = {
		.on_message = echo, .on_close = gone, .ctx = &told
	};
	int fds[2];

	ck_assert_int_eq(websocket_key_new(key), 0);
	autofree char *fields = mem_printf(WEBSOCKET_FIELDS, key);

	ck_assert_int_eq(
			socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
	ck_assert_int_eq(http_adopt(server, fds[0], 0), 0);
	call_opts.method = "GET";
	call_opts.target = "/ws";
	call_opts.fields = fields;
	call_opts.body = span_of("");
	call_opts.upgrade = "websocket";
	call = http_call_start(peer_loop, fds[1], &call_opts);
	PEER_UNTIL(outcome != NOT_YET);
	ck_assert_int_eq(outcome, 0);
	ck_assert_int_eq(status, 101);
	ck_assert(is_answered);
	ck_assert(!websocket_is_answer(key, span_of("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")));
	struct websocket *ws = websocket_connect(
			TAKE_FD(upgraded_fd), span_of(rest), peer_loop, &client_opts);

	ck_assert_ptr_nonnull(ws);
	websocket_send_text(ws, span_of("to and fro;"));
	autofree char *long_text = mem_printf("%070000d;", 7);

	websocket_send_text(ws, span_of(long_text));
	PEER_UNTIL(told.n >= strlen("first;to and fro;") + 70001);
	ck_assert_int_eq(memcmp(told.p, "first;to and fro;0000", 21), 0);
	websocket_close(accepted, 1000, "");
	PEER_UNTIL(strstr(told.p, "closed 1000"));
	http_server_free(server);
}
END_TEST

/* A server that masks is none (RFC 6455 section 5.1). */
START_TEST(websocket_of_a_masking_server)
{
	const struct websocket_opts client_opts = {
		.on_message = echo, .on_close = gone, .ctx = &told
	};
	struct websocket *ws = websocket_connect(
			peer_open(&far_end, 0), span_of(""), peer_loop, &client_opts);

	ck_assert_ptr_nonnull(ws);
	peer_say(&far_end, "\x81\x82\x01\x02\x03\x04ik");
	PEER_UNTIL(far_end.eof);
	peer_hang_up(&far_end);
	PEER_UNTIL(told.n > 0);
	ck_assert_str_eq(told.p, "closed 1002");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("http/client");
	TCase *tc = tcase_create("client");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, request_and_answer);
	tcase_add_loop_test(tc, answers, 0, ARRAY_SIZE(cases));
	tcase_add_test(tc, endless_interim_answers);
	tcase_add_test(tc, endless_head);
	tcase_add_test(tc, in_pieces);
	tcase_add_test(tc, cancelled_in_its_own_call);
	tcase_add_test(tc, silence);
	tcase_add_test(tc, websocket);
	tcase_add_test(tc, websocket_of_a_masking_server);
	tcase_set_timeout(tc, 60);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
