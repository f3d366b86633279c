/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Archives of docker save: manifest.json names a configuration and layer files for each image.
 *
 * Each image gets an OCI manifest of its own. A plain layer is known by its diff id, which unpack
 * verifies like any digest, so only compressed ones are read here. Layers that several images
 * share are links in older archives.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/jsondec.h>
#include <osbx/limits.h>
#include <osbx/log.h>
#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/str.h>

#include "layout.h"

#define MEMBER_OPEN_FLAGS (O_RDONLY | O_NONBLOCK)
#define HASH_CHUNK        (256U << 10)
#define MAGIC_BYTES       4U

/* One element of manifest.json. */
struct saved {
	char *config;
	struct strv tags;
	struct strv layers;
};

static void saved_done(struct saved *s)
{
	free(s->config);
	strv_done(&s->tags);
	strv_done(&s->layers);
}
AUTO_DEFINE(saved, struct saved, saved_done);

static const struct jsondec_field saved_fields[] = {
	{ "Config", JSONDEC_STRING, offsetof(struct saved, config), JSONDEC_REQUIRED,
			.max = LIMIT_PATH_BYTES },
	{ "RepoTags", JSONDEC_STRV, offsetof(struct saved, tags) },
	{ "Layers", JSONDEC_STRV, offsetof(struct saved, layers) },
	{ .name = NULL },
};

/* The conversion of one image. */
struct convert {
	int archive_fd; /* the members */
	int blobs_fd;   /* the layout's blobs/sha256 */
	struct config_doc doc;
	struct descriptor config;
	struct descriptors layers;
};

static void convert_done(struct convert *c)
{
	config_doc_done(&c->doc);
	descriptor_done(&c->config);
	descriptors_done(&c->layers);
}
AUTO_DEFINE(convert, struct convert, convert_done);

/* Links are followed inside the archive: "ID/layer.tar" may lead to another image's. */
static int member_open(int dir_fd, const char *name, struct stat *out_stat, struct error *e)
{
	autoclose int fd = path_open_beneath(dir_fd, name, MEMBER_OPEN_FLAGS, 0);

	if (fd == -ENOENT || fd == -ELOOP) {
		return error_set(e, ERRC_INVALID, "%s is missing in the archive", name);
	}
	if (fd < 0) {
		return error_sys(e, -fd, "open %s", name);
	}
	if (fstat(fd, out_stat) < 0) {
		return error_sys(e, errno, "open %s", name);
	}
	if (!S_ISREG(out_stat->st_mode)) {
		return error_set(e, ERRC_INVALID, "%s is not a regular file", name);
	}
	return TAKE_FD(fd);
}

static int member_read(int dir_fd, const char *name, struct buf *text, struct error *e)
{
	struct stat s;
	autoclose int fd = member_open(dir_fd, name, &s, e);
	int r = 0;

	if (fd < 0) {
		return -1;
	}
	r = fd_read_all(fd, text);
	if (r == -EMSGSIZE) {
		return error_set(e, ERRC_LIMIT, "%s is larger than %zu bytes", name, text->max);
	}
	return r < 0 ? error_sys(e, -r, "read %s", name) : 0;
}

static int file_digest(int fd, struct digest *out_d, struct error *e)
{
	AUTO(digest_hash) struct digest_hash *h = digest_hash_new(e);
	autofree char *chunk = mem_array(HASH_CHUNK, 1);
	ssize_t n = 0;

	if (!h) {
		return -1;
	}
	while ((n = fd_read(fd, chunk, HASH_CHUNK)) > 0) {
		digest_hash_add(h, chunk, (size_t)n);
	}
	if (n < 0) {
		return error_sys(e, (int)-n, "read");
	}
	digest_hash_end(h, out_d);
	return 0;
}

/* manifest.json does not say how its layers are compressed. */
static int compression_of(int fd, enum image_compression *out_compression)
{
	static const unsigned char zstd[MAGIC_BYTES] = { 0x28, 0xb5, 0x2f, 0xfd };
	unsigned char magic[MAGIC_BYTES] = { 0 };

	if (pread(fd, magic, sizeof(magic), 0) < 0) {
		return -errno;
	}
	if (memcmp(magic, zstd, sizeof(zstd)) == 0) {
		*out_compression = IMAGE_ZSTD;
	} else {
		*out_compression = magic[0] == 0x1f && magic[1] == 0x8b ? IMAGE_GZIP : IMAGE_PLAIN;
	}
	return 0;
}

/* Give the open file the name of its digest. */
static int blob_link(const struct convert *c, int fd, const struct digest *d, struct error *e)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (linkat(AT_FDCWD, path, c->blobs_fd, digest_hex(d), AT_SYMLINK_FOLLOW) < 0 &&
			errno != EEXIST) {
		return error_sys(e, errno, "link blob %s", d->text);
	}
	return 0;
}

static int blob_write(
		const struct convert *c, struct span text, struct descriptor *d, struct error *e)
{
	int r = 0;

	if (digest_of(text, &d->digest, e) < 0) {
		return -1;
	}
	d->size = text.n;
	r = file_write_at(c->blobs_fd, digest_hex(&d->digest), text, false);
	return r < 0 ? error_sys(e, -r, "write blob %s", d->digest.text) : 0;
}

static int config_convert(struct convert *c, const char *name, struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(LIMIT_CONFIG_BYTES);

	if (member_read(c->archive_fd, name, &text, e) < 0) {
		return -1;
	}
	if (config_parse(buf_span(&text), &c->doc, e) < 0) {
		return error_wrap(e, "%s", name);
	}
	c->config.media_type = mem_strdup(MEDIA_OCI_CONFIG);
	return blob_write(c, buf_span(&text), &c->config, e);
}

static int layer_convert(struct convert *c, const char *name, const struct digest *diff,
		struct descriptor *out_layer, struct error *e)
{
	enum image_compression compression = IMAGE_PLAIN;
	struct stat s;
	autoclose int fd = member_open(c->archive_fd, name, &s, e);
	int r = 0;

	if (fd < 0) {
		return -1;
	}
	r = compression_of(fd, &compression);
	if (r < 0) {
		return error_sys(e, -r, "read %s", name);
	}
	out_layer->media_type = mem_strdup(media_of_layer(compression));
	out_layer->size = (uint64_t)s.st_size;
	out_layer->digest = *diff;
	if (compression != IMAGE_PLAIN && file_digest(fd, &out_layer->digest, e) < 0) {
		return error_wrap(e, "%s", name);
	}
	return blob_link(c, fd, &out_layer->digest, e);
}

static int layers_convert(struct convert *c, const struct strv *names, struct error *e)
{
	if (names->n != c->doc.diffs_n) {
		return error_set(e, ERRC_INVALID,
				"%zu layers, but the configuration has %zu diff_ids", names->n,
				c->doc.diffs_n);
	}
	c->layers.v = mem_array(names->n, sizeof(*c->layers.v));
	strv_for_each(names, i) {
		c->layers.n++;
		if (layer_convert(c, names->v[i], &c->doc.diffs[i], &c->layers.v[i], e) < 0) {
			return -1;
		}
	}
	return 0;
}

static void descriptor_write(struct json_writer *w, const char *name, const struct descriptor *d)
{
	json_object_begin(w, name);
	json_add_string(w, "mediaType", d->media_type);
	json_add_string(w, "digest", d->digest.text);
	json_add_u64(w, "size", d->size);
	json_object_end(w);
}

static int manifest_write(const struct convert *c, struct descriptor *out_manifest, struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(LIMIT_MANIFEST_BYTES);
	struct json_writer w = JSON_WRITER(&text);

	json_object_begin(&w, NULL);
	json_add_u64(&w, "schemaVersion", 2);
	json_add_string(&w, "mediaType", MEDIA_OCI_MANIFEST);
	descriptor_write(&w, "config", &c->config);
	json_array_begin(&w, "layers");
	for (size_t i = 0; i < c->layers.n; i++) {
		descriptor_write(&w, NULL, &c->layers.v[i]);
	}
	json_array_end(&w);
	json_object_end(&w);
	out_manifest->media_type = mem_strdup(MEDIA_OCI_MANIFEST);
	return blob_write(c, buf_span(&text), out_manifest, e);
}

static void tags_take(struct layout_image *img, const struct strv *tags)
{
	strv_for_each(tags, i) {
		AUTO(ref) struct ref ref = REF_INIT;
		struct error ignored = ERROR_INIT;
		autofree char *full = NULL;

		/* With a digest it is no name of the store: nobody could ask for it or remove it.
		 */
		if (ref_parse(tags->v[i], &ref, &ignored) == 0 && ref.transport == REF_NAME &&
				ref.tag && !ref.digest.text[0]) {
			full = ref_full_name(&ref);
		}
		/* "<none>:<none>" is how some tools write no name. */
		if (!full || strv_add(&img->names, full) < 0) {
			log_debug("a RepoTag is not usable as a name");
		}
	}
}

static int image_convert(struct layout *l, struct convert *c, const struct json *v, struct error *e)
{
	AUTO(saved) struct saved saved = { .config = NULL };
	struct layout_image *img = NULL;
	struct descriptor *d = NULL;

	if (jsondec_object(v, saved_fields, &saved, e) < 0 ||
			config_convert(c, saved.config, e) < 0 ||
			layers_convert(c, &saved.layers, e) < 0) {
		return -1;
	}
	img = layout_add(l);
	img->candidates.v = mem_array(1, sizeof(*img->candidates.v));
	img->candidates.n = 1;
	d = &img->candidates.v[0];
	d->platform.os = mem_strdup(c->doc.config.os);
	d->platform.architecture = mem_strdup(c->doc.config.architecture);
	d->platform.variant = mem_strdup(c->doc.config.variant);
	tags_take(img, &saved.tags);
	return manifest_write(c, d, e);
}

static int images_convert(struct layout *l, int archive_fd, int blobs_fd, struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(LIMIT_MANIFEST_BYTES);
	AUTO(json) struct json *root = NULL;
	size_t i = 0;

	if (member_read(archive_fd, "manifest.json", &text, e) < 0) {
		error_wrap(e, "it is no archive of docker save of Docker 1.10 or later");
		return error_hint(e,
				"an OCI archive is named oci-archive:FILE; an older one has to be "
				"loaded and saved by a current Docker");
	}
	root = json_parse(buf_span(&text), e);
	if (!root || !json_is_array(root)) {
		return root ? error_set(e, ERRC_INVALID, "manifest.json: expected an array")
			    : error_wrap(e, "manifest.json");
	}
	json_for_each(v, root) {
		AUTO(convert) struct convert c = { .archive_fd = archive_fd, .blobs_fd = blobs_fd };

		if (image_convert(l, &c, v, e) < 0) {
			return error_wrap(e, "manifest.json[%zu]", i);
		}
		i++;
	}
	return 0;
}

/* The new layout stands beside the members: newer archives have a blobs/ of their own. */
static int layout_make(const struct layout *l, int *out_layout_fd, int *out_blobs_fd)
{
	static const char blobs_path[] = "layout/" STORE_BLOBS;
	static const char *const dirs[] = { "layout", "layout/blobs", blobs_path };
	autoclose int layout = -1;
	autoclose int blobs = -1;

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		int r = file_mkdir_at(l->staging.dir_fd, dirs[i], 0700);

		if (r < 0) {
			return r;
		}
	}
	layout = fd_open_at(l->staging.dir_fd, dirs[0], O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (layout < 0) {
		return layout;
	}
	blobs = fd_open_at(layout, STORE_BLOBS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (blobs < 0) {
		return blobs;
	}
	*out_layout_fd = TAKE_FD(layout);
	*out_blobs_fd = TAKE_FD(blobs);
	return 0;
}

int docker_archive_read(struct layout *l, struct error *e)
{
	autoclose int archive = TAKE_FD(l->dir_fd);
	autoclose int layout = -1;
	autoclose int blobs = -1;
	int r = layout_make(l, &layout, &blobs);

	if (r < 0) {
		return error_sys(e, -r, "make a layout in the store's staging");
	}
	l->dir_fd = TAKE_FD(layout);
	return images_convert(l, archive, blobs, e);
}
