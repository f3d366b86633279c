/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/fd.h>
#include <osbx/log.h>
#include <osbx/mem.h>
#include <osbx/program.h>
#include <osbx/str.h>

#include "import.h"
#include "pull.h"

#define ATTEMPTS_MAX 2 /* the second one starts anew what was wrong */

/* What a name may stand for: in the store first what it says, as Docker Hub has it, because images
 * that were loaded have short names too; then the registries of the search list. */
struct names {
	struct ref *v;
	size_t n;
	size_t remote; /* first one that may be pulled */
};

static void names_done(struct names *names)
{
	for (size_t i = 0; i < names->n; i++) {
		ref_done(&names->v[i]);
	}
	free(names->v);
}
AUTO_DEFINE(names, struct names, names_done);

void pull_result_done(struct pull_result *r)
{
	if (r) {
		image_free(TAKE_PTR(r->image));
		free(TAKE_PTR(r->name));
	}
}

void pull_init(struct pull *p, struct store *st, const struct ref *ref,
		const struct image_progress *progress)
{
	autofree char *full = mem_printf("%s/%s", ref->domain, ref->repository);

	*p = (struct pull){
		.st = st,
		.ref = ref,
		.label = ref_familiar(full),
		.top_text = BUF_INIT(LIMIT_MANIFEST_BYTES),
		.progress = progress,
	};
	pull_layers_init(p);
}

void pull_done(struct pull *p)
{
	/* First: it appends to the files. */
	fetch_stop(TAKE_PTR(p->fetch));
	pull_layers_done(p);
	descriptor_done(&p->top);
	buf_done(&p->top_text);
	free(TAKE_PTR(p->label));
}

/* A name with its digest; the tag beside a digest says nothing that was checked. */
static char *stored_name(const struct ref *ref)
{
	return ref->digest.text[0] ? mem_printf("%s/%s@%s", ref->domain, ref->repository,
						     ref->digest.text)
				   : ref_full_name(ref);
}

/* Does the store have this image under this name already? */
static bool is_known(const struct store *st, const char *name, const struct digest *manifest)
{
	struct error ignored = ERROR_INIT;
	AUTO(descriptors) struct descriptors entries = DESCRIPTORS_INIT;

	if (store_index_load(st, &entries, &ignored) < 0) {
		return false;
	}
	for (size_t i = 0; i < entries.n; i++) {
		const char *is = entries.v[i].annotations.ref_name;

		if (is && str_eq(is, name) && digest_eq(&entries.v[i].digest, manifest)) {
			return true;
		}
	}
	return false;
}

/* What is to be unpacked is bounded, so what comes over the wire is too: compression makes bytes
 * that cannot be compressed hardly more. */
static int size_check(const struct image *img, uint64_t unpack_max, struct error *e)
{
	uint64_t max = unpack_max ? unpack_max : LIMIT_UNPACK_BYTES;
	uint64_t sum = 0;
	char text[32];

	for (size_t i = 0; i < img->layers_n; i++) {
		sum += img->layers[i].size;
	}
	if (sum / 2 <= max) {
		return 0;
	}
	str_from_size(max, text, sizeof(text));
	error_set(e, ERRC_LIMIT, "its layers are larger than %s may be when unpacked", text);
	return error_hint(e, "if the image is trusted, raise the limit with --unpack-max SIZE");
}

static int top_import(struct pull *p, const struct pull_opts *opts, struct pull_result *out_result,
		struct error *e)
{
	const struct blob_source src = { .dir_fd = -1, .remote = &p->remote };
	const struct descriptors candidates = { .v = &p->top, .n = 1 };
	struct image_opts image_opts = opts->image;
	AUTO(resolved) struct resolved r = RESOLVED_INIT;
	AUTO(strv) struct strv names = STRV_INIT;
	autofree char *name = stored_name(p->ref);
	bool is_new = false;

	image_opts.progress = &p->own;
	if (image_find(p->st, &src, &candidates, &image_opts, &r, e) < 0) {
		return -1;
	}
	if (r.img->layers_n == 0) {
		return error_set(e, ERRC_INVALID, "it has no layers, so there is nothing to run");
	}
	if (size_check(r.img, image_opts.unpack_max, e) < 0) {
		return -1;
	}
	if (strv_add(&names, name) < 0) {
		return error_set(e, ERRC_LIMIT, "too many names");
	}
	is_new = !is_known(p->st, name, &r.img->manifest);
	pull_signals_hold(&p->signals);
	if (image_import(p->st, &src, &r, &image_opts, &names, e) < 0) {
		/* The terminal's interrupt goes to the helpers too, and they were faster. */
		(void)pull_signals_look(&p->signals);
		return -1;
	}
	*out_result = (struct pull_result){
		.image = TAKE_PTR(r.img),
		.name = TAKE_PTR(name),
		.pulled = p->has_fetched || is_new,
	};
	return 0;
}

static int attempt(struct pull *p, const struct pull_opts *opts,
		const struct credential *credential, struct pull_result *out_result,
		struct error *e)
{
	p->fetch = fetch_start(p->ref, opts, credential, e);
	if (!p->fetch) {
		return -1;
	}
	p->remote.feed.fd = fetch_fd(p->fetch);
	if (pull_top(p, e) == 0 && top_import(p, opts, out_result, e) == 0) {
		return 0;
	}
	if (e->sysno == ENOSPC) {
		(void)error_hint(e, "osbx gc and osbx rmi make room in %s", store_root(p->st));
	}
	/* What the registry says names the image already. */
	return strstr(e->text, p->label) ? -1 : error_wrap(e, "image %s", p->label);
}

/* true: again, from the beginning. */
static bool attempt_run(struct store *st, const struct ref *ref, const struct pull_opts *opts,
		const struct credential *credential, struct pull_result *out_result,
		struct error *e)
{
	autofree struct pull *p = mem_new(struct pull);
	struct pull_signals signals;
	bool again = false;

	pull_init(p, st, ref, opts->image.progress);
	again = attempt(p, opts, credential, out_result, e) < 0 && p->may_repeat &&
		p->signals.taken == 0;
	signals = p->signals;
	pull_done(p);
	pull_signals_release(&signals);
	return again;
}

static int pull_from(struct store *st, const struct ref *ref, const struct pull_opts *opts,
		struct pull_result *out_result, struct error *e)
{
	AUTO(credential) struct credential found = CREDENTIAL_INIT;
	const struct credential *credential = opts->credential;

	assert(ref->domain);

	if (!credential && credential_find(ref->domain, ref->repository, &found, e) < 0) {
		return -1;
	}
	if (!credential && found.user) {
		credential = &found;
	}
	for (int i = 1; attempt_run(st, ref, opts, credential, out_result, e); i++) {
		if (i == ATTEMPTS_MAX) {
			break;
		}
		log_debug("again: %s", e->text);
		error_clear(e);
	}
	return e->code == ERRC_OK ? 0 : -1;
}

static void names_add(struct names *names, struct ref *ref)
{
	names->v = mem_resize(names->v, names->n, names->n + 1, sizeof(*names->v));
	names->v[names->n++] = *ref;
	*ref = (struct ref)REF_INIT;
}

static void ref_copy(const struct ref *from, struct ref *out_ref)
{
	*out_ref = (struct ref){
		.transport = from->transport,
		.domain = mem_strdup(from->domain),
		.repository = mem_strdup(from->repository),
		.tag = mem_strdup(from->tag),
		.digest = from->digest,
	};
}

/* The same name at a registry of the search list. */
static int searched(const struct ref *ref, const char *domain, struct ref *out_ref, struct error *e)
{
	const char *rest = ref->no_namespace ? str_after(ref->repository, "library/")
					     : ref->repository;
	autofree char *text = mem_printf("%s/%s%s%s%s%s", domain, rest, ref->tag ? ":" : "",
			ref->tag ? ref->tag : "", ref->digest.text[0] ? "@" : "", ref->digest.text);
	AUTO(ref) struct ref r = REF_INIT;

	if (ref_parse(text, &r, e) < 0) {
		return error_wrap(e, "[registries] search=");
	}
	if (r.no_domain) {
		error_set(e, ERRC_INVALID, "[registries] search=: \"%s\" is not a registry",
				domain);
		return error_hint(e, "a registry has a dot or a port in its name, or is localhost");
	}
	*out_ref = r;
	r = (struct ref)REF_INIT;
	return 0;
}

static int names_make(const struct ref *ref, const struct registry_config *config,
		struct names *out_names, struct error *e)
{
	size_t n = ref->no_domain && config ? config->search.n : 0;
	AUTO(ref) struct ref copy = REF_INIT;

	ref_copy(ref, &copy);
	names_add(out_names, &copy);
	for (size_t i = 0; i < n; i++) {
		AUTO(ref) struct ref r = REF_INIT;

		if (searched(ref, config->search.v[i], &r, e) < 0) {
			return -1;
		}
		names_add(out_names, &r);
	}
	out_names->remote = n > 0 ? 1 : 0;
	return 0;
}

/* The image as it is in the store; without one, why. */
static bool from_store(struct store *st, const struct names *names, const struct pull_opts *opts,
		struct pull_result *out_result, struct error *e)
{
	for (size_t i = 0; i < names->n; i++) {
		struct error why = ERROR_INIT;
		struct image *img = image_open(st, &names->v[i], &opts->image, &why);

		if (img) {
			char *full = ref_full_name(&names->v[i]);

			error_clear(e);
			*out_result = (struct pull_result){
				.image = img,
				.name = full ? full : mem_strdup(img->manifest.text),
			};
			return true;
		}
		if (e->code == ERRC_OK || why.code != ERRC_NOT_FOUND) {
			*e = why;
		}
	}
	return false;
}

static int from_registries(struct store *st, const struct names *names,
		const struct pull_opts *opts, struct pull_result *out_result, struct error *e)
{
	for (size_t i = names->remote; i < names->n; i++) {
		struct error why = ERROR_INIT;

		if (pull_from(st, &names->v[i], opts, out_result, &why) == 0) {
			error_clear(e);
			return 0;
		}
		if (e->code == ERRC_OK || e->code == ERRC_NOT_FOUND) {
			*e = why;
		}
		/* One that cannot be asked is not passed over: another image of that name would
		 * be taken for the one that was meant. */
		if (why.code != ERRC_NOT_FOUND && why.code != ERRC_UNAUTHENTICATED &&
				why.code != ERRC_DENIED) {
			*e = why;
			return -1;
		}
	}
	return -1;
}

bool image_may_be_pulled(const struct error *why)
{
	return why->code == ERRC_NOT_FOUND || why->code == ERRC_UNSUPPORTED;
}

int image_pull(struct store *st, const struct ref *ref, const struct pull_opts *opts,
		struct pull_result *out_result, struct error *e)
{
	AUTO(names) struct names names = { .n = 0 };
	struct error why = ERROR_INIT;

	if (ref->transport != REF_NAME) {
		error_set(e, ERRC_INVALID, "only names of registries are pulled");
		return error_hint(e, "osbx load reads layouts and archives");
	}
	if (names_make(ref, opts->config, &names, e) < 0) {
		return -1;
	}
	if (opts->policy != PULL_ALWAYS && from_store(st, &names, opts, out_result, &why)) {
		return 0;
	}
	if (opts->policy == PULL_NEVER ||
			(opts->policy == PULL_MISSING && !image_may_be_pulled(&why))) {
		*e = why;
		return -1;
	}
	if (!ref->domain) {
		error_set(e, ERRC_NOT_FOUND, "image %s: a digest alone names no registry to ask",
				ref->digest.text);
		return error_hint(e, "write NAME@%.19s…", ref->digest.text);
	}
	return program_full(e) < 0 ? -1 : from_registries(st, &names, opts, out_result, e);
}

int registry_login(const char *domain, const struct credential *c, const struct pull_opts *opts,
		struct error *e)
{
	AUTO(ref) struct ref ref = { .transport = REF_NAME, .domain = mem_strdup(domain) };
	AUTO(fetch) struct fetch *f = fetch_start(&ref, opts, c, e);

	return f ? fetch_ping(f, e) : -1;
}
