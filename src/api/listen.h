/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listen - sockets that the server answers on.
 */
#ifndef OSBX_API_LISTEN_H
#define OSBX_API_LISTEN_H

#include <osbx/compiler.h>
#include <osbx/error.h>

#include "api_internal.h"

/* Those of a socket unit, those that were asked for, or the default one. */
int listeners_start(struct api *api, struct error *e) MUST_CHECK NONNULL(1, 2);

#endif
