/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch_retry - when to try again, and what answers say about ranges and rates. Pure.
 */
#ifndef OSBX_OCI_FETCH_RETRY_H
#define OSBX_OCI_FETCH_RETRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <osbx/compiler.h>

#include "fetch_setup.h"

#define RETRY_RANGE_UNKNOWN UINT64_MAX

/* Pause before the next try after tries failures (1 or more) in a row: doubled each time, and up
 * to half as much again by chance (random), so that many clients do not come back together. */
int64_t retry_pause_ms(const struct fetch_timing *t, uint32_t tries, uint32_t random) NONNULL(1);

struct retry_range {
	uint64_t first; /* RETRY_RANGE_UNKNOWN in the answer of a 416 */
	uint64_t last;
	uint64_t total; /* RETRY_RANGE_UNKNOWN: "*" */
};

/* Read a Content-Range: "bytes 10-99/100", "bytes 10-99/" and "*", "bytes " and "*" and "/100".
 * 0 or -EINVAL. */
int retry_range_parse(const char *field, struct retry_range *out_range) NONNULL(1, 2) MUST_CHECK;
/* Make "100;w=21600" of ratelimit-limit readable: "100 pulls in 6 hours", always terminated. false
 * when the field does not say. */
bool retry_limit_text(const char *field, char *out, size_t out_size) NONNULL(2);
/* Does ratelimit-remaining say that there is nothing left? */
bool retry_is_exhausted(const char *field);

#endif
