/* SPDX-License-Identifier: Apache-2.0 */
/*
 * credential - credential files of Docker (config.json) and of podman and skopeo (auth.json), and
 * the helper programs that they name. Both kinds of file have the same form:
 *
 *   { "auths": { HOST or HOST/PATH: { "auth": base64 of "user:password", "identitytoken": … } },
 *     "credHelpers": { HOST: NAME }, "credsStore": NAME }
 */
#ifndef OSBX_OCI_CREDENTIAL_H
#define OSBX_OCI_CREDENTIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <osbx/buf.h>
#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/json.h>
#include <osbx/registry.h>

/* User name that stands for an identity token, in files and towards helpers. */
#define CREDENTIAL_TOKEN_USER "<token>"
#define CREDENTIAL_PLACES_MAX 4

/*
 * Places (credential_places.c)
 */

/* A credential file that may exist. */
struct credential_place {
	char *path;
	bool is_docker; /* config.json: Docker Hub goes by its old address there */
};

struct credential_places {
	struct credential_place v[CREDENTIAL_PLACES_MAX]; /* in the order they are asked */
	size_t n;
	size_t fallback; /* the one that is made when none exists */
};

void credential_places_done(struct credential_places *p);
AUTO_DEFINE(credential_places, struct credential_places, credential_places_done);
/* Where credentials are looked for, by the environment of this process. May be none. */
void credential_places_find(struct credential_places *out_places) NONNULL(1);

/* Spellings of a domain as the key of an entry or helper, the usual one first; NULL behind the
 * last. */
const char *credential_key(const char *domain, size_t i) NONNULL(1);

/*
 * Files (credential_file.c)
 */

struct credential_file {
	const struct credential_place *place;
	struct json *root; /* NULL: there is no file, or it is empty */
	bool exists;
};

void credential_file_done(struct credential_file *f);
AUTO_DEFINE(credential_file, struct credential_file, credential_file_done);
/* Read the file of a place. ERRC_INVALID and ERRC_LIMIT name it, never what it says. */
int credential_file_load(const struct credential_place *place, struct credential_file *out_file,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3);
/* Name of the helper that is configured for a domain, or NULL. Borrowed. ERRC_INVALID when it
 * cannot be the end of a program's name. */
int credential_file_helper(const struct credential_file *f, const char *domain,
		const char **out_helper, struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
/* Has it an entry of its own, with something in it, for the whole of a domain? */
bool credential_file_has(const struct credential_file *f, const char *domain) NONNULL(1, 2);
/* The most specific entry for domain/repository (repository may be NULL); out_c stays as it is
 * when there is none. */
int credential_file_find(const struct credential_file *f, const char *domain,
		const char *repository, struct credential *out_c, struct error *e) MUST_CHECK
		NONNULL(1, 2, 4, 5);
/* Replace all entries for the whole of a domain by one of c, or by none (NULL), in one step under
 * a lock of the directory; the rest of the file is kept. The file is read again. A missing one is
 * made when there is something to write, 0600. out_changed: something was written. */
int credential_file_replace(const struct credential_place *place, const char *domain,
		const struct credential *c, bool *out_changed, struct error *e) MUST_CHECK
		NONNULL(1, 2, 4, 5);

/*
 * Helpers (credential_helper.c): docker-credential-NAME, looked up in PATH, 30 s each call
 */

/* How long a helper may take; only tests are less patient. */
extern int64_t credential_helper_ms;
/* What a helper has for a server; out_c stays as it is when it has nothing. ERRC_NOT_FOUND (no
 * such program), ERRC_TIMEOUT, ERRC_LIMIT, ERRC_INVALID (rubbish), ERRC_UNAUTHENTICATED (it
 * failed). */
int credential_helper_get(const char *helper, const char *server, struct credential *out_c,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
int credential_helper_store(const char *helper, const char *server, const struct credential *c,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
int credential_helper_erase(const char *helper, const char *server, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);

/* Bytes of standard base64 with padding (RFC 4648) as a string without NULs. -EINVAL. The caller
 * frees with auth_secret_free. */
int credential_decode(const char *base64, char **out_text) MUST_CHECK NONNULL(1, 2);

/* A buffer that held secrets. */
void credential_buf_done(struct buf *b);
AUTO_DEFINE(credential_buf, struct buf, credential_buf_done);

#endif
