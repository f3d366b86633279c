/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Write images as an oci-archive: an OCI layout in a tar, each blob once. All blobs are found
 * before the first byte is written.
 */
#include <errno.h>
#include <stdio.h>

#include <osbx/image.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "digest_set.h"
#include "import.h"
#include "ustar.h"

struct saved_blob {
	struct digest digest;
	uint64_t size;
};

struct save {
	struct store *st;
	struct descriptors index; /* of the archive */
	struct digest_set seen;
	struct saved_blob *blobs;
	size_t blobs_n;
};

static void save_done(struct save *s)
{
	descriptors_done(&s->index);
	digest_set_done(&s->seen);
	free(s->blobs);
}
AUTO_DEFINE(save, struct save, save_done);

static int blob_collect(struct save *s, const struct digest *d, uint64_t size, struct error *e)
{
	if (!digest_set_add(&s->seen, d)) {
		return 0;
	}
	if (!store_has_blob(s->st, d, size)) {
		error_set(e, ERRC_NOT_FOUND, "blob %s is missing in the store", d->text);
		return error_hint(e, "load the image again");
	}
	s->blobs = mem_resize(s->blobs, s->blobs_n, s->blobs_n + 1, sizeof(*s->blobs));
	s->blobs[s->blobs_n++] = (struct saved_blob){ .digest = *d, .size = size };
	return 0;
}

static int blobs_collect(struct save *s, const struct descriptor *d, struct error *e)
{
	static const struct blob_source none = BLOB_SOURCE_NONE;
	AUTO(buf) struct buf text = BUF_INIT(LIMIT_MANIFEST_BYTES);
	AUTO(manifest) struct manifest m = MANIFEST_INIT;
	bool stored = false;

	if (blob_read(s->st, &none, d, &text, &stored, e) < 0 ||
			manifest_parse(buf_span(&text), d->media_type, &m, e) < 0 ||
			blob_collect(s, &d->digest, d->size, e) < 0 ||
			blob_collect(s, &m.config.digest, m.config.size, e) < 0) {
		return -1;
	}
	for (size_t i = 0; i < m.layers.n; i++) {
		if (blob_collect(s, &m.layers.v[i].digest, m.layers.v[i].size, e) < 0) {
			return -1;
		}
	}
	return 0;
}

static int image_collect(struct save *s, const struct descriptors *entries, const struct ref *ref,
		struct error *e)
{
	AUTO(descriptor) struct descriptor d = { .size = 0 };
	autofree char *full = ref_full_name(ref);
	size_t i = 0;

	if (ref->transport != REF_NAME) {
		return error_set(e, ERRC_INVALID, "only images of the store are saved");
	}
	if (entries_find(entries, ref, &i, e) < 0) {
		return -1;
	}
	descriptor_copy(&entries->v[i], &d);
	/* The index it came from is not part of the archive. */
	free(TAKE_PTR(d.annotations.index));
	free(TAKE_PTR(d.annotations.passing));
	if (blobs_collect(s, &d, e) < 0) {
		return error_wrap(e, "image %s", full ? full : d.digest.text);
	}
	/* By digest: the image without the names it has here. */
	entries_add(&s->index, &d, ref->digest.text[0] ? NULL : d.annotations.ref_name);
	return 0;
}

static int blob_save(const struct save *s, const struct saved_blob *b, int out_fd)
{
	char name[sizeof(STORE_BLOBS) + 1 + DIGEST_HEX_LEN];
	autoclose int fd = store_blob_open(s->st, &b->digest);

	(void)snprintf(name, sizeof(name), STORE_BLOBS "/%s", digest_hex(&b->digest));
	return fd < 0 ? fd : ustar_file(out_fd, name, fd, b->size);
}

static int archive_write(const struct save *s, int out_fd)
{
	AUTO(buf) struct buf index = BUF_INIT(LIMIT_INDEX_BYTES);
	int r = index_write(&s->index, &index);

	if (r == 0) {
		r = ustar_bytes(out_fd, "oci-layout", span_of(store_layout_text));
	}
	if (r == 0) {
		r = ustar_bytes(out_fd, STORE_INDEX, buf_span(&index));
	}
	if (r == 0) {
		r = ustar_dir(out_fd, "blobs/");
	}
	if (r == 0) {
		r = ustar_dir(out_fd, STORE_BLOBS "/");
	}
	for (size_t i = 0; i < s->blobs_n && r == 0; i++) {
		r = blob_save(s, &s->blobs[i], out_fd);
	}
	return r < 0 ? r : ustar_end(out_fd);
}

int image_save(struct store *st, const struct ref *refs, size_t refs_n, int out_fd, struct error *e)
{
	AUTO(save) struct save s = { .st = st };
	AUTO(descriptors) struct descriptors entries = DESCRIPTORS_INIT;
	int r = 0;

	if (store_index_load(st, &entries, e) < 0) {
		return -1;
	}
	for (size_t i = 0; i < refs_n; i++) {
		if (image_collect(&s, &entries, &refs[i], e) < 0) {
			return -1;
		}
	}
	r = archive_write(&s, out_fd);
	return r < 0 ? error_sys(e, -r, "write the archive") : 0;
}
