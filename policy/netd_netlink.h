/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netd_netlink - messages to the kernel's network configuration: attributes, nests, answers.
 *
 * Only our own constants are written, so lengths are asserted; nothing the kernel answers is read
 * but its errors.
 */
#ifndef OSBX_POLICY_NETD_NETLINK_H
#define OSBX_POLICY_NETD_NETLINK_H

#include <stddef.h>
#include <stdint.h>

#include <osbx/compiler.h>

#define NETLINK_BYTES_MAX 8192

struct netlink {
	size_t n;
	size_t message; /* where the message that is being written begins */
	uint32_t seq;   /* of it; the first one has 1 */
	_Alignas(8) char bytes[NETLINK_BYTES_MAX];
};

/* Begin a message; NLM_F_REQUEST is added. head is the family's own header (struct ifaddrmsg …). */
void netlink_begin(struct netlink *nl, uint16_t type, uint16_t flags, const void *head,
		size_t head_n) NONNULL(1);
/* The message is complete. */
void netlink_end(struct netlink *nl) NONNULL(1);
void netlink_put(struct netlink *nl, uint16_t type, const void *data, size_t n) NONNULL(1);
void netlink_put_str(struct netlink *nl, uint16_t type, const char *s) NONNULL(1, 3);
/* In network order, as nf_tables has it. */
void netlink_put_be32(struct netlink *nl, uint16_t type, uint32_t v) NONNULL(1);
/* Open a nest; the result is for netlink_nest_end. */
size_t netlink_nest(struct netlink *nl, uint16_t type) NONNULL(1) MUST_CHECK;
void netlink_nest_end(struct netlink *nl, size_t nest) NONNULL(1);

/* Send all messages to the protocol (NETLINK_ROUTE …) in one piece and read what the kernel, which
 * does its work while they are sent, says to it: 0 when the message with this seq was acknowledged
 * (NLM_F_ACK) and none refused; -errno of the first that was, *out_seq is its number. */
int netlink_run(const struct netlink *nl, int protocol, uint32_t acked, uint32_t *out_seq)
		NONNULL(1, 4) MUST_CHECK;

#endif
