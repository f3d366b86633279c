/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>

#include <osbx/limits.h>

#include "../../oci/manifest.h"
#include "../../oci/store_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const types[] = {
	MEDIA_OCI_MANIFEST,
	MEDIA_OCI_INDEX,
	"application/vnd.docker.distribution.manifest.v2+json",
	"application/vnd.docker.distribution.manifest.list.v2+json",
};

/* No document is both a manifest and an index, under any media type; what we write of an index, we
 * read. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct span text = { .p = (const char *)data, .n = size };
	bool is_manifest = false;
	bool is_index = false;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		AUTO(manifest) struct manifest m = MANIFEST_INIT;
		AUTO(descriptors) struct descriptors l = DESCRIPTORS_INIT;
		AUTO(descriptors) struct descriptors again = DESCRIPTORS_INIT;
		AUTO(buf) struct buf written = BUF_INIT(LIMIT_INDEX_BYTES);
		struct error e = ERROR_INIT;

		is_manifest |= manifest_parse(text, types[i], &m, &e) == 0;
		error_clear(&e);
		if (index_parse(text, types[i], &l, &e) < 0) {
			continue;
		}
		is_index |= l.n > 0;
		for (size_t k = l.n; k > 0; k--) {
			if (!l.v[k - 1].digest.text[0]) {
				entries_remove(&l, k - 1);
			}
		}
		if (index_write(&l, &written) == 0 &&
				(index_parse(buf_span(&written), NULL, &again, &e) < 0 ||
						again.n != l.n)) {
			abort();
		}
	}
	if (is_manifest && is_index) {
		abort();
	}
	return 0;
}
