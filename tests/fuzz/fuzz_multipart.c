/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>

#include <osbx/mem.h>
#include <osbx/multipart.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct source {
	struct span rest;
	size_t piece_n;
};

static ssize_t source_read(void *ctx, void *p, size_t n)
{
	struct source *s = ctx;

	n = n < s->piece_n ? n : s->piece_n;
	n = n < s->rest.n ? n : s->rest.n;
	if (n > 0) {
		memcpy(p, s->rest.p, n);
	}
	s->rest = span_from(s->rest, n);
	return (ssize_t)n;
}

static uint64_t mix(uint64_t h, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		h = (h ^ (uint8_t)p[i]) * 0x100000001b3U;
	}
	return h;
}

static uint64_t mix_string(uint64_t h, const char *s)
{
	return mix(h, s, strlen(s) + 1);
}

/* Everything that was said about the body, in one number. */
static uint64_t summary(struct span type, struct span body, size_t piece_n)
{
	struct source s = { .rest = body, .piece_n = piece_n };
	struct multipart_part part;
	uint64_t h = 0xcbf29ce484222325U;
	int r = 0;
	AUTO(multipart) struct multipart *m = multipart_new(type, source_read, &s, &r);

	while (m && (r = multipart_next(m, &part)) > 0) {
		struct span content = { .n = 0 };

		h = mix_string(h, part.name);
		h = mix_string(h, part.filename ? part.filename : "none");
		h = mix_string(h, part.type);
		while ((r = multipart_peek(m, &content)) > 0) {
			h = mix(h, content.p, content.n);
			multipart_take(m, content.n);
		}
		h = mix_string(h, ".");
	}
	return mix(h, (const char *)&r, sizeof(r));
}

/* The first line is the Content-Type; the rest reads the same in pieces of every size. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span body = { .p = (const char *)data, .n = size };
	struct span type = { .n = 0 };

	if (size == 0 || !span_next(&body, '\n', &type) || !body.p) {
		return 0;
	}
	if (summary(type, body, 1) != summary(type, body, 65536) ||
			summary(type, body, 1) != summary(type, body, 7)) {
		abort();
	}
	return 0;
}
