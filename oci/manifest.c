/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include <osbx/jsondec.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "manifest.h"

/* Larger than any blob, small enough that sums of LIMIT_LAYERS of them do not wrap. */
#define DESCRIPTOR_SIZE_MAX (1ULL << 50)
#define WORD_MAX            255

void descriptor_done(struct descriptor *d)
{
	if (!d) {
		return;
	}
	free(d->media_type);
	free(d->artifact_type);
	free(d->platform.os);
	free(d->platform.architecture);
	free(d->platform.variant);
	free(d->annotations.ref_name);
	free(d->annotations.containerd);
	free(d->annotations.reference_type);
	free(d->annotations.index);
	free(d->annotations.passing);
	*d = (struct descriptor){ .size = 0 };
}

void descriptors_done(struct descriptors *l)
{
	if (!l) {
		return;
	}
	for (size_t i = 0; i < l->n; i++) {
		descriptor_done(&l->v[i]);
	}
	free(l->v);
	*l = (struct descriptors)DESCRIPTORS_INIT;
}

void descriptor_copy(const struct descriptor *from, struct descriptor *out_d)
{
	*out_d = (struct descriptor){
		.media_type = mem_strdup(from->media_type),
		.artifact_type = mem_strdup(from->artifact_type),
		.digest = from->digest,
		.size = from->size,
		.platform = {
			.os = mem_strdup(from->platform.os),
			.architecture = mem_strdup(from->platform.architecture),
			.variant = mem_strdup(from->platform.variant),
		},
		.annotations = {
			.ref_name = mem_strdup(from->annotations.ref_name),
			.containerd = mem_strdup(from->annotations.containerd),
			.reference_type = mem_strdup(from->annotations.reference_type),
			.index = mem_strdup(from->annotations.index),
			.passing = mem_strdup(from->annotations.passing),
		},
	};
}

void manifest_done(struct manifest *m)
{
	if (!m) {
		return;
	}
	descriptor_done(&m->config);
	descriptors_done(&m->layers);
}

static int digest_decode(const struct json *v, void *out, struct error *e)
{
	const char *text = json_string(v);
	int r = text ? digest_parse(text, out) : -EINVAL;

	/* One of another algorithm hinders only whoever needs that blob. */
	return r == -EINVAL ? error_set(e, ERRC_INVALID, "expected a digest") : 0;
}

static const struct jsondec_field platform_fields[] = {
	{ "os", JSONDEC_STRING, offsetof(struct platform, os), .max = WORD_MAX },
	{ "architecture", JSONDEC_STRING, offsetof(struct platform, architecture),
			.max = WORD_MAX },
	{ "variant", JSONDEC_STRING, offsetof(struct platform, variant), .max = WORD_MAX },
	{ .name = NULL },
};

static const struct jsondec_field annotation_fields[] = {
	{ ANNOTATION_REF_NAME, JSONDEC_STRING, offsetof(struct annotations, ref_name),
			.max = LIMIT_REF_BYTES },
	{ ANNOTATION_CONTAINERD, JSONDEC_STRING, offsetof(struct annotations, containerd),
			.max = LIMIT_REF_BYTES },
	{ ANNOTATION_INDEX, JSONDEC_STRING, offsetof(struct annotations, index), .max = WORD_MAX },
	{ ANNOTATION_PASSING, JSONDEC_STRING, offsetof(struct annotations, passing),
			.max = WORD_MAX },
	{ "vnd.docker.reference.type", JSONDEC_STRING, offsetof(struct annotations, reference_type),
			.max = WORD_MAX },
	{ .name = NULL },
};

static const struct jsondec_field descriptor_fields[] = {
	{ "mediaType", JSONDEC_STRING, offsetof(struct descriptor, media_type), JSONDEC_REQUIRED,
			.max = WORD_MAX },
	{ "artifactType", JSONDEC_STRING, offsetof(struct descriptor, artifact_type),
			.max = WORD_MAX },
	{ "digest", JSONDEC_CUSTOM, offsetof(struct descriptor, digest), JSONDEC_REQUIRED,
			.decode = digest_decode },
	{ "size", JSONDEC_U64, offsetof(struct descriptor, size), JSONDEC_REQUIRED,
			.max = DESCRIPTOR_SIZE_MAX },
	{ "platform", JSONDEC_OBJECT, offsetof(struct descriptor, platform),
			.fields = platform_fields },
	{ "annotations", JSONDEC_OBJECT, offsetof(struct descriptor, annotations),
			.fields = annotation_fields },
	{ .name = NULL },
};

static int descriptors_decode(const struct json *v, void *out, struct error *e)
{
	struct descriptors *list = out;

	if (!json_is_array(v)) {
		return error_set(e, ERRC_INVALID, "expected an array");
	}
	if (json_size(v) == 0) {
		return 0;
	}
	list->v = mem_array(json_size(v), sizeof(*list->v));
	json_for_each(entry, v) {
		size_t i = list->n++;

		if (jsondec_object(entry, descriptor_fields, &list->v[i], e) < 0) {
			return error_wrap(e, "[%zu]", i);
		}
	}
	return 0;
}

static const struct jsondec_field index_fields[] = {
	{ "manifests", JSONDEC_CUSTOM, 0, .decode = descriptors_decode },
	{ .name = NULL },
};

static const struct jsondec_field manifest_fields[] = {
	{ "config", JSONDEC_OBJECT, offsetof(struct manifest, config), JSONDEC_REQUIRED,
			.fields = descriptor_fields },
	{ "layers", JSONDEC_CUSTOM, offsetof(struct manifest, layers),
			.decode = descriptors_decode },
	{ .name = NULL },
};

/* Members that make a document one kind, and which kind may have them. */
struct shape {
	const char *member;
	enum media_kind kind;
};

static const struct shape shapes[] = {
	{ "manifests", MEDIA_INDEX },
	{ "config", MEDIA_MANIFEST },
	{ "layers", MEDIA_MANIFEST },
	{ "fsLayers", MEDIA_SCHEMA1 },
};

int schema1_refuse(struct error *e)
{
	error_set(e, ERRC_UNSUPPORTED,
			"it is a Docker schema 1 manifest, which is no longer "
			"supported");
	return error_hint(e, "convert it once: skopeo copy --format oci docker://NAME "
			     "oci:DIR:TAG");
}

static int document_check(const struct json *root, enum media_kind kind, const char *media_type,
		struct error *e)
{
	const struct json *said = json_get(root, "mediaType");
	const struct json *version = json_get(root, "schemaVersion");
	uint64_t schema = 2;

	if (!json_is_object(root)) {
		return error_set(e, ERRC_INVALID, "expected an object");
	}
	if (media_find(media_type, NULL) == MEDIA_SCHEMA1 ||
			media_find(json_string(said), NULL) == MEDIA_SCHEMA1) {
		return schema1_refuse(e);
	}
	if (version && json_u64(version, UINT32_MAX, &schema) < 0) {
		return error_set(e, ERRC_INVALID, "schemaVersion: expected a number");
	}
	if (schema == 1) {
		return schema1_refuse(e);
	}
	if (schema != 2) {
		return error_set(e, ERRC_UNSUPPORTED, "schemaVersion is not 2");
	}
	if (said && (!json_string(said) || !str_eq(json_string(said), media_type))) {
		return error_set(e, ERRC_INVALID, "it says of itself another media type than %s",
				media_type);
	}
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		if (shapes[i].kind != kind && json_get(root, shapes[i].member)) {
			return error_set(e, ERRC_INVALID, "a document of type %s has no member %s",
					media_type, shapes[i].member);
		}
	}
	return 0;
}

int index_decode(const struct json *root, const char *media_type, struct descriptors *out_list,
		struct error *e)
{
	AUTO(descriptors) struct descriptors list = DESCRIPTORS_INIT;

	if (document_check(root, MEDIA_INDEX, media_type ? media_type : MEDIA_OCI_INDEX, e) < 0 ||
			jsondec_object(root, index_fields, &list, e) < 0) {
		return -1;
	}
	*out_list = list;
	list = (struct descriptors)DESCRIPTORS_INIT;
	return 0;
}

int index_parse(struct span text, const char *media_type, struct descriptors *out_list,
		struct error *e)
{
	AUTO(json) struct json *root = json_parse(text, e);

	return root ? index_decode(root, media_type, out_list, e) : -1;
}

int descriptor_check(const struct descriptor *d, struct error *e)
{
	return d->digest.text[0] ? 0
				 : error_set(e, ERRC_UNSUPPORTED,
						   "only sha256 digests are supported");
}

static int config_check(const struct json *root, const struct descriptor *config, struct error *e)
{
	const char *artifact = json_string(json_get(root, "artifactType"));

	if (media_find(config->media_type, NULL) != MEDIA_CONFIG) {
		return error_set(e, ERRC_UNSUPPORTED, "it is an artifact of type %s, not an image",
				artifact ? artifact : config->media_type);
	}
	if (config->size > LIMIT_CONFIG_BYTES) {
		return error_set(e, ERRC_LIMIT, "the configuration is larger than %u bytes",
				LIMIT_CONFIG_BYTES);
	}
	return descriptor_check(config, e);
}

static int layer_check(const struct descriptor *layer, struct error *e)
{
	enum media_kind kind = media_find(layer->media_type, NULL);

	if (kind == MEDIA_FOREIGN) {
		return error_set(e, ERRC_UNSUPPORTED,
				"foreign layers (%s) are not part of the image and are not fetched",
				layer->media_type);
	}
	if (kind != MEDIA_LAYER) {
		error_set(e, ERRC_UNSUPPORTED, "media type %s is not supported", layer->media_type);
		return str_has_suffix(layer->media_type, "+encrypted")
				       ? error_hint(e, "decrypt the image first: skopeo copy "
						       "--decryption-key KEY")
				       : -1;
	}
	return descriptor_check(layer, e);
}

static int layers_check(const struct descriptors *layers, struct error *e)
{
	if (layers->n > LIMIT_LAYERS) {
		return error_set(e, ERRC_LIMIT, "%zu layers are more than %d", layers->n,
				LIMIT_LAYERS);
	}
	for (size_t i = 0; i < layers->n; i++) {
		if (layer_check(&layers->v[i], e) < 0) {
			return error_wrap(e, "layer %zu", i + 1);
		}
	}
	return 0;
}

int manifest_parse(struct span text, const char *media_type, struct manifest *out_manifest,
		struct error *e)
{
	AUTO(json) struct json *root = json_parse(text, e);
	AUTO(manifest) struct manifest m = MANIFEST_INIT;

	if (!root || document_check(root, MEDIA_MANIFEST, media_type, e) < 0 ||
			jsondec_object(root, manifest_fields, &m, e) < 0 ||
			config_check(root, &m.config, e) < 0 || layers_check(&m.layers, e) < 0) {
		return -1;
	}
	*out_manifest = m;
	m = (struct manifest)MANIFEST_INIT;
	return 0;
}
