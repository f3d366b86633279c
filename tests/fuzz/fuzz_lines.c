/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a byte that says how the rest is cut, and output of a command. What comes of it must be
 * events in JSON, the same for every cut. */
#include <assert.h>
#include <stdint.h>

#include <osbx/json.h>

#include "../../execd/event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void feed(struct buf *out, struct span bytes, size_t piece)
{
	struct lines lines = lines_of("stdout");
	struct events ev = events_of(out, 0, 1);

	while (bytes.n > 0) {
		struct span s = { .p = bytes.p, .n = bytes.n < piece ? bytes.n : piece };

		bytes = span_from(bytes, lines_feed(&lines, s, &ev, SIZE_MAX));
	}
	lines_end(&lines, &ev);
	lines_done(&lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(buf) struct buf whole = BUF_INIT(64U << 20);
	AUTO(buf) struct buf cut = BUF_INIT(64U << 20);
	const char *end = NULL;

	if (size < 1 || size > 4096) {
		return 0;
	}
	struct span bytes = { .p = (const char *)data + 1, .n = size - 1 };

	feed(&whole, bytes, SIZE_MAX);
	feed(&cut, bytes, 1U + data[0] % 16);
	assert(span_eq(buf_span(&whole), buf_span(&cut)));
	for (struct span rest = buf_span(&whole); rest.n > 0;
			rest = span_from(rest, (size_t)(end - rest.p) + 2)) {
		struct error e = ERROR_INIT;

		end = memmem(rest.p, rest.n, "\n\n", 2);
		assert(end && rest.p[0] == '{');
		AUTO(json)
		struct json *json = json_parse(
				(struct span){ .p = rest.p, .n = (size_t)(end - rest.p) }, &e);

		/* Only a NUL is not taken by our own reader. */
		assert(json || memmem(rest.p, (size_t)(end - rest.p), "\\u0000", 6));
	}
	return 0;
}
