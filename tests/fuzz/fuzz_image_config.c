/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/limits.h>

#include "../../oci/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct span text = { .p = (const char *)data, .n = size };
	AUTO(config_doc) struct config_doc doc = CONFIG_DOC_INIT;
	struct error e = ERROR_INIT;

	if (config_parse(text, &doc, &e) < 0) {
		if (e.code == ERRC_OK || !e.text[0]) {
			abort();
		}
		return 0;
	}
	if (doc.diffs_n > LIMIT_LAYERS || doc.config.volumes.n > LIMIT_VOLUMES) {
		abort();
	}
	strv_for_each(&doc.config.env, i) {
		const char *equals = strchr(doc.config.env.v[i], '=');

		if (!equals || equals == doc.config.env.v[i]) {
			abort();
		}
	}
	strv_for_each(&doc.config.volumes, i) {
		if (doc.config.volumes.v[i][0] != '/') {
			abort();
		}
	}
	return 0;
}
