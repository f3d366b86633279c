/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * Requests are worked on in processes of their own; what they count, they count in memory that was
 * mapped before they were forked. Codes of errors are constants of the program, so their addresses
 * are the same in all of them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include <osbx/clock.h>
#include <osbx/jsondec.h>
#include <osbx/sys.h>

#include "api_internal.h"
#include "handlers.h"
#include "metrics.h"

#define CODES_MAX 64

struct api_counters {
	_Atomic uint64_t creations[API_CREATION_COUNT];
	_Atomic uint64_t latency[API_BUCKETS];
	_Atomic uint64_t latency_sum_ms;
	_Atomic uint64_t stages_n;
	_Atomic uint64_t stage_us[STATE_STAGE_COUNT];
	_Atomic uint64_t requests;
	_Atomic uint64_t lag_max_us;
	struct {
		_Atomic(const char *) code;
		_Atomic uint64_t n;
	} errors[CODES_MAX];
};

/* Upper bounds in ms; the last bucket has none. */
static const uint64_t bounds[API_BUCKETS - 1] = { 5, 10, 25, 50, 100, 250, 1000, 5000, 20000 };

static const char *const creation_names[] = {
	[API_CREATION_OK] = "running",
	[API_CREATION_PENDING] = "pending",
	[API_CREATION_FAILED] = "failed",
};
_Static_assert(ARRAY_SIZE(creation_names) == API_CREATION_COUNT, "creation_names is complete");

struct api_counters *api_counters_new(void)
{
	void *p = mmap(NULL, sizeof(struct api_counters), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void api_counters_free(struct api_counters *c)
{
	if (c) {
		(void)munmap(c, sizeof(*c));
	}
}

void api_count_request(struct api_counters *c)
{
	atomic_fetch_add(&c->requests, 1);
}

void api_count_creation(struct api_counters *c, enum api_creation how, int64_t took_ms)
{
	uint64_t ms = took_ms > 0 ? (uint64_t)took_ms : 0;
	size_t i = 0;

	while (i < ARRAY_SIZE(bounds) && ms > bounds[i]) {
		i++;
	}
	atomic_fetch_add(&c->creations[how], 1);
	if (how == API_CREATION_OK) {
		atomic_fetch_add(&c->latency[i], 1);
		atomic_fetch_add(&c->latency_sum_ms, ms);
	}
}

void api_count_stages(struct api_counters *c, const int64_t *stage_us)
{
	atomic_fetch_add(&c->stages_n, 1);
	for (size_t i = 0; i < STATE_STAGE_COUNT; i++) {
		atomic_fetch_add(&c->stage_us[i], stage_us[i] > 0 ? (uint64_t)stage_us[i] : 0);
	}
}

void api_count_error(struct api_counters *c, const char *code)
{
	for (size_t i = 0; i < CODES_MAX; i++) {
		const char *there = NULL;

		/* Taken by us, or by another for the same code. */
		if (atomic_compare_exchange_strong(&c->errors[i].code, &there, code) ||
				there == code || strcmp(there, code) == 0) {
			atomic_fetch_add(&c->errors[i].n, 1);
			return;
		}
	}
}

void api_count_lag(struct api_counters *c, int64_t lag_us)
{
	uint64_t us = lag_us > 0 ? (uint64_t)lag_us : 0;
	uint64_t max = atomic_load(&c->lag_max_us);

	while (us > max && !atomic_compare_exchange_weak(&c->lag_max_us, &max, us)) {
	}
}

/* A text of bounded size: what does not fit is a mistake of ours, and seen in the answer. */
static void write_head(struct buf *out, const char *name, const char *kind, const char *help)
{
	(void)!buf_appendf(out, "# HELP osbx_%s %s\n# TYPE osbx_%s %s\n", name, help, name, kind);
}

static void write_creations(struct buf *out, const struct api_counters *c)
{
	uint64_t sum = 0;

	write_head(out, "creations_total", "counter", "Sandboxes asked for, by what became of it.");
	for (size_t i = 0; i < API_CREATION_COUNT; i++) {
		(void)!buf_appendf(out, "osbx_creations_total{result=\"%s\"} %" PRIu64 "\n",
				creation_names[i], atomic_load(&c->creations[i]));
	}
	write_head(out, "creation_seconds", "histogram", "From a request to a running sandbox.");
	for (size_t i = 0; i < API_BUCKETS; i++) {
		sum += atomic_load(&c->latency[i]);
		if (i < ARRAY_SIZE(bounds)) {
			(void)!buf_appendf(out,
					"osbx_creation_seconds_bucket{le=\"%" PRIu64 ".%03" PRIu64
					"\"} %" PRIu64 "\n",
					bounds[i] / 1000, bounds[i] % 1000, sum);
		}
	}
	(void)!buf_appendf(out,
			"osbx_creation_seconds_bucket{le=\"+Inf\"} %" PRIu64
			"\nosbx_creation_seconds_sum %" PRIu64 ".%03" PRIu64
			"\nosbx_creation_seconds_count %" PRIu64 "\n",
			sum, atomic_load(&c->latency_sum_ms) / 1000,
			atomic_load(&c->latency_sum_ms) % 1000, sum);
}

static void write_stages(struct buf *out, const struct api_counters *c)
{
	write_head(out, "creation_stage_seconds", "summary", "Stages of creations.");
	for (size_t i = 0; i < STATE_STAGE_COUNT; i++) {
		const char *name = state_stage_name((enum state_stage)i);
		uint64_t us = atomic_load(&c->stage_us[i]);

		(void)!buf_appendf(out,
				"osbx_creation_stage_seconds_sum{stage=\"%s\"} %" PRIu64
				".%06" PRIu64
				"\nosbx_creation_stage_seconds_count{stage=\"%s\"} %" PRIu64 "\n",
				name, us / 1000000, us % 1000000, name, atomic_load(&c->stages_n));
	}
}

static void write_errors(struct buf *out, const struct api_counters *c)
{
	write_head(out, "errors_total", "counter", "Answers with an error, by code.");
	for (size_t i = 0; i < CODES_MAX; i++) {
		const char *code = atomic_load(&c->errors[i].code);

		if (code) {
			(void)!buf_appendf(out, "osbx_errors_total{code=\"%s\"} %" PRIu64 "\n",
					code, atomic_load(&c->errors[i].n));
		}
	}
}

static void write_states(struct buf *out, const struct sandbox_list *l)
{
	uint64_t n[SANDBOX_STATE_COUNT] = { 0 };

	for (size_t i = 0; i < l->n; i++) {
		n[l->v[i].state.code]++;
	}
	write_head(out, "sandboxes", "gauge", "Sandboxes that there are, by state.");
	for (size_t i = 0; i < SANDBOX_STATE_COUNT; i++) {
		(void)!buf_appendf(out, "osbx_sandboxes{state=\"%s\"} %" PRIu64 "\n",
				state_name((enum sandbox_state_code)i), n[i]);
	}
}

static void metrics_work(struct api *api, struct http_req *rq)
{
	AUTO(sandbox_list) struct sandbox_list l = { .n = 0 };
	AUTO(buf) struct buf out = BUF_INIT(65536);
	struct api_counters *c = api->counters;
	struct error e = ERROR_INIT;

	if (sandbox_list(&api->dirs, true, &l, &e) < 0) {
		api_fail_error(rq, API_QUERY_FAILED, &e);
		return;
	}
	write_states(&out, &l);
	write_creations(&out, c);
	write_stages(&out, c);
	write_errors(&out, c);
	write_head(&out, "requests_total", "counter", "Requests.");
	(void)!buf_appendf(&out, "osbx_requests_total %" PRIu64 "\n", atomic_load(&c->requests));
	write_head(&out, "loop_lag_seconds_max", "gauge",
			"How late the event loop was at most since this was asked last.");
	uint64_t lag = atomic_exchange(&c->lag_max_us, 0);

	(void)!buf_appendf(&out, "osbx_loop_lag_seconds_max %" PRIu64 ".%06" PRIu64 "\n",
			lag / 1000000, lag % 1000000);
	http_reply(rq, 200, "text/plain; version=0.0.4; charset=utf-8", buf_span(&out));
}

void metrics_get(struct http_req *rq)
{
	api_work_start(rq, metrics_work);
}

/* What clients tell of their own creations is checked and dropped: nothing is made of it here. */
struct told {
	char *type;
	uint64_t duration_ms;
	bool success;
	char *sandbox;
	char *image;
};

static const struct jsondec_field told_fields[] = {
	{ "eventType", JSONDEC_STRING, offsetof(struct told, type), JSONDEC_REQUIRED, 0, NULL,
			NULL },
	{ "createDurationMs", JSONDEC_U64, offsetof(struct told, duration_ms), JSONDEC_REQUIRED,
			INT64_MAX, NULL, NULL },
	{ "success", JSONDEC_BOOL, offsetof(struct told, success), JSONDEC_REQUIRED, 0, NULL,
			NULL },
	{ "sandboxId", JSONDEC_STRING, offsetof(struct told, sandbox), 0, 0, NULL, NULL },
	{ "image", JSONDEC_STRING, offsetof(struct told, image), 0, 0, NULL, NULL },
	{ .name = NULL },
};

void metrics_events_post(struct http_req *rq)
{
	AUTO(json) struct json *body = api_body(rq, false);
	struct told t = { .type = NULL };
	struct refusal why = { .status = 0 };
	struct error e = ERROR_INIT;

	if (!body) {
		return;
	}
	int r = jsondec_object(body, told_fields, &t, &e);

	free(t.type);
	free(t.sandbox);
	free(t.image);
	if (r < 0) {
		(void)refuse_decoded(&why, &e);
		api_refuse(rq, &why);
		return;
	}
	api_empty(rq, 204);
}
