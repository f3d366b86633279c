/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdint.h>

#include "../../oci/auth.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A token that was accepted can stand in a request. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(auth_token) struct auth_token t = { .token = NULL };
	struct error e = ERROR_INIT;

	if (auth_token_parse((struct span){ .p = (const char *)data, .n = size }, &t, &e) < 0) {
		assert(e.code == ERRC_INVALID || e.code == ERRC_LIMIT);
		assert(!t.token);
		return 0;
	}
	assert(t.token[0] != '\0' && strlen(t.token) <= AUTH_TOKEN_MAX);
	for (const char *p = t.token; *p; p++) {
		assert(*p > ' ' && *p <= '~');
	}
	assert(t.expires_s > 0 && t.expires_s <= AUTH_EXPIRES_S_MAX);
	return 0;
}
