/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/mem.h>
#include <osbx/request.h>

#include "../unit.h"

typedef int (*setter)(struct sandbox_request *r, const char *text, struct error *e);

static struct error set(setter f, const char *text, struct sandbox_request *r)
{
	struct error e = ERROR_INIT;

	request_init(r);
	ck_assert_int_eq(f(r, text, &e) < 0, e.code != ERRC_OK);
	return e;
}

START_TEST(cpus)
{
	static const struct {
		const char *text;
		uint64_t milli; /* 0: refused */
	} rows[] = {
		{ "1", 1000 },
		{ "0.5", 500 },
		{ ".5", 500 },
		{ "1.25", 1250 },
		{ "0.01", 10 },
		{ "2.125", 2125 },
		{ "64", 64000 },
		{ "8192", 8192000 },
		{ "0", 0 },
		{ "0.0", 0 },
		{ "0.009", 0 },
		{ "8192.001", 0 },
		{ "", 0 },
		{ ".", 0 },
		{ "1.", 0 },
		{ "-1", 0 },
		{ "1.2345", 0 },
		{ "1,5", 0 },
		{ "x", 0 },
		{ "1.5.1", 0 },
		{ " 1", 0 },
		{ "0x1", 0 },
		{ "99999999999999999999", 0 },
		{ "1e3", 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct sandbox_request r;
		struct error e = set(request_set_cpus, rows[i].text, &r);

		ck_assert_msg(r.limits.cpu_milli == rows[i].milli, "\"%s\": %lu", rows[i].text,
				(unsigned long)r.limits.cpu_milli);
		ck_assert_int_eq(e.code, rows[i].milli ? ERRC_OK : ERRC_INVALID);
		request_done(&r);
	}
}
END_TEST

START_TEST(memory)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} rows[] = {
		{ "6m", 6U << 20 },
		{ "64m", 64U << 20 },
		{ "2g", 2ULL << 30 },
		{ "1GiB", 1ULL << 30 },
		{ "0", 0 },
		{ "5m", 0 },
		{ "4096", 0 },
		{ "", 0 },
		{ "-1", 0 },
		{ "lots", 0 },
		{ "99999999t", 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct sandbox_request r;
		struct error e = set(request_set_memory, rows[i].text, &r);

		ck_assert_msg(r.limits.memory_bytes == rows[i].bytes, "\"%s\"", rows[i].text);
		ck_assert_int_eq(e.code, rows[i].bytes ? ERRC_OK : ERRC_INVALID);
		request_done(&r);
	}
}
END_TEST

START_TEST(pids)
{
	static const struct {
		const char *text;
		uint64_t n;
	} rows[] = {
		{ "1", 1 },
		{ "4096", 4096 },
		{ "4194304", 4194304 },
		{ "0", 0 },
		{ "-1", 0 },
		{ "4194305", 0 },
		{ "", 0 },
		{ "max", 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct sandbox_request r;
		struct error e = set(request_set_pids, rows[i].text, &r);

		ck_assert_msg(r.limits.pids == rows[i].n, "\"%s\"", rows[i].text);
		ck_assert_int_eq(e.code, rows[i].n ? ERRC_OK : ERRC_INVALID);
		request_done(&r);
	}
}
END_TEST

/* Zero is no way to say "none": other programs read it so, and nobody is limited. */
START_TEST(zero_is_explained)
{
	static const setter setters[] = { request_set_cpus, request_set_memory, request_set_pids };

	for (size_t i = 0; i < ARRAY_SIZE(setters); i++) {
		struct sandbox_request r;
		struct error e = set(setters[i], "0", &r);

		ck_assert_str_eq(e.hint, "leave the option out for no limit");
		request_done(&r);
	}
}
END_TEST

START_TEST(policy)
{
	struct sandbox_request r;

	ck_assert_int_eq(set(request_set_limits, "enforce", &r).code, ERRC_OK);
	ck_assert_int_eq(r.best_effort, 0);
	ck_assert_int_eq(set(request_set_limits, "best-effort", &r).code, ERRC_OK);
	ck_assert_int_eq(r.best_effort, 1);
	ck_assert_int_eq(set(request_set_limits, "", &r).code, ERRC_INVALID);
	ck_assert_int_eq(r.best_effort, -1);
}
END_TEST

/* What comes as JSON is held to the same bounds. */
START_TEST(validated)
{
	static const struct cgroup_limits rows[] = {
		{ .cpu_milli = 9 },
		{ .cpu_milli = 8192001 },
		{ .memory_bytes = 4096 },
		{ .memory_bytes = UINT64_MAX },
		{ .pids = 4194305 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO(request) struct sandbox_request r = { .image = NULL };
		struct error e = ERROR_INIT;

		request_init(&r);
		r.image = mem_strdup("@host");
		ck_assert_int_eq(request_validate(&r, &e), 0);
		r.limits = rows[i];
		ck_assert_int_eq(request_validate(&r, &e), -1);
		ck_assert_int_eq(e.code, ERRC_INVALID);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("request_limits");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, cpus);
	tcase_add_test(tc, memory);
	tcase_add_test(tc, pids);
	tcase_add_test(tc, zero_is_explained);
	tcase_add_test(tc, policy);
	tcase_add_test(tc, validated);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
