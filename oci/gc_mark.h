/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gc_mark - what images refer to.
 */
#ifndef OSBX_OCI_GC_MARK_H
#define OSBX_OCI_GC_MARK_H

#include <osbx/strv.h>

#include "digest_set.h"
#include "store_internal.h"

struct gc_marks {
	struct digest_set blobs;   /* in use; and what keep names, of which it does not say */
	struct digest_set chains;  /* the same: a chain id can be the digest of a plain blob */
	struct digest_set indexed; /* manifests that have an entry */
};

void gc_marks_done(struct gc_marks *m);
AUTO_DEFINE(gc_marks, struct gc_marks, gc_marks_done);
/* Is it an entry that only a run brought, and whose image no sandbox of keep uses? */
bool gc_is_passing(const struct descriptor *d, const struct strv *keep) NONNULL(1, 2);
/* Mark all that the entries of index.json and keep (manifest digests, chain ids) refer to. A
 * document of an entry that cannot be read is an error: it is not known what it needs. */
int gc_mark(const struct store *st, const struct strv *keep, struct gc_marks *out_marks,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);

#endif
