/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include <osbx/mem.h>
#include <osbx/str.h>

#include "credential.h"

/* Spellings of one server that a helper is asked for: each costs a process. */
#define SERVERS_ASKED 2

/* *out_server is the spelling the helper knows, NULL when it has nothing. */
static int helper_find(const char *helper, const char *domain, struct credential *out_c,
		const char **out_server, struct error *e)
{
	*out_server = NULL;
	for (size_t i = 0; i < SERVERS_ASKED && credential_key(domain, i); i++) {
		const char *server = credential_key(domain, i);

		if (credential_helper_get(helper, server, out_c, e) < 0) {
			return -1;
		}
		if (out_c->user) {
			*out_server = server;
			return 0;
		}
	}
	return 0;
}

/* A helper comes before the entries of its file, as Docker has it. */
static int place_find(const struct credential_place *place, const char *domain,
		const char *repository, struct credential *out_c, struct error *e)
{
	AUTO(credential_file) struct credential_file f = { .root = NULL };
	const char *helper = NULL;
	const char *server = NULL;

	if (credential_file_load(place, &f, e) < 0 ||
			credential_file_helper(&f, domain, &helper, e) < 0) {
		return -1;
	}
	if (helper && helper_find(helper, domain, out_c, &server, e) < 0) {
		return error_hint(e, "%s names this helper", place->path);
	}
	return out_c->user ? 0 : credential_file_find(&f, domain, repository, out_c, e);
}

int credential_find(const char *domain, const char *repository, struct credential *out_c,
		struct error *e)
{
	AUTO(credential_places) struct credential_places places = { .n = 0 };
	AUTO(credential) struct credential c = CREDENTIAL_INIT;

	credential_places_find(&places);
	for (size_t i = 0; i < places.n && !c.user; i++) {
		if (place_find(&places.v[i], domain, repository, &c, e) < 0) {
			return -1;
		}
	}
	credential_done(out_c);
	*out_c = c;
	c = (struct credential)CREDENTIAL_INIT;
	return 0;
}

/* Where login writes: what credential_find would find must not stay behind, so the first file that
 * has an entry or a helper for the domain; else the first that exists; else the fallback. */
struct target {
	size_t place;
	char *helper; /* NULL: the file itself */
};

static void target_done(struct target *t)
{
	free(t->helper);
}
AUTO_DEFINE(target, struct target, target_done);

static int target_choose(const struct credential_places *places, const char *domain,
		struct target *out_target, struct error *e)
{
	size_t existing = places->n;

	for (size_t i = 0; i < places->n; i++) {
		AUTO(credential_file) struct credential_file f = { .root = NULL };
		const char *helper = NULL;

		if (credential_file_load(&places->v[i], &f, e) < 0 ||
				credential_file_helper(&f, domain, &helper, e) < 0) {
			return -1;
		}
		if (helper || credential_file_has(&f, domain)) {
			*out_target = (struct target){ .place = i, .helper = mem_strdup(helper) };
			return 0;
		}
		existing = existing == places->n && f.exists ? i : existing;
	}
	*out_target = (struct target){
		.place = existing < places->n ? existing : places->fallback,
	};
	return 0;
}

int credential_store(
		const char *domain, const struct credential *c, char **out_where, struct error *e)
{
	AUTO(credential_places) struct credential_places places = { .n = 0 };
	AUTO(target) struct target t = { .helper = NULL };
	bool changed = false;

	credential_places_find(&places);
	if (places.n == 0) {
		error_set(e, ERRC_INVALID, "there is no place to store credentials in");
		return error_hint(e, "set HOME, or REGISTRY_AUTH_FILE to an absolute path");
	}
	if (target_choose(&places, domain, &t, e) < 0) {
		return -1;
	}
	if (t.helper && credential_helper_store(t.helper, credential_key(domain, 0), c, e) < 0) {
		return -1;
	}
	/* With a helper, a secret that stood in the file before goes. */
	if (credential_file_replace(&places.v[t.place], domain, t.helper ? NULL : c, &changed, e) <
			0) {
		return -1;
	}
	*out_where = t.helper ? mem_printf("docker-credential-%s", t.helper)
			      : mem_strdup(places.v[t.place].path);
	return 0;
}

static int helper_remove(const char *helper, const char *domain, bool *found, struct error *e)
{
	for (size_t i = 0; i < SERVERS_ASKED; i++) {
		AUTO(credential) struct credential c = CREDENTIAL_INIT;
		const char *server = NULL;

		if (helper_find(helper, domain, &c, &server, e) < 0) {
			return -1;
		}
		if (!server) {
			return 0;
		}
		if (credential_helper_erase(helper, server, e) < 0) {
			return -1;
		}
		*found = true;
	}
	return 0;
}

static int place_remove(const struct credential_place *place, const char *domain, bool *found,
		struct error *e)
{
	AUTO(credential_file) struct credential_file f = { .root = NULL };
	const char *helper = NULL;
	bool changed = false;

	if (credential_file_load(place, &f, e) < 0 ||
			credential_file_helper(&f, domain, &helper, e) < 0 ||
			(helper && helper_remove(helper, domain, found, e) < 0)) {
		return -1;
	}
	if (f.exists && credential_file_replace(place, domain, NULL, &changed, e) < 0) {
		return -1;
	}
	*found |= changed;
	return 0;
}

int credential_remove(const char *domain, bool *out_found, struct error *e)
{
	AUTO(credential_places) struct credential_places places = { .n = 0 };
	bool found = false;

	credential_places_find(&places);
	for (size_t i = 0; i < places.n; i++) {
		if (place_remove(&places.v[i], domain, &found, e) < 0) {
			return -1;
		}
	}
	*out_found = found;
	return 0;
}
