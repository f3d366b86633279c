/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tarmake - tar streams and their compressed forms, byte by byte, and a layer applied to the
 * running test's directory.
 */
#ifndef OSBX_TESTS_TARMAKE_H
#define OSBX_TESTS_TARMAKE_H

#include <stdint.h>
#include <sys/mman.h>

#include <osbx/buf.h>

#include "../../../oci/layer.h"
#include "../unit.h"

#define TARMAKE_MTIME 1000000000

struct tarmake {
	const char *name;
	char type; /* 0: '0' */
	const char *link;
	const char *data;
	unsigned int mode; /* 0: 0644 */
	unsigned int uid;
	unsigned int gid;
	uint64_t size; /* without data */
};

static inline void tarmake_put(struct buf *b, const void *p, size_t n)
{
	ck_assert_int_eq(buf_append(b, p, n), 0);
}

static inline void tarmake_pad(struct buf *b, size_t unit)
{
	static const char zeros[512];

	if (b->n % unit != 0) {
		tarmake_put(b, zeros, unit - b->n % unit);
	}
}

static inline void tarmake_octal(char *field, int digits, uint64_t value)
{
	for (int i = digits - 1; i >= 0; i--) {
		field[i] = (char)('0' + (value & 7));
		value >>= 3;
	}
}

/* Append one entry: a ustar header and its data. */
static inline void tarmake_add(struct buf *b, struct tarmake t)
{
	char h[512] = { 0 };
	unsigned int sum = 0;
	uint64_t size = t.data ? strlen(t.data) : t.size;

	ck_assert_uint_le(strlen(t.name), 100);
	memcpy(h, t.name, strlen(t.name));
	tarmake_octal(h + 100, 7, t.mode ? t.mode : 0644);
	tarmake_octal(h + 108, 7, t.uid);
	tarmake_octal(h + 116, 7, t.gid);
	tarmake_octal(h + 124, 11, size);
	tarmake_octal(h + 136, 11, TARMAKE_MTIME);
	h[156] = t.type ? t.type : '0';
	if (t.link) {
		memcpy(h + 157, t.link, strlen(t.link));
	}
	memcpy(h + 257, "ustar\00000", 8);
	memset(h + 148, ' ', 8);
	for (size_t i = 0; i < sizeof(h); i++) {
		sum += (unsigned char)h[i];
	}
	tarmake_octal(h + 148, 6, sum);
	h[154] = 0;
	tarmake_put(b, h, sizeof(h));
	if (t.data) {
		tarmake_put(b, t.data, strlen(t.data));
		tarmake_pad(b, 512);
	}
}

static inline void tarmake_end(struct buf *b)
{
	static const char zeros[1024];

	tarmake_put(b, zeros, sizeof(zeros));
}

static inline uint32_t tarmake_crc32(struct span data)
{
	uint32_t crc = 0xffffffff;

	for (size_t i = 0; i < data.n; i++) {
		crc ^= (unsigned char)data.p[i];
		for (int k = 0; k < 8; k++) {
			crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320U : 0);
		}
	}
	return ~crc;
}

static inline void tarmake_le(struct buf *b, uint32_t v, int bytes)
{
	for (int i = 0; i < bytes; i++) {
		unsigned char c = (unsigned char)(v >> (8 * i));

		tarmake_put(b, &c, 1);
	}
}

/* A gzip member of stored blocks. */
static inline void tarmake_gzip(struct buf *b, struct span data)
{
	static const char head[10] = "\x1f\x8b\x08\0\0\0\0\0\0\x03";
	struct span rest = data;

	tarmake_put(b, head, sizeof(head));
	do {
		size_t n = rest.n > 65535 ? 65535 : rest.n;

		tarmake_le(b, n == rest.n ? 1 : 0, 1);
		tarmake_le(b, (uint32_t)n, 2);
		tarmake_le(b, ~(uint32_t)n, 2);
		tarmake_put(b, rest.p, n);
		rest = span_from(rest, n);
	} while (rest.n > 0);
	tarmake_le(b, tarmake_crc32(data), 4);
	tarmake_le(b, (uint32_t)data.n, 4);
}

/* A zstd frame of raw blocks. */
static inline void tarmake_zstd(struct buf *b, struct span data)
{
	struct span rest = data;

	tarmake_le(b, 0xfd2fb528, 4);
	tarmake_le(b, 0xa0, 1); /* single segment, content size of 4 bytes */
	tarmake_le(b, (uint32_t)data.n, 4);
	do {
		size_t n = rest.n > 65536 ? 65536 : rest.n;

		tarmake_le(b, (uint32_t)n << 3 | (n == rest.n ? 1U : 0U), 3);
		tarmake_put(b, rest.p, n);
		rest = span_from(rest, n);
	} while (rest.n > 0);
}

/* A descriptor at the start of these bytes. */
static inline int tarmake_fd(struct span data)
{
	int fd = memfd_create("tarmake", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, data.p, data.n), (ssize_t)data.n);
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

#endif
