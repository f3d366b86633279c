/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: engine
 * egress - what is on record of a sandbox's private network: the policy that is in force, and the
 * token that changes it.
 *
 * egress.json in the live directory, for its owner alone; written by the keeper, before a policy is
 * in force. There is none for a sandbox with another kind of network.
 */
#ifndef OSBX_EGRESS_H
#define OSBX_EGRESS_H

#include <stdbool.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/dirs.h>
#include <osbx/error.h>
#include <osbx/id.h>
#include <osbx/json.h>
#include <osbx/netd.h>
#include <osbx/netpolicy.h>

#define EGRESS_FILE      "egress.json"
#define EGRESS_BYTES_MAX (4U << 20)
#define EGRESS_TOKEN     "OPENSANDBOX-EGRESS-AUTH" /* the field that carries it */

struct egress {
	struct netpolicy policy;
	bool has_ping;                  /* the machine lets the keeper have sockets for it */
	bool binds_names;               /* TLS and HTTP names must be those that were resolved */
	char token[NETD_TOKEN_MAX + 1]; /* of the policy API inside; a new one for each netd */
	char *closed;                   /* why nothing goes out any more; NULL: it is open */
};

void egress_done(struct egress *g);
AUTO_DEFINE(egress, struct egress, egress_done);
/* A new token. */
void egress_set_token(struct egress *g) NONNULL(1);
/* Replace the record below live_fd. */
int egress_save(const struct egress *g, int live_fd, struct error *e) MUST_CHECK NONNULL(1, 3);
/* Read it. ERRC_NOT_FOUND: the network is not private, or not made yet. */
int egress_load(int live_fd, struct egress *out_g, struct error *e) MUST_CHECK NONNULL(2, 3);
/* The same of a sandbox, alive or ended. */
int egress_find(const struct dirs *dirs, const struct id *id, struct egress *out_g,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
/* What people may see of it: "egress" of inspect. */
void egress_format(const struct egress *g, struct json_writer *w, const char *name) NONNULL(1, 2);

#endif
