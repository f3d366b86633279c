/* SPDX-License-Identifier: Apache-2.0 */
/* All commands, running or not; what is kept of the ones that are done is bounded. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/id.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "command_internal.h"

#define DONE_REPLAYS_MAX 64          /* whose last events are kept */
#define DONE_BYTES_MAX   (64U << 20) /* logs and texts of all */
#define DONE_INSIDE_PART 4           /* of these limits for commands from inside */
#define INSIDE_MAX       512         /* from inside that are not done */
#define LOGS_LARGE_MAX   4           /* the others are COMMAND_LOG_BYTES_SMALL */
#define DRAINS_MAX       1024

struct drain {
	struct commands *table;
	struct drain *next; /* commands.drains, newest first */
	struct loop_source src;
	int fd;
};

static void drain_free(struct drain *d)
{
	struct drain **at = &d->table->drains;

	while (*at != d) {
		at = &(*at)->next;
	}
	*at = d->next;
	d->table->drains_n--;
	loop_remove(d->table->execd->loop, &d->src);
	fd_close(&d->fd);
	free(d);
}

static void drain_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	static char bytes[64U << 10];
	struct drain *d = container_of(src, struct drain, src);
	ssize_t n = fd_read(d->fd, bytes, sizeof(bytes));

	(void)loop;
	(void)events;
	if (n <= 0 && n != -EAGAIN) {
		drain_free(d);
	}
}

static void drain_oldest_free(struct commands *t)
{
	struct drain *d = t->drains;

	while (d->next) {
		d = d->next;
	}
	drain_free(d);
}

void command_drain(struct commands *t, int *fd)
{
	struct drain *d = mem_new(struct drain);

	if (t->drains_n >= DRAINS_MAX) {
		drain_oldest_free(t); /* who writes to it gets SIGPIPE */
	}
	d->table = t;
	d->fd = TAKE_FD(*fd);
	d->next = t->drains;
	t->drains = d;
	t->drains_n++;
	if (loop_add(t->execd->loop, &d->src, d->fd, EPOLLIN, drain_on_ready) < 0) {
		drain_free(d);
	}
}

struct commands *commands_of(struct execd *x)
{
	if (!x->commands) {
		x->commands = mem_new(struct commands);
		x->commands->execd = x;
	}
	return x->commands;
}

struct command *command_find(const struct commands *t, const char *id)
{
	struct command *c = t->list;

	while (c && (c->kind == COMMAND_SESSION || !str_eq(c->id, id))) {
		c = c->next;
	}
	return c;
}

static uint64_t log_max(const struct commands *t, bool is_inside)
{
	size_t n = 0;

	for (const struct command *c = t->list; c; c = c->next) {
		n += c->kind == COMMAND_BACKGROUND && c->stage != COMMAND_DONE &&
		     c->is_inside == is_inside;
	}
	return n < LOGS_LARGE_MAX ? COMMAND_LOG_BYTES : COMMAND_LOG_BYTES_SMALL;
}

bool commands_have_room_inside(const struct commands *t)
{
	size_t n = 0;

	for (const struct command *c = t->list; c; c = c->next) {
		n += c->is_inside && c->stage != COMMAND_DONE;
	}
	return n < INSIDE_MAX;
}

struct command *command_new(struct commands *t, const struct command_wish *w, bool is_inside)
{
	static const char *const types[2] = { "stdout", "stderr" };
	struct command *c = mem_new(struct command);

	c->table = t;
	c->kind = w->kind;
	c->stage = COMMAND_STARTING;
	c->seq = ++t->seq;
	id_random_hex(c->id, COMMAND_ID_BYTES);
	(void)snprintf(c->shown_id, sizeof(c->shown_id), "%s", w->shown_id ? w->shown_id : c->id);
	c->content = mem_strdup(w->content);
	c->timeout_ms = w->timeout_ms;
	c->is_inside = is_inside;
	c->is_foreign = w->is_foreign;
	c->started_wall_ms = clock_wall_ms();
	c->started_boot_ms = clock_boot_ms();
	c->on_end = w->on_end;
	c->ctx = w->ctx;
	c->log = (struct command_log)COMMAND_LOG_INIT(log_max(t, is_inside));
	for (size_t i = 0; i < ARRAY_SIZE(c->streams); i++) {
		c->streams[i] = (struct command_stream){
			.command = c,
			.fd = -1,
			.lines = lines_of(types[i]),
			.rest = BUF_INIT(COMMAND_READ_BYTES),
		};
	}
	c->next = t->list;
	t->list = c;
	return c;
}

void command_drop(struct command *c)
{
	struct commands *t = c->table;
	struct command **at = &t->list;

	assert(!c->rq && !c->ender && c->tag == 0);
	while (*at != c) {
		at = &(*at)->next;
	}
	*at = c->next;
	for (size_t i = 0; i < ARRAY_SIZE(c->streams); i++) {
		struct command_stream *s = &c->streams[i];

		loop_remove(t->execd->loop, &s->src);
		if (s->fd >= 0 && c->stage == COMMAND_DONE) {
			command_drain(t, &s->fd);
		}
		fd_close(&s->fd);
		lines_done(&s->lines);
		buf_done(&s->rest);
	}
	loop_remove(t->execd->loop, &c->ping);
	loop_remove(t->execd->loop, &c->deadline);
	command_replay_done(&c->replay);
	command_log_done(&c->log);
	free(c->content);
	free(c->error);
	free(c);
}

static uint64_t record_bytes(const struct command *c)
{
	uint64_t log = c->log.total < c->log.max ? c->log.total : c->log.max;

	return log + strlen(c->content);
}

/* Done commands of one side. */
struct tally {
	size_t n;
	size_t replays_n;
	uint64_t bytes;
};

/* Count c, which is done; of is that of its side, part that side's share of the limits. False: it
 * is too much. */
static bool tally_add(struct tally *of, struct command *c, size_t part)
{
	of->n++;
	of->bytes += record_bytes(c);
	/* The newest one stays in any case. */
	if (of->n > COMMANDS_FINISHED_MAX / part ||
			(of->n > 1 && of->bytes > DONE_BYTES_MAX / part)) {
		return false;
	}
	of->replays_n += c->kind == COMMAND_FOREGROUND;
	if (of->replays_n > DONE_REPLAYS_MAX / part) {
		command_replay_done(&c->replay);
	}
	return true;
}

void commands_trim(struct commands *t)
{
	/* What is started inside does not push out what others may still ask for. */
	struct tally sides[2] = { { .n = 0 }, { .n = 0 } };
	struct command *next = NULL;

	for (struct command *c = t->list; c; c = next) {
		next = c->next;
		if (c->stage != COMMAND_DONE || c->kind == COMMAND_SESSION) {
			continue;
		}
		if (!tally_add(&sides[c->is_inside], c, c->is_inside ? DONE_INSIDE_PART : 1)) {
			command_drop(c);
		}
	}
}
