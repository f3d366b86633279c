/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include <osbx/buf.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "../../../src/http/websocket_frame.h"
#include "../unit.h"

#define MESSAGE_MAX 70000

/* A client's frame. */
static void frame_add(struct buf *out, uint8_t first, const char *p, size_t n)
{
	static const uint8_t mask[4] = { 0x37, 0xfa, 0x21, 0x3d };
	uint8_t head[WS_HEAD_MAX];
	size_t head_n = ws_head(WS_OPCODE_TEXT, n, head);

	head[0] = first;
	head[1] |= 0x80U;
	ck_assert_int_eq(buf_append(out, head, head_n), 0);
	ck_assert_int_eq(buf_append(out, mask, sizeof(mask)), 0);
	for (size_t i = 0; i < n; i++) {
		char c = (char)((uint8_t)p[i] ^ mask[i % 4]);

		ck_assert_int_eq(buf_append(out, &c, 1), 0);
	}
}

/* What the events were: "text:…;" "binary:…;" "ping:…;" "pong:…;" "close 1000:…" "broken 1002". */
static char *events_of(struct span in, size_t piece_n)
{
	AUTO(buf) struct buf out = BUF_INIT(1U << 20);
	struct ws_reader r;

	ws_reader_init(&r, MESSAGE_MAX);
	while (in.n > 0) {
		struct span piece = { .p = in.p, .n = in.n < piece_n ? in.n : piece_n };

		in = span_from(in, piece.n);
		for (;;) {
			enum ws_event event = ws_reader_next(&r, &piece);
			static const char *const names[] = {
				[WS_EVENT_PING] = "ping:",
				[WS_EVENT_PONG] = "pong:",
			};

			if (event == WS_EVENT_MORE) {
				ck_assert_uint_eq(piece.n, 0);
				break;
			}
			if (event == WS_EVENT_BROKEN) {
				ck_assert_int_eq(buf_appendf(&out, "broken %u", r.code), 0);
				continue;
			}
			ck_assert_int_eq(
					event == WS_EVENT_CLOSE
							? buf_appendf(&out, "close %u:", r.code)
							: buf_append_str(&out,
									  event != WS_EVENT_MESSAGE
											  ? names[event]
									  : r.is_text ? "text:"
										      : "binary:"),
					0);
			ck_assert_int_eq(buf_append(&out, r.payload.p, r.payload.n), 0);
			ck_assert_int_eq(buf_append_str(&out, ";"), 0);
		}
	}
	ws_reader_done(&r);
	return buf_take(&out);
}

static void expect(const struct buf *in, const char *want)
{
	for (size_t piece = 1; piece <= in->n; piece++) {
		autofree char *got = events_of(buf_span(in), piece);

		ck_assert_msg(str_eq(got, want), "pieces of %zu: %s, not %s", piece, got, want);
		if (in->n > 1000) {
			piece += piece / 2 + 60;
		}
	}
}

START_TEST(the_example_of_the_rfc)
{
	char accept[WS_ACCEPT_SIZE];
	static const char hello[] = "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58";
	autofree char *got = events_of((struct span){ .p = hello, .n = sizeof(hello) - 1 }, 100);

	ck_assert_str_eq(got, "text:Hello;");
	ws_accept_key(span_of("dGhlIHNhbXBsZSBub25jZQ=="), accept);
	ck_assert_str_eq(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
	ws_accept_key(span_of("AAAAAAAAAAAAAAAAAAAAAA=="), accept);
	ck_assert_str_eq(accept, "ICX+Yqv66kxgM0FcWaLWlFLwTAI=");
}
END_TEST

START_TEST(keys)
{
	ck_assert(ws_key_is_valid(span_of("dGhlIHNhbXBsZSBub25jZQ==")));
	ck_assert(!ws_key_is_valid(span_of("")));
	ck_assert(!ws_key_is_valid(span_of("dGhlIHNhbXBsZSBub25jZQ=")));
	ck_assert(!ws_key_is_valid(span_of("dGhlIHNhbXBsZSBub25jZQ===")));
	ck_assert(!ws_key_is_valid(span_of("dGhlIHNhbXBsZSBub25jZ===")));
	ck_assert(!ws_key_is_valid(span_of("dGhlIHNhbXBsZSBub25j!Q==")));
	ck_assert(!ws_key_is_valid((struct span){ .p = "dGhlIHNhbXBsZSBub25j\0Q==", .n = 24 }));
}
END_TEST

START_TEST(fragments_and_what_stands_between)
{
	AUTO(buf) struct buf in = BUF_INIT(4096);

	frame_add(&in, 0x01, "a\xc3", 2);
	frame_add(&in, 0x89, "p", 1);
	frame_add(&in, 0x00, "\xa4", 1);
	frame_add(&in, 0x00, "", 0);
	frame_add(&in, 0x8a, "", 0);
	frame_add(&in, 0x80, "b", 1);
	frame_add(&in, 0x82, "\xff\xfe", 2);
	frame_add(&in, 0x81, "", 0);
	frame_add(&in, 0x88,
			"\x03\xe8"
			"bye",
			5);
	frame_add(&in, 0x81, "after", 5);
	expect(&in, "ping:p;pong:;text:a\xc3\xa4"
		    "b;binary:\xff\xfe;text:;close 1000:bye;");
}
END_TEST

START_TEST(short_and_long_lengths)
{
	static const size_t lengths[] = { 124, 125, 126, 127, 65535, 65536, MESSAGE_MAX };
	autofree char *p = mem_array(1, MESSAGE_MAX + 1);

	memset(p, 'x', MESSAGE_MAX + 1);
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		AUTO(buf) struct buf in = BUF_INIT(1U << 20);
		autofree char *want = mem_printf("text:%.*s;", (int)lengths[i], p);

		frame_add(&in, 0x81, p, lengths[i]);
		expect(&in, want);
	}
	/* Too long a message, at once or by a fragment. */
	AUTO(buf) struct buf whole = BUF_INIT(1U << 20);
	AUTO(buf) struct buf split = BUF_INIT(1U << 20);

	frame_add(&whole, 0x81, p, MESSAGE_MAX + 1);
	expect(&whole, "broken 1009");
	frame_add(&split, 0x01, p, MESSAGE_MAX);
	frame_add(&split, 0x80, p, 1);
	expect(&split, "broken 1009");
}
END_TEST

START_TEST(broken_frames)
{
	static const struct {
		const char *bytes;
		size_t n;
		const char *want;
	} rows[] = {
#define ROW(bytes, want) { bytes, sizeof(bytes) - 1, want }
		ROW("\x81\x05", "broken 1002"), /* not masked */
		ROW("\xc1\x80", "broken 1002"), /* reserved bits */
		ROW("\xa1\x80", "broken 1002"),
		ROW("\x91\x80", "broken 1002"),
		ROW("\x83\x80", "broken 1002"), /* reserved opcodes */
		ROW("\x87\x80", "broken 1002"),
		ROW("\x8b\x80", "broken 1002"),
		ROW("\x8f\x80", "broken 1002"),
		ROW("\x09\x80", "broken 1002"), /* ping in fragments */
		ROW("\x89\xfe", "broken 1002"), /* long ping */
		ROW("\x88\xff", "broken 1002"),
		ROW("\x80\x80mask", "broken 1002"),             /* continues nothing */
		ROW("\x01\x80mask\x81\x80mask", "broken 1002"), /* a message within one */
		ROW("\x01\x80mask\x82\x80mask", "broken 1002"),
		ROW("\x81\xfe\x00\x7dmask", "broken 1002"), /* not the shortest form */
		ROW("\x81\xff\x00\x00\x00\x00\x00\x00\xff\xffmask", "broken 1002"),
		ROW("\x81\xff\x80\x00\x00\x00\x00\x01\x00\x00mask", "broken 1002"),
		ROW("\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xffmask", "broken 1009"),
		ROW("\x88\x81mask\x00", "broken 1002"), /* half a code */
		ROW("\x88\x80mask", "close 1005:;"),
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		for (size_t piece = 1; piece <= rows[i].n; piece++) {
			autofree char *got = events_of(
					(struct span){ .p = rows[i].bytes, .n = rows[i].n }, piece);

			ck_assert_msg(str_eq(got, rows[i].want), "row %zu: %s", i, got);
		}
	}
}
END_TEST

START_TEST(close_codes)
{
	static const uint16_t good[] = { 1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1014,
		3000, 3999, 4000, 4999 };
	static const uint16_t bad[] = { 0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999,
		5000, 65535 };

	for (size_t i = 0; i < ARRAY_SIZE(good) + ARRAY_SIZE(bad); i++) {
		bool is_good = i < ARRAY_SIZE(good);
		uint16_t code = is_good ? good[i] : bad[i - ARRAY_SIZE(good)];
		char bytes[2] = { (char)(code >> 8), (char)code };
		AUTO(buf) struct buf in = BUF_INIT(4096);
		autofree char *want = is_good ? mem_printf("close %u:;", code)
					      : mem_strdup("broken 1002");

		frame_add(&in, 0x88, bytes, 2);
		expect(&in, want);
	}
	AUTO(buf) struct buf in = BUF_INIT(4096);

	frame_add(&in, 0x88, "\x03\xe8\xff", 3);
	expect(&in, "broken 1007");
}
END_TEST

START_TEST(text_is_utf8)
{
	static const char *const bad[] = { "\xff", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80",
		"\xf4\x90\x80\x80", "\xf5", "\x80", "\xc3", "\xe2\x82", "\xf0\x9f\x98",
		"0123456789abcdef\xc3(" };
	static const char *const good[] = { "\xc2\x80", "\xe0\xa0\x80", "\xed\x9f\xbf",
		"\xee\x80\x80", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf",
		"0123456789abcdef\xf0\x9f\x98\x80 0123456789" };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		AUTO(buf) struct buf in = BUF_INIT(4096);
		AUTO(buf) struct buf split = BUF_INIT(4096);

		frame_add(&in, 0x81, bad[i], strlen(bad[i]));
		expect(&in, "broken 1007");
		frame_add(&split, 0x01, bad[i], 1);
		frame_add(&split, 0x80, bad[i] + 1, strlen(bad[i]) - 1);
		expect(&split, "broken 1007");
	}
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		size_t n = strlen(good[i]);
		AUTO(buf) struct buf want = BUF_INIT(4096);

		ck_assert_int_eq(buf_append_str(&want, "text:"), 0);
		ck_assert_int_eq(buf_append(&want, good[i], n), 0);
		ck_assert_int_eq(buf_append_str(&want, ";"), 0);
		ck_assert(span_is_utf8(span_of(good[i])));
		for (size_t cut = 0; cut <= n; cut++) {
			AUTO(buf) struct buf in = BUF_INIT(4096);

			frame_add(&in, 0x01, good[i], cut);
			frame_add(&in, 0x80, good[i] + cut, n - cut);
			expect(&in, want.p);
		}
	}
}
END_TEST

START_TEST(bad_text_is_seen_before_its_end)
{
	AUTO(buf) struct buf in = BUF_INIT(4096);

	frame_add(&in, 0x01, "a\xff", 2);
	expect(&in, "broken 1007");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("websocket_frame");
	TCase *tc = tcase_create("websocket_frame");

	tcase_add_test(tc, the_example_of_the_rfc);
	tcase_add_test(tc, keys);
	tcase_add_test(tc, fragments_and_what_stands_between);
	tcase_add_test(tc, short_and_long_lengths);
	tcase_add_test(tc, broken_frames);
	tcase_add_test(tc, close_codes);
	tcase_add_test(tc, text_is_utf8);
	tcase_add_test(tc, bad_text_is_seen_before_its_end);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
