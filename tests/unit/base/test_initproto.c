/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/initproto.h>

#include "../unit.h"

static int pair[2];

static void pair_make(void)
{
	ck_assert_int_eq(fd_seqpacket_pair(pair), 0);
}

static void pair_close(void)
{
	fd_close(&pair[0]);
	fd_close(&pair[1]);
}

START_TEST(permit_table)
{
	static const struct {
		enum init_stage stage;
		enum init_msg msg;
		enum init_stage next;
	} way[] = {
		{ INIT_STAGE_CLONED, INIT_MSG_IDS_DONE, INIT_STAGE_IDS },
		{ INIT_STAGE_IDS, INIT_MSG_TREES, INIT_STAGE_IDS },
		{ INIT_STAGE_IDS, INIT_MSG_NET_DONE, INIT_STAGE_NET },
		{ INIT_STAGE_NET, INIT_MSG_GO, INIT_STAGE_GONE },
		{ INIT_STAGE_GONE, INIT_MSG_UP, INIT_STAGE_UP },
	};
	int permitted = 0;

	for (size_t i = 0; i < ARRAY_SIZE(way); i++) {
		ck_assert_int_eq(init_stage_next(way[i].stage, way[i].msg), (int)way[i].next);
	}
	for (int stage = 0; stage < INIT_STAGE_COUNT; stage++) {
		int next = init_stage_next((enum init_stage)stage, INIT_MSG_ERROR);

		ck_assert_int_eq(next, stage == INIT_STAGE_UP ? -1 : stage);
		for (int msg = 0; msg <= INIT_MSG_COUNT; msg++) {
			permitted += init_stage_next((enum init_stage)stage, (enum init_msg)msg) >=
				     0;
		}
	}
	/* The way above, ERROR in all stages but the last, and nothing else. */
	ck_assert_int_eq(permitted, (int)ARRAY_SIZE(way) + INIT_STAGE_COUNT - 1);
}
END_TEST

START_TEST(all_have_names)
{
	for (int i = 0; i < INIT_MSG_COUNT; i++) {
		ck_assert_int_gt(strlen(init_msg_name((enum init_msg)i)), 0);
	}
	for (int i = 0; i < INIT_STAGE_COUNT; i++) {
		ck_assert_int_gt(strlen(init_stage_name((enum init_stage)i)), 0);
	}
	ck_assert_str_eq(init_msg_name(INIT_MSG_GO), "GO");
	ck_assert_str_eq(init_stage_name(INIT_STAGE_GONE), "gone");
	ck_assert_str_eq(init_msg_name(INIT_MSG_COUNT), "unknown message");
	ck_assert_str_eq(init_stage_name(INIT_STAGE_COUNT), "unknown stage");
}
END_TEST

/* The whole handshake, each side with its own stage. */
START_TEST(from_clone_to_up)
{
	static const struct {
		int from; /* 0: parent, 1: child */
		enum init_msg msg;
	} steps[] = {
		{ 0, INIT_MSG_IDS_DONE },
		{ 0, INIT_MSG_TREES },
		{ 0, INIT_MSG_TREES },
		{ 0, INIT_MSG_NET_DONE },
		{ 0, INIT_MSG_GO },
		{ 1, INIT_MSG_UP },
	};
	enum init_stage stage[2] = { INIT_STAGE_CLONED, INIT_STAGE_CLONED };
	struct error e = ERROR_INIT;
	struct packet p;

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		int from = steps[i].from;
		int next = init_stage_next(stage[from], steps[i].msg);

		ck_assert_int_ge(next, 0);
		stage[from] = (enum init_stage)next;
		ck_assert_int_eq(init_send(pair[from], steps[i].msg, NULL, 0), 0);
		enum init_msg want = i % 2 ? steps[i].msg : INIT_MSG_COUNT;

		ck_assert_int_eq(init_expect(pair[!from], &stage[!from], want, &p, 0, &e), 0);
		ck_assert_uint_eq(p.type, steps[i].msg);
		ck_assert_int_eq(stage[0], stage[1]);
	}
	ck_assert_int_eq(stage[0], INIT_STAGE_UP);
}
END_TEST

START_TEST(descriptors_travel)
{
	const int nulls[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0 };
	enum init_stage stage = INIT_STAGE_CLONED;
	struct error e = ERROR_INIT;
	struct packet p;

	ck_assert_int_eq(init_send(pair[0], INIT_MSG_IDS_DONE, nulls, 9), -EMSGSIZE);
	ck_assert_int_eq(init_send(pair[0], INIT_MSG_IDS_DONE, nulls, 8), 0);
	ck_assert_int_eq(init_expect(pair[1], &stage, INIT_MSG_IDS_DONE, &p, -1, &e), 0);
	ck_assert_uint_eq(p.fds_n, 8);
	packet_done(&p);
}
END_TEST

static void expect_error(
		enum init_stage stage, enum init_msg want, enum errc code, const char *text)
{
	struct error e = ERROR_INIT;
	struct packet p = { .type = 99 };
	enum init_stage before = stage;

	ck_assert_int_eq(init_expect(pair[1], &stage, want, &p, clock_boot_ms() + 20, &e), -1);
	ck_assert_int_eq(e.code, code);
	ck_assert_msg(strstr(e.text, text) != NULL, "%s", e.text);
	ck_assert_int_eq(stage, before);
	ck_assert_uint_eq(p.type, 99);
}

START_TEST(out_of_turn)
{
	const int null = 0;
	int next_fd = dup(0);

	/* Not permitted; the descriptors that came with it are closed. */
	ck_assert_int_eq(init_send(pair[0], INIT_MSG_GO, &null, 1), 0);
	expect_error(INIT_STAGE_IDS, INIT_MSG_NET_DONE, ERRC_INTERNAL, "GO came in stage ids");
	ck_assert_int_eq(init_send(pair[0], INIT_MSG_UP, NULL, 0), 0);
	expect_error(INIT_STAGE_UP, INIT_MSG_COUNT, ERRC_INTERNAL, "UP came in stage up");
	/* Permitted, but another one is wanted. */
	ck_assert_int_eq(init_send(pair[0], INIT_MSG_TREES, &null, 1), 0);
	expect_error(INIT_STAGE_IDS, INIT_MSG_NET_DONE, ERRC_INTERNAL, "not NET_DONE");
	/* A number of another protocol. */
	ck_assert_int_eq(init_send(pair[0], (enum init_msg)64, &null, 1), 0);
	expect_error(INIT_STAGE_NET, INIT_MSG_GO, ERRC_INTERNAL, "unknown message");
	int again = dup(0);

	ck_assert_int_eq(again, next_fd + 1);
	fd_close(&again);
	fd_close(&next_fd);
}
END_TEST

START_TEST(end_of_file_is_an_error)
{
	fd_close(&pair[0]);
	for (int stage = 0; stage < INIT_STAGE_COUNT; stage++) {
		expect_error((enum init_stage)stage, INIT_MSG_COUNT, ERRC_INTERNAL, "ended");
	}
}
END_TEST

START_TEST(silence_is_a_timeout)
{
	expect_error(INIT_STAGE_GONE, INIT_MSG_UP, ERRC_TIMEOUT, "no UP in time, stage gone");
}
END_TEST

START_TEST(malformed)
{
	ck_assert_int_eq(send(pair[0], "x", 1, 0), 1);
	expect_error(INIT_STAGE_NET, INIT_MSG_GO, ERRC_INTERNAL, "malformed");
}
END_TEST

START_TEST(childs_error_is_ours)
{
	struct error sent = ERROR_INIT;
	struct error got = ERROR_INIT;
	enum init_stage stage = INIT_STAGE_NET;
	struct packet p;

	error_sys(&sent, EROFS, "mount /proc");
	error_hint(&sent, "try again");
	ck_assert_int_eq(init_send_error(pair[0], &sent), 0);
	ck_assert_int_eq(init_expect(pair[1], &stage, INIT_MSG_GO, &p, -1, &got), -1);
	ck_assert_mem_eq(&sent, &got, sizeof(sent));
}
END_TEST

static void send_error_bytes(const void *bytes, uint32_t n)
{
	struct packet p;

	packet_init(&p, INIT_MSG_ERROR);
	ck_assert_int_eq(packet_put(&p, bytes, n), 0);
	ck_assert_int_eq(packet_send(pair[0], &p), 0);
}

START_TEST(hostile_errors)
{
	struct error bad;
	struct error got = ERROR_INIT;
	enum init_stage stage = INIT_STAGE_GONE;
	struct packet p;

	/* No terminator anywhere, numbers out of range. */
	memset(&bad, 'A', sizeof(bad));
	send_error_bytes(&bad, sizeof(bad));
	ck_assert_int_eq(init_expect(pair[1], &stage, INIT_MSG_UP, &p, 0, &got), -1);
	ck_assert_int_lt(got.code, ERRC_COUNT);
	ck_assert_int_gt(got.code, ERRC_OK);
	ck_assert_uint_lt(strlen(got.text), sizeof(got.text));
	ck_assert_uint_lt(strlen(got.hint), sizeof(got.hint));
	/* An error that is none must not look like success. */
	memset(&bad, 0, sizeof(bad));
	send_error_bytes(&bad, sizeof(bad));
	expect_error(INIT_STAGE_GONE, INIT_MSG_UP, ERRC_INTERNAL, "ERROR without an error");
	send_error_bytes(&bad, sizeof(bad) - 1);
	expect_error(INIT_STAGE_GONE, INIT_MSG_UP, ERRC_INTERNAL, "ERROR of 511 bytes");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("initproto");
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, pair_make, pair_close);
	tcase_add_test(tc, permit_table);
	tcase_add_test(tc, all_have_names);
	tcase_add_test(tc, from_clone_to_up);
	tcase_add_test(tc, descriptors_travel);
	tcase_add_test(tc, out_of_turn);
	tcase_add_test(tc, end_of_file_is_an_error);
	tcase_add_test(tc, silence_is_a_timeout);
	tcase_add_test(tc, malformed);
	tcase_add_test(tc, childs_error_is_ours);
	tcase_add_test(tc, hostile_errors);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
