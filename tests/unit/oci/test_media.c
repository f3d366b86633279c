/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/cleanup.h>

#include "../../../oci/media.h"
#include "../unit.h"

struct row {
	const char *type;
	enum media_kind kind;
	enum image_compression compression;
};

static const struct row rows[] = {
	{ NULL, MEDIA_UNKNOWN, IMAGE_PLAIN },
	{ "", MEDIA_UNKNOWN, IMAGE_PLAIN },
	{ "application/vnd.oci.image.index.v1+json", MEDIA_INDEX, IMAGE_PLAIN },
	{ "application/vnd.docker.distribution.manifest.list.v2+json", MEDIA_INDEX, IMAGE_PLAIN },
	{ "application/vnd.oci.image.manifest.v1+json", MEDIA_MANIFEST, IMAGE_PLAIN },
	{ "application/vnd.docker.distribution.manifest.v2+json", MEDIA_MANIFEST, IMAGE_PLAIN },
	{ "application/vnd.docker.distribution.manifest.v1+json", MEDIA_SCHEMA1, IMAGE_PLAIN },
	{ "application/vnd.docker.distribution.manifest.v1+prettyjws", MEDIA_SCHEMA1, IMAGE_PLAIN },
	{ "application/vnd.docker.container.image.v1+json", MEDIA_CONFIG, IMAGE_PLAIN },
	{ "application/vnd.oci.image.config.v1+json", MEDIA_CONFIG, IMAGE_PLAIN },
	{ "application/vnd.oci.empty.v1+json", MEDIA_UNKNOWN, IMAGE_PLAIN },
	{ "application/vnd.oci.image.layer.v1.tar", MEDIA_LAYER, IMAGE_PLAIN },
	{ "application/vnd.oci.image.layer.v1.tar+gzip", MEDIA_LAYER, IMAGE_GZIP },
	{ "application/vnd.oci.image.layer.v1.tar+zstd", MEDIA_LAYER, IMAGE_ZSTD },
	{ "application/vnd.docker.image.rootfs.diff.tar", MEDIA_LAYER, IMAGE_PLAIN },
	{ "application/vnd.docker.image.rootfs.diff.tar.gzip", MEDIA_LAYER, IMAGE_GZIP },
	{ "application/vnd.docker.image.rootfs.diff.tar.zstd", MEDIA_LAYER, IMAGE_ZSTD },
	{ "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", MEDIA_FOREIGN, IMAGE_GZIP },
	{ "application/vnd.oci.image.layer.nondistributable.v1.tar+zstd", MEDIA_FOREIGN,
			IMAGE_ZSTD },
	{ "application/vnd.oci.image.layer.v1.tar+gzip+encrypted", MEDIA_UNKNOWN, IMAGE_PLAIN },
	{ "application/vnd.oci.image.layer.v1.tar+gzip ", MEDIA_UNKNOWN, IMAGE_PLAIN },
	{ "Application/vnd.oci.image.layer.v1.tar", MEDIA_UNKNOWN, IMAGE_PLAIN },
	{ "application/vnd.in-toto+json", MEDIA_UNKNOWN, IMAGE_PLAIN },
};

START_TEST(knows)
{
	enum image_compression compression = IMAGE_PLAIN;

	ck_assert_int_eq(media_find(rows[_i].type, &compression), rows[_i].kind);
	ck_assert_int_eq(compression, rows[_i].compression);
	ck_assert_int_eq(media_find(rows[_i].type, NULL), rows[_i].kind);
}
END_TEST

START_TEST(layer_types_read_back)
{
	enum image_compression compression = IMAGE_COMPRESSION_COUNT;
	const char *type = media_of_layer((enum image_compression)_i);

	ck_assert_int_eq(media_find(type, &compression), MEDIA_LAYER);
	ck_assert_int_eq(compression, _i);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("media");
	TCase *tc = tcase_create("all");

	tcase_add_loop_test(tc, knows, 0, ARRAY_SIZE(rows));
	tcase_add_loop_test(tc, layer_types_read_back, 0, IMAGE_COMPRESSION_COUNT);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
