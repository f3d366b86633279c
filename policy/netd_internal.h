/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netd_internal - the parts of netd and what they share. One process, one loop, one sandbox.
 */
#ifndef OSBX_POLICY_NETD_INTERNAL_H
#define OSBX_POLICY_NETD_INTERNAL_H

#include <osbx/loop.h>
#include <osbx/netd.h>
#include <osbx/netpolicy.h>

#include "netd_denials.h"
#include "netd_links.h"
#include "netd_names.h"
#include "netd_policy_api.h"

struct relay;
struct resolver;
struct datagrams;
struct dial;

struct netd {
	struct loop *loop;
	int control_fd; /* O_NONBLOCK: a keeper that is busy stops nobody who does not need it */
	struct loop_source control;
	struct netd_begin begin;
	bool has_begun;
	bool has_ipv6;
	struct netpolicy policy; /* in force */
	struct netpolicy next;   /* being put on record */
	bool is_changing;
	int64_t change_until_ms; /* it is sent by then, or fails */
	struct loop_source change_timer;
	int64_t told_ms; /* when events were first counted */
	unsigned int told_n;
	struct netd_denied told; /* the last one */
	struct loop_source told_timer;
	struct netd_denials denials;
	struct names names;
	struct dial *dials; /* oldest first */
	uint32_t dial_id;
	struct netd_policy_api *api;
	struct relay *relay;
	struct resolver *resolver;
	struct datagrams *datagrams;
	size_t dgram_flows_max;
};

/* netd.c: refuse; the record goes to the log, and to the keeper for events. */
void netd_deny(struct netd *n, const struct netd_denial *what) NONNULL(1, 2);

/* netd_confine.c: enter the namespaces, and what is there to be made; then, with the listening
 * sockets open, give up all rights for good. */
int confine_enter(int userns_fd, int netns_fd, struct error *e) MUST_CHECK NONNULL(3);
int confine_lock(int control_fd, struct error *e) MUST_CHECK NONNULL(2);

/* What a dial has become: fd (taken over, still connecting) or -errno; -EACCES: the keeper's own
 * check refused it. ident as in netd_dialed. */
typedef void (*dial_fn)(void *ctx, int fd_or_err, uint16_t ident);
/* netd_dial.c: sockets to the outside. done is called once, never from within. NULL when it cannot
 * even be asked. */
struct dial *dial_ask(struct netd *n, const struct netd_dial *what, dial_fn done,
		void *ctx) MUST_CHECK NONNULL(1, 2, 3);
/* The keeper takes packets again: send what waits for that. */
void dial_send(struct netd *n) NONNULL(1);
/* Nobody waits any more; done is not called. NULL is fine. */
void dial_drop(struct netd *n, struct dial *d) NONNULL(1);
/* An answer of the keeper's; fd is taken over. */
void dial_answer(struct netd *n, const struct netd_dialed *what, int fd) NONNULL(1, 2);

/* netd_resolver.c */
int resolver_start(struct netd *n, struct error *e) MUST_CHECK NONNULL(1, 2);
/* Other resolvers of the host; takes the sockets over. Questions under way are asked anew. */
void resolver_set(struct netd *n, const int *fds, size_t fds_n) NONNULL(1);
/* The policy has changed: nothing that was learned under the old one is told. */
void resolver_recheck(struct netd *n) NONNULL(1);

/* netd_relay.c */
int relay_start(struct netd *n, struct error *e) MUST_CHECK NONNULL(1, 2);
/* The policy has changed: cut what it forbids. */
void relay_recheck(struct netd *n) NONNULL(1);

/* netd_sockets.c: a socket of netd's on its own address ("192.0.0.1" …) and a port, O_NONBLOCK,
 * listening when it is a stream. fd or -errno. */
int socket_home(const char *addr, uint16_t port, int type) MUST_CHECK NONNULL(1);
/* Give it its number. 0 or -errno. */
int socket_fix(int *fd, enum netd_fixed which) MUST_CHECK NONNULL(1);
/* No number is left to what comes later. 0 or -errno. */
int socket_fix_rest(void) MUST_CHECK;
/* Close with a reset, so that the peer sees an error and no end. */
void socket_reset(int *fd) NONNULL(1);

#endif
