/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: http
 * http - an HTTP/1.1 server (RFC 9110, 9112) on the event loop.
 *
 * A server has listeners, connections and one static table of routes. A request belongs to its
 * connection; a handler gets it at the end of its head (HTTP_ROUTE_STREAM) or when its whole body
 * is there, and answers now or later. The next request of a connection is read when the answer has
 * been sent (pipelining costs nothing, and nothing overtakes).
 *
 * A request is valid until its answer is complete (http_reply, http_end) or its connection is lost
 * (on_close, if set, is called first); then it must not be touched. Whoever answers later than in
 * the handler itself sets on_close. No call of a handler comes from within one of its own calls of
 * this module.
 *
 * A peer that closes its side after a request (half-close) is answered as any other. It is gone,
 * and on_close is called, when the kernel says so (EPOLLHUP, EPOLLERR: a Unix socket that was
 * closed, a TCP connection that was reset), when a write fails, or when the body of a route with
 * HTTP_ROUTE_STREAM is cut or malformed. A peer that has closed a TCP connection in order cannot be
 * told from one that reads on: only a write finds out, so long streams write from time to time.
 *
 * What is malformed, ambiguous (two lengths, a length and a coding, a bare CR: request smuggling,
 * RFC 9112 section 11.2), too long or too slow is answered by the server itself and closes the
 * connection. HEAD is a GET whose body is not sent, OPTIONS lists the methods of a path.
 */
#ifndef OSBX_HTTP_H
#define OSBX_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <osbx/buf.h>
#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/loop.h>
#include <osbx/span.h>

#define HTTP_HEAD_BYTES_MAX   (32U << 10) /* request line and fields: 431 beyond */
#define HTTP_TARGET_BYTES_MAX (16U << 10) /* 414 beyond */
#define HTTP_FIELDS_MAX       100         /* 431 beyond */
#define HTTP_PARAMS_MAX       4
#define HTTP_BODY_WHOLE_MAX   (8U << 20) /* default body_max of a route */

enum http_method {
	HTTP_GET,
	HTTP_HEAD,
	HTTP_POST,
	HTTP_PUT,
	HTTP_PATCH,
	HTTP_DELETE,
	HTTP_OPTIONS,
	HTTP_METHOD_OTHER, /* TRACE, CONNECT, …: 501 unless a route takes any method */
	HTTP_METHOD_COUNT,
};

struct http_req;
struct http_server;
typedef void (*http_handler)(struct http_req *rq);

#define HTTP_ROUTE_STREAM 1U /* called at the end of the head; the body is read by http_body_* */
#define HTTP_ROUTE_OPEN   2U /* needs no credentials: for admit() */
#define HTTP_ROUTE_ANY    4U /* every method, also HEAD and OPTIONS; .method is not looked at */

struct http_route {
	enum http_method method;
	/* "/command/{id}/logs"; in "/proxy/{port}/{rest*}" the last one is the rest with its '/',
	 * or nothing. The first row that takes path and method is the route. */
	const char *pattern;
	http_handler handler;
	unsigned int flags;
	size_t body_max; /* 0: HTTP_BODY_WHOLE_MAX; not looked at with HTTP_ROUTE_STREAM */
};

struct http_opts {
	const struct http_route *routes;
	size_t routes_n;
	/* Called at the end of each head, before anything else is done with the request; rq->route
	 * is NULL when the path or the method is unknown. False: it has answered. NULL: admit all.
	 */
	bool (*admit)(struct http_req *rq);
	/* Body of the answers that the server gives itself, status >= 400: writes to *out and names
	 * its media type, of static duration. rq is NULL when the head itself was bad. */
	const char *(*describe)(struct http_req *rq, int status, const char *what, struct buf *out);
	/* A field of every answer, e.g. a request id: appends whole lines with CR LF. Of a head
	 * that was bad rq has neither fields nor path. May be NULL. */
	void (*fields)(struct http_req *rq, struct buf *out);
	size_t conns_max; /* 0: 1024; one more is answered 503 with Retry-After */
	/* Instead the oldest connection ends that has no request which was admitted, or whose peer
	 * does not read: whoever may ask is not kept out by who may not. */
	bool makes_room;
	size_t workers_max; /* of http_fork, 0: 64 */
	int64_t head_ms;    /* first byte to the end of the head, 0: 10 s; 408 */
	int64_t body_ms;    /* between two pieces of a body, 0: 60 s; 408 */
	int64_t idle_ms;    /* keep-alive, 0: 75 s */
	void *ctx;
};

/* A request. Spans are borrowed from the connection. */
struct http_req {
	enum http_method method;
	struct span method_text;
	struct span target; /* as sent, without scheme and authority */
	struct span path;   /* part of target, percent-encoded as sent */
	struct span query;  /* behind '?', may be empty */
	const struct http_route *route;
	struct span params[HTTP_PARAMS_MAX];   /* in the order of the pattern, as sent */
	struct span body;                      /* whole, unless HTTP_ROUTE_STREAM */
	uint32_t listener;                     /* tag of the listener or of http_adopt */
	void *server_ctx;                      /* http_opts.ctx */
	void *ctx;                             /* the handler's own */
	void (*on_close)(struct http_req *rq); /* the peer is gone; the last call */
	/* Not all could be sent at once, and http_pending() has fallen to nearly nothing. */
	void (*on_drain)(struct http_req *rq);
	/* HTTP_ROUTE_STREAM: http_body_peek has news, or the body has ended. A handler that leaves
	 * bytes untaken must come back by itself: nothing more is read, and told, before they are.
	 */
	void (*on_body)(struct http_req *rq);
};

/* New server without listeners; opts and what it points to are borrowed for its life. */
struct http_server *http_server_new(struct loop *loop, const struct http_opts *opts) MUST_CHECK
		NONNULL(1, 2);
/* Closes all connections (on_close is called) and listeners. */
void http_server_free(struct http_server *s);
AUTO_DEFINE_PTR(http_server, struct http_server, http_server_free);
/* Accept on a listening socket, taken over. 0 or -errno. */
int http_listen(struct http_server *s, int fd, uint32_t tag) NONNULL(1) MUST_CHECK;
/* Stop to accept; connections go on. */
void http_listen_stop(struct http_server *s) NONNULL(1);
/* Serve a connected stream socket, taken over. 0 or -errno. */
int http_adopt(struct http_server *s, int fd, uint32_t tag) NONNULL(1) MUST_CHECK;
/* Number of open connections, idle ones too, and of requests that are not answered. */
size_t http_conns(const struct http_server *s) NONNULL(1);
size_t http_busy(const struct http_server *s) NONNULL(1);

/* A field of the request by its lower-case name: the first one's value without white space around
 * it, p NULL when absent. */
struct span http_field(const struct http_req *rq, const char *name) NONNULL(1, 2);
/* Field number i as sent; false behind the last. */
bool http_field_at(const struct http_req *rq, size_t i, struct span *out_name,
		struct span *out_value) NONNULL(1, 3, 4);
/* Address of the peer as text, an IPv6 one in brackets; -EAFNOSUPPORT: it came by a Unix socket. 0
 * or -errno. */
int http_peer(const struct http_req *rq, char *out, size_t size) NONNULL(1, 2) MUST_CHECK;
/* Next pair of the query, decoded ('+' is a space, %XX), *at is 0 at the start. Caller frees both.
 * 1, 0 at the end, -EINVAL for a bad escape or a NUL. */
int http_query_next(const struct http_req *rq, size_t *at, char **out_name, char **out_value)
		NONNULL(1, 2, 3, 4) MUST_CHECK;
/* First value of a name, or NULL in *out_value when absent. Caller frees. 0 or -EINVAL. */
int http_query(const struct http_req *rq, const char *name, char **out_value)
		NONNULL(1, 2, 3) MUST_CHECK;
/* Percent-decoded parameter of the route, or NULL for a bad escape or a NUL. Caller frees. */
char *http_param(const struct http_req *rq, size_t i) NONNULL(1) MUST_CHECK;
/* Is the whole of a token list field ("a, b") to hold this token, case-insensitively? */
bool http_field_has(const struct http_req *rq, const char *name, const char *token)
		NONNULL(1, 2, 3);

/* Whole answer with Content-Length; type NULL: no Content-Type. Ends the request. */
void http_reply(struct http_req *rq, int status, const char *type, struct span body) NONNULL(1);
/* Field of the answer, before http_begin or http_reply. Bytes that are not allowed in a field are
 * an assertion: what comes from outside is checked or encoded by the caller. */
void http_reply_field(struct http_req *rq, const char *name, const char *value) NONNULL(1, 2, 3);
/* Field behind the body of a chunked answer, before http_end; dropped where there is no place. */
void http_reply_trailer(struct http_req *rq, const char *name, const char *value) NONNULL(1, 2, 3);
/* Begin an answer of length_n bytes, or of unknown length (UINT64_MAX: chunked; to an HTTP/1.0
 * peer until close). */
void http_begin(struct http_req *rq, int status, const char *type, uint64_t length_n) NONNULL(1);
bool http_has_begun(const struct http_req *rq) NONNULL(1);
/* Bytes of the body; nothing is refused: look at http_pending. One write is one chunk. */
void http_write(struct http_req *rq, struct span data) NONNULL(1);
/* Bytes that the peer has not taken yet. */
size_t http_pending(const struct http_req *rq) NONNULL(1);
/* The answer is complete. */
void http_end(struct http_req *rq) NONNULL(1);
/* The answer cannot be completed: the connection is closed without its end (no final chunk), which
 * the peer sees as an error. on_close is not called. */
void http_abort(struct http_req *rq) NONNULL(1);

/* HTTP_ROUTE_STREAM: bytes of the body that are there, decoded, borrowed until the next call on rq.
 * The first call answers "Expect: 100-continue". */
struct span http_body_peek(struct http_req *rq) NONNULL(1) MUST_CHECK;
/* Take n of them; more is read from the peer only then. */
void http_body_take(struct http_req *rq, size_t n) NONNULL(1);
/* Is the body complete and all of it taken? */
bool http_body_done(const struct http_req *rq) NONNULL(1);
/* Length announced, UINT64_MAX when chunked. */
uint64_t http_body_length(const struct http_req *rq) NONNULL(1);

/* Leave HTTP (101, or a tunnel): the socket, which does not block, is the caller's from here on,
 * *out_rest what was read beyond the head (caller: buf_done). Nothing has been answered; rq is
 * gone. The descriptor. */
int http_take_over(struct http_req *rq, struct buf *out_rest) NONNULL(1, 2) MUST_CHECK;

/*
 * A request in a process of its own, for work that may block: the body of run() may read files,
 * wait and change its identity, while the loop of the parent goes on and leaves this connection
 * alone. In the child http_reply, http_begin, http_write and http_end block (with time limits), and
 * so do the http_blocking_* functions. At its end the connection goes back with what was read too
 * far; a child that dies without an answer is a 500, or a cut connection after http_begin.
 *
 * The parent's SIGCHLD is the caller's: pids that it does not know are to be reaped.
 */
#define HTTP_FORK_KEEP_MAX 8

struct http_fork_opts {
	void (*run)(struct http_req *rq, void *ctx); /* must have answered when it returns */
	void *ctx;                                   /* copied by fork */
	/* In the parent, once, when the worker has ended or the server is freed; not when http_fork
	 * fails. May be NULL. */
	void (*on_end)(void *ctx);
	/* Descriptors that run() needs: in the worker all others are closed, but for 0, 1 and 2. */
	const int *keep;
	size_t keep_n; /* at most HTTP_FORK_KEEP_MAX */
};
/* 0 or -errno; -EAGAIN: too many workers (503 has been answered, rq is gone, in every failure). */
int http_fork(struct http_req *rq, const struct http_fork_opts *opts) NONNULL(1, 2) MUST_CHECK;
/* Up to n bytes of the body (http_body_peek does not wait). Number, 0 at its end, -errno
 * (-ECONNRESET: cut short, -EBADMSG: malformed, -ETIMEDOUT: body_ms). */
ssize_t http_blocking_read(struct http_req *rq, void *p, size_t n) NONNULL(1, 2) MUST_CHECK;
/* Before an answer: is the peer gone? One on TCP that has only ended its side (half-close) cannot
 * be told from one that has closed: it is sent "100 Continue", which the kernel of one that has
 * closed refuses, and that is waited for a moment. */
bool http_blocking_is_gone(struct http_req *rq) NONNULL(1);
/* n bytes of a file from offset on as body, by sendfile. 0 or -errno; a file that has become
 * shorter is -EIO (the connection must be cut: http_abort). */
int http_blocking_sendfile(struct http_req *rq, int fd, uint64_t offset, uint64_t n)
		NONNULL(1) MUST_CHECK;

/* Reason phrase of a status, "" for an unknown one. */
const char *http_reason(int status) MUST_CHECK;
/* Same bytes, compared in constant time for a length; for credentials. */
bool http_secret_eq(struct span a, struct span b);

#endif
