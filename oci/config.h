/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config - image configurations (image-spec config.md).
 */
#ifndef OSBX_OCI_CONFIG_H
#define OSBX_OCI_CONFIG_H

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/digest.h>
#include <osbx/error.h>
#include <osbx/image.h>
#include <osbx/span.h>

struct config_doc {
	struct image_config config;
	struct digest *diffs; /* of the layers, lowest first */
	size_t diffs_n;
};

#define CONFIG_DOC_INIT      \
	{                    \
		.diffs_n = 0 \
	}

void image_config_done(struct image_config *c);
void config_doc_done(struct config_doc *d);
AUTO_DEFINE(config_doc, struct config_doc, config_doc_done);
/* Read a configuration. Made uniform: an entrypoint of one empty string is none (Docker's way to
 * say so), "NAME" in env is "NAME=", an entry without a name is dropped, volumes are absolute and
 * sorted. ERRC_INVALID, ERRC_LIMIT, ERRC_UNSUPPORTED (another os than linux). */
int config_parse(struct span text, struct config_doc *out_doc, struct error *e) MUST_CHECK
		NONNULL(2, 3);

#endif
