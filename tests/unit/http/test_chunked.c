/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include <osbx/buf.h>

#include "../../../src/http/parse.h"
#include "../unit.h"

/* Decode all, fed in pieces. Bytes used, or -EBADMSG. */
static ssize_t decode(struct span in, size_t piece, struct buf *out, struct chunked *c)
{
	size_t at = 0;
	size_t fed = 0;

	while (at < in.n && c->state != CHUNKED_DONE) {
		if (at == fed) {
			fed = in.n - at < piece ? in.n : at + piece;
		}
		struct span part = { .p = in.p + at, .n = fed - at };
		ssize_t n = chunked_step(c, part);

		if (n < 0) {
			return n;
		}
		at += (size_t)n;
		if (c->state == CHUNKED_DATA) {
			part = span_from(part, (size_t)n);
			size_t take = part.n < c->left ? part.n : (size_t)c->left;

			ck_assert_int_eq(buf_append(out, part.p, take), 0);
			chunked_take(c, take);
			at += take;
		}
	}
	return (ssize_t)at;
}

static const struct {
	const char *in;
	const char *out; /* NULL: refused */
	const char *rest;
} bodies[] = {
	{ "0\r\n\r\n", "", "" },
	{ "0\r\n\r\nGET", "", "GET" },
	{ "00000\r\n\r\n", "", "" },
	{ "1\r\na\r\n0\r\n\r\n", "a", "" },
	{ "1\r\na\r\n2\r\nbc\r\n0\r\n\r\nx", "abc", "x" },
	{ "a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", "01234567890123456789", "" },
	{ "2\r\n\r\n\r\n0\r\n\r\n", "\r\n", "" },
	{ "3;a=b\r\nabc\r\n0;c\r\n\r\n", "abc", "" },
	{ "0\r\nA: b\r\nC: d\r\n\r\nx", "", "x" },
	{ "000000000000001\r\na\r\n0\r\n\r\n", "a", "" },
	{ "g\r\n", NULL, NULL },
	{ "\r\n", NULL, NULL },
	{ ";a\r\n", NULL, NULL },
	{ " 1\r\na\r\n", NULL, NULL },
	{ "1 \r\na\r\n", NULL, NULL },
	{ "1\na\n", NULL, NULL },
	{ "1\ra\r\n", NULL, NULL },
	{ "1\r\nab\r\n", NULL, NULL },
	{ "1\r\na\n0\r\n\r\n", NULL, NULL },
	{ "1\r\na0\r\n\r\n", NULL, NULL },
	{ "1;\x01\r\na\r\n", NULL, NULL },
	{ "1;\n\r\na\r\n", NULL, NULL },
	{ "0\r\n folded\r\n\r\n", NULL, NULL },
	{ "0\r\nA: b\n\r\n", NULL, NULL },
	{ "0\r\n\rX", NULL, NULL },
	{ "1000000000000000\r\n", NULL, NULL },
	{ "ffffffffffffffffffffffff\r\n", NULL, NULL },
	{ "0x1\r\na\r\n", NULL, NULL },
	{ "-1\r\na\r\n", NULL, NULL },
	{ "+1\r\na\r\n", NULL, NULL },
};

START_TEST(chunks)
{
	struct span in = span_of(bodies[_i].in);

	for (size_t piece = 1; piece <= in.n; piece++) {
		AUTO(buf) struct buf out = BUF_INIT(1000);
		struct chunked c = { .state = CHUNKED_SIZE };
		ssize_t n = decode(in, piece, &out, &c);

		if (!bodies[_i].out) {
			ck_assert_int_eq(n, -EBADMSG);
			continue;
		}
		ck_assert_int_ge(n, 0);
		ck_assert_int_eq(c.state, CHUNKED_DONE);
		ck_assert_str_eq(buf_span(&out).p, bodies[_i].out);
		ck_assert_str_eq(in.p + n, bodies[_i].rest);
	}
}
END_TEST

START_TEST(largest_chunk)
{
	struct chunked c = { .state = CHUNKED_SIZE };

	ck_assert_int_eq(chunked_step(&c, span_of("fffffffffffffff\r\n")), 17);
	ck_assert_int_eq(c.state, CHUNKED_DATA);
	ck_assert_uint_eq(c.left, 0xfffffffffffffff);
}
END_TEST

/* What is dropped has an end: extensions of one chunk, and all of the trailer. */
START_TEST(what_is_dropped_is_bounded)
{
	struct chunked c = { .state = CHUNKED_SIZE };
	const char *piece = _i == 0 ? "x" : "A: b\r\n";
	size_t sum = 0;
	ssize_t n = chunked_step(&c, span_of(_i == 0 ? "1;" : "0\r\n"));

	while (n > 0) {
		ck_assert_uint_lt(sum, 2 * PARSE_TRAILER_MAX);
		n = chunked_step(&c, span_of(piece));
		sum += n > 0 ? (size_t)n : 0;
	}
	ck_assert_int_eq(n, -EBADMSG);
	ck_assert_uint_ge(sum, PARSE_TRAILER_MAX / 2);
}
END_TEST

START_TEST(extensions_of_many_chunks)
{
	struct chunked c = { .state = CHUNKED_SIZE };

	for (int i = 0; i < 100000; i++) {
		ck_assert_int_eq(chunked_step(&c, span_of("1;abcdef\r\n")), 10);
		chunked_take(&c, 1);
		ck_assert_int_eq(chunked_step(&c, span_of("\r\n")), 2);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("http/chunked");
	TCase *tc = tcase_create("chunked");

	tcase_add_loop_test(tc, chunks, 0, (int)(sizeof(bodies) / sizeof(bodies[0])));
	tcase_add_test(tc, largest_chunk);
	tcase_add_loop_test(tc, what_is_dropped_is_bounded, 0, 2);
	tcase_add_test(tc, extensions_of_many_chunks);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
