/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <osbx/mem.h>
#include <osbx/str.h>

#include "auth.h"

#define PARAM_MAX 2048

struct parse {
	const char *p;
	const char *end;
	struct auth_challenge *out;
	bool keep; /* parameters of the challenge at hand are the ones wanted */
};

void auth_challenge_done(struct auth_challenge *c)
{
	if (!c) {
		return;
	}
	free(c->realm);
	free(c->service);
	free(c->error);
	*c = (struct auth_challenge){ .n = 0 };
}

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_in(char c, const char *set)
{
	return c != '\0' && strchr(set, c) != NULL;
}

static bool is_token_byte(char c)
{
	return is_alnum(c) || is_in(c, "!#$%&'*+-.^_`|~");
}

static bool is_token68_byte(char c)
{
	return is_alnum(c) || is_in(c, "-._~+/");
}

static bool at(const struct parse *s, char c)
{
	return s->p < s->end && *s->p == c;
}

static void skip_blanks(struct parse *s)
{
	while (at(s, ' ') || at(s, '\t')) {
		s->p++;
	}
}

/* List separators; empty elements are legal. True if there was one. */
static bool skip_commas(struct parse *s)
{
	bool found = false;

	for (;;) {
		skip_blanks(s);
		if (!at(s, ',')) {
			return found;
		}
		s->p++;
		found = true;
	}
}

static struct span take_run(struct parse *s, bool (*is_member)(char c))
{
	const char *begin = s->p;

	while (s->p < s->end && is_member(*s->p)) {
		s->p++;
	}
	return (struct span){ .p = begin, .n = (size_t)(s->p - begin) };
}

/* The other form of a challenge: one opaque word up to a comma or the end. */
static bool take_token68(struct parse *s)
{
	const char *begin = s->p;

	if (take_run(s, is_token68_byte).n > 0) {
		while (at(s, '=')) {
			s->p++;
		}
		skip_blanks(s);
		if (s->p == s->end || at(s, ',')) {
			return true;
		}
	}
	s->p = begin;
	return false;
}

static bool is_word(struct span s, const char *word)
{
	return s.n == strlen(word) && strncasecmp(s.p, word, s.n) == 0;
}

/* A quoted string without its quotes and escapes, or a token. Only printable ASCII: what stands
 * here ends in requests of ours. */
static int take_value(struct parse *s, char *out, size_t out_size)
{
	bool quoted = at(s, '"');
	size_t n = 0;

	s->p += quoted ? 1 : 0;
	while (s->p < s->end && (quoted ? *s->p != '"' : is_token_byte(*s->p))) {
		if (quoted && *s->p == '\\') {
			s->p++;
		}
		if (s->p == s->end || *s->p < ' ' || *s->p > '~') {
			return -EINVAL;
		}
		if (n + 1 >= out_size) {
			return -E2BIG;
		}
		out[n++] = *s->p++;
	}
	if (quoted && s->p == s->end) {
		return -EINVAL;
	}
	s->p += quoted ? 1 : 0;
	out[n] = '\0';
	return quoted || n > 0 ? 0 : -EINVAL;
}

static int keep_param(struct parse *s, struct span name, const char *value)
{
	struct auth_challenge *c = s->out;
	const struct {
		const char *name;
		char **slot;
	} params[] = {
		{ "realm", &c->realm },
		{ "service", &c->service },
		{ "error", &c->error },
	};

	for (size_t i = 0; s->keep && i < ARRAY_SIZE(params); i++) {
		if (!is_word(name, params[i].name)) {
			continue;
		}
		/* Which of the two another reader takes cannot be known. */
		if (*params[i].slot) {
			return -EINVAL;
		}
		*params[i].slot = mem_strdup(value);
	}
	return 0;
}

/* "name = value" if it stands here. 1: taken, 0: something else stands here, -errno. */
static int take_param(struct parse *s)
{
	char value[PARAM_MAX];
	const char *begin = s->p;
	struct span name = take_run(s, is_token_byte);
	int rc = 0;

	skip_blanks(s);
	if (name.n == 0 || !at(s, '=')) {
		s->p = begin;
		return 0;
	}
	s->p++;
	skip_blanks(s);
	rc = take_value(s, value, sizeof(value));
	rc = rc < 0 ? rc : keep_param(s, name, value);
	if (rc < 0) {
		return rc;
	}
	skip_blanks(s);
	return s->p == s->end || at(s, ',') ? 1 : -EINVAL;
}

static int take_params(struct parse *s)
{
	bool separated = false;

	for (unsigned int n = 0; n <= AUTH_PARAMS_MAX; n++) {
		int rc = take_param(s);

		if (rc < 0) {
			return rc;
		}
		if (rc == 0) {
			/* The next challenge, which a comma must have parted from this one. */
			return s->p == s->end || separated ? 0 : -EINVAL;
		}
		separated = skip_commas(s);
	}
	return -E2BIG;
}

static int take_challenge(struct parse *s)
{
	struct span scheme = take_run(s, is_token_byte);

	if (scheme.n == 0 || (s->p < s->end && !is_in(*s->p, " \t,"))) {
		return -EINVAL;
	}
	if (++s->out->n > AUTH_CHALLENGES_MAX) {
		return -E2BIG;
	}
	s->keep = is_word(scheme, "bearer") && !s->out->bearer;
	s->out->bearer |= s->keep;
	s->out->basic |= is_word(scheme, "basic");
	if (skip_commas(s)) {
		return 0;
	}
	return take_token68(s) ? 0 : take_params(s);
}

int auth_challenge_add(struct auth_challenge *c, struct span field)
{
	struct parse s = { .p = field.p, .end = field.p + field.n, .out = c };
	int rc = field.n > AUTH_HEADER_MAX ? -E2BIG : 0;

	(void)skip_commas(&s);
	while (rc == 0 && s.p < s.end) {
		rc = take_challenge(&s);
		(void)skip_commas(&s);
	}
	return rc;
}

/* RFC 4648. */
static char *base64_encode(struct span in)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/";
	char *out = mem_array((in.n + 2) / 3 * 4 + 1, 1);
	char *o = out;

	for (size_t i = 0; i < in.n; i += 3) {
		uint32_t v = 0;

		for (size_t k = 0; k < 3; k++) {
			v = v << 8 | (i + k < in.n ? (unsigned char)in.p[i + k] : 0U);
		}
		*o++ = digits[v >> 18];
		*o++ = digits[v >> 12 & 0x3f];
		*o++ = '=';
		*o++ = '=';
		if (i + 1 < in.n) {
			o[-2] = digits[v >> 6 & 0x3f];
		}
		if (i + 2 < in.n) {
			o[-1] = digits[v & 0x3f];
		}
	}
	return out;
}

char *auth_basic(const char *user, const char *password)
{
	AUTO(auth_secret) char *plain = mem_printf("%s:%s", user, password);
	AUTO(auth_secret) char *coded = base64_encode(span_of(plain));

	return mem_printf("Basic %s", coded);
}

void auth_secret_free(char *s)
{
	if (s) {
		explicit_bzero(s, strlen(s));
	}
	free(s);
}

void credential_done(struct credential *c)
{
	if (!c) {
		return;
	}
	auth_secret_free(c->user);
	auth_secret_free(c->password);
	auth_secret_free(c->identity_token);
	*c = (struct credential)CREDENTIAL_INIT;
}
