/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netd_policy_api - the policy over HTTP, as the OpenSandbox egress sidecar serves it
 * (egress-api.yaml): GET, POST, PUT, PATCH and DELETE of /policy, GET /policy/denials?after=SEQ and
 * GET /healthz. Errors are text/plain.
 *
 * Every request but /healthz carries the token. Edits are made one after the other, each of what
 * the one before has left; a client that goes away changes nothing in that.
 */
#ifndef OSBX_POLICY_NETD_POLICY_API_H
#define OSBX_POLICY_NETD_POLICY_API_H

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/loop.h>
#include <osbx/netpolicy.h>

#include "netd_denials.h"

struct netd_policy_api;

struct netd_policy_api_opts {
	const char *token; /* not empty */
	/* What is in force; looked at when a request comes. */
	const struct netpolicy *(*policy)(void *ctx);
	/* Put another one in force (copied); netd_policy_api_changed comes later, never from
	 * within. */
	void (*change)(void *ctx, const struct netpolicy *to);
	const struct netd_denials *denials;
	void *ctx;
};

/* Serve on a listening socket (taken over). All that opts names is borrowed for its life. NULL with
 * errno. */
struct netd_policy_api *netd_policy_api_new(struct loop *loop, int listen_fd,
		const struct netd_policy_api_opts *opts) MUST_CHECK NONNULL(1, 3);
void netd_policy_api_free(struct netd_policy_api *a);
AUTO_DEFINE_PTR(netd_policy_api, struct netd_policy_api, netd_policy_api_free);
/* The change that was asked for is in force, or has failed (errnum) and the old policy still is. */
void netd_policy_api_changed(struct netd_policy_api *a, int errnum) NONNULL(1);

#endif
