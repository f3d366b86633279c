/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>

#include "../../src/http/websocket_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MESSAGE_MAX 4096

static uint64_t mix(uint64_t h, uint64_t v)
{
	return (h ^ v) * 0x100000001b3U;
}

/* All events, in one number. */
static uint64_t summary(struct span in, size_t piece_n)
{
	uint64_t h = 0xcbf29ce484222325U;
	struct ws_reader r;

	ws_reader_init(&r, MESSAGE_MAX);
	while (in.n > 0) {
		struct span piece = { .p = in.p, .n = in.n < piece_n ? in.n : piece_n };
		enum ws_event event = WS_EVENT_MORE;

		in = span_from(in, piece.n);
		while ((event = ws_reader_next(&r, &piece)) != WS_EVENT_MORE) {
			h = mix(h, event);
			if (event == WS_EVENT_BROKEN || event == WS_EVENT_CLOSE) {
				h = mix(h, r.code);
				continue;
			}
			if (r.payload.n > MESSAGE_MAX ||
					(event == WS_EVENT_MESSAGE && r.is_text &&
							!span_is_utf8(r.payload))) {
				abort();
			}
			for (size_t i = 0; i < r.payload.n; i++) {
				h = mix(h, (uint8_t)r.payload.p[i]);
			}
		}
		if (piece.n > 0) {
			abort();
		}
	}
	ws_reader_done(&r);
	return h;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span in = { .p = (const char *)data, .n = size };

	if (summary(in, 1) != summary(in, size + 1)) {
		abort();
	}
	return 0;
}
