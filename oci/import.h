/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import - from a manifest to an image whose layers are unpacked and whose blobs are stored.
 */
#ifndef OSBX_OCI_IMPORT_H
#define OSBX_OCI_IMPORT_H

#include <osbx/buf.h>
#include <osbx/image.h>
#include <osbx/limits.h>
#include <osbx/store.h>
#include <osbx/strv.h>

#include "layout.h"

/* An image whose documents were read and checked against each other. */
struct resolved {
	struct found found; /* by image_find */
	struct image *img;
	struct buf manifest; /* their bytes */
	struct buf config;
	struct descriptor config_d;
	bool manifest_stored;
	bool config_stored;
	bool is_registered; /* its chain ids are recorded, so the index has an entry of it */
};

#define RESOLVED_INIT                                                            \
	{                                                                        \
		.found = FOUND_INIT, .manifest = BUF_INIT(LIMIT_MANIFEST_BYTES), \
		.config = BUF_INIT(LIMIT_CONFIG_BYTES),                          \
	}

void resolved_done(struct resolved *r);
AUTO_DEFINE(resolved, struct resolved, resolved_done);
/* Read manifest and configuration of d. Chain ids come from the store's record or are computed.
 * ERRC_UNSUPPORTED when the configuration is for another architecture than wish ("": any). */
int image_resolve(struct store *st, const struct blob_source *src, const struct descriptor *d,
		const struct platform_wish *wish, struct resolved *out_r,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4, 5, 6);
/* The same for the manifest that suits opts->platform among candidates. */
int image_find(struct store *st, const struct blob_source *src,
		const struct descriptors *candidates, const struct image_opts *opts,
		struct resolved *out_r, struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4, 5, 6);
/* Are all layers unpacked in this mode? */
bool image_is_unpacked(struct store *st, const struct image *img, enum idmap_mode mode)
		NONNULL(1, 2);
/* Make blobs and layers present that are not, then add the names (or an entry without one when
 * names is empty) to the index. names NULL: an entry that gc removes when no sandbox uses it,
 * unless the image has another. Missing blobs come from src. r is what image_find gave. */
int image_import(struct store *st, const struct blob_source *src, const struct resolved *r,
		const struct image_opts *opts, const struct strv *names, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3, 4, 6);

#endif
