/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * A host's first 401 says how it wants to be asked. With Basic, user and password are sent from
 * then on. With Bearer, one operation (OP_TOKEN) asks the token server for all that wait, and the
 * answer is kept until nine tenths of its time are over. A 401 in spite of a fresh token makes it
 * be fetched once more, a second one is final.
 *
 *   UNKNOWN ─ 401 Basic ──▶ BASIC
 *   UNKNOWN ─ 401 Bearer ─▶ FETCHING ─ answer ─▶ READY ─ expired, 401 ─▶ FETCHING
 *                           FETCHING ─ failure ─▶ UNKNOWN, and all that wait fail
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/clock.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "fetch_op.h"
#include "fetch_url.h"

#define CLIENT_ID   "osbx"
#define REFUSED_MAX 1 /* then a token is not fetched again */

static struct token *token_of(const struct op *op)
{
	return &op_host(op)->tokens[op->scope];
}

static const struct credential *credential_of(const struct op *op)
{
	return &op_host(op)->rules->credential;
}

static void value_set(struct token *t, char *value, enum token_stage stage)
{
	auth_secret_free(t->value);
	t->value = value;
	t->stage = stage;
	t->generation++;
}

static void fetch_begin(struct op *op)
{
	struct op *fetch = op_new(op->f, OP_TOKEN);

	fetch->host = op->host;
	fetch->scope = op->scope;
	fetch->label = mem_strdup(op->f->setup.name);
	token_of(op)->stage = TOKEN_FETCHING;
}

int token_authorize(struct op *op, int64_t now_ms, const char **out_value)
{
	struct token *t = token_of(op);

	if (t->stage == TOKEN_READY && now_ms >= t->expires_ms) {
		fetch_begin(op);
	}
	if (t->stage == TOKEN_FETCHING) {
		return 0;
	}
	op->generation = t->generation;
	*out_value = t->stage == TOKEN_UNKNOWN ? NULL : t->value;
	return 1;
}

/* Over TLS one must not be sent on to a server without. A registry of this machine may. */
static int realm_take(struct op *op, const char *realm, char **out_url)
{
	bool local = fetch_host_is_local(op_host(op)->rules->host);

	return url_follow(op->f->lib, local ? realm : op->asked, realm, out_url);
}

static enum op_verdict fail(struct op *op, enum errc errc, const char *what)
{
	(void)op_fail(op, errc, what);
	return OP_VERDICT_FAIL;
}

static enum op_verdict bearer_begin(struct op *op, const struct auth_challenge *c)
{
	struct token *t = token_of(op);
	char *realm = NULL;
	int rc = c->realm ? realm_take(op, c->realm, &realm) : -EINVAL;

	if (rc == -EPERM) {
		return fail(op, ERRC_DENIED, "its token server is without TLS");
	}
	if (rc < 0) {
		return fail(op, ERRC_INVALID, "the address of its token server is not valid");
	}
	free(t->realm);
	free(t->service);
	t->realm = realm;
	t->service = mem_strdup(c->service);
	if (t->stage != TOKEN_FETCHING) {
		fetch_begin(op);
	}
	return OP_VERDICT_WANT;
}

static enum op_verdict basic_begin(struct op *op)
{
	const struct credential *c = credential_of(op);

	if (!c->user || !c->password) {
		(void)op_refuse(op);
		return OP_VERDICT_FAIL;
	}
	value_set(token_of(op), auth_basic(c->user, c->password), TOKEN_BASIC);
	return OP_VERDICT_AGAIN;
}

/* The token is good, and not enough: another one for the same scope will not be more. */
static bool is_final(const struct auth_challenge *c)
{
	return c->error && str_eq(c->error, "insufficient_scope");
}

enum op_verdict token_challenged(struct op *op)
{
	const struct exchange_head *head = &op->x->head;
	const struct token *t = token_of(op);

	if (head->bad_challenge) {
		return fail(op, ERRC_INVALID, "its demand for authentication is malformed");
	}
	/* Meanwhile another operation came to a newer one. */
	if (t->stage == TOKEN_FETCHING) {
		return OP_VERDICT_WANT;
	}
	if (t->stage != TOKEN_UNKNOWN && op->generation != t->generation) {
		return OP_VERDICT_AGAIN;
	}
	if (op->sent && (t->stage == TOKEN_BASIC || is_final(&head->challenge) ||
					++op->refused > REFUSED_MAX)) {
		(void)op_refuse(op);
		return OP_VERDICT_FAIL;
	}
	if (head->challenge.bearer) {
		return bearer_begin(op, &head->challenge);
	}
	if (head->challenge.basic) {
		return basic_begin(op);
	}
	return fail(op, ERRC_UNSUPPORTED, "it offers no way to authenticate that is known here");
}

int token_request(struct op *op, char **out_url, char **out_value)
{
	const struct credential *c = credential_of(op);
	const struct token *t = token_of(op);
	const char *repository = op_host(op)->rules->repository;
	autofree char *scope = NULL;
	const struct curl_lib *lib = op->f->lib;

	if (op->scope == FETCH_SCOPE_PULL) {
		scope = mem_printf("repository:%s:pull", repository);
	}
	const struct url_pair pairs[] = {
		{ "service", t->service },
		{ "scope", scope },
		{ "client_id", CLIENT_ID },
		{ "grant_type", "refresh_token" },
		{ "refresh_token", c->identity_token },
	};

	assert(t->realm);
	if (c->identity_token) {
		auth_secret_free(op->form);
		op->form = url_form(lib, pairs, ARRAY_SIZE(pairs));
		*out_url = mem_strdup(t->realm);
		*out_value = NULL;
		return op->form ? 0 : error_set(&op->error, ERRC_INVALID, "%s: token", op->label);
	}
	*out_url = url_add_query(lib, t->realm, pairs, 3);
	if (!*out_url) {
		return error_set(&op->error, ERRC_INVALID, "%s: token", op->label);
	}
	*out_value = c->user && c->password ? auth_basic(c->user, c->password) : NULL;
	return 0;
}

enum op_verdict token_take(struct op *op)
{
	struct token *t = token_of(op);
	AUTO(auth_token) struct auth_token token = { .token = NULL };

	if (auth_token_parse(buf_span(&op->x->body), &token, &op->error) < 0) {
		autofree char *place = op_place(op);

		(void)error_wrap(&op->error, "%s: token of %s", op->label, place);
		return OP_VERDICT_FAIL;
	}
	t->expires_ms = clock_boot_ms() + (int64_t)token.expires_s * 900;
	value_set(t, mem_printf("Bearer %s", token.token), TOKEN_READY);
	return OP_VERDICT_DONE;
}

void token_settle(struct op *op)
{
	struct token *t = token_of(op);

	if (op->error.code != ERRC_OK) {
		t->stage = TOKEN_UNKNOWN;
	}
	for (struct op *o = op->f->ops; o; o = o->next) {
		if (o->stage != OP_WANTING || o->host != op->host || o->scope != op->scope) {
			continue;
		}
		o->stage = OP_READY;
		if (op->error.code != ERRC_OK) {
			o->error = op->error;
		}
	}
}
