/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netd_flow - one connection of a program's, led to the relay.
 */
#ifndef OSBX_POLICY_NETD_FLOW_H
#define OSBX_POLICY_NETD_FLOW_H

#include <osbx/buf.h>
#include <osbx/pump.h>

#include "netd_internal.h"
#include "sniff.h"

#define FLOW_HELD_MAX (64U << 10) /* bytes of a program that wait */
#define FLOW_BACK_MAX (32U << 10) /* of a server */

enum flow_stage {
	FLOW_GUESS,  /* what does the program speak? */
	FLOW_TLS,    /* its ClientHello is not complete */
	FLOW_HTTP,   /* every request is looked at */
	FLOW_OPAQUE, /* nothing is looked at (any more) */
	FLOW_STAGE_COUNT,
};

struct flow {
	struct flow *next; /* relay.flows */
	struct flow **at;  /* the pointer to this one */
	struct relay *r;
	struct netaddr addr; /* where the program wanted to go */
	uint16_t port;
	enum flow_stage stage;
	bool by_address; /* the address alone is allowed */
	bool is_decided; /* its bytes may go */
	char *by_name;   /* the name it is allowed by; NULL: none */
	bool is_proven; /* that name has answered with the address, and was said where it must be */

	int client_fd;
	int server_fd; /* -1: not yet */
	struct loop_source client;
	struct loop_source server;
	struct loop_source timer;
	struct dial *dial;
	struct pump *pump; /* has both sockets */
	bool is_up;        /* connected to the server */
	bool client_ended;
	bool server_ended;
	bool server_told; /* that the client has ended */
	bool client_told;

	union {
		struct sniff_tls tls;
		struct sniff_http http;
	} * sniff;
	size_t fed;      /* bytes of held that sniff has seen */
	struct buf held; /* of the program, undecided */
	struct buf out;  /* of the program, for the server */
	struct buf back; /* of the server, for the program */
};

struct relay {
	struct netd *n;
	int fd[2];
	struct loop_source src[2];
	struct loop_source pause; /* descriptors are short */
	struct flow *flows;
	size_t flows_n;
	size_t flows_max;
};

/* netd_verdict.c: may the flow be made, and with whom? These log what they refuse; false: reset it.
 */
bool verdict_accept(struct flow *f) NONNULL(1);
/* The program has said a name (normal form; "": an address), or (why) has said none. */
bool verdict_name(struct flow *f, const char *name) NONNULL(1, 2);
bool verdict_no_name(struct flow *f, const char *why) NONNULL(1, 2);
/* Under the policy that has come in force. */
bool verdict_again(struct flow *f) NONNULL(1);
/* Do names that programs say count, on any port? */
bool verdict_looks(const struct netd *n) NONNULL(1);
bool verdict_is_web(uint16_t port);
/* Log that it was refused. name may be NULL or "". */
void verdict_log(const struct flow *f, int rule, const char *name, const char *why) NONNULL(1);

/* netd_flow.c. Takes client_fd over. */
void flow_begin(struct relay *r, int client_fd, const struct netaddr *addr, uint16_t port)
		NONNULL(1, 3);
/* End it with resets. */
void flow_cut(struct flow *f) NONNULL(1);

/* netd_inspect.c: look at what the program has sent (f->held) and let go what may. false: the flow
 * is to be cut (it has been logged). */
bool inspect(struct flow *f) NONNULL(1) MUST_CHECK;

#endif
