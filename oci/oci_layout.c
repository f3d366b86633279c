/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OCI layouts (image-spec image-layout.md): the images that index.json lists, and their names.
 *
 * Entries of one ref.name with different platforms are one image; so are entries without a name,
 * as some tools write the builds of one image straight into index.json.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include <osbx/fd.h>
#include <osbx/json.h>
#include <osbx/limits.h>
#include <osbx/log.h>
#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/str.h>

#include "layout.h"

#define LAYOUT_FILE      "oci-layout"
#define LAYOUT_FILE_MAX  4096
#define BASE_MAX         128
#define IMAGES_MAX       4096
#define LOCAL_REPOSITORY "localhost/"

static const char *const archive_suffixes[] = { ".gz", ".zst", ".tgz", ".tar", ".oci" };

static int file_read(const struct layout *l, const char *name, struct buf *text, struct error *e)
{
	autoclose int fd = path_open_nolink(l->dir_fd, name, O_RDONLY | O_NONBLOCK, 0);
	int r = fd < 0 ? fd : fd_read_all(fd, text);

	if (r == -ENOENT) {
		error_set(e, ERRC_INVALID, "it is no OCI layout: it has no file %s", name);
		return error_hint(e, "an archive of docker save is named docker-archive:FILE");
	}
	if (r == -EMSGSIZE) {
		return error_set(e, ERRC_LIMIT, "%s is larger than %zu bytes", name, text->max);
	}
	return r < 0 ? error_sys(e, -r, "read %s", name) : 0;
}

static int version_check(const struct layout *l, struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(LAYOUT_FILE_MAX);
	AUTO(json) struct json *root = NULL;
	const char *version = NULL;

	if (file_read(l, LAYOUT_FILE, &text, e) < 0) {
		return -1;
	}
	root = json_parse(buf_span(&text), e);
	if (!root) {
		return error_wrap(e, LAYOUT_FILE);
	}
	version = json_string(json_get(root, "imageLayoutVersion"));
	if (!version || !str_after(version, "1.")) {
		return error_set(e, ERRC_UNSUPPORTED, "%s: imageLayoutVersion is not 1.x",
				LAYOUT_FILE);
	}
	return 0;
}

/* Take a name as one of the store if it is one in full. */
static int name_take(struct layout_image *img, const char *text)
{
	autofree char *full = layout_full_name(text);

	return full ? strv_add(&img->names, full) : -1;
}

/* Length of an archive's name without the suffixes that say so. */
static size_t stem_len(const char *base)
{
	size_t n = strlen(base);

	for (size_t i = 0; i < ARRAY_SIZE(archive_suffixes); i++) {
		size_t suffix = strlen(archive_suffixes[i]);

		if (n > suffix && memcmp(base + n - suffix, archive_suffixes[i], suffix) == 0) {
			n -= suffix;
		}
	}
	return n;
}

/* What stands for a byte in the name of a repository. */
static char repository_char(char c)
{
	if (c >= 'A' && c <= 'Z') {
		return (char)(c - 'A' + 'a');
	}
	if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
		return c;
	}
	return '-';
}

/* The last component of path as a repository name: lower case, one '-' for what is not allowed,
 * without the suffixes of archives. "" if nothing is left. */
static void base_of(const char *path, char *out, size_t out_size)
{
	autofree char *whole = path_normalise(path);
	const char *base = path_last(whole);
	size_t n = stem_len(base);
	size_t used = 0;

	for (size_t i = 0; i < n && used + 1 < out_size; i++) {
		char c = repository_char(base[i]);

		if (c != '-' || (used > 0 && out[used - 1] != '-')) {
			out[used++] = c;
		}
	}
	while (used > 0 && out[used - 1] == '-') {
		used--;
	}
	out[used] = '\0';
}

/* Docker and buildx write the full name beside a ref.name that is only a tag; skopeo and podman
 * write the name into ref.name; a tag alone becomes a local name, as podman has it. */
static void names_find(struct layout_image *img, const char *path)
{
	autofree char *local = NULL;
	char base[BASE_MAX];

	if (img->alias && name_take(img, img->alias) == 0) {
		return;
	}
	if (!img->tag || (strpbrk(img->tag, ":/") && name_take(img, img->tag) == 0)) {
		return;
	}
	base_of(path, base, sizeof(base));
	local = mem_printf(LOCAL_REPOSITORY "%s:%s", base[0] ? base : "image", img->tag);
	if (name_take(img, local) < 0) {
		log_debug("an image's ref.name is not usable as a name");
	}
}

static bool text_eq(const char *a, const char *b)
{
	return (!a && !b) || (a && b && str_eq(a, b));
}

static bool platform_eq(const struct platform *a, const struct platform *b)
{
	return text_eq(a->os, b->os) && text_eq(a->architecture, b->architecture) &&
	       text_eq(a->variant, b->variant);
}

static bool is_image(const struct descriptor *d)
{
	enum media_kind kind = media_find(d->media_type, NULL);

	return !d->annotations.reference_type && !d->artifact_type &&
	       (kind == MEDIA_INDEX || kind == MEDIA_MANIFEST || kind == MEDIA_SCHEMA1);
}

/* Is d one more build of the image? */
static bool is_sibling(const struct layout_image *img, const struct descriptor *d)
{
	for (size_t i = 0; i < img->candidates.n; i++) {
		if (platform_eq(&img->candidates.v[i].platform, &d->platform)) {
			return false;
		}
	}
	return text_eq(img->tag, d->annotations.ref_name);
}

/* The image that d belongs to, or NULL if it adds nothing. */
static struct layout_image *image_for(struct layout *l, const struct descriptor *d)
{
	struct layout_image *img = NULL;

	for (size_t i = 0; i < l->images_n; i++) {
		if (is_sibling(&l->images[i], d)) {
			return &l->images[i];
		}
		/* The same name and platform once more: the first one counts. */
		if (d->annotations.ref_name && text_eq(l->images[i].tag, d->annotations.ref_name)) {
			return NULL;
		}
	}
	img = layout_add(l);
	img->tag = mem_strdup(d->annotations.ref_name);
	img->alias = mem_strdup(d->annotations.containerd);
	return img;
}

static void candidate_add(struct layout_image *img, const struct descriptor *d)
{
	struct descriptors *list = &img->candidates;

	list->v = mem_resize(list->v, list->n, list->n + 1, sizeof(*list->v));
	descriptor_copy(d, &list->v[list->n]);
	list->n++;
}

/* Do both name one image, in full or for short? A tag alone is no name. */
static bool name_eq(const char *text, const char *wanted)
{
	autofree char *a = text && strpbrk(text, ":/") ? layout_full_name(text) : NULL;
	autofree char *b = a ? layout_full_name(wanted) : NULL;

	return a && b && str_eq(a, b);
}

static bool is_wanted(const struct descriptor *d, const char *wanted)
{
	const struct annotations *a = &d->annotations;

	return is_image(d) &&
	       (!wanted || text_eq(a->ref_name, wanted) || text_eq(a->containerd, wanted) ||
			       name_eq(a->ref_name, wanted) || name_eq(a->containerd, wanted));
}

static int images_list(struct layout *l, const struct descriptors *entries, const char *wanted,
		struct error *e)
{
	for (size_t i = 0; i < entries->n; i++) {
		const struct descriptor *d = &entries->v[i];
		struct layout_image *img = is_wanted(d, wanted) ? image_for(l, d) : NULL;

		if (img) {
			candidate_add(img, d);
		}
		if (l->images_n > IMAGES_MAX) {
			return error_set(e, ERRC_LIMIT, "%s names more than %d images", STORE_INDEX,
					IMAGES_MAX);
		}
	}
	return 0;
}

int oci_layout_read(struct layout *l, const struct ref *ref, struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(LIMIT_INDEX_BYTES);
	AUTO(descriptors) struct descriptors entries = DESCRIPTORS_INIT;

	if (version_check(l, e) < 0 || file_read(l, STORE_INDEX, &text, e) < 0) {
		return -1;
	}
	if (index_parse(buf_span(&text), NULL, &entries, e) < 0) {
		return error_wrap(e, STORE_INDEX);
	}
	if (images_list(l, &entries, ref->tag, e) < 0) {
		return -1;
	}
	/* Only to say what is there instead. */
	if (l->images_n == 0 && ref->tag && images_list(l, &entries, NULL, e) < 0) {
		return -1;
	}
	for (size_t i = 0; i < l->images_n; i++) {
		names_find(&l->images[i], ref->path);
	}
	return 0;
}
