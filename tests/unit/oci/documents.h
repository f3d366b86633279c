/* SPDX-License-Identifier: Apache-2.0 */
/*
 * documents - indexes, manifests and configurations in the shapes that common tools write.
 */
#ifndef OSBX_TESTS_OCI_DOCUMENTS_H
#define OSBX_TESTS_OCI_DOCUMENTS_H

#include "../../../oci/media.h"

#define DOCKER_MANIFEST "application/vnd.docker.distribution.manifest.v2+json"
#define DOCKER_LIST     "application/vnd.docker.distribution.manifest.list.v2+json"
#define DOCKER_CONFIG   "application/vnd.docker.container.image.v1+json"
#define DOCKER_GZIP     "application/vnd.docker.image.rootfs.diff.tar.gzip"
#define DOCKER_FOREIGN  "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"
#define IN_TOTO         "application/vnd.in-toto+json"

#define A15    "aaaaaaaaaaaaaaa"
#define B15    "bbbbbbbbbbbbbbb"
#define C15    "ccccccccccccccc"
#define SHA_A  "sha256:" A15 A15 A15 A15 "aaaa"
#define SHA_B  "sha256:" B15 B15 B15 B15 "bbbb"
#define SHA_C  "sha256:" C15 C15 C15 C15 "cccc"
#define SHA512 "sha512:" A15 A15 A15 A15 A15 A15 A15 A15 "aaaaaaaa"

#define D(type, digest, size) \
	"{\"mediaType\":\"" type "\",\"size\":" size ",\"digest\":\"" digest "\"}"

/* docker push */
#define DOC_DOCKER                                                          \
	"{\"schemaVersion\":2,\"mediaType\":\"" DOCKER_MANIFEST             \
	"\",\"config\":" D(DOCKER_CONFIG, SHA_A, "1469") ",\"layers\":[" D( \
			DOCKER_GZIP, SHA_B, "3402542") "," D(DOCKER_GZIP, SHA_C, "93") "]}"

/* podman, buildah: no mediaType of its own, annotations */
#define DOC_PODMAN                                                                              \
	"{\"schemaVersion\":2,\"config\":" D(MEDIA_OCI_CONFIG, SHA_A, "600") ",\"layers\":[" D( \
			MEDIA_OCI_LAYER "+gzip", SHA_B,                                         \
			"3402542") "],\"annotations\":{"                                        \
				   "\"org.opencontainers.image.base.digest\":\"\","             \
				   "\"org.opencontainers.image.base.name\":\"\"}}"

/* buildx with zstd; the manifest of one platform */
#define DOC_BUILDX                                                                              \
	"{\n  \"schemaVersion\": 2,\n  \"mediaType\": \"" MEDIA_OCI_MANIFEST "\",\n"            \
	"  \"config\": " D(MEDIA_OCI_CONFIG, SHA_A, "900") ",\n  \"layers\": [\n" D(            \
			MEDIA_OCI_LAYER "+zstd", SHA_B,                                         \
			"12") ",\n"                                                             \
			      "{\"mediaType\":\"" MEDIA_OCI_LAYER "+gzip\",\"digest\":\"" SHA_C \
			      "\",\"size\":32,"                                                 \
			      "\"annotations\":{\"buildkit/rewritten-timestamp\":\"0\"}}\n  ]\n}"

/* kaniko: Docker types, compact, order of members */
#define DOC_KANIKO                                                                  \
	"{\"schemaVersion\":2,\"mediaType\":\"" DOCKER_MANIFEST "\",\"config\":{"   \
	"\"mediaType\":\"" DOCKER_CONFIG "\",\"size\":1,\"digest\":\"" SHA_A "\"}," \
	"\"layers\":[{\"mediaType\":\"" DOCKER_GZIP "\",\"size\":2,\"digest\":\"" SHA_B "\"}]}"

/* bazel's rules_oci: plain layers, names as annotations, artifactType null */
#define DOC_BAZEL                                                                              \
	"{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_MANIFEST "\",\"artifactType\":null," \
	"\"config\":" D(MEDIA_OCI_CONFIG, SHA_A,                                               \
			"10") ",\"layers\":[{\"mediaType\":\"" MEDIA_OCI_LAYER                 \
			      "\",\"size\":10240,\"digest\":\"" SHA_B "\",\"annotations\":{"   \
			      "\"org.opencontainers.image.title\":\"layer.tar\"}}],\"annotations\":{}}"

/* FROM scratch with nothing in it, as umoci new makes it */
#define DOC_NO_LAYERS \
	"{\"schemaVersion\":2,\"config\":" D(MEDIA_OCI_CONFIG, SHA_A, "10") ",\"layers\":[]}"
#define DOC_NULL_LAYERS \
	"{\"schemaVersion\":2,\"config\":" D(MEDIA_OCI_CONFIG, SHA_A, "10") ",\"layers\":null}"

/* buildx: an index with attestations */
#define DOC_INDEX                                                                          \
	"{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_INDEX "\",\"manifests\":["       \
	"{\"mediaType\":\"" MEDIA_OCI_MANIFEST "\",\"digest\":\"" SHA_A "\",\"size\":481," \
	"\"platform\":{\"architecture\":\"amd64\",\"os\":\"linux\"}},"                     \
	"{\"mediaType\":\"" MEDIA_OCI_MANIFEST "\",\"digest\":\"" SHA_B "\",\"size\":481," \
	"\"platform\":{\"architecture\":\"arm\",\"os\":\"linux\",\"variant\":\"v7\"}},"    \
	"{\"mediaType\":\"" MEDIA_OCI_MANIFEST "\",\"digest\":\"" SHA_C "\",\"size\":566," \
	"\"annotations\":{\"vnd.docker.reference.digest\":\"" SHA_A "\","                  \
	"\"vnd.docker.reference.type\":\"attestation-manifest\"},"                         \
	"\"platform\":{\"architecture\":\"unknown\",\"os\":\"unknown\"}}]}"

/* docker manifest create */
#define DOC_LIST                                                                        \
	"{\"schemaVersion\":2,\"mediaType\":\"" DOCKER_LIST "\",\"manifests\":["        \
	"{\"mediaType\":\"" DOCKER_MANIFEST "\",\"size\":528,\"digest\":\"" SHA_A "\"," \
	"\"platform\":{\"architecture\":\"amd64\",\"os\":\"windows\","                  \
	"\"os.version\":\"10.0.17763.5458\",\"os.features\":[\"win32k\"]}},"            \
	"{\"mediaType\":\"" DOCKER_MANIFEST "\",\"size\":528,\"digest\":\"" SHA_B "\"," \
	"\"platform\":{\"architecture\":\"amd64\",\"os\":\"linux\",\"features\":[\"sse4\"]}}]}"

/* docker save since 25: index.json */
#define DOC_SAVED_INDEX                                                                    \
	"{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_INDEX "\",\"manifests\":["       \
	"{\"mediaType\":\"" MEDIA_OCI_MANIFEST "\",\"digest\":\"" SHA_A "\",\"size\":401," \
	"\"annotations\":{\"io.containerd.image.name\":\"docker.io/library/alpine:3\","    \
	"\"org.opencontainers.image.ref.name\":\"3\"}}]}"

#endif
