/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/fd.h>

#include "../../../src/engine/ctl_internal.h"
#include "../unit.h"

#define NONE UINT64_MAX

static void file_put(const char *name, const char *text)
{
	int fd = openat(unit_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fd_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

static struct ctl_stats stats(int fd)
{
	struct ctl_stats s = { .pids = 1 };

	stats_read(fd, &s);
	return s;
}

START_TEST(all_is_read)
{
	file_put("cpu.stat", "usage_usec 1234\nuser_usec 1000\n");
	file_put("memory.current", "4096\n");
	file_put("memory.max", "67108864\n");
	file_put("memory.events", "low 0\noom 2\noom_kill 3\n");
	file_put("pids.current", "5\n");
	file_put("pids.max", "100\n");
	file_put("cpu.max", "50000 100000\n");
	file_put("io.stat", "8:0 rbytes=100 wbytes=10 rios=1\n8:16 rbytes=20 wbytes=3\n");
	struct ctl_stats s = stats(unit_fd);

	ck_assert_uint_eq(s.cpu_usec, 1234);
	ck_assert_uint_eq(s.memory_bytes, 4096);
	ck_assert_uint_eq(s.memory_max_bytes, 67108864);
	ck_assert_uint_eq(s.oom_kills, 3);
	ck_assert_uint_eq(s.pids, 5);
	ck_assert_uint_eq(s.pids_max, 100);
	ck_assert_uint_eq(s.cpu_quota_usec, 50000);
	ck_assert_uint_eq(s.cpu_period_usec, 100000);
	ck_assert_uint_eq(s.io_read_bytes, 120);
	ck_assert_uint_eq(s.io_write_bytes, 13);
}
END_TEST

START_TEST(no_limit_is_none)
{
	file_put("memory.max", "max\n");
	file_put("pids.max", "max\n");
	file_put("cpu.max", "max 100000\n");
	file_put("io.stat", "");
	struct ctl_stats s = stats(unit_fd);

	ck_assert_uint_eq(s.memory_max_bytes, NONE);
	ck_assert_uint_eq(s.pids_max, NONE);
	ck_assert_uint_eq(s.cpu_quota_usec, NONE);
	ck_assert_uint_eq(s.cpu_period_usec, 100000);
	ck_assert_uint_eq(s.io_read_bytes, 0);
}
END_TEST

START_TEST(what_is_not_there_is_not_known)
{
	struct ctl_stats s = stats(_i == 0 ? unit_fd : -1);

	ck_assert_uint_eq(s.cpu_usec, NONE);
	ck_assert_uint_eq(s.memory_bytes, NONE);
	ck_assert_uint_eq(s.memory_max_bytes, NONE);
	ck_assert_uint_eq(s.oom_kills, NONE);
	ck_assert_uint_eq(s.pids, NONE);
	ck_assert_uint_eq(s.cpu_quota_usec, NONE);
	ck_assert_uint_eq(s.io_read_bytes, NONE);
	ck_assert_uint_eq(s.io_write_bytes, NONE);
}
END_TEST

static const char *const odd[] = { "", "\n", "-1\n", "0x10\n", "18446744073709551616\n", "1 2\n" };

START_TEST(what_is_no_number_is_not_known)
{
	file_put("memory.current", odd[_i]);
	file_put("cpu.stat", "usage_usec\nusage_usecs 5\n");
	struct ctl_stats s = stats(unit_fd);

	ck_assert_uint_eq(s.memory_bytes, NONE);
	ck_assert_uint_eq(s.cpu_usec, NONE);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("stats");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_test(tc, all_is_read);
	tcase_add_test(tc, no_limit_is_none);
	tcase_add_loop_test(tc, what_is_not_there_is_not_known, 0, 2);
	tcase_add_loop_test(tc, what_is_no_number_is_not_known, 0, ARRAY_SIZE(odd));
	suite_add_tcase(s, tc);
	return unit_run(s);
}
