/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/wait.h>

#include <osbx/events.h>
#include <osbx/fd.h>
#include <osbx/json.h>
#include <osbx/logfile.h>
#include <osbx/mem.h>

#include "../unit.h"

#define WRITERS 8
#define LINES   200

static struct sandbox_state state;

static void state_make(void)
{
	struct id id;

	unit_dir_make();
	id_new(&id);
	state_init(&state, &id, "web \"quoted\"\n\303\244", "busybox");
}

static void state_free(void)
{
	state_done(&state);
	unit_dir_close();
}

/* Call fn for each line, oldest first. Their number. */
static size_t events_each(void (*fn)(const struct json *event))
{
	AUTO(line_reader) struct line_reader r = { .fd = -1 };
	struct span line;
	size_t n = 0;
	int got = 0;

	line_reader_init(&r, unit_fd, EVENTS_FILE, EVENTS_FILES);
	while ((got = line_reader_next(&r, &line)) == 1) {
		struct error e = ERROR_INIT;
		struct json *event = json_parse(line, &e);

		ck_assert_msg(event != NULL, "%.*s", (int)line.n, line.p);
		if (fn) {
			fn(event);
		}
		json_free(event);
		n++;
	}
	ck_assert_int_eq(got, 0);
	return n;
}

static const char *text_of(const struct json *event, const char *name)
{
	const struct json *v = json_get(event, name);

	return v ? json_string(v) : NULL;
}

static void is_end(const struct json *event)
{
	const struct {
		const char *name;
		const char *value;
	} want[] = {
		{ "type", "end" },
		{ "id", state.id.text },
		{ "name", state.name },
		{ "image", "busybox" },
		{ "reason", STATE_REASON_EXITED },
	};

	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		ck_assert_str_eq(text_of(event, want[i].name), want[i].value);
	}
	ck_assert_ptr_nonnull(json_get(event, "exitStatus"));
	ck_assert_ptr_null(json_get(event, "expiresAt"));
}

START_TEST(end_tells_how)
{
	state_go(&state, SANDBOX_RUNNING);
	state.exit_status = 3;
	state_end(&state, SANDBOX_TERMINATED, STATE_REASON_EXITED, NULL);
	events_add(unit_fd, EVENT_END, &state);
	ck_assert_uint_eq(events_each(is_end), 1);
}
END_TEST

static void is_start(const struct json *event)
{
	ck_assert_str_eq(text_of(event, "type"), "start");
	ck_assert_str_eq(text_of(event, "expiresAt"), "2001-09-09T01:46:40.000Z");
	ck_assert_ptr_null(json_get(event, "reason"));
}

START_TEST(start_tells_until_when)
{
	state.expires_ms = INT64_C(1000000000000);
	events_add(unit_fd, EVENT_START, &state);
	ck_assert_uint_eq(events_each(is_start), 1);
}
END_TEST

static void append(const char *name, size_t n)
{
	AUTO(buf) struct buf line = BUF_INIT(1U << 10);
	int fd = openat(unit_fd, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(buf_appendf(&line, "{\"type\":\"%0500d\"}\n", 7), 0);
	for (size_t i = 0; i < n; i += line.n) {
		ck_assert_int_eq(fd_write_all(fd, line.p, line.n), 0);
	}
	close(fd);
}

START_TEST(full_file_is_renamed)
{
	struct stat st;

	append(EVENTS_FILE, 4U << 20);
	append(EVENTS_FILE ".1", 100);
	events_add(unit_fd, EVENT_PAUSE, &state);
	ck_assert_int_lt(fstatat(unit_fd, EVENTS_FILE, &st, 0), 0);
	ck_assert_int_eq(fstatat(unit_fd, EVENTS_FILE ".1", &st, 0), 0);
	ck_assert_int_gt(st.st_size, 4 << 20);
	events_add(unit_fd, EVENT_RESUME, &state);
	ck_assert_int_eq(fstatat(unit_fd, EVENTS_FILE, &st, 0), 0);
	ck_assert_uint_gt(events_each(NULL), 2);
}
END_TEST

/* Many at once, also while the file is renamed: each line is whole. */
START_TEST(lines_do_not_mix)
{
	pid_t pids[WRITERS];
	size_t before = 0;

	if (_i == 1) {
		append(EVENTS_FILE, (4U << 20) - 20000);
		before = events_each(NULL);
	}
	for (int i = 0; i < WRITERS; i++) {
		pids[i] = fork();
		ck_assert_int_ge(pids[i], 0);
		for (int n = 0; pids[i] == 0 && n < LINES; n++) {
			events_add(unit_fd, EVENT_STOP, &state);
		}
		if (pids[i] == 0) {
			_exit(0);
		}
	}
	for (int i = 0; i < WRITERS; i++) {
		int status = -1;

		ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
		ck_assert_int_eq(status, 0);
	}
	ck_assert_uint_eq(events_each(NULL), before + (size_t)WRITERS * LINES);
}
END_TEST

START_TEST(no_place_is_no_error)
{
	struct stat st;

	events_add(-1, EVENT_START, &state);
	/* A link is not followed. */
	ck_assert_int_eq(symlinkat("elsewhere", unit_fd, EVENTS_FILE), 0);
	events_add(unit_fd, EVENT_START, &state);
	ck_assert_int_lt(fstatat(unit_fd, "elsewhere", &st, 0), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("events");
	TCase *tc = tcase_create("all");

	tcase_add_unchecked_fixture(tc, unit_base_make, unit_base_remove);
	tcase_add_checked_fixture(tc, state_make, state_free);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, end_tells_how);
	tcase_add_test(tc, start_tells_until_when);
	tcase_add_test(tc, full_file_is_renamed);
	tcase_add_loop_test(tc, lines_do_not_mix, 0, 2);
	tcase_add_test(tc, no_place_is_no_error);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
