/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>

#include <osbx/buf.h>

#include "../../src/http/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* 1: whole, 0: more is to come, -1: refused. *out_used is what belongs to the body. */
static int decode(struct span in, size_t piece, struct buf *out, size_t *out_used)
{
	struct chunked c = { .state = CHUNKED_SIZE };
	size_t at = 0;
	size_t fed = 0;

	while (c.state != CHUNKED_DONE && at < in.n) {
		if (at == fed) {
			fed = in.n - at < piece ? in.n : at + piece;
		}
		ssize_t n = chunked_step(&c, (struct span){ .p = in.p + at, .n = fed - at });

		if (n < 0) {
			return -1;
		}
		at += (size_t)n;
		if (c.state == CHUNKED_DATA) {
			size_t take = fed - at < c.left ? fed - at : (size_t)c.left;

			if (buf_append(out, in.p + at, take) < 0) {
				abort();
			}
			chunked_take(&c, take);
			at += take;
		}
	}
	*out_used = at;
	return c.state == CHUNKED_DONE;
}

/* However the bytes are cut, they mean the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span in = { .p = (const char *)data, .n = size };
	AUTO(buf) struct buf whole = BUF_INIT(1U << 20);
	AUTO(buf) struct buf pieces = BUF_INIT(1U << 20);
	size_t whole_used = 0;
	size_t pieces_used = 0;

	if (size == 0 || size > 65536) {
		return 0;
	}
	int r = decode(in, size, &whole, &whole_used);

	if (decode(in, 1 + data[size - 1] % 5, &pieces, &pieces_used) != r) {
		abort();
	}
	if (r >= 0 && (whole_used != pieces_used ||
				      !span_eq(buf_span(&whole), buf_span(&pieces)))) {
		abort();
	}
	return 0;
}
