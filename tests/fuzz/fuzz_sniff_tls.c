/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../policy/sniff.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* However the bytes are cut, they say the same; and a name is a name. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char again[NETPOLICY_NAME_MAX + 1];
	struct sniff_tls whole;
	struct sniff_tls pieces;
	const size_t piece = size > 0 ? 1 + data[size - 1] % 7 : 1;

	sniff_tls_init(&whole);
	sniff_tls_init(&pieces);
	const enum sniff want =
			sniff_tls_feed(&whole, (struct span){ .p = (const char *)data, .n = size });
	enum sniff got = SNIFF_MORE;

	(void)sniff_guess((struct span){ .p = (const char *)data, .n = size });
	for (size_t at = 0; at < size; at += piece) {
		const size_t n = size - at < piece ? size - at : piece;

		got = sniff_tls_feed(
				&pieces, (struct span){ .p = (const char *)data + at, .n = n });
	}
	if (got != want || whole.has_ech != pieces.has_ech) {
		abort();
	}
	if (want == SNIFF_NAME && (strcmp(whole.name, pieces.name) != 0 ||
						  netpolicy_name(span_of(whole.name), again) < 0 ||
						  strcmp(again, whole.name) != 0)) {
		abort();
	}
	if (want == SNIFF_NONE && !whole.why) {
		abort();
	}
	return 0;
}
