/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/buf.h>

#include "../../policy/sniff.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* All names of a connection and where their heads end, in pieces of some size. */
static void talk(struct span bytes, size_t piece, struct buf *out)
{
	struct sniff_http s;

	sniff_http_init(&s);
	for (size_t at = 0; at < bytes.n;) {
		struct span some = span_from(bytes, at);
		size_t n = 0;

		some.n = some.n < piece ? some.n : piece;
		const enum sniff result = sniff_http_feed(&s, some, &n);

		if (n > some.n || (result == SNIFF_MORE && n != some.n) ||
				(result == SNIFF_PASS && n == 0)) {
			abort();
		}
		at += n;
		if (result == SNIFF_NONE) {
			if (!s.why || buf_appendf(out, "! %zu %s", at, s.why) < 0) {
				abort();
			}
			return;
		}
		if (result == SNIFF_NAME && buf_appendf(out, "%zu %s\n", at, s.name) < 0) {
			abort();
		}
	}
}

/* However the bytes are cut, they are the same requests. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(buf) struct buf whole = BUF_INIT(1U << 20);
	AUTO(buf) struct buf pieces = BUF_INIT(1U << 20);
	const struct span bytes = { .p = (const char *)data, .n = size };

	if (size == 0 || size > 4096) {
		return 0;
	}
	talk(bytes, size, &whole);
	talk(bytes, 1 + data[size - 1] % 7, &pieces);
	if (!span_eq(buf_span(&whole), buf_span(&pieces))) {
		abort();
	}
	return 0;
}
