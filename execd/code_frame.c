/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdint.h>

#include <osbx/str.h>

#include "code_frame.h"
#include "code_internal.h"

struct kind {
	char kind;
	size_t max;
};

static const struct kind kinds[] = {
	{ CODE_FRAME_HELLO, 4096 },
	{ CODE_FRAME_SYNC, 0 },
	{ CODE_FRAME_OUT, 1U << 20 },
	{ CODE_FRAME_ERR, 1U << 20 },
	{ CODE_FRAME_DISPLAY, CODE_BUNDLE_MAX },
	{ CODE_FRAME_RESULT, CODE_BUNDLE_MAX },
	{ CODE_FRAME_ERROR, 1U << 20 },
	{ CODE_FRAME_FINISHED, 4096 },
};

static const struct kind *kind_find(char kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (kinds[i].kind == kind) {
			return &kinds[i];
		}
	}
	return NULL;
}

/* Length of the head with its line end, 0: it has not all come, or -EBADMSG. */
static int head_read(struct span in, size_t max, uint64_t *out_length)
{
	char digits[CODE_FRAME_HEAD_MAX];
	size_t most = in.n < CODE_FRAME_HEAD_MAX ? in.n : CODE_FRAME_HEAD_MAX;
	const char *end = memchr(in.p, '\n', most);

	if (!end) {
		return in.n < CODE_FRAME_HEAD_MAX ? 0 : -EBADMSG;
	}
	size_t n = (size_t)(end - in.p);

	if (n < 3 || in.p[1] != ' ' || memchr(in.p, '\0', n)) {
		return -EBADMSG;
	}
	memcpy(digits, in.p + 2, n - 2);
	digits[n - 2] = '\0';
	return str_to_u64(digits, max, out_length) < 0 ? -EBADMSG : (int)n + 1;
}

int code_frame_next(struct span in, struct code_frame *out, size_t *out_n)
{
	const struct kind *kind = in.n > 0 ? kind_find(in.p[0]) : NULL;
	uint64_t length = 0;

	if (in.n == 0) {
		return 0;
	}
	if (!kind) {
		return -EBADMSG;
	}
	int head = head_read(in, kind->max, &length);

	if (head <= 0) {
		return head;
	}
	if (in.n - (size_t)head < length) {
		return 0;
	}
	out->kind = in.p[0];
	out->payload = (struct span){ .p = in.p + head, .n = length };
	*out_n = (size_t)head + length;
	return 1;
}
