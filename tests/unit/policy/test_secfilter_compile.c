/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <osbx/caps.h>

#include "bpf.h"

#define HEAD "{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"defaultErrnoRet\": 38, \"syscalls\": ["

static const char profile[] = HEAD
		"{\"names\": [\"read\", \"no_such_call\"], \"action\": \"SCMP_ACT_ALLOW\"},"
		"{\"names\": [\"read\"], \"action\": \"SCMP_ACT_ALLOW\"},"
		"{\"names\": [\"write\"], \"action\": \"SCMP_ACT_ERRNO\", \"errnoRet\": 38},"
		"{\"names\": [\"mount\"], \"action\": \"SCMP_ACT_ALLOW\","
		" \"includes\": {\"caps\": [\"CAP_SYS_ADMIN\"]}},"
		"{\"names\": [\"clone\"], \"action\": \"SCMP_ACT_ALLOW\", \"args\": [{\"index\": 0,"
		" \"value\": 2114060288, \"valueTwo\": 0, \"op\": \"SCMP_CMP_MASKED_EQ\"}]},"
		"{\"names\": [\"socket\"], \"action\": \"SCMP_ACT_ALLOW\", \"args\": ["
		" {\"index\": 0, \"value\": 1, \"op\": \"SCMP_CMP_EQ\"},"
		" {\"index\": 0, \"value\": 2, \"op\": \"SCMP_CMP_EQ\"}]},"
		"{\"names\": [\"reboot\"], \"action\": \"SCMP_ACT_KILL_PROCESS\"}]}";

static char path[128];

static void profile_write(const char *text)
{
	char link[32];
	int fd = openat(unit_fd, "profile.json", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", unit_fd);
	ssize_t n = readlink(link, path, sizeof(path) - 20);

	ck_assert_int_gt(n, 0);
	memcpy(path + n, "/profile.json", 14);
}

static uint32_t answer(const struct secfilter *f, long nr, uint64_t a0)
{
	struct seccomp_data data = { .nr = (int)nr, .arch = ARCH, .args = { a0 } };

	return bpf_run(f, &data);
}

static void compile(uint64_t caps, int cache_fd, struct secfilter *f)
{
	struct error e = ERROR_INIT;

	ck_assert_msg(secfilter_compile_file(path, caps, cache_fd, f, &e) == 0, "%s", e.text);
	ck_assert_ptr_nonnull(f->owned);
	ck_assert_ptr_eq(f->owned, f->insns);
}

START_TEST(rules_are_compiled)
{
	AUTO(secfilter) struct secfilter f = { .n = 0 };
	struct seccomp_data foreign = { .nr = 0, .arch = ARCH_FOREIGN };

	profile_write(profile);
	compile(0, -1, &f);
	ck_assert_uint_eq(answer(&f, SYS_read, 0), ALLOW);
	ck_assert_uint_eq(answer(&f, SYS_write, 0), ERRNO(ENOSYS));
	ck_assert_uint_eq(answer(&f, SYS_mount, 0), ERRNO(ENOSYS));
	ck_assert_uint_eq(answer(&f, SYS_clone, SIGCHLD), ALLOW);
	ck_assert_uint_eq(answer(&f, SYS_clone, 0x10000000), ERRNO(ENOSYS));
	ck_assert_uint_eq(answer(&f, SYS_socket, 1), ALLOW);
	ck_assert_uint_eq(answer(&f, SYS_socket, 2), ALLOW);
	ck_assert_uint_eq(answer(&f, SYS_socket, 3), ERRNO(ENOSYS));
	ck_assert_uint_eq(answer(&f, SYS_reboot, 0), KILL);
	ck_assert_uint_eq(bpf_run(&f, &foreign), KILL);
}
END_TEST

START_TEST(capabilities_change_it)
{
	AUTO(secfilter) struct secfilter f = { .n = 0 };

	profile_write(profile);
	compile(CAPS_BIT(21), -1, &f);
	ck_assert_uint_eq(answer(&f, SYS_mount, 0), ALLOW);
}
END_TEST

static size_t cache_files(int fd, char name[64])
{
	DIR *d = fdopendir(dup(fd));
	const struct dirent *entry;
	size_t n = 0;

	ck_assert_ptr_nonnull(d);
	rewinddir(d);
	while ((entry = readdir(d))) {
		if (entry->d_name[0] != '.') {
			n++;
			snprintf(name, 64, "%.63s", entry->d_name);
		}
	}
	closedir(d);
	return n;
}

START_TEST(cache_is_used_and_never_wrong)
{
	AUTO(secfilter) struct secfilter f = { .n = 0 };
	char name[64];
	struct stat st;

	ck_assert_int_eq(mkdirat(unit_fd, "cache", 0700), 0);
	int cache = openat(unit_fd, "cache", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	profile_write(profile);
	compile(0, cache, &f);
	size_t n = f.n;

	secfilter_done(&f);
	ck_assert_uint_eq(cache_files(cache, name), 1);
	/* The file is read: its last instruction comes back changed. */
	int fd = openat(cache, name, O_RDWR | O_CLOEXEC);

	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_eq(pwrite(fd, "\x2a", 1, st.st_size - 4), 1);
	compile(0, cache, &f);
	ck_assert_uint_eq(f.n, n);
	ck_assert_uint_eq(f.insns[n - 1].k & 0xff, 0x2a);
	secfilter_done(&f);
	/* Another key, a cut file, another document of the same name: compiled anew. */
	compile(CAPS_BIT(21), cache, &f);
	ck_assert_uint_eq(answer(&f, SYS_mount, 0), ALLOW);
	ck_assert_uint_eq(cache_files(cache, name), 2);
	secfilter_done(&f);
	ck_assert_int_eq(ftruncate(fd, st.st_size - 1), 0);
	compile(0, cache, &f);
	ck_assert_uint_ne(f.insns[n - 1].k & 0xff, 0x2a);
	secfilter_done(&f);
	ck_assert_int_eq(pwrite(fd, "X", 1, 0), 1);
	compile(0, cache, &f);
	ck_assert_uint_eq(answer(&f, SYS_read, 0), ALLOW);
	close(fd);
	close(cache);
}
END_TEST

START_TEST(bad_files)
{
	struct secfilter f = { .n = 7 };
	struct error e = ERROR_INIT;

	ck_assert_int_eq(secfilter_compile_file("/nonexistent", 0, -1, &f, &e), -1);
	ck_assert_str_eq(e.text, "seccomp profile /nonexistent: does not exist");
	ck_assert_int_eq(e.code, ERRC_NOT_FOUND);
	e = (struct error)ERROR_INIT;
	ck_assert_int_eq(secfilter_compile_file("/dev", 0, -1, &f, &e), -1);
	ck_assert_str_eq(e.text, "seccomp profile /dev: is not a regular file");
	e = (struct error)ERROR_INIT;
	profile_write("{");
	ck_assert_int_eq(secfilter_compile_file(path, 0, -1, &f, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
	e = (struct error)ERROR_INIT;
	profile_write("{\"defaultAction\": \"SCMP_ACT_ALLOW\"}");
	ck_assert_int_eq(truncate(path, 2 << 20), 0);
	ck_assert_int_eq(secfilter_compile_file(path, 0, -1, &f, &e), -1);
	ck_assert_int_eq(e.code, ERRC_LIMIT);
	ck_assert_uint_eq(f.n, 7);
}
END_TEST

/* The profile that podman installs, where it is installed. */
START_TEST(profile_of_podman)
{
	AUTO(secfilter) struct secfilter f = { .n = 0 };

	snprintf(path, sizeof(path), "/usr/share/containers/seccomp.json");
	compile(caps_workload_default, -1, &f);
	ck_assert_uint_eq(answer(&f, SYS_read, 0), ALLOW);
	ck_assert_uint_eq(answer(&f, SYS_bpf, 0), ERRNO(EPERM));
	ck_assert_uint_eq(answer(&f, SYS_chroot, 0), ALLOW);
	ck_assert_uint_eq(answer(&f, SYS_io_uring_setup, 0), ERRNO(ENOSYS));
	ck_assert_uint_eq(answer(&f, 1000, 0), ERRNO(ENOSYS));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("secfilter_compile");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_test(tc, rules_are_compiled);
	tcase_add_test(tc, capabilities_change_it);
	tcase_add_test(tc, cache_is_used_and_never_wrong);
	tcase_add_test(tc, bad_files);
	if (access("/usr/share/containers/seccomp.json", R_OK) == 0) {
		tcase_add_test(tc, profile_of_podman);
	}
	suite_add_tcase(s, tc);
	return unit_run(s);
}
