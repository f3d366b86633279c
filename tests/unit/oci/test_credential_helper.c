/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include <osbx/clock.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "../../../oci/credential.h"
#include "../unit.h"

/* The helper docker-credential-NAME of a test: a script in a directory of PATH. */
static void helper_put(const char *name, const char *script)
{
	autofree char *file = mem_printf("docker-credential-%s", name);
	autofree char *text = mem_printf("#!/bin/sh\ncd %s\n%s\n", unit_path, script);
	autofree char *path = mem_printf("relative:%s:/usr/bin:/bin", unit_path);

	ck_assert_int_eq(file_write_at(unit_fd, file, span_of(text), false), 0);
	ck_assert_int_eq(fchmodat(unit_fd, file, 0755, 0), 0);
	ck_assert_int_eq(setenv("PATH", path, 1), 0);
}

static void file_is(const char *name, const char *wanted)
{
	AUTO(buf) struct buf text = BUF_INIT(LIMIT_AUTH_FILE_BYTES);

	ck_assert_int_eq(file_read_at(unit_fd, name, &text), 0);
	ck_assert_str_eq(buf_span(&text).p, wanted);
}

static int get(struct credential *out_c, struct error *e)
{
	return credential_helper_get("x", "reg.example", out_c, e);
}

START_TEST(gets_a_password)
{
	struct error e = ERROR_INIT;
	AUTO(credential) struct credential c = CREDENTIAL_INIT;

	helper_put("x", "echo \"$#$1\" >args; cat >in; echo '{\"ServerURL\":\"reg.example\","
			"\"Username\":\"u\",\"Secret\":\"p\\u0041\"}'");
	ck_assert_msg(get(&c, &e) == 0, "%s", e.text);
	ck_assert_str_eq(c.user, "u");
	ck_assert_str_eq(c.password, "pA");
	ck_assert_ptr_null(c.identity_token);
	file_is("args", "1get\n");
	file_is("in", "reg.example");
}
END_TEST

START_TEST(gets_a_token)
{
	struct error e = ERROR_INIT;
	AUTO(credential) struct credential c = CREDENTIAL_INIT;

	helper_put("x", "echo '{\"Username\":\"<token>\",\"Secret\":\"T\"}'");
	ck_assert_int_eq(get(&c, &e), 0);
	ck_assert_str_eq(c.user, CREDENTIAL_TOKEN_USER);
	ck_assert_str_eq(c.identity_token, "T");
	ck_assert_ptr_null(c.password);
}
END_TEST

START_TEST(has_nothing)
{
	struct error e = ERROR_INIT;
	AUTO(credential) struct credential c = CREDENTIAL_INIT;

	helper_put("x", "echo 'credentials not found in native keychain'; exit 1");
	ck_assert_int_eq(get(&c, &e), 0);
	ck_assert_ptr_null(c.user);
	ck_assert_int_eq(credential_helper_erase("x", "reg.example", &e), 0);
}
END_TEST

/* A helper's descendant that keeps the pipe is not waited for. */
START_TEST(ends_with_the_helper)
{
	struct error e = ERROR_INIT;
	AUTO(credential) struct credential c = CREDENTIAL_INIT;
	int64_t start = clock_boot_ms();

	helper_put("x", "sleep 20 & echo '{\"Username\":\"u\",\"Secret\":\"p\"}'");
	ck_assert_msg(get(&c, &e) == 0, "%s", e.text);
	ck_assert_str_eq(c.password, "p");
	ck_assert_int_lt(clock_boot_ms() - start, 10000);
}
END_TEST

/* It need not read what it is told. */
START_TEST(ignores_its_input)
{
	struct error e = ERROR_INIT;
	autofree char *secret = mem_array(LIMIT_SECRET_BYTES / 2 + 1, 1);
	char user[] = "u";
	struct credential c = { .user = user, .password = secret };

	memset(secret, 's', LIMIT_SECRET_BYTES / 2);
	helper_put("x", "exec <&-; sleep 0.1; exit 0");
	ck_assert_int_eq(credential_helper_store("x", "reg.example", &c, &e), 0);
}
END_TEST

struct bad {
	const char *script;
	enum errc code;
	const char *says;
};

static const struct bad bad[] = {
	{ "echo rubbish-SECRET", ERRC_INVALID, "no user name and secret" },
	{ ":", ERRC_INVALID, "no user name and secret" },
	{ "echo '{\"Username\":\"u\"}'", ERRC_INVALID, "no user name and secret" },
	{ "echo '{\"Username\":\"\",\"Secret\":\"SECRET\"}'", ERRC_INVALID,
			"no user name and secret" },
	{ "echo '{\"Username\":1,\"Secret\":\"SECRET\"}'", ERRC_INVALID,
			"no user name and secret" },
	{ "printf '{\"Username\":\"u\",\"Secret\":\"SEC\\000RET\"}'", ERRC_INVALID,
			"no user name and secret" },
	{ "exec cat /dev/zero", ERRC_LIMIT, "printed more than" },
	{ "echo 'the keyring is locked'; echo SECRET; exit 1", ERRC_UNAUTHENTICATED,
			"get failed: the keyring is locked" },
	{ "printf '\\033[31mred\\n'; exit 3", ERRC_UNAUTHENTICATED, "get failed: ?[31mred" },
	{ "exit 7", ERRC_UNAUTHENTICATED, "failed with status 7" },
	{ "kill -9 $$", ERRC_UNAUTHENTICATED, "failed with status 137" },
};

START_TEST(says_what_is_wrong)
{
	struct error e = ERROR_INIT;
	AUTO(credential) struct credential c = CREDENTIAL_INIT;

	helper_put("x", bad[_i].script);
	ck_assert_int_eq(get(&c, &e), -1);
	ck_assert_msg(e.code == bad[_i].code, "%d %s", (int)e.code, e.text);
	ck_assert_msg(strstr(e.text, bad[_i].says), "%s", e.text);
	ck_assert_msg(strstr(e.text, "docker-credential-x"), "%s", e.text);
	ck_assert_msg(!strstr(e.text, "SECRET"), "%s", e.text);
	ck_assert_ptr_null(c.user);
}
END_TEST

static bool is_alive(const char *name)
{
	AUTO(buf) struct buf text = BUF_INIT(64);
	uint64_t pid = 0;

	ck_assert_int_eq(file_read_at(unit_fd, name, &text), 0);
	text.p[text.n - 1] = '\0';
	ck_assert_int_eq(str_to_u64(text.p, INT32_MAX, &pid), 0);
	return kill((pid_t)pid, 0) == 0;
}

START_TEST(ends_one_that_hangs)
{
	struct error e = ERROR_INIT;
	AUTO(credential) struct credential c = CREDENTIAL_INIT;
	const struct timespec moment = { .tv_nsec = 10000000 };

	credential_helper_ms = 500;
	helper_put("x", "sleep 100 & echo $! >child; echo $$ >self; wait");
	ck_assert_int_eq(get(&c, &e), -1);
	ck_assert_int_eq(e.code, ERRC_TIMEOUT);
	ck_assert(!is_alive("self"));
	for (int i = 0; i < 300 && is_alive("child"); i++) {
		nanosleep(&moment, NULL);
	}
	ck_assert(!is_alive("child"));
}
END_TEST

START_TEST(must_exist)
{
	struct error e = ERROR_INIT;
	AUTO(credential) struct credential c = CREDENTIAL_INIT;

	helper_put("x", "exit 0");
	ck_assert_int_eq(fchmodat(unit_fd, "docker-credential-x", 0644, 0), 0);
	ck_assert_int_eq(get(&c, &e), -1);
	ck_assert_int_eq(e.code, ERRC_NOT_FOUND);
	ck_assert_msg(strstr(e.text, "docker-credential-x is not in PATH"), "%s", e.text);
	ck_assert_msg(e.hint[0] != '\0', "no hint");
}
END_TEST

START_TEST(stores_and_erases)
{
	struct error e = ERROR_INIT;
	char user[] = "u";
	char password[] = "a\"b\\c";
	char token[] = "T";
	struct credential c = { .user = user, .password = password };

	helper_put("x", "echo \"$1\" >>args; cat >in");
	ck_assert_int_eq(credential_helper_store("x", "reg.example", &c, &e), 0);
	file_is("in", "{\"ServerURL\":\"reg.example\",\"Username\":\"u\","
		      "\"Secret\":\"a\\\"b\\\\c\"}");
	c.identity_token = token;
	ck_assert_int_eq(credential_helper_store("x", "reg.example", &c, &e), 0);
	file_is("in", "{\"ServerURL\":\"reg.example\",\"Username\":\"<token>\",\"Secret\":\"T\"}");
	ck_assert_int_eq(credential_helper_erase("x", "reg.example", &e), 0);
	file_is("in", "reg.example");
	file_is("args", "store\nstore\nerase\n");
}
END_TEST

START_TEST(does_not_repeat_a_secret)
{
	struct error e = ERROR_INIT;
	char user[] = "u";
	char password[] = "hunter2";
	struct credential c = { .user = user, .password = password };

	helper_put("x", "cat; exit 1");
	ck_assert_int_eq(credential_helper_store("x", "reg.example", &c, &e), -1);
	ck_assert_msg(!strstr(e.text, "hunter2"), "%s", e.text);
	ck_assert_int_eq(e.code, ERRC_UNAUTHENTICATED);
}
END_TEST

START_TEST(secrets_are_bounded)
{
	struct error e = ERROR_INIT;
	autofree char *secret = mem_array(LIMIT_SECRET_BYTES + 1, 1);
	char user[] = "u";
	struct credential c = { .user = user, .password = secret };

	memset(secret, 's', LIMIT_SECRET_BYTES);
	helper_put("x", "exit 0");
	ck_assert_int_eq(credential_helper_store("x", "reg.example", &c, &e), -1);
	ck_assert_int_eq(e.code, ERRC_LIMIT);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("credential_helper");
	TCase *tc = tcase_create("credential_helper");

	unit_with_dir(tc);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, gets_a_password);
	tcase_add_test(tc, gets_a_token);
	tcase_add_test(tc, has_nothing);
	tcase_add_test(tc, ends_with_the_helper);
	tcase_add_test(tc, ignores_its_input);
	tcase_add_loop_test(tc, says_what_is_wrong, 0, (int)ARRAY_SIZE(bad));
	tcase_add_test(tc, ends_one_that_hangs);
	tcase_add_test(tc, must_exist);
	tcase_add_test(tc, stores_and_erases);
	tcase_add_test(tc, does_not_repeat_a_secret);
	tcase_add_test(tc, secrets_are_bounded);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
