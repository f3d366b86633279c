/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * sessions - shells whose exported variables and directory outlive each run.
 */
#ifndef OSBX_EXECD_SESSIONS_H
#define OSBX_EXECD_SESSIONS_H

#include <osbx/compiler.h>
#include <osbx/http.h>

/* Handlers of the route table. */
void session_post(struct http_req *rq) NONNULL(1);   /* POST /session */
void session_run(struct http_req *rq) NONNULL(1);    /* POST /session/{id}/run */
void session_delete(struct http_req *rq) NONNULL(1); /* DELETE /session/{id} */

#endif
