/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_internal - what the files of oci share about the store: blobs, staging, the index.
 */
#ifndef OSBX_OCI_STORE_INTERNAL_H
#define OSBX_OCI_STORE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include <osbx/buf.h>
#include <osbx/digest.h>
#include <osbx/error.h>
#include <osbx/json.h>
#include <osbx/store.h>
#include <osbx/strv.h>

#define STAGING_NAME_LEN 40

/* A directory of work in progress: PARENT/PREFIX+random, with a file "lock" that is held until
 * staging_done. */
struct staging {
	int parent_fd; /* borrowed */
	int dir_fd;
	int lock_fd;
	char name[STAGING_NAME_LEN + 1];
};
#define STAGING_INIT                                            \
	{                                                       \
		.parent_fd = -1, .dir_fd = -1, .lock_fd = -1 \
	}

/* Make one below parent_fd, mode 0700. prefix is ".staging-" or "". 0 or -errno. */
int staging_open(int parent_fd, const char *prefix, struct staging *out_staging) MUST_CHECK
		NONNULL(2, 3);
/* Remove it with plain permissions (what a namespace left behind is for store_remove_tree by name)
 * and drop the lock. */
void staging_done(struct staging *s);
AUTO_DEFINE(staging, struct staging, staging_done);

#endif
