/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of the store: index.json of the layout, and the chain ids kept beside it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <osbx/file.h>
#include <osbx/json.h>
#include <osbx/limits.h>
#include <osbx/lock.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "store_internal.h"
#include "store_struct.h"

/* Leading digits of a digest that are taken for one; Docker prints 12. */
#define PREFIX_DIGITS_MIN 12

void entries_remove(struct descriptors *entries, size_t i)
{
	descriptor_done(&entries->v[i]);
	memmove(&entries->v[i], &entries->v[i + 1], (entries->n - i - 1) * sizeof(*entries->v));
	entries->n--;
}

size_t entries_count(const struct descriptors *entries, const struct digest *manifest)
{
	size_t n = 0;

	for (size_t i = 0; i < entries->n; i++) {
		n += digest_eq(&entries->v[i].digest, manifest) ? 1 : 0;
	}
	return n;
}

int store_index_load(const struct store *st, struct descriptors *out_entries, struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(LIMIT_INDEX_BYTES);
	AUTO(descriptors) struct descriptors entries = DESCRIPTORS_INIT;
	int r = file_read_at(st->root_fd, STORE_INDEX, &text);

	if (r < 0) {
		return error_sys(e, -r, "read %s/%s", st->root, STORE_INDEX);
	}
	if (index_parse(buf_span(&text), NULL, &entries, e) < 0) {
		return error_wrap(e, "%s/%s", st->root, STORE_INDEX);
	}
	/* Other tools may have written what we have no name for. */
	for (size_t i = entries.n; i > 0; i--) {
		if (!entries.v[i - 1].digest.text[0]) {
			entries_remove(&entries, i - 1);
		}
	}
	*out_entries = entries;
	entries = (struct descriptors)DESCRIPTORS_INIT;
	return 0;
}

static void word_write(struct json_writer *w, const char *name, const char *value)
{
	if (value) {
		json_add_string(w, name, value);
	}
}

static void platform_write(struct json_writer *w, const struct platform *p)
{
	if (!p->os && !p->architecture) {
		return;
	}
	json_object_begin(w, "platform");
	word_write(w, "architecture", p->architecture);
	word_write(w, "os", p->os);
	word_write(w, "variant", p->variant);
	json_object_end(w);
}

static void annotations_write(struct json_writer *w, const struct annotations *a)
{
	if (!a->ref_name && !a->containerd && !a->index && !a->passing) {
		return;
	}
	json_object_begin(w, "annotations");
	word_write(w, ANNOTATION_CONTAINERD, a->containerd);
	word_write(w, ANNOTATION_REF_NAME, a->ref_name);
	word_write(w, ANNOTATION_INDEX, a->index);
	word_write(w, ANNOTATION_PASSING, a->passing);
	json_object_end(w);
}

int index_write(const struct descriptors *entries, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);

	json_object_begin(&w, NULL);
	json_add_u64(&w, "schemaVersion", 2);
	json_add_string(&w, "mediaType", MEDIA_OCI_INDEX);
	json_array_begin(&w, "manifests");
	for (size_t i = 0; i < entries->n; i++) {
		const struct descriptor *d = &entries->v[i];

		json_object_begin(&w, NULL);
		json_add_string(&w, "mediaType", d->media_type);
		json_add_string(&w, "digest", d->digest.text);
		json_add_u64(&w, "size", d->size);
		platform_write(&w, &d->platform);
		annotations_write(&w, &d->annotations);
		json_object_end(&w);
	}
	json_array_end(&w);
	json_object_end(&w);
	return w.failed ? -EMSGSIZE : 0;
}

static int digest_compare(const void *a, const void *b)
{
	return strcmp(((const struct digest *)a)->text, ((const struct digest *)b)->text);
}

/* Sorted digests of all entries. Caller frees. */
static struct digest *digests_of(const struct descriptors *entries)
{
	struct digest *v = mem_array(entries->n, sizeof(*v));

	for (size_t i = 0; i < entries->n; i++) {
		v[i] = entries->v[i].digest;
	}
	qsort(v, entries->n, sizeof(*v), digest_compare);
	return v;
}

/* The record of chain ids says that its image has an entry. */
static void dropped_forget(struct store *st, const struct digest *before, size_t before_n,
		const struct descriptors *entries)
{
	autofree struct digest *after = digests_of(entries);

	for (size_t i = 0; i < before_n; i++) {
		if (!bsearch(&before[i], after, entries->n, sizeof(*after), digest_compare)) {
			store_chains_remove(st, &before[i]);
		}
	}
}

int store_index_edit(struct store *st,
		int (*edit)(struct descriptors *entries, void *ctx, struct error *e), void *ctx,
		struct error *e)
{
	AUTO(descriptors) struct descriptors entries = DESCRIPTORS_INIT;
	AUTO(buf) struct buf text = BUF_INIT(LIMIT_INDEX_BYTES);
	autofree struct digest *before = NULL;
	size_t before_n = 0;
	autoclose int lock = lock_open_at(st->root_fd, STORE_INDEX_LOCK, LOCK_MODE_EXCLUSIVE);
	int r = 0;

	if (lock < 0) {
		return error_sys(e, -lock, "lock %s/%s", st->root, STORE_INDEX_LOCK);
	}
	if (store_index_load(st, &entries, e) < 0) {
		return -1;
	}
	before = digests_of(&entries);
	before_n = entries.n;
	if (edit(&entries, ctx, e) < 0) {
		return -1;
	}
	if (index_write(&entries, &text) < 0) {
		error_set(e, ERRC_LIMIT, "%s/%s would be larger than %u bytes", st->root,
				STORE_INDEX, LIMIT_INDEX_BYTES);
		return error_hint(e, "remove images: osbx rmi");
	}
	dropped_forget(st, before, before_n, &entries);
	r = file_write_at(st->root_fd, STORE_INDEX, buf_span(&text), true);
	return r < 0 ? error_sys(e, -r, "write %s/%s", st->root, STORE_INDEX) : 0;
}

/* Would a new entry of this name take the place of the entry d? */
static bool is_replaced(const struct descriptor *d, const struct digest *manifest, const char *name)
{
	return d->annotations.ref_name ? str_eq(d->annotations.ref_name, name)
				       : digest_eq(&d->digest, manifest);
}

void entries_add(struct descriptors *entries, const struct descriptor *d, const char *name)
{
	struct descriptor *added = NULL;

	if (!name && entries_count(entries, &d->digest) > 0) {
		return;
	}
	for (size_t i = entries->n; name && i > 0; i--) {
		if (is_replaced(&entries->v[i - 1], &d->digest, name)) {
			entries_remove(entries, i - 1);
		}
	}
	entries->v = mem_resize(entries->v, entries->n, entries->n + 1, sizeof(*entries->v));
	added = &entries->v[entries->n++];
	descriptor_copy(d, added);
	free(added->annotations.ref_name);
	added->annotations.ref_name = mem_strdup(name);
	free(added->annotations.containerd);
	added->annotations.containerd = mem_strdup(name);
	if (name) {
		free(TAKE_PTR(added->annotations.passing));
	}
}

/* The digits that a name might be meant as, or NULL. */
static const char *prefix_of(const struct ref *ref)
{
	const char *digits = str_after(ref->repository, "library/");

	if (!digits || !ref->tag || !str_eq(ref->tag, "latest") ||
			strlen(digits) < PREFIX_DIGITS_MIN ||
			!str_is_made_of(digits, "0123456789abcdef")) {
		return NULL;
	}
	return digits;
}

/* What a short name stands for besides the Hub's: an image made here, or NULL. Caller frees. */
static char *local_name(const struct ref *ref)
{
	const char *official = ref->no_namespace ? str_after(ref->repository, "library/") : NULL;

	return ref->no_domain && ref->tag
			       ? mem_printf("localhost/%s:%s",
						 official ? official : ref->repository, ref->tag)
			       : NULL;
}

bool entry_is_meant(const struct descriptor *d, const struct ref *ref)
{
	const char *name = d->annotations.ref_name;
	autofree char *full = ref->digest.text[0] ? NULL : ref_full_name(ref);
	autofree char *local = full ? local_name(ref) : NULL;

	return name && ((full && str_eq(name, full)) || (local && str_eq(name, local)));
}

/* The finders return the index of an entry, or entries->n. */
static size_t entry_of_prefix(
		const struct descriptors *entries, const char *digits, struct error *e)
{
	size_t found = entries->n;

	for (size_t i = 0; i < entries->n; i++) {
		const struct digest *d = &entries->v[i].digest;

		if (!str_after(digest_hex(d), digits)) {
			continue;
		}
		if (found < entries->n && !digest_eq(&entries->v[found].digest, d)) {
			error_set(e, ERRC_CONFLICT, "several images begin with %s", digits);
			return entries->n;
		}
		found = i;
	}
	return found;
}

static size_t entry_of_digest(const struct descriptors *entries, const struct digest *digest)
{
	for (size_t i = 0; i < entries->n; i++) {
		const struct descriptor *d = &entries->v[i];

		if (digest_eq(&d->digest, digest) ||
				(d->annotations.index &&
						str_eq(d->annotations.index, digest->text))) {
			return i;
		}
	}
	return entries->n;
}

static size_t entry_of_full_name(const struct descriptors *entries, const char *full)
{
	size_t i = 0;

	for (; full && i < entries->n; i++) {
		const char *name = entries->v[i].annotations.ref_name;

		if (name && str_eq(name, full)) {
			break;
		}
	}
	return full ? i : entries->n;
}

static size_t entry_of_name(
		const struct descriptors *entries, const struct ref *ref, struct error *e)
{
	autofree char *full = ref_full_name(ref);
	autofree char *local = full ? local_name(ref) : NULL;
	const char *digits = prefix_of(ref);
	size_t i = entry_of_full_name(entries, full);

	if (i == entries->n) {
		i = entry_of_full_name(entries, local);
	}
	if (i < entries->n) {
		return i;
	}
	return digits ? entry_of_prefix(entries, digits, e) : entries->n;
}

int entries_find(const struct descriptors *entries, const struct ref *ref, size_t *out_i,
		struct error *e)
{
	size_t found = ref->digest.text[0] ? entry_of_digest(entries, &ref->digest)
					   : entry_of_name(entries, ref, e);

	if (e->code != ERRC_OK) {
		return -1;
	}
	if (found == entries->n) {
		autofree char *full = ref_full_name(ref);
		autofree char *name = full ? ref_familiar(full) : mem_strdup(ref->digest.text);

		error_set(e, ERRC_NOT_FOUND, "image %s is not in the store", name);
		return error_hint(e,
				"osbx images lists what is there; osbx pull fetches it; osbx load "
				"adds from oci:DIR, oci-archive:FILE or docker-archive:FILE");
	}
	*out_i = found;
	return 0;
}

struct chains_path {
	char text[sizeof(STORE_CHAINS) + 1 + DIGEST_HEX_LEN];
};

static struct chains_path chains_path(const struct digest *manifest)
{
	struct chains_path p = { .text = STORE_CHAINS "/" };

	memcpy(p.text + sizeof(STORE_CHAINS), digest_hex(manifest), DIGEST_HEX_LEN);
	return p;
}

int store_chains_load(const struct store *st, const struct digest *manifest,
		struct digest *out_chains, size_t n)
{
	AUTO(buf) struct buf text = BUF_INIT((size_t)LIMIT_LAYERS * (DIGEST_TEXT_LEN + 1));
	int r = file_read_at(st->root_fd, chains_path(manifest).text, &text);

	if (r < 0) {
		return r;
	}
	/* Written without fsync: after a crash it may be empty or cut. */
	if (text.n != n * (DIGEST_TEXT_LEN + 1)) {
		return -EINVAL;
	}
	for (size_t i = 0; i < n; i++) {
		char *line = text.p + i * (DIGEST_TEXT_LEN + 1);

		if (line[DIGEST_TEXT_LEN] != '\n') {
			return -EINVAL;
		}
		line[DIGEST_TEXT_LEN] = '\0';
		if (digest_parse(line, &out_chains[i]) < 0) {
			return -EINVAL;
		}
	}
	return 0;
}

int store_chains_save(struct store *st, const struct digest *manifest, const struct digest *chains,
		size_t n)
{
	AUTO(buf) struct buf text = BUF_INIT((size_t)LIMIT_LAYERS * (DIGEST_TEXT_LEN + 1));

	for (size_t i = 0; i < n; i++) {
		int r = buf_appendf(&text, "%s\n", chains[i].text);

		if (r < 0) {
			return r;
		}
	}
	return file_write_at(st->root_fd, chains_path(manifest).text, buf_span(&text), false);
}

void store_chains_remove(struct store *st, const struct digest *manifest)
{
	(void)unlinkat(st->root_fd, chains_path(manifest).text, 0);
}
