/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/loop.h>
#include <osbx/mem.h>

#include "../unit.h"

/* An owner of a source: the read end of a pipe with one byte in it. */
struct owner {
	struct loop_source src;
	struct owner *victim; /* what the callback removes and frees */
	int fds[2];
	int calls;
	uint32_t events;
	int64_t at_ms;
};

static struct loop *loop;
static int order[16];
static int order_n;

static void loop_make(void)
{
	loop = loop_new();
	ck_assert_ptr_nonnull(loop);
	order_n = 0;
}

static void loop_drop(void)
{
	loop_free(loop);
}

static struct owner *owner_of(struct loop_source *src)
{
	return container_of(src, struct owner, src);
}

static struct owner *owner_new(void)
{
	struct owner *o = mem_new(struct owner);

	ck_assert_int_eq(fd_pipe(o->fds, 0), 0);
	ck_assert_int_eq(fd_write_all(o->fds[1], "x", 1), 0);
	return o;
}

static void owner_free(struct owner *o)
{
	loop_remove(loop, &o->src);
	fd_close(&o->fds[0]);
	fd_close(&o->fds[1]);
	free(o);
}

/* Count; the byte stays, so a source that is left alone comes again. */
static void on_read(struct loop *l, struct loop_source *src, uint32_t events)
{
	struct owner *o = owner_of(src);

	ck_assert_ptr_eq(l, loop);
	o->calls++;
	o->events = events;
	if (o->calls == 3) {
		loop_stop(l, 42);
	}
}

START_TEST(level_triggered_until_stopped)
{
	struct owner *o = owner_new();

	ck_assert_int_eq(loop_add(loop, &o->src, o->fds[0], EPOLLIN, on_read), 0);
	ck_assert_int_eq(loop_run(loop), 42);
	ck_assert_int_eq(o->calls, 3);
	ck_assert_uint_eq(o->events, EPOLLIN);
	owner_free(o);
}
END_TEST

START_TEST(stop_before_run)
{
	loop_stop(loop, 5);
	ck_assert_int_eq(loop_run(loop), 5);
}
END_TEST

START_TEST(add_reports_errno)
{
	struct loop_source src = { 0 };
	autoclose int file = openat(unit_fd, "f", O_CREAT | O_RDWR | O_CLOEXEC, 0600);

	ck_assert_int_eq(loop_add(loop, &src, -1, EPOLLIN, on_read), -EBADF);
	ck_assert_int_eq(loop_add(loop, &src, file, EPOLLIN, on_read), -EPERM);
	ck_assert_int_eq(src.kind, LOOP_SOURCE_NONE);
	/* Not added: nothing to remove. */
	loop_remove(loop, &src);
}
END_TEST

static void on_stop(struct loop *l, struct loop_source *src, uint32_t events)
{
	(void)src;
	(void)events;
	loop_stop(l, 0);
}

/* First of all in the batch: removes and frees the owner of the other event and itself. */
static void on_free_both(struct loop *l, struct loop_source *src, uint32_t events)
{
	static struct loop_source end;
	struct owner *o = owner_of(src);

	(void)events;
	owner_free(o->victim);
	owner_free(o);
	loop_timer(l, &end, clock_boot_ms() + 5, on_stop);
}

START_TEST(both_of_a_batch_freed_by_the_first)
{
	struct owner *a = owner_new();
	struct owner *b = owner_new();

	a->victim = b;
	b->victim = a;
	ck_assert_int_eq(loop_add(loop, &a->src, a->fds[0], EPOLLIN, on_free_both), 0);
	ck_assert_int_eq(loop_add(loop, &b->src, b->fds[0], EPOLLIN, on_free_both), 0);
	/* Whichever comes first; a use after free is the sanitizer's, a second call a double free.
	 */
	ck_assert_int_eq(loop_run(loop), 0);
}
END_TEST

static void on_pause_other(struct loop *l, struct loop_source *src, uint32_t events)
{
	struct owner *o = owner_of(src);

	(void)events;
	o->calls++;
	if (o->calls == 1 && o->victim->calls == 0) {
		loop_pause(l, &o->victim->src);
		loop_pause(l, &o->victim->src);
	}
	if (o->calls == 10) {
		loop_resume(l, &o->victim->src);
		loop_resume(l, &o->victim->src);
	}
	if (o->calls + o->victim->calls > 30) {
		loop_stop(l, 0);
	}
}

START_TEST(paused_within_a_batch)
{
	struct owner *a = owner_new();
	struct owner *b = owner_new();

	a->victim = b;
	b->victim = a;
	ck_assert_int_eq(loop_add(loop, &a->src, a->fds[0], EPOLLIN, on_pause_other), 0);
	ck_assert_int_eq(loop_add(loop, &b->src, b->fds[0], EPOLLIN, on_pause_other), 0);
	ck_assert_int_eq(loop_run(loop), 0);
	/* One of them stood still for nine rounds and then took part. */
	int fewer = a->calls < b->calls ? a->calls : b->calls;
	int more = a->calls < b->calls ? b->calls : a->calls;

	ck_assert_int_ge(more - fewer, 8);
	ck_assert_int_ge(fewer, 5);
	owner_free(a);
	owner_free(b);
}
END_TEST

static void on_never(struct loop *l, struct loop_source *src, uint32_t events)
{
	(void)l;
	(void)src;
	ck_abort_msg("called with %x", events);
}

START_TEST(paused_source_does_not_spin_on_hangup)
{
	struct owner *o = owner_new();
	struct loop_source end = { 0 };

	ck_assert_int_eq(loop_add(loop, &o->src, o->fds[0], EPOLLIN, on_never), 0);
	loop_pause(loop, &o->src);
	fd_close(&o->fds[1]);
	loop_timer(loop, &end, clock_boot_ms() + 10, on_stop);
	ck_assert_int_eq(loop_run(loop), 0);
	/* Wanted events may change meanwhile. */
	ck_assert_int_eq(loop_change(loop, &o->src, EPOLLIN | EPOLLRDHUP), 0);
	o->src.fn = on_read;
	loop_resume(loop, &o->src);
	ck_assert_int_eq(loop_run(loop), 42);
	ck_assert_uint_eq(o->events & EPOLLHUP, EPOLLHUP);
	owner_free(o);
}
END_TEST

static void on_narrow(struct loop *l, struct loop_source *src, uint32_t events)
{
	struct owner *o = owner_of(src);

	(void)events;
	o->calls++;
	ck_assert_int_eq(loop_change(l, &o->victim->src, 0), 0);
	if (o->calls == 3) {
		loop_stop(l, 0);
	}
}

START_TEST(changed_within_a_batch)
{
	struct owner *a = owner_new();
	struct owner *b = owner_new();

	a->victim = b;
	b->victim = a;
	ck_assert_int_eq(loop_add(loop, &a->src, a->fds[0], EPOLLIN, on_narrow), 0);
	ck_assert_int_eq(loop_add(loop, &b->src, b->fds[0], EPOLLIN, on_narrow), 0);
	ck_assert_int_eq(loop_run(loop), 0);
	ck_assert_int_eq(a->calls + b->calls, 3);
	owner_free(a);
	owner_free(b);
}
END_TEST

START_TEST(failed_resume_ends_the_loop)
{
	struct owner *o = owner_new();

	ck_assert_int_eq(loop_add(loop, &o->src, o->fds[0], EPOLLIN, on_never), 0);
	loop_pause(loop, &o->src);
	fd_close(&o->fds[0]);
	loop_resume(loop, &o->src);
	ck_assert_int_eq(loop_run(loop), -EBADF);
	owner_free(o);
}
END_TEST

struct numbered {
	struct loop_source src;
	struct loop_source *other;
	int number;
};

static void on_number(struct loop *l, struct loop_source *src, uint32_t events)
{
	struct numbered *t = container_of(src, struct numbered, src);

	ck_assert_uint_eq(events, 0);
	ck_assert_int_eq(src->kind, LOOP_SOURCE_NONE);
	order[order_n++] = t->number;
	if (t->other) {
		loop_remove(l, t->other);
	}
	if (t->number == 9) {
		loop_stop(l, 0);
	}
}

START_TEST(timers_in_order)
{
	int64_t now_ms = clock_boot_ms();
	struct numbered t[] = {
		{ .number = 0 },
		{ .number = 1 },
		{ .number = 2 },
		{ .number = 3 },
		{ .number = 9 },
	};

	loop_timer(loop, &t[4].src, now_ms + 30, on_number);
	loop_timer(loop, &t[2].src, now_ms + 20, on_number);
	loop_timer(loop, &t[0].src, now_ms - 1000, on_number);
	loop_timer(loop, &t[1].src, now_ms + 10, on_number);
	loop_timer(loop, &t[3].src, now_ms + 20, on_number);
	/* Arming again moves it. */
	loop_timer(loop, &t[0].src, now_ms + 25, on_number);
	ck_assert_int_eq(loop_run(loop), 0);
	ck_assert_int_ge(clock_boot_ms(), now_ms + 30);
	static const int wanted[] = { 1, 2, 3, 0, 9 };

	ck_assert_int_eq(order_n, ARRAY_SIZE(wanted));
	ck_assert_mem_eq(order, wanted, sizeof(wanted));
}
END_TEST

START_TEST(timer_removes_another_due_one)
{
	struct numbered t[] = {
		{ .number = 0, .other = &t[1].src },
		{ .number = 1 },
		{ .number = 2, .other = &t[2].src },
		{ .number = 9 },
	};

	/* All due in one round; 0 and negative deadlines are of the past, too. */
	loop_timer(loop, &t[0].src, -5, on_number);
	loop_timer(loop, &t[1].src, 0, on_number);
	loop_timer(loop, &t[2].src, 1, on_number);
	loop_timer(loop, &t[3].src, 2, on_number);
	ck_assert_int_eq(loop_run(loop), 0);
	static const int wanted[] = { 0, 2, 9 };

	ck_assert_int_eq(order_n, ARRAY_SIZE(wanted));
	ck_assert_mem_eq(order, wanted, sizeof(wanted));
}
END_TEST

static void on_again(struct loop *l, struct loop_source *src, uint32_t events)
{
	(void)events;
	loop_timer(l, src, 0, on_again);
}

START_TEST(timers_do_not_starve_descriptors)
{
	struct owner *o = owner_new();
	struct loop_source greedy = { 0 };

	loop_timer(loop, &greedy, 0, on_again);
	ck_assert_int_eq(loop_add(loop, &o->src, o->fds[0], EPOLLIN, on_read), 0);
	ck_assert_int_eq(loop_run(loop), 42);
	owner_free(o);
}
END_TEST

START_TEST(stopped_between_due_timers)
{
	struct numbered first = { .number = 9 };
	struct numbered second = { .number = 9 };

	loop_timer(loop, &first.src, 1, on_number);
	loop_timer(loop, &second.src, 2, on_number);
	ck_assert_int_eq(loop_run(loop), 0);
	ck_assert_int_eq(order_n, 1);
	ck_assert_int_eq(loop_run(loop), 0);
	ck_assert_int_eq(order_n, 2);
}
END_TEST

START_TEST(removed_timer_leaves_the_loop_asleep)
{
	struct numbered gone = { .number = 1 };
	struct numbered end = { .number = 9 };
	int64_t now_ms = clock_boot_ms();

	loop_timer(loop, &gone.src, now_ms + 5, on_number);
	loop_timer(loop, &end.src, now_ms + 15, on_number);
	loop_remove(loop, &gone.src);
	loop_remove(loop, &gone.src);
	ck_assert_int_eq(loop_run(loop), 0);
	ck_assert_int_eq(order_n, 1);
	ck_assert_int_ge(clock_boot_ms(), now_ms + 15);
}
END_TEST

START_TEST(added_twice_aborts)
{
	struct owner *o = owner_new();

	ck_assert_int_eq(loop_add(loop, &o->src, o->fds[0], EPOLLIN, on_read), 0);
	ck_assert_int_eq(loop_add(loop, &o->src, o->fds[0], EPOLLIN, on_read), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("loop");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_checked_fixture(tc, loop_make, loop_drop);
	tcase_add_test(tc, level_triggered_until_stopped);
	tcase_add_test(tc, stop_before_run);
	tcase_add_test(tc, add_reports_errno);
	tcase_add_test(tc, both_of_a_batch_freed_by_the_first);
	tcase_add_test(tc, paused_within_a_batch);
	tcase_add_test(tc, paused_source_does_not_spin_on_hangup);
	tcase_add_test(tc, changed_within_a_batch);
	tcase_add_test(tc, failed_resume_ends_the_loop);
	tcase_add_test(tc, timers_in_order);
	tcase_add_test(tc, timer_removes_another_due_one);
	tcase_add_test(tc, timers_do_not_starve_descriptors);
	tcase_add_test(tc, stopped_between_due_timers);
	tcase_add_test(tc, removed_timer_leaves_the_loop_asleep);
	tcase_add_test_raise_signal(tc, added_twice_aborts, SIGABRT);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
