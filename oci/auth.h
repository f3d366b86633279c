/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auth - what registries say about authentication: challenges (RFC 9110, 11.6.1) and the answers
 * of token servers (distribution-spec, "token authentication"). Pure parsers of hostile bytes.
 */
#ifndef OSBX_OCI_AUTH_H
#define OSBX_OCI_AUTH_H

#include <stdbool.h>
#include <stdint.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/registry.h>
#include <osbx/span.h>

#define AUTH_HEADER_MAX     8192 /* of one WWW-Authenticate field */
#define AUTH_CHALLENGES_MAX 8
#define AUTH_PARAMS_MAX     16 /* of one challenge */
#define AUTH_TOKEN_MAX      32768
#define AUTH_EXPIRES_S_MAX  86400

/* What a registry accepts. Absent strings are NULL. */
struct auth_challenge {
	unsigned int n; /* challenges seen, of any scheme */
	bool basic;
	bool bearer;
	char *realm; /* of the first Bearer challenge, as all that follows */
	char *service;
	char *error;
};

void auth_challenge_done(struct auth_challenge *c);
AUTO_DEFINE(auth_challenge, struct auth_challenge, auth_challenge_done);
/* Add the challenges of one field. 0, -EINVAL (malformed) or -E2BIG. After a failure c holds some
 * of it and is only good for auth_challenge_done. */
int auth_challenge_add(struct auth_challenge *c, struct span field) NONNULL(1) MUST_CHECK;

struct auth_token {
	char *token;
	uint64_t expires_s; /* from now */
};

void auth_token_done(struct auth_token *t);
AUTO_DEFINE(auth_token, struct auth_token, auth_token_done);
/* Read a token server's answer. ERRC_INVALID. */
int auth_token_parse(struct span body, struct auth_token *out_token, struct error *e) MUST_CHECK
		NONNULL(2, 3);

/* Value of an Authorization field: "Basic …" of a name and password. The caller frees it with
 * auth_secret_free. */
char *auth_basic(const char *user, const char *password) NONNULL(1, 2) MUST_CHECK;
/* Overwrite and free a secret. */
void auth_secret_free(char *s);
AUTO_DEFINE_PTR(auth_secret, char, auth_secret_free);

#endif
