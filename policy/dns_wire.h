/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: policy
 * dns_wire - numbers and names of DNS messages, read with a position that never leaves them.
 */
#ifndef OSBX_POLICY_DNS_WIRE_H
#define OSBX_POLICY_DNS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <osbx/compiler.h>
#include <osbx/span.h>

#include "dns.h"

#define DNS_HEAD_SIZE 12
#define DNS_CLASS_IN  1

/* Bits of the second pair of bytes. */
#define DNS_FLAG_QR     0x8000U
#define DNS_FLAG_TC     0x0200U
#define DNS_FLAG_RD     0x0100U
#define DNS_FLAG_RA     0x0080U
#define DNS_FLAG_CD     0x0010U
#define DNS_OPCODE_MASK 0x7800U
#define DNS_RCODE_MASK  0x000fU

/* A name in labels, not compressed. */
struct dns_name {
	uint8_t n;
	uint8_t wire[DNS_WIRE_MAX];
};

struct dns_head {
	uint16_t id;
	uint16_t flags;
	uint16_t questions, answers, authority, additional;
};

/* A record; data is borrowed from the message, and at is where it begins there. */
struct dns_record {
	struct dns_name owner;
	uint16_t type;
	uint16_t class;
	uint32_t ttl;
	size_t at;
	struct span data;
};

/* All move *at behind what they have read. 0 or -EBADMSG. */
int dns_read16(struct span m, size_t *at, uint16_t *out) MUST_CHECK NONNULL(2, 3);
int dns_read32(struct span m, size_t *at, uint32_t *out) MUST_CHECK NONNULL(2, 3);
int dns_read_head(struct span m, size_t *at, struct dns_head *out) MUST_CHECK NONNULL(2, 3);
int dns_read_name(struct span m, size_t *at, struct dns_name *out) MUST_CHECK NONNULL(2, 3);
int dns_read_record(struct span m, size_t *at, struct dns_record *out) MUST_CHECK NONNULL(2, 3);
/* The same name, whatever its case? */
bool dns_name_eq(const struct dns_name *a, const struct dns_name *b) NONNULL(1, 2);

#endif
