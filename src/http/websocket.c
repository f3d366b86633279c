/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   OPEN ──peer's close, answered──► LEAVING ──all sent──► end(code)
 *    │ └──broken frame, close sent──► DRAINING ──peer has closed──► end(code)
 *    └──websocket_close──► CLOSING ──peer's close──► end(code)
 *
 * Every state but OPEN has CLOSE_MS; where the wait was for the peer's close, the code is then
 * 1006. A connection that is lost ends in every state. DRAINING reads on and drops what it reads: a
 * socket that is closed with bytes unread is reset, and the reset may overtake our close frame.
 *
 * A send that fails only makes us mute: what the peer said before it left is still read, up to the
 * end, where on_close is due. So on_close is only called from the loop, never from within a
 * function of this module. The owner may free the websocket in any callback: depth counts the
 * calls that are still to return, the last of them frees.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/str.h>
#include <osbx/websocket.h>

#include "http_internal.h"
#include "websocket_frame.h"

#define MESSAGE_MAX_DEFAULT (1U << 20)
#define CLOSE_MS            5000
#define READ_BYTES          (16U << 10)
#define DRAINED_BYTES       (16U << 10)
#define REASON_MAX          (WS_CONTROL_MAX - 2)

enum websocket_state {
	WEBSOCKET_OPEN,
	WEBSOCKET_CLOSING,
	WEBSOCKET_LEAVING,
	WEBSOCKET_DRAINING,
};

struct websocket {
	struct loop *loop;
	struct websocket_opts opts;
	enum websocket_state state;
	int fd;
	struct loop_source src;
	struct loop_source timer; /* ping, or the end of a state */
	struct loop_source kick;  /* work that must be done from the loop */
	struct ws_reader reader;
	char *in; /* READ_BYTES, of which in_at..in_n is not looked at yet */
	size_t in_at, in_n;
	struct buf out; /* from out_at on to be sent */
	size_t out_at;
	char ping[WS_CONTROL_MAX];
	size_t ping_n;
	bool ping_waits;
	int64_t heard_ms;
	uint16_t code; /* for on_close */
	bool is_client;
	bool is_paused;
	bool is_lost;   /* the loop has failed us */
	bool is_mute;   /* nothing can be sent any more */
	bool is_pinged; /* since something was heard */
	bool is_dead;
	unsigned int depth;
};

static void watch(struct websocket *ws);
static void timer_arm(struct websocket *ws);

static void detach(struct websocket *ws)
{
	ws->is_dead = true;
	loop_remove(ws->loop, &ws->src);
	loop_remove(ws->loop, &ws->timer);
	loop_remove(ws->loop, &ws->kick);
	fd_close(&ws->fd);
}

static void destroy(struct websocket *ws)
{
	ws_reader_done(&ws->reader);
	buf_done(&ws->out);
	free(ws->in);
	free(ws);
}

/* End of a call that may have freed ws. */
static void leave(struct websocket *ws)
{
	if (--ws->depth == 0 && ws->is_dead) {
		destroy(ws);
	}
}

void websocket_free(struct websocket *ws)
{
	if (ws && !ws->is_dead) {
		detach(ws);
		if (ws->depth == 0) {
			destroy(ws);
		}
	}
}

static void end(struct websocket *ws, uint16_t code)
{
	if (!ws->is_dead) {
		detach(ws);
		ws->opts.on_close(ws, ws->opts.ctx, code);
	}
}

static void kick_on_time(struct loop *loop, struct loop_source *src, uint32_t events);

static void kick(struct websocket *ws)
{
	loop_timer(ws->loop, &ws->kick, clock_boot_ms(), kick_on_time);
}

static void lose(struct websocket *ws)
{
	ws->is_lost = true;
	kick(ws);
}

size_t websocket_pending(const struct websocket *ws)
{
	return ws->out.n - ws->out_at;
}

static void mute(struct websocket *ws)
{
	ws->is_mute = true;
	buf_done(&ws->out);
	ws->out_at = 0;
}

/* Keep what could not be sent. */
static void out_keep(struct websocket *ws, const void *p, size_t n)
{
	if (ws->out_at > ws->out.n / 2) {
		buf_consume(&ws->out, TAKE(ws->out_at, 0));
	}
	int r = buf_append(&ws->out, p, n);

	/* Its maximum is that of a size_t. */
	assert(r == 0);
	(void)r;
}

/* Send at once what goes at once. Number of bytes, or -errno. */
static ssize_t send_now(const struct websocket *ws, struct iovec *parts, size_t parts_n)
{
	struct msghdr msg = { .msg_iov = parts, .msg_iovlen = parts_n };
	ssize_t n = 0;

	do {
		n = sendmsg(ws->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0) {
		return errno == EAGAIN ? 0 : -errno;
	}
	return n;
}

/* RFC 6455 section 5.3: a mask that nobody can foresee. */
static void frame_send_masked(
		struct websocket *ws, const uint8_t *head, size_t head_n, struct span data)
{
	uint8_t mask[4];

	if (getrandom(mask, sizeof(mask), 0) != sizeof(mask)) {
		mute(ws);
		return;
	}
	out_keep(ws, head, head_n);
	size_t before = ws->out.n - head_n;

	ws->out.p[before + 1] = (char)((uint8_t)ws->out.p[before + 1] | 0x80U);
	out_keep(ws, mask, sizeof(mask));
	out_keep(ws, data.p, data.n);
	ws_mask(ws->out.p + ws->out.n - data.n, data.n, mask, 0);
	watch(ws);
}

static void frame_send(struct websocket *ws, enum ws_opcode opcode, struct span data)
{
	uint8_t head[WS_HEAD_MAX];
	size_t head_n = ws_head(opcode, data.n, head);
	size_t sent = 0;

	if (ws->is_dead || ws->is_mute) {
		return;
	}
	if (ws->is_client) {
		frame_send_masked(ws, head, head_n, data);
		return;
	}
	if (websocket_pending(ws) == 0) {
		/* The iovec of a send is not written to. */
		struct iovec parts[] = {
			{ .iov_base = head, .iov_len = head_n },
			{ .iov_base = (void *)(uintptr_t)data.p, .iov_len = data.n },
		};
		ssize_t n = send_now(ws, parts, ARRAY_SIZE(parts));

		if (n < 0) {
			mute(ws);
			return;
		}
		sent = (size_t)n;
		if (sent == head_n + data.n) {
			return;
		}
	}
	if (sent < head_n) {
		out_keep(ws, head + sent, head_n - sent);
	}
	data = span_from(data, sent > head_n ? sent - head_n : 0);
	out_keep(ws, data.p, data.n);
	watch(ws);
}

/* The state after OPEN that is left after CLOSE_MS at the latest. */
static void state_enter(struct websocket *ws, enum websocket_state state, uint16_t code)
{
	ws->state = state;
	ws->code = code;
	ws->is_paused = false;
	timer_arm(ws);
	watch(ws);
}

static void close_send(struct websocket *ws, uint16_t code, struct span reason)
{
	char payload[WS_CONTROL_MAX] = { (char)(code >> 8), (char)code };

	assert(reason.n <= REASON_MAX);
	memcpy(payload + 2, reason.p, reason.n);
	frame_send(ws, WS_OPCODE_CLOSE,
			(struct span){ .p = payload,
					.n = code == WS_CLOSE_NONE ? 0 : 2 + reason.n });
}

static void peer_close(struct websocket *ws)
{
	if (ws->state == WEBSOCKET_CLOSING) {
		end(ws, ws->reader.code);
		return;
	}
	close_send(ws, ws->reader.code, span_of(""));
	if (websocket_pending(ws) == 0) {
		end(ws, ws->reader.code);
		return;
	}
	state_enter(ws, WEBSOCKET_LEAVING, ws->reader.code);
}

static void peer_broken(struct websocket *ws)
{
	if (ws->state == WEBSOCKET_OPEN) {
		close_send(ws, ws->reader.code, span_of(""));
	}
	state_enter(ws, WEBSOCKET_DRAINING, ws->reader.code);
	if (websocket_pending(ws) == 0) {
		(void)shutdown(ws->fd, SHUT_WR);
	}
}

/* Whoever pings and does not read would make us keep all answers: while much is pending only the
 * last ping waits to be answered, which RFC 6455 section 5.5.3 allows. */
static void peer_ping(struct websocket *ws)
{
	struct span payload = ws->reader.payload;

	if (ws->state != WEBSOCKET_OPEN) {
		return;
	}
	if (websocket_pending(ws) <= DRAINED_BYTES) {
		frame_send(ws, WS_OPCODE_PONG, payload);
		return;
	}
	memcpy(ws->ping, payload.p, payload.n);
	ws->ping_n = payload.n;
	ws->ping_waits = true;
}

static void event_carry_out(struct websocket *ws, enum ws_event event)
{
	switch (event) {
	case WS_EVENT_MESSAGE:
		if (ws->state == WEBSOCKET_OPEN) {
			ws->opts.on_message(
					ws, ws->opts.ctx, ws->reader.is_text, ws->reader.payload);
		}
		break;
	case WS_EVENT_PING:
		peer_ping(ws);
		break;
	case WS_EVENT_CLOSE:
		peer_close(ws);
		break;
	case WS_EVENT_BROKEN:
		peer_broken(ws);
		break;
	case WS_EVENT_MORE:
	case WS_EVENT_PONG:
		break;
	}
}

static bool is_reading(const struct websocket *ws)
{
	return !ws->is_paused && ws->state != WEBSOCKET_LEAVING;
}

/* Look at what has been read. */
static void in_use(struct websocket *ws)
{
	while (!ws->is_dead && is_reading(ws)) {
		struct span in = { .p = ws->in + ws->in_at, .n = ws->in_n - ws->in_at };
		enum ws_event event = ws_reader_next(&ws->reader, &in);

		ws->in_at = ws->in_n - in.n;
		if (event == WS_EVENT_MORE) {
			return;
		}
		event_carry_out(ws, event);
	}
}

/* Read once. */
static void in_read(struct websocket *ws)
{
	ssize_t n = recv(ws->fd, ws->in, READ_BYTES, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		return;
	}
	if (n <= 0) {
		end(ws, ws->state == WEBSOCKET_DRAINING ? ws->code : WS_CLOSE_LOST);
		return;
	}
	ws->heard_ms = clock_boot_ms();
	ws->is_pinged = false;
	ws->in_at = 0;
	ws->in_n = (size_t)n;
	in_use(ws);
}

/* Nothing more of ours is to be sent. */
static void out_drained(struct websocket *ws)
{
	if (ws->state == WEBSOCKET_LEAVING) {
		end(ws, ws->code);
	} else if (ws->state == WEBSOCKET_DRAINING) {
		(void)shutdown(ws->fd, SHUT_WR);
	}
}

static void out_flush(struct websocket *ws)
{
	struct iovec part = { .iov_base = ws->out.p + ws->out_at,
		.iov_len = websocket_pending(ws) };
	ssize_t n = send_now(ws, &part, 1);

	if (n < 0) {
		mute(ws);
		n = 0;
	}
	ws->out_at += (size_t)n;
	if (websocket_pending(ws) == 0) {
		ws->out_at = 0;
		/* What a slow peer made us keep once is not kept for ever. */
		buf_done(&ws->out);
	}
	if (websocket_pending(ws) > DRAINED_BYTES) {
		return;
	}
	if (ws->ping_waits && ws->state == WEBSOCKET_OPEN) {
		ws->ping_waits = false;
		frame_send(ws, WS_OPCODE_PONG, (struct span){ .p = ws->ping, .n = ws->ping_n });
	}
	if (ws->state == WEBSOCKET_OPEN && ws->opts.on_drain) {
		ws->opts.on_drain(ws, ws->opts.ctx);
	}
	if (!ws->is_dead && websocket_pending(ws) == 0) {
		out_drained(ws);
	}
}

static void on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct websocket *ws = container_of(src, struct websocket, src);

	(void)loop;
	ws->depth++;
	if (websocket_pending(ws) > 0 && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))) {
		out_flush(ws);
	}
	if (!ws->is_dead && is_reading(ws) && (events & (EPOLLIN | EPOLLERR | EPOLLHUP))) {
		in_read(ws);
	}
	if (!ws->is_dead) {
		watch(ws);
	}
	leave(ws);
}

/* Wait for what is wanted now. */
static void watch(struct websocket *ws)
{
	uint32_t events = (is_reading(ws) ? EPOLLIN : 0U) |
			  (websocket_pending(ws) > 0 ? EPOLLOUT : 0U);

	if (ws->is_dead) {
		return;
	}
	if (events == 0) {
		loop_pause(ws->loop, &ws->src);
		return;
	}
	if (loop_change(ws->loop, &ws->src, events) < 0) {
		lose(ws);
		return;
	}
	loop_resume(ws->loop, &ws->src);
}

static void kick_on_time(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct websocket *ws = container_of(src, struct websocket, kick);

	(void)loop;
	(void)events;
	ws->depth++;
	if (ws->is_lost) {
		end(ws, ws->state == WEBSOCKET_DRAINING ? ws->code : WS_CLOSE_LOST);
	} else {
		in_use(ws);
		watch(ws);
	}
	leave(ws);
}

static void timer_on_time(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct websocket *ws = container_of(src, struct websocket, timer);
	int64_t silent_ms = clock_boot_ms() - ws->heard_ms;

	(void)loop;
	(void)events;
	ws->depth++;
	if (ws->state != WEBSOCKET_OPEN) {
		end(ws, ws->code);
	} else if (ws->is_paused) {
		/* Whom we do not listen to is not silent. */
		ws->heard_ms = clock_boot_ms();
	} else if (silent_ms >= 2 * ws->opts.ping_ms) {
		end(ws, WS_CLOSE_LOST);
	} else if (silent_ms >= ws->opts.ping_ms && !ws->is_pinged) {
		ws->is_pinged = true;
		frame_send(ws, WS_OPCODE_PING, span_of(""));
	}
	if (!ws->is_dead) {
		timer_arm(ws);
	}
	leave(ws);
}

static void timer_arm(struct websocket *ws)
{
	int64_t at_ms = clock_boot_ms() + CLOSE_MS;

	if (ws->is_dead) {
		return;
	}
	if (ws->state == WEBSOCKET_OPEN) {
		if (ws->opts.ping_ms == 0) {
			return;
		}
		at_ms = ws->heard_ms + (ws->is_pinged ? 2 : 1) * ws->opts.ping_ms;
	}
	loop_timer(ws->loop, &ws->timer, at_ms, timer_on_time);
}

void websocket_send_text(struct websocket *ws, struct span data)
{
	if (ws->state == WEBSOCKET_OPEN) {
		frame_send(ws, WS_OPCODE_TEXT, data);
	}
}

void websocket_send_binary(struct websocket *ws, struct span data)
{
	if (ws->state == WEBSOCKET_OPEN) {
		frame_send(ws, WS_OPCODE_BINARY, data);
	}
}

void websocket_pause(struct websocket *ws)
{
	if (ws->state == WEBSOCKET_OPEN && !ws->is_paused) {
		ws->is_paused = true;
		watch(ws);
	}
}

void websocket_resume(struct websocket *ws)
{
	if (ws->is_paused && !ws->is_dead) {
		ws->is_paused = false;
		ws->heard_ms = clock_boot_ms();
		/* Messages that have been read already. */
		kick(ws);
		watch(ws);
	}
}

void websocket_close(struct websocket *ws, uint16_t code, const char *reason)
{
	struct span text = span_of(reason);

	assert(ws_close_may_send(code));
	if (ws->state != WEBSOCKET_OPEN || ws->is_dead) {
		return;
	}
	/* No character is cut in two. */
	while (text.n > REASON_MAX || (text.n > 0 && !span_is_utf8(text))) {
		text.n--;
	}
	close_send(ws, code, text);
	state_enter(ws, WEBSOCKET_CLOSING, WS_CLOSE_LOST);
	if (ws->in_at < ws->in_n) {
		kick(ws);
	}
}

bool websocket_is_wanted(const struct http_req *rq)
{
	return http_field_has(rq, "upgrade", "websocket");
}

/* What is wrong with the handshake; NULL: nothing. */
static const char *handshake_fault(const struct http_req *rq)
{
	if (rq->method != HTTP_GET || http_body_length(rq) != 0) {
		return "a WebSocket is opened by GET without a body";
	}
	if (!websocket_is_wanted(rq) || !http_field_has(rq, "connection", "upgrade")) {
		return "a WebSocket needs \"Connection: Upgrade\" and \"Upgrade: websocket\"";
	}
	if (!ws_key_is_valid(http_field(rq, "sec-websocket-key"))) {
		return "Sec-WebSocket-Key is not 16 bytes in base64";
	}
	return NULL;
}

static bool handshake_check(struct http_req *rq)
{
	const char *fault = handshake_fault(rq);

	if (fault) {
		reply_error(rq, 400, fault);
		return false;
	}
	if (!span_eq(http_field(rq, "sec-websocket-version"), span_of("13"))) {
		http_reply_field(rq, "Sec-WebSocket-Version", "13");
		reply_error(rq, 426, "only version 13 of WebSocket is spoken here");
		return false;
	}
	return true;
}

static void handshake_answer(struct websocket *ws, const char *accept_key)
{
	AUTO(buf) struct buf head = BUF_INIT(SIZE_MAX);
	const char *protocol = ws->opts.protocol;
	int r = buf_appendf(&head,
			"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
			"Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n%s%s%s\r\n",
			accept_key, protocol ? "Sec-WebSocket-Protocol: " : "",
			protocol ? protocol : "", protocol ? "\r\n" : "");
	struct iovec part = { .iov_base = head.p, .iov_len = head.n };
	ssize_t n = send_now(ws, &part, 1);

	assert(r == 0);
	(void)r;
	if (n < 0) {
		mute(ws);
	} else if ((size_t)n < head.n) {
		out_keep(ws, head.p + n, head.n - (size_t)n);
	}
}

/* What the peer has sent behind its handshake without to wait. */
static void rest_take(struct websocket *ws, struct span rest)
{
	size_t size = rest.n > READ_BYTES ? rest.n : READ_BYTES;

	ws->in = mem_array(1, size);
	memcpy(ws->in, rest.p, rest.n);
	ws->in_n = rest.n;
	if (rest.n > 0) {
		kick(ws);
	}
}

/* NULL: fd is closed. */
static struct websocket *websocket_new(
		int fd, struct span rest, struct loop *loop, const struct websocket_opts *opts)
{
	struct websocket *ws = mem_new(struct websocket);

	assert(opts->on_message && opts->on_close);
	ws->loop = loop;
	ws->opts = *opts;
	ws->fd = fd;
	ws->out = (struct buf)BUF_INIT(SIZE_MAX);
	ws->heard_ms = clock_boot_ms();
	ws_reader_init(&ws->reader, opts->message_max ? opts->message_max : MESSAGE_MAX_DEFAULT);
	if (loop_add(loop, &ws->src, fd, EPOLLIN, on_ready) < 0) {
		fd_close(&ws->fd);
		destroy(ws);
		return NULL;
	}
	rest_take(ws, rest);
	return ws;
}

struct websocket *websocket_accept(
		struct http_req *rq, struct loop *loop, const struct websocket_opts *opts)
{
	AUTO(buf) struct buf rest = BUF_INIT(0);
	char accept_key[WS_ACCEPT_SIZE];

	if (!handshake_check(rq)) {
		return NULL;
	}
	ws_accept_key(http_field(rq, "sec-websocket-key"), accept_key);
	int fd = http_take_over(rq, &rest);
	struct websocket *ws = fd < 0 ? NULL : websocket_new(fd, buf_span(&rest), loop, opts);

	if (!ws) {
		return NULL;
	}
	handshake_answer(ws, accept_key);
	timer_arm(ws);
	watch(ws);
	ws->opts.protocol = NULL;
	return ws;
}

_Static_assert(WEBSOCKET_KEY_SIZE == WS_KEY_SIZE, "one key");

int websocket_key_new(char out[WEBSOCKET_KEY_SIZE])
{
	return ws_key_new(out);
}

bool websocket_is_answer(const char *key, struct span accept)
{
	char want[WS_ACCEPT_SIZE];

	ws_accept_key(span_of(key), want);
	return span_eq(accept, span_of(want));
}

struct websocket *websocket_connect(
		int fd, struct span rest, struct loop *loop, const struct websocket_opts *opts)
{
	struct websocket *ws = websocket_new(fd, rest, loop, opts);

	if (ws) {
		ws->is_client = true;
		ws->reader.is_client = true;
		timer_arm(ws);
		watch(ws);
	}
	return ws;
}
