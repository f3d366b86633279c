/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <osbx/fd.h>
#include <osbx/log.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "import.h"

static uint64_t unpack_max_of(const struct image_opts *opts)
{
	return opts->unpack_max ? opts->unpack_max : LIMIT_UNPACK_BYTES;
}

/* What `run` needs of an image; its blobs are looked at only if something is missing. */
static struct image *image_ready(struct store *st, const struct blob_source *src,
		const struct descriptors *candidates, const struct image_opts *opts,
		struct error *e)
{
	AUTO(resolved) struct resolved r = RESOLVED_INIT;

	if (image_find(st, src, candidates, opts, &r, e) < 0) {
		return NULL;
	}
	if (r.img->layers_n == 0) {
		error_set(e, ERRC_INVALID, "it has no layers, so there is nothing to run");
		return NULL;
	}
	if ((!r.is_registered || !image_is_unpacked(st, r.img, opts->map->mode)) &&
			image_import(st, src, &r, opts, NULL, e) < 0) {
		return NULL;
	}
	return TAKE_PTR(r.img);
}

static struct image *open_stored(struct store *st, const struct ref *ref,
		const struct image_opts *opts, struct error *e)
{
	static const struct blob_source none = BLOB_SOURCE_NONE;
	AUTO(descriptors) struct descriptors entries = DESCRIPTORS_INIT;
	struct descriptors one = { .n = 1 };
	struct image *img = NULL;
	size_t i = 0;

	if (store_index_load(st, &entries, e) < 0 || entries_find(&entries, ref, &i, e) < 0) {
		return NULL;
	}
	one.v = &entries.v[i];
	img = image_ready(st, &none, &one, opts, e);
	if (!img) {
		autofree char *full = ref_full_name(ref);

		error_wrap(e, "image %s", full ? full : ref->digest.text);
	}
	return img;
}

static struct blob_source source_of(const struct layout *l)
{
	return (struct blob_source){ .dir_fd = l->dir_fd, .is_ours = l->is_ours };
}

static struct image *open_layout(struct store *st, const struct ref *ref,
		const struct image_opts *opts, struct error *e)
{
	AUTO(layout) struct layout l = LAYOUT_INIT;
	struct blob_source src = BLOB_SOURCE_NONE;
	struct image *img = NULL;
	size_t i = 0;

	if (layout_open(st, ref, unpack_max_of(opts), &l, e) < 0 ||
			layout_pick(&l, ref, &i, e) < 0) {
		return NULL;
	}
	src = source_of(&l);
	img = image_ready(st, &src, &l.images[i].candidates, opts, e);
	if (!img) {
		error_wrap(e, "%s", l.label);
	}
	return img;
}

static struct image *open_dir(struct store *st, const struct ref *ref,
		const struct image_opts *opts, struct error *e)
{
	AUTO(image) struct image *img = mem_new(struct image);
	struct stat s;

	(void)st;
	(void)opts;
	img->rootfs = realpath(ref->path, NULL);
	if (!img->rootfs || stat(img->rootfs, &s) < 0) {
		if (errno == ENOENT || errno == ENOTDIR) {
			error_set(e, ERRC_NOT_FOUND, "dir:%s: there is no such directory",
					ref->path);
		} else {
			error_sys(e, errno, "dir:%s", ref->path);
		}
		return NULL;
	}
	if (!S_ISDIR(s.st_mode)) {
		error_set(e, ERRC_INVALID, "dir:%s: it is not a directory", ref->path);
		return NULL;
	}
	return TAKE_PTR(img);
}

static struct image *open_host(struct store *st, const struct ref *ref,
		const struct image_opts *opts, struct error *e)
{
	struct image *img = mem_new(struct image);

	(void)st;
	(void)ref;
	(void)opts;
	(void)e;
	img->is_host = true;
	return img;
}

static struct image *(*const openers[])(struct store *st, const struct ref *ref,
		const struct image_opts *opts, struct error *e) = {
	[REF_NAME] = open_stored,
	[REF_OCI] = open_layout,
	[REF_OCI_ARCHIVE] = open_layout,
	[REF_DOCKER_ARCHIVE] = open_layout,
	[REF_DIR] = open_dir,
	[REF_HOST] = open_host,
};
_Static_assert(ARRAY_SIZE(openers) == REF_TRANSPORT_COUNT, "an opener each");

struct image *image_open(struct store *st, const struct ref *ref, const struct image_opts *opts,
		struct error *e)
{
	assert(ref->transport < REF_TRANSPORT_COUNT);

	return openers[ref->transport](st, ref, opts, e);
}

/* A name that was asked for instead of the image's own. */
static int name_asked(const char *text, struct strv *out_names, struct error *e)
{
	AUTO(ref) struct ref ref = REF_INIT;
	autofree char *full = NULL;

	if (ref_parse(text, &ref, e) < 0) {
		return -1;
	}
	if (ref.transport != REF_NAME || !ref.tag || ref.digest.text[0]) {
		return error_set(e, ERRC_INVALID, "\"%s\" is not a name an image can have", text);
	}
	full = ref_full_name(&ref);
	return strv_add(out_names, full) < 0 ? error_set(e, ERRC_LIMIT, "too many names") : 0;
}

/* One call of image_load. */
struct loading {
	struct store *st;
	const struct ref *ref;
	const struct image_opts *opts;
	struct layout layout;
	struct strv names; /* added so far */
};

static void loading_done(struct loading *ld)
{
	layout_done(&ld->layout);
	strv_done(&ld->names);
}
AUTO_DEFINE(loading, struct loading, loading_done);

static int too_many_names(struct error *e)
{
	return error_set(e, ERRC_LIMIT, "too many names");
}

/* Names that the image is stored under. */
static int names_choose(const struct loading *ld, const struct layout_image *img,
		struct strv *out_names, struct error *e)
{
	autofree char *full = ref_full_name(ld->ref);
	int r = 0;

	if (ld->opts->name) {
		return name_asked(ld->opts->name, out_names, e);
	}
	r = full ? strv_add(out_names, full) : strv_add_all(out_names, img->names.v);
	return r < 0 ? too_many_names(e) : 0;
}

static int load_one(struct loading *ld, const struct layout_image *img, struct error *e)
{
	AUTO(resolved) struct resolved r = RESOLVED_INIT;
	AUTO(strv) struct strv names = STRV_INIT;
	const struct blob_source src = source_of(&ld->layout);
	int added = 0;

	if (names_choose(ld, img, &names, e) < 0 ||
			image_find(ld->st, &src, &img->candidates, ld->opts, &r, e) < 0 ||
			image_import(ld->st, &src, &r, ld->opts, &names, e) < 0) {
		return -1;
	}
	added = names.n > 0 ? strv_add_all(&ld->names, names.v)
			    : strv_add(&ld->names, r.img->manifest.text);
	return added < 0 ? too_many_names(e) : 0;
}

/* All images of a layout. What cannot be an image for this machine (signatures, other platforms)
 * is passed over as long as something is left. */
static int load_all(struct loading *ld, struct error *e)
{
	const struct layout *l = &ld->layout;
	struct error first = ERROR_INIT;
	size_t loaded = 0;

	if (ld->opts->name && l->images_n != 1) {
		return error_set(e, ERRC_INVALID, "one name cannot stand for %zu images",
				l->images_n);
	}
	for (size_t i = 0; i < l->images_n; i++) {
		struct error mine = ERROR_INIT;

		if (load_one(ld, &l->images[i], &mine) == 0) {
			loaded++;
			continue;
		}
		if (mine.code != ERRC_UNSUPPORTED) {
			*e = mine;
			return -1;
		}
		log_debug("%s: passed over: %s", l->label, mine.text);
		first = first.code == ERRC_OK ? mine : first;
	}
	if (loaded == 0 && first.code != ERRC_OK) {
		*e = first;
		return -1;
	}
	return loaded > 0 ? 0 : error_set(e, ERRC_NOT_FOUND, "it holds no image");
}

static int load_ref(struct loading *ld, struct error *e)
{
	size_t i = 0;
	int r = 0;

	if (layout_open(ld->st, ld->ref, unpack_max_of(ld->opts), &ld->layout, e) < 0) {
		return -1;
	}
	if (!ld->ref->tag) {
		r = load_all(ld, e);
	} else if (layout_pick(&ld->layout, ld->ref, &i, e) < 0) {
		return -1;
	} else {
		r = load_one(ld, &ld->layout.images[i], e);
	}
	return r < 0 ? error_wrap(e, "%s", ld->layout.label) : 0;
}

int image_load(struct store *st, const struct ref *ref, const struct image_opts *opts,
		struct strv *out_names, struct error *e)
{
	AUTO(loading)
	struct loading ld = {
		.st = st,
		.ref = ref,
		.opts = opts,
		.layout = LAYOUT_INIT,
	};

	if (ref->transport != REF_OCI && ref->transport != REF_OCI_ARCHIVE &&
			ref->transport != REF_DOCKER_ARCHIVE) {
		error_set(e, ERRC_INVALID,
				"only oci:, oci-archive: and docker-archive: are loaded");
		return error_hint(e, "dir:ROOTFS and @host run as they are");
	}
	if (load_ref(&ld, e) < 0) {
		return -1;
	}
	return strv_add_all(out_names, ld.names.v) < 0 ? too_many_names(e) : 0;
}
