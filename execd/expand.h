/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * expand - "~", "$NAME" and "${NAME}" in a path of a client.
 *
 * "~" alone or before a slash, at the beginning only, is HOME. A '$' without a name behind it is
 * itself. Values are put in as they are, not expanded again.
 */
#ifndef OSBX_EXECD_EXPAND_H
#define OSBX_EXECD_EXPAND_H

#include <osbx/buf.h>
#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/span.h>

/* Value of a variable, borrowed, or NULL when it is not defined. */
typedef const char *(*expand_lookup_fn)(void *ctx, const char *name);

/* Append the expanded path. ERRC_INVALID (a variable that is not defined, "${" without a name and
 * '}', a NUL), ERRC_LIMIT (the maximum of *out); *out is as it was then. */
int expand_path(struct span path, expand_lookup_fn lookup, void *ctx, struct buf *out,
		struct error *e) MUST_CHECK NONNULL(2, 4, 5);

#endif
