/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/resource.h>

#include "sandbox.h"

static struct sandbox s;
static struct sandbox_run r;

static void start(const char *script)
{
	sandbox_init(&s);
	sandbox_start(&s);
	RUN_SHELL(&r, script);
}

/* Output of the main process; the sandbox has ended. */
static char *finish(void)
{
	(void)run_start(&s, &r);
	(void)run_wait(&s, &r);
	char *out = run_output(&r);

	(void)sandbox_end(&s);
	return out;
}

static void fails(enum errc code, const char *text)
{
	struct error e = run_fails(&s, &r);

	ck_assert_msg(strstr(e.text, text), "%s", e.text);
	ck_assert_int_eq(e.code, code);
	shutdown(s.control, SHUT_RDWR);
	(void)sandbox_end(&s);
}

START_TEST(environment_is_what_was_given)
{
	start("env | grep -v -e ^PWD= -e ^_= -e ^SHLVL= | sort");
	ck_assert_int_eq(strv_add(&r.process.env, "A=1"), 0);
	autofree char *out = finish();

	ck_assert_str_eq(out, "A=1\nHOME=/root\nPATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:"
			      "/usr/bin:/sbin:/bin\n");
}
END_TEST

START_TEST(environment_wins)
{
	start("/usr/bin/env | /usr/bin/grep -e ^HOME= -e ^PATH= | /usr/bin/sort");
	free(r.process.argv.v[0]);
	r.process.argv.v[0] = mem_strdup("/bin/sh");
	ck_assert_int_eq(strv_add(&r.process.env, "PATH=/nowhere"), 0);
	ck_assert_int_eq(strv_add(&r.process.env, "HOME="), 0);
	autofree char *out = finish();

	ck_assert_str_eq(out, "HOME=\nPATH=/nowhere\n");
}
END_TEST

START_TEST(home_only_on_request)
{
	start("env | grep -c ^HOME=; true");
	r.process.set_home = 0;
	autofree char *out = finish();

	ck_assert_str_eq(out, "0\n");
}
END_TEST

START_TEST(user_of_the_image)
{
	start("id -u; id -g; id -G; echo $HOME; grep -E '^Cap(Inh|Prm|Eff|Bnd|Amb)' "
	      "/proc/self/status | cut -f2; echo x >/dev/stdout");
	r.process.user = mem_strdup("app");
	autofree char *out = finish();
	char want[256];

	/* Nothing but the bound is left to an ordinary user. */
	snprintf(want, sizeof(want),
			"1000\n1001\n1001 1002\n/home/app\n%016d\n%016d\n%016d\n%016llx\n%016d\n",
			0, 0, 0, (unsigned long long)caps_workload_default, 0);
	ck_assert_ptr_nonnull(strstr(out, want));
	/* In a user namespace like this one the test's pipe cannot change its owner. */
}
END_TEST

START_TEST(root_has_its_capabilities)
{
	char want[128];

	start("grep -E '^Cap(Inh|Prm|Eff|Bnd|Amb)' /proc/self/status | cut -f2; id -G");
	r.process.caps = CAPS_BIT(0) | CAPS_BIT(6) | CAPS_BIT(7);
	autofree char *out = finish();

	snprintf(want, sizeof(want), "%016d\n%016x\n%016x\n%016x\n%016d\n", 0, 0xc1, 0xc1, 0xc1, 0);
	ck_assert_int_eq(strncmp(out, want, strlen(want)), 0);
	if (s.many_ids) {
		ck_assert_str_eq(out + strlen(want), "0 1002\n");
	}
}
END_TEST

START_TEST(capability_beyond_the_bound)
{
	start("true");
	r.process.caps = CAPS_BIT(21);
	fails(ERRC_SYSTEM, "capabilities: set capabilities");
}
END_TEST

START_TEST(groups_are_added)
{
	start("id -G");
	if (!s.many_ids) {
		r.process.user = mem_strdup("0");
		ck_assert_int_eq(strv_add(&r.process.groups, "0"), 0);
		fails(ERRC_UNSUPPORTED, "additional groups");
		return;
	}
	r.process.user = mem_strdup("1000:1000");
	ck_assert_int_eq(strv_add(&r.process.groups, "more"), 0);
	ck_assert_int_eq(strv_add(&r.process.groups, "1234"), 0);
	autofree char *out = finish();

	ck_assert_str_eq(out, "1000 1003 1234\n");
}
END_TEST

/* One id, no setgroups: as an ordinary user without subordinate ids has it. */
START_TEST(single_id)
{
	sandbox_init(&s);
	s.many_ids = false;
	s.config.ids_max = 1;
	s.config.has_setgroups = 0;
	sandbox_start(&s);
	RUN_SHELL(&r, "true");
	r.process.user = mem_strdup("app");
	struct error e = run_fails(&s, &r);

	ck_assert_str_eq(e.text, "user id 1000: this sandbox has the id 0 only");
	ck_assert_int_eq(strncmp(e.hint, "give the calling user subordinate ids", 37), 0);
	usleep(100000);
	RUN_SHELL(&r, "id -u; id -g; echo $HOME");
	autofree char *out = finish();

	ck_assert_str_eq(out, "0\n0\n/root\n");
}
END_TEST

START_TEST(working_directory)
{
	start("pwd");
	r.process.cwd = mem_strdup("/usr/bin");
	autofree char *out = finish();

	ck_assert_str_eq(out, "/usr/bin\n");
	start("pwd");
	r.process.cwd = mem_strdup("/missing/dir");
	fails(ERRC_INVALID, "working directory \"/missing/dir\"");
	/* A directory behind procfs's links is none of ours: execd holds the root and nothing else.
	 */
	start("pwd");
	r.process.cwd = mem_strdup("/proc/self/fd/7");
	fails(ERRC_INVALID, "working directory \"/proc/self/fd/7\"");
}
END_TEST

START_TEST(working_directory_is_made)
{
	start("pwd; stat -c '%u %g %a' /made /made/by /made/by/us; cd /closed 2>&1 || true");
	r.process.cwd = mem_strdup("/made/by/us/");
	r.process.cwd_create = EXECD_CWD_MAKE;
	if (s.many_ids) {
		r.process.user = mem_strdup("app");
	}
	autofree char *out = finish();

	ck_assert_msg(strncmp(out,
				      s.many_ids ? "/made/by/us\n1000 1001 755\n1000 1001 755\n1000 1001 755\n"
						 : "/made/by/us\n0 0 755\n0 0 755\n0 0 755\n",
				      12) == 0,
			"%s", out);
	ck_assert_ptr_nonnull(
			strstr(out, s.many_ids ? "1000 1001 755\n1000 1001 755\n1000 1001 755\n"
					       : "0 0 755\n0 0 755\n0 0 755\n"));
}
END_TEST

static const char *const cwd_not_made[][2] = {
	{ "/usr/missing/dir", "\"/usr/missing/dir\" is missing in what is mounted above it" },
	{ "/proc/missing", "\"/proc/missing\" is missing in what is mounted above it" },
	{ "/dangling", "\"/dangling\": a link on the way leads to nothing" },
	{ "/dangling/dir", "\"/dangling/dir\": a link on the way leads to nothing" },
};

START_TEST(working_directory_is_not_made)
{
	start("pwd");
	r.process.cwd = mem_strdup(cwd_not_made[_i][0]);
	r.process.cwd_create = EXECD_CWD_MAKE_IN_TMPFS;
	fails(ERRC_INVALID, cwd_not_made[_i][1]);
}
END_TEST

START_TEST(working_directory_must_be_enterable)
{
	start("pwd");
	if (!s.many_ids) {
		r.process.cwd = mem_strdup("/etc/passwd");
		fails(ERRC_INVALID, "working directory \"/etc/passwd\"");
		return;
	}
	r.process.user = mem_strdup("app");
	r.process.cwd = mem_strdup("/closed");
	fails(ERRC_INVALID, "working directory \"/closed\"");
}
END_TEST

START_TEST(limits_and_umask)
{
	start("ulimit -n; ulimit -Hn; ulimit -c; umask");
	r.process.umask_bits = 077;
	r.process.rlimits_n = 2;
	r.process.rlimits[0] = (struct execd_rlimit){ RLIMIT_NOFILE, 0, 100, 200 };
	r.process.rlimits[1] = (struct execd_rlimit){ RLIMIT_CORE, 0, 0, 0 };
	autofree char *out = finish();

	ck_assert_str_eq(out, "100\n200\n0\n0077\n");
	start("true");
	r.process.rlimits_n = 1;
	r.process.rlimits[0] = (struct execd_rlimit){ RLIMIT_NOFILE, 0, 1U << 30, 1U << 30 };
	fails(ERRC_SYSTEM, "limits: set resource limit");
}
END_TEST

START_TEST(session_of_its_own)
{
	start("read -r pid comm state ppid group session tty rest </proc/$$/stat; "
	      "echo $((pid - group)) $((pid - session)) $tty");
	autofree char *out = finish();

	ck_assert_str_eq(out, "0 0 0\n");
}
END_TEST

/* Ends that do not block would make half of all programs fail. */
START_TEST(stdio_blocks)
{
	start("while read -r name value; do test $name = flags: && echo $value; done "
	      "</proc/self/fdinfo/1");
	autofree char *out = finish();

	ck_assert_str_eq(out, "01\n");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("child");
	TCase *tc = tcase_create("all");

	if (!sandbox_is_possible()) {
		return getenv("OSBX_TESTS_MUST_RUN") ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	unit_with_dir(tc);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, environment_is_what_was_given);
	tcase_add_test(tc, environment_wins);
	tcase_add_test(tc, home_only_on_request);
	if (sandbox_has_ids()) {
		tcase_add_test(tc, user_of_the_image);
	}
	tcase_add_test(tc, root_has_its_capabilities);
	tcase_add_test(tc, capability_beyond_the_bound);
	tcase_add_test(tc, groups_are_added);
	tcase_add_test(tc, single_id);
	tcase_add_test(tc, working_directory);
	tcase_add_test(tc, working_directory_is_made);
	tcase_add_loop_test(tc, working_directory_is_not_made, 0, ARRAY_SIZE(cwd_not_made));
	tcase_add_test(tc, working_directory_must_be_enterable);
	tcase_add_test(tc, limits_and_umask);
	tcase_add_test(tc, session_of_its_own);
	tcase_add_test(tc, stdio_blocks);
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
