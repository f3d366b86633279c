/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/capability.h>

#include <osbx/caps.h>
#include <osbx/limits.h>
#include <osbx/request.h>

#include "../unit.h"

START_TEST(starts_with_defaults)
{
	AUTO(request) struct sandbox_request r = { .caps = 0 };

	request_init(&r);
	ck_assert_int_eq(r.network, SPEC_NETWORK_NONE);
	ck_assert(r.caps == caps_workload_default);
	ck_assert_ptr_null(r.image);
}
END_TEST

struct volume_case {
	const char *text;
	const char *src; /* NULL: refused; behind "CWD": relative to the working directory */
	const char *dst;
	bool read_only;
};

static const struct volume_case volume_cases[] = {
	{ "/a:/b", "/a", "/b", false },
	{ "/a:/b:ro", "/a", "/b", true },
	{ "/a:/b:rw", "/a", "/b", false },
	{ "./d:/work", "CWD/d", "/work", false },
	{ "././/d/./x:/work", "CWD/d/./x", "/work", false },
	{ ".:/work", "CWD", "/work", false },
	{ "./:/work", "CWD", "/work", false },
	{ "./../d:/work", "CWD/../d", "/work", false },
	{ "./.d:/work", "CWD/.d", "/work", false },
	{ "../d:/work", "CWD/../d", "/work", false },
	{ "d/e:/work", "CWD/d/e", "/work", false },
	/* What is wrong with a destination is said by request_validate. */
	{ "/a:", "/a", "", false },
	{ "/a", NULL, NULL, false },
	{ "", NULL, NULL, false },
	{ ":/b", NULL, NULL, false },
	{ "name:/b", NULL, NULL, false },
	{ "/a:/b:", NULL, NULL, false },
	{ "/a:/b:RO", NULL, NULL, false },
	{ "/a:/b:ro,z", NULL, NULL, false },
	{ "/a:/b:ro:", NULL, NULL, false },
};

START_TEST(reads_volumes)
{
	const struct volume_case *c = &volume_cases[_i];
	AUTO(request) struct sandbox_request r = { .caps = 0 };
	struct error e = ERROR_INIT;
	char cwd[4096];
	char src[8192];

	ck_assert_ptr_nonnull(getcwd(cwd, sizeof(cwd)));
	request_init(&r);
	if (!c->src) {
		ck_assert_int_eq(request_add_volume(&r, c->text, &e), -1);
		ck_assert_int_eq(e.code, ERRC_INVALID);
		ck_assert_uint_eq(r.volumes_n, 0);
		return;
	}
	ck_assert_int_eq(request_add_volume(&r, c->text, &e), 0);
	ck_assert_uint_eq(r.volumes_n, 1);
	if (strncmp(c->src, "CWD", 3) == 0) {
		snprintf(src, sizeof(src), "%s%s", cwd, c->src + 3);
	} else {
		snprintf(src, sizeof(src), "%s", c->src);
	}
	ck_assert_str_eq(r.volumes[0].src, src);
	ck_assert_str_eq(r.volumes[0].dst, c->dst);
	ck_assert_int_eq(r.volumes[0].read_only, c->read_only);
}
END_TEST

START_TEST(a_bare_name_is_explained)
{
	AUTO(request) struct sandbox_request r = { .caps = 0 };
	struct error e = ERROR_INIT;

	ck_assert_int_eq(request_add_volume(&r, "data:/b", &e), -1);
	ck_assert_ptr_nonnull(strstr(e.hint, "./data"));
}
END_TEST

START_TEST(bounds_volumes)
{
	AUTO(request) struct sandbox_request r = { .caps = 0 };
	struct error e = ERROR_INIT;

	for (int i = 0; i < LIMIT_VOLUMES; i++) {
		ck_assert_int_eq(request_add_volume(&r, "/a:/b", &e), 0);
		ck_assert_int_eq(request_add_tmpfs(&r, "/t", &e), 0);
	}
	ck_assert_int_eq(request_add_volume(&r, "/a:/b", &e), -1);
	ck_assert_int_eq(e.code, ERRC_LIMIT);
	error_clear(&e);
	ck_assert_int_eq(request_add_tmpfs(&r, "/t", &e), -1);
	ck_assert_int_eq(e.code, ERRC_LIMIT);
}
END_TEST

static const struct {
	const char *text;
	const char *dst; /* NULL: refused */
	uint64_t size;
} tmpfs_cases[] = {
	{ "/t", "/t", 0 },
	{ "/t:64m", "/t", 64U << 20 },
	{ "/t:size=1g", "/t", 1U << 30 },
	{ "/t:4096", "/t", 4096 },
	{ "/t:", NULL, 0 },
	{ "/t:0", NULL, 0 },
	{ "/t:size=", NULL, 0 },
	{ "/t:mode=755", NULL, 0 },
	{ "/t:64x", NULL, 0 },
};

START_TEST(reads_tmpfs)
{
	AUTO(request) struct sandbox_request r = { .caps = 0 };
	struct error e = ERROR_INIT;
	int n = request_add_tmpfs(&r, tmpfs_cases[_i].text, &e);

	if (!tmpfs_cases[_i].dst) {
		ck_assert_int_eq(n, -1);
		ck_assert_int_eq(e.code, ERRC_INVALID);
		return;
	}
	ck_assert_int_eq(n, 0);
	ck_assert_str_eq(r.tmpfs[0].dst, tmpfs_cases[_i].dst);
	ck_assert(r.tmpfs[0].size == tmpfs_cases[_i].size);
}
END_TEST

START_TEST(reads_variables)
{
	AUTO(request) struct sandbox_request r = { .caps = 0 };
	struct error e = ERROR_INIT;

	setenv("OSBX_TEST_GIVEN", "from the caller", 1);
	unsetenv("OSBX_TEST_MISSING");
	ck_assert_int_eq(request_add_env(&r, "A=1", &e), 0);
	ck_assert_int_eq(request_add_env(&r, "B=", &e), 0);
	ck_assert_int_eq(request_add_env(&r, "C=x=y", &e), 0);
	ck_assert_int_eq(request_add_env(&r, "OSBX_TEST_GIVEN", &e), 0);
	ck_assert_int_eq(request_add_env(&r, "OSBX_TEST_MISSING", &e), 0);
	ck_assert_int_eq(request_add_env(&r, "A=2", &e), 0);
	ck_assert_uint_eq(r.env.n, 4);
	ck_assert_str_eq(strv_env_find(&r.env, "A"), "2");
	ck_assert_str_eq(strv_env_find(&r.env, "B"), "");
	ck_assert_str_eq(strv_env_find(&r.env, "C"), "x=y");
	ck_assert_str_eq(strv_env_find(&r.env, "OSBX_TEST_GIVEN"), "from the caller");
	ck_assert_int_eq(request_add_env(&r, "", &e), -1);
	error_clear(&e);
	ck_assert_int_eq(request_add_env(&r, "=x", &e), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
}
END_TEST

START_TEST(bounds_the_environment)
{
	AUTO(request) struct sandbox_request r = { .caps = 0 };
	struct error e = ERROR_INIT;
	autofree char *big = malloc(LIMIT_ARGS_BYTES + 8);

	ck_assert_ptr_nonnull(big);
	memset(big, 'x', LIMIT_ARGS_BYTES + 7);
	big[1] = '=';
	big[LIMIT_ARGS_BYTES + 7] = '\0';
	ck_assert_int_eq(request_add_env(&r, big, &e), -1);
	ck_assert_int_eq(e.code, ERRC_LIMIT);
}
END_TEST

static void file_make(const char *name, const char *text, size_t n)
{
	int fd = openat(unit_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, n), (ssize_t)n);
	close(fd);
}

static int env_file(struct sandbox_request *r, const char *text, size_t n, struct error *e)
{
	char path[128];

	file_make("env", text, n);
	snprintf(path, sizeof(path), "%s/env", unit_path);
	return request_add_env_file(r, path, e);
}

START_TEST(reads_files_of_variables)
{
	static const char text[] = "# comment\n\n  A=1\nB=two words \r\nOSBX_TEST_FILE\n#C=3\nD=#4";
	AUTO(request) struct sandbox_request r = { .caps = 0 };
	struct error e = ERROR_INIT;

	setenv("OSBX_TEST_FILE", "f", 1);
	ck_assert_int_eq(env_file(&r, text, sizeof(text) - 1, &e), 0);
	ck_assert_uint_eq(r.env.n, 4);
	ck_assert_str_eq(strv_env_find(&r.env, "A"), "1");
	ck_assert_str_eq(strv_env_find(&r.env, "B"), "two words ");
	ck_assert_str_eq(strv_env_find(&r.env, "OSBX_TEST_FILE"), "f");
	ck_assert_str_eq(strv_env_find(&r.env, "D"), "#4");
}
END_TEST

START_TEST(a_byte_order_mark_is_no_part_of_a_name)
{
	AUTO(request) struct sandbox_request r = { .caps = 0 };
	struct error e = ERROR_INIT;

	ck_assert_int_eq(env_file(&r,
					 "\xef\xbb\xbf"
					 "A=1\r\n",
					 8, &e),
			0);
	ck_assert_uint_eq(r.env.n, 1);
	ck_assert_str_eq(r.env.v[0], "A=1");
	/* Only at the beginning of the file, and only a whole one. */
	ck_assert_int_eq(env_file(&r, "\xef\xbb", 2, &e), 0);
}
END_TEST

START_TEST(names_the_line_of_a_bad_variable)
{
	AUTO(request) struct sandbox_request r = { .caps = 0 };
	struct error e = ERROR_INIT;

	ck_assert_int_eq(env_file(&r, "A=1\nexport B=2\n", 15, &e), -1);
	ck_assert_ptr_nonnull(strstr(e.text, "/env:2: white space"));
	error_clear(&e);
	ck_assert_int_eq(env_file(&r, "A=1\nB=\0x\n", 9, &e), -1);
	ck_assert_ptr_nonnull(strstr(e.text, "/env:2: NUL"));
	error_clear(&e);
	ck_assert_int_eq(env_file(&r, "\n\n=x\n", 5, &e), -1);
	ck_assert_ptr_nonnull(strstr(e.text, "/env:3: "));
	error_clear(&e);
	ck_assert_int_eq(request_add_env_file(&r, "/nonexistent/env", &e), -1);
	ck_assert_int_eq(e.sysno, ENOENT);
}
END_TEST

START_TEST(bounds_files_of_variables)
{
	AUTO(request) struct sandbox_request r = { .caps = 0 };
	struct error e = ERROR_INIT;
	size_t n = LIMIT_ARGS_BYTES + 1;
	autofree char *text = malloc(n);

	ck_assert_ptr_nonnull(text);
	memset(text, '\n', n);
	ck_assert_int_eq(env_file(&r, text, n, &e), -1);
	ck_assert_int_eq(e.code, ERRC_LIMIT);
}
END_TEST

START_TEST(knows_networks)
{
	AUTO(request) struct sandbox_request r = { .caps = 0 };
	struct error e = ERROR_INIT;

	ck_assert_int_eq(request_set_network(&r, "host", &e), 0);
	ck_assert_int_eq(r.network, SPEC_NETWORK_HOST);
	ck_assert_int_eq(request_set_network(&r, "none", &e), 0);
	ck_assert_int_eq(r.network, SPEC_NETWORK_NONE);
	ck_assert_int_eq(request_set_network(&r, "private", &e), 0);
	ck_assert_int_eq(r.network, SPEC_NETWORK_PRIVATE);
	ck_assert_int_eq(request_set_network(&r, "bridge", &e), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
	ck_assert_int_eq(r.network, SPEC_NETWORK_PRIVATE);
}
END_TEST

START_TEST(collects_rules)
{
	AUTO(request) struct sandbox_request r = { .caps = 0 };
	struct error e = ERROR_INIT;

	request_init(&r);
	ck_assert(!r.has_policy);
	ck_assert_int_eq(request_add_rule(&r, NETPOLICY_DENY, "*", &e), 0);
	ck_assert_int_eq(request_add_rule(&r, NETPOLICY_ALLOW, "a.test", &e), 0);
	ck_assert(r.has_policy && r.policy.fallback == NETPOLICY_DENY);
	ck_assert_uint_eq(r.policy.n, 1);
	ck_assert_int_eq(request_add_rule(&r, NETPOLICY_ALLOW, "no name", &e), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
}
END_TEST

START_TEST(changes_capabilities)
{
	AUTO(request) struct sandbox_request r = { .caps = 0 };
	struct error e = ERROR_INIT;

	request_init(&r);
	ck_assert_int_eq(request_change_cap(&r, "net_raw", true, &e), 0);
	ck_assert(r.caps == (caps_workload_default | CAPS_BIT(CAP_NET_RAW)));
	ck_assert_int_eq(request_change_cap(&r, "CAP_NET_RAW", false, &e), 0);
	ck_assert(r.caps == caps_workload_default);
	ck_assert_int_eq(request_change_cap(&r, "ALL", false, &e), 0);
	ck_assert(r.caps == 0);
	ck_assert_int_eq(request_change_cap(&r, "all", true, &e), 0);
	ck_assert((r.caps & caps_workload_default) == caps_workload_default);
	ck_assert((r.caps & CAPS_BIT(CAP_SYS_ADMIN)) == 0);
	ck_assert((r.caps & CAPS_BIT(CAP_SYS_PTRACE)) == 0);
	ck_assert((r.caps & CAPS_BIT(CAP_NET_ADMIN)) == 0);
	/* Taking one that nobody has is no mistake. */
	ck_assert_int_eq(request_change_cap(&r, "sys_admin", false, &e), 0);
	ck_assert_int_eq(request_change_cap(&r, "flying", true, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
}
END_TEST

static const char *const refused_caps[] = { "SYS_ADMIN", "cap_sys_ptrace", "net_admin",
	"DAC_READ_SEARCH", "SYS_MODULE", "BPF", "SYS_RAWIO", "MAC_ADMIN", "SYS_TIME" };

START_TEST(refuses_unsafe_capabilities)
{
	AUTO(request) struct sandbox_request r = { .caps = 0 };
	struct error e = ERROR_INIT;

	request_init(&r);
	ck_assert_int_eq(request_change_cap(&r, refused_caps[_i], true, &e), -1);
	ck_assert_int_eq(e.code, ERRC_DENIED);
	ck_assert_ptr_nonnull(strstr(e.text, refused_caps[_i]));
	ck_assert(r.caps == caps_workload_default);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("request");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_test(tc, starts_with_defaults);
	tcase_add_loop_test(tc, reads_volumes, 0, ARRAY_SIZE(volume_cases));
	tcase_add_test(tc, a_bare_name_is_explained);
	tcase_add_test(tc, bounds_volumes);
	tcase_add_loop_test(tc, reads_tmpfs, 0, ARRAY_SIZE(tmpfs_cases));
	tcase_add_test(tc, reads_variables);
	tcase_add_test(tc, bounds_the_environment);
	tcase_add_test(tc, reads_files_of_variables);
	tcase_add_test(tc, a_byte_order_mark_is_no_part_of_a_name);
	tcase_add_test(tc, names_the_line_of_a_bad_variable);
	tcase_add_test(tc, bounds_files_of_variables);
	tcase_add_test(tc, knows_networks);
	tcase_add_test(tc, collects_rules);
	tcase_add_test(tc, changes_capabilities);
	tcase_add_loop_test(tc, refuses_unsafe_capabilities, 0, ARRAY_SIZE(refused_caps));
	suite_add_tcase(s, tc);
	return unit_run(s);
}
