/* SPDX-License-Identifier: Apache-2.0 */
/*
 * websocket_frame - frames of RFC 6455 as bytes: no sockets, no loop.
 */
#ifndef OSBX_HTTP_WEBSOCKET_FRAME_H
#define OSBX_HTTP_WEBSOCKET_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <osbx/buf.h>
#include <osbx/compiler.h>
#include <osbx/span.h>
#include <osbx/utf8.h>

#define WS_HEAD_MAX    14
#define WS_CONTROL_MAX 125
#define WS_KEY_SIZE    25
#define WS_ACCEPT_SIZE 29 /* base64 of SHA-1 with its NUL */

enum ws_opcode {
	WS_OPCODE_CONTINUATION = 0x0,
	WS_OPCODE_TEXT = 0x1,
	WS_OPCODE_BINARY = 0x2,
	WS_OPCODE_CLOSE = 0x8,
	WS_OPCODE_PING = 0x9,
	WS_OPCODE_PONG = 0xa,
};

enum ws_close {
	WS_CLOSE_NORMAL = 1000,
	WS_CLOSE_PROTOCOL = 1002,
	WS_CLOSE_NONE = 1005, /* never sent: a close frame without a code */
	WS_CLOSE_LOST = 1006, /* never sent: no close frame at all */
	WS_CLOSE_NOT_UTF8 = 1007,
	WS_CLOSE_TOO_BIG = 1009,
};

enum ws_event {
	WS_EVENT_MORE,    /* all input has been used */
	WS_EVENT_MESSAGE, /* a whole message: is_text, payload */
	WS_EVENT_PING,    /* payload is to be sent back */
	WS_EVENT_PONG,
	WS_EVENT_CLOSE,  /* code; the last event */
	WS_EVENT_BROKEN, /* code to close with; the last event */
};

struct ws_frame {
	uint64_t length;
	uint8_t mask[4];
	uint8_t opcode;
	bool is_fin;
};

/* What a client sends, frame by frame, or a server (is_client: we are one); message.max is the
 * longest message. */
struct ws_reader {
	struct buf message;
	struct buf control;
	struct ws_frame frame; /* the one being read */
	uint64_t done;         /* bytes of its payload that have been read */
	uint8_t head[WS_HEAD_MAX];
	uint8_t head_n;
	bool in_frame;
	bool in_message; /* more fragments are to come */
	bool is_text;
	bool is_over;
	bool is_given; /* message was delivered: forget it */
	bool is_client;
	struct utf8 utf8; /* of the message */
	/* The event. */
	struct span payload; /* valid until the next call */
	uint16_t code;
};

void ws_reader_init(struct ws_reader *r, size_t message_max) NONNULL(1);
void ws_reader_done(struct ws_reader *r) NONNULL(1);
/* Use up *in until something has happened. */
enum ws_event ws_reader_next(struct ws_reader *r, struct span *in) NONNULL(1, 2) MUST_CHECK;

/* Head of a server's frame of n bytes into out; its length. */
size_t ws_head(enum ws_opcode opcode, uint64_t n, uint8_t out[WS_HEAD_MAX]) NONNULL(3);
/* Turn n bytes by a mask, of which done bytes were turned before. */
void ws_mask(char *p, size_t n, const uint8_t mask[4], uint64_t done) NONNULL(1, 3);
/* May this code stand in a close frame (RFC 6455 section 7.4)? */
bool ws_close_may_send(uint16_t code);
/* Sec-WebSocket-Accept of a key. */
void ws_accept_key(struct span key, char out[WS_ACCEPT_SIZE]) NONNULL(2);
/* 16 random bytes in base64. 0 or -errno. */
int ws_key_new(char out[WS_KEY_SIZE]) NONNULL(1) MUST_CHECK;
/* 16 bytes in base64 (RFC 6455 section 4.2.1)? */
bool ws_key_is_valid(struct span key);

#endif
