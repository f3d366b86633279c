/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/log.h>

#include "pull.h"

#define PIPE_BYTES    (256 << 10) /* what the unpacker reads at once */
#define LOCK_RETRY_MS 100
#define BLAME_WAIT_MS 5000

static void tell(const struct pull *p, size_t i, enum image_phase phase)
{
	const struct download *d = &p->downloads[i];

	if (p->progress && p->progress->on_layer) {
		p->progress->on_layer(
				p->progress->ctx, i, d->layer, phase, d->done, d->layer->size);
	}
}

/* What the unpacker reports: while bytes arrive, their number is what a person wants to see. */
static void on_layer(void *ctx, size_t i, const struct image_layer *layer, enum image_phase phase,
		uint64_t done, uint64_t total)
{
	struct pull *p = ctx;
	struct download *d = &p->downloads[i];
	bool arrives = d->stage == DOWNLOAD_WAITING || d->stage == DOWNLOAD_RUNNING;

	d->is_read = true;
	if (!p->progress || !p->progress->on_layer || (phase == IMAGE_PHASE_COPYING && arrives)) {
		return;
	}
	/* A layer whose blob alone was missing. */
	if (phase == IMAGE_PHASE_PRESENT && d->stage != DOWNLOAD_NONE) {
		phase = IMAGE_PHASE_DONE;
	}
	p->progress->on_layer(p->progress->ctx, i, layer, phase, done, total);
}

static int download_begin(struct pull *p, size_t i, struct error *e)
{
	struct download *d = &p->downloads[i];
	const struct fetch_blob blob = {
		.tag = (uint32_t)i,
		.digest = d->layer->blob,
		.size = d->layer->size,
		.part_fd = d->part.fd,
		.out_fd = d->pipe_fd,
	};

	d->done = part_size(&d->part);
	d->resumed = d->is_shared ? 0 : d->done;
	if (fetch_blob_begin(p->fetch, &blob, e) < 0) {
		return -1;
	}
	fd_close(&d->pipe_fd);
	d->stage = DOWNLOAD_RUNNING;
	tell(p, i, IMAGE_PHASE_FETCHING);
	return 0;
}

/* Get its part file if nobody else has it. */
static int download_try(struct pull *p, size_t i, struct error *e)
{
	struct download *d = &p->downloads[i];
	int r = part_open(p->st, p->partial_fd, d->layer, &d->part);

	if (r == -EWOULDBLOCK) {
		if (d->stage != DOWNLOAD_WAITING) {
			log_debug("blob %s: another process downloads it", d->layer->blob.text);
			d->stage = DOWNLOAD_WAITING;
			d->is_shared = true;
			tell(p, i, IMAGE_PHASE_WAITING);
		}
		return 0;
	}
	if (r < 0) {
		return error_sys(e, -r, "open %s/%s/%s", store_root(p->st), STORE_PARTIAL,
				digest_hex(&d->layer->blob));
	}
	return download_begin(p, i, e);
}

static int layer_open(void *ctx, size_t i, const struct image_layer *layer, struct error *e)
{
	struct pull *p = ctx;
	struct download *d = &p->downloads[i];
	autoclose int from_fd = -1;
	int fds[2] = { -1, -1 };
	int r = 0;

	if (p->partial_fd < 0) {
		p->partial_fd = part_dir_open(p->st);
	}
	if (p->partial_fd < 0) {
		return error_sys(e, -p->partial_fd, "open %s/%s", store_root(p->st), STORE_PARTIAL);
	}
	r = fd_pipe(fds, 0);
	if (r < 0) {
		return error_sys(e, -r, "make a pipe");
	}
	from_fd = fds[0];
	d->pipe_fd = fds[1];
	d->layer = layer;
	p->has_fetched = true;
	/* Less will do. */
	(void)fcntl(d->pipe_fd, F_SETPIPE_SZ, PIPE_BYTES);
	return download_try(p, i, e) < 0 ? -1 : TAKE_FD(from_fd);
}

/* Others wait for the lock, and need nothing but the bytes. */
static void download_look(struct pull *p, size_t i)
{
	struct download *d = &p->downloads[i];

	if (d->stage != DOWNLOAD_RUNNING || part_size(&d->part) < d->layer->size) {
		return;
	}
	part_unlock(&d->part);
	d->stage = DOWNLOAD_WHOLE;
	d->done = d->layer->size;
	if (!d->is_read) {
		tell(p, i, IMAGE_PHASE_FETCHING);
	}
}

static int failed(struct pull *p, size_t i, const struct error *cause, struct error *e)
{
	struct download *d = &p->downloads[i];

	part_unlock(&d->part);
	/* Whoever read the pipe says himself why he stopped. */
	if (cause->sysno == EPIPE) {
		d->stage = DOWNLOAD_DONE;
		return 0;
	}
	d->stage = DOWNLOAD_FAILED;
	*e = *cause;
	return -1;
}

static int event_take(struct pull *p, const struct fetch_event *event, struct error *e)
{
	struct download *d = event->tag < LIMIT_LAYERS ? &p->downloads[event->tag] : NULL;

	if (!d || (d->stage != DOWNLOAD_RUNNING && d->stage != DOWNLOAD_WHOLE)) {
		return 0;
	}
	if (event->kind == FETCH_EVENT_FAILED) {
		return failed(p, event->tag, &event->error, e);
	}
	d->done = event->done;
	download_look(p, event->tag);
	if (event->kind == FETCH_EVENT_DONE) {
		d->stage = DOWNLOAD_DONE;
	} else {
		tell(p, event->tag, IMAGE_PHASE_FETCHING);
	}
	return 0;
}

static int events_take(struct pull *p, struct error *e)
{
	for (;;) {
		struct fetch_event event;
		int r = fetch_next(p->fetch, &event, 0, e);

		if (r <= 0) {
			return r;
		}
		if (event_take(p, &event, e) < 0) {
			return -1;
		}
	}
}

static int locks_try(struct pull *p, struct error *e)
{
	int64_t now = clock_boot_ms();

	if (now - p->looked_ms < LOCK_RETRY_MS) {
		return 0;
	}
	p->looked_ms = now;
	for (size_t i = 0; i < LIMIT_LAYERS; i++) {
		struct download *d = &p->downloads[i];

		download_look(p, i);
		if (d->stage == DOWNLOAD_WAITING && download_try(p, i, e) < 0) {
			return -1;
		}
	}
	return 0;
}

static int pump(void *ctx, struct error *e)
{
	struct pull *p = ctx;

	if (pull_signals_look(&p->signals)) {
		return error_set(e, ERRC_UNAVAILABLE, "%s: interrupted", p->label);
	}
	return events_take(p, e) < 0 ? -1 : locks_try(p, e);
}

static bool is_under_way(const struct download *d)
{
	return d->stage == DOWNLOAD_RUNNING || d->stage == DOWNLOAD_WHOLE;
}

/* Until the download has come to its end: the unpacker that found fault with its bytes has read
 * them to their end, or they ended early. */
static int download_settle(struct pull *p, size_t i, struct error *e)
{
	int64_t deadline = clock_boot_ms() + BLAME_WAIT_MS;

	while (is_under_way(&p->downloads[i]) && clock_boot_ms() < deadline) {
		struct fetch_event event;
		int r = fetch_next(p->fetch, &event, deadline, e);

		if (r <= 0) {
			return r;
		}
		if (event_take(p, &event, e) < 0) {
			return -1;
		}
	}
	return 0;
}

/* Are the bytes those that the digest stands for? What is not whole cannot be told, and would be
 * gone on with: it goes. */
static void download_check(struct pull *p, size_t i, struct error *e)
{
	struct download *d = &p->downloads[i];
	struct digest got = { .text = "" };
	struct error better = ERROR_INIT;

	if (part_size(&d->part) == d->layer->size) {
		if (part_digest(&d->part, &got, &better) < 0 || digest_eq(&got, &d->layer->blob)) {
			return;
		}
		(void)error_set(&better, ERRC_INVALID, "%s: blob %s: its bytes have the digest %s",
				p->label, d->layer->blob.text, got.text);
		(void)error_hint(&better,
				"%s has a damaged copy, or it was damaged on the way: "
				"pull again",
				p->ref->domain);
		*e = better;
	}
	p->may_repeat |= d->resumed > 0 || d->is_shared;
	part_remove(p->partial_fd, &d->part, &d->layer->blob);
}

static void blame(void *ctx, size_t i, struct error *e)
{
	struct pull *p = ctx;
	struct error better = ERROR_INIT;

	/* Only what the bytes say is wrong: not a limit, a full disk, a helper that was killed. */
	if (e->code != ERRC_INVALID || p->downloads[i].part.fd < 0) {
		return;
	}
	if (download_settle(p, i, &better) < 0) {
		*e = better;
		return;
	}
	if (p->downloads[i].stage != DOWNLOAD_FAILED) {
		download_check(p, i, e);
	}
}

static int layer_publish(void *ctx, size_t i, struct error *e)
{
	struct pull *p = ctx;
	struct download *d = &p->downloads[i];
	int r = part_publish(p->st, p->partial_fd, &d->part, &d->layer->blob);

	return r < 0 ? error_sys(e, -r, "publish blob %s", d->layer->blob.text) : 0;
}

void pull_layers_init(struct pull *p)
{
	for (size_t i = 0; i < LIMIT_LAYERS; i++) {
		p->downloads[i].part = (struct part)PART_INIT;
		p->downloads[i].pipe_fd = -1;
	}
	p->partial_fd = -1;
	p->own = (struct image_progress){ .on_layer = on_layer, .ctx = p };
	p->remote = (struct blob_remote){
		.read = pull_read,
		.open = layer_open,
		.blame = blame,
		.publish = layer_publish,
		.feed = { .fd = -1, .pump = pump, .ctx = p },
		.ctx = p,
	};
}

void pull_layers_done(struct pull *p)
{
	for (size_t i = 0; i < LIMIT_LAYERS; i++) {
		struct download *d = &p->downloads[i];

		fd_close(&d->pipe_fd);
		/* A new one that got nothing is not worth keeping. */
		if (d->part.is_locked && part_size(&d->part) == 0) {
			part_remove(p->partial_fd, &d->part, &d->layer->blob);
		}
		part_close(&d->part);
	}
	fd_close(&p->partial_fd);
}
