/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>

#include "../../../oci/pull.h"
#include "../unit.h"

static volatile sig_atomic_t taken;

static void on_signal(int signo)
{
	taken = signo;
}

static void handle(int signo, void (*handler)(int signo))
{
	const struct sigaction sa = { .sa_handler = handler };

	ck_assert_int_eq(sigaction(signo, &sa, NULL), 0);
}

static const int ending[] = { SIGINT, SIGTERM, SIGHUP };

START_TEST(are_put_off)
{
	struct pull_signals s = { .taken = 0 };
	int signo = ending[_i];

	handle(signo, on_signal);
	pull_signals_hold(&s);
	ck_assert(!pull_signals_look(&s));
	ck_assert_int_eq(raise(signo), 0);
	ck_assert_int_eq(taken, 0);
	ck_assert(pull_signals_look(&s));
	ck_assert(pull_signals_look(&s));
	ck_assert_int_eq(s.taken, signo);
	ck_assert_int_eq(taken, 0);
	pull_signals_release(&s);
	ck_assert_int_eq(taken, signo);
}
END_TEST

/* Nobody looked: it comes by itself. */
START_TEST(are_not_lost)
{
	struct pull_signals s = { .taken = 0 };

	handle(SIGTERM, on_signal);
	pull_signals_hold(&s);
	ck_assert_int_eq(raise(SIGTERM), 0);
	pull_signals_release(&s);
	ck_assert_int_eq(taken, SIGTERM);
	taken = 0;
	pull_signals_release(&s);
	ck_assert_int_eq(taken, 0);
}
END_TEST

START_TEST(do_their_default)
{
	struct pull_signals s = { .taken = 0 };

	handle(SIGTERM, SIG_DFL);
	pull_signals_hold(&s);
	ck_assert_int_eq(raise(SIGTERM), 0);
	ck_assert(pull_signals_look(&s));
	pull_signals_release(&s);
	ck_abort();
}
END_TEST

START_TEST(ignored_ones_stay_so)
{
	struct pull_signals s = { .taken = 0 };

	handle(SIGHUP, SIG_IGN);
	pull_signals_hold(&s);
	ck_assert_int_eq(raise(SIGHUP), 0);
	ck_assert(!pull_signals_look(&s));
	pull_signals_release(&s);
	ck_assert_int_eq(s.taken, 0);
}
END_TEST

START_TEST(without_hold_nothing_is_done)
{
	struct pull_signals s = { .taken = 0 };

	handle(SIGTERM, on_signal);
	ck_assert_int_eq(raise(SIGTERM), 0);
	ck_assert(!pull_signals_look(&s));
	pull_signals_release(&s);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("pull_signals");
	TCase *tc = tcase_create("pull_signals");

	tcase_add_loop_test(tc, are_put_off, 0, (int)ARRAY_SIZE(ending));
	tcase_add_test(tc, are_not_lost);
	tcase_add_test_raise_signal(tc, do_their_default, SIGTERM);
	tcase_add_test(tc, ignored_ones_stay_so);
	tcase_add_test(tc, without_hold_nothing_is_done);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
