/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * commands - commands of the execution API: /command and what belongs to it.
 */
#ifndef OSBX_EXECD_COMMANDS_H
#define OSBX_EXECD_COMMANDS_H

#include <stdint.h>

#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/http.h>
#include <osbx/json.h>

#define COMMANDS_FINISHED_MAX 256 /* records of ended commands that are kept */

/* Handlers of the route table. */
void command_post(struct http_req *rq) NONNULL(1);   /* POST /command */
void command_delete(struct http_req *rq) NONNULL(1); /* DELETE /command?id= */
void command_list(struct http_req *rq) NONNULL(1);   /* GET /command */
void command_status(struct http_req *rq) NONNULL(1); /* GET /command/status/{id} */
void command_logs(struct http_req *rq) NONNULL(1);   /* GET /command/{id}/logs */
void command_resume(struct http_req *rq) NONNULL(1); /* GET /command/{id}/resume?after_eid= */

/* A command of a request that is not about commands: text for a shell, cwd may be NULL. */
void command_text(struct http_req *rq, const char *text, const char *cwd, uint64_t timeout_ms)
		NONNULL(1, 2);
/* For struct jsondec_field: an object of strings into a struct strv of NAME=VALUE. */
int command_decode_envs(const struct json *v, void *out, struct error *e) NONNULL(2, 3) MUST_CHECK;

#endif
