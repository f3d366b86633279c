/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdint.h>

#include <osbx/buf.h>
#include <osbx/mem.h>
#include <osbx/multipart.h>
#include <osbx/str.h>

#include "../unit.h"

#define TYPE "multipart/form-data; boundary=XY"

/* A body that comes in pieces: the first of first_n bytes, the others of at most piece_n. */
struct source {
	struct span body;
	size_t first_n, piece_n;
	size_t at;
	int fail; /* -errno at the end, 0: none */
};

static ssize_t source_read(void *ctx, void *p, size_t n)
{
	struct source *s = ctx;
	size_t piece = s->at == 0 && s->first_n > 0 ? s->first_n : s->piece_n;
	size_t left = s->body.n - s->at;

	n = n < piece ? n : piece;
	n = n < left ? n : left;
	if (n == 0) {
		return s->fail;
	}
	memcpy(p, s->body.p + s->at, n);
	s->at += n;
	return (ssize_t)n;
}

/* What was read, as text: "name|filename|type|content;" of each part, then the result. */
static char *transcript(struct source *s, const char *type)
{
	AUTO(buf) struct buf out = BUF_INIT(1U << 20);
	int r = 1;
	AUTO(multipart) struct multipart *m = multipart_new(span_of(type), source_read, s, &r);

	if (!m) {
		return mem_printf("no multipart: %d", r);
	}
	for (;;) {
		struct multipart_part part;
		struct span data = { .n = 0 };

		r = multipart_next(m, &part);
		if (r <= 0) {
			break;
		}
		ck_assert_int_eq(buf_appendf(&out, "%s|%s|%s|", part.name,
						 part.filename ? part.filename : "-", part.type),
				0);
		while ((r = multipart_peek(m, &data)) > 0) {
			ck_assert_uint_gt(data.n, 0);
			ck_assert_int_eq(buf_append(&out, data.p, data.n), 0);
			multipart_take(m, data.n);
		}
		if (r < 0) {
			break;
		}
		ck_assert_int_eq(multipart_peek(m, &data), 0);
		ck_assert_int_eq(buf_append_str(&out, ";"), 0);
	}
	/* A failure is final, and so is the end. */
	struct multipart_part part;

	ck_assert_int_eq(multipart_next(m, &part), r);
	ck_assert_int_eq(buf_appendf(&out, "%d", r), 0);
	return buf_take(&out);
}

static void expect_typed(const char *type, struct span body, const char *want)
{
	for (size_t first = 0; first <= body.n; first++) {
		struct source s = { .body = body, .first_n = first, .piece_n = body.n };
		autofree char *got = transcript(&s, type);

		ck_assert_msg(str_eq(got, want), "cut at %zu: %s, not %s", first, got, want);
	}
	for (size_t piece = 1; piece <= body.n; piece++) {
		struct source s = { .body = body, .piece_n = piece };
		autofree char *got = transcript(&s, type);

		ck_assert_msg(str_eq(got, want), "pieces of %zu: %s, not %s", piece, got, want);
	}
}

static void expect(const char *body, const char *want)
{
	expect_typed(TYPE, span_of(body), want);
}

#define D(params) "Content-Disposition: form-data; " params "\r\n"

START_TEST(parts)
{
	expect("--XY\r\n" D("name=\"a\"") "\r\none\r\n--XY\r\n" D(
			       "name=b; filename=f") "Content-Type: text/plain; charset=utf-8\r\n\r\ntwo\r\n\r\n--XY--\r\n",
			"a|-||one;b|f|text/plain; charset=utf-8|two\r\n;0");
	/* Preamble, epilogue, padding, none of the optional parts. */
	expect("before\r\n--XY \t\r\n\r\nx\r\n--XY--after\r\n--XY\r\n", "|-||x;0");
	expect("--XY--", "0");
	expect("--XY\r\n\r\n\r\n--XY--", "|-||;0");
	/* An empty part whose delimiter begins with the line that ends its head. */
	expect("--XY\r\n" D("name=e") "\r\n--XY--", "e|-||;0");
}
END_TEST

START_TEST(content_like_a_delimiter)
{
	expect("--XY\r\n\r\n--XYZ\r\n--XYZ\r\n--X\r\n-\r\r\n--XY-\r\n--XY \rq\n--XY\r\n--XY--",
			"|-||--XYZ\r\n--XYZ\r\n--X\r\n-\r\r\n--XY-\r\n--XY \rq\n--XY;0");
}
END_TEST

START_TEST(bytes_of_content_are_free)
{
	char body[] = "--XY\r\n\r\n\0\xff\r\n\0\r\n--XY--";
	struct source s = { .body = { .p = body, .n = sizeof(body) - 1 }, .piece_n = 7 };
	int r = 0;
	AUTO(multipart) struct multipart *m = multipart_new(span_of(TYPE), source_read, &s, &r);
	struct multipart_part part;
	char got[16];
	size_t got_n = 0;
	ssize_t n = 0;

	ck_assert_int_eq(multipart_next(m, &part), 1);
	while ((n = multipart_read(m, got + got_n, 2)) > 0) {
		got_n += (size_t)n;
	}
	ck_assert_int_eq(n, 0);
	ck_assert_uint_eq(got_n, 5);
	ck_assert_int_eq(memcmp(got, "\0\xff\r\n\0", 5), 0);
	ck_assert_int_eq(multipart_next(m, &part), 0);
}
END_TEST

START_TEST(parameters)
{
	/* As .NET writes them, with a quoted boundary. */
	expect_typed("multipart/form-data; boundary=\"X'()+_,-./:=? Y\"",
			span_of("--X'()+_,-./:=? Y\r\nContent-Type: application/json\r\n"
				"Content-Disposition: form-data; name=metadata; filename=metadata; "
				"filename*=utf-8''other\r\n\r\n{}\r\n--X'()+_,-./:=? Y--\r\n"),
			"metadata|metadata|application/json|{};0");
	expect_typed("Multipart/Form-Data ;charset=utf-8; BOUNDARY=XY;",
			span_of("--XY\r\ncontent-disposition:FORM-DATA;NAME=\"a;b=\\\"c\\\"\"; "
				"filename=\"C:\\dir\\\\f\" ;;\r\n\r\n\r\n--XY--"),
			"a;b=\"c\"|C:\\dir\\f||;0");
	expect("--XY\r\n" D("name=\"\"; filename=\"\"; x=y") "\r\n\r\n--XY--", "|||;0");
	expect("--XY\r\n" D("name=a\xc3\xa4 b") "\r\n\r\n--XY--", "a\xc3\xa4 b|-||;0");
}
END_TEST

START_TEST(malformed)
{
	static const char *const heads[] = {
		D("name=a; name=b"),         /* two */
		D("filename=a; filename=b"), /* two */
		D("name=a") D("name=b"),     /* two */
		D("name=a") "Content-Type: a\r\nContent-Type: b\r\n",
		D("name"),
		D("name="),
		D("=a"),
		D("na me=a"),
		D("name=a\"b"),
		D("name=\"a"),
		D("name=\"a\"b"),
		D("name=a\r\n filename=b"), /* folded */
		" X: y\r\n",                /* folded, nothing before it */
		D("name=a\x01"),
		D("name=a\x7f"),
		"Content-Disposition: attachment; name=a\r\n",
		"Content-Disposition : form-data; name=a\r\n",
		"X\r\n",
		": x\r\n",
		"X: y\n",     /* a bare LF */
		"X: y\r\r\n", /* a bare CR */
		"X: \ry\r\n",
		"\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		autofree char *body = mem_printf("--XY\r\n%s\r\nx\r\n--XY--", heads[i]);

		expect(body, "-74");
	}
	/* A NUL ends no name. */
	char nul[] = "--XY\r\nContent-Disposition: form-data; name=a\0b\r\n\r\nx\r\n--XY--";

	expect_typed(TYPE, (struct span){ .p = nul, .n = sizeof(nul) - 1 }, "-74");
}
END_TEST

START_TEST(cut_short)
{
	const char *body =
			"--XY\r\n" D("name=a") "\r\none\r\n--XY\r\n" D("name=b") "\r\n\r\n--XY--";
	size_t n = strlen(body);

	for (size_t cut = 0; cut < n; cut++) {
		struct source s = { .body = { .p = body, .n = cut }, .piece_n = 3 };
		autofree char *got = transcript(&s, TYPE);

		ck_assert_msg(str_has_suffix(got, "-74"), "cut at %zu: %s", cut, got);
		s = (struct source){ .body = { .p = body, .n = cut }, .piece_n = 3, .fail = -EIO };
		autofree char *failed = transcript(&s, TYPE);

		ck_assert_msg(str_has_suffix(failed, "-5"), "cut at %zu: %s", cut, failed);
	}
	/* Also behind the last delimiter the body must arrive. */
	struct source s = { .body = span_of(body), .piece_n = 3, .fail = -ECONNRESET };
	autofree char *got = transcript(&s, TYPE);

	ck_assert_msg(str_has_suffix(got, "-104"), "%s", got);
}
END_TEST

START_TEST(types)
{
	static const char *const bad[] = {
		"",
		"multipart/form-data",
		"multipart/form-data; boundary",
		"multipart/form-data; boundary=",
		"multipart/form-data; boundary=\"\"",
		"multipart/form-data; boundary=\"a\" b",
		"multipart/form-data; boundary=\"a \"",
		"multipart/form-data; boundary=a\r\n",
		"multipart/form-data; boundary=a\"",
		"multipart/form-data; boundary=a; boundary=a",
		"multipart/form-data; boundary=a*b",
		"multipart/form-data boundary=a",
		"multipart/mixed; boundary=a",
		"application/json",
		("multipart/form-data; boundary="
		 "0123456789012345678901234567890123456789012345678901234567890123456789a"),
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct source s = { .piece_n = 1 };
		int r = 0;

		ck_assert_msg(!multipart_new(span_of(bad[i]), source_read, &s, &r), "%s", bad[i]);
		ck_assert_int_eq(r, -EINVAL);
	}
	struct source s = { .piece_n = 1 };
	int r = 0;

	ck_assert_ptr_null(multipart_new(
			(struct span){ .p = "multipart/form-data; boundary=a\0b", .n = 33 },
			source_read, &s, &r));
	expect_typed("multipart/form-data; boundary="
		     "0123456789012345678901234567890123456789012345678901234567890123456789",
			span_of("--0123456789012345678901234567890123456789012345678901234567890123"
				"456789--"),
			"0");
}
END_TEST

/* A head of exactly n bytes, its empty line included. */
static char *head_of(size_t n)
{
	autofree char *fill = mem_array(1, n);

	memset(fill, 'x', n - strlen("X: \r\n\r\n"));
	return mem_printf("--XY\r\nX: %s\r\n\r\nc\r\n--XY--", fill);
}

START_TEST(heads_are_bounded)
{
	autofree char *longest = head_of(MULTIPART_PART_HEAD_MAX);
	autofree char *longer = head_of(MULTIPART_PART_HEAD_MAX + 1);
	autofree char *many = mem_array(1, 40000);
	static const size_t pieces[] = { 1, 1000, 100000 };

	(void)snprintf(many, 40000, "--XY\r\n");
	for (size_t at = strlen(many); at < 39000; at += 6) {
		memcpy(many + at, "A: b\r\n", 6);
	}
	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		const struct {
			const char *body, *want;
		} rows[] = { { longest, "|-||c;0" }, { longer, "-90" }, { many, "-90" } };

		for (size_t k = 0; k < ARRAY_SIZE(rows); k++) {
			struct source s = { .body = span_of(rows[k].body), .piece_n = pieces[i] };
			autofree char *got = transcript(&s, TYPE);

			ck_assert_str_eq(got, rows[k].want);
		}
	}
}
END_TEST

/* Content longer than the window, full of beginnings of delimiters. */
START_TEST(long_content)
{
	AUTO(buf) struct buf body = BUF_INIT(2U << 20);
	AUTO(buf) struct buf want = BUF_INIT(2U << 20);
	static const char *const bits[] = { "\r\n--X", "\r", "\n", "--XY", "plain", "\r\n--XYZ" };
	static const size_t pieces[] = { 1, 61, 4093, 65536, 1U << 20 };
	uint32_t random = 1;

	while (want.n < 700000) {
		random = random * 1664525U + 1013904223U;
		ck_assert_int_eq(buf_append_str(&want, bits[(random >> 16) % ARRAY_SIZE(bits)]), 0);
		/* No delimiter by chance: X and then Y, or white space behind it. */
		ck_assert_int_eq(buf_append_str(&want, "."), 0);
	}
	ck_assert_int_eq(buf_append_str(&body, "--XY\r\n\r\n"), 0);
	ck_assert_int_eq(buf_append(&body, want.p, want.n), 0);
	ck_assert_int_eq(buf_append_str(&body, "\r\n--XY\r\n\r\nsecond\r\n--XY--"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		struct source s = { .body = buf_span(&body), .piece_n = pieces[i] };
		autofree char *got = transcript(&s, TYPE);

		ck_assert_uint_eq(strlen(got), want.n + strlen("|-||;|-||second;0"));
		ck_assert_int_eq(memcmp(got + 4, want.p, want.n), 0);
		ck_assert_str_eq(got + 4 + want.n, ";|-||second;0");
	}
}
END_TEST

START_TEST(what_is_left_is_skipped)
{
	const char *body = "--XY\r\n" D("name=a") "\r\nlong content\r\n--XY\r\n" D(
			"name=b") "\r\nx\r\n--XY--";
	struct source s = { .body = span_of(body), .piece_n = 5 };
	int r = 0;
	AUTO(multipart) struct multipart *m = multipart_new(span_of(TYPE), source_read, &s, &r);
	struct multipart_part part;
	char two[2];

	ck_assert_int_eq(multipart_next(m, &part), 1);
	ck_assert_int_gt(multipart_read(m, two, sizeof(two)), 0);
	ck_assert_int_eq(multipart_next(m, &part), 1);
	ck_assert_str_eq(part.name, "b");
	ck_assert_int_eq(multipart_next(m, &part), 0);
	ck_assert_uint_eq(s.at, strlen(body));
	ck_assert_int_eq(multipart_read(m, two, sizeof(two)), 0);
	multipart_free(NULL);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("multipart");
	TCase *tc = tcase_create("multipart");

	tcase_add_test(tc, parts);
	tcase_add_test(tc, content_like_a_delimiter);
	tcase_add_test(tc, bytes_of_content_are_free);
	tcase_add_test(tc, parameters);
	tcase_add_test(tc, malformed);
	tcase_add_test(tc, cut_short);
	tcase_add_test(tc, types);
	tcase_add_test(tc, heads_are_bounded);
	tcase_add_test(tc, long_content);
	tcase_add_test(tc, what_is_left_is_skipped);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
