/* SPDX-License-Identifier: Apache-2.0 */
/* The test is the program that sandbox_start executes, too: "keeper" plays the one of $FAKE. */
#include <osbx/fd.h>
#include <osbx/packet.h>
#include <osbx/sandbox.h>

#include "../unit.h"

#define FD_REQUEST 3
#define FD_READY   4
#define READY      192
#define FAILED     193
#define PENDING    194
#define LEAVE      195

#define ID "01234567-89ab-4cde-8f01-23456789abcd"

static void tell(uint16_t type, const void *payload, uint32_t n)
{
	struct packet p;

	packet_init(&p, type);
	if (packet_put(&p, payload, n) < 0 || packet_send(FD_READY, &p) < 0) {
		_exit(1);
	}
}

static void tell_id(uint16_t type, const char *text)
{
	struct id id = { .text = "" };

	snprintf(id.text, sizeof(id.text), "%s", text);
	tell(type, &id, sizeof(id));
}

/* The request says so, and nothing but it and the channel is open. */
static bool request_is_right(const char *patient)
{
	AUTO(buf) struct buf text = BUF_INIT(1U << 20);

	return lseek(FD_REQUEST, 0, SEEK_SET) == 0 && fd_read_all(FD_REQUEST, &text) == 0 &&
	       text.p && strstr(text.p, "\"busybox\"") && strstr(text.p, patient) &&
	       fcntl(FD_READY + 1, F_GETFD) < 0 && getsid(0) == getpid();
}

static int keeper(const char *fake)
{
	bool patient = strcmp(fake, "leave") != 0 && strcmp(fake, "in-time") != 0;
	struct error e = ERROR_INIT;
	struct packet p;

	if (!request_is_right(patient ? "\"patient\":true" : "\"patient\":false")) {
		return 1;
	}
	if (strcmp(fake, "ready") == 0) {
		tell_id(READY, ID);
	} else if (strcmp(fake, "failed") == 0) {
		(void)error_set(&e, ERRC_NO_COMMAND, "no such command");
		tell(FAILED, &e, sizeof(e));
	} else if (strcmp(fake, "no-error") == 0) {
		tell(FAILED, &e, sizeof(e));
	} else if (strcmp(fake, "no-id") == 0) {
		tell_id(READY, "../../etc");
	} else if (strcmp(fake, "short") == 0) {
		tell(READY, "x", 1);
	} else if (strcmp(fake, "odd") == 0) {
		tell_id(LEAVE, ID);
	} else if (strcmp(fake, "in-time") == 0) {
		tell_id(PENDING, ID);
		tell_id(READY, ID);
	} else if (strcmp(fake, "leave") == 0) {
		tell_id(PENDING, ID);
		return packet_recv(FD_READY, &p, -1) == 1 && p.type == LEAVE ? 0 : 1;
	}
	return 0;
}

static int start(const char *fake, int64_t wait_ms, bool *out_pending, struct error *e)
{
	const struct sandbox_start_opts opts = { .err_fd = -1, .wait_ms = wait_ms };
	struct sandbox_request req;
	struct id id = { .text = "" };

	setenv("FAKE", fake, 1);
	request_init(&req);
	free(req.image);
	req.image = strdup("busybox");
	int r = sandbox_start(&req, &opts, &id, out_pending, e);

	request_done(&req);
	if (r == 0) {
		ck_assert_str_eq(id.text, ID);
	}
	return r;
}

START_TEST(keeper_that_is_ready)
{
	struct error e = ERROR_INIT;
	bool pending = true;

	ck_assert_msg(start("ready", -1, &pending, &e) == 0, "%s", e.text);
	ck_assert(!pending);
}
END_TEST

START_TEST(failure_of_the_keeper)
{
	struct error e = ERROR_INIT;
	bool pending = false;

	ck_assert_int_eq(start("failed", -1, &pending, &e), -1);
	ck_assert_int_eq(e.code, ERRC_NO_COMMAND);
	ck_assert_str_eq(e.text, "no such command");
}
END_TEST

static const char *const broken[] = { "no-error", "no-id", "short", "odd" };

START_TEST(answer_that_is_none)
{
	struct error e = ERROR_INIT;
	bool pending = false;

	ck_assert_int_eq(start(broken[_i], -1, &pending, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INTERNAL);
}
END_TEST

START_TEST(keeper_that_is_killed)
{
	struct error e = ERROR_INIT;
	bool pending = false;

	ck_assert_int_eq(start("nothing", -1, &pending, &e), -1);
	ck_assert_int_eq(e.code, ERRC_UNAVAILABLE);
}
END_TEST

START_TEST(pull_that_ends_in_time)
{
	struct error e = ERROR_INIT;
	bool pending = true;

	ck_assert_int_eq(start("in-time", 60000, &pending, &e), 0);
	ck_assert(!pending);
}
END_TEST

START_TEST(pull_that_is_left)
{
	struct error e = ERROR_INIT;
	bool pending = false;

	ck_assert_int_eq(start("leave", 20, &pending, &e), 0);
	ck_assert(pending);
}
END_TEST

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "keeper") == 0) {
		const char *fake = getenv("FAKE");

		return fake ? keeper(fake) : 1;
	}
	Suite *s = suite_create("detach");
	TCase *tc = tcase_create("all");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, keeper_that_is_ready);
	tcase_add_test(tc, failure_of_the_keeper);
	tcase_add_loop_test(tc, answer_that_is_none, 0, ARRAY_SIZE(broken));
	tcase_add_test(tc, keeper_that_is_killed);
	tcase_add_test(tc, pull_that_ends_in_time);
	tcase_add_test(tc, pull_that_is_left);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
