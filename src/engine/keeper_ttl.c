/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * The record says at what time of the wall clock a sandbox expires; how long it may live is counted
 * on CLOCK_BOOTTIME, which goes on in suspend and does not jump. When somebody sets the wall clock,
 * the kernel cancels a timer (timerfd_create(2), TFD_TIMER_CANCEL_ON_SET), and the record is put
 * right: the time left is what counts.
 */
#include <errno.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <osbx/clock.h>
#include <osbx/fd.h>

#include "keeper_internal.h"

/* Far enough never to come: it is there to be cancelled. */
#define NEVER_S 253402300799LL

static void expiry_on_end(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct keeper *k = container_of(src, struct keeper, expiry);

	(void)loop;
	(void)events;
	keeper_stop(k, k->opts.stop_signal, STOP_GRACE_MS, STATE_REASON_EXPIRED);
}

static int jump_arm(const struct keeper *k)
{
	const struct itimerspec when = { .it_value = { .tv_sec = NEVER_S } };

	return timerfd_settime(k->jump_fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &when,
			       NULL) < 0
			       ? -errno
			       : 0;
}

static void jump_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct keeper *k = container_of(src, struct keeper, jump);
	struct error e = ERROR_INIT;
	uint64_t n = 0;

	(void)loop;
	(void)events;
	/* ECANCELED, by which it is known. */
	(void)!fd_read(k->jump_fd, &n, sizeof(n));
	if (jump_arm(k) < 0) {
		keeper_ttl_stop(k);
	}
	if (k->expiry.kind == LOOP_SOURCE_TIMER) {
		k->opts.state->expires_ms =
				clock_wall_ms() + k->expiry.deadline_ms - clock_boot_ms();
		/* Not to have said it is no reason to end. */
		(void)!state_save(k->opts.state, k->opts.live_fd, false, &e);
	}
}

static int jump_watch(struct keeper *k)
{
	if (k->jump_fd >= 0) {
		return 0;
	}
	k->jump_fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (k->jump_fd < 0) {
		return -errno;
	}
	int r = jump_arm(k);

	return r < 0 ? r : loop_add(k->loop, &k->jump, k->jump_fd, EPOLLIN, jump_on_ready);
}

int keeper_ttl_start(struct keeper *k)
{
	const struct sandbox_state *state = k->opts.state;

	loop_remove(k->loop, &k->expiry);
	if (!state || state->expires_ms == 0 || k->stopping) {
		return 0;
	}
	int64_t left_ms = state->expires_ms - clock_wall_ms();

	loop_timer(k->loop, &k->expiry, clock_boot_ms() + (left_ms > 0 ? left_ms : 0),
			expiry_on_end);
	return jump_watch(k);
}

void keeper_ttl_stop(struct keeper *k)
{
	if (k->jump_fd >= 0) {
		loop_remove(k->loop, &k->jump);
		fd_close(&k->jump_fd);
	}
}
