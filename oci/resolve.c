/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "import.h"

void image_free(struct image *img)
{
	if (img) {
		image_config_done(&img->config);
		free(img->layers);
		free(img->rootfs);
		free(img);
	}
}

void resolved_done(struct resolved *r)
{
	if (!r) {
		return;
	}
	found_done(&r->found);
	image_free(r->img);
	buf_done(&r->manifest);
	buf_done(&r->config);
	descriptor_done(&r->config_d);
	*r = (struct resolved)RESOLVED_INIT;
}

/* The variant is not compared: older images for a variant do not say which. */
static int architecture_check(
		const struct image_config *c, const struct platform_wish *wish, struct error *e)
{
	autofree char *is = NULL;
	autofree char *wanted = NULL;

	if (!c->architecture || !wish->architecture[0] ||
			str_eq(platform_architecture(c->architecture), wish->architecture)) {
		return 0;
	}
	is = platform_text(c->os, c->architecture, c->variant);
	wanted = platform_text(wish->os, wish->architecture, wish->variant);
	error_set(e, ERRC_UNSUPPORTED, "it is for %s, not for %s", is, wanted);
	return error_hint(e,
			"--platform %s takes it; running it needs an interpreter "
			"(binfmt_misc)",
			is);
}

static void image_fill(struct image *img, const struct descriptor *d, const struct manifest *m,
		struct config_doc *doc)
{
	img->manifest = d->digest;
	img->config_digest = m->config.digest;
	img->config = doc->config;
	doc->config = (struct image_config){ .user = NULL };
	img->layers_n = m->layers.n;
	img->layers = mem_array(m->layers.n, sizeof(*img->layers));
	for (size_t i = 0; i < m->layers.n; i++) {
		const struct descriptor *layer = &m->layers.v[i];

		img->layers[i] = (struct image_layer){
			.blob = layer->digest,
			.size = layer->size,
			.diff = doc->diffs[i],
		};
		(void)media_find(layer->media_type, &img->layers[i].compression);
	}
}

static int chains_compute(struct image *img, struct error *e)
{
	const struct digest *parent = NULL;

	for (size_t i = 0; i < img->layers_n; i++) {
		struct image_layer *layer = &img->layers[i];

		if (digest_chain(parent, &layer->diff, &layer->chain, e) < 0) {
			return -1;
		}
		parent = &layer->chain;
	}
	return 0;
}

/* Recorded chain ids spare the load of libcrypto: 2 ms of a start. */
static int chains_fill(struct store *st, struct resolved *r, struct error *e)
{
	size_t n = r->img->layers_n;
	autofree struct digest *chains = mem_array(n, sizeof(*chains));

	r->is_registered = r->manifest_stored &&
			   store_chains_load(st, &r->img->manifest, chains, n) == 0;
	if (!r->is_registered) {
		return chains_compute(r->img, e);
	}
	for (size_t i = 0; i < n; i++) {
		r->img->layers[i].chain = chains[i];
	}
	return 0;
}

int image_resolve(struct store *st, const struct blob_source *src, const struct descriptor *d,
		const struct platform_wish *wish, struct resolved *out_r, struct error *e)
{
	AUTO(resolved) struct resolved r = RESOLVED_INIT;
	AUTO(manifest) struct manifest m = MANIFEST_INIT;
	AUTO(config_doc) struct config_doc doc = CONFIG_DOC_INIT;

	if (blob_read(st, src, d, &r.manifest, &r.manifest_stored, e) < 0) {
		return -1;
	}
	if (manifest_parse(buf_span(&r.manifest), d->media_type, &m, e) < 0) {
		return error_wrap(e, "manifest %s", d->digest.text);
	}
	if (blob_read(st, src, &m.config, &r.config, &r.config_stored, e) < 0) {
		return -1;
	}
	if (config_parse(buf_span(&r.config), &doc, e) < 0) {
		return error_wrap(e, "configuration %s", m.config.digest.text);
	}
	if (m.layers.n != doc.diffs_n) {
		return error_set(e, ERRC_INVALID,
				"manifest %s has %zu layers, its configuration %zu diff_ids",
				d->digest.text, m.layers.n, doc.diffs_n);
	}
	if (architecture_check(&doc.config, wish, e) < 0) {
		return -1;
	}
	descriptor_copy(&m.config, &r.config_d);
	r.img = mem_new(struct image);
	image_fill(r.img, d, &m, &doc);
	if (chains_fill(st, &r, e) < 0) {
		return -1;
	}
	*out_r = r;
	r = (struct resolved)RESOLVED_INIT;
	return 0;
}

int image_find(struct store *st, const struct blob_source *src,
		const struct descriptors *candidates, const struct image_opts *opts,
		struct resolved *out_r, struct error *e)
{
	AUTO(found) struct found f = FOUND_INIT;
	struct platform_wish wish = { .variant = "" };

	if (platform_parse(opts->platform, &wish, e) < 0 ||
			manifest_find(st, src, candidates, &wish, &f, e) < 0 ||
			image_resolve(st, src, &f.manifest, &wish, out_r, e) < 0) {
		return -1;
	}
	out_r->found = f;
	f = (struct found)FOUND_INIT;
	return 0;
}

bool image_is_unpacked(struct store *st, const struct image *img, enum idmap_mode mode)
{
	int fd = store_layers_find(st, mode);

	for (size_t i = 0; i < img->layers_n; i++) {
		if (!store_has_layer(fd, &img->layers[i].chain)) {
			return false;
		}
	}
	return true;
}
