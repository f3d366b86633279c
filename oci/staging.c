/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/id.h>
#include <osbx/lock.h>
#include <osbx/log.h>

#include "store_internal.h"

#define STAGING_LOCK         "lock"
#define STAGING_RANDOM_BYTES 8U

static int staging_make(const char *prefix, struct staging *s)
{
	char random[2 * STAGING_RANDOM_BYTES + 1];
	int n = 0;

	id_random_hex(random, STAGING_RANDOM_BYTES);
	n = snprintf(s->name, sizeof(s->name), "%s%s", prefix, random);
	assert(n > 0 && (size_t)n < sizeof(s->name));
	if (mkdirat(s->parent_fd, s->name, 0700) < 0) {
		s->parent_fd = -1; /* nothing of ours is there */
		return -errno;
	}
	s->dir_fd = fd_open_at(s->parent_fd, s->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (s->dir_fd < 0) {
		return s->dir_fd;
	}
	s->lock_fd = lock_open_at(s->dir_fd, STAGING_LOCK, LOCK_MODE_EXCLUSIVE);
	return s->lock_fd < 0 ? s->lock_fd : 0;
}

int staging_open(int parent_fd, const char *prefix, struct staging *out_staging)
{
	struct staging s = STAGING_INIT;
	int r = 0;

	s.parent_fd = parent_fd;
	r = staging_make(prefix, &s);
	if (r < 0) {
		staging_done(&s);
		return r;
	}
	*out_staging = s;
	return 0;
}

void staging_done(struct staging *s)
{
	if (!s) {
		return;
	}
	if (s->parent_fd >= 0 && file_remove_tree_at(s->parent_fd, s->name) < 0) {
		log_debug("staging %s is left to gc", s->name);
	}
	fd_close(&s->dir_fd);
	fd_close(&s->lock_fd);
	s->parent_fd = -1;
}

bool staging_is_dead(int parent_fd, const char *name)
{
	autoclose int dir = fd_open_at(parent_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	autoclose int lock = -1;

	if (dir < 0) {
		return false;
	}
	lock = lock_try_at(dir, STAGING_LOCK, LOCK_MODE_EXCLUSIVE);
	/* Without permission it belongs to ids of a namespace: its maker is gone before its lock.
	 */
	return lock != -EWOULDBLOCK;
}
