/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: oci
 * registry - pulling from registries (OCI distribution-spec 1.1, "API v2").
 *
 * The network is spoken to by "osbx fetch" alone, a filtered process with libcurl; documents are
 * parsed by the caller like those of any other image. Credentials travel over descriptors, never
 * in argv, environment, logs or errors.
 */
#ifndef OSBX_REGISTRY_H
#define OSBX_REGISTRY_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/image.h>
#include <osbx/ref.h>
#include <osbx/store.h>
#include <osbx/strv.h>

/* [registry "HOST"] of osbx.conf(5). */
struct registry_host {
	char *host;          /* "docker.io", "localhost:5000" */
	struct strv mirrors; /* "host[:port][/prefix]", tried in order before the host itself */
	bool tls_verify;     /* false: certificates are not checked, and plain http is tried */
	char *ca_file; /* NULL: the system's, /etc/docker/certs.d and /etc/containers/certs.d */
};

struct registry_config {
	size_t hosts_n;
	struct registry_host *hosts;
	struct strv search; /* [registries] search=: where short names are looked for; docker.io */
};

void registry_config_done(struct registry_config *c);
AUTO_DEFINE(registry_config, struct registry_config, registry_config_done);

/* A user name and secret for one registry host. Memory is zeroed by credential_done. */
struct credential {
	char *user;     /* NULL: no credentials */
	char *password; /* or NULL with an identity token */
	char *identity_token;
};

#define CREDENTIAL_INIT      \
	{                    \
		.user = NULL \
	}

void credential_done(struct credential *c);
AUTO_DEFINE(credential, struct credential, credential_done);
/* Find credentials for domain/repository (which may be NULL): in $REGISTRY_AUTH_FILE alone if that
 * is set, else in containers/auth.json of $XDG_RUNTIME_DIR, containers/auth.json of
 * $XDG_CONFIG_HOME (or ~/.config) and config.json of $DOCKER_CONFIG (or ~/.docker). Of each first
 * the helper it names for the domain (credHelpers, else credsStore: docker-credential-NAME, looked
 * up in PATH, answers bounded, 30 s), then its most specific entry. 0 also when there are none; the
 * error names file or helper, never a secret. */
int credential_find(const char *domain, const char *repository, struct credential *out_c,
		struct error *e) MUST_CHECK NONNULL(1, 3, 4);
/* Store (login) credentials of a host in the first of the places above that has a helper or an
 * entry for it, so that they are what is found afterwards; else in the first file that exists; else
 * in that of ~/.config (0600, replaced in one step, unknown members kept). *out_where is the file
 * or helper; the caller frees it. */
int credential_store(const char *domain, const struct credential *c, char **out_where,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
/* Remove (logout) the credentials of a host as a whole from all places; *out_found says whether
 * there were any. */
int credential_remove(const char *domain, bool *out_found, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* Registry host of a domain as the wire wants it: docker.io is registry-1.docker.io for requests
 * and https://index.docker.io/v1/ in credential files. */
const char *registry_wire_host(const char *domain) NONNULL(1);

enum pull_policy {
	PULL_MISSING,
	PULL_ALWAYS,
	PULL_NEVER,
	PULL_POLICY_COUNT,
};

struct pull_opts {
	struct image_opts image; /* map, platform, unpack_max, progress */
	const struct registry_config *config;
	enum pull_policy policy;
	int tls_verify;                      /* 1, 0, or -1: as configured */
	const struct credential *credential; /* given by the caller instead of the files; or NULL */
};

struct pull_result {
	struct image *image; /* ready to run */
	char *name;          /* full name it has in the store: of the registry that had it */
	bool pulled;         /* something of it, or its name, was not there before */
};

void pull_result_done(struct pull_result *r);
AUTO_DEFINE(pull_result, struct pull_result, pull_result_done);
/* Make the image of a name (REF_NAME) present and unpacked: from the store when policy allows, else
 * pulled: blobs in parallel, each streamed once through hash, inflate, hash and unpack; interrupted
 * downloads are resumed by Range, a blob that is there is never fetched, two pulls of one blob
 * share a download. A name without a registry is looked for in those of config->search in order.
 * The caller holds store_hold shared until the image is recorded elsewhere. SIGINT, SIGTERM and
 * SIGHUP are put off while there is something to clear up behind a pull that ends early.
 *
 * Same failures as image_open, and ERRC_UNAUTHENTICATED, ERRC_DENIED, ERRC_UNAVAILABLE (rate limit,
 * network), each with a hint. What was downloaded stays for the next try. */
int image_pull(struct store *st, const struct ref *ref, const struct pull_opts *opts,
		struct pull_result *out_result, struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4, 5);
/* Did image_open fail only because the store lacks what a registry may have? */
bool image_may_be_pulled(const struct error *why) NONNULL(1) MUST_CHECK;
/* Check credentials against the registry (GET /v2/ with its challenge). */
int registry_login(const char *domain, const struct credential *c, const struct pull_opts *opts,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);

/* Main of the hidden subcommand "fetch". Exit status. */
int fetch_main(int argc, char **argv);
/* The syscall filter of that process (SECFILTER_FETCH), set by whoever knows it before fetch_main,
 * which refuses to work without. Borrowed for the life of the process. */
void fetch_set_filter(const struct sock_filter *insns, size_t n) NONNULL(1);

#endif
