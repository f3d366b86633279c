/* SPDX-License-Identifier: Apache-2.0 */
/*
 * userns - work in a user namespace of the store's id mode.
 */
#ifndef OSBX_OCI_USERNS_H
#define OSBX_OCI_USERNS_H

#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/idmap.h>

/* Become root of the namespace, with all its capabilities and no groups. Clears the parent-death
 * signal. 0 or -errno. */
int userns_enter(int userns_fd, const struct idmap *map) MUST_CHECK NONNULL(2);
/* Run fn, which returns 0 or -errno, in a child that is root of a namespace with map. What it
 * returned, or -errno when there is no such child. */
int userns_run(const struct idmap *map, int (*fn)(void *ctx), void *ctx) MUST_CHECK NONNULL(1, 2);

#endif
