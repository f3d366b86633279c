/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "../../../policy/netd_policy_api.h"
#include "../unit.h"

#define LIMIT_MS   60000
#define TOKEN      "Opensandbox-Egress-Auth: secret\r\n"
#define ANSWER_MAX 65536

static struct loop *loop;
static struct netd_policy_api *api;
static struct netpolicy policy;
static struct netd_denials denials;
static struct sockaddr_un addr = { .sun_family = AF_UNIX };
/* A change that was asked for, and is to fail with this error (0: to succeed). */
static struct netpolicy wanted;
static bool is_wanted;
static int failure;
static struct loop_source step;

static const struct netpolicy *policy_now(void *ctx)
{
	(void)ctx;
	return &policy;
}

static void change(void *ctx, const struct netpolicy *to)
{
	(void)ctx;
	ck_assert(!is_wanted);
	netpolicy_copy(to, &wanted);
	is_wanted = true;
}

static void on_step(struct loop *l, struct loop_source *src, uint32_t events)
{
	(void)src;
	(void)events;
	loop_stop(l, 0);
}

static void turn(void)
{
	loop_timer(loop, &step, clock_boot_ms() + 1, on_step);
	ck_assert_int_eq(loop_run(loop), 0);
	loop_remove(loop, &step);
}

/* The change is in force, or has failed. */
static void settle(void)
{
	is_wanted = false;
	if (failure == 0) {
		netpolicy_done(&policy);
		policy = wanted;
	} else {
		netpolicy_done(&wanted);
	}
	netd_policy_api_changed(api, failure);
}

static void world_open(void)
{
	static const struct netd_policy_api_opts opts = {
		.token = "secret",
		.policy = policy_now,
		.change = change,
		.denials = &denials,
	};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/s", unit_path);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	ck_assert_int_eq(listen(fd, 100), 0);
	loop = loop_new();
	netpolicy_init(&policy);
	api = netd_policy_api_new(loop, fd, &opts);
	ck_assert_ptr_nonnull(api);
}

static void world_close(void)
{
	netd_policy_api_free(api);
	netpolicy_done(&policy);
	loop_free(loop);
}

static int request(const char *method, const char *path, const char *fields, const char *body)
{
	autofree char *text = mem_printf(
			"%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%sContent-Length: %zu\r\n\r\n%s",
			method, path, fields, strlen(body), body);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	ck_assert_int_eq(fd_write_all(fd, text, strlen(text)), 0);
	return fd;
}

/* Status and body, "200 …". */
static char *answer(int fd)
{
	static char text[ANSWER_MAX];
	size_t n = 0;

	for (int64_t end = clock_boot_ms() + LIMIT_MS; clock_boot_ms() < end;) {
		ssize_t got = recv(fd, text + n, sizeof(text) - 1 - n, MSG_DONTWAIT);

		if (got == 0) {
			break;
		}
		n += got > 0 ? (size_t)got : 0;
		turn();
		if (is_wanted) {
			settle();
		}
	}
	text[n] = '\0';
	(void)close(fd);
	char *body = strstr(text, "\r\n\r\n");

	ck_assert_ptr_nonnull(body);
	return mem_printf("%.3s %s", text + strlen("HTTP/1.1 "), body + 4);
}

static void is(const char *method, const char *path, const char *body, const char *expected)
{
	autofree char *got = answer(request(method, path, TOKEN, body));

	ck_assert_str_eq(got, expected);
}

#define STATUS(mode, rest) \
	"200 {\"status\":\"ok\",\"mode\":\"" mode "\",\"enforcementMode\":\"dns+nft\"," rest "}"
#define ALLOW_A "{\"action\":\"allow\",\"target\":\"a.test\"}"

START_TEST(edits)
{
	is("GET", "/policy", "",
			STATUS("allow_all",
					"\"policy\":{\"defaultAction\":\"allow\",\"egress\":[]}"));
	is("PUT", "/policy", "{\"egress\":[" ALLOW_A "]}",
			STATUS("enforcing",
					"\"policy\":{\"defaultAction\":\"deny\",\"egress\":[" ALLOW_A
					"]}"));
	is("PATCH", "/policy", "[{\"action\":\"deny\",\"target\":\"b.test\"}]",
			STATUS("enforcing",
					"\"policy\":{\"defaultAction\":\"deny\",\"egress\":[{\"action\":\"deny\",\"target\":\"b.test\"}," ALLOW_A
					"]}"));
	is("DELETE", "/policy", "[\"B.test\"]",
			STATUS("enforcing",
					"\"policy\":{\"defaultAction\":\"deny\",\"egress\":[" ALLOW_A
					"]}"));
	is("DELETE", "/policy", "[\"c.test\"]",
			STATUS("enforcing",
					"\"reason\":\"no rule matched\",\"policy\":{\"defaultAction\":\"deny\",\"egress\":[" ALLOW_A
					"]}"));
	is("POST", "/policy", "null",
			STATUS("deny_all",
					"\"policy\":{\"defaultAction\":\"deny\",\"egress\":[]}"));
	is("POST", "/policy", "{\"defaultAction\":\"allow\"}",
			STATUS("allow_all",
					"\"policy\":{\"defaultAction\":\"allow\",\"egress\":[]}"));
	is("POST", "/policy", " \n",
			STATUS("deny_all",
					"\"reason\":\"policy reset to default deny-all\",\"policy\":{\"defaultAction\":\"deny\",\"egress\":[]}"));
}
END_TEST

START_TEST(bad_ones_change_nothing)
{
	static const struct {
		const char *method;
		const char *body;
	} rows[] = {
		{ "PUT", "{" },
		{ "PUT", "[]" },
		{ "PUT", "{\"egress\":[{\"action\":\"allow\",\"target\":\"a b\"}]}" },
		{ "PUT", "{\"defaultAction\":\"maybe\"}" },
		{ "PATCH", "" },
		{ "PATCH", "[]" },
		{ "PATCH", "{}" },
		{ "DELETE", "" },
		{ "DELETE", "{}" },
		{ "DELETE", "[1]" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		autofree char *got =
				answer(request(rows[i].method, "/policy", TOKEN, rows[i].body));

		ck_assert_msg(strncmp(got, "400 ", 4) == 0 && strlen(got) > 4, "%s %s: %s",
				rows[i].method, rows[i].body, got);
	}
	ck_assert_int_eq(policy.fallback, NETPOLICY_ALLOW);
	ck_assert_uint_eq(policy.n, 0);
}
END_TEST

START_TEST(the_token)
{
	static const char *const fields[] = { "", "OPENSANDBOX-EGRESS-AUTH: secre\r\n",
		"OPENSANDBOX-EGRESS-AUTH:\r\n", "Authorization: secret\r\n" };
	static const char *const paths[] = { "/policy", "/policy/denials", "/nothing" };

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(paths); k++) {
			autofree char *got = answer(request("GET", paths[k], fields[i], ""));

			ck_assert_str_eq(got, "401 unauthorized");
		}
	}
	autofree char *health = answer(request("GET", "/healthz", "", ""));

	ck_assert_str_eq(health, "200 ok");
}
END_TEST

START_TEST(a_change_that_fails)
{
	failure = EIO;
	autofree char *got = answer(request("PUT", "/policy", TOKEN, "{}"));

	ck_assert_msg(strncmp(got, "500 ", 4) == 0, "%s", got);
	ck_assert_int_eq(policy.fallback, NETPOLICY_ALLOW);
	failure = 0;
}
END_TEST

/* Each is made of what the one before has left, also when its client has gone. */
START_TEST(one_after_the_other)
{
	static const char *const rules[] = { "[{\"action\":\"deny\",\"target\":\"a.test\"}]",
		"[{\"action\":\"deny\",\"target\":\"b.test\"}]",
		"[{\"action\":\"deny\",\"target\":\"c.test\"}]" };
	int fds[ARRAY_SIZE(rules)];

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		fds[i] = request("PATCH", "/policy", TOKEN, rules[i]);
		for (int k = 0; k < 20; k++) {
			turn();
		}
	}
	ck_assert(is_wanted);
	ck_assert_uint_eq(wanted.n, 1);
	(void)close(fds[0]);
	(void)close(fds[1]);
	autofree char *got = answer(fds[2]);

	ck_assert_str_eq(got,
			STATUS("enforcing",
					"\"policy\":{\"defaultAction\":\"allow\",\"egress\":[{\"action\":\"deny\",\"target\":\"c.test\"},"
					"{\"action\":\"deny\",\"target\":\"b.test\"},{\"action\":\"deny\",\"target\":\"a.test\"}]}"));
}
END_TEST

START_TEST(freed_in_the_middle)
{
	int fd = request("PUT", "/policy", TOKEN, "{}");

	while (!is_wanted) {
		turn();
	}
	netpolicy_done(&wanted);
	is_wanted = false;
	(void)close(fd);
}
END_TEST

START_TEST(what_was_refused)
{
	const struct netd_denial n = { .name = "evil.test", .rule = NETPOLICY_BY_DEFAULT };

	ck_assert(netd_denials_add(&denials, &n));
	autofree char *got = answer(request("GET", "/policy/denials", TOKEN, ""));

	ck_assert_ptr_nonnull(strstr(got, "\"name\":\"evil.test\""));
	is("GET", "/policy/denials?after=1", "", "200 {\"denials\":[],\"last\":1,\"total\":1}");
	is("GET", "/policy/denials?after=x", "", "400 after: expected a number");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("netd_policy_api");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_checked_fixture(tc, world_open, world_close);
	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, edits);
	tcase_add_test(tc, bad_ones_change_nothing);
	tcase_add_test(tc, the_token);
	tcase_add_test(tc, a_change_that_fails);
	tcase_add_test(tc, one_after_the_other);
	tcase_add_test(tc, freed_in_the_middle);
	tcase_add_test(tc, what_was_refused);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
