/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "../../../oci/fetch_setup.h"
#include "../unit.h"

#define PEM "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"

static struct error e = ERROR_INIT;
static struct registry_host hosts[3];
static struct registry_config config = { .hosts_n = 3, .hosts = hosts };
static struct pull_opts opts = { .config = &config, .tls_verify = -1 };

/* No variable of the machine's, no credentials, a home of its own. */
static void make(void)
{
	static const char *const variables[] = { "http_proxy", "https_proxy", "HTTPS_PROXY",
		"all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY", "SSL_CERT_FILE",
		"XDG_RUNTIME_DIR", "REGISTRY_AUTH_FILE", "DOCKER_CONFIG", "XDG_CONFIG_HOME" };

	unit_dir_make();
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
		ck_assert_int_eq(unsetenv(variables[i]), 0);
	}
	ck_assert_int_eq(setenv("HOME", unit_path, 1), 0);
	hosts[0] = (struct registry_host){ .host = mem_strdup("reg.example"), .tls_verify = true };
	hosts[1] = (struct registry_host){ .host = mem_strdup("mirror.example"),
		.tls_verify = false };
	hosts[2] = (struct registry_host){ .host = mem_strdup("docker.io"), .tls_verify = true };
}

static void done(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		free(hosts[i].host);
		free(hosts[i].ca_file);
		strv_done(&hosts[i].mirrors);
	}
	unit_dir_close();
}

static int setup_make(const char *name, const struct credential *credential,
		struct fetch_setup *out_setup)
{
	AUTO(ref) struct ref ref = REF_INIT;

	ck_assert_int_eq(ref_parse(name, &ref, &e), 0);
	return fetch_setup_make(&ref, &opts, credential, out_setup, &e);
}

static void file_put(const char *name, const char *text)
{
	ck_assert_int_eq(file_write_at(unit_fd, name, span_of(text), false), 0);
}

static const struct {
	const char *host;
	bool is_local;
} locals[] = {
	{ "localhost", true },
	{ "localhost:5000", true },
	{ "127.0.0.1", true },
	{ "127.0.0.1:5000", true },
	{ "127.255.1.2:1", true },
	{ "[::1]", true },
	{ "[::1]:5000", true },
	{ "[0:0:0:0:0:0:0:1]", true },
	{ "localhost.example", false },
	{ "127.0.0.1.example", false },
	{ "127.1", false },
	{ "128.0.0.1", false },
	{ "0.0.0.0", false },
	{ "10.0.0.1:5000", false },
	{ "[::2]:5000", false },
	{ "[::ffff:127.0.0.1]", false },
	{ "docker.io", false },
	{ "", false },
};

START_TEST(this_machine_is_known)
{
	ck_assert_msg(fetch_host_is_local(locals[_i].host) == locals[_i].is_local, "%s",
			locals[_i].host);
}
END_TEST

START_TEST(docker_hub)
{
	AUTO(fetch_setup) struct fetch_setup s = FETCH_SETUP_INIT;

	ck_assert_int_eq(setup_make("python:3", NULL, &s), 0);
	ck_assert_uint_eq(s.hosts_n, 1);
	ck_assert_str_eq(s.domain, "docker.io");
	ck_assert_str_eq(s.name, "python");
	ck_assert_str_eq(s.hosts[0].host, "registry-1.docker.io");
	ck_assert_str_eq(s.hosts[0].repository, "library/python");
	ck_assert(s.hosts[0].verify);
	ck_assert(!s.hosts[0].may_http);
	ck_assert_ptr_null(s.hosts[0].ca);
	ck_assert_ptr_null(s.hosts[0].credential.user);
	ck_assert_ptr_null(s.http_proxy);
	ck_assert_ptr_null(s.https_proxy);
	ck_assert_ptr_null(s.no_proxy);
}
END_TEST

START_TEST(mirrors_come_first)
{
	AUTO(fetch_setup) struct fetch_setup s = FETCH_SETUP_INIT;

	ck_assert_int_eq(strv_add(&hosts[0].mirrors, "mirror.example/cache/of"), 0);
	ck_assert_int_eq(strv_add(&hosts[0].mirrors, "[::1]:5000"), 0);
	ck_assert_int_eq(strv_add(&hosts[0].mirrors, "docker.io/"), 0);
	ck_assert_int_eq(setup_make("reg.example/a/b:1", NULL, &s), 0);
	ck_assert_uint_eq(s.hosts_n, 4);
	ck_assert_str_eq(s.hosts[0].host, "mirror.example");
	ck_assert_str_eq(s.hosts[0].repository, "cache/of/a/b");
	/* By a section of its own. */
	ck_assert(!s.hosts[0].verify);
	ck_assert(s.hosts[0].may_http);
	ck_assert_str_eq(s.hosts[1].host, "[::1]:5000");
	ck_assert_str_eq(s.hosts[1].repository, "a/b");
	ck_assert(s.hosts[1].verify);
	ck_assert(s.hosts[1].may_http);
	ck_assert_str_eq(s.hosts[2].host, "registry-1.docker.io");
	ck_assert_str_eq(s.hosts[3].host, "reg.example");
	ck_assert(s.hosts[3].verify);
	ck_assert(!s.hosts[3].may_http);
}
END_TEST

static const struct {
	int asked;
	bool mirror;
	bool registry;
} verifications[] = { { -1, false, true }, { 0, false, false }, { 1, true, true } };

/* What is given up for the registry is not given up for its mirrors. */
START_TEST(verification_is_chosen)
{
	AUTO(fetch_setup) struct fetch_setup s = FETCH_SETUP_INIT;

	ck_assert_int_eq(strv_add(&hosts[0].mirrors, "mirror.example"), 0);
	ck_assert_int_eq(strv_add(&hosts[0].mirrors, "other.example"), 0);
	opts.tls_verify = verifications[_i].asked;
	ck_assert_int_eq(setup_make("reg.example/a:1", NULL, &s), 0);
	ck_assert_int_eq(s.hosts[0].verify, verifications[_i].mirror);
	ck_assert(s.hosts[1].verify);
	ck_assert_int_eq(s.hosts[2].verify, verifications[_i].registry);
	ck_assert_int_eq(s.hosts[2].may_http, !verifications[_i].registry);
}
END_TEST

START_TEST(odd_mirrors_are_refused)
{
	static const char *const odd[] = { "", "/x", "../x", ".x", ":5000", "a b", "a@b", "a?b" };
	AUTO(fetch_setup) struct fetch_setup s = FETCH_SETUP_INIT;

	ck_assert_int_eq(strv_add(&hosts[0].mirrors, odd[_i]), 0);
	ck_assert_int_eq(setup_make("reg.example/a:1", NULL, &s), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
	ck_assert_uint_eq(s.hosts_n, 0);
}
END_TEST

START_TEST(mirrors_are_bounded)
{
	AUTO(fetch_setup) struct fetch_setup s = FETCH_SETUP_INIT;

	for (int i = 0; i < FETCH_HOSTS_MAX; i++) {
		ck_assert_int_eq(strv_addf(&hosts[0].mirrors, "m%d.example", i), 0);
	}
	ck_assert_int_eq(setup_make("reg.example/a:1", NULL, &s), -1);
	ck_assert_int_eq(e.code, ERRC_LIMIT);
}
END_TEST

/* Those of the registry go to the registry alone; a mirror has its own entry, or none. */
START_TEST(credentials_go_where_they_belong)
{
	AUTO(fetch_setup) struct fetch_setup s = FETCH_SETUP_INIT;
	char user[] = "anna";
	char password[] = "secret";
	struct credential c = { .user = user, .password = password };
	autofree char *file = mem_printf("%s/auth.json", unit_path);

	file_put("auth.json", "{\"auths\":{\"mirror.example\":{\"auth\":\"Ym9iOnB3\"}}}");
	ck_assert_int_eq(setenv("REGISTRY_AUTH_FILE", file, 1), 0);
	ck_assert_int_eq(strv_add(&hosts[0].mirrors, "mirror.example"), 0);
	ck_assert_int_eq(strv_add(&hosts[0].mirrors, "other.example"), 0);
	ck_assert_msg(setup_make("reg.example/a:1", &c, &s) == 0, "%s", e.text);
	ck_assert_str_eq(s.hosts[0].credential.user, "bob");
	ck_assert_str_eq(s.hosts[0].credential.password, "pw");
	ck_assert_ptr_null(s.hosts[1].credential.user);
	ck_assert_str_eq(s.hosts[2].credential.user, "anna");
	ck_assert_str_eq(s.hosts[2].credential.password, "secret");
}
END_TEST

START_TEST(proxies_of_the_environment)
{
	AUTO(fetch_setup) struct fetch_setup s = FETCH_SETUP_INIT;

	ck_assert_int_eq(setenv("HTTP_PROXY", "http://of.a.request", 1), 0);
	ck_assert_int_eq(setenv("https_proxy", "", 1), 0);
	ck_assert_int_eq(setenv("HTTPS_PROXY", "http://secure", 1), 0);
	ck_assert_int_eq(setenv("ALL_PROXY", "http://all", 1), 0);
	ck_assert_int_eq(setenv("NO_PROXY", "a,b", 1), 0);
	ck_assert_int_eq(setup_make("reg.example/a:1", NULL, &s), 0);
	ck_assert_str_eq(s.http_proxy, "http://all");
	ck_assert_str_eq(s.https_proxy, "http://secure");
	ck_assert_str_eq(s.no_proxy, "a,b");
}
END_TEST

START_TEST(a_domain_alone)
{
	AUTO(fetch_setup) struct fetch_setup s = FETCH_SETUP_INIT;
	char domain[] = "reg.example";
	struct ref ref = { .domain = domain };

	ck_assert_int_eq(strv_add(&hosts[0].mirrors, "mirror.example"), 0);
	ck_assert_int_eq(fetch_setup_make(&ref, &opts, NULL, &s, &e), 0);
	ck_assert_uint_eq(s.hosts_n, 1);
	ck_assert_str_eq(s.name, "reg.example");
	ck_assert_ptr_null(s.hosts[0].repository);
}
END_TEST

START_TEST(certificates_are_read)
{
	autofree char *file = mem_printf("%s/ca.pem", unit_path);
	autofree char *system = mem_printf("%s/system.pem", unit_path);
	autofree char *ca = NULL;

	file_put("ca.pem", PEM);
	file_put("system.pem", "# the system's\n" PEM);
	ck_assert_int_eq(fetch_ca_read("reg.example", NULL, &ca, &e), 0);
	ck_assert_ptr_null(ca);
	ck_assert_int_eq(setenv("SSL_CERT_FILE", system, 1), 0);
	ck_assert_int_eq(fetch_ca_read("reg.example", NULL, &ca, &e), 0);
	ck_assert_str_eq(ca, "# the system's\n" PEM "\n");
	free(TAKE_PTR(ca));
	ck_assert_int_eq(fetch_ca_read("reg.example", file, &ca, &e), 0);
	ck_assert_str_eq(ca, PEM "\n# the system's\n" PEM "\n");
}
END_TEST

START_TEST(certificates_that_are_none)
{
	autofree char *file = mem_printf("%s/ca.pem", unit_path);
	autofree char *large = mem_array(FETCH_CA_BYTES_MAX + 2, 1);
	char *ca = NULL;

	ck_assert_int_eq(fetch_ca_read("reg.example", file, &ca, &e), -1);
	ck_assert_int_eq(e.sysno, ENOENT);
	error_clear(&e);
	file_put("ca.pem", "no certificate");
	ck_assert_int_eq(fetch_ca_read("reg.example", file, &ca, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
	error_clear(&e);
	memset(large, ' ', FETCH_CA_BYTES_MAX + 1);
	file_put("ca.pem", large);
	ck_assert_int_eq(fetch_ca_read("reg.example", file, &ca, &e), -1);
	ck_assert_int_eq(e.code, ERRC_LIMIT);
	error_clear(&e);
	ck_assert_int_eq(fetch_ca_read("reg.example", unit_path, &ca, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
	ck_assert_ptr_null(ca);
}
END_TEST

static struct fetch_setup sample(void)
{
	struct fetch_setup s = { .timing = fetch_timing_default, .hosts_n = 2 };

	s.domain = mem_strdup("reg.example");
	s.name = mem_strdup("reg.example/a");
	s.https_proxy = mem_strdup("http://u:p@proxy");
	s.hosts[0].host = mem_strdup("m.example");
	s.hosts[0].repository = mem_strdup("x/a");
	s.hosts[0].may_http = true;
	s.hosts[1].host = mem_strdup("reg.example");
	s.hosts[1].repository = mem_strdup("a");
	s.hosts[1].verify = true;
	s.hosts[1].ca = mem_strdup(PEM);
	s.hosts[1].credential.user = mem_strdup("anna");
	s.hosts[1].credential.identity_token = mem_strdup("");
	return s;
}

START_TEST(setup_travels_as_bytes)
{
	AUTO(fetch_setup) struct fetch_setup s = sample();
	AUTO(fetch_setup) struct fetch_setup got = FETCH_SETUP_INIT;
	struct buf bytes = BUF_INIT(1 << 16);

	ck_assert_int_eq(fetch_setup_write(&s, &bytes), 0);
	ck_assert_int_eq(fetch_setup_read(buf_span(&bytes), &got), 0);
	fetch_buf_wipe(&bytes);
	ck_assert_uint_eq(got.hosts_n, 2);
	ck_assert_int_eq(memcmp(&got.timing, &s.timing, sizeof(s.timing)), 0);
	ck_assert_str_eq(got.domain, s.domain);
	ck_assert_str_eq(got.https_proxy, s.https_proxy);
	ck_assert_ptr_null(got.http_proxy);
	ck_assert_str_eq(got.hosts[0].repository, "x/a");
	ck_assert(got.hosts[0].may_http && !got.hosts[0].verify);
	ck_assert_ptr_null(got.hosts[0].ca);
	ck_assert_str_eq(got.hosts[1].ca, PEM);
	ck_assert_str_eq(got.hosts[1].credential.user, "anna");
	ck_assert_ptr_null(got.hosts[1].credential.password);
	ck_assert_str_eq(got.hosts[1].credential.identity_token, "");
}
END_TEST

START_TEST(setup_cut_short_is_refused)
{
	AUTO(fetch_setup) struct fetch_setup s = sample();
	AUTO(fetch_setup) struct fetch_setup got = FETCH_SETUP_INIT;
	struct buf bytes = BUF_INIT(1 << 16);

	ck_assert_int_eq(fetch_setup_write(&s, &bytes), 0);
	for (size_t n = 0; n < bytes.n; n++) {
		autofree char *exact = mem_dup(bytes.p, n);

		ck_assert_int_eq(fetch_setup_read((struct span){ .p = exact, .n = n }, &got),
				-EBADMSG);
	}
	ck_assert_int_eq(buf_append(&bytes, "x", 1), 0);
	ck_assert_int_eq(fetch_setup_read(buf_span(&bytes), &got), -EBADMSG);
	fetch_buf_wipe(&bytes);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fetch_setup");
	TCase *tc = tcase_create("all");

	tcase_add_unchecked_fixture(tc, unit_base_make, unit_base_remove);
	tcase_add_checked_fixture(tc, make, done);
	tcase_add_loop_test(tc, this_machine_is_known, 0, (int)ARRAY_SIZE(locals));
	tcase_add_test(tc, docker_hub);
	tcase_add_test(tc, mirrors_come_first);
	tcase_add_loop_test(tc, verification_is_chosen, 0, (int)ARRAY_SIZE(verifications));
	tcase_add_loop_test(tc, odd_mirrors_are_refused, 0, 8);
	tcase_add_test(tc, mirrors_are_bounded);
	tcase_add_test(tc, credentials_go_where_they_belong);
	tcase_add_test(tc, proxies_of_the_environment);
	tcase_add_test(tc, a_domain_alone);
	tcase_add_test(tc, certificates_are_read);
	tcase_add_test(tc, certificates_that_are_none);
	tcase_add_test(tc, setup_travels_as_bytes);
	tcase_add_test(tc, setup_cut_short_is_refused);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
