/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   READY ──▶ RUNNING ──▶ verdict ── AGAIN ───────────────▶ READY      redirect, token, http
 *     ▲          │                ├─ RETRY ─▶ PAUSED ─────▶ READY      after a pause
 *     │          │                ├─ WANT ──▶ WANTING ────▶ READY      when the token is there
 *     │          │                ├─ FAIL ──▶ READY with the next host, or ENDED
 *   WANTING ◀────┘                └─ DONE ──▶ FEEDING ────▶ ENDED
 *
 * Every try begins at the registry's own address: what a redirect led to is signed for minutes
 * only. A blob's try begins where the last one stopped. Failures are counted in a row; a try that
 * brought PROGRESS_BYTES starts the count anew. Hosts are asked in order (mirrors, then the
 * registry itself); the next one is asked only when one has not what is wanted or does not
 * answer, any other failure is final.
 *
 * https is tried first, always. Where plain http is allowed (registries of this machine, those
 * that are not to be verified) it is tried when https is not answered at all, and kept once it
 * was.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "fetch_error.h"
#include "fetch_op.h"
#include "fetch_retry.h"
#include "fetch_url.h"

#define REDIRECTS_MAX    5
#define PROGRESS_BYTES   (32U << 10)
#define MIRROR_TRIES_MAX 2
#define STATUS_DENIED    401
#define STATUS_ABSENT    404
#define STATUS_NO_RANGE  416
#define STATUS_RATE      429

struct host *op_host(const struct op *op)
{
	return &op->f->hosts[op->host];
}

char *op_place(const struct op *op)
{
	return op->asked ? url_place(op->f->lib, op->asked) : mem_strdup(op_host(op)->rules->host);
}

int op_fail(struct op *op, enum errc errc, const char *what)
{
	autofree char *place = op_place(op);

	return error_set(&op->error, errc, "%s: %s: %s", op->label, place, what);
}

static struct failure failure_of(const struct op *op, const char *place)
{
	const struct credential *c = &op_host(op)->rules->credential;

	return (struct failure){
		.x = op->x,
		.label = op->label,
		.place = place,
		.domain = op->f->setup.domain,
		.has_credential = c->user || c->identity_token,
	};
}

int op_refuse(struct op *op)
{
	autofree char *place = op_place(op);
	struct failure failure = failure_of(op, place);

	return failure_of_status(&failure, &op->error);
}

static bool is_last_host(const struct op *op)
{
	return op->host + 1 == op->f->setup.hosts_n;
}

static void attempt_reset(struct op *op)
{
	free(op->url);
	op->url = NULL;
	op->redirects = 0;
	op->stage = OP_READY;
}

static void op_end(struct op *op)
{
	struct fetcher *f = op->f;

	op->stage = OP_ENDED;
	if (op->kind == OP_BLOB && op->error.code == ERRC_OK) {
		blob_close(&op->blob);
	}
	if (op->kind == OP_TOKEN) {
		token_settle(op);
	} else {
		f->on_end(f, op);
	}
}

static void op_finish(struct op *op)
{
	if (op->kind == OP_BLOB && !blob_is_over(&op->blob)) {
		op->stage = OP_FEEDING;
	} else {
		op_end(op);
	}
}

/* Its exchange is over, or broken off. */
static void transfer_end(struct op *op)
{
	if (op->kind == OP_BLOB) {
		op->f->transfers--;
		op_host(op)->transfers--;
	}
}

void op_feed(struct op *op)
{
	if (blob_feed(&op->blob, &op->error) < 0) {
		(void)error_wrap(&op->error, "%s", op->label);
		/* Nobody is left to download for. */
		if (op->stage == OP_RUNNING) {
			transfer_end(op);
			exchange_free(TAKE_PTR(op->x));
		}
		op_end(op);
	} else if (op->stage == OP_FEEDING && blob_is_over(&op->blob)) {
		op_end(op);
	}
}

/* A mirror without the content, or without an answer, is as if it were not there. */
static bool next_host(struct op *op)
{
	struct host *host = op_host(op);
	char text[FETCH_LOG_MAX];

	if (op->kind == OP_TOKEN || is_last_host(op) ||
			(op->error.code != ERRC_NOT_FOUND && op->error.code != ERRC_UNAVAILABLE)) {
		return false;
	}
	error_render(&op->error, text, sizeof(text));
	op->f->on_log(op->f, text);
	error_clear(&op->error);
	host->dead |= !host->settled;
	op->host++;
	op->tries = 0;
	op->refused = 0;
	op->no_range = false;
	attempt_reset(op);
	return true;
}

static void op_fail_here(struct op *op)
{
	assert(op->error.code != ERRC_OK);
	if (!next_host(op)) {
		op_end(op);
	}
}

static uint32_t tries_max(const struct op *op)
{
	const struct fetch_timing *t = &op->f->setup.timing;

	if (op_host(op)->settled) {
		return t->tries_max;
	}
	return is_last_host(op) ? t->tries_first_max : MIRROR_TRIES_MAX;
}

/* A limit that is counted in hours does not go away in a minute. */
static bool is_hopeless(const struct op *op, int64_t told_ms)
{
	return told_ms > op->f->setup.timing.retry_after_max_ms ||
	       (op->x->status == STATUS_RATE && retry_is_exhausted(op->x->head.remaining));
}

static void op_retry(struct op *op)
{
	const struct fetch_timing *t = &op->f->setup.timing;
	int64_t told_ms = exchange_retry_after_ms(op->x);
	uint32_t chance = 0;
	int64_t pause_ms = 0;
	char text[FETCH_LOG_MAX];

	if (++op->tries >= tries_max(op) || is_hopeless(op, told_ms)) {
		op_fail_here(op);
		return;
	}
	if (getrandom(&chance, sizeof(chance), 0) < 0) {
		chance = 0;
	}
	pause_ms = retry_pause_ms(t, op->tries, chance);
	pause_ms = told_ms > pause_ms ? told_ms : pause_ms;
	error_render(&op->error, text, sizeof(text));
	op->f->on_log(op->f, text);
	error_clear(&op->error);
	attempt_reset(op);
	if (!op_host(op)->settled) {
		op_host(op)->plain = false;
	}
	op->stage = OP_PAUSED;
	op->retry_ms = clock_boot_ms() + pause_ms;
}

static void verdict_apply(struct op *op, enum op_verdict verdict)
{
	switch (verdict) {
	case OP_VERDICT_AGAIN:
		op->stage = OP_READY;
		break;
	case OP_VERDICT_RETRY:
		op_retry(op);
		break;
	case OP_VERDICT_WANT:
		op->stage = OP_WANTING;
		break;
	case OP_VERDICT_FAIL:
		op_fail_here(op);
		break;
	case OP_VERDICT_DONE:
		op_finish(op);
		break;
	case OP_VERDICT_COUNT:
		assert(false);
	}
}

/* Did https fail in a way that a server of plain http makes it fail? Not by its certificate. */
static bool looks_plain(const struct op *op)
{
	const struct host *host = op_host(op);

	return op->kind != OP_TOKEN && op->home && host->rules->may_http && !host->settled &&
	       !op->plain && op->x->status == 0 && failure_may_pass(op->x) &&
	       op->x->code != CURLE_COULDNT_RESOLVE_HOST;
}

static enum op_verdict judge_network(struct op *op)
{
	autofree char *place = op_place(op);
	struct failure failure = failure_of(op, place);

	if (looks_plain(op)) {
		op_host(op)->plain = true;
		return OP_VERDICT_AGAIN;
	}
	(void)failure_of_network(&failure, &op->error);
	return failure_may_pass(op->x) ? OP_VERDICT_RETRY : OP_VERDICT_FAIL;
}

static enum op_verdict judge_redirect(struct op *op)
{
	char *url = NULL;
	int rc = -EINVAL;

	if (op->form) {
		/* A secret in the body goes nowhere else. */
		(void)op_fail(op, ERRC_DENIED, "it redirects a request with credentials");
		return OP_VERDICT_FAIL;
	}
	if (++op->redirects > REDIRECTS_MAX) {
		(void)op_fail(op, ERRC_INVALID, "it redirects too often");
		return OP_VERDICT_FAIL;
	}
	if (op->x->head.location) {
		rc = url_follow(op->f->lib, op->asked, op->x->head.location, &url);
	}
	if (rc == -EPERM) {
		(void)op_fail(op, ERRC_DENIED, "it redirects from https to http");
	} else if (rc == -EACCES) {
		(void)op_fail(op, ERRC_DENIED, "it redirects to an address with credentials");
	} else if (rc < 0) {
		(void)op_fail(op, ERRC_INVALID, "it redirects to an address that is not valid");
	}
	if (rc < 0) {
		return OP_VERDICT_FAIL;
	}
	free(op->url);
	op->url = url;
	return OP_VERDICT_AGAIN;
}

static enum op_verdict judge_status(struct op *op)
{
	const struct exchange *x = op->x;

	if (x->status / 100 == 2) {
		return op_classes[op->kind].on_success(op);
	}
	if (x->status / 100 == 3) {
		return judge_redirect(op);
	}
	if (x->status == STATUS_DENIED && op->kind != OP_TOKEN && op->home) {
		return token_challenged(op);
	}
	if (x->status == STATUS_ABSENT && op->kind == OP_PING) {
		(void)op_fail(op, ERRC_UNSUPPORTED, "it does not speak the registry API v2");
		return OP_VERDICT_FAIL;
	}
	if (x->status == STATUS_NO_RANGE && op->offset > 0) {
		op->no_range = true;
		(void)op_fail(op, ERRC_UNAVAILABLE, "the part asked for is not there");
		return OP_VERDICT_RETRY;
	}
	(void)op_refuse(op);
	return failure_may_pass(x) ? OP_VERDICT_RETRY : OP_VERDICT_FAIL;
}

static enum op_verdict judge(struct op *op)
{
	if (op->x->status > 0 && op->home && op->kind != OP_TOKEN) {
		op_host(op)->settled = true;
	}
	if (op->kind == OP_BLOB && op->blob.gained >= PROGRESS_BYTES) {
		op->tries = 0;
		op->refused = 0;
	}
	if (op->error.code != ERRC_OK) {
		/* Broken off by ourselves. */
		return op->error.code == ERRC_UNAVAILABLE ? OP_VERDICT_RETRY : OP_VERDICT_FAIL;
	}
	if (op->kind == OP_BLOB && blob_is_complete(&op->blob)) {
		return OP_VERDICT_DONE;
	}
	return op->x->code == CURLE_OK ? judge_status(op) : judge_network(op);
}

static int on_head(void *ctx, const struct exchange *x)
{
	struct op *op = ctx;

	return op_classes[op->kind].on_head(op, x);
}

static int on_body(void *ctx, struct span piece)
{
	struct op *op = ctx;

	return op_classes[op->kind].on_body(op, piece);
}

static void on_end(void *ctx)
{
	struct op *op = ctx;
	struct exchange *x = op->x;
	enum op_verdict verdict = OP_VERDICT_FAIL;

	transfer_end(op);
	verdict = judge(op);
	verdict_apply(op, verdict);
	op->x = NULL;
	exchange_free(x);
}

static int address(struct op *op, char **out_value)
{
	const struct op_class *class = &op_classes[op->kind];

	free(op->asked);
	op->asked = NULL;
	if (op->kind == OP_TOKEN && token_request(op, &op->asked, out_value) < 0) {
		return -1;
	}
	if (op->kind != OP_TOKEN) {
		op->asked = class->address(op);
	}
	return 0;
}

/* Where to, and with which Authorization: never to another host, port or scheme than the one that
 * asked for it. 1, 0: a token comes first, -1 with op->error. */
static int target(struct op *op, char **out_value)
{
	AUTO(auth_secret) char *value = NULL;
	const char *kept = NULL;
	int rc = 1;

	if (op->kind != OP_TOKEN) {
		rc = token_authorize(op, clock_boot_ms(), &kept);
	}
	if (rc <= 0 || address(op, &value) < 0) {
		return rc <= 0 ? rc : -1;
	}
	if (kept) {
		value = mem_strdup(kept);
	}
	op->home = !op->url || url_same_origin(op->f->lib, op->asked, op->url);
	if (!op->home) {
		auth_secret_free(TAKE_PTR(value));
	}
	if (op->url) {
		free(op->asked);
		op->asked = mem_strdup(op->url);
	}
	*out_value = TAKE_PTR(value);
	return 1;
}

static void start(struct op *op, const char *value)
{
	const struct op_class *class = &op_classes[op->kind];
	const struct fetch_timing *t = &op->f->setup.timing;
	const struct host *host = op_host(op);
	bool guess = !host->settled && host->rules->may_http && !host->plain;
	struct exchange_opts opts = {
		.url = op->asked,
		.rules = host->rules,
		.ca_path = host->ca_path[0] != '\0' ? host->ca_path : NULL,
		.authorization = value,
		.accept = class->accept,
		.form = op->form,
		.body_max = class->body_max,
		.connect_ms = guess ? t->probe_ms : t->connect_ms,
		.total_ms = class->is_small ? t->small_ms : 0,
		.on_head = class->on_head ? on_head : NULL,
		.on_body = class->on_body ? on_body : NULL,
		.on_end = on_end,
		.ctx = op,
	};

	op->plain = host->plain;
	op->sent = value != NULL;
	op->offset = op->kind == OP_BLOB && !op->no_range ? op->blob.have : 0;
	opts.offset = op->offset;
	op->blob.gained = 0;
	op->x = exchange_start(&op->f->client, &opts, &op->error);
	if (!op->x) {
		(void)error_wrap(&op->error, "%s", op->label);
		op_fail_here(op);
		return;
	}
	op->stage = OP_RUNNING;
	if (op->kind == OP_BLOB) {
		op->f->transfers++;
		op_host(op)->transfers++;
	}
}

static bool has_room(const struct op *op)
{
	const struct fetch_timing *t = &op->f->setup.timing;

	return op->kind != OP_BLOB ||
	       (op->f->transfers < t->transfers_max &&
			       op_host(op)->transfers < t->transfers_host_max);
}

static void attempt(struct op *op)
{
	AUTO(auth_secret) char *value = NULL;
	int rc = 0;

	while (op_host(op)->dead && !is_last_host(op)) {
		op->host++;
	}
	if (op->error.code != ERRC_OK) {
		/* The token that it wanted could not be had, or its file cannot be used. */
		op_fail_here(op);
		return;
	}
	if (op->kind == OP_BLOB && blob_is_complete(&op->blob)) {
		op_finish(op);
		return;
	}
	if (!has_room(op)) {
		return;
	}
	rc = target(op, &value);
	if (rc > 0) {
		start(op, value);
	} else if (rc == 0) {
		op->stage = OP_WANTING;
	} else {
		op_fail_here(op);
	}
}

static void op_free(struct op *op)
{
	exchange_free(op->x);
	if (op->kind == OP_BLOB) {
		blob_close(&op->blob);
	}
	free(op->label);
	free(op->name);
	free(op->url);
	free(op->asked);
	auth_secret_free(op->form);
	buf_done(&op->body);
	free(op);
}

struct op *op_new(struct fetcher *f, enum op_kind kind)
{
	struct op *op = mem_new(struct op);
	struct op **end = &f->ops;

	op->f = f;
	op->kind = kind;
	op->blob.part_fd = -1;
	op->blob.out_fd = -1;
	while (*end) {
		end = &(*end)->next;
	}
	*end = op;
	return op;
}

static void ops_sweep(struct fetcher *f)
{
	struct op **link = &f->ops;

	while (*link) {
		struct op *op = *link;

		if (op->stage == OP_ENDED) {
			*link = op->next;
			op_free(op);
		} else {
			link = &op->next;
		}
	}
}

int ops_run(struct fetcher *f, int64_t now_ms)
{
	int64_t wait_ms = -1;
	bool more = false;

	for (struct op *op = f->ops; op; op = op->next) {
		if (op->stage == OP_PAUSED && op->retry_ms <= now_ms) {
			op->stage = OP_READY;
		}
		if (op->stage == OP_READY) {
			attempt(op);
			more |= op->stage == OP_READY && has_room(op);
		}
		if (op->kind == OP_BLOB && op->stage != OP_ENDED) {
			op_feed(op);
		}
		if (op->stage == OP_PAUSED) {
			int64_t left = op->retry_ms - now_ms;

			wait_ms = wait_ms < 0 || left < wait_ms ? left : wait_ms;
		}
		more |= op->stage == OP_ENDED;
	}
	ops_sweep(f);
	if (more) {
		return 0;
	}
	return wait_ms > INT32_MAX ? INT32_MAX : (int)wait_ms;
}

/* libcurl takes certificates from a file only; a memfd is one. */
static int ca_file_make(struct host *host, struct error *e)
{
	const char *ca = host->rules->ca;
	int fd = ca ? fd_memfd_sealed("osbx-ca", ca, strlen(ca), false) : -1;

	if (ca && fd < 0) {
		return error_sys(e, -fd, "make a file of certificates");
	}
	if (ca) {
		(void)snprintf(host->ca_path, sizeof(host->ca_path), "/proc/self/fd/%d", fd);
	}
	return 0;
}

int fetcher_init(struct fetcher *f, const struct curl_lib *lib, struct fetch_setup *setup,
		struct error *e)
{
	f->lib = lib;
	f->setup = *setup;
	*setup = (struct fetch_setup)FETCH_SETUP_INIT;
	for (size_t i = 0; i < f->setup.hosts_n; i++) {
		f->hosts[i].rules = &f->setup.hosts[i];
		if (ca_file_make(&f->hosts[i], e) < 0) {
			return -1;
		}
	}
	return client_init(&f->client, lib, &f->setup, e);
}
