/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netd_names - which names have answered with which addresses.
 *
 * A binding lives as long as the answer may be kept and some time more: programs look a name up,
 * then connect. The newest NAMES_MAX stay.
 */
#ifndef OSBX_POLICY_NETD_NAMES_H
#define OSBX_POLICY_NETD_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <osbx/compiler.h>
#include <osbx/netaddr.h>

#define NAMES_MAX      4096
#define NAMES_BUCKETS  512
#define NAMES_GRACE_MS INT64_C(120000)
#define NAMES_TTL_MAX  3600 /* seconds: an address may belong to somebody else tomorrow */
#define NAMES_FOUND    32   /* of one address: what is looked at, newest first */

struct names_entry;

struct names {
	size_t n;
	struct names_entry *buckets[NAMES_BUCKETS]; /* by address, newest first */
	struct names_entry *oldest;
	struct names_entry *newest;
};

void names_done(struct names *t) NONNULL(1);
/* name (normal form) has answered with a, for ttl seconds; anew if it is there. */
void names_add(struct names *t, const char *name, const struct netaddr *a, uint32_t ttl,
		int64_t now_ms) NONNULL(1, 2, 3);
/* Names of an address, newest first; borrowed until names_add. Their number. */
size_t names_find(const struct names *t, const struct netaddr *a, int64_t now_ms,
		const char *out_names[NAMES_FOUND]) NONNULL(1, 2, 4);
/* Has this name answered with it? */
bool names_has(const struct names *t, const struct netaddr *a, const char *name, int64_t now_ms)
		NONNULL(1, 2, 3);

#endif
