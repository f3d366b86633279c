/* SPDX-License-Identifier: Apache-2.0 */
#include "../../../oci/inflate.h"
#include "tarmake.h"

#define MAX (4U << 20)

/* "hello hello hello hello\n" by gzip -9: with real Huffman codes. */
static const char huffman[] =
		"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\x48\xcd\xc9\xc9\x57\xc8\x40\x27\xb9"
		"\x00\x00\x88\x59\x0b\x18\x00\x00\x00";

enum by {
	BY_ISAL,
	BY_ZLIB,
	BY_ZSTD,
	BY_COUNT
};

static struct inflater *new_by(int by, struct error *e)
{
	return by == BY_ZLIB ? inflater_new_zlib(e)
			     : inflater_new(by == BY_ZSTD ? IMAGE_ZSTD : IMAGE_GZIP, e);
}

static void pack(int by, struct buf *out, struct span data)
{
	if (by == BY_ZSTD) {
		tarmake_zstd(out, data);
	} else {
		tarmake_gzip(out, data);
	}
}

/* All of in, given in pieces of in_step, taken in pieces of out_step. 0, or -1 with e set. */
static int inflate_all(struct inflater *z, struct span in, size_t in_step, size_t out_step,
		struct buf *out, struct error *e)
{
	static char piece[65536];

	ck_assert_uint_le(out_step, sizeof(piece));
	for (;;) {
		struct span part = { .p = in.p, .n = in.n < in_step ? in.n : in_step };
		bool at_end = in.n == 0;
		size_t n = 0;

		in = span_from(in, part.n);
		do {
			if (inflater_run(z, &part, piece, out_step, &n, e) < 0) {
				return -1;
			}
			tarmake_put(out, piece, n);
		} while (n == out_step || part.n > 0);
		if (at_end) {
			return 0;
		}
	}
}

static void fill(struct buf *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char c = (char)((i * 7 + i / 251) & 0xff);

		tarmake_put(b, &c, 1);
	}
}

static const size_t steps[][2] = { { 1, 65536 }, { 7, 13 }, { 512, 1 }, { 100000, 65536 },
	{ 65536, 1000 } };

START_TEST(pieces_of_any_size)
{
	int by = _i % BY_COUNT;
	const size_t *step = steps[_i / BY_COUNT];
	AUTO(buf) struct buf plain = BUF_INIT(MAX);
	AUTO(buf) struct buf packed = BUF_INIT(MAX);
	AUTO(buf) struct buf got = BUF_INIT(MAX);
	struct error e = ERROR_INIT;
	AUTO(inflater) struct inflater *z = new_by(by, &e);

	fill(&plain, 150000);
	pack(by, &packed, buf_span(&plain));
	ck_assert_ptr_nonnull(z);
	ck_assert_int_eq(inflate_all(z, buf_span(&packed), step[0], step[1], &got, &e), 0);
	ck_assert(inflater_is_complete(z));
	ck_assert(span_eq(buf_span(&got), buf_span(&plain)));
}
END_TEST

START_TEST(members_and_padding)
{
	int by = _i % BY_COUNT;
	size_t step = _i / BY_COUNT ? 1 : 4096;
	AUTO(buf) struct buf packed = BUF_INIT(MAX);
	AUTO(buf) struct buf got = BUF_INIT(MAX);
	struct error e = ERROR_INIT;
	AUTO(inflater) struct inflater *z = new_by(by, &e);
	static const char zeros[600];

	pack(by, &packed, span_of("one "));
	pack(by, &packed, span_of(""));
	pack(by, &packed, span_of("two"));
	tarmake_put(&packed, zeros, sizeof(zeros));
	ck_assert_int_eq(inflate_all(z, buf_span(&packed), step, 4096, &got, &e), 0);
	ck_assert(inflater_is_complete(z));
	ck_assert(span_eq(buf_span(&got), span_of("one two")));
}
END_TEST

START_TEST(bytes_behind_are_an_error)
{
	int by = _i % BY_COUNT;
	static const char *const behind[] = { "garbage", "\0\0x" };
	AUTO(buf) struct buf packed = BUF_INIT(MAX);
	AUTO(buf) struct buf got = BUF_INIT(MAX);
	struct error e = ERROR_INIT;
	AUTO(inflater) struct inflater *z = new_by(by, &e);

	pack(by, &packed, span_of("one"));
	tarmake_put(&packed, behind[_i / BY_COUNT], 3);
	ck_assert_int_eq(inflate_all(z, buf_span(&packed), 4096, 4096, &got, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
	ck_assert_ptr_nonnull(strstr(e.text, "followed by other bytes"));
}
END_TEST

START_TEST(cut_off_is_not_complete)
{
	AUTO(buf) struct buf packed = BUF_INIT(MAX);
	struct error e = ERROR_INIT;

	pack(_i, &packed, span_of("some bytes of data"));
	for (size_t n = 0; n < packed.n; n++) {
		AUTO(buf) struct buf got = BUF_INIT(MAX);
		AUTO(inflater) struct inflater *z = new_by(_i, &e);

		ck_assert_int_eq(inflate_all(z, (struct span){ .p = packed.p, .n = n }, 5, 4096,
						 &got, &e),
				0);
		ck_assert(!inflater_is_complete(z));
	}
}
END_TEST

START_TEST(wrong_checksum)
{
	AUTO(buf) struct buf packed = BUF_INIT(MAX);
	AUTO(buf) struct buf got = BUF_INIT(MAX);
	struct error e = ERROR_INIT;
	AUTO(inflater) struct inflater *z = new_by(_i, &e);

	tarmake_gzip(&packed, span_of("data"));
	packed.p[packed.n - 6] ^= 1;
	ck_assert_int_eq(inflate_all(z, buf_span(&packed), 4096, 4096, &got, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
}
END_TEST

START_TEST(broken_data)
{
	AUTO(buf) struct buf got = BUF_INIT(MAX);
	struct error e = ERROR_INIT;
	AUTO(inflater) struct inflater *z = new_by(_i, &e);
	static const char *const broken[] = {
		[BY_ISAL] = "\x1f\x8b\x08\x01\x01\x01\x01\x01\x02\x03\x07\x07\x07\x07",
		[BY_ZLIB] = "\x1f\x8b\x08\x01\x01\x01\x01\x01\x02\x03\x07\x07\x07\x07",
		[BY_ZSTD] = "\x28\xb5\x2f\xfd\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff",
	};

	ck_assert_int_eq(inflate_all(z, (struct span){ .p = broken[_i], .n = 14 }, 14, 4096, &got,
					 &e),
			-1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
}
END_TEST

START_TEST(real_codes)
{
	AUTO(buf) struct buf got = BUF_INIT(MAX);
	struct error e = ERROR_INIT;
	AUTO(inflater) struct inflater *z = new_by(_i, &e);
	struct span in = { .p = huffman, .n = sizeof(huffman) - 1 };

	ck_assert_int_eq(inflate_all(z, in, 3, 5, &got, &e), 0);
	ck_assert(span_eq(buf_span(&got), span_of("hello hello hello hello\n")));
	ck_assert(inflater_is_complete(z));
}
END_TEST

START_TEST(sniff)
{
	static const struct {
		const char *bytes;
		size_t n;
		int kind; /* -1: refused */
	} rows[] = {
		{ "", 0, IMAGE_PLAIN },
		{ "\x1f", 1, IMAGE_PLAIN },
		{ "\x1f\x8b\x08\0", 4, IMAGE_GZIP },
		{ "\x28\xb5\x2f\xfd", 4, IMAGE_ZSTD },
		{ "\x50\x2a\x4d\x18", 4, IMAGE_ZSTD },
		{ "\x5f\x2a\x4d\x18", 4, IMAGE_ZSTD },
		{ "\x60\x2a\x4d\x18", 4, IMAGE_PLAIN },
		{ "BZh9", 4, -1 },
		{ "\xfd"
		  "7zXZ\0",
				6, -1 },
		{ "\x04\x22\x4d\x18", 4, -1 },
		{ "etc/passwd", 10, IMAGE_PLAIN },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct error e = ERROR_INIT;
		enum image_compression kind = IMAGE_COMPRESSION_COUNT;
		struct span head = { .p = rows[i].bytes, .n = rows[i].n };

		if (rows[i].kind < 0) {
			ck_assert_int_eq(inflate_sniff(head, &kind, &e), -1);
			ck_assert_int_eq(e.code, ERRC_UNSUPPORTED);
		} else {
			ck_assert_int_eq(inflate_sniff(head, &kind, &e), 0);
			ck_assert_int_eq(kind, rows[i].kind);
		}
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("inflate");
	TCase *tc = tcase_create("all");

	tcase_add_loop_test(tc, pieces_of_any_size, 0, BY_COUNT * (int)ARRAY_SIZE(steps));
	tcase_add_loop_test(tc, members_and_padding, 0, 2 * BY_COUNT);
	tcase_add_loop_test(tc, bytes_behind_are_an_error, 0, 2 * BY_COUNT);
	tcase_add_loop_test(tc, cut_off_is_not_complete, 0, BY_COUNT);
	tcase_add_loop_test(tc, wrong_checksum, 0, BY_ZSTD);
	tcase_add_loop_test(tc, broken_data, 0, BY_COUNT);
	tcase_add_loop_test(tc, real_codes, 0, BY_ZSTD);
	tcase_add_test(tc, sniff);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
