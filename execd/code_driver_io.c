/* SPDX-License-Identifier: Apache-2.0 */
/* What comes from a driver: text by its pipes, frames by its channel. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/mem.h>

#include "code_driver.h"

#define READ_ROUNDS 16           /* then others have their turn */
#define LAST_READS  64           /* more than a socket holds */
#define HANGUP_MS   2000         /* between the end of a channel and that of its driver */
#define IN_MAX      (256U << 20) /* of all drivers: frames that have not all come */
#define LEFT_OUT \
	"{\"text/plain\":\"(a result that is too deep or has too many parts is left out)\"}"

static struct code_run *run_of(const struct driver *d)
{
	return d->context ? d->context->run : NULL;
}

static bool must_wait(const struct driver *d)
{
	const struct code_run *r = run_of(d);

	return r && r->is_running && code_run_must_wait(r);
}

static void channel_close(struct driver *d)
{
	loop_remove(d->execd->loop, &d->channel);
	fd_close(&d->channel_fd);
}

static void pipe_close(struct pipe_end *p)
{
	loop_remove(p->driver->execd->loop, &p->src);
	fd_close(&p->fd);
}

/* The first n bytes of what the channel brought. */
static void in_drop(struct driver *d, size_t n)
{
	codes_of(d->execd)->in_sum -= n;
	buf_consume(&d->in, n);
	if (d->in.n == 0) {
		buf_done(&d->in);
	}
}

void driver_close(struct driver *d)
{
	loop_remove(d->execd->loop, &d->hangup);
	channel_close(d);
	pipe_close(&d->pipes[0]);
	pipe_close(&d->pipes[1]);
}

/* Write what the driver is owed. */
static void out_flush(struct driver *d)
{
	while (d->channel_fd >= 0 && d->out.n > 0) {
		ssize_t n = send(d->channel_fd, d->out.p, d->out.n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n <= 0) {
			break; /* full; or gone, which its end will tell */
		}
		buf_consume(&d->out, (size_t)n);
	}
	if (d->out.n == 0) {
		buf_done(&d->out);
	}
}

static void out_put(struct driver *d, char kind, struct span payload)
{
	/* At most one run and one acknowledgement are on their way. */
	if (buf_appendf(&d->out, "%c %zu\n", kind, payload.n) < 0 ||
			buf_append(&d->out, payload.p, payload.n) < 0) {
		buf_reset(&d->out);
	}
	out_flush(d);
}

static void text_take(struct pipe_end *p, struct span text)
{
	struct driver *d = p->driver;
	struct code_run *r = run_of(d);

	if (r && r->is_running) {
		code_run_text(r, p == &d->pipes[1], text);
	} else if (p->late.n < CODE_LATE_MAX) {
		size_t room = CODE_LATE_MAX - p->late.n;

		(void)!buf_append(&p->late, text.p, text.n < room ? text.n : room);
	}
}

/* One read of at most so many bytes. How many there were. */
static size_t pipe_read(struct pipe_end *p, size_t most)
{
	static char bytes[CODE_READ_BYTES];
	size_t want = most < sizeof(bytes) ? most : sizeof(bytes);
	ssize_t n = p->fd < 0 ? -EAGAIN : fd_read(p->fd, bytes, want);

	if (n > 0) {
		p->seen -= p->seen < (size_t)n ? p->seen : (size_t)n;
		text_take(p, (struct span){ .p = bytes, .n = (size_t)n });
		return (size_t)n;
	}
	if (n != -EAGAIN) {
		pipe_close(p);
	}
	return 0;
}

static size_t pipe_bytes(const struct pipe_end *p)
{
	int n = 0;

	return p->fd >= 0 && ioctl(p->fd, FIONREAD, &n) == 0 ? (size_t)n : 0;
}

/* What was there before the channel was read, so that no text overtakes a frame that was sent
 * before it was written. */
static void seen_read(struct driver *d)
{
	for (size_t i = 0; i < ARRAY_SIZE(d->pipes); i++) {
		struct pipe_end *p = &d->pipes[i];

		while ((p->seen > 0 || p->is_hung) && p->fd >= 0 && !must_wait(d)) {
			if (pipe_read(p, p->is_hung ? SIZE_MAX : p->seen) == 0) {
				p->seen = 0;
			}
		}
	}
}

/* What is in the pipes now; somebody else may write to them for ever. */
static void owed_note(struct driver *d)
{
	d->pipes[0].owed = pipe_bytes(&d->pipes[0]);
	d->pipes[1].owed = pipe_bytes(&d->pipes[1]);
}

/* Read that. False: the client must take something first. */
static bool owed_read(struct driver *d)
{
	bool is_read = true;

	for (size_t i = 0; i < ARRAY_SIZE(d->pipes); i++) {
		struct pipe_end *p = &d->pipes[i];

		while (p->owed > 0 && !must_wait(d)) {
			size_t n = pipe_read(p, p->owed);

			p->owed = n > 0 ? p->owed - n : 0;
		}
		is_read = is_read && p->owed == 0;
	}
	return is_read;
}

/* It is killed, and told to end as one that has ended. */
static void fault(struct driver *d, const char *what)
{
	struct code_context *c = d->context;
	autofree char *text = mem_printf("the driver broke its protocol (%s) and was killed", what);

	code_ended(c, CODE_KERNEL_PROTOCOL, text);
}

/* What cannot be read is too deep or has too many parts, more likely than a fault. */
static void frame_bundle(struct driver *d, const struct code_frame *f)
{
	struct error e = ERROR_INIT;
	struct error none = ERROR_INIT;
	AUTO(json) struct json *bundle = json_parse(f->payload, &e);
	AUTO(json) struct json *instead = json_parse(span_of(LEFT_OUT), &none);
	const uint64_t count = d->count + 1;

	code_run_result(run_of(d), json_is_object(bundle) ? bundle : instead,
			f->kind == CODE_FRAME_RESULT ? &count : NULL);
}

static void frame_error(struct driver *d, const struct code_frame *f)
{
	struct error e = ERROR_INIT;
	AUTO(json) struct json *v = json_parse(f->payload, &e);
	const char *ename = json_string(json_get(v, "ename"));
	const char *evalue = json_string(json_get(v, "evalue"));
	const struct json *trace = json_get(v, "traceback");

	if (!ename || !evalue || (trace && !json_is_array(trace))) {
		fault(d, "an error that is none");
		return;
	}
	code_run_error(run_of(d), ename, evalue, trace);
}

static void frame_finished(struct driver *d, const struct code_frame *f)
{
	struct error e = ERROR_INIT;
	AUTO(json) struct json *v = json_parse(f->payload, &e);
	uint64_t count = 0;

	if (json_u64(json_get(v, "execution_count"), UINT32_MAX, &count) < 0) {
		fault(d, "no execution_count");
		return;
	}
	d->count = count;
	code_run_finished(run_of(d));
}

void driver_send_run(struct driver *d, const struct code_run *r)
{
	d->has_run = false;
	out_put(d, CODE_FRAME_RUN, span_of(r->code));
}

static void frame_hello(struct driver *d, const struct code_run *r)
{
	if (d->is_ready) {
		fault(d, "a second greeting");
		return;
	}
	d->is_ready = true;
	if (d->has_run && r) {
		driver_send_run(d, r);
	}
}

static void frame_take(struct driver *d, const struct code_frame *f)
{
	struct code_run *r = run_of(d);
	bool has_run = r && r->is_running && d->is_ready && !d->has_run;

	if (f->kind == CODE_FRAME_SYNC) {
		d->has_sync = true;
		owed_note(d);
	} else if (f->kind == CODE_FRAME_HELLO) {
		frame_hello(d, r);
	} else if (!has_run) {
		/* A thread of the last run may still have had something to show. */
		if (f->kind == CODE_FRAME_FINISHED || f->kind == CODE_FRAME_ERROR) {
			fault(d, "the end of a run that is none");
		}
	} else if (f->kind == CODE_FRAME_OUT || f->kind == CODE_FRAME_ERR) {
		code_run_text(r, f->kind == CODE_FRAME_ERR, f->payload);
	} else if (f->kind == CODE_FRAME_ERROR) {
		frame_error(d, f);
	} else if (f->kind == CODE_FRAME_FINISHED) {
		frame_finished(d, f);
	} else {
		frame_bundle(d, f);
	}
}

/* The next frame that is there. False: there is none, or d is stopped. */
static bool frame_step(struct driver *d)
{
	struct code_frame f = { .kind = 0 };
	size_t n = 0;
	int r = code_frame_next(buf_span(&d->in), &f, &n);

	if (r < 0) {
		fault(d, "a frame that is none");
	}
	if (r <= 0) {
		return false;
	}
	frame_take(d, &f);
	in_drop(d, n);
	return d->context != NULL;
}

/* The code has closed the channel: the driver goes on, but will never be heard again. */
static void hangup_on_time(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)loop;
	(void)events;
	fault(container_of(src, struct driver, hangup), "it has closed its channel");
}

/* Read the channel once. False: nothing is there, or d is stopped. */
static bool channel_read(struct driver *d)
{
	if (d->channel_fd < 0 || buf_reserve(&d->in, CODE_READ_BYTES) < 0) {
		return false;
	}
	size_t *in_sum = &codes_of(d->execd)->in_sum;
	ssize_t n = fd_read(d->channel_fd, d->in.p + d->in.n, CODE_READ_BYTES);

	if (n > 0) {
		d->in.n += (size_t)n;
		*in_sum += (size_t)n;
		if (*in_sum > IN_MAX) {
			fault(d, "too much that is unfinished");
		}
		return d->context != NULL;
	}
	if (n != -EAGAIN) {
		channel_close(d); /* what that means, its end will tell */
		loop_timer(d->execd->loop, &d->hangup, clock_boot_ms() + HANGUP_MS, hangup_on_time);
	}
	return false;
}

/* What is owed before the next frame. False: the client must take something first. */
static bool sync_settle(struct driver *d)
{
	if (d->has_sync && owed_read(d)) {
		d->has_sync = false;
		out_put(d, CODE_FRAME_ACK, span_of(""));
	}
	return !d->has_sync && !must_wait(d);
}

static void frames_take(struct driver *d)
{
	bool more = true;

	for (int n = 0; n < READ_ROUNDS && more; n++) {
		while (d->context && sync_settle(d) && frame_step(d)) {
			/* all that are there */
		}
		more = d->context && sync_settle(d) && channel_read(d);
	}
}

static void settle(const struct driver *d, struct loop_source *src)
{
	if (src->kind != LOOP_SOURCE_FD) {
		return;
	}
	if (must_wait(d)) {
		loop_pause(d->execd->loop, src);
	} else {
		loop_resume(d->execd->loop, src);
	}
}

void driver_pump(struct driver *d)
{
	uint32_t wanted = 0;

	/* The core may find its client gone, or able to take more, and call again. */
	if (d->is_pumping || !d->context) {
		return;
	}
	d->is_pumping = true;
	d->pipes[0].seen = pipe_bytes(&d->pipes[0]);
	d->pipes[1].seen = pipe_bytes(&d->pipes[1]);
	frames_take(d);
	seen_read(d);
	d->is_pumping = false;
	wanted = EPOLLIN | (d->out.n > 0 ? (uint32_t)EPOLLOUT : 0);
	if (d->channel.kind == LOOP_SOURCE_FD && d->channel.events != wanted) {
		(void)!loop_change(d->execd->loop, &d->channel, wanted);
	}
	settle(d, &d->channel);
	settle(d, &d->pipes[0].src);
	settle(d, &d->pipes[1].src);
}

static void pipe_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct pipe_end *p = container_of(src, struct pipe_end, src);

	(void)loop;
	p->is_hung = p->is_hung || (events & (EPOLLHUP | EPOLLERR)) != 0;
	driver_pump(p->driver);
}

static void channel_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct driver *d = container_of(src, struct driver, channel);

	(void)loop;
	(void)events;
	out_flush(d);
	driver_pump(d);
}

int driver_watch(struct driver *d)
{
	struct loop *loop = d->execd->loop;
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(d->pipes) && r == 0; i++) {
		r = loop_add(loop, &d->pipes[i].src, d->pipes[i].fd, EPOLLIN, pipe_on_ready);
	}
	return r < 0 ? r : loop_add(loop, &d->channel, d->channel_fd, EPOLLIN, channel_on_ready);
}

void driver_last_text(struct driver *d)
{
	owed_note(d);
	for (size_t i = 0; i < ARRAY_SIZE(d->pipes); i++) {
		struct pipe_end *p = &d->pipes[i];

		while (p->owed > 0) {
			size_t n = pipe_read(p, p->owed);

			p->owed = n > 0 ? p->owed - n : 0;
		}
	}
}

/* Nothing that comes behind the end: somebody may hold the pipes, and the channel. */
void driver_last_words(struct driver *d)
{
	bool more = true;

	d->is_pumping = true;
	driver_last_text(d);
	for (int n = 0; n < LAST_READS && more; n++) {
		while (d->context && frame_step(d)) {
			/* all that are there */
		}
		more = d->context && channel_read(d);
	}
	d->is_pumping = false;
}

void driver_tell_late(struct driver *d)
{
	for (size_t i = 0; i < ARRAY_SIZE(d->pipes); i++) {
		struct buf *late = &d->pipes[i].late;

		code_run_text(run_of(d), i == 1, buf_span(late));
		buf_done(late);
	}
}
