/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * code_jupyter - documents of a Jupyter server (REST and kernel messages, protocol 5), without
 * sockets. The server and its kernels are the sandbox's: nothing of theirs is trusted.
 */
#ifndef OSBX_EXECD_CODE_JUPYTER_H
#define OSBX_EXECD_CODE_JUPYTER_H

#include <stdbool.h>
#include <stdint.h>

#include <osbx/buf.h>
#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/json.h>
#include <osbx/strv.h>

#define JUPYTER_HOST_VARIABLE  "JUPYTER_HOST"
#define JUPYTER_TOKEN_VARIABLE "JUPYTER_TOKEN"
#define JUPYTER_ID_MAX         64
#define JUPYTER_TOKEN_MAX      1024

/* Where a server is: on the sandbox's own loopback. */
struct jupyter_place {
	uint16_t port;
	char *host; /* for the field of this name */
	char *base; /* path in front of "/api", "" or without '/' at its end */
};
void jupyter_place_done(struct jupyter_place *p);
AUTO_DEFINE(jupyter_place, struct jupyter_place, jupyter_place_done);
/* From "http://HOST[:PORT][/PATH]"; HOST is localhost, 127.x.x.x or [::1]. */
int jupyter_place_parse(const char *url, struct jupyter_place *out, struct error *e)
		NONNULL(1, 2, 3) MUST_CHECK;

/* The kernel to take for a language from the answer of /api/kernelspecs, borrowed, or NULL. The one
 * named python3 is the last choice, as images have it beside the one that they configure. */
const char *jupyter_kernel_find(const struct json *specs, const char *language) NONNULL(2);
/* "bash, python": the languages of all kernels. */
void jupyter_languages_list(const struct json *specs, struct buf *out) NONNULL(2);
/* May this string stand in a path as it is? */
bool jupyter_id_is_valid(const char *id);

/* A message to a kernel. */
struct jupyter_request {
	const char *session; /* makes, with n, the id of the message */
	uint64_t n;
	const char *type; /* "execute_request", "kernel_info_request", "usage_request" */
	const char *channel;
	const char *code; /* of the first */
	bool is_silent;
};
void jupyter_request_put(const struct jupyter_request *r, struct buf *out) NONNULL(1, 2);

/* What code there must be for the directory and the variables of a context; *out_code is the
 * caller's, or NULL: nothing is to be done, or it is not known how in this language (variables are
 * ERRC_UNSUPPORTED then). */
int jupyter_prelude(const char *language, const char *cwd, const struct strv *envs, char **out_code,
		struct error *e) NONNULL(1, 3, 4, 5) MUST_CHECK;

enum jupyter_kind {
	JUPYTER_OTHER, /* nothing to do */
	JUPYTER_STREAM,
	JUPYTER_RESULT, /* with a number */
	JUPYTER_DISPLAY,
	JUPYTER_ERROR,
	JUPYTER_REPLY, /* of execute_request */
	JUPYTER_INFO,  /* reply of kernel_info_request */
	JUPYTER_USAGE, /* reply of usage_request */
	JUPYTER_IDLE,
	JUPYTER_DEAD, /* the server says that the kernel has ended */
};

/* A message from a kernel; all is borrowed from its document. */
struct jupyter_message {
	enum jupyter_kind kind;
	const char *parent; /* id of the request that it belongs to, "" without one */
	const struct json *content;
};
void jupyter_message_read(const struct json *document, struct jupyter_message *out) NONNULL(2);

#endif
