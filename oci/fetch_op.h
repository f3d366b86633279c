/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch_op - what the helper was asked for: from the first request to the end, over tokens,
 * redirects, retries and mirrors.
 */
#ifndef OSBX_OCI_FETCH_OP_H
#define OSBX_OCI_FETCH_OP_H

#include <stdbool.h>
#include <stdint.h>

#include <osbx/digest.h>

#include "fetch_blob.h"
#include "fetch_exchange.h"
#include "fetch_proto.h"
#include "fetch_setup.h"

#define HOST_CA_PATH_MAX 32

enum fetch_scope {
	FETCH_SCOPE_NONE, /* login only */
	FETCH_SCOPE_PULL,
	FETCH_SCOPE_COUNT,
};

enum token_stage {
	TOKEN_UNKNOWN,  /* no challenge yet: requests go without */
	TOKEN_FETCHING, /* its operation is under way */
	TOKEN_READY,    /* value is sent: until expires_ms, then fetched anew */
	TOKEN_BASIC,    /* value is sent: user and password themselves */
	TOKEN_STAGE_COUNT,
};

/* What one host wants to see for one scope. */
struct token {
	enum token_stage stage;
	char *realm; /* address of the token server, checked */
	char *service;
	char *value; /* of the Authorization field */
	int64_t expires_ms;
	uint32_t generation; /* of value */
};

struct host {
	const struct fetch_host *rules;
	char ca_path[HOST_CA_PATH_MAX]; /* "" without certificates of its own */
	bool plain;                     /* http */
	bool settled;                   /* it has answered, so plain is no longer a guess */
	bool dead;                      /* a mirror that never did: later operations pass it over */
	uint32_t transfers;             /* blobs under way */
	struct token tokens[FETCH_SCOPE_COUNT];
};

struct op;

struct fetcher {
	struct fetch_setup setup;
	const struct curl_lib *lib;
	struct client client;
	struct host hosts[FETCH_HOSTS_MAX];
	struct op *ops; /* in the order they came */
	uint32_t transfers;
	/* An operation has come to its end; op->error says how. It is freed behind this. */
	void (*on_end)(struct fetcher *f, struct op *op);
	void (*on_log)(struct fetcher *f, const char *text);
};

enum op_kind {
	OP_PING,
	OP_MANIFEST,
	OP_BLOB,
	OP_TOKEN, /* made by others that need it */
	OP_KIND_COUNT,
};

enum op_stage {
	OP_READY,   /* its next request is to be sent */
	OP_RUNNING, /* that is under way */
	OP_PAUSED,  /* until retry_ms */
	OP_WANTING, /* until a token is there */
	OP_FEEDING, /* a blob: all is here, the pipe has not taken all */
	OP_ENDED,
	OP_STAGE_COUNT,
};

/* What follows from an answer. */
enum op_verdict {
	OP_VERDICT_AGAIN, /* another request at once */
	OP_VERDICT_RETRY, /* later; error says why */
	OP_VERDICT_WANT,  /* when the token is there */
	OP_VERDICT_FAIL,  /* here; a mirror may not be the last one asked */
	OP_VERDICT_DONE,
	OP_VERDICT_COUNT,
};

struct op {
	struct fetcher *f;
	struct op *next; /* fetcher.ops */
	enum op_kind kind;
	enum op_stage stage;
	enum fetch_scope scope;
	size_t host; /* in fetcher.hosts */
	char *label; /* for people */
	char *name;  /* tag or digest */
	/* This attempt: */
	struct exchange *x;
	char *url; /* where a redirect led to, NULL: the beginning */
	uint32_t redirects;
	char *asked;         /* address of the request under way */
	bool home;           /* which is the host's own, not one it redirects to */
	bool plain;          /* it is by http to the host itself */
	uint64_t offset;     /* its Range */
	bool sent;           /* it has an Authorization field */
	uint32_t generation; /* of that token */
	/* All attempts: */
	uint32_t tries;   /* failures in a row */
	uint32_t refused; /* 401 in spite of an Authorization field */
	bool no_range;    /* the server's ranges are wrong */
	int64_t retry_ms;
	struct error error;
	/* What came of it: */
	struct buf body; /* manifest */
	char type[FETCH_TYPE_MAX];
	struct digest digest;
	struct blob blob; /* OP_BLOB */
	uint32_t tag;
	uint64_t told; /* progress */
	int64_t told_ms;
	char *form; /* OP_TOKEN: body of the request */
};

/* Take the setup over and make hosts ready. ERRC_SYSTEM, ERRC_UNSUPPORTED. */
int fetcher_init(struct fetcher *f, const struct curl_lib *lib, struct fetch_setup *setup,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
/* Begin operations. They appear in f->ops. */
void op_begin_ping(struct fetcher *f) NONNULL(1);
void op_begin_manifest(struct fetcher *f, const char *name) NONNULL(1, 2);
/* Takes the descriptors over, also on failure; then the operation ends with the error. */
void op_begin_blob(struct fetcher *f, const struct fetch_blob_request *request, int part_fd,
		int out_fd) NONNULL(1, 2);
/* Start what is due, drop what has ended. Returns how long to wait for the next in ms, -1: until
 * something happens. */
int ops_run(struct fetcher *f, int64_t now_ms) NONNULL(1);
/* The pipe of a blob takes bytes again, or is closed. */
void op_feed(struct op *op) NONNULL(1);

/* Between the parts of this module: */
struct op_class {
	const char *accept;
	size_t body_max;
	bool is_small; /* the exchange has a total time */
	/* Address of the first request; NULL: token_request. Caller frees. */
	char *(*address)(const struct op *op);
	/* As in exchange_opts; -1 with op->error. May be NULL. */
	int (*on_head)(struct op *op, const struct exchange *x);
	int (*on_body)(struct op *op, struct span piece);
	/* A whole answer of 2xx. */
	enum op_verdict (*on_success)(struct op *op);
};

extern const struct op_class op_classes[OP_KIND_COUNT];

struct op *op_new(struct fetcher *f, enum op_kind kind) NONNULL(1) MUST_CHECK;
struct host *op_host(const struct op *op) NONNULL(1) MUST_CHECK;
/* "host:port" that op has asked. Caller frees. */
char *op_place(const struct op *op) NONNULL(1) MUST_CHECK;
/* "LABEL: PLACE: WHAT" in op->error. Returns -1. */
int op_fail(struct op *op, enum errc errc, const char *what) NONNULL(1, 3);
/* The error of an answer that is no success, in op->error. Returns -1. */
int op_refuse(struct op *op) NONNULL(1);

/* The Authorization field for op's next request: 1 and *out_value (NULL: none; borrowed), 0 when a
 * token is being fetched first, -1 with op->error. */
int token_authorize(struct op *op, int64_t now_ms, const char **out_value) NONNULL(1, 3) MUST_CHECK;
/* The host answered 401: what now? */
enum op_verdict token_challenged(struct op *op) NONNULL(1) MUST_CHECK;
/* Address, Authorization value (caller frees both; may be NULL), and op->form of a request to the
 * token server. -1 with op->error. */
int token_request(struct op *op, char **out_url, char **out_value) NONNULL(1, 2, 3) MUST_CHECK;
/* The token server has answered with success. */
enum op_verdict token_take(struct op *op) NONNULL(1) MUST_CHECK;
/* The token's operation has ended: those that want it go on, or fail with it. */
void token_settle(struct op *op) NONNULL(1);

#endif
