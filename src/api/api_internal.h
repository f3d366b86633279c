/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_internal - what the files of the lifecycle API share.
 */
#ifndef OSBX_API_API_INTERNAL_H
#define OSBX_API_API_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include <osbx/api.h>
#include <osbx/buf.h>
#include <osbx/compiler.h>
#include <osbx/ctl.h>
#include <osbx/dirs.h>
#include <osbx/error.h>
#include <osbx/http.h>
#include <osbx/id.h>
#include <osbx/json.h>
#include <osbx/loop.h>
#include <osbx/request.h>
#include <osbx/sandbox.h>

/* Codes of error bodies: "NAMESPACE::NAME" (osbx-api(7)). */
#define API_NOT_FOUND          "SANDBOX::NOT_FOUND"
#define API_NOT_RUNNING        "SANDBOX::NOT_RUNNING"
#define API_NOT_PAUSED         "SANDBOX::NOT_PAUSED"
#define API_INVALID_PARAMETER  "SANDBOX::INVALID_PARAMETER"
#define API_INVALID_LABEL      "SANDBOX::INVALID_METADATA_LABEL"
#define API_INVALID_EXPIRATION "SANDBOX::INVALID_EXPIRATION"
#define API_INVALID_ENTRYPOINT "SANDBOX::INVALID_ENTRYPOINT"
#define API_INVALID_PORT       "SANDBOX::INVALID_PORT"
#define API_NOT_SUPPORTED      "SANDBOX::API_NOT_SUPPORTED"
#define API_UNSUPPORTED_POOL   "SANDBOX::UNSUPPORTED_POOL_REF"
#define API_PULL_FAILED        "SANDBOX::IMAGE_PULL_FAILED"
#define API_START_FAILED       "SANDBOX::START_FAILED"
#define API_DELETE_FAILED      "SANDBOX::DELETE_FAILED"
#define API_PAUSE_FAILED       "SANDBOX::PAUSE_FAILED"
#define API_RESUME_FAILED      "SANDBOX::RESUME_FAILED"
#define API_QUERY_FAILED       "SANDBOX::QUERY_FAILED"
#define API_UNKNOWN            "SANDBOX::UNKNOWN_ERROR"
#define API_LIMIT_REACHED      "SANDBOX::LIMIT_REACHED"
#define API_RATE_LIMITED       "SANDBOX::RATE_LIMITED"
#define API_VALIDATION         "GENERAL::VALIDATION_ERROR"
#define API_GENERAL            "GENERAL::UNKNOWN_ERROR"
#define API_METADATA_FORMAT    "INVALID_METADATA_FORMAT"
#define API_METADATA_LABEL     "INVALID_METADATA_LABEL"
#define API_DIAGNOSTICS_SCOPE  "DIAGNOSTICS_SCOPE_UNSUPPORTED"
#define API_SNAPSHOT_NOT_IMPL  "SNAPSHOT::NOT_IMPLEMENTED"
#define API_POOL_NOT_SUPPORTED "KUBERNETES::POOL_NOT_SUPPORTED"
#define API_TEMPLATES          "FSB::API_NOT_SUPPORTED"

#define API_BODY_MAX    (1U << 20)
#define API_JSON_MAX    (32U << 20) /* of an answer: a page of sandboxes */
#define API_REQUEST_MAX (8U << 20)  /* request.json */
#define API_PAGE_MAX    200
#define API_TIMEOUT_MIN 60 /* s */

/* Counters in memory that the workers share (metrics.c). */
struct api_counters;

/* Creations of one key in a minute. */
struct auth_window {
	int64_t begin_ms;
	uint64_t n;
};

struct api {
	const struct api_opts *opts;
	struct auth_window *windows; /* without a key, then by key */
	struct dirs dirs;
	struct loop *loop;
	struct http_server *server;
	struct api_counters *counters;
	size_t passages_n; /* requests and tunnels that are passed on to a sandbox */
};

/* What a handler runs in a worker; rq->ctx is not used. */
typedef void (*api_work)(struct api *api, struct http_req *rq);

/* The server of a request. */
struct api *api_of(const struct http_req *rq) NONNULL(1);
/* Another request: for the counters. */
void api_request_begin(struct api *api) NONNULL(1);
/* Run work in a worker; it answers. */
void api_work_start(struct http_req *rq, api_work work) NONNULL(1, 2);

/* Answers; each ends the request. */
void api_fail(struct http_req *rq, int status, const char *code, const char *fmt, ...)
		PRINTF_LIKE(4, 5) NONNULL(1, 3, 4);
/* With the text and hint of an error, and its class's status; code NULL: the class's. */
void api_fail_error(struct http_req *rq, const char *code, const struct error *e) NONNULL(1, 3);
/* 422 as the reference's validation says it: code, message, and detail with the place. */
void api_fail_field(struct http_req *rq, const char *where, const char *field, const char *what)
		NONNULL(1, 2, 3, 4);
void api_json(struct http_req *rq, int status, const struct buf *json) NONNULL(1, 3);
void api_empty(struct http_req *rq, int status) NONNULL(1);
/* Body of the server's own failures, and the fields of every answer (http_opts). */
const char *api_describe(struct http_req *rq, int status, const char *what, struct buf *out);
void api_fields(struct http_req *rq, struct buf *out);
/* The body as a JSON object. NULL: answered. may_be_empty: an empty body is an empty object. */
struct json *api_body(struct http_req *rq, bool may_be_empty) NONNULL(1) MUST_CHECK;

/* The sandbox of the route's first parameter. -1: answered. */
int api_find(struct api *api, struct http_req *rq, struct sandbox_info *out_info) MUST_CHECK
		NONNULL(1, 2, 3);

/* The same as its record in the runtime directory says it, without clearing up behind a keeper that
 * is dead: quick enough for the loop. 0, -ENOENT: there is none, or -errno; nothing has been
 * answered. */
int api_live_state(const struct api *api, const struct http_req *rq, struct id *out_id,
		struct sandbox_state *out_state) MUST_CHECK NONNULL(1, 2, 3, 4);

/* A wish for a sandbox as a client wrote it (create.c). */
struct create {
	struct sandbox_request request;
	struct credential credential;
	bool has_credential;
};

void create_done(struct create *c);
AUTO_DEFINE(create, struct create, create_done);
/* How a create was refused. */
struct refusal {
	int status;       /* 0: it was not */
	const char *code; /* constant */
	char field[128];  /* 422: the path in the body */
	char text[400];
};
/* Read the body of POST /sandboxes. 0, or -1 with *out_why. */
int create_parse(const struct api_opts *opts, const struct json *body, struct create *out_create,
		struct refusal *out_why) MUST_CHECK NONNULL(1, 2, 3, 4);
/* Fill *why and return -1. */
int refuse(struct refusal *why, int status, const char *code, const char *fmt, ...)
		PRINTF_LIKE(4, 5) NONNULL(1, 3, 4);
int refuse_field(struct refusal *why, const char *field, const char *fmt, ...) PRINTF_LIKE(3, 4)
		NONNULL(1, 2, 3);
/* From the text of jsondec_object, "PATH: what". */
int refuse_decoded(struct refusal *why, const struct error *e) NONNULL(1, 2);
void api_refuse(struct http_req *rq, const struct refusal *why) NONNULL(1, 2);

/* volumes[] of a create into the request (volumes.c). */
int volumes_parse(const struct api_opts *opts, const struct json *v, struct sandbox_request *req,
		struct refusal *why) MUST_CHECK NONNULL(1, 3, 4);
/* Is an absolute path equal to or below one of the directories that are allowed? The directory, or
 * NULL. */
const char *host_path_allowed(const struct api_opts *opts, const char *path) NONNULL(1, 2);

/* resourceLimits of a create: "500m", "1.5"; "512Mi" (quantity.c). 0 or -EINVAL, -ERANGE. */
int quantity_cpu(const char *text, uint64_t *out_milli) MUST_CHECK NONNULL(1, 2);
int quantity_memory(const char *text, uint64_t *out_bytes) MUST_CHECK NONNULL(1, 2);

/* Labels by the rules of Kubernetes (metadata.c). */
bool metadata_key_is_valid(const char *key) NONNULL(1);
bool metadata_value_is_valid(const char *value) NONNULL(1);
bool metadata_is_reserved(const char *key) NONNULL(1);
/* Is a label not shown to clients? */
bool metadata_is_hidden(const char *label) NONNULL(1);
/* A member of metadata as "KEY=VALUE" into labels. */
int metadata_add(struct strv *labels, const char *key, const char *value,
		struct refusal *why) MUST_CHECK NONNULL(1, 2, 3, 4);
/* Filter of a list: pairs that a sandbox's labels must have, from the query's value, decoded until
 * nothing is left to decode. -1: malformed. */
int metadata_filter(const char *text, struct strv *out_pairs) MUST_CHECK NONNULL(1, 2);
bool metadata_matches(const struct strv *labels, const struct strv *pairs) NONNULL(1, 2);
/* A JSON merge patch (RFC 7396) of metadata. */
int metadata_patch(const struct json *patch, const struct strv *labels, struct strv *out_labels,
		struct refusal *why) MUST_CHECK NONNULL(1, 2, 3, 4);

/* RFC 3339 with a zone, up to nine digits of a second (time.c). 0 or -EINVAL. */
int time_parse(const char *text, int64_t *out_wall_ms) MUST_CHECK NONNULL(1, 2);

/* A sandbox as JSON, name NULL: the document (view.c). Reads its request.json. */
void view_sandbox(const struct api *api, const struct sandbox_info *info, struct json_writer *w)
		NONNULL(1, 2, 3);
/* The answer of a create. */
void view_created(const struct api *api, const struct sandbox_info *info, struct json_writer *w)
		NONNULL(1, 2, 3);
void view_time(struct json_writer *w, const char *name, int64_t wall_ms) NONNULL(1, 2);

#endif
