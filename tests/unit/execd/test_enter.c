/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <sys/syscall.h>

#include <osbx/secfilter.h>

#include "sandbox.h"

static char *status_of(pid_t pid)
{
	AUTO(buf) struct buf b = BUF_INIT(1 << 16);
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/status", (int)pid);
	int fd = open(name, O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fd_read_all(fd, &b), 0);
	close(fd);
	return buf_take(&b);
}

static uint64_t status_hex(const char *status, const char *name)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = strstr(status, name);
	uint64_t value = 0;

	ck_assert_ptr_nonnull(at);
	at += strlen(name);
	at += strspn(at, " \t");
	for (; *at && strchr(digits, *at); at++) {
		value = value * 16 + (uint64_t)(strchr(digits, *at) - digits);
	}
	return value;
}

static void end(struct sandbox *s)
{
	shutdown(s->control, SHUT_RDWR);
	ck_assert_int_eq(sandbox_end(s), 125);
}

START_TEST(reduces_itself)
{
	const uint64_t own = CAPS_BIT(CAP_SETUID) | CAPS_BIT(CAP_SETGID) | CAPS_BIT(CAP_SETPCAP) |
			     CAPS_BIT(CAP_KILL) | CAPS_BIT(CAP_CHOWN) | CAPS_BIT(CAP_FOWNER) |
			     CAPS_BIT(CAP_DAC_OVERRIDE);
	struct sandbox s;

	sandbox_init(&s);
	s.config.caps = CAPS_BIT(CAP_SYS_CHROOT);
	sandbox_start(&s);
	autofree char *status = status_of(s.pid);

	ck_assert_uint_eq(status_hex(status, "CapBnd:"), own | s.config.caps);
	ck_assert_uint_eq(status_hex(status, "CapPrm:"), own | s.config.caps);
	ck_assert_uint_eq(status_hex(status, "CapEff:"), own | s.config.caps);
	ck_assert_uint_eq(status_hex(status, "CapInh:"), 0);
	ck_assert_uint_eq(status_hex(status, "CapAmb:"), 0);
	ck_assert_uint_eq(status_hex(status, "NoNewPrivs:"), 1);
	ck_assert_uint_eq(status_hex(status, "SigIgn:"), 0);
	end(&s);
}
END_TEST

START_TEST(isolation_keeps_admin)
{
	struct sandbox s;

	sandbox_init(&s);
	s.config.isolation = 1;
	sandbox_start(&s);
	autofree char *status = status_of(s.pid);

	ck_assert_uint_ne(status_hex(status, "CapPrm:") & CAPS_BIT(CAP_SYS_ADMIN), 0);
	end(&s);
}
END_TEST

static void filter_set(enum secfilter_kind kind, struct sock_filter **out_insns, uint32_t *out_n)
{
	struct secfilter f;

	secfilter_builtin(kind, &f);
	*out_insns = mem_array(f.n, sizeof(**out_insns));
	memcpy(*out_insns, f.insns, f.n * sizeof(**out_insns));
	*out_n = (uint32_t)f.n;
}

/* PID 1 installs its own, a process the one for it beside that. */
START_TEST(filters_itself)
{
	struct sandbox s;
	struct sandbox_run r;

	sandbox_init(&s);
	filter_set(SECFILTER_INIT, &s.config.own_filter, &s.config.own_filter_n);
	filter_set(SECFILTER_CHILD, &s.config.workload_filter, &s.config.workload_filter_n);
	sandbox_start(&s);
	autofree char *status = status_of(s.pid);

	ck_assert_uint_eq(status_hex(status, "Seccomp:"), 2);
	ck_assert_uint_eq(status_hex(status, "Seccomp_filters:"), 1);
	RUN_SHELL(&r, "grep Seccomp_filters: /proc/self/status; unshare -U true 2>/dev/null; echo $?");
	(void)run_start(&s, &r);
	ck_assert_int_eq(run_wait(&s, &r).status, 0);
	autofree char *out = run_output(&r);

	ck_assert_uint_eq(status_hex(out, "Seccomp_filters:"), 2);
	ck_assert_ptr_nonnull(strstr(out, "\n1\n"));
	(void)sandbox_end(&s);
	execd_config_done(&s.config);
}
END_TEST

/* Only its own descriptors, and no way to them from inside. */
START_TEST(closes_what_leaked)
{
	struct sandbox s;
	struct sandbox_run r;
	char name[64];
	char link[64];

	sandbox_init(&s);
	sandbox_start(&s);
	/* An answer says that it serves: the handshake's channel is closed. */
	RUN_SHELL(&r, "cat");
	(void)run_start(&s, &r);
	for (int fd = 3; fd < 64; fd++) {
		snprintf(name, sizeof(name), "/proc/%d/fd/%d", (int)s.pid, fd);
		ssize_t n = readlink(name, link, sizeof(link) - 1);

		if (n > 0) {
			link[n] = '\0';
			bool known = fd == EXECD_FD_CONTROL || fd == EXECD_FD_ROOT ||
				     strstr(link, "anon_inode:") ||
				     strcmp(link, "/memfd:process (deleted)") == 0;

			ck_assert_msg(known, "%d -> %s", fd, link);
		}
	}
	end(&s);
	free(run_output(&r));
	/* The numbers may be listed, as the directory is root's; nothing is behind them. */
	autofree char *out = sandbox_shell("ls /proc/self/fd; readlink /proc/1/fd/* /proc/1/exe "
					   "/proc/1/cwd /proc/1/root; ls /proc/1/map_files; "
					   "cat /proc/1/mem /proc/1/fd/4 /proc/1/environ");

	ck_assert_msg(strcmp(out, "0\n1\n2\n3\n"
				  "ls: reading directory '/proc/1/map_files': Permission denied\n"
				  "cat: /proc/1/mem: Permission denied\n"
				  "cat: /proc/1/fd/4: Permission denied\n"
				  "cat: /proc/1/environ: Permission denied\n") == 0,
			"%s", out);
}
END_TEST

START_TEST(leaves_the_host)
{
	autofree char *out = sandbox_shell("ls -d /*; cat /proc/1/comm; pwd; umask");

	ck_assert_ptr_null(strstr(out, "/home"));
	ck_assert_ptr_null(strstr(out, "/work"));
	ck_assert_ptr_nonnull(strstr(out, "/tmp"));
	ck_assert_msg(strstr(out, "\nosbx-execd\n/\n0022\n") != NULL, "%s", out);
}
END_TEST

/* A key of the caller's session must not be seen from inside. */
START_TEST(keyring_is_new)
{
	static const char key[] = "osbx-unit-canary";
	char line[256];

	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0) {
		return; /* a kernel or an outer filter without keyrings: there is nothing to see */
	}
	long id = syscall(SYS_add_key, "user", key, "x", 1, KEY_SPEC_SESSION_KEYRING);

	ck_assert_int_gt(id, 0);
	/* For its possessor alone, not for its owner: the test may be root inside and outside. */
	ck_assert_int_eq(syscall(SYS_keyctl, KEYCTL_SETPERM, id, 0x3f000000), 0);
	FILE *keys = fopen("/proc/keys", "re");
	bool seen = false;

	while (keys && fgets(line, sizeof(line), keys)) {
		seen = seen || strstr(line, key);
	}
	ck_assert(seen);
	fclose(keys);
	autofree char *out = sandbox_shell("grep -c osbx-unit-canary /proc/keys");

	ck_assert_str_eq(out, "0\n");
}
END_TEST

START_TEST(error_names_the_step)
{
	struct sandbox s;
	struct error e = ERROR_INIT;
	enum init_stage stage = INIT_STAGE_GONE;
	struct packet p;

	sandbox_init(&s);
	/* A program that the kernel does not accept: it jumps behind its end. */
	s.config.own_filter_n = 1;
	s.config.own_filter = mem_new(struct sock_filter);
	s.config.own_filter[0] = (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 7);
	sandbox_launch(&s);
	ck_assert_int_eq(init_expect(s.init, &stage, INIT_MSG_UP, &p,
					 clock_boot_ms() + SANDBOX_WAIT_MS, &e),
			-1);
	ck_assert_ptr_nonnull(strstr(e.text, "execd: filter: install"));
	ck_assert_int_eq(e.sysno, EINVAL);
	ck_assert_int_eq(sandbox_end(&s), 125);
	execd_config_done(&s.config);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("enter");
	TCase *tc = tcase_create("all");

	if (!sandbox_is_possible()) {
		return getenv("OSBX_TESTS_MUST_RUN") ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	unit_with_dir(tc);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, reduces_itself);
	tcase_add_test(tc, isolation_keeps_admin);
	tcase_add_test(tc, filters_itself);
	tcase_add_test(tc, closes_what_leaked);
	tcase_add_test(tc, leaves_the_host);
	tcase_add_test(tc, keyring_is_new);
	tcase_add_test(tc, error_names_the_step);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
