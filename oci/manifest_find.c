/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what a name stands for to the manifest of one platform: indexes are searched breadth first,
 * as deep as LIMIT_INDEX_DEPTH, and what is neither index nor manifest, is for another platform or
 * describes an image (attestations) is passed over.
 */
#include <assert.h>

#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "layout.h"

#define INDEXES_MAX   32 /* read for one image */
#define PLATFORMS_MAX 160

/* An index that is still to be read. */
struct pending {
	struct descriptor d;
	size_t depth;
	size_t candidate; /* where it was found */
};

struct search {
	const struct store *st;
	const struct blob_source *src;
	const struct platform_wish *wish;
	struct pending queue[INDEXES_MAX];
	size_t queue_n;
	struct descriptor best;
	unsigned int best_score;
	size_t best_candidate;
	bool best_is_nested;
	bool has_schema1;
	struct buf seen; /* platforms that do not suit */
};

static void search_done(struct search *s)
{
	for (size_t i = 0; i < s->queue_n; i++) {
		descriptor_done(&s->queue[i].d);
	}
	descriptor_done(&s->best);
	buf_done(&s->seen);
}
AUTO_DEFINE(search, struct search, search_done);

void found_done(struct found *f)
{
	if (!f) {
		return;
	}
	descriptor_done(&f->manifest);
	descriptor_done(&f->index);
	buf_done(&f->index_text);
}

static bool is_passed_over(const struct descriptor *d)
{
	return d->annotations.reference_type || d->artifact_type;
}

static void platform_seen(struct search *s, const struct platform *p)
{
	autofree char *text = platform_text(p->os, p->architecture, p->variant);

	/* A list for people: what does not fit is left out. */
	if (buf_appendf(&s->seen, "%s%s", s->seen.n ? ", " : "", text) < 0) {
		return;
	}
}

static int index_push(struct search *s, const struct descriptor *d, size_t depth, size_t candidate,
		struct error *e)
{
	if (depth > LIMIT_INDEX_DEPTH) {
		return error_set(e, ERRC_LIMIT, "indexes are nested deeper than %d",
				LIMIT_INDEX_DEPTH);
	}
	if (s->queue_n == INDEXES_MAX) {
		return error_set(e, ERRC_LIMIT, "more than %d indexes", INDEXES_MAX);
	}
	s->queue[s->queue_n] = (struct pending){ .depth = depth, .candidate = candidate };
	descriptor_copy(d, &s->queue[s->queue_n].d);
	s->queue_n++;
	return 0;
}

static void manifest_weigh(
		struct search *s, const struct descriptor *d, size_t depth, size_t candidate)
{
	unsigned int score = platform_score(s->wish, &d->platform);

	if (score == 0) {
		platform_seen(s, &d->platform);
	}
	if (score > s->best_score) {
		descriptor_done(&s->best);
		descriptor_copy(d, &s->best);
		s->best_score = score;
		s->best_candidate = candidate;
		s->best_is_nested = depth > 0;
	}
}

static int entry_look(struct search *s, const struct descriptor *d, size_t depth, size_t candidate,
		struct error *e)
{
	enum media_kind kind = media_find(d->media_type, NULL);

	if (is_passed_over(d)) {
		return 0;
	}
	if (kind == MEDIA_MANIFEST) {
		manifest_weigh(s, d, depth, candidate);
	} else if (kind == MEDIA_SCHEMA1) {
		s->has_schema1 = true;
	} else if (kind == MEDIA_INDEX && platform_score(s->wish, &d->platform) > 0) {
		return index_push(s, d, depth + 1, candidate, e);
	}
	return 0;
}

static int index_search(struct search *s, size_t at, struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(LIMIT_MANIFEST_BYTES);
	AUTO(descriptors) struct descriptors entries = DESCRIPTORS_INIT;
	const struct pending *p = &s->queue[at];
	bool stored = false;

	if (blob_read(s->st, s->src, &p->d, &text, &stored, e) < 0) {
		return -1;
	}
	if (index_parse(buf_span(&text), p->d.media_type, &entries, e) < 0) {
		return error_wrap(e, "index %s", p->d.digest.text);
	}
	for (size_t i = 0; i < entries.n; i++) {
		if (entry_look(s, &entries.v[i], p->depth, p->candidate, e) < 0) {
			return error_wrap(e, "index %s", p->d.digest.text);
		}
	}
	return 0;
}

static int nothing_found(const struct search *s, struct error *e)
{
	autofree char *wanted = platform_text(s->wish->os, s->wish->architecture, s->wish->variant);

	if (s->has_schema1) {
		return schema1_refuse(e);
	}
	error_set(e, ERRC_UNSUPPORTED, "it has no image for %s%s%s", wanted,
			s->seen.n ? ", but for " : "", s->seen.n ? s->seen.p : "");
	return s->seen.n ? error_hint(e, "choose one with --platform") : -1;
}

static int found_fill(struct search *s, const struct descriptors *candidates,
		struct found *out_found, struct error *e)
{
	struct found f = FOUND_INIT;

	if (s->best_is_nested) {
		const struct descriptor *index = &candidates->v[s->best_candidate];

		f.index_stored = store_has_blob(s->st, &index->digest, index->size);
		if (!f.index_stored && blob_read(s->st, s->src, index, &f.index_text,
						       &f.index_stored, e) < 0) {
			found_done(&f);
			return -1;
		}
		descriptor_copy(index, &f.index);
	}
	f.manifest = s->best;
	s->best = (struct descriptor){ .size = 0 };
	*out_found = f;
	return 0;
}

int manifest_find(const struct store *st, const struct blob_source *src,
		const struct descriptors *candidates, const struct platform_wish *wish,
		struct found *out_found, struct error *e)
{
	AUTO(search)
	struct search s = {
		.st = st,
		.src = src,
		.wish = wish,
		.seen = BUF_INIT(PLATFORMS_MAX),
	};

	for (size_t i = 0; i < candidates->n; i++) {
		if (entry_look(&s, &candidates->v[i], 0, i, e) < 0) {
			return -1;
		}
	}
	for (size_t at = 0; at < s.queue_n; at++) {
		if (index_search(&s, at, e) < 0) {
			return -1;
		}
	}
	return s.best_score > 0 ? found_fill(&s, candidates, out_found, e) : nothing_found(&s, e);
}
