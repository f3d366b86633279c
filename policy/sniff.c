/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "sniff.h"

/* With the blank behind: "GETTING" is none. */
static const char *const methods[] = { "GET ", "HEAD ", "POST ", "PUT ", "PATCH ", "DELETE ",
	"OPTIONS ", "TRACE ", "CONNECT " };

enum sniff_proto sniff_guess(struct span first)
{
	if (first.n == 0) {
		return SNIFF_PROTO_MORE;
	}
	/* A record of the handshake, and its major version. */
	if (first.p[0] == 0x16) {
		return first.n == 1      ? SNIFF_PROTO_MORE
		       : first.p[1] == 3 ? SNIFF_PROTO_TLS
					 : SNIFF_PROTO_OTHER;
	}
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
		const size_t n = strlen(methods[i]);

		if (memcmp(first.p, methods[i], first.n < n ? first.n : n) == 0) {
			return first.n < n ? SNIFF_PROTO_MORE : SNIFF_PROTO_HTTP;
		}
	}
	return SNIFF_PROTO_OTHER;
}
