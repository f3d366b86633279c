/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/limits.h>
#include <osbx/mem.h>

#include "../../../oci/manifest.h"
#include "../unit.h"
#include "documents.h"

struct good {
	const char *text;
	const char *type;
	size_t layers_n;
	enum image_compression first;
};

static const struct good good[] = {
	{ DOC_DOCKER, DOCKER_MANIFEST, 2, IMAGE_GZIP },
	{ DOC_PODMAN, MEDIA_OCI_MANIFEST, 1, IMAGE_GZIP },
	{ DOC_BUILDX, MEDIA_OCI_MANIFEST, 2, IMAGE_ZSTD },
	{ DOC_KANIKO, DOCKER_MANIFEST, 1, IMAGE_GZIP },
	{ DOC_BAZEL, MEDIA_OCI_MANIFEST, 1, IMAGE_PLAIN },
	{ DOC_NO_LAYERS, MEDIA_OCI_MANIFEST, 0, IMAGE_PLAIN },
	{ DOC_NULL_LAYERS, MEDIA_OCI_MANIFEST, 0, IMAGE_PLAIN },
};

START_TEST(reads_manifests)
{
	const struct good *g = &good[_i];
	AUTO(manifest) struct manifest m = MANIFEST_INIT;
	struct error e = ERROR_INIT;
	enum image_compression compression = IMAGE_PLAIN;

	ck_assert_msg(manifest_parse(span_of(g->text), g->type, &m, &e) == 0, "%s", e.text);
	ck_assert_str_eq(m.config.digest.text, SHA_A);
	ck_assert_uint_eq(m.layers.n, g->layers_n);
	if (g->layers_n > 0) {
		ck_assert_str_eq(m.layers.v[0].digest.text, SHA_B);
		(void)media_find(m.layers.v[0].media_type, &compression);
		ck_assert_int_eq(compression, g->first);
	}
}
END_TEST

struct bad {
	const char *text;
	const char *type;
	const char *reason;
	enum errc code;
};

#define OCI        MEDIA_OCI_MANIFEST
#define CONFIG     "\"config\":" D(MEDIA_OCI_CONFIG, SHA_A, "10")
#define LAYERS     "\"layers\":[" D(MEDIA_OCI_LAYER, SHA_B, "1") "]"
#define ONE(layer) "{\"schemaVersion\":2," CONFIG ",\"layers\":[" layer "]}"

static const struct bad bad_manifests[] = {
	{ "", OCI, "json", ERRC_INVALID },
	{ "[]", OCI, "expected an object", ERRC_INVALID },
	{ "null", OCI, "expected an object", ERRC_INVALID },
	{ "{}", OCI, "config", ERRC_INVALID },
	{ DOC_DOCKER "x", DOCKER_MANIFEST, "json", ERRC_INVALID },
	/* CVE-2021-41190: one document, two meanings. */
	{ DOC_DOCKER, OCI, "another media type", ERRC_INVALID },
	{ DOC_BUILDX, DOCKER_MANIFEST, "another media type", ERRC_INVALID },
	{ DOC_INDEX, OCI, "another media type", ERRC_INVALID },
	{ "{\"schemaVersion\":2," CONFIG "," LAYERS ",\"manifests\":[]}", OCI, "manifests",
			ERRC_INVALID },
	{ "{\"schemaVersion\":2," CONFIG "," LAYERS ",\"fsLayers\":[]}", OCI, "fsLayers",
			ERRC_INVALID },
	{ "{\"schemaVersion\":2,\"manifests\":[]}", OCI, "manifests", ERRC_INVALID },
	{ "{\"schemaVersion\":2,\"mediaType\":2," CONFIG "," LAYERS "}", OCI, "another media type",
			ERRC_INVALID },
	{ "{\"schemaVersion\":2," CONFIG "," LAYERS "," CONFIG "}", OCI, "duplicate",
			ERRC_INVALID },
	{ "{\"schemaVersion\":2,\"Config\":{}," CONFIG "," LAYERS "}", OCI, "Config",
			ERRC_INVALID },
	/* Schema 1 by each of its marks. */
	{ "{\"schemaVersion\":1,\"fsLayers\":[]}", OCI, "schema 1", ERRC_UNSUPPORTED },
	{ "{\"fsLayers\":[]}", "application/vnd.docker.distribution.manifest.v1+prettyjws",
			"schema 1", ERRC_UNSUPPORTED },
	{ "{\"schemaVersion\":1,\"mediaType\":\"application/vnd.docker.distribution.manifest."
	  "v1+json\"}",
			OCI, "schema 1", ERRC_UNSUPPORTED },
	{ "{\"schemaVersion\":3," CONFIG "," LAYERS "}", OCI, "schemaVersion", ERRC_UNSUPPORTED },
	{ "{\"schemaVersion\":\"2\"," CONFIG "," LAYERS "}", OCI, "schemaVersion", ERRC_INVALID },
	/* Artifacts. */
	{ "{\"schemaVersion\":2,\"artifactType\":\"application/x.chart\",\"config\":" D(
			  "application/vnd.oci.empty.v1+json", SHA_A, "2") ",\"layers\":[]}",
			OCI, "artifact of type application/x.chart", ERRC_UNSUPPORTED },
	{ "{\"schemaVersion\":2,\"config\":" D(
			  "application/vnd.cncf.helm.config.v1+json", SHA_A, "2") "," LAYERS "}",
			OCI, "artifact of type application/vnd.cncf.helm", ERRC_UNSUPPORTED },
	{ ONE(D(IN_TOTO, SHA_B, "1")), OCI, IN_TOTO, ERRC_UNSUPPORTED },
	/* Layers. */
	{ ONE(D(DOCKER_FOREIGN, SHA_B, "1")), OCI, "layer 1: foreign", ERRC_UNSUPPORTED },
	{ ONE(D("application/vnd.oci.image.layer.nondistributable.v1.tar", SHA_B, "1")), OCI,
			"foreign", ERRC_UNSUPPORTED },
	{ ONE(D(MEDIA_OCI_LAYER "+gzip+encrypted", SHA_B, "1")), OCI, "encrypted",
			ERRC_UNSUPPORTED },
	{ ONE(D(MEDIA_OCI_LAYER, SHA_B, "1") "," D("text/plain", SHA_B, "1")), OCI,
			"layer 2: media type text/plain", ERRC_UNSUPPORTED },
	{ ONE(D(MEDIA_OCI_LAYER, SHA512, "1")), OCI, "only sha256", ERRC_UNSUPPORTED },
	{ ONE(D(MEDIA_OCI_LAYER, "sha256:../../../etc/passwd", "1")), OCI,
			"layers[0]: digest: expected a digest", ERRC_INVALID },
	{ ONE(D(MEDIA_OCI_LAYER, "", "1")), OCI, "digest", ERRC_INVALID },
	{ ONE(D(MEDIA_OCI_LAYER, SHA_B "0", "1")), OCI, "digest", ERRC_INVALID },
	{ ONE(D(MEDIA_OCI_LAYER, SHA_B, "-1")), OCI, "layers[0]: size", ERRC_INVALID },
	{ ONE(D(MEDIA_OCI_LAYER, SHA_B, "1.5")), OCI, "size", ERRC_INVALID },
	{ ONE(D(MEDIA_OCI_LAYER, SHA_B, "\"1\"")), OCI, "size", ERRC_INVALID },
	{ ONE(D(MEDIA_OCI_LAYER, SHA_B, "18446744073709551615")), OCI, "size", ERRC_LIMIT },
	{ ONE(D(MEDIA_OCI_LAYER, SHA_B, "9007199254740991")), OCI, "size", ERRC_LIMIT },
	{ ONE(D(MEDIA_OCI_LAYER, SHA_B, "1e300")), OCI, "size", ERRC_LIMIT },
	{ ONE("{\"mediaType\":\"" MEDIA_OCI_LAYER "\",\"size\":1}"), OCI, "digest: missing",
			ERRC_INVALID },
	{ ONE("{\"digest\":\"" SHA_B "\",\"size\":1}"), OCI, "mediaType: missing", ERRC_INVALID },
	{ ONE("{\"digest\":\"" SHA_B "\",\"mediaType\":\"" MEDIA_OCI_LAYER "\"}"), OCI,
			"size: missing", ERRC_INVALID },
	{ ONE("null"), OCI, "expected an object", ERRC_INVALID },
	{ ONE("7"), OCI, "expected an object", ERRC_INVALID },
	{ "{\"schemaVersion\":2," CONFIG ",\"layers\":{}}", OCI, "layers: expected an array",
			ERRC_INVALID },
	/* Configuration. */
	{ "{\"schemaVersion\":2," LAYERS "}", OCI, "config: missing", ERRC_INVALID },
	{ "{\"schemaVersion\":2,\"config\":[]," LAYERS "}", OCI, "config: expected an object",
			ERRC_INVALID },
	{ "{\"schemaVersion\":2,\"config\":" D(MEDIA_OCI_CONFIG, SHA_A, "1048577") "," LAYERS "}",
			OCI, "configuration is larger", ERRC_LIMIT },
	{ "{\"schemaVersion\":2,\"config\":" D(MEDIA_OCI_CONFIG, SHA512, "10") "," LAYERS "}", OCI,
			"only sha256", ERRC_UNSUPPORTED },
};

static void refused(int r, const struct bad *b, const struct error *e)
{
	ck_assert_msg(r == -1, "taken: %s", b->text);
	ck_assert_msg(e->code == b->code, "%s: code %d: %s", b->text, (int)e->code, e->text);
	ck_assert_msg(strstr(e->text, b->reason) != NULL, "%s: %s", b->text, e->text);
}

START_TEST(refuses_manifests)
{
	const struct bad *b = &bad_manifests[_i];
	AUTO(manifest) struct manifest m = MANIFEST_INIT;
	struct error e = ERROR_INIT;

	refused(manifest_parse(span_of(b->text), b->type, &m, &e), b, &e);
	ck_assert_uint_eq(m.layers.n, 0);
	ck_assert_ptr_null(m.config.media_type);
}
END_TEST

START_TEST(refuses_too_many_layers)
{
	AUTO(buf) struct buf text = BUF_INIT(LIMIT_MANIFEST_BYTES);
	AUTO(manifest) struct manifest m = MANIFEST_INIT;
	struct error e = ERROR_INIT;

	ck_assert_int_eq(buf_append_str(&text, "{\"schemaVersion\":2," CONFIG ",\"layers\":["), 0);
	for (int i = 0; i < LIMIT_LAYERS + _i; i++) {
		ck_assert_int_eq(buf_appendf(&text, "%s" D(MEDIA_OCI_LAYER, SHA_B, "1"),
						 i ? "," : ""),
				0);
	}
	ck_assert_int_eq(buf_append_str(&text, "]}"), 0);
	ck_assert_int_eq(manifest_parse(buf_span(&text), OCI, &m, &e), _i == 0 ? 0 : -1);
	ck_assert_int_eq(e.code, _i == 0 ? ERRC_OK : ERRC_LIMIT);
}
END_TEST

START_TEST(schema1_has_a_hint)
{
	AUTO(manifest) struct manifest m = MANIFEST_INIT;
	struct error e = ERROR_INIT;

	ck_assert_int_eq(manifest_parse(span_of("{\"schemaVersion\":1}"), OCI, &m, &e), -1);
	ck_assert_ptr_nonnull(strstr(e.hint, "skopeo"));
}
END_TEST

START_TEST(reads_index)
{
	AUTO(descriptors) struct descriptors l = DESCRIPTORS_INIT;
	struct error e = ERROR_INIT;

	ck_assert_int_eq(index_parse(span_of(DOC_INDEX), MEDIA_OCI_INDEX, &l, &e), 0);
	ck_assert_uint_eq(l.n, 3);
	ck_assert_str_eq(l.v[0].platform.architecture, "amd64");
	ck_assert_ptr_null(l.v[0].platform.variant);
	ck_assert_str_eq(l.v[1].platform.variant, "v7");
	ck_assert_str_eq(l.v[2].annotations.reference_type, "attestation-manifest");
	ck_assert_uint_eq(l.v[2].size, 566);
}
END_TEST

START_TEST(reads_docker_list)
{
	AUTO(descriptors) struct descriptors l = DESCRIPTORS_INIT;
	struct error e = ERROR_INIT;

	ck_assert_int_eq(index_parse(span_of(DOC_LIST), DOCKER_LIST, &l, &e), 0);
	ck_assert_uint_eq(l.n, 2);
	ck_assert_str_eq(l.v[0].platform.os, "windows");
}
END_TEST

START_TEST(reads_names)
{
	AUTO(descriptors) struct descriptors l = DESCRIPTORS_INIT;
	struct error e = ERROR_INIT;

	ck_assert_int_eq(index_parse(span_of(DOC_SAVED_INDEX), NULL, &l, &e), 0);
	ck_assert_str_eq(l.v[0].annotations.ref_name, "3");
	ck_assert_str_eq(l.v[0].annotations.containerd, "docker.io/library/alpine:3");
}
END_TEST

/* What is not needed may be of a kind we do not know. */
START_TEST(index_keeps_unknown_entries)
{
	static const char text[] = "{\"schemaVersion\":2,\"manifests\":[" D(
			"text/plain", SHA512, "7") "," D(OCI, SHA_A, "7") "]}";
	AUTO(descriptors) struct descriptors l = DESCRIPTORS_INIT;
	struct error e = ERROR_INIT;

	ck_assert_int_eq(index_parse(span_of(text), MEDIA_OCI_INDEX, &l, &e), 0);
	ck_assert_uint_eq(l.n, 2);
	ck_assert_str_eq(l.v[0].digest.text, "");
	ck_assert_int_eq(descriptor_check(&l.v[0], &e), -1);
	ck_assert_int_eq(e.code, ERRC_UNSUPPORTED);
}
END_TEST

static const struct bad bad_indexes[] = {
	{ "{", MEDIA_OCI_INDEX, "json", ERRC_INVALID },
	{ "[]", MEDIA_OCI_INDEX, "expected an object", ERRC_INVALID },
	{ DOC_LIST, MEDIA_OCI_INDEX, "another media type", ERRC_INVALID },
	{ DOC_DOCKER, DOCKER_LIST, "another media type", ERRC_INVALID },
	{ "{\"schemaVersion\":2,\"manifests\":[]," LAYERS "}", MEDIA_OCI_INDEX, "layers",
			ERRC_INVALID },
	{ "{\"schemaVersion\":2,\"manifests\":[]," CONFIG "}", MEDIA_OCI_INDEX, "config",
			ERRC_INVALID },
	{ "{\"schemaVersion\":1}", MEDIA_OCI_INDEX, "schema 1", ERRC_UNSUPPORTED },
	{ "{\"schemaVersion\":2,\"manifests\":{}}", MEDIA_OCI_INDEX, "manifests", ERRC_INVALID },
	{ "{\"schemaVersion\":2,\"manifests\":[" D(OCI, SHA_A, "-5") "]}", MEDIA_OCI_INDEX,
			"manifests[0]: size", ERRC_INVALID },
	{ "{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":\"" OCI "\",\"size\":1,"
	  "\"digest\":\"" SHA_A "\",\"platform\":\"linux\"}]}",
			MEDIA_OCI_INDEX, "manifests[0]: platform", ERRC_INVALID },
	{ "{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":\"" OCI "\",\"size\":1,"
	  "\"digest\":\"" SHA_A "\",\"annotations\":{\"" ANNOTATION_REF_NAME "\":1}}]}",
			MEDIA_OCI_INDEX, "ref.name", ERRC_INVALID },
};

START_TEST(refuses_indexes)
{
	const struct bad *b = &bad_indexes[_i];
	AUTO(descriptors) struct descriptors l = DESCRIPTORS_INIT;
	struct error e = ERROR_INIT;

	refused(index_parse(span_of(b->text), b->type, &l, &e), b, &e);
	ck_assert_uint_eq(l.n, 0);
}
END_TEST

START_TEST(copies_deeply)
{
	AUTO(descriptors) struct descriptors l = DESCRIPTORS_INIT;
	AUTO(descriptor) struct descriptor copy = { .size = 0 };
	struct error e = ERROR_INIT;

	ck_assert_int_eq(index_parse(span_of(DOC_INDEX), MEDIA_OCI_INDEX, &l, &e), 0);
	descriptor_copy(&l.v[1], &copy);
	descriptors_done(&l);
	ck_assert_str_eq(copy.media_type, MEDIA_OCI_MANIFEST);
	ck_assert_str_eq(copy.digest.text, SHA_B);
	ck_assert_str_eq(copy.platform.variant, "v7");
	ck_assert_uint_eq(copy.size, 481);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("manifest");
	TCase *tc = tcase_create("all");

	tcase_add_loop_test(tc, reads_manifests, 0, ARRAY_SIZE(good));
	tcase_add_loop_test(tc, refuses_manifests, 0, ARRAY_SIZE(bad_manifests));
	tcase_add_loop_test(tc, refuses_too_many_layers, 0, 2);
	tcase_add_test(tc, schema1_has_a_hint);
	tcase_add_test(tc, reads_index);
	tcase_add_test(tc, reads_docker_list);
	tcase_add_test(tc, reads_names);
	tcase_add_test(tc, index_keeps_unknown_entries);
	tcase_add_loop_test(tc, refuses_indexes, 0, ARRAY_SIZE(bad_indexes));
	tcase_add_test(tc, copies_deeply);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
