/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digest_set - which digests are in use.
 */
#ifndef OSBX_OCI_DIGEST_SET_H
#define OSBX_OCI_DIGEST_SET_H

#include <stdbool.h>
#include <stddef.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/digest.h>

struct digest_set {
	struct digest *slots; /* open addressing; "" is free */
	size_t n;
	size_t slots_n; /* 0 or a power of two, at most half full */
};

#define DIGEST_SET_INIT \
	{               \
		.n = 0  \
	}

void digest_set_done(struct digest_set *s);
AUTO_DEFINE(digest_set, struct digest_set, digest_set_done);
/* Add a digest that is not "". true if it is new. */
bool digest_set_add(struct digest_set *s, const struct digest *d) NONNULL(1, 2);
bool digest_set_has(const struct digest_set *s, const struct digest *d) NONNULL(1, 2);

#endif
