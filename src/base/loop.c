/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * epoll_wait fills a batch; its events are delivered one by one. A callback may remove and free
 * any source, so loop_remove also erases the source from the part of the batch that is still to
 * come. Delivery is level-triggered: an event that is dropped comes again if it still holds.
 *
 * A paused source leaves the epoll set altogether: with no events wanted the kernel would still
 * report EPOLLHUP and EPOLLERR, and the loop would spin.
 *
 * Timers stand in a list sorted by deadline. One timerfd on CLOCK_BOOTTIME is armed for the first
 * (a timeout of epoll_wait would stand still in suspend). When it fires, the due part of the list
 * becomes loop->due; a timer that a callback arms goes to loop->timers and so waits for the next
 * round, even when its deadline has passed: timers cannot starve descriptors.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <osbx/clock.h>
#include <osbx/loop.h>
#include <osbx/mem.h>

#define BATCH_MAX 32

struct loop {
	int epoll_fd;
	int timer_fd;
	int64_t armed_ms; /* what timer_fd waits for; 0: disarmed */
	struct loop_source *timers;
	struct loop_source *due;
	struct epoll_event batch[BATCH_MAX];
	int batch_n;
	int batch_at;
	bool stopping;
	int code;
	int failed; /* -errno of loop_resume, which cannot report it */
};

struct loop *loop_new(void)
{
	autoclose int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	autoclose int timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	/* No source is at a null pointer: this is the timer. */
	struct epoll_event ev = { .events = EPOLLIN, .data = { .ptr = NULL } };

	if (epoll_fd < 0 || timer_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, timer_fd, &ev) < 0) {
		return NULL;
	}
	struct loop *loop = mem_new(struct loop);

	loop->epoll_fd = TAKE_FD(epoll_fd);
	loop->timer_fd = TAKE_FD(timer_fd);
	return loop;
}

void loop_free(struct loop *loop)
{
	if (loop) {
		close_auto(&loop->timer_fd);
		close_auto(&loop->epoll_fd);
		free(loop);
	}
}

static int control(const struct loop *loop, int op, struct loop_source *src)
{
	struct epoll_event ev = { .events = src->events, .data = { .ptr = src } };

	return epoll_ctl(loop->epoll_fd, op, src->fd, &ev) < 0 ? -errno : 0;
}

/* Do not deliver what this batch still holds for src. */
static void batch_forget(struct loop *loop, const struct loop_source *src)
{
	for (int i = loop->batch_at; i < loop->batch_n; i++) {
		if (loop->batch[i].data.ptr == src) {
			loop->batch[i].events = 0;
			loop->batch[i].data.ptr = NULL;
		}
	}
}

int loop_add(struct loop *loop, struct loop_source *src, int fd, uint32_t events, loop_fn fn)
{
	assert(src->kind == LOOP_SOURCE_NONE && fn);
	*src = (struct loop_source){ .fn = fn, .fd = fd, .events = events };
	int r = control(loop, EPOLL_CTL_ADD, src);

	if (r == 0) {
		src->kind = LOOP_SOURCE_FD;
	}
	return r;
}

int loop_change(struct loop *loop, struct loop_source *src, uint32_t events)
{
	assert(src->kind == LOOP_SOURCE_FD);
	if (src->events == events) {
		return 0;
	}
	src->events = events;
	return src->paused ? 0 : control(loop, EPOLL_CTL_MOD, src);
}

void loop_pause(struct loop *loop, struct loop_source *src)
{
	assert(src->kind == LOOP_SOURCE_FD);
	if (!src->paused) {
		src->paused = true;
		(void)control(loop, EPOLL_CTL_DEL, src);
		batch_forget(loop, src);
	}
}

void loop_resume(struct loop *loop, struct loop_source *src)
{
	assert(src->kind == LOOP_SOURCE_FD);
	if (src->paused) {
		src->paused = false;
		int r = control(loop, EPOLL_CTL_ADD, src);

		if (r < 0 && loop->failed == 0) {
			loop->failed = r;
		}
	}
}

static bool timer_unlink(struct loop_source **list, const struct loop_source *src)
{
	for (; *list; list = &(*list)->next) {
		if (*list == src) {
			*list = src->next;
			return true;
		}
	}
	return false;
}

void loop_timer(struct loop *loop, struct loop_source *src, int64_t deadline_ms, loop_fn fn)
{
	assert(src->kind != LOOP_SOURCE_FD && fn);
	loop_remove(loop, src);
	*src = (struct loop_source){
		.fn = fn,
		.fd = -1,
		.deadline_ms = deadline_ms,
		.kind = LOOP_SOURCE_TIMER,
	};
	struct loop_source **at = &loop->timers;

	while (*at && (*at)->deadline_ms <= deadline_ms) {
		at = &(*at)->next;
	}
	src->next = *at;
	*at = src;
}

void loop_remove(struct loop *loop, struct loop_source *src)
{
	switch (src->kind) {
	case LOOP_SOURCE_NONE:
		return;
	case LOOP_SOURCE_FD:
		if (!src->paused) {
			(void)control(loop, EPOLL_CTL_DEL, src);
		}
		batch_forget(loop, src);
		break;
	case LOOP_SOURCE_TIMER:
		if (!timer_unlink(&loop->timers, src)) {
			(void)timer_unlink(&loop->due, src);
		}
		break;
	}
	src->kind = LOOP_SOURCE_NONE;
	src->paused = false;
	src->next = NULL;
}

/* Let timer_fd wait for the first deadline. */
static int timer_arm(struct loop *loop)
{
	int64_t first = 0;

	if (loop->timers) {
		/* Zero would disarm it; any moment of the past fires at once. */
		first = loop->timers->deadline_ms > 0 ? loop->timers->deadline_ms : 1;
	}
	if (first == loop->armed_ms) {
		return 0;
	}
	struct itimerspec when = {
		.it_value = { .tv_sec = first / 1000, .tv_nsec = first % 1000 * 1000000 },
	};

	if (timerfd_settime(loop->timer_fd, TFD_TIMER_ABSTIME, &when, NULL) < 0) {
		return -errno;
	}
	loop->armed_ms = first;
	return 0;
}

static void timers_fire(struct loop *loop)
{
	int64_t now_ms = clock_boot_ms();
	struct loop_source **end = &loop->timers;

	/* Even when no timer is due any more (removed meanwhile), it must be armed anew. */
	loop->armed_ms = -1;
	while (*end && (*end)->deadline_ms <= now_ms) {
		end = &(*end)->next;
	}
	struct loop_source *later = *end;

	*end = NULL;
	loop->due = loop->timers;
	loop->timers = later;
	while (loop->due && !loop->stopping) {
		struct loop_source *src = loop->due;

		loop->due = src->next;
		src->next = NULL;
		src->kind = LOOP_SOURCE_NONE;
		src->fn(loop, src, 0);
	}
	/* Stopped half-way: the rest is due in the next run. */
	struct loop_source **tail = &loop->due;

	while (*tail) {
		tail = &(*tail)->next;
	}
	*tail = loop->timers;
	loop->timers = loop->due;
	loop->due = NULL;
}

static void deliver(struct loop *loop, const struct epoll_event *ev)
{
	struct loop_source *src = ev->data.ptr;

	if (src) {
		/* loop_change from an earlier callback of this batch may have narrowed it. */
		uint32_t events = ev->events & (src->events | EPOLLERR | EPOLLHUP);

		if (events) {
			src->fn(loop, src, events);
		}
	} else if (ev->events) {
		timers_fire(loop);
	}
}

int loop_run(struct loop *loop)
{
	while (!loop->stopping && loop->failed == 0) {
		int n = timer_arm(loop);

		if (n == 0) {
			n = epoll_wait(loop->epoll_fd, loop->batch, BATCH_MAX, -1);
			n = n < 0 ? -errno : n;
		}
		if (n == -EINTR) {
			continue;
		}
		if (n < 0) {
			return n;
		}
		loop->batch_n = n;
		loop->batch_at = 0;
		while (loop->batch_at < loop->batch_n && !loop->stopping) {
			deliver(loop, &loop->batch[loop->batch_at++]);
		}
		loop->batch_n = 0;
	}
	loop->stopping = false;
	return loop->failed < 0 ? loop->failed : loop->code;
}

void loop_stop(struct loop *loop, int code)
{
	loop->stopping = true;
	loop->code = code;
}
