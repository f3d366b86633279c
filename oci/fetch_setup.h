/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch_setup - what the parent tells the fetch helper before it starts: whom to ask, by which
 * rules, with which credentials. Travels as bytes in a sealed memfd, never in argv or environment.
 */
#ifndef OSBX_OCI_FETCH_SETUP_H
#define OSBX_OCI_FETCH_SETUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <osbx/buf.h>
#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/registry.h>
#include <osbx/span.h>

#define FETCH_HOSTS_MAX       16
#define FETCH_CA_BYTES_MAX    (2U << 20) /* of one host, the system's certificates included */
#define FETCH_SETUP_BYTES_MAX (FETCH_HOSTS_MAX * FETCH_CA_BYTES_MAX + (1U << 20))

/* Times and counts of the network, in one place. */
struct fetch_timing {
	int64_t connect_ms; /* name, connection, TLS */
	int64_t probe_ms;   /* the same of https where plain http may be the answer */
	int64_t stall_s;    /* less than stall_bytes a second for so long is a failure */
	int64_t stall_bytes;
	int64_t small_ms;       /* a whole exchange that is no blob */
	int64_t backoff_min_ms; /* first pause */
	int64_t backoff_max_ms;
	int64_t retry_after_max_ms;  /* what we are willing to wait when told to */
	uint32_t tries_max;          /* in a row without progress */
	uint32_t tries_first_max;    /* the same with a host that never answered */
	uint32_t transfers_max;      /* blobs at once */
	uint32_t transfers_host_max; /* of one registry */
};

extern const struct fetch_timing fetch_timing_default;

struct fetch_host {
	char *host;       /* "registry-1.docker.io", "localhost:5000", "[::1]:5000" */
	char *repository; /* as that host has it: with the prefix of a mirror */
	bool verify;      /* certificates */
	bool may_http;    /* when https is not answered */
	char *ca;         /* PEM certificates to trust, or NULL: those libcurl was built for */
	struct credential credential;
};

struct fetch_setup {
	char *domain; /* of the reference, for people */
	char *name;   /* familiar name without tag, for people */
	size_t hosts_n;
	struct fetch_host hosts[FETCH_HOSTS_MAX]; /* mirrors in order, the registry itself last */
	char *http_proxy;                         /* as the variables have them, or NULL */
	char *https_proxy;
	char *no_proxy;
	struct fetch_timing timing;
};

#define FETCH_SETUP_INIT     \
	{                    \
		.hosts_n = 0 \
	}

void fetch_setup_done(struct fetch_setup *s);
AUTO_DEFINE(fetch_setup, struct fetch_setup, fetch_setup_done);
/* Fill it for domain/repository from configuration, files of certificates and the environment.
 * With pull_opts.tls_verify 0 only the registry itself is not verified, mirrors as configured. */
int fetch_setup_make(const struct ref *ref, const struct pull_opts *opts,
		const struct credential *credential, struct fetch_setup *out_setup,
		struct error *e) MUST_CHECK NONNULL(1, 2, 4, 5);
/* Is a host ("localhost:5000") this machine: localhost, 127.0.0.0/8 or [::1]? */
bool fetch_host_is_local(const char *host) NONNULL(1);
/* PEM certificates for a host: ca_file (or NULL), then HOST's directories under
 * /etc/docker/certs.d and /etc/containers/certs.d, together with the system's; *out_ca is NULL
 * when there is nothing but the system's. ERRC_INVALID, ERRC_LIMIT, ERRC_SYSTEM name the file. */
int fetch_ca_read(const char *host, const char *ca_file, char **out_ca, struct error *e) MUST_CHECK
		NONNULL(1, 3, 4);
/* The setup as bytes, and back. write: 0 or -EMSGSIZE; the bytes hold secrets (fetch_buf_wipe).
 * read: 0 or -EBADMSG. */
int fetch_setup_write(const struct fetch_setup *s, struct buf *out) NONNULL(1, 2) MUST_CHECK;
int fetch_setup_read(struct span bytes, struct fetch_setup *out_setup) NONNULL(2) MUST_CHECK;
/* Overwrite all bytes of a buffer, then free them. */
void fetch_buf_wipe(struct buf *b) NONNULL(1);

#endif
