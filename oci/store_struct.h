/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_struct - an open store, for the files that implement it.
 */
#ifndef OSBX_OCI_STORE_STRUCT_H
#define OSBX_OCI_STORE_STRUCT_H

#include <osbx/idmap.h>

struct store {
	char *root;
	int root_fd;
	int staging_fd;                  /* -1 until used */
	int layers_fd[IDMAP_MODE_COUNT]; /* the same */
};

#define STORE_INDEX_LOCK "index.lock"

#endif
