/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of plain files stand for a hierarchy: controllers are there or not, as a row says. */
#include <errno.h>

#include <osbx/cgroup.h>
#include <osbx/fd.h>
#include <osbx/str.h>

#include "../unit.h"

#define ALL ((1U << CGROUP_LIMIT_CPU) | (1U << CGROUP_LIMIT_MEMORY) | (1U << CGROUP_LIMIT_PIDS))

static struct cgroup cg;
static const struct cgroup_limits limits = {
	.cpu_milli = 1500,
	.memory_bytes = (64U << 20) + 1,
	.pids = 20,
};

static void put(const char *path, const char *text)
{
	int fd = openat(unit_fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void expect(const char *path, const char *text)
{
	char have[64] = "";
	int fd = openat(unit_fd, path, O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_ge(read(fd, have, sizeof(have) - 1), 0);
	close(fd);
	ck_assert_msg(str_eq(have, text), "%s: %s", path, have);
}

/* base/osbx/ID, where base offers what is enabled above it. */
static void begin(const char *top, const char *offered)
{
	static const char *const values[] = { "cpu.max", "memory.max", "memory.swap.max",
		"pids.max" };
	char path[64];

	ck_assert_int_eq(mkdirat(unit_fd, "base", 0755), 0);
	ck_assert_int_eq(mkdirat(unit_fd, "base/osbx", 0755), 0);
	ck_assert_int_eq(mkdirat(unit_fd, "base/osbx/ID", 0755), 0);
	put("cgroup.controllers", top);
	put("cgroup.subtree_control", offered);
	put("base/cgroup.controllers", offered);
	put("base/cgroup.subtree_control", "");
	put("base/osbx/cgroup.controllers", "");
	put("base/osbx/cgroup.subtree_control", "");
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		snprintf(path, sizeof(path), "base/osbx/ID/%s", values[i]);
		put(path, "");
	}
	cg = (struct cgroup){
		.dir_fd = openat(unit_fd, "base/osbx/ID", O_RDONLY | O_CLOEXEC),
		.base_fd = openat(unit_fd, "base/osbx", O_RDONLY | O_CLOEXEC),
	};
	ck_assert_int_ge(cg.dir_fd, 0);
	ck_assert_int_ge(cg.base_fd, 0);
}

static struct error refused(const struct cgroup_limits *l)
{
	struct error e = ERROR_INIT;
	unsigned int missing = 77;

	ck_assert_int_eq(cgroup_limit(&cg, l, false, &missing, &e), -1);
	ck_assert_uint_eq(missing, 77);
	ck_assert_int_eq(e.code, ERRC_UNSUPPORTED);
	ck_assert_ptr_nonnull(strstr(e.hint, "best-effort"));
	return e;
}

START_TEST(all_are_set)
{
	struct error e = ERROR_INIT;
	unsigned int missing = 77;

	begin("cpu io memory pids", "cpu io memory pids\n");
	ck_assert_msg(cgroup_limit(&cg, &limits, _i, &missing, &e) == 0, "%s", e.text);
	ck_assert_uint_eq(missing, 0);
	expect("base/osbx/ID/cpu.max", "150000 100000");
	expect("base/osbx/ID/memory.max", "67108864"); /* whole pages */
	expect("base/osbx/ID/memory.swap.max", "0");
	expect("base/osbx/ID/pids.max", "21"); /* with PID 1 */
	/* Written one over the other: "+cpu", "+memory", "+pids". */
	expect("base/cgroup.subtree_control", "+pidsry");
	expect("base/osbx/cgroup.subtree_control", "+pidsry");
}
END_TEST

START_TEST(what_is_enabled_stays)
{
	struct error e = ERROR_INIT;
	struct cgroup_limits l = { .pids = 5 };
	unsigned int missing = 0;

	begin("pids", "pids");
	put("base/cgroup.subtree_control", "memory pids\n");
	put("base/osbx/cgroup.controllers", "memory pids\n");
	put("base/osbx/cgroup.subtree_control", "pids\n");
	ck_assert_int_eq(cgroup_limit(&cg, &l, false, &missing, &e), 0);
	expect("base/cgroup.subtree_control", "memory pids\n");
	expect("base/osbx/cgroup.subtree_control", "pids\n");
	expect("base/osbx/ID/pids.max", "6");
	expect("base/osbx/ID/memory.max", "");
}
END_TEST

START_TEST(without_swap)
{
	struct error e = ERROR_INIT;
	struct cgroup_limits l = { .memory_bytes = 1U << 30 };
	unsigned int missing = 0;

	begin("memory", "memory");
	ck_assert_int_eq(unlinkat(unit_fd, "base/osbx/ID/memory.swap.max", 0), 0);
	ck_assert_msg(cgroup_limit(&cg, &l, false, &missing, &e) == 0, "%s", e.text);
	expect("base/osbx/ID/memory.max", "1073741824");
}
END_TEST

START_TEST(missing_controller)
{
	struct error e = ERROR_INIT;
	unsigned int missing = 0;

	begin("cpu pids", "cpu pids");
	e = refused(&limits);
	ck_assert_ptr_nonnull(strstr(e.text, "the limit --memory cannot be enforced: no controller "
					     "memory in "));
	ck_assert_ptr_nonnull(strstr(e.text, "/cgroup.controllers"));
	error_clear(&e);
	ck_assert_int_eq(cgroup_limit(&cg, &limits, true, &missing, &e), 0);
	ck_assert_uint_eq(missing, 1U << CGROUP_LIMIT_MEMORY);
	ck_assert_int_eq(e.code, ERRC_OK);
	ck_assert_str_eq(cgroup_limit_name(CGROUP_LIMIT_MEMORY), "memory");
	expect("base/osbx/ID/pids.max", "21");
}
END_TEST

START_TEST(none_at_all)
{
	struct error e = ERROR_INIT;
	unsigned int missing = 0;
	struct cgroup none = CGROUP_INIT;

	begin("", "");
	cg = none;
	e = refused(&limits);
	ck_assert_ptr_nonnull(strstr(e.text, "--cpus cannot be enforced: there is no cgroup"));
	error_clear(&e);
	ck_assert_int_eq(cgroup_limit(&cg, &limits, true, &missing, &e), 0);
	ck_assert_uint_eq(missing, ALL);
	/* Nothing was asked for, nothing is missing. */
	struct cgroup_limits zero = { .pids = 0 };

	ck_assert_int_eq(cgroup_limit(&cg, &zero, false, &missing, &e), 0);
	ck_assert_uint_eq(missing, 0);
}
END_TEST

/* Enabled, and yet the file is not there: the kernel was built without. */
START_TEST(missing_file)
{
	struct cgroup_limits l = { .cpu_milli = 10 };

	begin("cpu", "cpu");
	ck_assert_int_eq(unlinkat(unit_fd, "base/osbx/ID/cpu.max", 0), 0);
	struct error e = refused(&l);

	ck_assert_ptr_nonnull(strstr(e.text, "--cpus cannot be enforced: controller cpu at "));
	ck_assert_int_eq(e.sysno, ENODEV);
}
END_TEST

/* What is read back counts. */
START_TEST(value_does_not_take)
{
	struct cgroup_limits l = { .pids = 7 };

	begin("pids", "pids");
	put("base/osbx/ID/pids.max", "max and more\n");
	struct error e = refused(&l);

	ck_assert_int_eq(e.sysno, EINVAL);
}
END_TEST

START_TEST(not_to_be_written)
{
	struct cgroup_limits l = { .pids = 7 };

	begin("pids", "pids");
	ck_assert_int_eq(unlinkat(unit_fd, "base/cgroup.subtree_control", 0), 0);
	ck_assert_int_eq(mkdirat(unit_fd, "base/cgroup.subtree_control", 0755), 0);
	struct error e = refused(&l);

	ck_assert_int_eq(e.sysno, EISDIR);
	ck_assert_ptr_nonnull(strstr(e.text, "/base"));
}
END_TEST

/* It would be a threaded domain from then on, and nothing could be cloned below. */
START_TEST(occupied)
{
	struct cgroup_limits l = { .pids = 7 };

	begin("pids", "pids");
	put("base/cgroup.type", "domain\n");
	put("base/cgroup.procs", "1\n");
	struct error e = refused(&l);

	ck_assert_int_eq(e.sysno, EBUSY);
	expect("base/cgroup.subtree_control", "");
}
END_TEST

/* This process alone goes aside. */
START_TEST(leaves_for_the_leaf)
{
	struct cgroup_limits l = { .pids = 7 };
	struct error e = ERROR_INIT;
	unsigned int missing = 0;
	char own[32];

	begin("pids", "pids");
	snprintf(own, sizeof(own), "%d\n", getpid());
	put("base/cgroup.type", "domain\n");
	put("base/cgroup.procs", own);
	ck_assert_int_eq(mkdirat(unit_fd, "base/osbx/keeper", 0755), 0);
	put("base/osbx/keeper/cgroup.procs", "");
	ck_assert_msg(cgroup_limit(&cg, &l, false, &missing, &e) == 0, "%s", e.text);
	expect("base/osbx/keeper/cgroup.procs", "0");
	expect("base/cgroup.subtree_control", "+pids");
}
END_TEST

START_TEST(oom_kills_are_counted)
{
	begin("memory", "memory");
	ck_assert_uint_eq(cgroup_oom_kills(&cg), 0);
	put("base/osbx/ID/memory.events",
			"low 0\nhigh 0\nmax 9\noom 4\noom_kill 3\noom_group_kill 0\n");
	ck_assert_uint_eq(cgroup_oom_kills(&cg), 3);
	cg = (struct cgroup)CGROUP_INIT;
	ck_assert_uint_eq(cgroup_oom_kills(&cg), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cgroup_limits");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_loop_test(tc, all_are_set, 0, 2);
	tcase_add_test(tc, what_is_enabled_stays);
	tcase_add_test(tc, without_swap);
	tcase_add_test(tc, missing_controller);
	tcase_add_test(tc, none_at_all);
	tcase_add_test(tc, missing_file);
	tcase_add_test(tc, value_does_not_take);
	tcase_add_test(tc, not_to_be_written);
	tcase_add_test(tc, occupied);
	tcase_add_test(tc, leaves_for_the_leaf);
	tcase_add_test(tc, oom_kills_are_counted);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
