/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>

#include <osbx/fd.h>
#include <osbx/json.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "gc_mark.h"

/* Documents to look into; each is looked into once. */
struct queue {
	struct digest *v;
	size_t n;
	size_t room;
};

static void queue_done(struct queue *q)
{
	free(q->v);
}
AUTO_DEFINE(queue, struct queue, queue_done);

struct marker {
	const struct store *st;
	struct gc_marks *marks;
	struct queue *queue;
};

void gc_marks_done(struct gc_marks *m)
{
	if (!m) {
		return;
	}
	digest_set_done(&m->blobs);
	digest_set_done(&m->chains);
	digest_set_done(&m->indexed);
}

static void document_push(struct marker *m, const struct digest *d)
{
	struct queue *q = m->queue;

	if (!digest_set_add(&m->marks->blobs, d)) {
		return;
	}
	if (q->n == q->room) {
		size_t room = q->room ? 2 * q->room : 64;

		q->v = mem_resize(q->v, q->room, room, sizeof(*q->v));
		q->room = room;
	}
	q->v[q->n++] = *d;
}

static int digest_of_member(const struct json *descriptor, struct digest *out_d)
{
	const char *text = json_string(json_get(descriptor, "digest"));

	return text ? digest_parse(text, out_d) : -EINVAL;
}

/* Read a blob of the store as JSON. 0 with NULL when it is not there or is none. */
static int blob_json(const struct store *st, const struct digest *d, size_t max,
		struct json **out_root, struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(max);
	struct error ignored = ERROR_INIT;
	autoclose int fd = store_blob_open(st, d);
	int r = fd < 0 ? fd : fd_read_all(fd, &text);

	if (r == -ENOENT || r == -EMSGSIZE) {
		return 0;
	}
	if (r < 0) {
		return error_sys(e, -r, "read blob %s", d->text);
	}
	*out_root = json_parse(buf_span(&text), &ignored);
	return 0;
}

static int config_chains(const struct store *st, const struct digest *config,
		struct digest *out_chains, size_t n, struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(LIMIT_CONFIG_BYTES);
	AUTO(config_doc) struct config_doc doc = CONFIG_DOC_INIT;
	struct error ignored = ERROR_INIT;
	autoclose int fd = store_blob_open(st, config);
	int r = fd < 0 ? fd : fd_read_all(fd, &text);

	if (r == -ENOENT) {
		return 0;
	}
	if (r < 0) {
		return error_sys(e, -r, "read blob %s", config->text);
	}
	if (config_parse(buf_span(&text), &doc, &ignored) < 0 || doc.diffs_n != n) {
		return 0;
	}
	for (size_t i = 0; i < n; i++) {
		if (digest_chain(i > 0 ? &out_chains[i - 1] : NULL, &doc.diffs[i], &out_chains[i],
				    e) < 0) {
			return -1;
		}
	}
	return 0;
}

static int chains_mark(struct marker *m, const struct digest *manifest, const struct digest *config,
		size_t n, struct error *e)
{
	autofree struct digest *chains = mem_array(n, sizeof(*chains));

	if (store_chains_load(m->st, manifest, chains, n) < 0 &&
			config_chains(m->st, config, chains, n, e) < 0) {
		return -1;
	}
	for (size_t i = 0; i < n; i++) {
		if (chains[i].text[0]) {
			digest_set_add(&m->marks->chains, &chains[i]);
		}
	}
	return 0;
}

static int references_mark(struct marker *m, const struct digest *document, const struct json *root,
		struct error *e)
{
	struct digest config = { .text = "" };
	size_t layers_n = 0;

	json_for_each(entry, json_get(root, "manifests")) {
		struct digest d = { .text = "" };

		if (digest_of_member(entry, &d) == 0) {
			document_push(m, &d);
		}
	}
	json_for_each(entry, json_get(root, "layers")) {
		struct digest d = { .text = "" };

		layers_n++;
		if (digest_of_member(entry, &d) == 0) {
			digest_set_add(&m->marks->blobs, &d);
		}
	}
	if (digest_of_member(json_get(root, "config"), &config) < 0) {
		return 0;
	}
	digest_set_add(&m->marks->blobs, &config);
	return layers_n <= LIMIT_LAYERS ? chains_mark(m, document, &config, layers_n, e) : 0;
}

static int document_mark(struct marker *m, const struct digest *d, struct error *e)
{
	AUTO(json) struct json *root = NULL;

	if (blob_json(m->st, d, LIMIT_MANIFEST_BYTES, &root, e) < 0) {
		return -1;
	}
	if (root) {
		return references_mark(m, d, root, e);
	}
	/* Layers that are kept by their chain ids are no documents, nor is a blob that is gone. */
	if (digest_set_has(&m->marks->indexed, d) && store_has_any_blob(m->st, d)) {
		error_set(e, ERRC_INVALID, "manifest %s in the store is damaged", d->text);
		return error_hint(e, "remove the image: osbx rmi %s", d->text);
	}
	return 0;
}

bool gc_is_passing(const struct descriptor *d, const struct strv *keep)
{
	if (!d->annotations.passing || d->annotations.ref_name) {
		return false;
	}
	strv_for_each(keep, i) {
		if (str_eq(keep->v[i], d->digest.text)) {
			return false;
		}
	}
	return true;
}

static int roots_push(struct marker *m, const struct strv *keep, struct error *e)
{
	AUTO(descriptors) struct descriptors entries = DESCRIPTORS_INIT;
	struct digest d = { .text = "" };

	if (store_index_load(m->st, &entries, e) < 0) {
		return -1;
	}
	for (size_t i = 0; i < entries.n; i++) {
		const char *index = entries.v[i].annotations.index;

		if (gc_is_passing(&entries.v[i], keep)) {
			continue;
		}
		digest_set_add(&m->marks->indexed, &entries.v[i].digest);
		document_push(m, &entries.v[i].digest);
		/* Only the blob itself: the index's other images were not taken. */
		if (index && digest_parse(index, &d) == 0) {
			digest_set_add(&m->marks->blobs, &d);
		}
	}
	strv_for_each(keep, i) {
		if (digest_parse(keep->v[i], &d) < 0) {
			return error_set(e, ERRC_INTERNAL, "\"%s\" is no digest to keep",
					keep->v[i]);
		}
		document_push(m, &d);
		digest_set_add(&m->marks->chains, &d);
	}
	return 0;
}

int gc_mark(const struct store *st, const struct strv *keep, struct gc_marks *out_marks,
		struct error *e)
{
	AUTO(gc_marks) struct gc_marks marks = { .blobs = DIGEST_SET_INIT };
	AUTO(queue) struct queue queue = { .n = 0 };
	struct marker m = { .st = st, .marks = &marks, .queue = &queue };

	if (roots_push(&m, keep, e) < 0) {
		return -1;
	}
	for (size_t i = 0; i < queue.n; i++) {
		struct digest d = queue.v[i];

		if (document_mark(&m, &d, e) < 0) {
			return -1;
		}
	}
	*out_marks = marks;
	marks = (struct gc_marks){ .blobs = DIGEST_SET_INIT };
	return 0;
}
