/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: oci
 * image - a resolved image: its configuration and its unpacked layers.
 *
 * Documents are checked by one table of accepted shapes (media types of OCI image-spec 1.1 and
 * Docker schema 2): a document whose embedded mediaType differs from its descriptor's or that is
 * manifest and index at once is refused (CVE-2021-41190), sizes and digests are verified before
 * use, unknown platforms and attestations are skipped, schema 1 is refused by name.
 */
#ifndef OSBX_IMAGE_H
#define OSBX_IMAGE_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/digest.h>
#include <osbx/error.h>
#include <osbx/idmap.h>
#include <osbx/ref.h>
#include <osbx/store.h>
#include <osbx/strv.h>

enum image_compression {
	IMAGE_PLAIN,
	IMAGE_GZIP,
	IMAGE_ZSTD,
	IMAGE_COMPRESSION_COUNT,
};

struct image_layer {
	struct digest blob; /* digest of the bytes as stored */
	uint64_t size;      /* of those bytes */
	enum image_compression compression;
	struct digest diff;  /* digest of the plain tar */
	struct digest chain; /* names the directory layers/MODE/CHAIN-HEX */
};

/* Image configuration (image-spec config.md "config"); all data, nothing is obeyed here. Absent
 * strings are NULL. */
struct image_config {
	struct strv entrypoint;
	struct strv cmd;
	struct strv env;
	struct strv volumes; /* sorted destinations */
	char *user;
	char *working_dir;
	char *stop_signal;
	char *os;
	char *architecture;
	char *variant;
	char *created;
};

struct image {
	struct digest manifest; /* "" for dir: and @host */
	struct digest config_digest;
	struct image_config config;
	size_t layers_n; /* lowest first; 0 for dir: and @host */
	struct image_layer *layers;
	char *rootfs; /* dir: the absolute path; else NULL */
	bool is_host; /* @host */
};

void image_free(struct image *img);
AUTO_DEFINE_PTR(image, struct image, image_free);

enum image_phase {
	IMAGE_PHASE_WAITING,  /* for its turn, or for another process that downloads it */
	IMAGE_PHASE_FETCHING, /* bytes arrive from a registry and are unpacked at once */
	IMAGE_PHASE_COPYING,  /* bytes are hashed, inflated, unpacked */
	IMAGE_PHASE_LINKING,  /* hard links into lower layers, implicit parents */
	IMAGE_PHASE_DONE,     /* complete */
	IMAGE_PHASE_PRESENT,  /* was there already */
	IMAGE_PHASE_COUNT,
};

/* Called from image_open, image_load and image_pull while layers arrive, at most every 50 ms a
 * layer and on each change of phase. */
struct image_progress {
	void (*on_layer)(void *ctx, size_t index, const struct image_layer *layer,
			enum image_phase phase, uint64_t done, uint64_t total);
	void *ctx;
};

struct image_opts {
	const struct idmap *map; /* settled by store_settle_mode */
	const char *platform;    /* "os/arch[/variant]"; NULL: this machine */
	uint64_t unpack_max;     /* bytes of one image when unpacked; 0: LIMIT_UNPACK_BYTES */
	const struct image_progress *progress; /* or NULL */
	const char *name; /* load: name the image is stored under instead of its own; or NULL */
};

/* The image of ref, ready to run: from the store (names, digests), loaded first when a transport
 * names it and it is not there yet, its layers unpacked in the store's mode. @host and dir: need
 * no store. An image that a transport brings gets an entry without a name, unless it has one. The
 * caller holds store_hold shared until the image is recorded elsewhere. Owned by the caller; NULL:
 * ERRC_NOT_FOUND (hint: how to load), ERRC_INVALID (document), ERRC_LIMIT (budget),
 * ERRC_UNSUPPORTED (schema 1, platform). */
struct image *image_open(struct store *st, const struct ref *ref, const struct image_opts *opts,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
/* Load every image that ref names (an archive may hold several) into the store, unpack, and add
 * the names: full ones as they are, a tag alone as localhost/BASENAME:TAG, none at all stays an
 * entry without a name. A name moves from the image that had it. The caller holds store_hold
 * shared. out_names receives the full names or digests that were added. */
int image_load(struct store *st, const struct ref *ref, const struct image_opts *opts,
		struct strv *out_names, struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4, 5);
/* Name an image once more; a name moves from the image that had it. The caller holds store_hold
 * shared. ERRC_NOT_FOUND, ERRC_INVALID. */
int image_tag(struct store *st, const struct ref *from, const struct ref *to,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
/* Remove a name. By digest, or at least 12 leading digits of it: all names of the image;
 * ERRC_CONFLICT with more than one unless force. ERRC_NOT_FOUND. Content stays until store_gc.
 * out_removed receives the names, or the digest of an image without one. */
int image_remove(struct store *st, const struct ref *ref, bool force, struct strv *out_removed,
		struct error *e) MUST_CHECK NONNULL(1, 2, 4, 5);
/* Write images as one oci-archive to out_fd, which may be a pipe (ref.name annotations are the full
 * names; an image given by digest has none). Same content, same bytes. The caller holds store_hold
 * shared. ERRC_NOT_FOUND before anything is written. */
int image_save(struct store *st, const struct ref *refs, size_t refs_n, int out_fd,
		struct error *e) MUST_CHECK NONNULL(1, 2, 5);

struct image_entry {
	struct digest manifest;
	char *name;     /* full name, or NULL: stored by digest only */
	char *created;  /* RFC 3339 as the image says, or NULL */
	char *platform; /* "linux/amd64" */
	uint64_t size;  /* bytes of all blobs */
	size_t layers_n;
	bool unpacked; /* in map's mode */
};

struct image_list {
	struct image_entry *v;
	size_t n;
};

void image_list_done(struct image_list *l);
AUTO_DEFINE(image_list, struct image_list, image_list_done);
/* All images, sorted by name, those without one last. What cannot be read is listed with what its
 * entry says. */
int image_list(struct store *st, const struct idmap *map, struct image_list *out_list,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);

/* Main of the hidden subcommand "unpack": one layer or archive, filtered, in a throw-away user
 * namespace. Descriptors and job come from oci/unpack.c. Exit status. */
int unpack_main(int argc, char **argv);
/* The syscall filter of that process (SECFILTER_UNPACK), set by whoever knows it before
 * unpack_main, which refuses to work without. Borrowed for the life of the process. */
void unpack_set_filter(const struct sock_filter *insns, size_t n) NONNULL(1);

#endif
