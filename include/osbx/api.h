/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: api
 * api - the OpenSandbox lifecycle API over the engine: a server without memory of its own.
 *
 * Each request is worked on in a process of its own (http_fork), which reads and writes the files
 * of sandboxes as a command does; the server's loop passes bytes, and reads single records. A
 * server that is killed takes its unanswered requests along and nothing else, and several serve the
 * same sandboxes.
 */
#ifndef OSBX_API_H
#define OSBX_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/request.h>
#include <osbx/strv.h>

/* A key that clients must show (OPEN-SANDBOX-API-KEY). */
struct api_key {
	char *name; /* for logs and limits */
	char *secret;
};

struct api_opts {
	struct strv listen;   /* unix:PATH, tcp:HOST:PORT; empty: the default socket */
	bool use_activation;  /* LISTEN_FDS are listeners too (sd_listen_fds(3)) */
	int64_t idle_exit_ms; /* end when so long nobody was connected; 0: never */
	struct api_key *keys; /* none: no authentication */
	size_t keys_n;
	struct strv host_paths; /* directories that volumes may lie below; normalised */
	int best_effort;        /* limits that cannot be enforced; 1, 0, or -1: as configured */
	int64_t create_wait_ms; /* then a create whose image is being pulled is answered Pending */
	uint64_t sandboxes_max; /* live ones of this user; 0: no limit */
	uint64_t key_sandboxes; /* live ones that were made with one key; 0: no limit */
	uint64_t key_rate;      /* creations a minute and key; 0: no limit */
	int64_t timeout_max_ms; /* longest timeout of a create; 0: no limit */
	enum spec_network network; /* of sandboxes */
	char *deny_webhook;        /* of sandboxes; or NULL */
	char *socket_group;        /* may connect to the default socket (0750, 0660); or NULL */
};

/* Nothing set but create_wait_ms 20 s and best_effort -1. */
void api_opts_init(struct api_opts *o) NONNULL(1);
void api_opts_done(struct api_opts *o);
AUTO_DEFINE(api_opts, struct api_opts, api_opts_done);
/* One more key; both are copied. Refused is a secret that no field of a request can hold. */
int api_opts_add_key(struct api_opts *o, const char *name, const char *secret,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
/* Keys of a file, one a line, "NAME:SECRET" or a secret alone; '#' comments. The file must not be
 * readable by others. */
int api_opts_add_key_file(struct api_opts *o, const char *path, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* Serve until SIGTERM or SIGINT (what is being answered is finished, 5 s at most) or until idle. A
 * TCP listener beyond the loopback without a key is refused. */
int api_serve(const struct api_opts *opts, struct error *e) MUST_CHECK NONNULL(1, 2);

#endif
