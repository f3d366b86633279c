/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handlers - what the rows of the route table (routes.c) call.
 */
#ifndef OSBX_API_HANDLERS_H
#define OSBX_API_HANDLERS_H

#include <osbx/compiler.h>
#include <osbx/http.h>

/* sandboxes.c */
void sandboxes_post(struct http_req *rq) NONNULL(1);
void sandbox_get(struct http_req *rq) NONNULL(1);
void sandbox_delete(struct http_req *rq) NONNULL(1);
void sandbox_pause(struct http_req *rq) NONNULL(1);
void sandbox_resume(struct http_req *rq) NONNULL(1);
void sandbox_renew(struct http_req *rq) NONNULL(1);
void sandbox_metadata(struct http_req *rq) NONNULL(1);
/* list.c */
void sandboxes_get(struct http_req *rq) NONNULL(1);
/* endpoints.c */
void endpoint_get(struct http_req *rq) NONNULL(1);
/* diagnostics.c */
void diagnostics_logs(struct http_req *rq) NONNULL(1);
void diagnostics_events(struct http_req *rq) NONNULL(1);
void diagnostics_inspect(struct http_req *rq) NONNULL(1);
void diagnostics_summary(struct http_req *rq) NONNULL(1);
/* absent.c: what this server does not have, each with the code that clients know */
void snapshots_absent(struct http_req *rq) NONNULL(1);
void pools_absent(struct http_req *rq) NONNULL(1);
void templates_absent(struct http_req *rq) NONNULL(1);
/* networkpolicy.c */
void sandbox_policy(struct http_req *rq) NONNULL(1);
/* server.c */
void health_get(struct http_req *rq) NONNULL(1);
void version_get(struct http_req *rq) NONNULL(1);
void metrics_get(struct http_req *rq) NONNULL(1);
void metrics_events_post(struct http_req *rq) NONNULL(1);
/* proxy.c */
void sandbox_proxy(struct http_req *rq) NONNULL(1);

#endif
