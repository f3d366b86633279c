/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch_exchange - HTTP exchanges of the fetch helper: one request, one answer, several at once
 * over shared connections. What an answer means is the business of fetch_op.
 */
#ifndef OSBX_OCI_FETCH_EXCHANGE_H
#define OSBX_OCI_FETCH_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <osbx/buf.h>
#include <osbx/error.h>

#include "auth.h"
#include "curl_lib.h"
#include "fetch_setup.h"

struct client {
	const struct curl_lib *lib;
	const struct fetch_setup *setup;
	CURLM *multi;
};

/* The multi handle. ERRC_SYSTEM. */
int client_init(struct client *c, const struct curl_lib *lib, const struct fetch_setup *setup,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
/* Wait for the network, one of fds, or timeout_ms. */
void client_wait(struct client *c, struct curl_waitfd *fds, unsigned int n, int timeout_ms)
		NONNULL(1);
/* Move all exchanges on; on_end is called for those that are over. */
void client_run(struct client *c) NONNULL(1);

struct exchange;

struct exchange_opts {
	const char *url;
	const struct fetch_host *rules;
	const char *ca_path;       /* file of certificates, or NULL */
	const char *authorization; /* value of the field, or NULL */
	const char *accept;        /* or NULL */
	const char *form;          /* or NULL; kept by the caller until the end */
	uint64_t offset;           /* asks for the bytes from here */
	size_t body_max;           /* of what is kept in body */
	int64_t connect_ms;
	int64_t total_ms; /* 0: no matter how long, if it does not stall */
	/* With on_body, the body of a 2xx answer goes there instead of body. Both return 0, or -1
	 * to break off. on_head is called for every answer, before its body. */
	int (*on_head)(void *ctx, const struct exchange *x);
	int (*on_body)(void *ctx, struct span piece);
	void (*on_end)(void *ctx); /* frees the exchange, or has it freed later */
	void *ctx;
};

/* Fields of the answer; absent ones are NULL. */
struct exchange_head {
	char *location;
	char *content_type;
	char *content_range;
	char *digest;
	char *limit;     /* ratelimit-limit */
	char *remaining; /* ratelimit-remaining */
	struct auth_challenge challenge;
	bool bad_challenge;
};

struct exchange {
	struct exchange_opts opts;
	struct client *client;
	CURL *easy;
	struct curl_slist *fields;
	struct exchange_head head;
	size_t head_bytes;
	bool head_told;
	bool full; /* body_max was reached, the rest was not taken */
	struct buf body;
	/* When it is over: */
	CURLcode code;
	long status; /* 0: no answer */
	char detail[CURL_ERROR_SIZE];
};

/* Begin. The exchange belongs to the caller. opts' strings but form are copied. ERRC_INVALID (an
 * address or a proxy of the environment that is not valid). */
struct exchange *exchange_start(struct client *c, const struct exchange_opts *opts,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3);
/* Break it off if it is not over. */
void exchange_free(struct exchange *x);
/* Content-Length of the answer, -1 if it does not say. */
int64_t exchange_length(const struct exchange *x) NONNULL(1);
/* Retry-After of the answer in milliseconds, 0 if it does not say. */
int64_t exchange_retry_after_ms(const struct exchange *x) NONNULL(1);
/* Kernel's errno of a failed connection, 0 if there is none. */
int exchange_errno(const struct exchange *x) NONNULL(1);
/* libcurl's number for what is wrong with a certificate (of its TLS library), 0 if none. */
long exchange_verify_result(const struct exchange *x) NONNULL(1);
/* Status of a proxy that refused to connect us, 0 if none. */
long exchange_proxy_status(const struct exchange *x) NONNULL(1);

#endif
