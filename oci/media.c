/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/str.h>

#include "media.h"

#define MEDIA_DOCKER         "application/vnd.docker.distribution.manifest"
#define MEDIA_DOCKER_LAYER   "application/vnd.docker.image.rootfs.diff.tar"
#define MEDIA_DOCKER_FOREIGN "application/vnd.docker.image.rootfs.foreign.diff.tar"
#define MEDIA_OCI_FOREIGN    "application/vnd.oci.image.layer.nondistributable.v1.tar"

struct media_row {
	const char *type;
	enum media_kind kind;
	enum image_compression compression;
};

static const struct media_row media_rows[] = {
	{ MEDIA_OCI_INDEX, MEDIA_INDEX, IMAGE_PLAIN },
	{ MEDIA_DOCKER ".list.v2+json", MEDIA_INDEX, IMAGE_PLAIN },
	{ MEDIA_OCI_MANIFEST, MEDIA_MANIFEST, IMAGE_PLAIN },
	{ MEDIA_DOCKER ".v2+json", MEDIA_MANIFEST, IMAGE_PLAIN },
	{ MEDIA_DOCKER ".v1+json", MEDIA_SCHEMA1, IMAGE_PLAIN },
	{ MEDIA_DOCKER ".v1+prettyjws", MEDIA_SCHEMA1, IMAGE_PLAIN },
	{ MEDIA_OCI_CONFIG, MEDIA_CONFIG, IMAGE_PLAIN },
	{ "application/vnd.docker.container.image.v1+json", MEDIA_CONFIG, IMAGE_PLAIN },
	/* What Docker before 1.10 pushed as a configuration. */
	{ "application/octet-stream", MEDIA_CONFIG, IMAGE_PLAIN },
	{ MEDIA_OCI_LAYER, MEDIA_LAYER, IMAGE_PLAIN },
	{ MEDIA_OCI_LAYER "+gzip", MEDIA_LAYER, IMAGE_GZIP },
	{ MEDIA_OCI_LAYER "+zstd", MEDIA_LAYER, IMAGE_ZSTD },
	{ MEDIA_DOCKER_LAYER, MEDIA_LAYER, IMAGE_PLAIN },
	{ MEDIA_DOCKER_LAYER ".gzip", MEDIA_LAYER, IMAGE_GZIP },
	{ MEDIA_DOCKER_LAYER ".zstd", MEDIA_LAYER, IMAGE_ZSTD },
	{ MEDIA_OCI_FOREIGN, MEDIA_FOREIGN, IMAGE_PLAIN },
	{ MEDIA_OCI_FOREIGN "+gzip", MEDIA_FOREIGN, IMAGE_GZIP },
	{ MEDIA_OCI_FOREIGN "+zstd", MEDIA_FOREIGN, IMAGE_ZSTD },
	{ MEDIA_DOCKER_FOREIGN, MEDIA_FOREIGN, IMAGE_PLAIN },
	{ MEDIA_DOCKER_FOREIGN ".gzip", MEDIA_FOREIGN, IMAGE_GZIP },
};

enum media_kind media_find(const char *type, enum image_compression *out_compression)
{
	for (size_t i = 0; type && i < ARRAY_SIZE(media_rows); i++) {
		if (str_eq(type, media_rows[i].type)) {
			if (out_compression) {
				*out_compression = media_rows[i].compression;
			}
			return media_rows[i].kind;
		}
	}
	return MEDIA_UNKNOWN;
}

static const char *const layer_types[] = {
	[IMAGE_PLAIN] = MEDIA_OCI_LAYER,
	[IMAGE_GZIP] = MEDIA_OCI_LAYER "+gzip",
	[IMAGE_ZSTD] = MEDIA_OCI_LAYER "+zstd",
};
_Static_assert(ARRAY_SIZE(layer_types) == IMAGE_COMPRESSION_COUNT, "a media type each");

const char *media_of_layer(enum image_compression compression)
{
	return layer_types[compression];
}
