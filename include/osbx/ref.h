/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: oci
 * ref - image references as users write them.
 *
 * "name[:tag][@digest]" by the rules of Docker Hub (distribution reference grammar: "python" is
 * docker.io/library/python:latest; a first component with '.', ':' or "localhost" is a registry),
 * or a transport: oci:DIR[:TAG], oci-archive:FILE[:TAG], docker-archive:FILE[:NAME[:TAG]],
 * dir:ROOTFS, and @host.
 */
#ifndef OSBX_REF_H
#define OSBX_REF_H

#include <stdbool.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/digest.h>
#include <osbx/error.h>

enum ref_transport {
	REF_NAME, /* a name of the store or a registry */
	REF_OCI,
	REF_OCI_ARCHIVE,
	REF_DOCKER_ARCHIVE,
	REF_DIR,
	REF_HOST,
	REF_TRANSPORT_COUNT,
};

struct ref {
	enum ref_transport transport;
	char *path;           /* oci, oci-archive, docker-archive, dir */
	char *domain;         /* "docker.io"; NULL if the transport gave no name */
	char *repository;     /* "library/python" */
	char *tag;            /* "latest"; NULL with a digest and no tag. oci: the TAG as written */
	struct digest digest; /* "" if none */
	bool no_domain;       /* no registry was written: docker.io stands for it */
	bool no_namespace;    /* of such a name, "library/" was not written either */
};

#define REF_INIT                      \
	{                             \
		.transport = REF_NAME \
	}

void ref_done(struct ref *r);
AUTO_DEFINE(ref, struct ref, ref_done);
/* Parse. ERRC_INVALID names what is wrong and shows the grammar as a hint. */
int ref_parse(const char *text, struct ref *out_ref, struct error *e) MUST_CHECK NONNULL(1, 2, 3);
/* Full name "docker.io/library/python:3.12" (or …@sha256:… without a tag); NULL if the reference
 * has no name. Caller frees. */
char *ref_full_name(const struct ref *r) NONNULL(1) MUST_CHECK;
/* Short form of a full name for people: "python:3.12". Caller frees. */
char *ref_familiar(const char *full_name) NONNULL(1) MUST_CHECK;

#endif
