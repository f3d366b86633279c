/* SPDX-License-Identifier: Apache-2.0 */
/*
 * media - the table of media types: what a blob is said to be.
 */
#ifndef OSBX_OCI_MEDIA_H
#define OSBX_OCI_MEDIA_H

#include <osbx/compiler.h>
#include <osbx/image.h>

enum media_kind {
	MEDIA_UNKNOWN,
	MEDIA_INDEX,    /* OCI index, Docker manifest list */
	MEDIA_MANIFEST, /* OCI manifest, Docker schema 2 */
	MEDIA_CONFIG,
	MEDIA_LAYER,
	MEDIA_FOREIGN, /* a layer whose bytes are not in registries (nondistributable) */
	MEDIA_SCHEMA1,
	MEDIA_KIND_COUNT,
};

#define MEDIA_OCI_INDEX    "application/vnd.oci.image.index.v1+json"
#define MEDIA_OCI_MANIFEST "application/vnd.oci.image.manifest.v1+json"
#define MEDIA_OCI_CONFIG   "application/vnd.oci.image.config.v1+json"
#define MEDIA_OCI_LAYER    "application/vnd.oci.image.layer.v1.tar"

/* What a media type stands for; NULL and foreign words are MEDIA_UNKNOWN. Of layers also how the
 * type says they are compressed: a claim, unpack looks at the bytes. out_compression may be
 * NULL. */
enum media_kind media_find(const char *type, enum image_compression *out_compression);
/* The media type of a layer in a manifest of ours. */
const char *media_of_layer(enum image_compression compression);

#endif
