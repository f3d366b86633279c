/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include <osbx/str.h>

#include "../../../oci/credential.h"
#include "../unit.h"

struct surroundings {
	const char *name[5]; /* variables that are set */
	const char *value[5];
	const char *path[CREDENTIAL_PLACES_MAX];
	size_t fallback;
};

static const struct surroundings cases[] = {
	{ { NULL }, { NULL }, { NULL }, 0 },
	{ { "HOME" }, { "/h" }, { "/h/.config/containers/auth.json", "/h/.docker/config.json" },
			0 },
	{ { "HOME", "XDG_RUNTIME_DIR" }, { "/h", "/r" },
			{ "/r/containers/auth.json", "/h/.config/containers/auth.json",
					"/h/.docker/config.json" },
			1 },
	{ { "HOME", "XDG_CONFIG_HOME", "DOCKER_CONFIG" }, { "/h", "/c", "/d" },
			{ "/c/containers/auth.json", "/d/config.json" }, 0 },
	{ { "XDG_RUNTIME_DIR" }, { "/r" }, { "/r/containers/auth.json" }, 0 },
	/* What is not absolute or empty counts as not set. */
	{ { "HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "DOCKER_CONFIG" }, { "h", "", "c", "." },
			{ NULL }, 0 },
	{ { "REGISTRY_AUTH_FILE", "HOME", "XDG_RUNTIME_DIR" }, { "/a", "/h", "/r" }, { "/a" }, 0 },
	{ { "REGISTRY_AUTH_FILE", "HOME" }, { "", "/h" },
			{ "/h/.config/containers/auth.json", "/h/.docker/config.json" }, 0 },
};

static const char *const variables[] = { "HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME",
	"DOCKER_CONFIG", "REGISTRY_AUTH_FILE" };

START_TEST(places_in_order)
{
	const struct surroundings *c = &cases[_i];
	AUTO(credential_places) struct credential_places p = { .n = 0 };
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
		ck_assert_int_eq(unsetenv(variables[i]), 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(c->name) && c->name[i]; i++) {
		ck_assert_int_eq(setenv(c->name[i], c->value[i], 1), 0);
	}
	credential_places_find(&p);
	while (n < CREDENTIAL_PLACES_MAX && c->path[n]) {
		n++;
	}
	ck_assert_uint_eq(p.n, n);
	for (size_t i = 0; i < n; i++) {
		ck_assert_str_eq(p.v[i].path, c->path[i]);
		ck_assert(p.v[i].is_docker == str_has_suffix(c->path[i], "config.json"));
	}
	ck_assert_uint_eq(p.fallback, c->fallback);
}
END_TEST

START_TEST(spellings_of_the_hub)
{
	ck_assert_str_eq(credential_key("docker.io", 0), "https://index.docker.io/v1/");
	ck_assert_str_eq(credential_key("docker.io", 1), "docker.io");
	ck_assert_ptr_nonnull(credential_key("docker.io", 3));
	ck_assert_ptr_null(credential_key("docker.io", 4));
	ck_assert_str_eq(credential_key("reg.example:5", 0), "reg.example:5");
	ck_assert_ptr_null(credential_key("reg.example:5", 1));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("credential_places");
	TCase *tc = tcase_create("credential_places");

	tcase_add_loop_test(tc, places_in_order, 0, (int)ARRAY_SIZE(cases));
	tcase_add_test(tc, spellings_of_the_hub);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
