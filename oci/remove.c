/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include <osbx/file.h>
#include <osbx/store.h>

#include "userns.h"

struct removal {
	int dir_fd;
	const char *name;
};

static int remove_inside(void *ctx)
{
	const struct removal *r = ctx;

	return file_remove_tree_at(r->dir_fd, r->name);
}

int store_remove_tree(const struct idmap *map, int dir_fd, const char *name)
{
	int rc = file_remove_tree_at(dir_fd, name);

	/* Only an ordinary user's subordinate ids own what he may not remove himself. */
	if ((rc != -EACCES && rc != -EPERM) || map->mode != IDMAP_SUBID) {
		return rc;
	}
	return userns_run(map, remove_inside, &(struct removal){ .dir_fd = dir_fd, .name = name });
}
