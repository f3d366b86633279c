/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include <osbx/image.h>
#include <osbx/limits.h>
#include <osbx/log.h>
#include <osbx/mem.h>

#include "import.h"
#include "layout.h"

void image_list_done(struct image_list *l)
{
	if (!l) {
		return;
	}
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].name);
		free(l->v[i].created);
		free(l->v[i].platform);
	}
	free(l->v);
	*l = (struct image_list){ .n = 0 };
}

/* Lists what is stored, whatever machine it is for. */
static int entry_resolve(
		struct store *st, const struct descriptor *d, struct resolved *r, struct error *e)
{
	static const struct blob_source none = BLOB_SOURCE_NONE;
	struct platform_wish any = { .os = "linux" };
	const char *architecture = d->platform.architecture;

	if (media_find(d->media_type, NULL) != MEDIA_MANIFEST) {
		error_set(e, ERRC_UNSUPPORTED, "entry of type %s", d->media_type);
		return -1;
	}
	if (architecture && strlen(architecture) <= PLATFORM_WORD_MAX) {
		memcpy(any.architecture, architecture, strlen(architecture) + 1);
	}
	return image_resolve(st, &none, d, &any, r, e);
}

static void entry_fill(struct store *st, const struct descriptor *d, const struct idmap *map,
		struct image_entry *out)
{
	AUTO(resolved) struct resolved r = RESOLVED_INIT;
	struct error ignored = ERROR_INIT;

	out->manifest = d->digest;
	out->name = mem_strdup(d->annotations.ref_name);
	out->size = d->size;
	/* An entry whose blobs are gone is still listed, so that it can be removed. */
	if (entry_resolve(st, d, &r, &ignored) < 0) {
		log_debug("image %s: %s", d->digest.text, ignored.text);
		out->platform = platform_text(
				d->platform.os, d->platform.architecture, d->platform.variant);
		return;
	}
	out->created = mem_strdup(r.img->config.created);
	out->platform = platform_text(
			r.img->config.os, r.img->config.architecture, r.img->config.variant);
	out->layers_n = r.img->layers_n;
	out->unpacked = image_is_unpacked(st, r.img, map->mode);
	out->size += r.config_d.size;
	for (size_t i = 0; i < r.img->layers_n; i++) {
		out->size += r.img->layers[i].size;
	}
}

/* By name, those without one last, then by digest. */
static int entry_compare(const void *a, const void *b)
{
	const struct image_entry *x = a;
	const struct image_entry *y = b;

	if (!x->name != !y->name) {
		return x->name ? -1 : 1;
	}
	return x->name ? strcmp(x->name, y->name) : strcmp(x->manifest.text, y->manifest.text);
}

int image_list(struct store *st, const struct idmap *map, struct image_list *out_list,
		struct error *e)
{
	AUTO(descriptors) struct descriptors entries = DESCRIPTORS_INIT;
	struct image_list list = { .n = 0 };

	if (store_index_load(st, &entries, e) < 0) {
		return -1;
	}
	list.v = mem_array(entries.n, sizeof(*list.v));
	for (size_t i = 0; i < entries.n; i++) {
		entry_fill(st, &entries.v[i], map, &list.v[i]);
		list.n++;
	}
	qsort(list.v, list.n, sizeof(*list.v), entry_compare);
	*out_list = list;
	return 0;
}
