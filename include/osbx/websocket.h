/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: http
 * websocket - a WebSocket (RFC 6455) on the event loop, the server's side or the client's.
 *
 * Fragments are put together, ping is answered, close is answered and carried out; text is checked
 * to be UTF-8 (1007), a message beyond message_max is 1009, a broken frame 1002. No extensions.
 */
#ifndef OSBX_WEBSOCKET_H
#define OSBX_WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <osbx/compiler.h>
#include <osbx/http.h>
#include <osbx/loop.h>
#include <osbx/span.h>

struct websocket;

struct websocket_opts {
	size_t message_max;   /* 0: 1 MiB */
	int64_t ping_ms;      /* a ping when so long nothing came, 0: never; twice that: lost */
	const char *protocol; /* chosen subprotocol, NULL: none */
	void (*on_message)(struct websocket *ws, void *ctx, bool is_text, struct span data);
	/* Nearly all has been sent. May be NULL. */
	void (*on_drain)(struct websocket *ws, void *ctx);
	/* Closed by either side or lost; code as received, 1005 without one, 1006 when lost. The
	 * last call; the websocket is freed after it. */
	void (*on_close)(struct websocket *ws, void *ctx, uint16_t code);
	void *ctx;
};

/* Is this request an opening handshake? A request with "Upgrade: websocket" that is none is
 * answered 400 or 426 by websocket_accept. */
bool websocket_is_wanted(const struct http_req *rq) NONNULL(1);
/* Answer 101 and go on as a websocket. NULL: the handshake is refused and answered; rq is gone in
 * both cases. */
struct websocket *websocket_accept(struct http_req *rq, struct loop *loop,
		const struct websocket_opts *opts) MUST_CHECK NONNULL(1, 2, 3);
/* The client's side: the handshake is a GET by http_client with these fields and upgrade
 * "websocket"; its answer, 101, is checked by websocket_is_answer. */
#define WEBSOCKET_KEY_SIZE 25
#define WEBSOCKET_FIELDS   "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n"
/* A key of random bytes. 0 or -errno. */
int websocket_key_new(char out[WEBSOCKET_KEY_SIZE]) NONNULL(1) MUST_CHECK;
/* Is this Sec-WebSocket-Accept the answer to the key? */
bool websocket_is_answer(const char *key, struct span accept) NONNULL(1) MUST_CHECK;
/* Go on over a connection, which is taken over and must not block; rest was read of it already.
 * NULL: it cannot be watched, fd is closed. */
struct websocket *websocket_connect(int fd, struct span rest, struct loop *loop,
		const struct websocket_opts *opts) MUST_CHECK NONNULL(3, 4);
/* Send one message. Nothing is refused: look at websocket_pending. */
void websocket_send_text(struct websocket *ws, struct span data) NONNULL(1);
void websocket_send_binary(struct websocket *ws, struct span data) NONNULL(1);
size_t websocket_pending(const struct websocket *ws) NONNULL(1);
/* Stop and restart to read messages: back-pressure towards the peer. */
void websocket_pause(struct websocket *ws) NONNULL(1);
void websocket_resume(struct websocket *ws) NONNULL(1);
/* Start the closing handshake (5 s, then the connection is cut); on_close follows. */
void websocket_close(struct websocket *ws, uint16_t code, const char *reason) NONNULL(1, 3);
/* Cut and free at once; on_close is not called. */
void websocket_free(struct websocket *ws);

#endif
