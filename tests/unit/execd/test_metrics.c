/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include <osbx/json.h>
#include <osbx/mem.h>

#include "../../../execd/metrics.h"
#include "../unit.h"

#define MEMINFO                                                   \
	"MemTotal:        8000000 kB\nMemFree:          100 kB\n" \
	"MemAvailable:    6000000 kB\nBuffers:          10 kB\n"
#define STAT "cpu  100 20 30 1000 50 6 4 10 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\nintr 5\n"

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-6;
}

static struct metrics parse(const char *cpu_max, const char *cpu_stat, const char *memory_max,
		const char *memory_current, long cpus)
{
	const struct metrics_text t = {
		.cpu_max = span_of(cpu_max),
		.cpu_stat = span_of(cpu_stat),
		.memory_max = span_of(memory_max),
		.memory_current = span_of(memory_current),
		.stat = span_of(STAT),
		.meminfo = span_of(MEMINFO),
	};
	struct metrics m;

	metrics_parse(&t, cpus, 1000000, &m);
	return m;
}

START_TEST(limits_of_the_cgroup)
{
	struct metrics m = parse("150000 100000\n", "usage_usec 4000\nuser_usec 3\n", "1048576\n",
			"524288\n", 8);

	ck_assert(near(m.cpus, 1.5));
	ck_assert(near(m.busy, 4000));
	ck_assert(near(m.whole, 1500000));
	ck_assert(near(m.total_bytes, 1048576));
	ck_assert(near(m.used_bytes, 524288));
}
END_TEST

/* A quota of more than there is, and none, are the machine. */
START_TEST(no_limit_is_the_machine)
{
	static const char *const quotas[] = { "900000 100000\n", "max 100000\n", "", "max\n",
		"x y\n", "0 0\n" };
	struct metrics m = parse(quotas[_i], "usage_usec 4000\n", "max\n", "1024\n", 8);

	ck_assert(near(m.cpus, 8));
	ck_assert(near(m.total_bytes, 8000000.0 * 1024));
	ck_assert(near(m.used_bytes, 1024));
}
END_TEST

START_TEST(no_cgroup_is_the_machine)
{
	struct metrics m = parse("", "", "", "", 2);

	ck_assert(near(m.busy, 170));
	ck_assert(near(m.whole, 1220));
	ck_assert(near(m.total_bytes, 8000000.0 * 1024));
	ck_assert(near(m.used_bytes, 2000000.0 * 1024));
}
END_TEST

/* Nothing readable at all: numbers that a client can still take. */
START_TEST(nothing_is_zero)
{
	const struct metrics_text t = { .stat = { .p = "x", .n = 1 } };
	struct metrics m;

	metrics_parse(&t, -1, 5, &m);
	ck_assert(near(m.cpus, 1));
	ck_assert(near(m.busy, 0));
	ck_assert(near(m.total_bytes, 0));
	ck_assert(near(m.used_bytes, 0));
}
END_TEST

START_TEST(never_more_than_all)
{
	struct metrics m = parse("100000 100000\n", "usage_usec 1\n", "1000\n", "2000\n", 4);

	ck_assert(near(m.used_bytes, 1000));
}
END_TEST

static void expect_json(const struct metrics *a, const struct metrics *b, const char *want)
{
	AUTO(buf) struct buf out = BUF_INIT(512);
	struct error e = ERROR_INIT;

	metrics_format(a, b, &out);
	ck_assert_str_eq(out.p, want);
	AUTO(json) struct json *v = json_parse(buf_span(&out), &e);

	ck_assert_ptr_nonnull(v);
}

START_TEST(document)
{
	const struct metrics a = { .cpus = 0.5, .busy = 100, .whole = 1000 };
	const struct metrics b = { .cpus = 0.5,
		.busy = 150,
		.whole = 1200,
		.total_bytes = 3 << 20,
		.used_bytes = 1 << 20,
		.wall_ms = 1700000000123 };
	struct metrics c = b;

	expect_json(&a, &b,
			"{\"cpu_count\":0.5,\"cpu_used_pct\":25.00,\"mem_total_mib\":3.00,"
			"\"mem_used_mib\":1.00,\"timestamp\":1700000000123}");
	c.busy = 99999;
	c.cpus = 128;
	expect_json(&a, &c,
			"{\"cpu_count\":128,\"cpu_used_pct\":100.00,\"mem_total_mib\":3.00,"
			"\"mem_used_mib\":1.00,\"timestamp\":1700000000123}");
	c.busy = 1;
	expect_json(&a, &c,
			"{\"cpu_count\":128,\"cpu_used_pct\":0.00,\"mem_total_mib\":3.00,"
			"\"mem_used_mib\":1.00,\"timestamp\":1700000000123}");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("metrics");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, limits_of_the_cgroup);
	tcase_add_loop_test(tc, no_limit_is_the_machine, 0, 6);
	tcase_add_test(tc, no_cgroup_is_the_machine);
	tcase_add_test(tc, nothing_is_zero);
	tcase_add_test(tc, never_more_than_all);
	tcase_add_test(tc, document);
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
