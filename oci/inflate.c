/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <limits.h>
#include <string.h>

#include <osbx/mem.h>

#include "inflate.h"
#include "libs.h"

#define GZIP_WINDOW_BITS (15 + 16) /* zlib.h: 16 more expects the gzip wrapper */

enum inflater_state {
	INFLATER_BETWEEN, /* before a member */
	INFLATER_MEMBER,  /* inside one */
	INFLATER_PADDING, /* NUL bytes behind the last one */
	INFLATER_STATE_COUNT,
};

enum inflater_step {
	INFLATER_STEP_MORE,
	INFLATER_STEP_END, /* of a member */
	INFLATER_STEP_BAD,
	INFLATER_STEP_COUNT,
};

struct inflater_out {
	char *p;
	size_t n;
};

struct inflater_ops {
	const char *name;
	bool (*begins)(unsigned char first); /* a member, by its first byte */
	bool (*restart)(struct inflater *z);
	enum inflater_step (*step)(struct inflater *z, struct span *in, struct inflater_out *out);
	void (*done)(struct inflater *z);
};

struct inflater {
	const struct inflater_ops *ops;
	enum inflater_state state;
	bool began; /* a first member was seen */
	const char *why;
	const struct lib_zlib *zlib;
	z_stream zlib_stream;
	const struct lib_zstd *zstd;
	ZSTD_DStream *zstd_stream;
#if OSBX_HAVE_ISAL
	const struct lib_isal *isal;
	struct inflate_state *isal_state;
#endif
};

static unsigned int clamp_uint(size_t n)
{
	return n > UINT_MAX ? UINT_MAX : (unsigned int)n;
}

/* The libraries' interfaces lack const; none writes to its input. */
static unsigned char *input_bytes(struct span in)
{
	return (unsigned char *)(uintptr_t)in.p;
}

static void advance(struct span *in, struct inflater_out *out, size_t in_n, size_t out_n)
{
	in->p += in_n;
	in->n -= in_n;
	out->p += out_n;
	out->n -= out_n;
}

static bool gzip_begins(unsigned char first)
{
	return first == 0x1f;
}

/* A frame or a skippable one. */
static bool zstd_begins(unsigned char first)
{
	return first == 0x28 || (first & 0xf0U) == 0x50;
}

static bool zlib_restart(struct inflater *z)
{
	return z->zlib->inflateReset(&z->zlib_stream) == Z_OK;
}

static enum inflater_step zlib_step(struct inflater *z, struct span *in, struct inflater_out *out)
{
	z_stream *s = &z->zlib_stream;
	unsigned int in_n = clamp_uint(in->n);
	unsigned int out_n = clamp_uint(out->n);
	int rc = Z_OK;

	s->next_in = input_bytes(*in);
	s->avail_in = in_n;
	s->next_out = (unsigned char *)out->p;
	s->avail_out = out_n;
	rc = z->zlib->inflate(s, Z_NO_FLUSH);
	advance(in, out, in_n - s->avail_in, out_n - s->avail_out);
	if (rc == Z_STREAM_END) {
		return INFLATER_STEP_END;
	}
	if (rc != Z_OK && rc != Z_BUF_ERROR) {
		z->why = s->msg ? s->msg : "broken data";
		return INFLATER_STEP_BAD;
	}
	return INFLATER_STEP_MORE;
}

static void zlib_done(struct inflater *z)
{
	(void)z->zlib->inflateEnd(&z->zlib_stream);
}

static bool zstd_restart(struct inflater *z)
{
	return !z->zstd->ZSTD_isError(z->zstd->ZSTD_initDStream(z->zstd_stream));
}

static enum inflater_step zstd_step(struct inflater *z, struct span *in, struct inflater_out *out)
{
	ZSTD_inBuffer src = { .src = in->p, .size = in->n };
	ZSTD_outBuffer dst = { .dst = out->p, .size = out->n };
	size_t rc = z->zstd->ZSTD_decompressStream(z->zstd_stream, &dst, &src);

	advance(in, out, src.pos, dst.pos);
	if (z->zstd->ZSTD_isError(rc)) {
		z->why = z->zstd->ZSTD_getErrorName(rc);
		return INFLATER_STEP_BAD;
	}
	return rc == 0 ? INFLATER_STEP_END : INFLATER_STEP_MORE;
}

static void zstd_done(struct inflater *z)
{
	(void)z->zstd->ZSTD_freeDStream(z->zstd_stream);
}

static const struct inflater_ops zlib_ops = {
	.name = "gzip",
	.begins = gzip_begins,
	.restart = zlib_restart,
	.step = zlib_step,
	.done = zlib_done,
};

static const struct inflater_ops zstd_ops = {
	.name = "zstd",
	.begins = zstd_begins,
	.restart = zstd_restart,
	.step = zstd_step,
	.done = zstd_done,
};

#if OSBX_HAVE_ISAL
static bool isal_restart(struct inflater *z)
{
	z->isal->isal_inflate_init(z->isal_state);
	z->isal_state->crc_flag = ISAL_GZIP;
	return true;
}

static enum inflater_step isal_step(struct inflater *z, struct span *in, struct inflater_out *out)
{
	struct inflate_state *s = z->isal_state;
	unsigned int in_n = clamp_uint(in->n);
	unsigned int out_n = clamp_uint(out->n);
	int rc = 0;

	s->next_in = input_bytes(*in);
	s->avail_in = in_n;
	s->next_out = (unsigned char *)out->p;
	s->avail_out = out_n;
	rc = z->isal->isal_inflate(s);
	advance(in, out, in_n - s->avail_in, out_n - s->avail_out);
	if (rc < 0 || rc == ISAL_NEED_DICT) {
		z->why = rc == ISAL_INCORRECT_CHECKSUM ? "wrong checksum" : "broken data";
		return INFLATER_STEP_BAD;
	}
	return s->block_state == ISAL_BLOCK_FINISH ? INFLATER_STEP_END : INFLATER_STEP_MORE;
}

static void isal_done(struct inflater *z)
{
	free(z->isal_state);
}

static const struct inflater_ops isal_ops = {
	.name = "gzip",
	.begins = gzip_begins,
	.restart = isal_restart,
	.step = isal_step,
	.done = isal_done,
};
#endif

struct magic {
	const char *name; /* of a format that is refused, else NULL */
	enum image_compression kind;
	size_t n;
	unsigned char bytes[6];
};

static const struct magic magics[] = {
	{ .kind = IMAGE_GZIP, .n = 3, .bytes = { 0x1f, 0x8b, 0x08 } },
	{ .kind = IMAGE_ZSTD, .n = 4, .bytes = { 0x28, 0xb5, 0x2f, 0xfd } },
	{ .name = "bzip2", .n = 3, .bytes = { 'B', 'Z', 'h' } },
	{ .name = "xz", .n = 6, .bytes = { 0xfd, '7', 'z', 'X', 'Z', 0x00 } },
	{ .name = "lz4", .n = 4, .bytes = { 0x04, 0x22, 0x4d, 0x18 } },
};

/* A zstd stream may begin with a skippable frame, of one of sixteen magic numbers. */
static bool is_zstd_skippable(struct span head)
{
	const unsigned char *p = (const unsigned char *)head.p;

	return head.n >= 4 && (p[0] & 0xf0U) == 0x50 && p[1] == 0x2a && p[2] == 0x4d &&
	       p[3] == 0x18;
}

int inflate_sniff(struct span head, enum image_compression *out_kind, struct error *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(magics); i++) {
		const struct magic *m = &magics[i];

		if (head.n < m->n || memcmp(head.p, m->bytes, m->n) != 0) {
			continue;
		}
		if (m->name) {
			(void)error_set(e, ERRC_UNSUPPORTED, "%s compression is not supported",
					m->name);
			return error_hint(e, "compress it with gzip or zstd");
		}
		*out_kind = m->kind;
		return 0;
	}
	*out_kind = is_zstd_skippable(head) ? IMAGE_ZSTD : IMAGE_PLAIN;
	return 0;
}

struct inflater *inflater_new_zlib(struct error *e)
{
	const struct lib_zlib *lib = lib_zlib(e);
	struct inflater *z = NULL;

	if (!lib) {
		return NULL;
	}
	z = mem_new(struct inflater);
	z->zlib = lib;
	z->ops = &zlib_ops;
	if (lib->inflateInit2_(&z->zlib_stream, GZIP_WINDOW_BITS, ZLIB_VERSION,
			    (int)sizeof(z->zlib_stream)) != Z_OK) {
		free(z);
		(void)error_set(e, ERRC_UNSUPPORTED, "start zlib: version mismatch");
		return NULL;
	}
	return z;
}

static struct inflater *new_zstd(struct error *e)
{
	const struct lib_zstd *lib = lib_zstd(e);
	struct inflater *z = NULL;

	if (!lib) {
		return NULL;
	}
	z = mem_new(struct inflater);
	z->zstd = lib;
	z->zstd_stream = lib->ZSTD_createDStream();
	z->ops = &zstd_ops;
	if (!z->zstd_stream) {
		free(z);
		(void)error_set(e, ERRC_SYSTEM, "start zstd: out of memory");
		return NULL;
	}
	return z;
}

struct inflater *inflater_new(enum image_compression kind, struct error *e)
{
	assert(kind == IMAGE_GZIP || kind == IMAGE_ZSTD);

	if (kind == IMAGE_ZSTD) {
		return new_zstd(e);
	}
#if OSBX_HAVE_ISAL
	if (lib_isal()) {
		struct inflater *z = mem_new(struct inflater);

		z->isal = lib_isal();
		z->isal_state = mem_new(struct inflate_state);
		z->ops = &isal_ops;
		return z;
	}
#endif
	return inflater_new_zlib(e);
}

void inflater_free(struct inflater *z)
{
	if (!z) {
		return;
	}
	z->ops->done(z);
	free(z);
}

/* Behind a member: the next one, or padding. */
static int next_member(struct inflater *z, struct span *in, struct error *e)
{
	while (z->began && in->n > 0 && in->p[0] == '\0') {
		z->state = INFLATER_PADDING;
		in->p++;
		in->n--;
	}
	if (in->n == 0) {
		return 0;
	}
	if (z->state == INFLATER_PADDING || !z->ops->begins((unsigned char)in->p[0])) {
		return error_set(e, ERRC_INVALID, "%s data is followed by other bytes",
				z->ops->name);
	}
	if (!z->ops->restart(z)) {
		return error_set(e, ERRC_INTERNAL, "restart %s", z->ops->name);
	}
	z->state = INFLATER_MEMBER;
	z->began = true;
	return 0;
}

static int run_member(
		struct inflater *z, struct span *in, struct inflater_out *out, struct error *e)
{
	switch (z->ops->step(z, in, out)) {
	case INFLATER_STEP_END:
		z->state = INFLATER_BETWEEN;
		return 0;
	case INFLATER_STEP_BAD:
		return error_set(e, ERRC_INVALID, "inflate %s: %s", z->ops->name, z->why);
	case INFLATER_STEP_MORE:
	case INFLATER_STEP_COUNT:
		break;
	}
	return 0;
}

int inflater_run(struct inflater *z, struct span *in, char *out, size_t size, size_t *out_n,
		struct error *e)
{
	struct inflater_out left = { .p = out, .n = size };

	for (;;) {
		size_t before = in->n + left.n;

		if (z->state != INFLATER_MEMBER && next_member(z, in, e) < 0) {
			return -1;
		}
		if (z->state != INFLATER_MEMBER) {
			break;
		}
		if (run_member(z, in, &left, e) < 0) {
			return -1;
		}
		if (z->state == INFLATER_MEMBER && (left.n == 0 || in->n + left.n == before)) {
			break;
		}
	}
	*out_n = size - left.n;
	return 0;
}

bool inflater_is_complete(const struct inflater *z)
{
	return z->began && z->state != INFLATER_MEMBER;
}
