/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "websocket_frame.h"

#define CLOSE_CODE_BYTES 2
#define MESSAGE_KEEP     (16U << 10)

bool ws_close_may_send(uint16_t code)
{
	/* 1004 is reserved, 1005, 1006 and 1015 are not for the wire; 1016 to 2999 belong to RFCs
	 * to come, 3000 to 4999 to libraries and applications. */
	return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
	       (code >= 3000 && code <= 4999);
}

size_t ws_head(enum ws_opcode opcode, uint64_t n, uint8_t out[WS_HEAD_MAX])
{
	size_t bytes = 0;

	out[0] = (uint8_t)(0x80U | (unsigned int)opcode);
	if (n <= 125) {
		out[1] = (uint8_t)n;
	} else if (n <= UINT16_MAX) {
		out[1] = 126;
		bytes = 2;
	} else {
		out[1] = 127;
		bytes = 8;
	}
	for (size_t i = 0; i < bytes; i++) {
		out[2 + i] = (uint8_t)(n >> (8 * (bytes - 1 - i)));
	}
	return 2 + bytes;
}

void ws_reader_init(struct ws_reader *r, size_t message_max)
{
	*r = (struct ws_reader){
		.message = BUF_INIT(message_max),
		.control = BUF_INIT(WS_CONTROL_MAX),
	};
}

void ws_reader_done(struct ws_reader *r)
{
	buf_done(&r->message);
	buf_done(&r->control);
}

static enum ws_event broken(struct ws_reader *r, uint16_t code)
{
	r->is_over = true;
	r->code = code;
	return WS_EVENT_BROKEN;
}

/* How long the head is that begins with these two bytes; 0: the peer may not send it. */
static size_t head_size(const uint8_t head[2], bool is_client)
{
	static const size_t length_bytes[] = { [126 - 126] = 2, [127 - 126] = 8 };
	uint8_t opcode = head[0] & 0x0fU;
	uint8_t length = head[1] & 0x7fU;

	/* Reserved bits without an extension; a client must mask, a server must not. */
	if ((head[0] & 0x70U) || !(head[1] & 0x80U) != is_client) {
		return 0;
	}
	if ((opcode > WS_OPCODE_BINARY && opcode < WS_OPCODE_CLOSE) || opcode > WS_OPCODE_PONG) {
		return 0;
	}
	/* A control frame is short and whole. */
	if (opcode >= WS_OPCODE_CLOSE && (length > WS_CONTROL_MAX || !(head[0] & 0x80U))) {
		return 0;
	}
	return 2 + (length >= 126 ? length_bytes[length - 126] : 0) + (is_client ? 0 : 4);
}

static bool is_control(const struct ws_frame *f)
{
	return f->opcode >= WS_OPCODE_CLOSE;
}

/* The head is there: what frame is it? False: a broken one. */
static bool head_parse(struct ws_reader *r)
{
	struct ws_frame f = { .opcode = r->head[0] & 0x0fU,
		.is_fin = (r->head[0] & 0x80U) != 0,
		.length = r->head[1] & 0x7fU };
	size_t at = r->head_n - (r->is_client ? 0U : 4U);

	if (at > 2) {
		uint64_t min = f.length == 126 ? 126 : (uint64_t)UINT16_MAX + 1;

		f.length = 0;
		for (size_t i = 2; i < at; i++) {
			f.length = f.length << 8 | r->head[i];
		}
		/* Not the shortest form, or the highest bit. */
		if (f.length < min || f.length > INT64_MAX) {
			return false;
		}
	}
	if (!r->is_client) {
		memcpy(f.mask, r->head + at, sizeof(f.mask));
	}
	/* A continuation of nothing, or a new message within one. */
	if (!is_control(&f) && (f.opcode == WS_OPCODE_CONTINUATION) != r->in_message) {
		return false;
	}
	r->frame = f;
	r->done = 0;
	r->head_n = 0;
	r->in_frame = true;
	return true;
}

/* Bytes of a head. False: broken. */
static bool head_feed(struct ws_reader *r, struct span *in)
{
	while (in->n > 0 && !r->in_frame) {
		r->head[r->head_n++] = (uint8_t)in->p[0];
		*in = span_from(*in, 1);
		if (r->head_n < 2) {
			continue;
		}
		size_t size = head_size(r->head, r->is_client);

		if (size == 0 || (r->head_n == size && !head_parse(r))) {
			return false;
		}
	}
	return true;
}

void ws_mask(char *p, size_t n, const uint8_t mask[4], uint64_t done)
{
	uint8_t turned[8];
	uint64_t mask_word = 0;
	size_t i = 0;

	for (size_t k = 0; k < sizeof(turned); k++) {
		turned[k] = mask[(done + k) % 4];
	}
	memcpy(&mask_word, turned, sizeof(mask_word));
	for (; i + sizeof(mask_word) <= n; i += sizeof(mask_word)) {
		uint64_t word = 0;

		memcpy(&word, p + i, sizeof(word));
		word ^= mask_word;
		memcpy(p + i, &word, sizeof(word));
	}
	for (; i < n; i++) {
		p[i] = (char)((uint8_t)p[i] ^ turned[i % 4]);
	}
}

static enum ws_event close_parse(struct ws_reader *r)
{
	struct span s = buf_span(&r->control);
	struct utf8 utf8 = { .left = 0 };

	r->code = WS_CLOSE_NONE;
	if (s.n > 0) {
		if (s.n < CLOSE_CODE_BYTES) {
			return broken(r, WS_CLOSE_PROTOCOL);
		}
		r->code = (uint16_t)((uint8_t)s.p[0] << 8 | (uint8_t)s.p[1]);
		if (!ws_close_may_send(r->code)) {
			return broken(r, WS_CLOSE_PROTOCOL);
		}
		s = span_from(s, CLOSE_CODE_BYTES);
		if (!utf8_feed(&utf8, s) || utf8.left > 0) {
			return broken(r, WS_CLOSE_NOT_UTF8);
		}
	}
	r->is_over = true;
	r->payload = s;
	return WS_EVENT_CLOSE;
}

/* The frame is complete. */
static enum ws_event frame_end(struct ws_reader *r)
{
	r->in_frame = false;
	if (is_control(&r->frame)) {
		r->payload = buf_span(&r->control);
		if (r->frame.opcode == WS_OPCODE_CLOSE) {
			return close_parse(r);
		}
		return r->frame.opcode == WS_OPCODE_PING ? WS_EVENT_PING : WS_EVENT_PONG;
	}
	r->in_message = !r->frame.is_fin;
	if (r->in_message) {
		return WS_EVENT_MORE;
	}
	if (r->is_text && r->utf8.left > 0) {
		return broken(r, WS_CLOSE_NOT_UTF8);
	}
	r->payload = buf_span(&r->message);
	r->is_given = true;
	return WS_EVENT_MESSAGE;
}

/* The first byte of a payload is to come. False: too big a message. */
static bool frame_begin(struct ws_reader *r)
{
	if (is_control(&r->frame)) {
		buf_reset(&r->control);
		return true;
	}
	if (r->frame.opcode != WS_OPCODE_CONTINUATION) {
		r->is_text = r->frame.opcode == WS_OPCODE_TEXT;
		r->utf8 = (struct utf8){ .left = 0 };
	}
	return r->frame.length <= r->message.max - r->message.n;
}

static enum ws_event payload_feed(struct ws_reader *r, struct span *in)
{
	uint64_t left = r->frame.length - r->done;
	size_t n = in->n < left ? in->n : (size_t)left;
	struct buf *to = is_control(&r->frame) ? &r->control : &r->message;

	if (buf_append(to, in->p, n) < 0) {
		return broken(r, WS_CLOSE_TOO_BIG);
	}
	struct span got = { .p = to->p + to->n - n, .n = n };

	if (n > 0 && !r->is_client) {
		ws_mask(to->p + to->n - n, n, r->frame.mask, r->done);
	}
	r->done += n;
	*in = span_from(*in, n);
	if (to == &r->message && r->is_text && !utf8_feed(&r->utf8, got)) {
		return broken(r, WS_CLOSE_NOT_UTF8);
	}
	return r->done == r->frame.length ? frame_end(r) : WS_EVENT_MORE;
}

enum ws_event ws_reader_next(struct ws_reader *r, struct span *in)
{
	if (r->is_given) {
		/* A rare long message must not hold its memory for the connection's life. */
		if (r->message.cap > MESSAGE_KEEP) {
			buf_done(&r->message);
		}
		buf_reset(&r->message);
		r->is_given = false;
	}
	while (!r->is_over) {
		if (!r->in_frame) {
			if (!head_feed(r, in)) {
				return broken(r, WS_CLOSE_PROTOCOL);
			}
			if (!r->in_frame) {
				return WS_EVENT_MORE;
			}
			if (!frame_begin(r)) {
				return broken(r, WS_CLOSE_TOO_BIG);
			}
		}
		if (in->n == 0 && r->frame.length > r->done) {
			return WS_EVENT_MORE;
		}
		enum ws_event event = payload_feed(r, in);

		if (event != WS_EVENT_MORE) {
			return event;
		}
	}
	*in = span_from(*in, in->n);
	return WS_EVENT_MORE;
}
