/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy_internal - the parts of http_proxy; see proxy.c for how they work together.
 */
#ifndef OSBX_HTTP_PROXY_INTERNAL_H
#define OSBX_HTTP_PROXY_INTERNAL_H

#include <sys/types.h>

#include <osbx/http_proxy.h>

#include "http_internal.h"
#include "proxy_head.h"

#define PROXY_IN_BYTES  (64U << 10) /* more than a head */
#define PROXY_OUT_BYTES (64U << 10)

enum proxy_body {
	PROXY_BODY_NONE,
	PROXY_BODY_LENGTH,
	PROXY_BODY_CHUNKED,
	PROXY_BODY_CLOSE, /* up to the end of the connection */
};

struct proxy {
	struct http_req *rq;
	struct loop *loop;
	int fd;
	struct loop_source src;
	struct loop_source timer;
	/* The caller's. */
	const char *const *drop_response;
	char *add_response;
	char *location_prefix;
	char *host;
	void (*fail)(struct http_req *rq, enum http_proxy_failure why);
	void (*on_end)(void *ctx);
	void *ctx;
	int64_t timeout_ms;
	int64_t progress_ms;
	/* The request. */
	struct buf out; /* from out_at on to be sent */
	size_t out_at;
	bool is_head;
	bool is_chunked;
	bool wants_upgrade;
	bool is_sent;    /* all of it is in out */
	bool is_refused; /* the backend does not take more */
	/* The answer. */
	char *in; /* PROXY_IN_BYTES, of which in_at..in_n is not looked at yet */
	size_t in_at, in_n;
	struct parse_scan scan;
	bool has_head;
	enum proxy_body body;
	uint64_t left;
	struct chunked chunked;
	struct buf trailers;
	bool is_over; /* its end has been read */
};

/* proxy_request.c */
/* The head to send; also finds out how the body goes and if an upgrade is wanted. */
void proxy_request_build(struct proxy *p, const struct http_proxy_opts *opts);

/* proxy_answer.c */
/* Fields of the answer to the client; false: too many bytes. */
bool proxy_answer_fields(struct proxy *p, const struct proxy_answer *a) MUST_CHECK;
/* The same as the head of a 101. */
void proxy_answer_upgrade(struct proxy *p, const struct proxy_answer *a, struct buf *out);
/* Pass on what has been read of the body; is_over at its end. 0 or -EBADMSG. */
int proxy_answer_body(struct proxy *p) MUST_CHECK;

#endif
