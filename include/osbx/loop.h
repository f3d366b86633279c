/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * loop - one epoll loop; sources are embedded in their owners; one callback type.
 *
 * A source may be removed, and its owner freed, from any callback, also its own. Timers are
 * sources with a deadline on CLOCK_BOOTTIME.
 */
#ifndef OSBX_LOOP_H
#define OSBX_LOOP_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>

struct loop;
struct loop_source;
typedef void (*loop_fn)(struct loop *loop, struct loop_source *src, uint32_t events);

enum loop_source_kind {
	LOOP_SOURCE_NONE,
	LOOP_SOURCE_FD,
	LOOP_SOURCE_TIMER,
};

struct loop_source {
	loop_fn fn;
	int fd;          /* borrowed: the owner closes it after loop_remove */
	uint32_t events; /* EPOLLIN …, wanted when not paused */
	int64_t deadline_ms;
	enum loop_source_kind kind;
	bool paused;
	struct loop_source *next; /* loop.timers */
};

/* New loop, or NULL with errno set. */
struct loop *loop_new(void) MUST_CHECK;
void loop_free(struct loop *loop);
AUTO_DEFINE_PTR(loop, struct loop, loop_free);
/* Watch fd. 0 or -errno (-EPERM for a regular file: the caller treats it as always ready). */
int loop_add(struct loop *loop, struct loop_source *src, int fd, uint32_t events, loop_fn fn)
		NONNULL(1, 2) MUST_CHECK;
/* Change the wanted events. */
int loop_change(struct loop *loop, struct loop_source *src, uint32_t events)
		NONNULL(1, 2) MUST_CHECK;
/* Stop and restart delivery without forgetting the events wanted. */
void loop_pause(struct loop *loop, struct loop_source *src) NONNULL(1, 2);
void loop_resume(struct loop *loop, struct loop_source *src) NONNULL(1, 2);
/* Call fn once at deadline_ms (clock_boot_ms); arms again if already armed. events is 0. */
void loop_timer(struct loop *loop, struct loop_source *src, int64_t deadline_ms, loop_fn fn)
		NONNULL(1, 2);
/* Forget a source of either kind; no effect when not added. */
void loop_remove(struct loop *loop, struct loop_source *src) NONNULL(1, 2);
/* Run until loop_stop. Returns its code, or -errno of epoll_wait. */
int loop_run(struct loop *loop) NONNULL(1) MUST_CHECK;
void loop_stop(struct loop *loop, int code) NONNULL(1);

#endif
