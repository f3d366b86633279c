/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/request.h>

#include "../unit.h"

#define LONG_63 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define LONG_64 LONG_63 "a"

enum field {
	FIELD_IMAGE,
	FIELD_NAME,
	FIELD_HOSTNAME,
	FIELD_WORKDIR,
	FIELD_USER,
	FIELD_GROUP,
	FIELD_LABEL,
	FIELD_PLATFORM,
	FIELD_COMMAND,
	FIELD_VOLUME,
	FIELD_TMPFS,
};

static const struct check_case {
	enum field field;
	const char *value;
	bool valid;
} cases[] = {
	{ FIELD_IMAGE, "", false },
	{ FIELD_NAME, "web-1.a_b", true },
	{ FIELD_NAME, LONG_64, true },
	{ FIELD_NAME, LONG_64 "a", false },
	{ FIELD_NAME, "", false },
	{ FIELD_NAME, ".hidden", false },
	{ FIELD_NAME, "-x", false },
	{ FIELD_NAME, "a/b", false },
	{ FIELD_NAME, "a b", false },
	{ FIELD_NAME, "a\n", false },
	{ FIELD_HOSTNAME, "a", true },
	{ FIELD_HOSTNAME, "host-1.example.org", true },
	{ FIELD_HOSTNAME, "0", true },
	{ FIELD_HOSTNAME, LONG_64, false }, /* one label of 64 */
	{ FIELD_HOSTNAME, "", false },
	{ FIELD_HOSTNAME, "-a", false },
	{ FIELD_HOSTNAME, "a-", false },
	{ FIELD_HOSTNAME, "a..b", false },
	{ FIELD_HOSTNAME, "a.", false },
	{ FIELD_HOSTNAME, "a_b", true },
	{ FIELD_HOSTNAME, "_", true },
	{ FIELD_HOSTNAME, LONG_63, true },
	{ FIELD_HOSTNAME, LONG_63 ".", false },
	{ FIELD_HOSTNAME, "a." LONG_63, false }, /* 65 in all */
	{ FIELD_HOSTNAME, "a b", false },
	{ FIELD_HOSTNAME, "a\tb", false },
	{ FIELD_WORKDIR, "/", true },
	{ FIELD_WORKDIR, "/a/../b", true },
	{ FIELD_WORKDIR, "a", false },
	{ FIELD_WORKDIR, "", false },
	{ FIELD_USER, "0", true },
	{ FIELD_USER, "1000:1000", true },
	{ FIELD_USER, "www-data", true },
	{ FIELD_USER, "", false },
	{ FIELD_USER, ":0", false },
	{ FIELD_USER, "a:", false },
	{ FIELD_USER, "a:b:c", false },
	{ FIELD_GROUP, "audio", true },
	{ FIELD_GROUP, "", false },
	{ FIELD_LABEL, "a=b", true },
	{ FIELD_LABEL, "a=", true },
	{ FIELD_LABEL, "a", false },
	{ FIELD_LABEL, "=b", false },
	{ FIELD_PLATFORM, "linux/amd64", true },
	{ FIELD_PLATFORM, "linux/arm/v7", true },
	{ FIELD_PLATFORM, "windows/amd64", false },
	{ FIELD_PLATFORM, "linux/", false },
	{ FIELD_PLATFORM, "linux//v7", false },
	{ FIELD_PLATFORM, "linux", false },
	{ FIELD_COMMAND, "true", true },
	{ FIELD_COMMAND, "", false },
	{ FIELD_VOLUME, "/data", true },
	{ FIELD_VOLUME, "data", false },
	{ FIELD_VOLUME, "", false },
	{ FIELD_VOLUME, "/", false },
	{ FIELD_VOLUME, "//..", false },
	{ FIELD_TMPFS, "/data", true },
	{ FIELD_TMPFS, "data", false },
	{ FIELD_TMPFS, "/./", false },
};

static void field_set(struct sandbox_request *r, enum field field, const char *value)
{
	struct error e = ERROR_INIT;
	autofree char *volume = mem_printf("/src:%s", value);

	switch (field) {
	case FIELD_IMAGE:
		free(r->image);
		r->image = mem_strdup(value);
		break;
	case FIELD_NAME:
		r->name = mem_strdup(value);
		break;
	case FIELD_HOSTNAME:
		r->hostname = mem_strdup(value);
		break;
	case FIELD_WORKDIR:
		r->workdir = mem_strdup(value);
		break;
	case FIELD_USER:
		r->user = mem_strdup(value);
		break;
	case FIELD_GROUP:
		ck_assert_int_eq(strv_add(&r->groups, value), 0);
		break;
	case FIELD_LABEL:
		ck_assert_int_eq(strv_add(&r->labels, value), 0);
		break;
	case FIELD_PLATFORM:
		r->platform = mem_strdup(value);
		break;
	case FIELD_COMMAND:
		ck_assert_int_eq(strv_add(&r->command, value), 0);
		break;
	case FIELD_VOLUME:
		ck_assert_int_eq(request_add_volume(r, volume, &e), 0);
		break;
	case FIELD_TMPFS:
		ck_assert_int_eq(request_add_tmpfs(r, value, &e), 0);
		break;
	}
}

START_TEST(checks_fields)
{
	AUTO(request) struct sandbox_request r = { .caps = 0 };
	struct error e = ERROR_INIT;

	request_init(&r);
	r.image = mem_strdup("busybox");
	ck_assert_int_eq(request_validate(&r, &e), 0);
	field_set(&r, cases[_i].field, cases[_i].value);
	ck_assert_msg(request_validate(&r, &e) == (cases[_i].valid ? 0 : -1), "case %d", _i);
	ck_assert_int_eq(e.code, cases[_i].valid ? ERRC_OK : ERRC_INVALID);
	/* "what: why"; the command and the image have no name. */
	if (!cases[_i].valid && cases[_i].field != FIELD_IMAGE &&
			cases[_i].field != FIELD_COMMAND) {
		ck_assert_msg(strstr(e.text, ": ") != NULL, "%s", e.text);
	}
}
END_TEST

START_TEST(an_entrypoint_takes_an_empty_argument)
{
	AUTO(request) struct sandbox_request r = { .caps = 0 };
	struct error e = ERROR_INIT;

	request_init(&r);
	r.image = mem_strdup("busybox");
	r.entrypoint = mem_strdup("printf");
	ck_assert_int_eq(strv_add(&r.command, ""), 0);
	ck_assert_int_eq(request_validate(&r, &e), 0);
}
END_TEST

START_TEST(finds_destinations_given_twice)
{
	static const char *const pairs[][2] = {
		{ "/a:/b", "/c:/b" },
		{ "/a:/b", "/c:/b/" },
		{ "/a:/b", "/c:/x/../b" },
	};
	AUTO(request) struct sandbox_request r = { .caps = 0 };
	struct error e = ERROR_INIT;

	request_init(&r);
	r.image = mem_strdup("busybox");
	ck_assert_int_eq(request_add_volume(&r, pairs[_i][0], &e), 0);
	ck_assert_int_eq(request_validate(&r, &e), 0);
	ck_assert_int_eq(request_add_volume(&r, pairs[_i][1], &e), 0);
	ck_assert_int_eq(request_validate(&r, &e), -1);
	ck_assert_ptr_nonnull(strstr(e.text, "/b: given twice"));
}
END_TEST

START_TEST(a_tmpfs_on_a_volume_is_given_twice)
{
	AUTO(request) struct sandbox_request r = { .caps = 0 };
	struct error e = ERROR_INIT;

	request_init(&r);
	r.image = mem_strdup("busybox");
	ck_assert_int_eq(request_add_volume(&r, "/a:/b", &e), 0);
	ck_assert_int_eq(request_add_tmpfs(&r, "/b/c", &e), 0);
	ck_assert_int_eq(request_validate(&r, &e), 0);
	ck_assert_int_eq(request_add_tmpfs(&r, "/b", &e), 0);
	ck_assert_int_eq(request_validate(&r, &e), -1);
}
END_TEST

START_TEST(ports_are_published_once_and_not_of_the_host)
{
	AUTO(request) struct sandbox_request r = { .caps = 0 };
	struct error e = ERROR_INIT;

	request_init(&r);
	r.image = mem_strdup("busybox");
	ck_assert_int_eq(request_add_port(&r, "8080:80", &e), 0);
	ck_assert_int_eq(request_add_port(&r, ":80", &e), 0);
	ck_assert_int_eq(request_add_port(&r, ":80", &e), 0);
	ck_assert_int_eq(request_add_port(&r, "[::1]:8080:80", &e), 0);
	ck_assert_int_eq(request_validate(&r, &e), 0);
	r.network = SPEC_NETWORK_HOST;
	ck_assert_int_eq(request_validate(&r, &e), -1);
	ck_assert_ptr_nonnull(strstr(e.text, "network host"));
	error_clear(&e);
	r.network = SPEC_NETWORK_NONE;
	ck_assert_int_eq(request_add_port(&r, "127.0.0.1:8080:81", &e), 0);
	ck_assert_int_eq(request_validate(&r, &e), -1);
	ck_assert_ptr_nonnull(strstr(e.text, "127.0.0.1:8080: given twice"));
	error_clear(&e);
	while (r.ports_n < LIMIT_PORTS) {
		ck_assert_int_eq(request_add_port(&r, "80", &e), 0);
	}
	ck_assert_int_eq(request_add_port(&r, "80", &e), -1);
	ck_assert_int_eq(e.code, ERRC_LIMIT);
}
END_TEST

START_TEST(bounds_numbers)
{
	AUTO(request) struct sandbox_request r = { .caps = 0 };
	struct error e = ERROR_INIT;

	request_init(&r);
	r.image = mem_strdup("busybox");
	for (int i = 0; i <= LIMIT_GROUPS; i++) {
		ck_assert_int_eq(request_validate(&r, &e), 0);
		ck_assert_int_eq(strv_add(&r.groups, "g"), 0);
	}
	ck_assert_int_eq(request_validate(&r, &e), -1);
	ck_assert_int_eq(e.code, ERRC_LIMIT);
	strv_done(&r.groups);
	error_clear(&e);
	for (int i = 0; i <= LIMIT_LABELS; i++) {
		ck_assert_int_eq(request_validate(&r, &e), 0);
		ck_assert_int_eq(strv_add(&r.labels, "k=v"), 0);
	}
	ck_assert_int_eq(request_validate(&r, &e), -1);
	ck_assert_int_eq(e.code, ERRC_LIMIT);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("request_check");
	TCase *tc = tcase_create("all");

	tcase_add_loop_test(tc, checks_fields, 0, ARRAY_SIZE(cases));
	tcase_add_test(tc, an_entrypoint_takes_an_empty_argument);
	tcase_add_loop_test(tc, finds_destinations_given_twice, 0, 3);
	tcase_add_test(tc, a_tmpfs_on_a_volume_is_given_twice);
	tcase_add_test(tc, ports_are_published_once_and_not_of_the_host);
	tcase_add_test(tc, bounds_numbers);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
