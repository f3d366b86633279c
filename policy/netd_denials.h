/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netd_denials - what was refused last, for people and programs that ask why.
 *
 * A ring: the newest NETD_DENIALS_MAX are kept, all are counted. The same refusal again within a
 * second is counted in the record that is there (a program that tries in a loop does not push out
 * everything else).
 */
#ifndef OSBX_POLICY_NETD_DENIALS_H
#define OSBX_POLICY_NETD_DENIALS_H

#include <stdbool.h>
#include <stdint.h>

#include <osbx/compiler.h>
#include <osbx/json.h>
#include <osbx/netpolicy.h>

#define NETD_DENIALS_MAX 256

struct netd_denial {
	uint64_t seq;    /* from 1 on */
	int64_t time_ms; /* of the last time, CLOCK_REALTIME */
	uint32_t times;
	char name[NETPOLICY_NAME_MAX + 1]; /* normal form, "": none is known */
	struct netaddr addr;               /* family 0: a question to the resolver */
	uint16_t port;
	enum netpolicy_proto proto;
	int rule;        /* index in the policy of that time, or NETPOLICY_BY_* */
	const char *why; /* NULL, or words of static duration: "the client named no host" */
	char target[NETPOLICY_TARGET_MAX]; /* of the rule, "" without one */
};

struct netd_denials {
	uint64_t last;  /* seq of the newest; 0: none yet */
	uint64_t total; /* all, repeated ones too */
	struct netd_denial ring[NETD_DENIALS_MAX];
};

/* Add one (seq, times and time_ms are filled in; the strings are copied). True when it is a record
 * of its own, for events. */
bool netd_denials_add(struct netd_denials *d, const struct netd_denial *what) NONNULL(1, 2);
/* {"denials":[…],"last":N,"total":N}: those with a seq above after, oldest first. */
void netd_denials_format(const struct netd_denials *d, uint64_t after, struct json_writer *w)
		NONNULL(1, 3);

#endif
