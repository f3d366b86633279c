/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/buf.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "../../../policy/sniff.h"
#include "../unit.h"

/* What comes of a connection's bytes, in pieces of some size: "[name]" for a head (held back until
 * there), then the bytes that pass as they are; "!" when it is refused, "?" when it ends within a
 * head. */
static char *talk(struct span bytes, size_t piece, struct sniff_http *s)
{
	AUTO(buf) struct buf out = BUF_INIT(1U << 20);
	bool is_held = false;

	sniff_http_init(s);
	for (size_t at = 0; at < bytes.n;) {
		struct span some = span_from(bytes, at);
		size_t n = 77;

		some.n = some.n < piece ? some.n : piece;
		const enum sniff result = sniff_http_feed(s, some, &n);

		ck_assert_uint_le(n, some.n);
		is_held = result == SNIFF_MORE;
		if (result == SNIFF_NONE) {
			ck_assert_ptr_nonnull(s->why);
			/* And remains so. */
			ck_assert_int_eq(sniff_http_feed(s, some, &n), SNIFF_NONE);
			ck_assert_int_eq(buf_append_str(&out, "!"), 0);
			return buf_take(&out);
		}
		if (result == SNIFF_MORE) {
			ck_assert_uint_eq(n, some.n);
		} else {
			ck_assert_uint_ge(n, 1);
		}
		if (result == SNIFF_NAME) {
			ck_assert_int_eq(buf_appendf(&out, "[%s%s]", s->name,
							 s->is_address ? "#" : ""),
					0);
		} else if (result == SNIFF_PASS) {
			ck_assert_int_eq(buf_append(&out, some.p, n), 0);
		}
		at += n;
	}
	ck_assert_int_eq(buf_append_str(&out, is_held ? "?" : ""), 0);
	return buf_take(&out);
}

static void expect(struct span bytes, const char *want)
{
	struct sniff_http s;

	for (size_t piece = 1; piece < 12; piece++) {
		autofree char *got = talk(bytes, piece == 11 ? bytes.n : piece, &s);

		ck_assert_msg(str_eq(got, want), "%.*s: %s, not %s (%s)", (int)bytes.n, bytes.p,
				got, want, s.why ? s.why : "");
	}
}

#define GET  "GET / HTTP/1.1\r\n"
#define POST "POST /x HTTP/1.1\r\nHost: a.test\r\n"
#define HOST "Host: a.test\r\n"
#define END  "\r\n"

static const char *const requests[][2] = {
	{ GET HOST END, "[a.test]" },
	{ GET "hOsT:A.Test\r\n" END, "[a.test]" },
	{ GET "Host: \t a.test. \t\r\n" END, "[a.test]" },
	{ GET "Host: a.test:8080\r\n" END, "[a.test]" },
	{ GET "Host: a.test:\r\n" END, "[a.test]" },
	{ GET "Accept: */*\r\n" HOST "User-Agent: x\r\n" END, "[a.test]" },
	{ GET "Hosts: b.test\r\nX-Host: c.test\r\nHos: d.test\r\n" HOST END, "[a.test]" },
	{ GET "X: \r\nY:\r\n" HOST END, "[a.test]" },
	{ "GET /a?b=http://b.test/ HTTP/1.1\r\n" HOST END, "[a.test]" },
	{ "GET //b.test/ HTTP/1.1\r\n" HOST END, "[a.test]" },
	{ "GET /\xc3\xbc HTTP/1.1\r\n" HOST END, "[a.test]" },
	{ "OPTIONS * HTTP/1.1\r\n" HOST END, "[a.test]" },
	{ "M-SEARCH / HTTP/1.1\r\n" HOST END, "[a.test]" },
	{ "GET / HTTP/1.0\r\n" HOST END, "[a.test]" },
	{ "GET http://a.test/ HTTP/1.1\r\n" HOST END, "[a.test]" },
	{ "GET HTTP://A.test:80?x HTTP/1.1\r\n" HOST END, "[a.test]" },
	{ "GET http://a.test HTTP/1.1\r\n" HOST END, "[a.test]" },
	/* addresses */
	{ GET "Host: 192.0.2.1\r\n" END, "[#]" },
	{ GET "Host: 192.0.2.1:80\r\n" END, "[#]" },
	{ GET "Host: [2001:db8::1]\r\n" END, "[#]" },
	{ GET "Host: [2001:db8::1]:80\r\n" END, "[#]" },
	/* empty lines between requests */
	{ "\r\n\r\n" GET HOST END "\r\n" GET "Host: b.test\r\n" END, "[a.test][b.test]" },
	/* one after the other */
	{ GET HOST END GET "Host: b.test\r\n" END GET HOST END, "[a.test][b.test][a.test]" },
	{ POST "Content-Length: 3\r\n" END "abc" GET "Host: b.test\r\n" END,
			"[a.test]abc[b.test]" },
	{ POST "Content-Length: 0\r\n" END GET "Host: b.test\r\n" END, "[a.test][b.test]" },
	{ POST "Content-Length: 0003 \r\n" END "abc" GET "Host: b.test\r\n" END,
			"[a.test]abc[b.test]" },
	{ POST "Content-Length: 99\r\n" END "GET / HTTP/1.1\r\nHost: b.test\r\n\r\n",
			"[a.test]GET / HTTP/1.1\r\nHost: b.test\r\n\r\n" },
	{ POST "Transfer-Encoding: chunked\r\n" END "3\r\nabc\r\n0\r\n\r\n" GET
	       "Host: b.test\r\n" END,
			"[a.test]3\r\nabc\r\n0\r\n\r\n[b.test]" },
	{ POST "Transfer-Encoding: CHUNKED\r\n" END
	       "a;x=\"y\"\r\n0123456789\r\nB\r\n0123456789a\r\n"
	       "000\r\nX: y\r\nZ: w\r\n\r\n" GET "Host: b.test\r\n" END,
			"[a.test]a;x=\"y\"\r\n0123456789\r\nB\r\n0123456789a\r\n"
			"000\r\nX: y\r\nZ: w\r\n\r\n[b.test]" },
	/* upgrades: what begins a request is one, all else is the other protocol */
	{ GET HOST "Upgrade: websocket\r\n" END "\x81\x05Host: b.test",
			"[a.test]\x81\x05Host: b.test" },
	{ GET HOST "Upgrade: websocket\r\n" END GET "Host: b.test\r\n" END "\x81\x05",
			"[a.test][b.test]!" },
	{ GET HOST "Upgrade: x\r\n" END "\r\n" GET "Host: b.test\r\n" END, "[a.test][b.test]" },
	{ GET HOST "Upgrade: x\r\n" END "\r\n\x81\x05", "[a.test]!" },
	{ GET HOST "Upgrade: x\r\n" END " " GET "Host: b.test\r\n" END, "[a.test]!" },
	{ GET HOST "Upgrade: x\r\n" END "\t" GET "Host: b.test\r\n" END, "[a.test]!" },
	{ GET HOST "Upgrade: x\r\n" END "\x1c" GET "Host: b.test\r\n" END, "[a.test]!" },
	{ GET HOST "Upgrade: x\r\n" END "\xa0" GET "Host: b.test\r\n" END, "[a.test]!" },
	{ GET HOST "Upgrade: h2c\r\n" END "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "[a.test]!" },
	{ POST "Upgrade: x\r\nContent-Length: 3\r\n" END "\x81"
	       "bc" GET "Host: b.test\r\n" END,
			"[a.test]\x81"
			"bc[b.test]" },
	{ POST "Upgrade: x\r\nContent-Length: 1\r\n" END "a\x81"
	       "bc",
			"[a.test]a\x81"
			"bc" },
	{ POST "Upgrade: x\r\nTransfer-Encoding: chunked\r\n" END "0\r\n\r\n\x81"
	       "bc",
			"[a.test]0\r\n\r\n\x81"
			"bc" },
	/* what goes on */
	{ "G", "?" },
	{ GET, "?" },
	{ GET HOST, "?" },
	{ GET HOST "\r", "?" },
	{ GET HOST END "\r", "[a.test]?" },
	{ GET HOST END "\r\n", "[a.test]?" },
	{ GET HOST END "G", "[a.test]?" },
};

START_TEST(requests_in_pieces)
{
	expect(span_of(requests[_i][0]), requests[_i][1]);
}
END_TEST

/* Bytes that are refused, before anything passes; and a word of why. */
static const char *const refused[][2] = {
	{ "\x16\3\1", "no HTTP request" },
	{ " GET / HTTP/1.1\r\n", "no HTTP request" },
	{ "\n" GET, "no HTTP request" },
	{ "\r\r\n" GET, "CR without LF" },
	{ "GET\t/ HTTP/1.1\r\n", "no HTTP request" },
	{ "GET  / HTTP/1.1\r\n", "no HTTP request" },
	{ "GET /\r\n", "no HTTP request" },
	{ "GET /a b HTTP/1.1\r\n", "no HTTP/1.1" },
	{ "GET / HTTP/1.1 \r\n", "no HTTP/1.1" },
	{ "GET /  HTTP/1.1\r\n", "no HTTP/1.1" },
	{ "GET / HTTP/1.2\r\n", "no HTTP/1.1" },
	{ "GET / HTTP/0.9\r\n", "no HTTP/1.1" },
	{ "GET / HTTP/2.0\r\n", "no HTTP/1.1" },
	{ "GET / \r\n", "no HTTP/1.1" },
	{ "GET / HTTP/1.1\n", "control" },
	{ "GET / HTTP/1.1\rX", "CR without LF" },
	{ "GET /\tx HTTP/1.1\r\n", "no HTTP request" },
	{ "GET /\x7fx HTTP/1.1\r\n", "no HTTP request" },
	{ "G(T / HTTP/1.1\r\n", "no HTTP request" },
	{ "GETGETGETGETGETGETGETGETGETGETGETGETGETGETGETGET / HTTP/1.1\r\n", "no HTTP request" },
	{ "CONNECT b.test:443 HTTP/1.1\r\n", "CONNECT" },
	{ "SSH-2.0-OpenSSH_9.0\r\n", "no HTTP request" },
	/* hosts */
	{ GET END, "without Host" },
	{ "GET / HTTP/1.0\r\n" END, "without Host" },
	{ "GET http://a.test/ HTTP/1.1\r\n" END, "without Host" },
	{ GET HOST HOST END, "two Host" },
	{ GET "Host: a.test\r\nHOST: b.test\r\n" END, "two Host" },
	{ GET "Host:\r\n" END, "Host field" },
	{ GET "Host: a.test, b.test\r\n" END, "Host field" },
	{ GET "Host: a.test b.test\r\n" END, "Host field" },
	{ GET "Host: u@a.test\r\n" END, "Host field" },
	{ GET "Host: a.test/\r\n" END, "Host field" },
	{ GET "Host: http://a.test\r\n" END, "Host field" },
	{ GET "Host: a.test:8o\r\n" END, "Host field" },
	{ GET "Host: a.test:80:90\r\n" END, "Host field" },
	{ GET "Host: 2001:db8::1\r\n" END, "Host field" },
	{ GET "Host: [2001:db8::1\r\n" END, "Host field" },
	{ GET "Host: [192.0.2.1]\r\n" END, "Host field" },
	{ GET "Host: [::1]x\r\n" END, "Host field" },
	{ GET "Host: 0x7f.1\r\n" END, "Host field" },
	/* lines */
	{ GET "Host : a.test\r\n" END, "malformed field" },
	{ GET " Host: a.test\r\n" END, "malformed field" },
	{ GET HOST " b.test\r\n" END, "malformed field" },
	{ GET HOST "\tb.test\r\n" END, "malformed field" },
	{ GET "X\r\n" HOST END, "malformed field" },
	{ GET ": x\r\n" HOST END, "malformed field" },
	{ GET "Ho\nst: a.test\r\n" END, "malformed field" },
	{ GET "X: y\nHost: b.test\r\n" HOST END, "control" },
	{ GET "X: y\rHost: b.test\r\n" HOST END, "CR without LF" },
	{ GET "X: \x01\r\n" HOST END, "control" },
	{ GET HOST "\n", "malformed field" },
	{ GET HOST "\rX", "CR without LF" },
	/* lengths */
	{ POST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n" END, "coding with a length" },
	{ POST "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n" END, "coding with a length" },
	{ POST "Content-Length: 3\r\nContent-Length: 3\r\n" END, "two Content-Length" },
	{ POST "Content-Length: 3, 3\r\n" END, "Content-Length" },
	{ POST "Content-Length: +3\r\n" END, "Content-Length" },
	{ POST "Content-Length: -1\r\n" END, "Content-Length" },
	{ POST "Content-Length: 0x3\r\n" END, "Content-Length" },
	{ POST "Content-Length: 3 4\r\n" END, "Content-Length" },
	{ POST "Content-Length:\r\n" END, "Content-Length" },
	{ POST "Content-Length: 9999999999999999999\r\n" END, "Content-Length" },
	{ POST "Transfer-Encoding: gzip, chunked\r\n" END, "Transfer-Encoding" },
	{ POST "Transfer-Encoding: identity\r\n" END, "Transfer-Encoding" },
	{ POST "Transfer-Encoding: xchunked\r\n" END, "Transfer-Encoding" },
	{ POST "Transfer-Encoding:\r\n" END, "Transfer-Encoding" },
	{ POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n" END,
			"Transfer-Encoding" },
	{ "POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n" END, "coding with" },
	/* targets */
	{ "GET http://b.test/ HTTP/1.1\r\n" HOST END, "names another host" },
	{ "GET https://b.test HTTP/1.1\r\n" HOST END, "names another host" },
	{ "GET http://192.0.2.1/ HTTP/1.1\r\n" HOST END, "names another host" },
	{ "GET http://192.0.2.1/ HTTP/1.1\r\nHost: 192.0.2.1\r\n" END, "names another host" },
	{ "GET http://a.test@b.test/ HTTP/1.1\r\n" HOST END, "no host name" },
	{ "GET http://a.test:80@b.test/ HTTP/1.1\r\n" HOST END, "no host name" },
	{ "GET http:/// HTTP/1.1\r\n" HOST END, "no host name" },
	{ "GET b.test:80 HTTP/1.1\r\n" HOST END, "no path" },
	{ "GET *x HTTP/1.1\r\n" HOST END, "no path" },
	{ "GET b.test HTTP/1.1\r\n" HOST END, "no path" },
};

START_TEST(what_is_refused)
{
	struct sniff_http s;

	for (size_t piece = 1; piece < 5; piece++) {
		autofree char *got = talk(span_of(refused[_i][0]), piece * piece * piece, &s);

		ck_assert_msg(str_eq(got, "!"), "%s: %s", refused[_i][0], got);
		ck_assert_msg(strstr(s.why, refused[_i][1]), "%s: %s", refused[_i][0], s.why);
	}
}
END_TEST

/* Chunks that are none, behind "chunked". */
static const char *const bad_chunks[] = { "x\r\n", ";\r\n", "\r\n", "3\n", "3\rx", " 3\r\n",
	"0x3\r\n", "-3\r\n", "3 \r\n", "3\r\nabcd", "3\r\nabc\n", "3\r\nabc\rx", "3;\x01\r\n",
	"3;\n", "1234567890abcdef0\r\n", "0\r\n\n", "0\r\nX\n", "0\r\n\rx", "0\r\nX: y\rz" };

START_TEST(bad_chunk)
{
	autofree char *text =
			mem_printf(POST "Transfer-Encoding: chunked\r\n" END "%s", bad_chunks[_i]);
	struct sniff_http s;

	for (size_t piece = 1; piece < 200; piece += 66) {
		autofree char *got = talk(span_of(text), piece, &s);

		ck_assert_msg(got[strlen(got) - 1] == '!', "%s: %s", bad_chunks[_i], got);
	}
}
END_TEST

START_TEST(heads_without_end)
{
	static const char *const begins[] = { "GET /", GET "X: ", GET "X", GET "Host: ", "" };
	static const char *const repeated[] = { "a", "a", "a", "a", "\r\n" };
	AUTO(buf) struct buf text = BUF_INIT(1U << 20);
	struct sniff_http s;

	ck_assert_int_eq(buf_append_str(&text, begins[_i]), 0);
	while (text.n <= SNIFF_HEAD_MAX) {
		ck_assert_int_eq(buf_append_str(&text, repeated[_i]), 0);
	}
	autofree char *got = talk(buf_span(&text), 1000, &s);

	ck_assert_str_eq(got, "!");
	ck_assert_ptr_nonnull(strstr(s.why, "too long"));
}
END_TEST

START_TEST(long_lines_that_are_fine)
{
	AUTO(buf) struct buf text = BUF_INIT(1U << 20);
	struct sniff_http s;

	/* Each request has a head of its own length. */
	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(buf_appendf(&text, "GET /%0*d HTTP/1.1\r\n", 10000, 1), 0);
		ck_assert_int_eq(
				buf_appendf(&text, "%0*d: %0*d\r\n" HOST END, 400, 1, 10000, 1), 0);
	}
	autofree char *got = talk(buf_span(&text), 1000, &s);

	ck_assert_str_eq(got, "[a.test][a.test][a.test][a.test][a.test]");
}
END_TEST

START_TEST(a_host_that_is_cut)
{
	AUTO(buf) struct buf text = BUF_INIT(1U << 20);
	struct sniff_http s;

	/* The first 300 bytes of it are a name with many blanks. */
	ck_assert_int_eq(buf_appendf(&text, GET "Host: a.test%300s.b.test\r\n" END, ""), 0);
	autofree char *got = talk(buf_span(&text), 1000, &s);

	ck_assert_str_eq(got, "!");
	buf_reset(&text);
	ck_assert_int_eq(
			buf_appendf(&text, "GET http://a.test%0300d/ HTTP/1.1\r\n" HOST END, 0), 0);
	autofree char *target = talk(buf_span(&text), 1000, &s);

	ck_assert_str_eq(target, "!");
	ck_assert_ptr_nonnull(strstr(s.why, "too long"));
	/* One whose host ends before is fine. */
	buf_reset(&text);
	ck_assert_int_eq(buf_appendf(&text, "GET http://a.test/%0300d/ HTTP/1.1\r\n" HOST END, 0),
			0);
	autofree char *good = talk(buf_span(&text), 1000, &s);

	ck_assert_str_eq(good, "[a.test]");
}
END_TEST

START_TEST(extensions_and_trailers_without_end)
{
	AUTO(buf) struct buf text = BUF_INIT(1U << 20);
	struct sniff_http s;

	/* Each chunk may have an extension. */
	ck_assert_int_eq(buf_append_str(&text, POST "Transfer-Encoding: chunked\r\n" END), 0);
	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(buf_appendf(&text, "1;%06000d\r\na\r\n", 0), 0);
	}
	autofree char *good = talk(buf_span(&text), 1000, &s);

	ck_assert_int_eq(good[strlen(good) - 1], '\n');
	ck_assert_int_eq(buf_appendf(&text, "1;%09000d\r\n", 0), 0);
	autofree char *bad = talk(buf_span(&text), 1000, &s);

	ck_assert_int_eq(bad[strlen(bad) - 1], '!');
	buf_reset(&text);
	ck_assert_int_eq(buf_append_str(&text, POST "Transfer-Encoding: chunked\r\n" END "0\r\n"),
			0);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(buf_appendf(&text, "X: %04000d\r\n", 0), 0);
	}
	autofree char *trailers = talk(buf_span(&text), 1000, &s);

	ck_assert_int_eq(trailers[strlen(trailers) - 1], '!');
}
END_TEST

START_TEST(a_nul_anywhere_in_a_head)
{
	static const char text[] = GET "X: y\r\n" HOST END;
	struct sniff_http s;

	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		autofree char *copy = mem_dup(text, sizeof(text) - 1);

		copy[i] = '\0';
		autofree char *got =
				talk((struct span){ .p = copy, .n = sizeof(text) - 1 }, 100, &s);

		ck_assert_msg(str_eq(got, "!"), "%zu: %s", i, got);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sniff_http");
	TCase *tc = tcase_create("sniff_http");

	suite_add_tcase(s, tc);
	tcase_add_loop_test(tc, requests_in_pieces, 0, ARRAY_SIZE(requests));
	tcase_add_loop_test(tc, what_is_refused, 0, ARRAY_SIZE(refused));
	tcase_add_loop_test(tc, bad_chunk, 0, ARRAY_SIZE(bad_chunks));
	tcase_add_loop_test(tc, heads_without_end, 0, 5);
	tcase_add_test(tc, long_lines_that_are_fine);
	tcase_add_test(tc, a_host_that_is_cut);
	tcase_add_test(tc, extensions_and_trailers_without_end);
	tcase_add_test(tc, a_nul_anywhere_in_a_head);
	return unit_run(s);
}
