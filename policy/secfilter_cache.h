/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: policy
 * secfilter_cache - compiled profiles as files of a directory of ours.
 *
 * A file is named by a hash of its key and begins with the key itself, which is compared byte for
 * byte: a collision costs a compilation, never the wrong filter.
 */
#ifndef OSBX_POLICY_SECFILTER_CACHE_H
#define OSBX_POLICY_SECFILTER_CACHE_H

#include <stdbool.h>

#include <osbx/compiler.h>
#include <osbx/secfilter.h>
#include <osbx/span.h>

/* The program of this key, if dir_fd has it; owned by the caller. */
bool cache_load(int dir_fd, struct span key, struct secfilter *out_f) NONNULL(3) MUST_CHECK;
/* Keep a program. A cache that cannot be written is no failure. */
void cache_save(int dir_fd, struct span key, const struct secfilter *f) NONNULL(3);

#endif
