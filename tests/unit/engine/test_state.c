/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <sys/prctl.h>

#include <osbx/mem.h>
#include <osbx/state.h>

#include "../unit.h"

START_TEST(names_go_both_ways)
{
	enum sandbox_state_code code = SANDBOX_STATE_COUNT;

	ck_assert_int_eq(state_from_name(state_name((enum sandbox_state_code)_i), &code), 0);
	ck_assert_int_eq((int)code, _i);
}
END_TEST

START_TEST(unknown_names_are_none)
{
	enum sandbox_state_code code = SANDBOX_PAUSED;

	ck_assert_int_lt(state_from_name("running", &code), 0);
	ck_assert_int_lt(state_from_name("", &code), 0);
	ck_assert_int_eq(code, SANDBOX_PAUSED);
}
END_TEST

START_TEST(ends_are_final_and_reachable)
{
	enum sandbox_state_code code = (enum sandbox_state_code)_i;
	bool is_end = code == SANDBOX_TERMINATED || code == SANDBOX_FAILED;

	ck_assert(!state_may_go(code, code));
	ck_assert(!state_may_go(code, SANDBOX_PENDING));
	ck_assert_int_eq(state_may_go(code, SANDBOX_FAILED), !is_end);
	for (int to = 0; is_end && to < SANDBOX_STATE_COUNT; to++) {
		ck_assert(!state_may_go(code, (enum sandbox_state_code)to));
	}
}
END_TEST

START_TEST(takes_the_known_ways)
{
	ck_assert(state_may_go(SANDBOX_PENDING, SANDBOX_RUNNING));
	ck_assert(state_may_go(SANDBOX_RUNNING, SANDBOX_PAUSING));
	ck_assert(state_may_go(SANDBOX_PAUSING, SANDBOX_PAUSED));
	ck_assert(state_may_go(SANDBOX_PAUSED, SANDBOX_RESUMING));
	ck_assert(state_may_go(SANDBOX_RESUMING, SANDBOX_RUNNING));
	ck_assert(state_may_go(SANDBOX_RUNNING, SANDBOX_STOPPING));
	ck_assert(state_may_go(SANDBOX_STOPPING, SANDBOX_TERMINATED));
	ck_assert(!state_may_go(SANDBOX_PENDING, SANDBOX_PAUSED));
	ck_assert(!state_may_go(SANDBOX_RUNNING, SANDBOX_PAUSED));
	ck_assert(!state_may_go(SANDBOX_STOPPING, SANDBOX_RUNNING));
}
END_TEST

static void state_make(struct sandbox_state *s)
{
	struct id id;

	id_new(&id);
	state_init(s, &id, "web", "busybox:1");
}

START_TEST(another_way_is_our_own_mistake)
{
	AUTO(state) struct sandbox_state s = { .code = SANDBOX_PENDING };

	state_make(&s);
	state_go(&s, SANDBOX_TERMINATED);
	state_go(&s, SANDBOX_RUNNING);
}
END_TEST

START_TEST(stamps_beginning_and_end)
{
	AUTO(state) struct sandbox_state s = { .code = SANDBOX_PENDING };

	state_make(&s);
	ck_assert(s.created_ms > 0 && s.started_ms == 0 && s.ended_ms == 0);
	s.pid = 7;
	state_go(&s, SANDBOX_RUNNING);
	ck_assert(s.started_ms >= s.created_ms && s.ended_ms == 0);
	ck_assert_int_eq(s.pid, 7);
	int64_t started_ms = s.started_ms = s.started_ms - 5;

	state_go(&s, SANDBOX_PAUSING);
	state_go(&s, SANDBOX_RUNNING);
	ck_assert(s.started_ms == started_ms);
	state_go(&s, SANDBOX_TERMINATED);
	ck_assert(s.ended_ms >= s.started_ms);
	ck_assert_int_eq(s.pid, 0);
}
END_TEST

START_TEST(reads_what_it_wrote)
{
	AUTO(state) struct sandbox_state s = { .code = SANDBOX_PENDING };
	AUTO(state) struct sandbox_state back = { .code = SANDBOX_PENDING };
	struct error e = ERROR_INIT;

	state_make(&s);
	s.pid = 4711;
	ck_assert_int_eq(state_save(&s, unit_fd, false, &e), 0);
	state_go(&s, SANDBOX_RUNNING);
	s.exit_status = 143;
	s.reason = strdup("a \"quoted\" reason");
	ck_assert_int_eq(state_save(&s, unit_fd, true, &e), 0);
	ck_assert_int_eq(state_load(unit_fd, &back, &e), 0);
	ck_assert_str_eq(back.id.text, s.id.text);
	ck_assert_int_eq(back.code, SANDBOX_RUNNING);
	ck_assert_str_eq(back.name, "web");
	ck_assert_str_eq(back.image, "busybox:1");
	ck_assert_str_eq(back.reason, s.reason);
	ck_assert_int_eq(back.pid, 4711);
	ck_assert_int_eq(back.exit_status, 143);
	ck_assert(back.created_ms == s.created_ms && back.started_ms == s.started_ms);
	ck_assert(back.ended_ms == 0);
}
END_TEST

START_TEST(reads_what_a_keeper_adds)
{
	AUTO(state) struct sandbox_state s = { .code = SANDBOX_PENDING };
	AUTO(state) struct sandbox_state back = { .code = SANDBOX_PENDING };
	struct error e = ERROR_INIT;

	state_make(&s);
	ck_assert_int_eq(strv_add(&s.labels, "a=b"), 0);
	s.retained = true;
	s.kept = true;
	s.keeper_pid = 12;
	s.pid_start = 34;
	s.cgroup = mem_strdup("/sys/fs/cgroup/osbx/x");
	s.expires_ms = 56;
	s.oom_killed = true;
	s.stage_us[STATE_STAGE_IMAGE] = 1;
	s.stage_us[STATE_STAGE_START] = 4;
	state_go(&s, SANDBOX_RUNNING);
	ck_assert_int_eq(state_save(&s, unit_fd, false, &e), 0);
	ck_assert_int_eq(state_load(unit_fd, &back, &e), 0);
	ck_assert_uint_eq(back.labels.n, 1);
	ck_assert_str_eq(back.labels.v[0], "a=b");
	ck_assert(back.retained && back.kept);
	ck_assert_str_eq(back.cgroup, "/sys/fs/cgroup/osbx/x");
	ck_assert_int_eq(back.keeper_pid, 12);
	ck_assert_uint_eq(back.pid_start, 34);
	ck_assert_int_eq(back.expires_ms, 56);
	ck_assert(back.oom_killed);
	ck_assert_int_eq(back.stage_us[STATE_STAGE_IMAGE], 1);
	ck_assert_int_eq(back.stage_us[STATE_STAGE_PLAN], 0);
	ck_assert_int_eq(back.stage_us[STATE_STAGE_START], 4);
}
END_TEST

/* Wherever it is, it can end, and says why. */
START_TEST(ends_from_anywhere)
{
	for (int to = SANDBOX_TERMINATED; to <= SANDBOX_FAILED; to++) {
		AUTO(state) struct sandbox_state s = { .code = SANDBOX_PENDING };

		if (_i >= SANDBOX_TERMINATED) {
			continue;
		}
		state_make(&s);
		s.code = (enum sandbox_state_code)_i;
		s.pid = s.keeper_pid = 7;
		state_end(&s, (enum sandbox_state_code)to, STATE_REASON_LOST, "words");
		ck_assert_int_eq(s.code, to);
		ck_assert(state_is_final(&s) && s.ended_ms > 0 && s.pid == 0 && s.keeper_pid == 0);
		ck_assert_str_eq(s.reason, "keeper_lost");
		ck_assert_str_eq(s.message, "words");
	}
}
END_TEST

START_TEST(a_process_has_a_start)
{
	uint64_t ours = state_pid_start(getpid());

	ck_assert_uint_gt(ours, 0);
	ck_assert_uint_eq(state_pid_start(getpid()), ours);
	ck_assert_uint_eq(state_pid_start(0), 0);
	ck_assert_uint_eq(state_pid_start(-1), 0);
	ck_assert_uint_eq(state_pid_start(INT32_MAX), 0);
	/* A name can hold what looks like the end of it. */
	ck_assert_int_eq(prctl(PR_SET_NAME, "a) R 1 1 1"), 0);
	ck_assert_uint_eq(state_pid_start(getpid()), ours);
}
END_TEST

START_TEST(what_is_unknown_is_absent)
{
	AUTO(state) struct sandbox_state s = { .code = SANDBOX_PENDING };
	AUTO(state) struct sandbox_state back = { .code = SANDBOX_PENDING };
	struct error e = ERROR_INIT;
	struct id id;

	id_new(&id);
	state_init(&s, &id, NULL, "@host");
	ck_assert_int_eq(state_save(&s, unit_fd, false, &e), 0);
	ck_assert_int_eq(state_load(unit_fd, &back, &e), 0);
	ck_assert_ptr_null(back.name);
	ck_assert_ptr_null(back.reason);
	ck_assert_int_eq(back.exit_status, -1);
}
END_TEST

#define ID   "\"id\":\"11111111-2222-4333-8444-555555555555\""
#define REST ",\"pid\":0,\"createdMs\":1}"

static const struct {
	const char *text;
	enum errc code;
} bad[] = {
	{ "", ERRC_INVALID },
	{ "[]", ERRC_INVALID },
	{ "{\"version\":1," ID ",\"state\":\"Running\"", ERRC_INVALID },
	{ "{\"version\":2," ID ",\"state\":\"Running\"" REST, ERRC_INVALID },
	{ "{\"version\":1," ID ",\"state\":\"Flying\"" REST, ERRC_INVALID },
	{ "{\"version\":1,\"id\":\"../x\",\"state\":\"Running\"" REST, ERRC_INVALID },
	{ "{\"version\":1,\"state\":\"Running\"" REST, ERRC_INVALID },
	{ "{\"version\":1," ID ",\"state\":\"Running\",\"pid\":-1,\"createdMs\":1}", ERRC_INVALID },
	{ "{\"version\":1," ID ",\"state\":\"Running\",\"pid\":4294967296,\"createdMs\":1}",
			ERRC_LIMIT },
	{ "{\"version\":1," ID ",\"state\":\"Running\",\"exitStatus\":256" REST, ERRC_LIMIT },
};

START_TEST(refuses_other_documents)
{
	struct sandbox_state back = { .code = SANDBOX_PAUSED };
	struct error e = ERROR_INIT;
	struct span text = { .p = bad[_i].text, .n = strlen(bad[_i].text) };

	ck_assert_int_eq(file_write_at(unit_fd, STATE_FILE, text, false), 0);
	ck_assert_int_eq(state_load(unit_fd, &back, &e), -1);
	ck_assert_int_eq(e.code, bad[_i].code);
	ck_assert_int_eq(back.code, SANDBOX_PAUSED);
}
END_TEST

START_TEST(reads_the_smallest_document)
{
	static const char text[] = "{\"version\":1," ID ",\"state\":\"Running\"" REST;
	AUTO(state) struct sandbox_state back = { .code = SANDBOX_PENDING };
	struct error e = ERROR_INIT;

	ck_assert_int_eq(state_load(unit_fd, &back, &e), -1);
	ck_assert_int_eq(e.code, ERRC_NOT_FOUND);
	error_clear(&e);
	ck_assert_int_eq(file_write_at(unit_fd, STATE_FILE, span_of(text), false), 0);
	ck_assert_int_eq(state_load(unit_fd, &back, &e), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("state");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_loop_test(tc, names_go_both_ways, 0, SANDBOX_STATE_COUNT);
	tcase_add_test(tc, unknown_names_are_none);
	tcase_add_loop_test(tc, ends_are_final_and_reachable, 0, SANDBOX_STATE_COUNT);
	tcase_add_test(tc, takes_the_known_ways);
	tcase_add_test_raise_signal(tc, another_way_is_our_own_mistake, SIGABRT);
	tcase_add_test(tc, stamps_beginning_and_end);
	tcase_add_test(tc, reads_what_it_wrote);
	tcase_add_test(tc, reads_what_a_keeper_adds);
	tcase_add_loop_test(tc, ends_from_anywhere, 0, SANDBOX_STATE_COUNT);
	tcase_add_test(tc, a_process_has_a_start);
	tcase_add_test(tc, what_is_unknown_is_absent);
	tcase_add_loop_test(tc, refuses_other_documents, 0, ARRAY_SIZE(bad));
	tcase_add_test(tc, reads_the_smallest_document);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
