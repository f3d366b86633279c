/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include <osbx/fd.h>
#include <osbx/mem.h>

#include "../../../execd/command_internal.h"
#include "../unit.h"

static struct execd x = { .cgroup_fd = -1 };

static void table_begin(void)
{
	x.loop = loop_new();
	ck_assert_ptr_nonnull(x.loop);
}

static struct command *add(enum command_kind kind, const char *content)
{
	const struct command_wish w = { .kind = kind, .content = content };

	return command_new(commands_of(&x), &w, false);
}

static void finish(struct command *c)
{
	c->stage = COMMAND_DONE;
	commands_trim(c->table);
}

static size_t count(void)
{
	size_t n = 0;

	for (const struct command *c = commands_of(&x)->list; c; c = c->next) {
		n++;
	}
	return n;
}

START_TEST(keeps_the_newest_records)
{
	struct command *running = add(COMMAND_FOREGROUND, "running");
	char first[40] = "";
	char last[40] = "";

	for (int i = 0; i < 10000; i++) {
		struct command *c = add(i % 2 ? COMMAND_BACKGROUND : COMMAND_FOREGROUND, "true");

		snprintf(i == 0 ? first : last, sizeof(first), "%s", c->id);
		finish(c);
		ck_assert_uint_le(count(), COMMANDS_FINISHED_MAX + 1);
	}
	ck_assert_uint_eq(count(), COMMANDS_FINISHED_MAX + 1);
	ck_assert_ptr_null(command_find(commands_of(&x), first));
	ck_assert_ptr_nonnull(command_find(commands_of(&x), last));
	ck_assert_ptr_eq(command_find(commands_of(&x), running->id), running);
}
END_TEST

START_TEST(ids_are_32_digits_and_differ)
{
	const struct command *a = add(COMMAND_FOREGROUND, "a");
	const struct command *b = add(COMMAND_FOREGROUND, "b");

	ck_assert_uint_eq(strspn(a->id, "0123456789abcdef"), 32);
	ck_assert_uint_eq(strlen(a->id), 32);
	ck_assert_str_ne(a->id, b->id);
	ck_assert_str_eq(a->shown_id, a->id);
	ck_assert_ptr_null(command_find(commands_of(&x), ""));
	/* Runs of sessions have no record. */
	ck_assert_ptr_null(command_find(commands_of(&x), add(COMMAND_SESSION, "c")->id));
}
END_TEST

/* Logs of the oldest go when all of them are too large together. */
START_TEST(logs_are_bounded_together)
{
	static char bytes[1U << 20];
	uint64_t sum = 0;

	memset(bytes, 'x', sizeof(bytes));
	for (int i = 0; i < 8; i++) {
		struct command *c = add(COMMAND_BACKGROUND, "flood");

		for (int n = 0; n < 20; n++) {
			command_log_put(&c->log, (struct span){ .p = bytes, .n = sizeof(bytes) });
		}
		finish(c);
	}
	for (const struct command *c = commands_of(&x)->list; c; c = c->next) {
		ck_assert_uint_eq(c->log.total, 20U << 20);
		sum += c->log.max;
	}
	ck_assert_uint_le(sum, 64U << 20);
	ck_assert_uint_ge(count(), 3);
}
END_TEST

START_TEST(many_logs_are_small)
{
	uint64_t sum = 0;

	for (int i = 0; i < 100; i++) {
		sum += add(COMMAND_BACKGROUND, "server")->log.max;
	}
	ck_assert_uint_le(sum, 4 * COMMAND_LOG_BYTES + 96 * COMMAND_LOG_BYTES_SMALL);
}
END_TEST

START_TEST(log_keeps_the_last_bytes)
{
	struct command_log log = COMMAND_LOG_INIT(10);
	char bytes[16] = "";

	ck_assert_int_eq(command_log_read(&log, command_log_seek(&log, 5), bytes, 16), 0);
	command_log_put(&log, span_of("0123456"));
	ck_assert_uint_eq(command_log_seek(&log, 3), 3);
	ck_assert_int_eq(command_log_read(&log, 3, bytes, 16), 4);
	ck_assert_mem_eq(bytes, "3456", 4);
	command_log_put(&log, span_of("789abcdefghij"));
	ck_assert_uint_eq(log.total, 20);
	ck_assert_uint_eq(command_log_seek(&log, 0), 10);
	ck_assert_uint_eq(command_log_seek(&log, 99), 20);
	ck_assert_int_eq(command_log_read(&log, 13, bytes, 3), 3);
	ck_assert_mem_eq(bytes, "def", 3);
	command_log_put(&log, span_of("klmno"));
	/* Up to the end of the ring, then from its beginning. */
	ck_assert_int_eq(command_log_read(&log, 15, bytes, 16), 5);
	ck_assert_mem_eq(bytes, "fghij", 5);
	ck_assert_int_eq(command_log_read(&log, 20, bytes, 16), 5);
	ck_assert_mem_eq(bytes, "klmno", 5);
	command_log_done(&log);
}
END_TEST

static void replay_expect(const struct command_replay *r, uint64_t after, const char *text)
{
	struct span parts[2];
	AUTO(buf) struct buf b = BUF_INIT(1U << 20);

	command_replay_get(r, after, parts);
	ck_assert_int_eq(buf_append(&b, parts[0].p, parts[0].n), 0);
	ck_assert_int_eq(buf_append(&b, parts[1].p, parts[1].n), 0);
	ck_assert_int_eq(buf_append(&b, "", 0), 0);
	ck_assert_uint_eq(b.n, strlen(text));
	ck_assert_mem_eq(b.p ? b.p : "", text, b.n);
}

START_TEST(replay_begins_behind_an_event)
{
	struct command_replay r = { .is_broken = false };

	replay_expect(&r, 0, "");
	command_replay_put(&r, span_of("{1}\n\n{2}\n\n"), 1, true);
	command_replay_put(&r, span_of("{3}\n\n"), 3, true);
	replay_expect(&r, 0, "{1}\n\n{2}\n\n{3}\n\n");
	replay_expect(&r, 1, "{2}\n\n{3}\n\n");
	replay_expect(&r, 2, "{3}\n\n");
	replay_expect(&r, 3, "");
	replay_expect(&r, 99, "");
	/* An event that is too long to be kept is a gap. */
	command_replay_put(&r, span_of("{4 begins"), 4, false);
	replay_expect(&r, 0, "");
	command_replay_put(&r, span_of(" goes on"), 4, false);
	command_replay_put(&r, span_of(" and ends}\n\n"), 4, true);
	replay_expect(&r, 0, "");
	command_replay_put(&r, span_of("{5}\n\n"), 5, true);
	replay_expect(&r, 0, "{5}\n\n");
	replay_expect(&r, 4, "{5}\n\n");
	replay_expect(&r, 5, "");
	command_replay_done(&r);
}
END_TEST

START_TEST(replay_forgets_the_oldest)
{
	struct command_replay r = { .is_broken = false };
	const int n = 20000;
	char event[16];
	struct span parts[2];

	for (int i = 1; i <= n; i++) {
		snprintf(event, sizeof(event), "{%05d}\n\n", i);
		command_replay_put(&r, span_of(event), (uint64_t)i, true);
	}
	command_replay_get(&r, 0, parts);
	ck_assert_uint_ge(parts[0].n + parts[1].n, COMMAND_REPLAY_BYTES);
	ck_assert_uint_le(parts[0].n + parts[1].n, (size_t)4 * COMMAND_REPLAY_BYTES);
	command_replay_get(&r, (uint64_t)n - 1500, parts);
	ck_assert_uint_eq(parts[0].n + parts[1].n, (size_t)1500 * 9);
	ck_assert_mem_eq(parts[0].n > 0 ? parts[0].p : parts[1].p, "{18501}\n\n", 9);
	command_replay_done(&r);
}
END_TEST

/* Pipes that somebody keeps open are bounded too. */
START_TEST(drains_are_bounded)
{
	for (int i = 0; i < 1500; i++) {
		int fds[2];

		ck_assert_int_eq(fd_pipe(fds, O_NONBLOCK), 0);
		command_drain(commands_of(&x), &fds[0]);
		ck_assert_int_eq(fds[0], -1);
		close(fds[1]);
	}
	ck_assert_uint_eq(commands_of(&x)->drains_n, 1024);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("execd/command_table");
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, table_begin, NULL);
	tcase_add_test(tc, keeps_the_newest_records);
	tcase_add_test(tc, ids_are_32_digits_and_differ);
	tcase_add_test(tc, logs_are_bounded_together);
	tcase_add_test(tc, many_logs_are_small);
	tcase_add_test(tc, log_keeps_the_last_bytes);
	tcase_add_test(tc, replay_begins_behind_an_event);
	tcase_add_test(tc, replay_forgets_the_oldest);
	tcase_add_test(tc, drains_are_bounded);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
