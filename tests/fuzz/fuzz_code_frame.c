/* SPDX-License-Identifier: Apache-2.0 */
/* Input: what a driver sends. Frames lie within it, one behind the other, and a frame that is cut
 * is none. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/mem.h>

#include "../../execd/code_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A copy of its own size, so that a byte too far is seen. */
	char *copy = mem_dup(data, size);
	struct span rest = { .p = copy, .n = size };
	struct code_frame f = { .kind = 0 };
	size_t n = 0;

	while (code_frame_next(rest, &f, &n) == 1) {
		struct code_frame same = { .kind = 0 };
		size_t same_n = 0;

		assert(n <= rest.n && f.payload.n < n && f.payload.p + f.payload.n == rest.p + n);
		assert(code_frame_next((struct span){ .p = rest.p, .n = n - 1 }, &same, &same_n) ==
				0);
		rest = span_from(rest, n);
	}
	free(copy);
	return 0;
}
