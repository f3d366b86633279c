/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: engine
 * request - a validated wish for a sandbox, from the command line or JSON alike.
 */
#ifndef OSBX_REQUEST_H
#define OSBX_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <osbx/cgroup.h>
#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/json.h>
#include <osbx/netpolicy.h>
#include <osbx/ports.h>
#include <osbx/registry.h>
#include <osbx/spec.h>
#include <osbx/strv.h>

struct request_volume {
	char *src;     /* absolute host path; with beneath a path that begins with it */
	char *beneath; /* no link leads out of this directory; NULL: out of nothing */
	char *sub; /* path below src that is mounted instead, no link leads out of src; or NULL */
	char *dst; /* absolute path inside */
	bool read_only;
};

struct request_tmpfs {
	char *dst;
	uint64_t size; /* bytes; 0: kernel's default */
};

struct sandbox_request {
	char *image;         /* as the user wrote it */
	struct strv command; /* replaces the image's Cmd when not empty */
	char *entrypoint;    /* NULL: the image's; "": none; else one program */
	struct strv env;     /* NAME=VALUE */
	char *workdir;
	char *user;
	struct strv groups;
	char *hostname;
	char *name;
	struct strv labels;     /* K=V */
	struct strv extensions; /* K=V of an API client, shown to it again */
	bool sets_id;           /* OPENSANDBOX_ID in the environment */
	int64_t renew_ms; /* it lives at least so long after each access through serve; 0: no */
	size_t volumes_n;
	struct request_volume *volumes;
	size_t tmpfs_n;
	struct request_tmpfs *tmpfs;
	bool read_only;
	bool interactive;
	bool tty;
	bool keep;
	bool detach; /* a keeper of its own; the record stays until it is removed or expires */
	bool remove; /* nor does the record stay */
	bool isolation;
	enum spec_network network;
	size_t ports_n;
	struct port_map *ports;  /* that are published */
	bool has_policy;         /* of its own; needs a private network */
	struct netpolicy policy; /* of a private network */
	char *deny_webhook;      /* NULL: none; the operator's (osbx.conf(5)), of no client */
	bool any_name;           /* what TLS and HTTP call a server is not checked */
	uint64_t caps;           /* workload's mask */
	char *seccomp;           /* NULL or "default", "unconfined", or a file */
	char *platform;          /* NULL: this machine */
	enum pull_policy pull;
	int tls_verify;      /* of a pull; 1, 0, or -1: as configured */
	uint64_t unpack_max; /* 0: default */
	uint64_t shm_bytes;  /* 0: default */
	int64_t timeout_ms;  /* from its start; 0: none */
	struct cgroup_limits limits;
	int best_effort; /* run where a limit is not in force; 1, 0, or -1: as configured */
};

/* Defaults: network none, the default policy, capabilities caps_workload_default, a missing image
 * is pulled. */
void request_init(struct sandbox_request *r) NONNULL(1);
void request_done(struct sandbox_request *r);
AUTO_DEFINE(request, struct sandbox_request, request_done);
/* "SRC:DST[:ro|rw]" (SRC absolute, or relative beginning with "." or containing "/"; a bare name
 * would be a named volume, which does not exist yet: ERRC_INVALID says so). */
int request_add_volume(struct sandbox_request *r, const char *text, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* "DST[:SIZE]" or "DST:size=SIZE". */
int request_add_tmpfs(struct sandbox_request *r, const char *text, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* "NAME=VALUE", or "NAME": the caller's own value, nothing if it has none (docker, podman). */
int request_add_env(struct sandbox_request *r, const char *text, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* A file of such lines; '#' comments and blank lines. */
int request_add_env_file(struct sandbox_request *r, const char *path, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* As in ports.h. */
int request_add_port(struct sandbox_request *r, const char *text, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* Name of a kind of network, and back: "private", "none" or "host". 0 or -EINVAL. */
const char *request_network_name(enum spec_network network);
int request_network_from_name(const char *name, enum spec_network *out_network) MUST_CHECK
		NONNULL(1, 2);
/* Such a name. */
int request_set_network(struct sandbox_request *r, const char *text, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* A rule of the network policy, behind those that are there (netpolicy_add). */
int request_add_rule(struct sandbox_request *r, enum netpolicy_action action, const char *target,
		struct error *e) MUST_CHECK NONNULL(1, 3, 4);
/* Add or drop a capability by name, or "all". A capability outside what a sandbox can hold safely
 * is refused with the reason. */
int request_change_cap(struct sandbox_request *r, const char *name, bool add,
		struct error *e) MUST_CHECK NONNULL(1, 2, 4);
/* Decimal number of CPUs, thousandths at most: "0.5". */
int request_set_cpus(struct sandbox_request *r, const char *text, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* A size. */
int request_set_memory(struct sandbox_request *r, const char *text, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* A number of processes. */
int request_set_pids(struct sandbox_request *r, const char *text, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* "enforce" or "best-effort". */
int request_set_limits(struct sandbox_request *r, const char *text, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* Path of an image of a local transport, NULL for one that is known by name. Caller frees.
 * ERRC_INVALID for a malformed reference. */
int request_image_path(const char *image, char **out_path, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* Everything that can be said without an image: names, lengths, absolute destinations, duplicates,
 * host names (RFC 1123, at most 64), labels, -t without a terminal is the caller's to check. */
int request_validate(const struct sandbox_request *r, struct error *e) MUST_CHECK NONNULL(1, 2);
/* Write it as a JSON object: into request.json, and to the keeper it is handed to. */
void request_format(const struct sandbox_request *req, struct json_writer *w, const char *name)
		NONNULL(1, 2);
/* Read such an object, strictly, and validate it. ERRC_INVALID or ERRC_LIMIT. */
int request_parse(const struct json *v, struct sandbox_request *out_req, struct error *e) MUST_CHECK
		NONNULL(2, 3);

#endif
