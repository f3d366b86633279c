/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: engine
 * keeper_net - the keeper's half of a private network (netd.h): starts netd, opens its sockets,
 * records its policy.
 */
#ifndef OSBX_KEEPER_NET_H
#define OSBX_KEEPER_NET_H

#include <stdbool.h>
#include <stdint.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/loop.h>
#include <osbx/netd.h>
#include <osbx/netpolicy.h>

struct keeper_net;

struct keeper_net_opts {
	const struct netpolicy *policy; /* copied */
	bool binds_names;
	const char *token; /* of the first netd (egress_set_token); copied */
	/* Something was refused; NULL allowed. */
	void (*on_denied)(void *ctx, const struct netd_denied *denied);
	void *ctx;
};

/* Start netd, which waits for its sandbox meanwhile. NULL on failure. */
struct keeper_net *keeper_net_new(const struct keeper_net_opts *opts, struct error *e) MUST_CHECK
		NONNULL(1, 2);
/* The namespaces are there, and the live directory (-1: for a try): put the policy on record and
 * tell netd. All
 * descriptors are borrowed for the life of this. */
int keeper_net_begin(struct keeper_net *n, int live_fd, int userns_fd, int netns_fd,
		struct error *e) MUST_CHECK NONNULL(1, 5);
/* Wait until the network is what the policy says: before that nothing of the guest may run. */
int keeper_net_wait(struct keeper_net *n, struct error *e) MUST_CHECK NONNULL(1, 2);
/* Serve netd from now on, and start it again when it has died: meanwhile the network is closed, and
 * for good when it happens too often. 0 or -errno. */
int keeper_net_start(struct keeper_net *n, struct loop *loop) MUST_CHECK NONNULL(1, 2);
/* How often something was refused. */
uint64_t keeper_net_denied(const struct keeper_net *n) NONNULL(1);
/* Kill netd, and serve no longer. */
void keeper_net_stop(struct keeper_net *n);
/* The same, for good; its end is not waited for. */
void keeper_net_free(struct keeper_net *n);
AUTO_DEFINE_PTR(keeper_net, struct keeper_net, keeper_net_free);

#endif
