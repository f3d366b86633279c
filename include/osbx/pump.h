/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * pump - carry bytes both ways between two stream sockets, without looking at them.
 *
 * With splice(2) through one pipe a direction, made at the first byte; a direction that has ended
 * is shut down on the other side (half-close), one that is full stops its source (back-pressure). A
 * peer that is reset resets the other one (SO_LINGER 0), and only that: nothing is invented.
 * SIGPIPE must be blocked or ignored in the process: splice(2) knows no MSG_NOSIGNAL.
 */
#ifndef OSBX_PUMP_H
#define OSBX_PUMP_H

#include <stdbool.h>
#include <stdint.h>

#include <osbx/compiler.h>
#include <osbx/loop.h>
#include <osbx/span.h>

struct pump;

struct pump_opts {
	int a_fd; /* O_NONBLOCK; both taken over */
	int b_fd;
	bool connected; /* b is; else nothing is read from a before that */
	/* Bytes that were read already, of a for b and of b for a; copied. */
	struct span a_first;
	struct span b_first;
	int64_t idle_ms; /* no byte either way for so long: it ends. 0: for ever */
	/* Both sides are closed; the pump is gone after this call. errnum of the connect or of the
	 * reset, 0 after an orderly end. */
	void (*on_end)(void *ctx, int errnum);
	void *ctx;
};

/* Begin. NULL with errno when descriptors are short: both are closed, on_end is not called. */
struct pump *pump_new(struct loop *loop, const struct pump_opts *opts) MUST_CHECK NONNULL(1, 2);
/* Reset both sides, free; on_end is not called. */
void pump_cut(struct pump *p) NONNULL(1);
/* Bytes carried from a to b, and back. */
uint64_t pump_sent(const struct pump *p) NONNULL(1);
uint64_t pump_received(const struct pump *p) NONNULL(1);

#endif
