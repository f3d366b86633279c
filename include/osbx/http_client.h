/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: http
 * http_client - one HTTP/1.1 request over a connected socket, and its answer, on the event loop.
 *
 * The connection is used once ("Connection: close"). The peer is not trusted: what is malformed,
 * ambiguous, too long or too slow is an error, and interim answers are skipped.
 */
#ifndef OSBX_HTTP_CLIENT_H
#define OSBX_HTTP_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include <osbx/buf.h>
#include <osbx/compiler.h>
#include <osbx/loop.h>
#include <osbx/span.h>

struct http_call;

/* An answer; all of it is borrowed for the call of on_end. */
struct http_answer {
	int status;        /* 0: there was no whole head */
	struct span body;  /* all of it, without on_data */
	const void *parts; /* for http_answer_field */
	/* Status 101: the connection, which does not block, and what was read of it behind the
	 * head. It is the callee's; else -1. */
	int fd;
	struct span rest;
};

struct http_call_opts {
	const char *method;
	const char *target;
	const char *host;
	const char *fields;  /* more lines, each with CR LF, or NULL */
	struct span body;    /* copied; of no bytes: none */
	size_t body_max;     /* of the answer, without on_data; 0: 1 MiB */
	int64_t silence_ms;  /* without a byte from the peer: -ETIMEDOUT; 0: never */
	const char *upgrade; /* protocol that 101 is taken for, or NULL: then it is malformed */
	/* A piece of the body, as it comes. NULL: it is kept for on_end. */
	void (*on_data)(void *ctx, int status, struct span data);
	/* The last call, never from within http_call_start. r is 0, or -ECONNRESET (cut short),
	 * -EBADMSG (malformed), -EMSGSIZE (beyond body_max), -ETIMEDOUT, another -errno. */
	void (*on_end)(void *ctx, int r, const struct http_answer *a);
	void *ctx;
};

/* Begin over a connected stream socket, which is taken over and must not block. opts is copied, its
 * strings are not needed after the call. NULL: it cannot be watched, fd is closed. */
struct http_call *http_call_start(struct loop *loop, int fd,
		const struct http_call_opts *opts) MUST_CHECK NONNULL(1, 3);
/* Give up without a call; c may be NULL. */
void http_call_cancel(struct http_call *c);
/* A field of the answer by its lower-case name; p NULL when absent. */
struct span http_answer_field(const struct http_answer *a, const char *name) NONNULL(1, 2);

#endif
