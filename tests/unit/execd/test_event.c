/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/json.h>
#include <osbx/mem.h>

#include "../../../execd/event.h"
#include "../unit.h"

#define OUT_MAX (16U << 20)

static struct buf out = BUF_INIT(OUT_MAX);

static void out_reset(void)
{
	buf_done(&out);
	out.max = OUT_MAX;
}

static void expect(const char *text)
{
	ck_assert_str_eq(out.p ? out.p : "", text);
	out_reset();
}

START_TEST(frames_are_bare_json)
{
	struct events ev = events_of(&out, 0, 1700000000123);

	event_init(&ev, "0123");
	event_ping(&ev);
	event_complete(&ev, 12);
	event_error(&ev, "CommandExecError", "7", "exit status 7");
	ck_assert_uint_eq(ev.eid, 4);
	ck_assert_int_eq(buf_append(&out, "", 1), 0);
	expect("{\"type\":\"init\",\"text\":\"0123\",\"timestamp\":1700000000123,\"eid\":1}\n\n"
	       "{\"type\":\"ping\",\"text\":\"pong\",\"timestamp\":1700000000123,\"eid\":2}\n\n"
	       "{\"type\":\"execution_complete\",\"execution_time\":12,"
	       "\"timestamp\":1700000000123,\"eid\":3}\n\n"
	       "{\"type\":\"error\",\"error\":{\"ename\":\"CommandExecError\",\"evalue\":\"7\","
	       "\"traceback\":[\"exit status 7\"]},\"timestamp\":1700000000123,\"eid\":4}\n\n");
}
END_TEST

/* Text as it came: several lines in one event, a character that is cut waits for its rest. */
START_TEST(text_as_it_came)
{
	struct event_text text = { .cut_n = 0 };
	struct events ev = events_of(&out, 0, 1);

	event_piece(&ev, "stdout", &text, span_of("a\nb\xe2\x82"));
	event_piece(&ev, "stdout", &text, span_of(""));
	event_piece(&ev, "stdout", &text, span_of("\xac<"));
	event_piece(&ev, "stdout", &text, span_of("\xe2"));
	ck_assert_uint_eq(ev.eid, 2);
	event_piece_end(&ev, "stdout", &text);
	event_piece_end(&ev, "stdout", &text);
	ck_assert_int_eq(buf_append(&out, "", 1), 0);
	expect("{\"type\":\"stdout\",\"text\":\"a\\nb\",\"timestamp\":1,\"eid\":1}\n\n"
	       "{\"type\":\"stdout\",\"text\":\"\xe2\x82\xac\\u003c\",\"timestamp\":1,\"eid\":2}\n\n"
	       "{\"type\":\"stdout\",\"text\":\"\xef\xbf\xbd\",\"timestamp\":1,\"eid\":3}\n\n");
}
END_TEST

START_TEST(results)
{
	struct events ev = events_of(&out, 0, 1);

	event_count(&ev, 7);
	event_status(&ev, "error");
	event_json(&ev, "result", "results",
			span_of("{\"text\":\"\xe2\x80\xa8 \xc2\x85\xe2\x80\xa9\xe2\x80\xaa\xc2\"}"));
	ck_assert_int_eq(buf_append(&out, "", 1), 0);
	expect("{\"type\":\"execution_count\",\"execution_count\":7,\"timestamp\":1,\"eid\":1}\n\n"
	       "{\"type\":\"status\",\"text\":\"error\",\"timestamp\":1,\"eid\":2}\n\n"
	       "{\"type\":\"result\",\"results\":{\"text\":\"\\u2028 \\u0085\\u2029\xe2\x80\xaa\xc2\"},"
	       "\"timestamp\":1,\"eid\":3}\n\n");
}
END_TEST

/* Text of bytes, in pieces of a size. Caller frees. */
static char *encoded(struct span bytes, size_t piece)
{
	struct event_text text = { .cut_n = 0 };
	struct buf b = BUF_INIT(OUT_MAX);

	for (size_t at = 0; at < bytes.n; at += piece) {
		struct span s = span_from(bytes, at);

		s.n = s.n < piece ? s.n : piece;
		event_text_put(&text, s, &b);
	}
	event_text_end(&text, &b);
	return buf_take(&b);
}

#define BAD "\xef\xbf\xbd"

static const struct {
	const char *bytes;
	const char *text;
} texts[] = {
	{ "plain", "plain" },
	{ "seven..8 bytes and more than that", "seven..8 bytes and more than that" },
	{ "\"\\\n\r\t\x01\x1f\x7f", "\\\"\\\\\\n\\r\\t\\u0001\\u001f\x7f" },
	{ "<a href=\"b&c\">", "\\u003ca href=\\\"b\\u0026c\\\"\\u003e" },
	{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" },
	{ "a\xe2\x80\xa8"
	  "b\xe2\x80\xa9"
	  "c\xc2\x85"
	  "d\xe2\x80\xaa",
			"a\\u2028b\\u2029c\\u0085d\xe2\x80\xaa" },
	/* Each maximal part once (Unicode 15, section 3.9, tables 3-8 to 3-11). */
	{ "\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41", BAD BAD BAD BAD BAD BAD BAD BAD "A" },
	{ "\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41", BAD BAD BAD BAD BAD BAD BAD BAD "A" },
	{ "\xf4\x91\x92\x93\xff\x41\x80\xbf\x42", BAD BAD BAD BAD BAD "A" BAD BAD "B" },
	{ "\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", BAD BAD BAD BAD "A" },
	{ "x\xe2\x82", "x" BAD },
	{ "x\xf0\x9f\x98", "x" BAD },
	{ "\xff", BAD },
	{ "\xf0\x9f\xf0\x9f\x98\x80", BAD "\xf0\x9f\x98\x80" },
};

START_TEST(texts_are_json_however_they_are_cut)
{
	struct span bytes = span_of(texts[_i].bytes);

	for (size_t piece = 1; piece <= bytes.n; piece++) {
		autofree char *text = encoded(bytes, piece);

		ck_assert_str_eq(text, texts[_i].text);
	}
}
END_TEST

/* Which characters are well-formed is what span_is_utf8 says, for each of two, three and four bytes
 * that are near a border. */
START_TEST(borders_of_utf8)
{
	static const unsigned char leads[] = { 0x7f, 0x80, 0xbf, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec,
		0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff };
	static const unsigned char tails[] = { 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf,
		0xc0 };
	const size_t n = sizeof(tails);

	for (size_t i = 0; i < sizeof(leads) * n * n * n; i++) {
		const char bytes[5] = { (char)leads[i / (n * n * n)], (char)tails[i / (n * n) % n],
			(char)tails[i / n % n], (char)tails[i % n] };

		for (size_t len = 1; len <= 4; len++) {
			struct span s = { .p = bytes, .n = len };
			autofree char *text = encoded(s, 2);

			ck_assert(span_is_utf8(span_of(text)));
			if (span_is_utf8(s)) {
				ck_assert(strlen(text) == len && memcmp(text, bytes, len) == 0);
			} else {
				ck_assert_ptr_nonnull(strstr(text, BAD));
			}
		}
	}
}
END_TEST

/* Texts of the events of a stream, each as it stands in JSON, in brackets. Caller frees. */
static char *told(struct span bytes, size_t (*piece)(void))
{
	struct lines lines = lines_of("stdout");
	struct buf b = BUF_INIT(OUT_MAX);
	struct events ev = events_of(&out, 0, 5);
	static const char head[] = "{\"type\":\"stdout\",\"text\":\"";
	static const char tail[] = "\",\"timestamp\":5,\"eid\":";
	uint64_t eid = 0;

	while (bytes.n > 0) {
		struct span s = bytes;
		size_t n = piece();

		s.n = n < s.n ? n : s.n;
		bytes = span_from(bytes, lines_feed(&lines, s, &ev, piece() + out.n));
	}
	lines_end(&lines, &ev);
	lines_done(&lines);
	struct span rest = buf_span(&out);

	while (rest.p && rest.n > 0) {
		const char *end = memmem(rest.p, rest.n, "\n\n", 2);
		const char *text_end = memmem(rest.p, rest.n, tail, strlen(tail));
		char number[32];

		ck_assert(span_has_prefix(rest, span_of(head)) && end && text_end &&
				text_end < end);
		int n = snprintf(number, sizeof(number), "%s%llu}\n\n", tail,
				(unsigned long long)++eid);

		ck_assert(memcmp(text_end, number, (size_t)n) == 0);
		ck_assert_int_eq(buf_append_str(&b, "["), 0);
		ck_assert_int_eq(buf_append(&b, rest.p + strlen(head),
						 (size_t)(text_end - rest.p) - strlen(head)),
				0);
		ck_assert_int_eq(buf_append_str(&b, "]"), 0);
		rest = span_from(rest, (size_t)(end - rest.p) + 2);
	}
	ck_assert_uint_eq(ev.eid, eid);
	out_reset();
	return buf_take(&b);
}

/* The same by the words of the contract: look at all bytes at once. */
static char *told_simply(struct span bytes)
{
	struct buf b = BUF_INIT(OUT_MAX);
	size_t from = 0;

	for (size_t i = 0; i <= bytes.n; i++) {
		bool ends = i < bytes.n && (bytes.p[i] == '\n' || bytes.p[i] == '\r');

		if (!ends && (i < bytes.n || from == bytes.n)) {
			continue;
		}
		struct span line = { .p = bytes.p + from, .n = i - from };
		autofree char *text = encoded(line.n > 0 ? line : span_of("\n"), 1);

		ck_assert_int_eq(buf_appendf(&b, "[%s]", text), 0);
		i += i + 1 < bytes.n && bytes.p[i] == '\r' && bytes.p[i + 1] == '\n';
		from = i + 1;
	}
	return buf_take(&b);
}

static unsigned int seed;

static size_t random_below(size_t n)
{
	seed = seed * 1103515245U + 12345U;
	return (seed >> 8) % n;
}

static size_t piece_random(void)
{
	return 1 + random_below(random_below(2) ? 3 : 40);
}

static size_t piece_whole(void)
{
	return OUT_MAX;
}

static size_t piece_one(void)
{
	return 1;
}

/* Any bytes in any pieces give the events of the reference. */
START_TEST(lines_are_those_of_the_reference)
{
	static const char *const parts[] = { "\n", "\r", "\r\n", "\n\n", "a", "word ", "\xc3\xa9",
		"\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xe2\x82", "\xff", "\xe2\x80\xa8", "\"", "<",
		"a line that is longer than one machine word", "\x80", "\t" };

	for (seed = 1; seed < 4000; seed++) {
		unsigned int saved = seed;
		AUTO(buf) struct buf b = BUF_INIT(OUT_MAX);

		for (size_t n = random_below(40); n > 0; n--) {
			ck_assert_int_eq(buf_append_str(&b, parts[random_below(17)]), 0);
		}
		autofree char *want = told_simply(buf_span(&b));
		autofree char *whole = told(buf_span(&b), piece_whole);
		autofree char *pieces = told(buf_span(&b), piece_random);
		autofree char *bytes = told(buf_span(&b), piece_one);

		ck_assert_str_eq(whole, want);
		ck_assert_str_eq(pieces, want);
		ck_assert_str_eq(bytes, want);
		seed = saved;
	}
}
END_TEST

START_TEST(lines_by_hand)
{
	static const char *const rows[][2] = {
		{ "", "" },
		{ "x", "[x]" },
		{ "a\nb\r\nc\rd", "[a][b][c][d]" },
		{ "\n\n", "[\\n][\\n]" },
		{ "a\r\n\r\nb\n", "[a][\\n][b]" },
		{ "a\n\r\nb", "[a][\\n][b]" },
		{ "\r\r\n", "[\\n][\\n]" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		autofree char *whole = told(span_of(rows[i][0]), piece_whole);
		autofree char *bytes = told(span_of(rows[i][0]), piece_one);

		ck_assert_str_eq(whole, rows[i][1]);
		ck_assert_str_eq(bytes, rows[i][1]);
	}
}
END_TEST

static size_t piece_read(void)
{
	return 16384;
}

/* Its event is open, and no line is cut: memory stays small, and what comes out is one event. */
START_TEST(long_line_is_one_event)
{
	const size_t n = 4U << 20;
	autofree char *line = mem_array(1, n);
	struct lines lines = lines_of("stderr");
	struct events ev = events_of(&out, 0, 5);

	memset(line, 'x', n);
	memcpy(line + EVENT_LINE_MAX - 1, "\xe2\x82\xac", 3);
	for (size_t at = 0; at < n; at += 16384) {
		struct span s = { .p = line + at, .n = 16384 };

		ck_assert_uint_eq(lines_feed(&lines, s, &ev, SIZE_MAX), s.n);
		ck_assert_uint_le(lines.part.n, EVENT_LINE_MAX);
		ck_assert(lines.is_open == (at + s.n > EVENT_LINE_MAX));
	}
	ck_assert_uint_eq(lines_feed(&lines, span_of("y\nz"), &ev, SIZE_MAX), 3);
	ck_assert(!lines.is_open);
	ck_assert_uint_eq(ev.eid, 1);
	lines_end(&lines, &ev);
	lines_done(&lines);
	ck_assert_uint_eq(ev.eid, 2);
	ck_assert_ptr_nonnull(memmem(out.p, out.n, "\xe2\x82\xac", 3));
	out_reset();
	autofree char *all = told((struct span){ .p = line, .n = n }, piece_read);

	ck_assert_uint_eq(strlen(all), n + 2);
	ck_assert(memcmp(all + 1, line, n) == 0);
}
END_TEST

/* A client that does not read is not fed beyond what was said. */
START_TEST(stops_where_it_is_told)
{
	static char bytes[16384];
	struct lines lines = lines_of("stdout");
	struct events ev = events_of(&out, 0, 5);

	memset(bytes, '\n', sizeof(bytes));
	size_t n = lines_feed(&lines, (struct span){ .p = bytes, .n = sizeof(bytes) }, &ev, 4096);

	ck_assert_uint_gt(n, 10);
	ck_assert_uint_lt(n, 100);
	ck_assert_uint_lt(out.n, 4096 + 200);
	ck_assert_uint_eq(ev.eid, n);
	out_reset();
}
END_TEST

/* What is sent is JSON. */
START_TEST(events_parse)
{
	struct lines lines = lines_of("stdout");
	struct events ev = events_of(&out, 41, 1);
	struct error e = ERROR_INIT;

	ck_assert_uint_eq(lines_feed(&lines, span_of("a\"\\<\x01\xff\n"), &ev, SIZE_MAX), 7);
	AUTO(json) struct json *json = json_parse(buf_span(&out), &e);

	ck_assert_ptr_nonnull(json);
	ck_assert_str_eq(json_string(json_get(json, "text")), "a\"\\<\x01" BAD);
	lines_done(&lines);
	out_reset();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("execd/event");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, frames_are_bare_json);
	tcase_add_test(tc, text_as_it_came);
	tcase_add_test(tc, results);
	tcase_add_loop_test(tc, texts_are_json_however_they_are_cut, 0,
			sizeof(texts) / sizeof(texts[0]));
	tcase_add_test(tc, borders_of_utf8);
	tcase_add_test(tc, lines_by_hand);
	tcase_add_test(tc, lines_are_those_of_the_reference);
	tcase_add_test(tc, long_line_is_one_event);
	tcase_add_test(tc, stops_where_it_is_told);
	tcase_add_test(tc, events_parse);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
