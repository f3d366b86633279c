/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * api - the execution API: what its routes share.
 *
 * Handlers run in PID 1's loop and must not block: what reads or writes files of the sandbox goes
 * through http_fork, what starts processes through process_spawn.
 */
#ifndef OSBX_EXECD_API_H
#define OSBX_EXECD_API_H

#include <stdint.h>

#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/execd_proto.h>
#include <osbx/http.h>
#include <osbx/json.h>

#include "execd.h"

/* Tags of http_req.listener: where a connection came in. */
#define API_LISTENER_OUTSIDE 1U /* execd.sock: the owner of the sandbox, and the server's proxy */
#define API_LISTENER_INSIDE  2U /* 127.0.0.1 of the sandbox: any of its processes */
#define API_LISTENER_LOOPED  4U /* beside one of them: through /proxy to ourselves */

/* Codes of error bodies, as the execution API names them. */
#define API_INVALID_BODY      "INVALID_REQUEST_BODY"
#define API_MISSING_QUERY     "MISSING_QUERY"
#define API_INVALID_QUERY     "INVALID_QUERY"
#define API_RUNTIME           "RUNTIME_ERROR"
#define API_INVALID_FILE      "INVALID_FILE"
#define API_INVALID_CONTENT   "INVALID_FILE_CONTENT"
#define API_INVALID_METADATA  "INVALID_FILE_METADATA"
#define API_FILE_NOT_FOUND    "FILE_NOT_FOUND"
#define API_CONTEXT_NOT_FOUND "CONTEXT_NOT_FOUND"
#define API_NOT_FOUND         "NOT_FOUND"
#define API_NOT_SUPPORTED     "NOT_SUPPORTED"
#define API_UNAUTHORIZED      "UNAUTHORIZED"
#define API_UNKNOWN           "UNKNOWN"

/* The service of one sandbox; NULL while nothing listens. */
struct execd *api_execd(const struct http_req *rq) NONNULL(1);
/* Is whoever asks one of the sandbox's processes that has shown no token? Then nothing may be done
 * that the sandbox's own user could not do. */
bool api_is_inside(const struct http_req *rq) NONNULL(1);
/* {"code","message"} alone. */
void api_error_format(struct buf *out, const char *code, const char *message) NONNULL(1, 2, 3);
/* Answer {"code","message"}; ends the request. */
void api_fail(struct http_req *rq, int status, const char *code, const char *fmt, ...)
		PRINTF_LIKE(4, 5) NONNULL(1, 3, 4);
/* The same with the status and the text of an error; code NULL: the class decides. */
void api_fail_error(struct http_req *rq, const char *code, const struct error *e) NONNULL(1, 3);
/* 200 without a body, "Content-Length: 0". */
void api_ok(struct http_req *rq) NONNULL(1);
/* A JSON document with a status. */
void api_json(struct http_req *rq, int status, const struct buf *json) NONNULL(1, 3);
/* The body as a JSON object, owned by the caller. NULL: 400 has been answered. An empty body is an
 * empty object where may_be_empty. */
struct json *api_body(struct http_req *rq, bool may_be_empty) NONNULL(1) MUST_CHECK;

/* What the entrypoint was given: environment, user, directory, capabilities, limits. Borrowed, for
 * as long as the sandbox lives; NULL before the entrypoint has been started. */
const struct execd_process *api_main(const struct execd *x) NONNULL(1);

/* Processes of the API. */
struct process_opts {
	const struct execd_process *process; /* not needed after the call */
	const struct process_more *more;     /* or NULL; not needed after the call */
	int stdio[3]; /* not taken over; -1: /dev/null; not looked at with tty */
	bool tty;
	/* execve has happened; master_fd (with tty, else -1) is the callee's. */
	void (*on_started)(void *ctx, pid_t pid, int master_fd);
	/* It could not be started (ERRC_NO_COMMAND 127, ERRC_NOT_EXECUTABLE 126, …). The last call.
	 */
	void (*on_failed)(void *ctx, const struct error *e);
	/* It has ended and is reaped, as waitid(2) says. The last call. */
	void (*on_exited)(void *ctx, const siginfo_t *end);
	void *ctx;
};
/* Start a process with a tree of its own; *out_tag names it for process_signal and process_kill
 * until its last call. No call comes before this returns. */
int process_spawn(struct execd *x, const struct process_opts *opts, uint32_t *out_tag,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);

#endif
