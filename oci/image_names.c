/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/image.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "store_internal.h"

static int named_check(const struct ref *ref, struct error *e)
{
	if (ref->transport != REF_NAME) {
		return error_set(e, ERRC_INVALID,
				"only images of the store have names: load it "
				"first");
	}
	return 0;
}

struct tagging {
	const struct ref *from;
	const char *name;
};

static int tag_edit(struct descriptors *entries, void *ctx, struct error *e)
{
	const struct tagging *t = ctx;
	AUTO(descriptor) struct descriptor d = { .size = 0 };
	size_t i = 0;

	if (entries_find(entries, t->from, &i, e) < 0) {
		return -1;
	}
	descriptor_copy(&entries->v[i], &d);
	entries_add(entries, &d, t->name);
	return 0;
}

int image_tag(struct store *st, const struct ref *from, const struct ref *to, struct error *e)
{
	autofree char *name = ref_full_name(to);
	struct tagging t = { .from = from, .name = name };

	if (named_check(from, e) < 0 || named_check(to, e) < 0) {
		return -1;
	}
	if (!name || !to->tag || to->digest.text[0]) {
		return error_set(e, ERRC_INVALID, "a new name is NAME[:TAG], without a digest");
	}
	return store_index_edit(st, tag_edit, &t, e);
}

struct removal {
	const struct ref *ref;
	bool force;
	struct strv removed;
};

static int removed_add(struct removal *r, const struct descriptor *d, struct error *e)
{
	const char *name = d->annotations.ref_name;

	return strv_add(&r->removed, name ? name : d->digest.text) < 0
			       ? error_set(e, ERRC_LIMIT, "too many names")
			       : 0;
}

static int remove_edit(struct descriptors *entries, void *ctx, struct error *e)
{
	struct removal *r = ctx;
	struct digest digest = { .text = "" };
	size_t found = 0;

	if (entries_find(entries, r->ref, &found, e) < 0) {
		return -1;
	}
	/* Meant by its name, which alone goes then. */
	if (entry_is_meant(&entries->v[found], r->ref)) {
		if (removed_add(r, &entries->v[found], e) < 0) {
			return -1;
		}
		entries_remove(entries, found);
		return 0;
	}
	digest = entries->v[found].digest;
	if (!r->force && entries_count(entries, &digest) > 1) {
		error_set(e, ERRC_CONFLICT, "image %s has several names", digest.text);
		return error_hint(e, "remove them one by one, or all with --force");
	}
	for (size_t i = entries->n; i > 0; i--) {
		if (!digest_eq(&entries->v[i - 1].digest, &digest)) {
			continue;
		}
		if (removed_add(r, &entries->v[i - 1], e) < 0) {
			return -1;
		}
		entries_remove(entries, i - 1);
	}
	return 0;
}

int image_remove(struct store *st, const struct ref *ref, bool force, struct strv *out_removed,
		struct error *e)
{
	AUTO(strv) struct strv removed = STRV_INIT;
	struct removal r = { .ref = ref, .force = force };
	int done = 0;

	if (named_check(ref, e) < 0) {
		return -1;
	}
	done = store_index_edit(st, remove_edit, &r, e);
	removed = r.removed;
	if (done < 0) {
		return -1;
	}
	return strv_add_all(out_removed, removed.v) < 0 ? error_set(e, ERRC_LIMIT, "too many names")
							: 0;
}
