/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to a handshake's key: SHA-1 (FIPS 180-4) of less than two blocks, in base64. It proves
 * that the server speaks the protocol, and nothing else; no secret depends on it. */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "websocket_frame.h"

#define SHA1_BYTES 20
#define BLOCK      64
#define GUID       "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#define KEY_BYTES  24 /* base64 of 16 bytes */

static const char base64_set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static uint32_t rotate(uint32_t v, unsigned int by)
{
	return v << by | v >> (32 - by);
}

static void sha1_block(uint32_t h[5], const uint8_t *p)
{
	uint32_t w[80];
	uint32_t a = h[0];
	uint32_t b = h[1];
	uint32_t c = h[2];
	uint32_t d = h[3];
	uint32_t e = h[4];

	for (size_t i = 0; i < 16; i++) {
		w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
		       (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
	}
	for (size_t i = 16; i < ARRAY_SIZE(w); i++) {
		w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	}
	for (size_t i = 0; i < ARRAY_SIZE(w); i++) {
		static const uint32_t k[] = { 0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6 };
		uint32_t f = i < 20              ? (b & c) | (~b & d)
			     : i >= 40 && i < 60 ? (b & c) | (b & d) | (c & d)
						 : b ^ c ^ d;
		uint32_t next = rotate(a, 5) + f + e + k[i / 20] + w[i];

		e = d;
		d = c;
		c = rotate(b, 30);
		b = a;
		a = next;
	}
	h[0] += a;
	h[1] += b;
	h[2] += c;
	h[3] += d;
	h[4] += e;
}

static void sha1(const uint8_t *p, size_t n, uint8_t out[SHA1_BYTES])
{
	uint32_t h[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
	uint8_t blocks[2 * BLOCK] = { 0 };
	size_t used = n + 9 <= BLOCK ? BLOCK : 2 * BLOCK;

	assert(n + 9 <= sizeof(blocks));
	memcpy(blocks, p, n);
	blocks[n] = 0x80;
	blocks[used - 2] = (uint8_t)(n * 8 >> 8);
	blocks[used - 1] = (uint8_t)(n * 8);
	for (size_t i = 0; i < used; i += BLOCK) {
		sha1_block(h, blocks + i);
	}
	for (size_t i = 0; i < SHA1_BYTES; i++) {
		out[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
	}
}

/* n is a multiple of three. */
static void base64(const uint8_t *p, size_t n, char *out)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i += 3) {
		uint32_t group = (uint32_t)p[i] << 16 | (uint32_t)p[i + 1] << 8 | p[i + 2];

		for (unsigned int k = 0; k < 4; k++) {
			out[at++] = base64_set[group >> (18 - 6 * k) & 63U];
		}
	}
	out[at] = '\0';
}

void ws_accept_key(struct span key, char out[WS_ACCEPT_SIZE])
{
	uint8_t text[KEY_BYTES + sizeof(GUID)];
	uint8_t sum[SHA1_BYTES + 1];

	assert(key.n == KEY_BYTES);
	memcpy(text, key.p, KEY_BYTES);
	memcpy(text + KEY_BYTES, GUID, sizeof(GUID));
	sha1(text, sizeof(text) - 1, sum);
	/* A 21st byte of zero makes whole groups of three; its last digit is padding. */
	sum[SHA1_BYTES] = 0;
	base64(sum, sizeof(sum), out);
	out[WS_ACCEPT_SIZE - 2] = '=';
}

int ws_key_new(char out[WS_KEY_SIZE])
{
	uint8_t bytes[18] = { 0 };
	size_t n = 0;

	while (n < 16) {
		ssize_t r = getrandom(bytes + n, 16 - n, 0);

		if (r < 0 && errno != EINTR) {
			return -errno;
		}
		n += r > 0 ? (size_t)r : 0;
	}
	base64(bytes, sizeof(bytes), out);
	out[22] = '=';
	out[23] = '=';
	return 0;
}

bool ws_key_is_valid(struct span key)
{
	if (key.n != KEY_BYTES || key.p[22] != '=' || key.p[23] != '=') {
		return false;
	}
	for (size_t i = 0; i < 22; i++) {
		if (key.p[i] == '\0' || !strchr(base64_set, key.p[i])) {
			return false;
		}
	}
	return true;
}
