/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. What an image lacks in the store is brought in four steps, and a crash
 * between any two of them leaves content that nothing names, which gc removes:
 *
 *   stage     documents are written to a staging directory; for each layer blob that is missing a
 *             file is made there, or, when the source is a staging of ours, its file will be moved;
 *             from a registry it begins to come, into a part file of the store and a pipe
 *   unpack    one pass over each blob verifies it, fills that file and the layer's directory;
 *             all is made durable at once, then the directories get their names
 *   publish   blobs are renamed into blobs/sha256
 *   register  index.json is replaced, then the chain ids are recorded
 *
 * Two processes may import one image at the same time: each rename finds the same content there.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/limits.h>
#include <osbx/log.h>
#include <osbx/mem.h>
#include <osbx/program.h>

#include "import.h"
#include "unpack.h"

struct import {
	struct store *st;
	const struct blob_source *src;
	const struct resolved *r;
	const struct image_opts *opts;
	struct staging staging;      /* made when first needed */
	struct unpack_layer *layers; /* as many as the image has */
	bool *moves;                 /* the source's file becomes the blob */
	bool has_work;               /* some layer is to be read */
	bool is_synced;              /* unpack made all durable */
};

static void import_done(struct import *imp)
{
	for (size_t i = 0; imp->layers && i < imp->r->img->layers_n; i++) {
		fd_close(&imp->layers[i].blob_fd);
		fd_close(&imp->layers[i].copy_fd);
	}
	free(imp->layers);
	free(imp->moves);
	staging_done(&imp->staging);
}
AUTO_DEFINE(import, struct import, import_done);

/* A new file in the staging under the blob's digits. fd or -1. */
static int stage_file(struct import *imp, const struct digest *d, struct error *e)
{
	int fd = -1;

	if (imp->staging.dir_fd < 0 && store_staging(imp->st, &imp->staging, e) < 0) {
		return -1;
	}
	fd = fd_open_at(imp->staging.dir_fd, digest_hex(d), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW,
			0600);
	return fd < 0 ? error_sys(e, -fd, "make a file for blob %s", d->text) : fd;
}

static int stage_bytes(struct import *imp, const struct digest *d, const struct buf *bytes,
		struct error *e)
{
	autoclose int fd = stage_file(imp, d, e);
	int r = 0;

	if (fd < 0) {
		return -1;
	}
	r = fd_write_all(fd, bytes->p, bytes->n);
	return r < 0 ? error_sys(e, -r, "write blob %s", d->text) : 0;
}

/* A document of the image that may have to be stored. */
struct document {
	const struct digest *digest;
	const struct buf *bytes;
	bool is_stored;
};

#define DOCUMENTS_N 3

struct documents {
	struct document v[DOCUMENTS_N];
};

static struct documents documents_of(const struct import *imp)
{
	const struct resolved *r = imp->r;
	const struct found *f = &r->found;
	struct documents docs;

	docs.v[0] = (struct document){ &f->manifest.digest, &r->manifest, r->manifest_stored };
	docs.v[1] = (struct document){ &r->config_d.digest, &r->config, r->config_stored };
	docs.v[2] = (struct document){ &f->index.digest, &f->index_text,
		!f->index.media_type || f->index_stored };
	return docs;
}

static int documents_stage(struct import *imp, struct error *e)
{
	struct documents docs = documents_of(imp);

	for (size_t i = 0; i < DOCUMENTS_N; i++) {
		if (!docs.v[i].is_stored &&
				stage_bytes(imp, docs.v[i].digest, docs.v[i].bytes, e) < 0) {
			return -1;
		}
	}
	return 0;
}

/* Does a lower layer of the image bring the same blob (the empty layer is a frequent one)? */
static bool is_brought(const struct import *imp, size_t i)
{
	for (size_t k = 0; k < i; k++) {
		if ((imp->layers[k].copy_fd >= 0 || imp->moves[k]) &&
				digest_eq(&imp->layers[k].layer->blob,
						&imp->layers[i].layer->blob)) {
			return true;
		}
	}
	return false;
}

static void present_report(const struct import *imp, size_t i)
{
	const struct image_progress *p = imp->opts->progress;
	const struct image_layer *layer = imp->layers[i].layer;

	if (p) {
		p->on_layer(p->ctx, i, layer, IMAGE_PHASE_PRESENT, layer->size, layer->size);
	}
}

static int layer_from_store(struct import *imp, size_t i, struct error *e)
{
	struct unpack_layer *u = &imp->layers[i];
	int fd = store_blob_open(imp->st, &u->layer->blob);

	if (fd < 0) {
		return error_sys(e, -fd, "open blob %s", u->layer->blob.text);
	}
	u->blob_fd = fd;
	return 0;
}

static int layer_from_source(struct import *imp, size_t i, struct error *e)
{
	struct unpack_layer *u = &imp->layers[i];
	bool is_file = false;
	bool is_second = is_brought(imp, i);

	if (imp->src->remote) {
		u->blob_fd = imp->src->remote->open(imp->src->remote->ctx, i, u->layer, e);
		imp->moves[i] = true;
		return u->blob_fd < 0 ? -1 : 0;
	}
	if (imp->src->dir_fd < 0) {
		error_set(e, ERRC_NOT_FOUND, "blob %s is missing in the store",
				u->layer->blob.text);
		return error_hint(e, "load or pull the image again");
	}
	u->blob_fd = blob_source_open(imp->src, &u->layer->blob, u->layer->size, &is_file, e);
	if (u->blob_fd < 0) {
		return -1;
	}
	if (is_second) {
		return 0;
	}
	if (imp->src->is_ours && is_file) {
		if (fchmod(u->blob_fd, 0600) < 0) {
			return error_sys(e, errno, "blob %s", u->layer->blob.text);
		}
		imp->moves[i] = true;
		return 0;
	}
	u->copy_fd = stage_file(imp, &u->layer->blob, e);
	return u->copy_fd < 0 ? -1 : 0;
}

static int layer_plan(struct import *imp, size_t i, int layers_fd, struct error *e)
{
	struct unpack_layer *u = &imp->layers[i];
	bool is_stored = store_has_blob(imp->st, &u->layer->blob, u->layer->size);

	u->present = store_has_layer(layers_fd, &u->layer->chain);
	if (u->present && (is_stored || is_brought(imp, i))) {
		present_report(imp, i);
		return 0;
	}
	imp->has_work = true;
	return is_stored ? layer_from_store(imp, i, e) : layer_from_source(imp, i, e);
}

static int layers_plan(struct import *imp, struct error *e)
{
	const struct image *img = imp->r->img;
	int layers_fd = store_layers_fd(imp->st, imp->opts->map->mode);

	if (layers_fd < 0) {
		error_sys(e, -layers_fd, "open %s/%s/%s", store_root(imp->st), STORE_LAYERS,
				idmap_mode_name(imp->opts->map->mode));
		return -1;
	}
	imp->layers = mem_array(img->layers_n, sizeof(*imp->layers));
	imp->moves = mem_array(img->layers_n, sizeof(*imp->moves));
	for (size_t i = 0; i < img->layers_n; i++) {
		imp->layers[i] = (struct unpack_layer){
			.layer = &img->layers[i],
			.blob_fd = -1,
			.copy_fd = -1,
		};
	}
	for (size_t i = 0; i < img->layers_n; i++) {
		if (layer_plan(imp, i, layers_fd, e) < 0) {
			return error_wrap(e, "layer %zu", i + 1);
		}
	}
	return 0;
}

/* What the unpacker could not make sense of may have been damaged on its way here. */
static void layers_blame(struct import *imp, struct error *e)
{
	const struct blob_remote *remote = imp->src->remote;

	for (size_t i = 0; remote && i < imp->r->img->layers_n; i++) {
		if (imp->layers[i].failed && imp->moves[i]) {
			remote->blame(remote->ctx, i, e);
		}
	}
}

static int layers_unpack(struct import *imp, struct error *e)
{
	const struct image *img = imp->r->img;
	const struct unpack_opts opts = {
		.map = imp->opts->map,
		.unpack_max = imp->opts->unpack_max ? imp->opts->unpack_max : LIMIT_UNPACK_BYTES,
		.progress = imp->opts->progress,
		.feed = imp->src->remote ? &imp->src->remote->feed : NULL,
	};

	for (size_t i = 0; i < img->layers_n; i++) {
		imp->is_synced |= !imp->layers[i].present;
	}
	if (imp->has_work && unpack_layers(imp->st, &opts, imp->layers, img->layers_n, e) < 0) {
		layers_blame(imp, e);
		return -1;
	}
	return 0;
}

static int blob_move(struct import *imp, int dir_fd, const char *folder, const struct digest *d,
		struct error *e)
{
	autofree char *name = mem_printf("%s%s", folder, digest_hex(d));
	int r = store_blob_publish(imp->st, dir_fd, name, d);

	return r < 0 ? error_sys(e, -r, "publish blob %s", d->text) : 0;
}

/* The file of a source becomes the blob. */
static int blob_take(struct import *imp, size_t i, struct error *e)
{
	const struct blob_remote *remote = imp->src->remote;

	if (remote) {
		return remote->publish(remote->ctx, i, e);
	}
	return blob_move(imp, imp->src->dir_fd, STORE_BLOBS "/", &imp->layers[i].layer->blob, e);
}

static int blobs_sync(const struct import *imp, struct error *e)
{
	autoclose int fd = fd_open_at(store_root_fd(imp->st), STORE_BLOBS,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	int r = fd < 0 ? fd : file_sync_dir(fd);

	return r < 0 ? error_sys(e, -r, "sync %s/%s", store_root(imp->st), STORE_BLOBS) : 0;
}

static int blobs_publish(struct import *imp, struct error *e)
{
	struct documents docs = documents_of(imp);

	if (imp->staging.dir_fd < 0 && !imp->has_work) {
		return 0;
	}
	if (!imp->is_synced && syncfs(store_root_fd(imp->st)) < 0) {
		return error_sys(e, errno, "sync store %s", store_root(imp->st));
	}
	for (size_t i = 0; i < imp->r->img->layers_n; i++) {
		const struct unpack_layer *u = &imp->layers[i];

		if (u->copy_fd >= 0 &&
				blob_move(imp, imp->staging.dir_fd, "", &u->layer->blob, e) < 0) {
			return -1;
		}
		if (imp->moves[i] && blob_take(imp, i, e) < 0) {
			return -1;
		}
	}
	for (size_t i = 0; i < DOCUMENTS_N; i++) {
		if (!docs.v[i].is_stored &&
				blob_move(imp, imp->staging.dir_fd, "", docs.v[i].digest, e) < 0) {
			return -1;
		}
	}
	return blobs_sync(imp, e);
}

/* What is added to index.json. */
struct registration {
	struct descriptor d;
	const struct strv *names; /* NULL: passing */
};

/* What only a run had brought, somebody wants to keep now. */
static void entries_keep(struct descriptors *entries, const struct digest *manifest)
{
	for (size_t i = 0; i < entries->n; i++) {
		if (digest_eq(&entries->v[i].digest, manifest)) {
			free(TAKE_PTR(entries->v[i].annotations.passing));
		}
	}
}

static int names_add(struct descriptors *entries, void *ctx, struct error *e)
{
	const struct registration *reg = ctx;

	(void)e;
	for (size_t i = 0; reg->names && i < reg->names->n; i++) {
		entries_add(entries, &reg->d, reg->names->v[i]);
	}
	if (!reg->names || reg->names->n == 0) {
		entries_add(entries, &reg->d, NULL);
	}
	if (reg->names) {
		entries_keep(entries, &reg->d.digest);
	}
	return 0;
}

static int image_register(struct import *imp, const struct strv *names, struct error *e)
{
	const struct image *img = imp->r->img;
	autofree struct digest *chains = mem_array(img->layers_n, sizeof(*chains));
	AUTO(descriptor) struct descriptor added = { .size = imp->r->found.manifest.size };
	struct registration reg = { .names = names };
	int r = 0;

	if (!names && imp->r->is_registered) {
		return 0;
	}
	added.media_type = mem_strdup(imp->r->found.manifest.media_type);
	added.digest = img->manifest;
	added.platform.os = mem_strdup(img->config.os ? img->config.os : "linux");
	added.platform.architecture = mem_strdup(img->config.architecture);
	added.platform.variant = mem_strdup(img->config.variant);
	if (imp->r->found.index.media_type) {
		added.annotations.index = mem_strdup(imp->r->found.index.digest.text);
	}
	if (!names) {
		added.annotations.passing = mem_strdup("true");
	}
	reg.d = added; /* borrowed for the edit */
	if (store_index_edit(imp->st, names_add, &reg, e) < 0) {
		return -1;
	}
	for (size_t i = 0; i < img->layers_n; i++) {
		chains[i] = img->layers[i].chain;
	}
	r = store_chains_save(imp->st, &img->manifest, chains, img->layers_n);
	if (r < 0) {
		log_debug("chain ids of %s are not recorded: %d", img->manifest.text, r);
	}
	return 0;
}

int image_import(struct store *st, const struct blob_source *src, const struct resolved *r,
		const struct image_opts *opts, const struct strv *names, struct error *e)
{
	AUTO(import)
	struct import imp = {
		.st = st,
		.src = src,
		.r = r,
		.opts = opts,
		.staging = STAGING_INIT,
	};

	if (program_full(e) < 0 || documents_stage(&imp, e) < 0 || layers_plan(&imp, e) < 0 ||
			layers_unpack(&imp, e) < 0 || blobs_publish(&imp, e) < 0) {
		return -1;
	}
	return image_register(&imp, names, e);
}
