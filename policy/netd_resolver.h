/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netd_resolver - the parts of the resolver: who asks (netd_resolver.c by UDP, netd_asker.c by
 * TCP), what is known (netd_cache.c), and who is asked (netd_question.c).
 */
#ifndef OSBX_POLICY_NETD_RESOLVER_H
#define OSBX_POLICY_NETD_RESOLVER_H

#include <sys/socket.h>

#include "dns.h"
#include "netd_internal.h"

#define CACHE_SLOTS   256
#define QUESTIONS_MAX 512 /* under way at once */
#define ASKERS_MAX    64  /* connections of programs */

struct question;
struct asker;

/* Where a reply goes. */
struct reply_to {
	struct asker *asker; /* by TCP; NULL: by UDP, or nobody is there any more */
	int udp_fd;          /* borrowed; -1: not by UDP */
	socklen_t peer_n;
	struct sockaddr_storage peer;
};

struct cache_slot {
	char *name; /* NULL: empty */
	uint16_t type;
	int64_t since_ms;
	struct dns_answer answer;
};

struct upstream {
	struct resolver *r;
	int fd;          /* a UDP socket that the keeper has connected */
	uint16_t number; /* the keeper's, for a connection to the same one */
	struct loop_source src;
};

struct listener {
	struct resolver *r;
	int fd;
	struct loop_source src;
};

struct resolver {
	struct netd *n;
	struct listener udp[2];
	struct listener tcp[2];
	struct upstream upstreams[NETD_RESOLVERS_MAX];
	size_t upstreams_n;
	struct question *questions;
	size_t questions_n;
	struct asker *askers;
	size_t askers_n;
	int64_t looked_ms; /* when the keeper was asked for others last */
	struct cache_slot cache[CACHE_SLOTS];
};

/* netd_resolver.c: a message of a program's. Answered at once or later, by reply_send; false: it is
 * not worth an answer. */
bool resolver_take(struct resolver *r, struct span message, const struct reply_to *to,
		struct question **out_q) NONNULL(1, 3, 4);
/* Answer, in the light of the policy in force. */
void reply_send(struct resolver *r, const struct dns_query *q, const struct dns_answer *a,
		uint32_t age, const struct reply_to *to) NONNULL(1, 2, 3, 5);
/* May this address be in an answer? Public ones; others only with a rule of their own. */
bool resolver_keeps(void *ctx, const struct netaddr *a);
/* An answer from upstream: keep it, learn from it, pass it on. */
void resolver_learn(struct resolver *r, const struct dns_query *q, struct dns_answer *a,
		const struct reply_to *to) NONNULL(1, 2, 3, 4);

/* netd_cache.c. The cached answer and its age in seconds, or NULL. */
const struct dns_answer *cache_find(const struct resolver *r, const struct dns_query *q,
		uint32_t *out_age) NONNULL(1, 2, 3);
/* Takes a over. */
void cache_add(struct resolver *r, const struct dns_query *q, struct dns_answer *a)
		NONNULL(1, 2, 3);
void cache_purge(struct resolver *r) NONNULL(1);

/* netd_question.c. NULL: too many (SERVFAIL has been sent), or all is done already. */
struct question *question_ask(struct resolver *r, const struct dns_query *q,
		const struct reply_to *to) NONNULL(1, 2, 3);
/* A program has asked: has the host other resolvers by now? */
void question_look(struct resolver *r) NONNULL(1);
/* The program is gone: go on for the cache alone. */
void question_forget(struct question *q) NONNULL(1);
/* What has arrived at an upstream. */
void question_on_upstream(struct loop *loop, struct loop_source *src, uint32_t events);
/* The upstreams are others now. */
void question_restart_all(struct resolver *r) NONNULL(1);

/* netd_asker.c: programs that ask by TCP. */
void asker_on_listener(struct loop *loop, struct loop_source *src, uint32_t events);
/* The reply to what it asked last. */
void asker_reply(struct asker *a, struct span message) NONNULL(1);

#endif
