/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest - indexes and manifests (image-spec image-index.md, manifest.md; Docker schema 2).
 *
 * A document is read as what its descriptor says, and refused when it says otherwise itself or
 * could be read in two ways (CVE-2021-41190).
 */
#ifndef OSBX_OCI_MANIFEST_H
#define OSBX_OCI_MANIFEST_H

#include <stdint.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/digest.h>
#include <osbx/error.h>
#include <osbx/json.h>

#include "media.h"

#define ANNOTATION_REF_NAME   "org.opencontainers.image.ref.name"
#define ANNOTATION_CONTAINERD "io.containerd.image.name"
#define ANNOTATION_INDEX      "osbx.index"
#define ANNOTATION_PASSING    "osbx.passing"

struct platform {
	char *os;
	char *architecture;
	char *variant;
};

struct annotations {
	char *ref_name;   /* ANNOTATION_REF_NAME */
	char *containerd; /* ANNOTATION_CONTAINERD: a full name, beside a ref_name that is a tag */
	char *reference_type; /* "attestation-manifest" of buildx */
	char *index;          /* ANNOTATION_INDEX: digest of the index it was chosen from */
	char *passing; /* ANNOTATION_PASSING: no wish of a user keeps it, only a run brought it */
};

/* All strings NULL when absent. */
struct descriptor {
	char *media_type;
	char *artifact_type;
	struct digest digest; /* "" for an algorithm we do not have */
	uint64_t size;
	struct platform platform;
	struct annotations annotations;
};

struct descriptors {
	struct descriptor *v;
	size_t n;
};

#define DESCRIPTORS_INIT \
	{                \
		.n = 0   \
	}

void descriptor_done(struct descriptor *d);
AUTO_DEFINE(descriptor, struct descriptor, descriptor_done);
void descriptors_done(struct descriptors *l);
AUTO_DEFINE(descriptors, struct descriptors, descriptors_done);
/* Deep copy into an empty descriptor. */
void descriptor_copy(const struct descriptor *from, struct descriptor *out_d) NONNULL(1, 2);
/* The digest is one of ours? ERRC_UNSUPPORTED. */
int descriptor_check(const struct descriptor *d, struct error *e) MUST_CHECK NONNULL(1, 2);

struct manifest {
	struct descriptor config;
	struct descriptors layers; /* kinds and digests are checked, lowest first */
};

#define MANIFEST_INIT         \
	{                     \
		.layers.n = 0 \
	}

void manifest_done(struct manifest *m);
AUTO_DEFINE(manifest, struct manifest, manifest_done);

/* Read an index of this media type (NULL: index.json of a layout). Entries are taken as they are:
 * what is unknown is for the caller to skip. ERRC_INVALID, ERRC_LIMIT, ERRC_UNSUPPORTED. */
int index_parse(struct span text, const char *media_type, struct descriptors *out_list,
		struct error *e) MUST_CHECK NONNULL(3, 4);
/* Entries of an index that was parsed already. */
int index_decode(const struct json *root, const char *media_type, struct descriptors *out_list,
		struct error *e) MUST_CHECK NONNULL(3, 4);
/* ERRC_UNSUPPORTED with the way out. */
int schema1_refuse(struct error *e) MUST_CHECK NONNULL(1);
/* Read a manifest. Artifacts and foreign, encrypted or unknown layers are ERRC_UNSUPPORTED. */
int manifest_parse(struct span text, const char *media_type, struct manifest *out_manifest,
		struct error *e) MUST_CHECK NONNULL(2, 3, 4);

#endif
