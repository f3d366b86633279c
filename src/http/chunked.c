/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>

#include "parse.h"

static int hex_value(char ch)
{
	if (ch >= '0' && ch <= '9') {
		return ch - '0';
	}
	if (ch >= 'a' && ch <= 'f') {
		return ch - 'a' + 10;
	}
	return ch >= 'A' && ch <= 'F' ? ch - 'A' + 10 : -1;
}

/* -1 where the byte is not allowed, else the next state. */
static int size_next(struct chunked *c, char ch)
{
	int digit = hex_value(ch);

	if (digit >= 0) {
		/* 2^60 bytes are enough for everybody, and nothing overflows. */
		if (c->left >> 56) {
			return -1;
		}
		c->left = c->left << 4 | (unsigned int)digit;
		return CHUNKED_SIZE_MORE;
	}
	if (c->state == CHUNKED_SIZE) {
		return -1;
	}
	/* No white space in front of an extension: one parser's "5 ;" is another's 5. */
	if (ch == ';') {
		return CHUNKED_EXTENSION;
	}
	return ch == '\r' ? CHUNKED_SIZE_LF : -1;
}

/* Bytes that are dropped: extensions of a chunk, lines of a trailer. */
static int beside_next(
		struct chunked *c, char ch, enum chunked_state more, enum chunked_state at_cr)
{
	unsigned char u = (unsigned char)ch;

	if (ch == '\r') {
		return (int)at_cr;
	}
	if ((u < ' ' && ch != '\t') || u == 0x7f || ++c->beside > PARSE_TRAILER_MAX) {
		return -1;
	}
	return (int)more;
}

static int step(struct chunked *c, char ch)
{
	switch (c->state) {
	case CHUNKED_SIZE:
	case CHUNKED_SIZE_MORE:
		return size_next(c, ch);
	case CHUNKED_EXTENSION:
		return beside_next(c, ch, CHUNKED_EXTENSION, CHUNKED_SIZE_LF);
	case CHUNKED_SIZE_LF:
		c->beside = 0;
		if (ch != '\n') {
			return -1;
		}
		return c->left > 0 ? CHUNKED_DATA : CHUNKED_TRAILER;
	case CHUNKED_DATA_CR:
		return ch == '\r' ? CHUNKED_DATA_LF : -1;
	case CHUNKED_DATA_LF:
		return ch == '\n' ? CHUNKED_SIZE : -1;
	case CHUNKED_TRAILER:
		/* A line that goes on another one would be folded. */
		if (ch == ' ' || ch == '\t') {
			return -1;
		}
		return beside_next(c, ch, CHUNKED_TRAILER_MORE, CHUNKED_END_LF);
	case CHUNKED_TRAILER_MORE:
		return beside_next(c, ch, CHUNKED_TRAILER_MORE, CHUNKED_TRAILER_LF);
	case CHUNKED_TRAILER_LF:
		return ch == '\n' ? CHUNKED_TRAILER : -1;
	case CHUNKED_END_LF:
		return ch == '\n' ? CHUNKED_DONE : -1;
	case CHUNKED_DATA:
	case CHUNKED_DONE:
		break;
	}
	return -1;
}

ssize_t chunked_step(struct chunked *c, struct span bytes)
{
	size_t at = 0;

	while (at < bytes.n && c->state != CHUNKED_DATA && c->state != CHUNKED_DONE) {
		int next = step(c, bytes.p[at]);

		if (next < 0) {
			return -EBADMSG;
		}
		c->state = (enum chunked_state)next;
		at++;
	}
	return (ssize_t)at;
}

void chunked_take(struct chunked *c, uint64_t n)
{
	assert(c->state == CHUNKED_DATA && n <= c->left);
	c->left -= n;
	if (c->left == 0) {
		c->state = CHUNKED_DATA_CR;
	}
}
