/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/registry.h>

#include "../unit.h"

static void env_put(const char *name, const char *path)
{
	autofree char *full = path ? mem_printf("%s/%s", unit_path, path) : NULL;

	ck_assert_int_eq(full ? setenv(name, full, 1) : unsetenv(name), 0);
}

/* All four places, none of which exists. */
static void places_make(void)
{
	autofree char *path = mem_printf("%s:/usr/bin:/bin", unit_path);

	env_put("REGISTRY_AUTH_FILE", NULL);
	env_put("DOCKER_CONFIG", NULL);
	env_put("XDG_CONFIG_HOME", NULL);
	env_put("HOME", "home");
	env_put("XDG_RUNTIME_DIR", "run");
	ck_assert_int_eq(setenv("PATH", path, 1), 0);
}

#define RUNTIME "run/containers"
#define CONFIG  "home/.config/containers"
#define DOCKER  "home/.docker"

static void put(const char *dir, const char *name, const char *text)
{
	autofree char *full = mem_printf("%s/%s", unit_path, dir);
	autofree char *file = mem_printf("%s/%s", dir, name);

	ck_assert_int_eq(file_mkdirs(full, 0700), 0);
	ck_assert_int_eq(file_write_at(unit_fd, file, span_of(text), false), 0);
}

static bool has(const char *path, const char *text)
{
	AUTO(buf) struct buf b = BUF_INIT(LIMIT_AUTH_FILE_BYTES);

	return file_read_at(unit_fd, path, &b) == 0 && strstr(buf_span(&b).p, text);
}

static void helper_put(const char *name, const char *script)
{
	autofree char *file = mem_printf("docker-credential-%s", name);
	autofree char *text = mem_printf("#!/bin/sh\ncd %s\n%s\n", unit_path, script);

	ck_assert_int_eq(file_write_at(unit_fd, file, span_of(text), false), 0);
	ck_assert_int_eq(fchmodat(unit_fd, file, 0755, 0), 0);
}

/* Keeps one secret a server in files. */
static const char keeping[] =
		"case $1 in\n"
		"get) read -r s; f=$(printf %s \"$s\" | tr /: __); cat kept.$f 2>/dev/null ||"
		" { echo credentials not found in native keychain; exit 1; } ;;\n"
		"store) j=$(cat); s=${j#*\\\"ServerURL\\\":\\\"}; s=${s%%\\\"*};"
		" f=$(printf %s \"$s\" | tr /: __); printf %s \"$j\" >kept.$f ;;\n"
		"erase) read -r s; rm -f kept.$(printf %s \"$s\" | tr /: __) ;;\n"
		"esac";

#define ENTRY(host, base64) "{\"auths\":{\"" host "\":{\"auth\":\"" base64 "\"}}}"
#define UP                  "dTpw" /* u:p */
#define VQ                  "djpx" /* v:q */

static void find_is(const char *domain, const char *user)
{
	struct error e = ERROR_INIT;
	AUTO(credential) struct credential c = CREDENTIAL_INIT;

	ck_assert_msg(credential_find(domain, "ns/repo", &c, &e) == 0, "%s", e.text);
	if (user) {
		ck_assert_ptr_nonnull(c.user);
		ck_assert_str_eq(c.user, user);
	} else {
		ck_assert_ptr_null(c.user);
	}
}

START_TEST(order_of_places)
{
	places_make();
	find_is("reg.example", NULL);
	put(DOCKER, "config.json", ENTRY("reg.example", "YTpw"));
	find_is("reg.example", "a");
	put(CONFIG, "auth.json", ENTRY("reg.example", "Yjpw"));
	find_is("reg.example", "b");
	put(RUNTIME, "auth.json", ENTRY("other.example", "Yzpw"));
	find_is("reg.example", "b");
	put(RUNTIME, "auth.json", ENTRY("reg.example", "Yzpw"));
	find_is("reg.example", "c");
	put("d", "x", ENTRY("reg.example", "ZDpw"));
	env_put("REGISTRY_AUTH_FILE", "d/x");
	find_is("reg.example", "d");
	/* That one is instead of all others. */
	env_put("REGISTRY_AUTH_FILE", "d/absent");
	find_is("reg.example", NULL);
	ck_assert_int_eq(chdir(unit_path), 0);
	ck_assert_int_eq(setenv("REGISTRY_AUTH_FILE", "d/x", 1), 0);
	find_is("reg.example", "d");
}
END_TEST

START_TEST(variables_of_places)
{
	places_make();
	put("xdg/containers", "auth.json", ENTRY("a.example", UP));
	put("docker", "config.json", ENTRY("b.example", VQ));
	find_is("a.example", NULL);
	env_put("XDG_CONFIG_HOME", "xdg");
	env_put("DOCKER_CONFIG", "docker");
	find_is("a.example", "u");
	find_is("b.example", "v");
	env_put("HOME", NULL);
	find_is("b.example", "v");
}
END_TEST

START_TEST(helper_before_entries)
{
	places_make();
	put(DOCKER, "config.json",
			"{\"auths\":{\"reg.example\":{\"auth\":\"" UP "\"}},\"credsStore\":\"k\"}");
	helper_put("k", keeping);
	find_is("reg.example", "u");
	put(".", "kept.reg.example", "{\"Username\":\"h\",\"Secret\":\"s\"}");
	find_is("reg.example", "h");
	/* The hub by both its names. */
	put(".", "kept.docker.io", "{\"Username\":\"hub\",\"Secret\":\"s\"}");
	find_is("docker.io", "hub");
	put(".", "kept.https___index.docker.io_v1_", "{\"Username\":\"old\",\"Secret\":\"s\"}");
	find_is("docker.io", "old");
}
END_TEST

START_TEST(failing_helper_names_its_file)
{
	struct error e = ERROR_INIT;
	AUTO(credential) struct credential c = CREDENTIAL_INIT;

	places_make();
	put(DOCKER, "config.json", "{\"credsStore\":\"k\"}");
	helper_put("k", "echo locked; exit 1");
	ck_assert_int_eq(credential_find("reg.example", NULL, &c, &e), -1);
	ck_assert_msg(strstr(e.hint, ".docker/config.json"), "%s", e.hint);
}
END_TEST

static char *store(const char *domain)
{
	struct error e = ERROR_INIT;
	char user[] = "new";
	char password[] = "pw";
	const struct credential c = { .user = user, .password = password };
	char *where = NULL;

	ck_assert_msg(credential_store(domain, &c, &where, &e) == 0, "%s", e.text);
	find_is(domain, "new");
	return where;
}

static void store_is(const char *domain, const char *place)
{
	autofree char *where = store(domain);
	autofree char *wanted = mem_printf("%s/%s", unit_path, place);

	ck_assert_str_eq(where, wanted);
}

#define NEW "bmV3OnB3"

START_TEST(stores_where_there_is_nothing)
{
	places_make();
	store_is("reg.example", CONFIG "/auth.json");
	ck_assert(has(CONFIG "/auth.json", NEW));
}
END_TEST

START_TEST(stores_in_the_first_file)
{
	places_make();
	put(DOCKER, "config.json", "{}");
	store_is("reg.example", DOCKER "/config.json");
	put(CONFIG, "auth.json", "{}");
	store_is("b.example", CONFIG "/auth.json");
	/* What would be found is what is replaced. */
	store_is("reg.example", DOCKER "/config.json");
}
END_TEST

START_TEST(stores_in_the_helper)
{
	places_make();
	put(CONFIG, "auth.json", "{}");
	put(DOCKER, "config.json",
			"{\"auths\":{\"reg.example\":{\"auth\":\"" UP "\"}},"
			"\"credHelpers\":{\"reg.example\":\"k\",\"docker.io\":\"k\"}}");
	helper_put("k", keeping);
	autofree char *where = store("reg.example");

	ck_assert_str_eq(where, "docker-credential-k");
	ck_assert(has("kept.reg.example", "\"Secret\":\"pw\""));
	/* The old secret does not stay in the file. */
	ck_assert(!has(DOCKER "/config.json", UP));
	ck_assert(has(DOCKER "/config.json", "credHelpers"));
	autofree char *hub = store("docker.io");

	ck_assert_str_eq(hub, "docker-credential-k");
	ck_assert(has("kept.https___index.docker.io_v1_", "pw"));
}
END_TEST

START_TEST(needs_a_place)
{
	struct error e = ERROR_INIT;
	const struct credential c = CREDENTIAL_INIT;
	char *where = NULL;

	places_make();
	env_put("HOME", NULL);
	env_put("XDG_RUNTIME_DIR", NULL);
	ck_assert_int_eq(credential_store("reg.example", &c, &where, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
	ck_assert(e.hint[0]);
}
END_TEST

START_TEST(removes_everywhere)
{
	struct error e = ERROR_INIT;
	bool found = false;

	places_make();
	put(RUNTIME, "auth.json", ENTRY("docker.io", UP));
	put(CONFIG, "auth.json", ENTRY("reg.example", UP));
	put(DOCKER, "config.json",
			"{\"auths\":{\"https://index.docker.io/v1/\":{\"auth\":\"" VQ "\"},"
			"\"reg.example/ns\":{\"auth\":\"" VQ "\"}},\"credsStore\":\"k\"}");
	helper_put("k", keeping);
	put(".", "kept.https___index.docker.io_v1_", "{\"Username\":\"h\",\"Secret\":\"s\"}");
	put(".", "kept.docker.io", "{\"Username\":\"h\",\"Secret\":\"s\"}");
	ck_assert_int_eq(credential_remove("docker.io", &found, &e), 0);
	ck_assert(found);
	find_is("docker.io", NULL);
	ck_assert_int_eq(credential_remove("docker.io", &found, &e), 0);
	ck_assert(!found);
	ck_assert_int_eq(credential_remove("reg.example", &found, &e), 0);
	ck_assert(found);
	/* Only what was said for a part of the registry is left. */
	find_is("reg.example", "v");
}
END_TEST

START_TEST(helper_that_keeps_what_it_should_erase)
{
	struct error e = ERROR_INIT;
	bool found = false;

	places_make();
	put(DOCKER, "config.json", "{\"credsStore\":\"k\"}");
	helper_put("k", "[ $1 = erase ] || echo '{\"Username\":\"u\",\"Secret\":\"s\"}'");
	ck_assert_int_eq(credential_remove("docker.io", &found, &e), 0);
	ck_assert(found);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("credential");
	TCase *tc = tcase_create("credential");

	unit_with_dir(tc);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, order_of_places);
	tcase_add_test(tc, variables_of_places);
	tcase_add_test(tc, helper_before_entries);
	tcase_add_test(tc, failing_helper_names_its_file);
	tcase_add_test(tc, stores_where_there_is_nothing);
	tcase_add_test(tc, stores_in_the_first_file);
	tcase_add_test(tc, stores_in_the_helper);
	tcase_add_test(tc, needs_a_place);
	tcase_add_test(tc, removes_everywhere);
	tcase_add_test(tc, helper_that_keeps_what_it_should_erase);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
