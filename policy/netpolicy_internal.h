/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: policy
 * netpolicy_internal - what the files of netpolicy share.
 */
#ifndef OSBX_POLICY_NETPOLICY_INTERNAL_H
#define OSBX_POLICY_NETPOLICY_INTERNAL_H

#include <osbx/netpolicy.h>

/* Read a target but "*" into a rule without action; the caller owns what is in it. ERRC_INVALID. */
int netpolicy_target(const char *target, struct netpolicy_rule *out, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* "tcp", "udp"; NULL for ANY. */
const char *netpolicy_proto_name(enum netpolicy_proto proto);
void netpolicy_rule_done(struct netpolicy_rule *r) NONNULL(1);
/* Append a rule, which is taken over. */
void netpolicy_push(struct netpolicy *p, const struct netpolicy_rule *r) NONNULL(1, 2);
/* Add a copy of a rule. */
void netpolicy_push_copy(struct netpolicy *p, const struct netpolicy_rule *r) NONNULL(1, 2);
/* The same target, however it is written? */
bool netpolicy_rule_same(const struct netpolicy_rule *a, const struct netpolicy_rule *b)
		NONNULL(1, 2);

#endif
