/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics - what the server and its workers count.
 */
#ifndef OSBX_API_METRICS_H
#define OSBX_API_METRICS_H

#include <stdint.h>

#include <osbx/compiler.h>

#define API_BUCKETS 10

enum api_creation {
	API_CREATION_OK,
	API_CREATION_PENDING,
	API_CREATION_FAILED,
	API_CREATION_COUNT,
};

struct api_counters;

/* Memory that processes forked later share; NULL with errno set. */
struct api_counters *api_counters_new(void) MUST_CHECK;
void api_counters_free(struct api_counters *c);
void api_count_request(struct api_counters *c) NONNULL(1);
void api_count_creation(struct api_counters *c, enum api_creation how, int64_t took_ms) NONNULL(1);
/* How long the stages of one took, by enum state_stage. */
void api_count_stages(struct api_counters *c, const int64_t *stage_us) NONNULL(1, 2);
/* code is of static duration. */
void api_count_error(struct api_counters *c, const char *code) NONNULL(1, 2);
void api_count_lag(struct api_counters *c, int64_t lag_us) NONNULL(1);

#endif
