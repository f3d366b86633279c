/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * code - the code interpreter: contexts that keep the state of a language between runs.
 */
#ifndef OSBX_EXECD_CODE_H
#define OSBX_EXECD_CODE_H

#include <stdbool.h>

#include <osbx/compiler.h>
#include <osbx/http.h>

struct execd;

/* Handlers of the route table. */
void code_post(struct http_req *rq) NONNULL(1);            /* POST /code */
void code_delete(struct http_req *rq) NONNULL(1);          /* DELETE /code?id= */
void code_context_post(struct http_req *rq) NONNULL(1);    /* POST /code/context */
void code_context_get(struct http_req *rq) NONNULL(1);     /* GET /code/contexts/{id} */
void code_context_delete(struct http_req *rq) NONNULL(1);  /* DELETE /code/contexts/{id} */
void code_contexts_get(struct http_req *rq) NONNULL(1);    /* GET /code/contexts?language= */
void code_contexts_delete(struct http_req *rq) NONNULL(1); /* DELETE /code/contexts?language= */

/* Interrupt the run of a context, and answer when it has ended. False: there is no context of this
 * id, nothing has been answered. */
bool code_interrupt(struct http_req *rq, const char *id) NONNULL(1, 2) MUST_CHECK;

#define CODE_GATE_PORT 44771

/* The main process has been started: soon hold CODE_GATE_PORT, where the sandbox has a loopback of
 * its own and something that can run code; start what CODE_PRESTART_VARIABLE names. */
void code_gate_arm(struct execd *x) NONNULL(1);
/* Now: somebody uses the API. */
void code_gate_open(struct execd *x) NONNULL(1);

#endif
