/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/socket.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/json.h>
#include <osbx/mem.h>

#include "../../../policy/netd_flow.h"
#include "../unit.h"

static struct netd n;
static struct relay r;
static int keeper = -1;

static void setup(void)
{
	int pair[2];

	ck_assert_int_eq(fd_seqpacket_pair(pair), 0);
	keeper = pair[1];
	n = (struct netd){ .control_fd = pair[0], .begin = { .binds_names = true } };
	ck_assert_int_eq(fd_set_nonblock(n.control_fd, true), 0);
	r = (struct relay){ .n = &n };
	netpolicy_init(&n.policy);
}

static void teardown(void)
{
	names_done(&n.names);
	netpolicy_done(&n.policy);
	fd_close(&n.control_fd);
	fd_close(&keeper);
}

static void policy_is(const char *text)
{
	struct error e = ERROR_INIT;
	AUTO(json) struct json *v = json_parse(span_of(text), &e);

	netpolicy_done(&n.policy);
	ck_assert_ptr_nonnull(v);
	ck_assert_int_eq(netpolicy_parse(v, &n.policy, &e), 0);
}

static void learn(const char *name, const char *address)
{
	struct netaddr a = { .family = 0 };

	ck_assert_int_eq(netaddr_parse(span_of(address), &a), 0);
	names_add(&n.names, name, &a, 60, clock_boot_ms());
}

static struct flow flow_to(const char *address, uint16_t port)
{
	struct flow f = { .r = &r, .port = port };

	ck_assert_int_eq(netaddr_parse(span_of(address), &f.addr), 0);
	return f;
}

struct row {
	const char *address;
	uint16_t port;
	const char *said; /* NULL: no name */
	bool is_accepted;
	bool is_allowed;
};

static void rows_check(const struct row *rows, size_t rows_n)
{
	for (size_t i = 0; i < rows_n; i++) {
		const struct row *row = &rows[i];
		struct flow f = flow_to(row->address, row->port);
		uint64_t before = n.denials.total;
		bool good = verdict_accept(&f);

		ck_assert_msg(good == row->is_accepted, "row %zu: accepted %d", i, good);
		if (good) {
			good = row->said ? verdict_name(&f, row->said)
					 : verdict_no_name(&f, "nothing");
		}
		ck_assert_msg(good == row->is_allowed, "row %zu: allowed %d", i, good);
		/* What is refused is logged, once. */
		ck_assert_uint_eq(n.denials.total, before + (good ? 0 : 1));
		free(f.by_name);
	}
}

START_TEST(deny_by_default)
{
	static const struct row rows[] = {
		{ "203.0.113.1", 443, "good.test", true, true },
		{ "203.0.113.1", 443, "evil.test", true, false },
		{ "203.0.113.1", 443, "shop.test", true, false }, /* allowed, elsewhere */
		{ "203.0.113.1", 443, NULL, true, false },
		{ "203.0.113.1", 443, "", true, false },
		{ "203.0.113.1", 80, NULL, true, false },
		{ "203.0.113.1", 22, NULL, true, true },
		{ "203.0.113.1", 22, "evil.test", true, false },
		{ "203.0.113.2", 443, "shop.test", true, true },
		{ "203.0.113.2", 80, "shop.test", false, false },  /* another port */
		{ "203.0.113.3", 443, "good.test", false, false }, /* nobody's address */
		{ "198.51.100.7", 443, NULL, true, true },         /* a rule of its own */
		{ "198.51.100.7", 443, "good.test", true, true },
		{ "10.0.0.1", 443, "good.test", false, false }, /* learned, but not public */
		{ "169.254.169.254", 80, "good.test", false, false },
		{ "2001:db8::1", 443, "good.test", true, true },
		{ "2001:db8::2", 443, "good.test", false, false },
	};

	policy_is("{\"egress\":[{\"action\":\"allow\",\"target\":\"good.test\"},"
		  "{\"action\":\"allow\",\"target\":\"shop.test:443\"},"
		  "{\"action\":\"allow\",\"target\":\"198.51.100.0/24\"}]}");
	learn("good.test", "203.0.113.1");
	learn("good.test", "2001:db8::1");
	learn("shop.test", "203.0.113.2");
	learn("good.test", "10.0.0.1");
	ck_assert(verdict_looks(&n));
	rows_check(rows, ARRAY_SIZE(rows));
	n.begin.binds_names = false;
	ck_assert(!verdict_looks(&n));
}
END_TEST

START_TEST(allow_by_default)
{
	static const struct row rows[] = {
		{ "203.0.113.1", 443, "good.test", true, true },
		{ "203.0.113.1", 443, "evil.test", true, false },
		{ "203.0.113.1", 443, "a.evil.test", true, true },
		{ "203.0.113.1", 443, NULL, true, true },
		{ "203.0.113.9", 443, "evil.test", false,
				false }, /* resolved before it was denied */
		{ "10.0.0.1", 443, "good.test", false, false },
		{ "127.0.0.1", 80, "good.test", false, false },
		{ "::ffff:10.0.0.1", 443, "good.test", false, false },
	};

	policy_is("{\"defaultAction\":\"allow\",\"egress\":["
		  "{\"action\":\"deny\",\"target\":\"evil.test\"}]}");
	learn("evil.test", "203.0.113.9");
	rows_check(rows, ARRAY_SIZE(rows));
	policy_is("{\"defaultAction\":\"allow\"}");
	ck_assert(!verdict_looks(&n));
}
END_TEST

START_TEST(a_new_policy)
{
	policy_is("{\"egress\":[{\"action\":\"allow\",\"target\":\"good.test\"}]}");
	learn("good.test", "203.0.113.1");
	struct flow f = flow_to("203.0.113.1", 443);

	ck_assert(verdict_accept(&f) && verdict_name(&f, "good.test"));
	ck_assert(verdict_again(&f));
	policy_is("{\"egress\":[{\"action\":\"allow\",\"target\":\"*.test\"}]}");
	ck_assert(verdict_again(&f));
	policy_is("{\"egress\":[{\"action\":\"deny\",\"target\":\"good.test\"},"
		  "{\"action\":\"allow\",\"target\":\"*.test\"}]}");
	ck_assert(!verdict_again(&f));
	free(f.by_name);
}
END_TEST

/* What was made while addresses were enough goes on under names only if one is known for it. */
START_TEST(names_from_now_on)
{
	static const struct {
		const char *address;
		const char *said;
		uint16_t port;
		bool is_decided;
		bool goes_on;
	} rows[] = {
		{ "203.0.113.1", NULL, 443, true, false }, /* of which of its names is it? */
		{ "203.0.113.1", NULL, 80, true, false },
		{ "203.0.113.1", NULL, 443, false, true }, /* will be asked */
		{ "203.0.113.1", NULL, 22, true, true },
		{ "203.0.113.1", "good.test", 443, true, true },
		{ "203.0.113.2", "good.test", 443, true, false }, /* that was not its address */
		{ "198.51.100.7", NULL, 443, true, true },
	};

	learn("good.test", "203.0.113.1");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct flow f = flow_to(rows[i].address, rows[i].port);

		policy_is("{\"defaultAction\":\"allow\",\"egress\":["
			  "{\"action\":\"deny\",\"target\":\"evil.test\"}]}");
		f.is_decided = rows[i].is_decided;
		ck_assert(verdict_accept(&f));
		ck_assert(!rows[i].said || verdict_name(&f, rows[i].said));
		policy_is("{\"egress\":[{\"action\":\"allow\",\"target\":\"good.test\"},"
			  "{\"action\":\"allow\",\"target\":\"198.51.100.0/24\"}]}");
		bool goes_on = verdict_again(&f);

		ck_assert_msg(goes_on == rows[i].goes_on, "row %zu: %d", i, goes_on);
		free(f.by_name);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("netd_verdict");
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, deny_by_default);
	tcase_add_test(tc, allow_by_default);
	tcase_add_test(tc, a_new_policy);
	tcase_add_test(tc, names_from_now_on);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
