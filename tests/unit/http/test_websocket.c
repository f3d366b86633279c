/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include <osbx/http.h>
#include <osbx/mem.h>
#include <osbx/str.h>
#include <osbx/websocket.h>

#include "peer.h"

#define HANDSHAKE                                                            \
	"GET /ws HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\n" \
	"Upgrade: WebSocket\r\n"
#define KEY        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define VERSION    "Sec-WebSocket-Version: 13\r\n"
#define ANSWER_END "\r\n\r\n"

static struct websocket *socket_now; /* NULL: none */
static struct websocket_opts socket_opts;
static struct buf told; /* "text:…;" */
static int closed;      /* code of on_close, 0: not yet */
static size_t drained;
static bool frees_at_message;
static struct http_server *server;
static struct peer client;

static void on_message(struct websocket *ws, void *ctx, bool is_text, struct span data)
{
	ck_assert_ptr_eq(ctx, &told);
	ck_assert_int_eq(buf_append_str(&told, is_text ? "text:" : "binary:"), 0);
	ck_assert_int_eq(buf_append(&told, data.p, data.n), 0);
	ck_assert_int_eq(buf_append_str(&told, ";"), 0);
	if (frees_at_message) {
		websocket_free(ws);
		websocket_send_text(ws, span_of("not sent"));
		socket_now = NULL;
	}
}

static void on_drain(struct websocket *ws, void *ctx)
{
	(void)ws;
	(void)ctx;
	drained++;
}

static void on_close(struct websocket *ws, void *ctx, uint16_t code)
{
	(void)ctx;
	ck_assert_ptr_eq(ws, socket_now);
	ck_assert_int_eq(closed, 0);
	closed = code;
	/* Allowed, and of no effect. */
	websocket_send_text(ws, span_of("late"));
	websocket_close(ws, 1000, "late");
	websocket_free(ws);
	socket_now = NULL;
}

static void handler(struct http_req *rq)
{
	if (!websocket_is_wanted(rq)) {
		http_reply(rq, 200, NULL, span_of("plain"));
		return;
	}
	socket_now = websocket_accept(rq, peer_loop, &socket_opts);
}

static const struct http_route routes[] = {
	{ .method = HTTP_GET, .pattern = "/ws", .handler = handler },
	{ .method = HTTP_POST, .pattern = "/ws", .handler = handler },
};
static const struct http_opts server_opts = { .routes = routes, .routes_n = ARRAY_SIZE(routes) };

static void setup(void)
{
	peer_loop = loop_new();
	server = http_server_new(peer_loop, &server_opts);
	told = (struct buf)BUF_INIT(PEER_MAX);
	socket_opts = (struct websocket_opts){
		.message_max = 70000,
		.on_message = on_message,
		.on_drain = on_drain,
		.on_close = on_close,
		.ctx = &told,
	};
	ck_assert_int_eq(http_adopt(server, peer_open(&client, 0), 0), 0);
}

static void teardown(void)
{
	websocket_free(socket_now);
	peer_done(&client);
	http_server_free(server);
	loop_free(peer_loop);
	buf_done(&told);
}

/* Opened, and the answer is forgotten. */
static void open_now(void)
{
	peer_say(&client, HANDSHAKE KEY VERSION "\r\n");
	PEER_UNTIL(socket_now && peer_has(&client, ANSWER_END));
	buf_reset(&client.got);
}

static void send_frame(uint8_t first, const char *p, size_t n)
{
	AUTO(buf) struct buf out = BUF_INIT(PEER_MAX);
	static const uint8_t mask[4] = { 1, 2, 3, 4 };
	uint8_t head[10] = { first, (uint8_t)(0x80U | (n < 126 ? n : n < 65536 ? 126 : 127)) };
	size_t head_n = n < 126 ? 2 : n < 65536 ? 4 : 10;

	for (size_t i = 2; i < head_n; i++) {
		head[i] = (uint8_t)((uint64_t)n >> (8 * (head_n - 1 - i)));
	}
	ck_assert_int_eq(buf_append(&out, head, head_n), 0);
	ck_assert_int_eq(buf_append(&out, mask, sizeof(mask)), 0);
	ck_assert_int_eq(buf_reserve(&out, n), 0);
	for (size_t i = 0; i < n; i++) {
		out.p[out.n++] = (char)((uint8_t)p[i] ^ mask[i % 4]);
	}
	peer_send(&client, out.p, out.n);
}

static void expect_got(const char *bytes, size_t n)
{
	PEER_UNTIL(client.got.n >= n);
	ck_assert_uint_eq(client.got.n, n);
	ck_assert_int_eq(memcmp(client.got.p, bytes, n), 0);
}

START_TEST(handshake)
{
	socket_opts.protocol = "v1.example";
	/* A frame that does not wait for the answer. */
	peer_say(&client, HANDSHAKE KEY VERSION "\r\n\x81\x82\x01\x02\x03\x04ik");
	PEER_UNTIL(told.n > 0 && peer_has(&client, ANSWER_END));
	ck_assert_str_eq(client.got.p, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
				       "Connection: Upgrade\r\n"
				       "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
				       "Sec-WebSocket-Protocol: v1.example\r\n\r\n");
	ck_assert_str_eq(told.p, "text:hi;");
}
END_TEST

START_TEST(refused_handshakes)
{
	static const struct {
		const char *request, *want;
	} rows[] = {
		{ HANDSHAKE KEY "\r\n", "HTTP/1.1 426 " },
		{ HANDSHAKE KEY "Sec-WebSocket-Version: 8\r\n\r\n",
				"Sec-WebSocket-Version: 13\r\n" },
		{ HANDSHAKE VERSION "\r\n", "HTTP/1.1 400 " },
		{ HANDSHAKE VERSION "Sec-WebSocket-Key: x\r\n\r\n", "HTTP/1.1 400 " },
		{ HANDSHAKE KEY VERSION "Content-Length: 1\r\n\r\nx", "HTTP/1.1 400 " },
		{ "GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n" KEY VERSION "\r\n",
				"HTTP/1.1 400 " },
		{ "POST /ws HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n" KEY
						VERSION "\r\n",
				"HTTP/1.1 400 " },
		{ "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
				"HTTP/1.1 200 " },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		buf_reset(&client.got);
		peer_say(&client, rows[i].request);
		PEER_UNTIL(peer_has(&client, ANSWER_END));
		ck_assert_msg(peer_has(&client, rows[i].want), "row %zu: %s", i, client.got.p);
		ck_assert_ptr_null(socket_now);
	}
}
END_TEST

START_TEST(messages_both_ways)
{
	autofree char *big = mem_array(1, 70000);

	open_now();
	memset(big, 'b', 70000);
	send_frame(0x01, "fr", 2);
	send_frame(0x89, "ping", 4);
	send_frame(0x80, "ag", 2);
	send_frame(0x82, "\0\xff", 2);
	send_frame(0x82, big, 70000);
	PEER_UNTIL(told.n >= 70000);
	ck_assert_uint_eq(told.n, 10 + 10 + 70000 + 8);
	ck_assert_int_eq(memcmp(told.p, "text:frag;binary:\0\xff;binary:bbb", 30), 0);
	expect_got("\x8a\x04ping", 6);
	buf_reset(&client.got);
	websocket_send_text(socket_now, span_of("ol\xc3\xa1"));
	websocket_send_binary(socket_now, span_of(""));
	expect_got("\x81\x04ol\xc3\xa1\x82\x00", 8);
	buf_reset(&client.got);
	websocket_send_binary(socket_now, (struct span){ .p = big, .n = 70000 });
	PEER_UNTIL(client.got.n >= 70010);
	ck_assert_int_eq(memcmp(client.got.p,
					 "\x82\x7f\0\0\0\0\0\x01\x11\x70"
					 "bb",
					 12),
			0);
}
END_TEST

START_TEST(the_peer_closes)
{
	static const struct {
		const char *payload;
		size_t n;
		int code;
		const char *answer;
		size_t answer_n;
	} rows[] = {
		{ "\x03\xe8"
		  "bye",
				5, 1000, "\x88\x02\x03\xe8", 4 },
		{ "\x0f\xa1", 2, 4001, "\x88\x02\x0f\xa1", 4 },
		{ "", 0, 1005, "\x88\x00", 2 },
	};

	open_now();
	send_frame(0x88, rows[_i].payload, rows[_i].n);
	PEER_UNTIL(closed && client.eof);
	ck_assert_int_eq(closed, rows[_i].code);
	expect_got(rows[_i].answer, rows[_i].answer_n);
}
END_TEST

START_TEST(the_peer_is_lost)
{
	open_now();
	peer_hang_up(&client);
	PEER_UNTIL(closed);
	ck_assert_int_eq(closed, 1006);
}
END_TEST

START_TEST(what_a_lost_peer_said_is_heard)
{
	open_now();
	send_frame(0x81, "last", 4);
	peer_hang_up(&client);
	websocket_send_text(socket_now, span_of("nobody is there"));
	websocket_send_text(socket_now, span_of("nor now"));
	ck_assert_uint_eq(websocket_pending(socket_now), 0);
	ck_assert_int_eq(closed, 0);
	PEER_UNTIL(closed);
	ck_assert_int_eq(closed, 1006);
	ck_assert_str_eq(told.p, "text:last;");
}
END_TEST

START_TEST(a_broken_frame)
{
	static const struct {
		const char *bytes;
		size_t n;
		int code;
	} rows[] = {
		{ "\x81\x05hello", 7, 1002 }, { "\xf1\x80", 2, 1002 },
		{ "\x81\x81\0\0\0\0\xff", 7, 1007 },
		{ "\x82\xff\0\0\0\0\0\x01\x11\x71mask", 14, 1009 },
		{ "\x88\x82\0\0\0\0\x03\xed", 8, 1002 }, /* 1005 */
	};
	char answer[4] = { '\x88', 2, (char)(rows[_i].code >> 8), (char)rows[_i].code };

	open_now();
	peer_send(&client, rows[_i].bytes, rows[_i].n);
	expect_got(answer, 4);
	PEER_UNTIL(client.eof);
	/* The server reads on until we close, too. */
	peer_say(&client, "what was on its way");
	peer_hang_up(&client);
	PEER_UNTIL(closed);
	ck_assert_int_eq(closed, rows[_i].code);
	ck_assert_uint_eq(told.n, 0);
}
END_TEST

START_TEST(the_server_closes)
{
	open_now();
	websocket_close(socket_now, 1001, "going\xc3\xa4");
	websocket_close(socket_now, 1000, "again");
	websocket_send_text(socket_now, span_of("late"));
	expect_got("\x88\x09\x03\xe9going\xc3\xa4", 11);
	/* What the peer sent before it knew is not delivered. */
	send_frame(0x81, "x", 1);
	send_frame(0x88, "\x03\xe9", 2);
	PEER_UNTIL(closed && client.eof);
	ck_assert_int_eq(closed, 1001);
	ck_assert_uint_eq(told.n, 0);
}
END_TEST

START_TEST(a_long_reason_is_cut_between_characters)
{
	open_now();
	/* 61 times two bytes fit into 123. */
	char reason[200];

	for (size_t i = 0; i < 80; i++) {
		memcpy(reason + 2 * i, "\xc3\xa4", 3);
	}
	websocket_close(socket_now, 1000, reason);
	PEER_UNTIL(client.got.n >= 126);
	ck_assert_uint_eq(client.got.n, 2 + 2 + 122);
}
END_TEST

START_TEST(a_peer_that_does_not_read)
{
	size_t bytes = 4U << 20;
	autofree char *piece = mem_array(1, 65536);
	size_t sent = 0;

	open_now();
	client.is_reading = false;
	for (; sent < bytes; sent += 65536) {
		memset(piece, 'a' + (int)(sent / 65536 % 26), 65536);
		websocket_send_binary(socket_now, (struct span){ .p = piece, .n = 65536 });
	}
	ck_assert_uint_gt(websocket_pending(socket_now), bytes / 2);
	/* Pings that nobody reads the answers of: the last one is answered. */
	for (int i = 0; i < 1000; i++) {
		send_frame(0x89, i == 999 ? "last" : "ping", 4);
	}
	size_t pending = websocket_pending(socket_now);

	PEER_UNTIL((send_frame(0x81, "m", 1), told.n > 0));
	ck_assert_uint_le(websocket_pending(socket_now), pending);
	ck_assert_uint_eq(drained, 0);
	client.is_reading = true;
	PEER_UNTIL(drained > 0 && client.got.n >= sent / 65536 * 65546 + 6);
	ck_assert_uint_eq(websocket_pending(socket_now), 0);
	for (size_t i = 0; i < sent / 65536; i++) {
		const char *frame = client.got.p + i * 65546;

		ck_assert_int_eq(memcmp(frame, "\x82\x7f\0\0\0\0\0\x01\0\0", 10), 0);
		ck_assert_int_eq(frame[10], 'a' + (int)(i % 26));
		ck_assert_int_eq(frame[65545], 'a' + (int)(i % 26));
	}
	ck_assert_int_eq(memcmp(client.got.p + sent / 65536 * 65546, "\x8a\x04last", 6), 0);
}
END_TEST

START_TEST(paused)
{
	open_now();
	websocket_pause(socket_now);
	websocket_pause(socket_now);
	send_frame(0x81, "1", 1);
	websocket_send_text(socket_now, span_of("still sent"));
	expect_got("\x81\x0astill sent", 12);
	ck_assert_uint_eq(told.n, 0);
	websocket_resume(socket_now);
	PEER_UNTIL(told.n > 0);
	ck_assert_str_eq(told.p, "text:1;");
	/* What a paused peer said before it left is heard. */
	websocket_pause(socket_now);
	send_frame(0x81, "2", 1);
	peer_hang_up(&client);
	peer_step();
	ck_assert_int_eq(closed, 0);
	websocket_resume(socket_now);
	PEER_UNTIL(closed);
	ck_assert_str_eq(told.p, "text:1;text:2;");
}
END_TEST

static void pausing_on_message(struct websocket *ws, void *ctx, bool is_text, struct span data)
{
	websocket_pause(ws);
	on_message(ws, ctx, is_text, data);
}

START_TEST(paused_within_a_read)
{
	socket_opts.on_message = pausing_on_message;
	open_now();
	send_frame(0x81, "1", 1);
	send_frame(0x81, "2", 1);
	send_frame(0x88, "\x03\xe8", 2);
	PEER_UNTIL(told.n > 0);
	peer_step();
	ck_assert_str_eq(told.p, "text:1;");
	websocket_resume(socket_now);
	PEER_UNTIL(told.n > 7);
	ck_assert_str_eq(told.p, "text:1;text:2;");
	ck_assert_int_eq(closed, 0);
	websocket_resume(socket_now);
	PEER_UNTIL(closed);
	ck_assert_int_eq(closed, 1000);
}
END_TEST

START_TEST(freed_within_a_callback)
{
	frees_at_message = true;
	open_now();
	send_frame(0x81, "1", 1);
	send_frame(0x81, "2", 1);
	PEER_UNTIL(client.eof);
	ck_assert_str_eq(told.p, "text:1;");
	ck_assert_int_eq(closed, 0);
}
END_TEST

START_TEST(a_silent_peer)
{
	socket_opts.ping_ms = 100;
	open_now();
	expect_got("\x89\x00", 2);
	send_frame(0x8a, "", 0);
	PEER_UNTIL(client.got.n >= 4);
	PEER_UNTIL(closed);
	ck_assert_int_eq(closed, 1006);
	ck_assert_uint_eq(client.got.n % 2, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("websocket");
	TCase *tc = tcase_create("websocket");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, handshake);
	tcase_add_test(tc, refused_handshakes);
	tcase_add_test(tc, messages_both_ways);
	tcase_add_loop_test(tc, the_peer_closes, 0, 3);
	tcase_add_test(tc, the_peer_is_lost);
	tcase_add_test(tc, what_a_lost_peer_said_is_heard);
	tcase_add_loop_test(tc, a_broken_frame, 0, 5);
	tcase_add_test(tc, the_server_closes);
	tcase_add_test(tc, a_long_reason_is_cut_between_characters);
	tcase_add_test(tc, a_peer_that_does_not_read);
	tcase_add_test(tc, paused);
	tcase_add_test(tc, paused_within_a_read);
	tcase_add_test(tc, freed_within_a_callback);
	tcase_add_test(tc, a_silent_peer);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
