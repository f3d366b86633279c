/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/mem.h>

#include "../../execd/glob.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A pattern, a NUL, a name: the pattern is compiled within its limits, and a name is matched twice
 * with the same result. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *text = mem_dup(data, size);
	AUTO(glob) struct glob *g = NULL;
	struct error e = ERROR_INIT;
	const size_t n = strlen(text);
	const char *name = n < size ? text + n + 1 : "";

	if (glob_new(text, &g, &e) == 0 && glob_matches(g, name) != glob_matches(g, name)) {
		abort();
	}
	return 0;
}
