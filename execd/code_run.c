/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   (waits for the interpreter) ── code_run_go ──▶ running ── code_run_finished ──▶ gone
 *            │                      init, ping        │         complete, unless there was an error
 *            └─────────── code_run_refuse: a status   └── code_run_abort: error
 *
 * Whoever reads the events may leave at any moment; then the run is interrupted, for nobody will
 * learn what comes of it. An interrupt is a request to the interpreter: most go on with their
 * state. One that does not within CODE_GRACE_MS is killed.
 */
#include <stdlib.h>
#include <string.h>

#include <osbx/clock.h>
#include <osbx/mem.h>

#include "code_internal.h"
#include "command_internal.h"

#define PING_MS   3000
#define ERROR_MAX (4U << 20)
#define OUT_KEEP  (512U << 10)

static const char *const text_types[2] = { "stdout", "stderr" };

static struct loop *loop_of(const struct code_run *r)
{
	return r->context->codes->execd->loop;
}

static struct events events_begin(const struct code_run *r)
{
	return events_of(&r->context->codes->out, r->eid, clock_wall_ms());
}

static void events_send(struct code_run *r, const struct events *ev)
{
	struct buf *out = ev->out;

	r->eid = ev->eid;
	if (r->rq && out->n > 0) {
		http_write(r->rq, buf_span(out));
	}
	buf_reset(out);
	if (out->cap > OUT_KEEP) {
		buf_done(out);
	}
}

/* What was cut is a character no more when something else follows. */
static void texts_end(struct code_run *r, struct events *ev)
{
	for (size_t i = 0; i < ARRAY_SIZE(r->texts); i++) {
		event_piece_end(ev, text_types[i], &r->texts[i]);
	}
}

static void ping_on_time(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct code_run *r = container_of(src, struct code_run, ping);

	(void)events;
	loop_timer(loop, src, clock_boot_ms() + PING_MS, ping_on_time);
	if (r->rq && http_pending(r->rq) < CODE_PENDING_MAX) {
		struct events ev = events_begin(r);

		event_ping(&ev);
		events_send(r, &ev);
	}
}

static void run_begin_events(struct code_run *r)
{
	if (r->has_begun) {
		return;
	}
	struct events ev = events_begin(r);

	r->has_begun = true;
	if (r->rq) {
		command_begin_events(r->rq);
	}
	event_init(&ev, r->context->id.text);
	event_ping(&ev);
	loop_timer(loop_of(r), &r->ping, clock_boot_ms() + PING_MS, ping_on_time);
	events_send(r, &ev);
}

static void run_end(struct code_run *r)
{
	struct http_req *rq = TAKE_PTR(r->rq);
	struct http_req *ender = TAKE_PTR(r->ender);

	r->context->run = NULL;
	loop_remove(loop_of(r), &r->ping);
	loop_remove(loop_of(r), &r->deadline);
	free(r->code);
	free(r);
	if (rq) {
		http_end(rq);
	}
	if (ender) {
		api_ok(ender);
	}
}

static void error_send(
		struct code_run *r, const char *ename, const char *evalue, const struct json *trace)
{
	AUTO(buf) struct buf json = BUF_INIT(ERROR_MAX);
	struct json_writer w = JSON_WRITER(&json);
	struct events ev = events_begin(r);

	json_object_begin(&w, NULL);
	json_add_string(&w, "ename", ename);
	json_add_string(&w, "evalue", evalue);
	json_array_begin(&w, "traceback");
	json_for_each(line, trace) {
		if (json_is_string(line)) {
			json_add_value(&w, NULL, line);
		}
	}
	json_array_end(&w);
	json_object_end(&w);
	texts_end(r, &ev);
	if (w.failed) {
		event_error(&ev, ename, "the error is too large to be told", "");
	} else {
		event_json(&ev, "error", "error", buf_span(&json));
	}
	event_status(&ev, "error");
	r->has_error = true;
	events_send(r, &ev);
}

void code_run_abort(struct code_run *r, const char *ename, const char *evalue)
{
	run_begin_events(r);
	error_send(r, ename, evalue, NULL);
	run_end(r);
}

void code_run_refuse(struct code_run *r, const struct error *e)
{
	struct http_req *rq = r->has_begun ? NULL : TAKE_PTR(r->rq);

	if (rq) {
		code_fail(rq, e);
		run_end(r);
	} else {
		code_run_abort(r, CODE_KERNEL_DIED, e->text);
	}
}

/* The interpreter has had its chance. */
static void kill_run(struct code_run *r, const char *why)
{
	const char *ename = r->is_timed_out ? CODE_KERNEL_TIMEOUT : CODE_KERNEL_INTERRUPTED;
	autofree char *text = mem_printf(
			"%s, and the interpreter was killed; its variables are lost, the next run "
			"starts anew",
			why);

	code_context_kill(r->context);
	code_run_abort(r, ename, text);
}

/* When the interpreter is told again, 0 for never. bash between fork() and execve() has the signal
 * and forgets it, and it ignores one that comes while a child of it ends in order; java does
 * between two statements; an exception of python or ruby that strikes in a finalizer goes no
 * further. (node is the contrary: two for one script, and one of them is for the next.) */
static unsigned int again_ms(const struct code_run *r)
{
	const struct code_lang *lang = code_lang_find(r->context->language);

	return r->context->backend == &code_backend_driver && lang ? lang->again_ms : 0;
}

static void grace_on_time(struct loop *loop, struct loop_source *src, uint32_t events);

static void interrupt(struct code_run *r)
{
	unsigned int again = again_ms(r);
	int64_t now = clock_boot_ms();
	int64_t next = again > 0 && now + again < r->grace_end_ms ? now + again : r->grace_end_ms;

	loop_timer(loop_of(r), &r->deadline, next, grace_on_time);
	r->context->backend->interrupt(r->context);
}

static void grace_on_time(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct code_run *r = container_of(src, struct code_run, deadline);

	(void)loop;
	(void)events;
	if (clock_boot_ms() < r->grace_end_ms) {
		interrupt(r);
	} else {
		kill_run(r, "the code went on after an interrupt");
	}
}

void code_run_interrupt(struct code_run *r)
{
	if (!r->is_running) {
		kill_run(r, "the run was interrupted before it began");
		return;
	}
	if (r->is_interrupted) {
		return;
	}
	r->is_interrupted = true;
	r->grace_end_ms = clock_boot_ms() + CODE_GRACE_MS;
	interrupt(r);
	/* What waits for the client would keep the code from hearing it; this may be the end of r.
	 */
	r->context->backend->resume(r->context);
}

static void timeout_on_time(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct code_run *r = container_of(src, struct code_run, deadline);

	(void)loop;
	(void)events;
	r->is_timed_out = true;
	code_run_interrupt(r);
}

static void gone_on_time(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct code_run *r = container_of(src, struct code_run, deadline);
	struct code_context *c = r->context;

	(void)loop;
	(void)events;
	if (r->is_running) {
		c->backend->resume(c); /* nobody holds it up any more; it may end by that */
	}
	if (c->run == r) {
		code_run_interrupt(r);
	}
}

/* It may be noticed within one of our own writes. */
static void rq_on_close(struct http_req *rq)
{
	struct code_run *r = rq->ctx;

	r->rq = NULL;
	if (!r->is_interrupted) {
		loop_timer(loop_of(r), &r->deadline, clock_boot_ms(), gone_on_time);
	}
}

static void rq_on_drain(struct http_req *rq)
{
	const struct code_run *r = rq->ctx;

	if (r->is_running) {
		r->context->backend->resume(r->context);
	}
}

void code_run_go(struct code_run *r)
{
	run_begin_events(r);
	r->is_running = true;
	r->context->backend->run(r->context);
}

void code_run_begin(struct code_context *c, struct http_req *rq, const struct code_run *init)
{
	struct code_run *r = mem_new(struct code_run);

	*r = *init;
	r->context = c;
	r->rq = rq;
	r->started_boot_ms = clock_boot_ms();
	c->run = r;
	rq->ctx = r;
	rq->on_close = rq_on_close;
	rq->on_drain = rq_on_drain;
	if (c->lost) {
		autofree char *lost = TAKE_PTR(c->lost);

		code_run_abort(r, CODE_KERNEL_DIED, lost);
		return;
	}
	if (r->timeout_ms > 0) {
		loop_timer(loop_of(r), &r->deadline, clock_boot_ms() + r->timeout_ms,
				timeout_on_time);
	}
	struct error e = ERROR_INIT;

	if (c->stage == CODE_ABSENT && code_context_start(c, &e) < 0) {
		code_run_refuse(r, &e);
	} else if (c->stage == CODE_STARTED) {
		code_run_go(r);
	}
}

static bool has_enough(const struct code_run *r)
{
	return r->rq && http_pending(r->rq) >= CODE_PENDING_MAX;
}

/* The output of a run that is interrupted is dropped instead. */
bool code_run_must_wait(const struct code_run *r)
{
	return has_enough(r) && !r->is_interrupted;
}

void code_run_text(struct code_run *r, bool is_stderr, struct span text)
{
	struct events ev = events_begin(r);

	if (has_enough(r) && r->is_interrupted) {
		return;
	}
	event_piece(&ev, text_types[is_stderr], &r->texts[is_stderr], text);
	events_send(r, &ev);
}

void code_run_result(struct code_run *r, const struct json *bundle, const uint64_t *count)
{
	AUTO(buf) struct buf json = BUF_INIT((size_t)2 * CODE_BUNDLE_MAX);
	struct json_writer w = JSON_WRITER(&json);
	struct events ev = events_begin(r);

	if (has_enough(r) && r->is_interrupted) {
		return;
	}
	texts_end(r, &ev);
	if (count) {
		event_count(&ev, *count);
	}
	json_object_begin(&w, NULL);
	json_for_each(member, bundle) {
		bool is_text = strcmp(json_name(member), "text/plain") == 0;

		json_add_value(&w, is_text ? "text" : json_name(member), member);
	}
	json_object_end(&w);
	event_json(&ev, "result", "results",
			w.failed ? span_of("{\"text\":\"(the result is too large)\"}")
				 : buf_span(&json));
	events_send(r, &ev);
}

void code_run_error(
		struct code_run *r, const char *ename, const char *evalue, const struct json *trace)
{
	autofree char *timed_out = NULL;

	if (r->is_timed_out) {
		timed_out = mem_printf("timed out after %lld ms; variables are kept",
				(long long)r->timeout_ms);
		ename = CODE_KERNEL_TIMEOUT;
		evalue = timed_out;
	}
	error_send(r, ename, evalue, trace);
}

void code_run_finished(struct code_run *r)
{
	struct events ev = events_begin(r);

	texts_end(r, &ev);
	if (!r->has_error) {
		event_complete(&ev, clock_boot_ms() - r->started_boot_ms);
	}
	events_send(r, &ev);
	run_end(r);
}
