/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * lock - flock(2) on a file of ours. A lock ends with its last descriptor, also by kill -9.
 */
#ifndef OSBX_LOCK_H
#define OSBX_LOCK_H

#include <stdbool.h>

#include <osbx/compiler.h>

enum lock_mode {
	LOCK_MODE_SHARED,
	LOCK_MODE_EXCLUSIVE,
};

/* Open (create 0600) name and lock it, waiting as long as it takes. fd or -errno. */
int lock_open_at(int dir_fd, const char *name, enum lock_mode mode) NONNULL(2) MUST_CHECK;
/* The same without waiting: -EWOULDBLOCK when another holds it. fd or -errno. */
int lock_try_at(int dir_fd, const char *name, enum lock_mode mode) NONNULL(2) MUST_CHECK;

#endif
