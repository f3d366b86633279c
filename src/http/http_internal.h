/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_internal - the server, its connections and their exchanges; see conn.c for how they work.
 */
#ifndef OSBX_HTTP_HTTP_INTERNAL_H
#define OSBX_HTTP_HTTP_INTERNAL_H

#include <sys/uio.h>

#include <osbx/http.h>

#include "parse.h"

#define HTTP_IN_HEAD     (4U << 10)   /* one read of a head */
#define HTTP_IN_BODY     (64U << 10)  /* one read of a body */
#define HTTP_OUT_MAX     (64U << 20)  /* a peer with more to take is lost */
#define HTTP_DRAIN_MAX   (64U << 10)  /* of a body that nobody wanted */
#define HTTP_DRAINED     (16U << 10)  /* on_drain is called below */
#define HTTP_EXTRA_MAX   (128U << 10) /* fields that a handler adds to an answer */
#define HTTP_LINGER_MS   2000
#define HTTP_REFUSED_MAX 32 /* connections beyond conns_max that are told so */

enum conn_state {
	CONN_HEAD,    /* reading a head, or idle */
	CONN_BODY,    /* reading the whole body */
	CONN_HANDLER, /* the request is the handler's */
	CONN_FORKED,  /* the connection is a worker's */
	CONN_ENDED,   /* answered: dropping the rest of the body, sending the rest of the answer */
	CONN_LINGER,  /* sent: waiting for the peer to close, so that it can read the answer */
	CONN_DEAD,    /* to be freed as soon as nothing of it is on the stack */
};

enum body_kind {
	BODY_LENGTH,
	BODY_CHUNKED,
};

/* What is left of a request's body on the connection. */
struct body {
	enum body_kind kind;
	uint64_t length; /* announced */
	uint64_t left;   /* BODY_LENGTH */
	uint64_t taken;  /* so far */
	uint64_t taken_by_handler;
	struct chunked chunked;
	bool expects;  /* 100 (Continue) has not been sent */
	bool is_bad;   /* framing is broken, or it was cut */
	bool has_news; /* for on_body */
};

/* A request and its answer. */
struct exchange {
	struct http_req rq;
	struct conn *conn;
	struct body body;
	struct buf whole;    /* the body, unless HTTP_ROUTE_STREAM */
	struct buf extra;    /* fields of the answer */
	struct buf trailers; /* behind its last chunk */
	uint64_t length;     /* announced of the answer, UINT64_MAX: unknown */
	uint64_t written;
	bool is_10;
	bool is_counted; /* in busy_n */
	bool is_admitted;
	bool is_nobody; /* head did not parse: rq says nothing */
	bool has_begun;
	bool is_early;    /* its body may still be read */
	bool has_no_body; /* HEAD, 204, 304 */
	bool is_chunked;
	bool has_date;
	size_t fields_n;
	struct parse_field *fields; /* behind this struct, and the head behind them */
	char *head;
	size_t head_n;
};

struct worker {
	struct loop_source src;
	struct conn *conn;
	int fd; /* its report comes from here */
	struct buf report;
	void (*on_end)(void *ctx);
	void *ctx;
};

struct conn {
	struct http_server *server;
	struct conn *next, *prev;
	struct exchange *x;
	struct worker *worker;
	struct loop_source io;
	struct loop_source timer;
	struct buf in; /* from in_at on: not looked at */
	size_t in_at;
	struct buf out; /* from out_at on: not sent */
	size_t out_at;
	struct parse_scan scan;
	int64_t since_ms; /* of the last progress */
	int fd;
	uint32_t tag;
	enum conn_state state;
	unsigned int depth; /* calls of its own functions on the stack */
	bool eof;           /* the peer sends no more */
	bool is_broken;     /* the peer is gone */
	bool is_blocked;    /* out waits for EPOLLOUT */
	bool is_stalled;    /* on_drain is owed */
	bool must_close;    /* behind this answer */
	bool is_kicked;     /* timer is armed to go on at once */
	bool is_blocking;   /* we are a worker */
	int report_fd;      /* of a worker */
};

struct listener {
	struct listener *next;
	struct http_server *server;
	struct loop_source src;
	int fd;
	uint32_t tag;
};

struct http_server {
	struct loop *loop;
	struct http_opts opts; /* with the defaults */
	struct listener *listeners;
	struct conn *conns;
	struct loop_source rest; /* no descriptors are left: accept later */
	size_t conns_n;
	size_t busy_n;
	size_t workers_n;
	int64_t date_s;
	char date[32];
};

static inline struct exchange *exchange_of(const struct http_req *rq)
{
	/* A const request is one that the callee does not change, not one that is constant. */
	return container_of((struct http_req *)(uintptr_t)rq, struct exchange, rq);
}

static inline struct conn *conn_of(const struct http_req *rq)
{
	return exchange_of(rq)->conn;
}

static inline struct span conn_in(const struct conn *c)
{
	return span_from(buf_span(&c->in), c->in_at);
}

static inline size_t conn_pending(const struct conn *c)
{
	return c->out.n - c->out_at;
}

/* conn.c */
struct conn *conn_new(struct http_server *s, int fd, uint32_t tag) MUST_CHECK;
/* No more of it: closed, and freed now or when it has left the stack. */
void conn_kill(struct conn *c);
/* The peer is gone: tell whoever has the request. */
void conn_lose(struct conn *c);
/* Around everything that may change its state. */
void conn_enter(struct conn *c);
void conn_leave(struct conn *c);
/* Do all that can be done now. Between conn_enter and conn_leave. */
void conn_run(struct conn *c);
/* The request is over, but not yet all bytes of it. */
void conn_ended(struct conn *c);
/* Forget the exchange. */
void conn_drop_exchange(struct conn *c);
/* An exchange without a head, to say what is wrong with it. */
void conn_refuse(struct conn *c, const struct parse_refusal *why);
/* The server's own answer to what the handler cannot answer any more; closes. */
void conn_fail(struct conn *c, int status, const char *what);

/* conn_io.c: bytes. */
/* Read once, at most max bytes. >0, 0 at the end of what the peer sends, -EAGAIN, -errno. */
ssize_t conn_read(struct conn *c, size_t max) MUST_CHECK;
/* Drop n bytes of in. */
void conn_consume(struct conn *c, size_t n);
/* Send these, behind what is waiting. */
void conn_send(struct conn *c, struct iovec *v, int n);
void conn_flush(struct conn *c);
/* Append to what is waiting, without sending. */
void conn_queue(struct conn *c, struct span bytes);
/* Wait for events of poll(2) in a worker. 0, -ETIMEDOUT or -errno. */
int conn_wait(const struct conn *c, short events) MUST_CHECK;

/* route.c */
struct route_match {
	const struct http_route *route;
	bool path_exists;
	unsigned int methods; /* bits of enum http_method of that path */
};
void route_find(const struct http_server *s, struct http_req *rq, struct route_match *out_match);
enum http_method route_method(struct span name);
/* "GET, HEAD, OPTIONS" */
void route_allow(unsigned int methods, struct buf *out);

/* reply.c */
/* Answer with a status of our own: its body is the server's describe(). */
void reply_error(struct http_req *rq, int status, const char *what);

/* body.c */
/* Step over framing that has arrived; sets is_bad. */
void body_advance(struct conn *c);
/* Data that has arrived. */
struct span body_data(const struct conn *c);
void body_take(struct conn *c, size_t n);
/* Count n bytes of data that were read past the buffer. */
void body_count(struct conn *c, size_t n);
/* Bytes of data that are certain to come next. */
uint64_t body_left(const struct body *b);
bool body_is_done(const struct body *b);
/* Is nothing there and more to come? */
bool body_wants(const struct conn *c);
/* "100 Continue", unless it has been sent or is pointless. */
void body_continue(struct conn *c);

/* fork.c */
void worker_free(struct conn *c);
/* In a worker: the parent must not answer any more. */
void worker_begun(struct conn *c);

#endif
