/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of a command on its way to the client.
 *
 * A stream is not read while the client has COMMAND_PENDING_MAX bytes to take, or while the event
 * of a very long line of the other stream is open: then the pipe fills, and the command waits. So
 * that two streams cannot wait for each other through the command, an open event is ended when the
 * next ping is due.
 *
 * After the end of the process what is in its pipes at that moment is still read, and no more: a
 * grandchild may hold them, and write to them, for ever.
 */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include <osbx/clock.h>
#include <osbx/fd.h>

#include "command_internal.h"

#define STREAM_ROUNDS   8            /* of reads, then others have their turn */
#define STREAM_OUT_MAX  (4U << 20)   /* of the events of one read, and of one very long line */
#define STREAM_OUT_KEEP (512U << 10) /* memory for events that is kept */

struct events command_events(struct command *c)
{
	c->table->out.max = STREAM_OUT_MAX;
	return events_of(&c->table->out, c->eid, clock_wall_ms());
}

static bool is_open(const struct command *c)
{
	return c->streams[0].lines.is_open || c->streams[1].lines.is_open;
}

void command_flush(struct command *c, const struct events *ev)
{
	struct buf *out = &c->table->out;

	if (out->n > 0) {
		command_replay_put(&c->replay, buf_span(out), c->eid + 1, !is_open(c));
		if (c->rq) {
			http_write(c->rq, buf_span(out));
		}
	}
	c->eid = ev->eid;
	buf_reset(out);
	if (out->cap > STREAM_OUT_KEEP) {
		buf_done(out);
	}
}

void command_end_open(struct command *c)
{
	struct events ev = command_events(c);

	for (size_t i = 0; i < ARRAY_SIZE(c->streams); i++) {
		if (c->streams[i].lines.is_open) {
			lines_end(&c->streams[i].lines, &ev);
		}
	}
	command_flush(c, &ev);
}

static bool stream_must_wait(const struct command_stream *s)
{
	const struct command *c = s->command;
	const struct command_stream *other = &c->streams[s == &c->streams[0]];

	return other->lines.is_open || (c->rq && http_pending(c->rq) >= COMMAND_PENDING_MAX);
}

static void stream_close(struct command_stream *s)
{
	loop_remove(s->command->table->execd->loop, &s->src);
	fd_close(&s->fd);
	s->left = 0;
}

/* Lines of a piece as events. */
static void stream_put_events(struct command_stream *s, struct span bytes)
{
	struct command *c = s->command;
	struct events ev = command_events(c);
	size_t part = s->lines.part.n;
	size_t n = lines_feed(&s->lines, bytes, &ev, COMMAND_PENDING_MAX);

	if (c->table->parts > COMMAND_PARTS_MAX) {
		lines_open(&s->lines, &ev);
	}
	c->table->parts += s->lines.part.n - part;
	if (n < bytes.n) {
		struct span rest = span_from(bytes, n);
		struct buf kept = BUF_INIT(COMMAND_READ_BYTES);

		/* The bytes may be those of .rest itself. */
		(void)!buf_append(&kept, rest.p, rest.n);
		buf_done(&s->rest);
		s->rest = kept;
	} else if (s->rest.n > 0) {
		buf_done(&s->rest);
	}
	command_flush(c, &ev);
}

static void stream_put(struct command_stream *s, struct span bytes)
{
	if (s->command->kind == COMMAND_BACKGROUND) {
		command_log_put(&s->command->log, bytes);
	} else {
		stream_put_events(s, bytes);
	}
}

static void stream_at_end(struct command_stream *s)
{
	struct command *c = s->command;
	struct events ev = command_events(c);

	stream_close(s);
	if (c->kind != COMMAND_BACKGROUND) {
		c->table->parts -= s->lines.part.n;
		lines_end(&s->lines, &ev);
		command_flush(c, &ev);
	}
}

/* One read of at most so many bytes, or what is left of one. False: nothing is there for now. */
static bool stream_step(struct command_stream *s, size_t most)
{
	static char bytes[COMMAND_READ_BYTES];
	size_t want = most < sizeof(bytes) ? most : sizeof(bytes);

	if (s->rest.n > 0) {
		stream_put(s, buf_span(&s->rest));
		return true;
	}
	if (s->command->stage == COMMAND_EXITED) {
		want = s->left < want ? s->left : want;
	}
	if (s->fd < 0 || want == 0) {
		return false;
	}
	ssize_t n = fd_read(s->fd, bytes, want);

	if (n == -EAGAIN) {
		s->left = 0;
		return false;
	}
	if (n <= 0) {
		stream_at_end(s);
		return false;
	}
	s->left -= s->command->stage == COMMAND_EXITED ? (size_t)n : 0;
	stream_put(s, (struct span){ .p = bytes, .n = (size_t)n });
	/* What is left of a short read has nobody else to come back to it. */
	return s->rest.n > 0 || (size_t)n == want;
}

/* Wait for what there is to wait for. */
static void stream_settle(struct command_stream *s)
{
	struct loop *loop = s->command->table->execd->loop;

	if (s->src.kind != LOOP_SOURCE_FD) {
		return;
	}
	if (stream_must_wait(s) || s->rest.n > 0) {
		loop_pause(loop, &s->src);
	} else {
		loop_resume(loop, &s->src);
	}
}

static bool stream_is_out(const struct command_stream *s)
{
	return s->rest.n == 0 && (s->fd < 0 || s->left == 0);
}

/* Bytes of the second stream that may be told behind what the first has now: those that are there
 * before it is read. What came to the first before them is then told before them, in whatever
 * moment this process looks. */
static size_t second_ready(const struct command *c)
{
	struct pollfd p = { .fd = c->streams[1].fd, .events = POLLIN };
	int n = 0;

	if (p.fd < 0 || c->stage == COMMAND_EXITED) {
		return SIZE_MAX;
	}
	if (ioctl(p.fd, FIONREAD, &n) < 0 || n > 0) {
		return n > 0 ? (size_t)n : SIZE_MAX;
	}
	/* Nothing, or the end. */
	return poll(&p, 1, 0) > 0 && (p.revents & POLLIN) == 0 ? SIZE_MAX : 0;
}

static void stream_take(struct command_stream *s, size_t most)
{
	bool more = true;

	for (int n = 0; (n < STREAM_ROUNDS || s->rest.n > 0) && more; n++) {
		more = !stream_must_wait(s) && stream_step(s, most);
		most = most == SIZE_MAX ? SIZE_MAX : 0;
	}
}

static void streams_step(struct command *c)
{
	size_t ready = second_ready(c);

	stream_take(&c->streams[0], SIZE_MAX);
	stream_take(&c->streams[1], ready);
}

/* After the end of the process nothing else will ever wake the second stream. */
static bool streams_have_more(const struct command *c)
{
	bool more = false;

	for (size_t i = 0; c->stage == COMMAND_EXITED && i < ARRAY_SIZE(c->streams); i++) {
		const struct command_stream *s = &c->streams[i];

		more = more || (!stream_is_out(s) && !stream_must_wait(s));
	}
	return more;
}

/* The last line of each, without its end. An open one first. */
static void streams_end(struct command *c)
{
	struct events ev = command_events(c);
	size_t first = c->streams[1].lines.is_open;

	for (size_t i = 0; i < ARRAY_SIZE(c->streams); i++) {
		struct command_stream *s = &c->streams[i ^ first];

		c->table->parts -= s->lines.part.n;
		lines_end(&s->lines, &ev);
		lines_done(&s->lines);
	}
	command_flush(c, &ev);
}

void command_pump(struct command *c)
{
	/* Writing may find the client gone or able to take more, which calls this again. */
	if (c->is_pumping) {
		return;
	}
	c->is_pumping = true;
	do {
		streams_step(c);
	} while (streams_have_more(c));
	for (size_t i = 0; i < ARRAY_SIZE(c->streams); i++) {
		stream_settle(&c->streams[i]);
	}
	bool is_out = stream_is_out(&c->streams[0]) && stream_is_out(&c->streams[1]);

	if (c->stage == COMMAND_EXITED && is_out) {
		streams_end(c);
		c->is_pumping = false;
		command_finish(c);
		return;
	}
	c->is_pumping = false;
}

static void stream_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)loop;
	(void)events;
	command_pump(container_of(src, struct command_stream, src)->command);
}

void command_watch(struct command *c)
{
	struct loop *loop = c->table->execd->loop;

	for (size_t i = 0; i < ARRAY_SIZE(c->streams); i++) {
		struct command_stream *s = &c->streams[i];

		/* Without being watched it is read at the end of the process. */
		if (s->fd >= 0) {
			(void)!loop_add(loop, &s->src, s->fd, EPOLLIN, stream_on_ready);
		}
	}
}
