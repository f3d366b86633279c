/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>

#include <osbx/mem.h>
#include <osbx/ref.h>
#include <osbx/str.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was parsed and written in full reads back as the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *text = mem_dup(data, size);
	AUTO(ref) struct ref r = REF_INIT;
	AUTO(ref) struct ref again = REF_INIT;
	struct error e = ERROR_INIT;
	autofree char *full = NULL;

	if (ref_parse(text, &r, &e) < 0) {
		return 0;
	}
	full = ref_full_name(&r);
	if (full) {
		autofree char *shown = ref_familiar(full);
		autofree char *second = NULL;

		if (ref_parse(shown, &again, &e) < 0) {
			abort();
		}
		second = ref_full_name(&again);
		if (!second || !str_eq(full, second)) {
			abort();
		}
	}
	return 0;
}
