/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_internal - what the two halves of @host share: the skeleton and the mounts over it.
 */
#ifndef OSBX_ENGINE_HOST_INTERNAL_H
#define OSBX_ENGINE_HOST_INTERNAL_H

#include <stdbool.h>

#include <osbx/compiler.h>

#define HOST_ROOTS_N 6

/* Names in / that are links into /usr, or directories of their own on older systems. */
extern const char *const host_roots[HOST_ROOTS_N];

/* Does @host show this entry of /etc? */
bool host_wants_etc(const char *name) NONNULL(1);
/* Call fn for each entry of /etc that @host may show, as a path beneath /etc; ends when it gives
 * something else than 0. That, or -errno. */
int host_each_etc(int (*fn)(void *ctx, const char *name), void *ctx) NONNULL(1) MUST_CHECK;

#endif
