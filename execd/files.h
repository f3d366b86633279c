/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * files - files and directories of the sandbox over the execution API.
 *
 * Each request is served by a process of its own (http_fork), which becomes the user it acts for
 * before it looks at anything: the main process's user, or the account of the path's prefix.
 */
#ifndef OSBX_EXECD_FILES_H
#define OSBX_EXECD_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/execd_proto.h>
#include <osbx/http.h>
#include <osbx/json.h>
#include <osbx/strv.h>

#include "passwd.h"

#define FILES_IDENTITY_PREFIX "/v1/filesystem/{uid}/{gid}"

/* The rows of the route table below a prefix. Bodies are read by the worker. */
#define FILES_ROUTES(prefix)                                                                       \
	{ HTTP_GET, prefix "/files/info", files_info, 0, 0 },                                      \
			{ HTTP_DELETE, prefix "/files", files_delete, HTTP_ROUTE_STREAM, 0 },      \
			{ HTTP_POST, prefix "/files/permissions", files_permissions,               \
				HTTP_ROUTE_STREAM, 0 },                                            \
			{ HTTP_POST, prefix "/files/mv", files_move, HTTP_ROUTE_STREAM, 0 },       \
			{ HTTP_GET, prefix "/files/search", files_search, 0, 0 },                  \
			{ HTTP_POST, prefix "/files/replace", files_replace, HTTP_ROUTE_STREAM,    \
				0 },                                                               \
			{ HTTP_POST, prefix "/files/upload", files_upload, HTTP_ROUTE_STREAM, 0 }, \
			{ HTTP_GET, prefix "/files/download", files_download, 0, 0 },              \
			{ HTTP_GET, prefix "/directories/list", files_list, 0, 0 },                \
			{ HTTP_POST, prefix "/directories", files_make_dirs, HTTP_ROUTE_STREAM,    \
				0 },                                                               \
	{                                                                                          \
		HTTP_DELETE, prefix "/directories", files_remove_dirs, HTTP_ROUTE_STREAM, 0        \
	}

/* Handlers of the route table. */
void files_info(struct http_req *rq) NONNULL(1);
void files_delete(struct http_req *rq) NONNULL(1);
void files_permissions(struct http_req *rq) NONNULL(1);
void files_move(struct http_req *rq) NONNULL(1);
void files_search(struct http_req *rq) NONNULL(1);
void files_replace(struct http_req *rq) NONNULL(1);
void files_upload(struct http_req *rq) NONNULL(1);
void files_download(struct http_req *rq) NONNULL(1);
void files_list(struct http_req *rq) NONNULL(1);
void files_make_dirs(struct http_req *rq) NONNULL(1);
void files_remove_dirs(struct http_req *rq) NONNULL(1);

/* A request in its worker. */
struct files {
	struct http_req *rq;
	const struct execd_process *main; /* NULL: not started yet */
	int root_fd;                      /* O_PATH of "/" */
	int proc_fd;                      /* /proc, checked to be the kernel's */
	const char *invalid_code;         /* of the error body when the error is ERRC_INVALID */
	const char *cwd;                  /* absolute: what relative paths begin at */
	const struct strv *env;           /* for "$NAME" in paths; NULL: none but HOME */
	uint32_t ids_max;
	struct passwd_user user;  /* who the worker is */
	struct passwd_book names; /* of users and groups */
};

/* Do the work; 0 when it has answered. */
typedef int (*files_op_fn)(struct files *f, struct error *e);
/* Serve a request by an operation in a worker. */
void files_serve(struct http_req *rq, files_op_fn op) NONNULL(1, 2);
/* Become the user that the request acts for: fills .user, .cwd, .env and the other fields that
 * depend on it. */
int files_become(struct files *f, struct error *e) MUST_CHECK NONNULL(1, 2);

/* The kernel said no about a path: missing is ERRC_NOT_FOUND, a path that cannot exist is
 * ERRC_INVALID. Returns -1. */
int files_sys(struct error *e, int sysno, const char *what, const char *path) NONNULL(1, 3, 4);
/* The first value of a name of the query, which must be there and not empty. Caller frees. */
int files_query(const struct files *f, const char *name, char **out_value,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
/* All values of "path" in the query. */
int files_query_paths(const struct files *f, struct strv *out_paths, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* The body as JSON. Owned by the caller. */
int files_body(struct files *f, struct json **out_json, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);

/* For each member of the body, an object whose names are paths; then the answer is complete. */
int files_body_each(struct files *f,
		int (*one)(struct files *f, const struct json *v, struct error *e),
		struct error *e) MUST_CHECK NONNULL(1, 2, 3);

/* A JSON array as answer, of any length: what does not fit one buffer goes out in pieces. */
struct files_array {
	struct http_req *rq;
	struct buf buf;
	struct json_writer w;
};
void files_array_begin(struct files_array *a, struct http_req *rq) NONNULL(1, 2);
/* After each element. */
void files_array_flush(struct files_array *a) NONNULL(1);
/* Complete the answer. */
void files_array_end(struct files_array *a) NONNULL(1);
void files_array_done(struct files_array *a);
AUTO_DEFINE(files_array, struct files_array, files_array_done);

#endif
