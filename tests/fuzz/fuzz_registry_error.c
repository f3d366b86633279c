/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdint.h>

#include <osbx/mem.h>

#include "../../oci/fetch_error.h"
#include "../../oci/fetch_retry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_printable(const char *s, size_t size)
{
	assert(strnlen(s, size) < size);
	assert(span_is_utf8(span_of(s)));
	for (; *s; s++) {
		assert((unsigned char)*s >= ' ' && *s != 0x7f);
	}
}

/* A refusal's body, and the same bytes as the fields that come with one: what is shown to people
 * is bounded and printable. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *text = mem_dup(data, size);
	struct answer a;
	struct retry_range r = { 0 };
	char limit[64];

	answer_parse((struct span){ .p = (const char *)data, .n = size }, &a);
	check_printable(a.code, sizeof(a.code));
	check_printable(a.message, sizeof(a.message));
	(void)retry_limit_text(text, limit, sizeof(limit));
	check_printable(limit, sizeof(limit));
	if (retry_range_parse(text, &r) == 0) {
		assert(r.first <= r.last && (r.first == RETRY_RANGE_UNKNOWN || r.last < r.total));
	}
	return 0;
}
