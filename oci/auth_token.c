/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/jsondec.h>
#include <osbx/str.h>

#include "auth.h"

/* What the specification says for an answer without expires_in. */
#define EXPIRES_S_DEFAULT 60

struct answer {
	char *token;
	char *access_token;
	uint64_t expires_in;
};

static const struct jsondec_field answer_fields[] = {
	{ "token", JSONDEC_STRING, offsetof(struct answer, token), .max = AUTH_TOKEN_MAX },
	{ "access_token", JSONDEC_STRING, offsetof(struct answer, access_token),
			.max = AUTH_TOKEN_MAX },
	{ "expires_in", JSONDEC_U64, offsetof(struct answer, expires_in) },
	{ .name = NULL },
};

static void answer_done(struct answer *a)
{
	auth_secret_free(a->token);
	auth_secret_free(a->access_token);
	*a = (struct answer){ .token = NULL };
}
AUTO_DEFINE(answer, struct answer, answer_done);

void auth_token_done(struct auth_token *t)
{
	if (t) {
		auth_secret_free(t->token);
		*t = (struct auth_token){ .token = NULL };
	}
}

/* It becomes a line of our requests: no blank, no line end. */
static bool is_clean(const char *token)
{
	for (const char *p = token; *p; p++) {
		if (*p <= ' ' || *p > '~') {
			return false;
		}
	}
	return token[0] != '\0';
}

int auth_token_parse(struct span body, struct auth_token *out_token, struct error *e)
{
	AUTO(answer) struct answer a = { .expires_in = EXPIRES_S_DEFAULT };
	struct json *root = json_parse(body, e);
	int rc = root ? jsondec_object(root, answer_fields, &a, e) : -1;

	json_free_secret(root);
	if (rc < 0) {
		return -1;
	}
	if (!a.token) {
		a.token = TAKE_PTR(a.access_token);
	}
	if (!a.token) {
		return error_set(e, ERRC_INVALID, "neither token nor access_token");
	}
	if (!is_clean(a.token)) {
		return error_set(e, ERRC_INVALID, "token: empty, or of bytes that no token has");
	}
	out_token->token = TAKE_PTR(a.token);
	out_token->expires_s = a.expires_in > AUTH_EXPIRES_S_MAX ? AUTH_EXPIRES_S_MAX
			       : a.expires_in == 0               ? EXPIRES_S_DEFAULT
								 : a.expires_in;
	return 0;
}
