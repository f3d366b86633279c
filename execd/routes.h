/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * routes - the table of the execution API, and the handlers that it names.
 */
#ifndef OSBX_EXECD_ROUTES_H
#define OSBX_EXECD_ROUTES_H

#include <stddef.h>

#include <osbx/http.h>

extern const struct http_route routes[];
extern const size_t routes_n;

/* metrics_api.c */
void metrics_get(struct http_req *rq) NONNULL(1);
void metrics_watch(struct http_req *rq) NONNULL(1);
/* proxy_api.c */
void proxy_pass(struct http_req *rq) NONNULL(1);
void proxy_without_port(struct http_req *rq) NONNULL(1);
/* pty_api.c */
void pty_create(struct http_req *rq) NONNULL(1);
void pty_get(struct http_req *rq) NONNULL(1);
void pty_delete(struct http_req *rq) NONNULL(1);
void pty_attach(struct http_req *rq) NONNULL(1);

#endif
