/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auth - who may ask, and how often.
 */
#ifndef OSBX_API_AUTH_H
#define OSBX_API_AUTH_H

#include <stdbool.h>

#include <osbx/compiler.h>
#include <osbx/http.h>

#include "api_internal.h"

/* Tags of listeners. */
#define AUTH_LISTENER_UNIX 1U
#define AUTH_LISTENER_TCP  2U

/* http_opts.admit. */
bool auth_admit(struct http_req *rq) NONNULL(1);
/* May the key of this request create one more? False: answered. */
bool auth_rate(struct http_req *rq) NONNULL(1);

/* The key that a request shows, NULL: none, or one that is not known. */
const struct api_key *auth_key(const struct http_req *rq) NONNULL(1) MUST_CHECK;

#endif
