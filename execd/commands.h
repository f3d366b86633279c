/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * commands - commands of the execution API: /command and what belongs to it.
 */
#ifndef OSBX_EXECD_COMMANDS_H
#define OSBX_EXECD_COMMANDS_H

#include <osbx/compiler.h>
#include <osbx/http.h>

#define COMMANDS_FINISHED_MAX 256 /* records of ended commands that are kept */

/* Handlers of the route table. */
void command_post(struct http_req *rq) NONNULL(1);   /* POST /command */
void command_delete(struct http_req *rq) NONNULL(1); /* DELETE /command?id= */
void command_list(struct http_req *rq) NONNULL(1);   /* GET /command */
void command_status(struct http_req *rq) NONNULL(1); /* GET /command/status/{id} */
void command_logs(struct http_req *rq) NONNULL(1);   /* GET /command/{id}/logs */
void command_resume(struct http_req *rq) NONNULL(1); /* GET /command/{id}/resume?after_eid= */

#endif
