/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include <osbx/limits.h>
#include <osbx/mem.h>

#include "../../../oci/auth.h"
#include "../../../oci/credential.h"
#include "../unit.h"

static struct credential_place place;

static void place_set(const char *name)
{
	free(place.path);
	place.path = mem_printf("%s/%s", unit_path, name);
	place.is_docker = strcmp(name, "config.json") == 0;
}

static void file_put(const char *name, const char *text)
{
	place_set(name);
	ck_assert_int_eq(file_write_at(unit_fd, name, span_of(text), false), 0);
}

static char *file_get(const char *name)
{
	struct buf b = BUF_INIT(LIMIT_AUTH_FILE_BYTES);

	ck_assert_int_eq(file_read_at(unit_fd, name, &b), 0);
	return buf_take(&b);
}

struct expected {
	const char *domain;
	const char *repository;
	const char *user; /* NULL: nothing is found */
	const char *password;
	const char *token;
};

static void text_is(const char *got, const char *wanted)
{
	if (wanted) {
		ck_assert_ptr_nonnull(got);
		ck_assert_str_eq(got, wanted);
	} else {
		ck_assert_ptr_null(got);
	}
}

static void find_is(const struct expected *want)
{
	struct error e = ERROR_INIT;
	AUTO(credential_file) struct credential_file f = { .root = NULL };
	AUTO(credential) struct credential c = CREDENTIAL_INIT;

	ck_assert_int_eq(credential_file_load(&place, &f, &e), 0);
	ck_assert_int_eq(credential_file_find(&f, want->domain, want->repository, &c, &e), 0);
	text_is(c.user, want->user);
	text_is(c.password, want->password);
	text_is(c.identity_token, want->token);
}

/* base64: u:p, v:q, w:a:b (a colon in the password), x:y\0\0, t: (with a token) */
static const char many[] = "{\"auths\":{"
			   "\"reg.example\":{\"auth\":\"dTpw\"},"
			   "\"reg.example/ns\":{\"auth\":\"djpx\"},"
			   "\"reg.example/ns/repo\":{\"auth\":\"dzphOmI=\"},"
			   "\"https://other.example/v2/\":{\"auth\":\"eDp5AAA=\"},"
			   "\"marker.example\":{},"
			   "\"token.example\":{\"identitytoken\":\"TOKEN\"},"
			   "\"acr.example\":{\"auth\":\"dDo=\",\"identitytoken\":\"TOKEN\"},"
			   "\"plain.example\":{\"username\":\"u\",\"password\":\"p\"},"
			   "\"localhost:5000\":{\"auth\":\"djpx\"},"
			   "\"index.docker.io\":{\"auth\":\"djpx\"},"
			   "\"https://index.docker.io/v1/\":{\"auth\":\"dTpw\"},"
			   "\"docker.io/private\":{\"auth\":\"eDp5\"}"
			   "},\"HttpHeaders\":{\"User-Agent\":\"x\"}}";

static const struct expected found[] = {
	{ "reg.example", "a", "u", "p", NULL },
	{ "reg.example", NULL, "u", "p", NULL },
	{ "reg.example", "ns", "v", "q", NULL },
	{ "reg.example", "ns/a", "v", "q", NULL },
	{ "reg.example", "nsx", "u", "p", NULL },
	{ "reg.example", "ns/repo", "w", "a:b", NULL },
	{ "reg.example", "ns/repo/deep", "w", "a:b", NULL },
	{ "reg.example", "ns/repository", "v", "q", NULL },
	{ "reg.example:443", "a", NULL, NULL, NULL },
	{ "sub.reg.example", "a", NULL, NULL, NULL },
	{ "other.example", "a", "x", "y", NULL },
	{ "marker.example", "a", NULL, NULL, NULL },
	{ "token.example", "a", CREDENTIAL_TOKEN_USER, NULL, "TOKEN" },
	{ "acr.example", "a", "t", "", "TOKEN" },
	{ "plain.example", "a", "u", "p", NULL },
	{ "localhost:5000", "a", "v", "q", NULL },
	{ "localhost", "a", NULL, NULL, NULL },
	{ "docker.io", "library/python", "u", "p", NULL },
	{ "docker.io", "private/x", "x", "y", NULL },
};

START_TEST(finds_the_most_specific_entry)
{
	file_put("config.json", many);
	find_is(&found[_i]);
}
END_TEST

START_TEST(nothing_in_what_is_not_there)
{
	struct error e = ERROR_INIT;
	AUTO(credential_file) struct credential_file f = { .root = NULL };

	place_set("absent");
	ck_assert_int_eq(credential_file_load(&place, &f, &e), 0);
	ck_assert(!f.exists);
	find_is(&(struct expected){ .domain = "reg.example" });
	file_put("empty", " \n");
	find_is(&(struct expected){ .domain = "reg.example" });
	ck_assert_int_eq(credential_file_load(&place, &f, &e), 0);
	ck_assert(f.exists);
}
END_TEST

struct bad {
	const char *text;
	const char *says;
};

static const struct bad bad_files[] = {
	{ "{\"auths\":", "json" },
	{ "not json", "json" },
	{ "[]", "expected an object" },
	{ "{\"auths\":[]}", "auths: expected an object" },
	{ "{\"auths\":{},\"credHelpers\":\"x\"}", "credHelpers: expected an object" },
	{ "{\"auths\":{\"a\":{},\"a\":{}}}", "duplicate name" },
};

START_TEST(refuses_other_documents)
{
	struct error e = ERROR_INIT;
	AUTO(credential_file) struct credential_file f = { .root = NULL };

	file_put("auth.json", bad_files[_i].text);
	ck_assert_int_eq(credential_file_load(&place, &f, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
	ck_assert_msg(strstr(e.text, place.path), "%s", e.text);
	ck_assert_msg(strstr(e.text, bad_files[_i].says), "%s", e.text);
}
END_TEST

static const struct bad bad_entries[] = {
	{ "{\"auth\":\"SECRETX\"}", "base64" },      /* no padding */
	{ "{\"auth\":\"!!!!\"}", "base64" },         /* other letters */
	{ "{\"auth\":\"dTpw====\"}", "base64" },     /* padding alone */
	{ "{\"auth\":\"dT==cDpw\"}", "base64" },     /* padding inside */
	{ "{\"auth\":\"U0VDUkVUWFg=\"}", "base64" }, /* no colon: SECRETXX */
	{ "{\"auth\":\"OlNFQ1JFVA==\"}", "base64" }, /* no user: ":SECRET" */
	{ "{\"auth\":\"dTpTRQBDUkVU\"}", "base64" }, /* a NUL inside */
	{ "{\"username\":\"u\"}", "it has no secret" },
};

START_TEST(refuses_entries_that_cannot_be_read)
{
	struct error e = ERROR_INIT;
	AUTO(credential_file) struct credential_file f = { .root = NULL };
	AUTO(credential) struct credential c = CREDENTIAL_INIT;
	autofree char *text = mem_printf("{\"auths\":{\"reg.example\":%s}}", bad_entries[_i].text);

	file_put("auth.json", text);
	ck_assert_int_eq(credential_file_load(&place, &f, &e), 0);
	/* Another host's broken entry hinders nobody. */
	ck_assert_int_eq(credential_file_find(&f, "other.example", "a", &c, &e), 0);
	ck_assert_ptr_null(c.user);
	ck_assert_int_eq(credential_file_find(&f, "reg.example", "a", &c, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
	ck_assert_msg(strstr(e.text, bad_entries[_i].says), "%s", e.text);
	ck_assert_msg(strstr(e.text, place.path), "%s", e.text);
	ck_assert_msg(!strstr(e.text, "SECRET"), "%s", e.text);
}
END_TEST

START_TEST(is_bounded)
{
	struct error e = ERROR_INIT;
	AUTO(credential_file) struct credential_file f = { .root = NULL };

	place_set("large");
	ck_assert_int_eq(file_write_at(unit_fd, "large", span_of(""), false), 0);
	ck_assert_int_eq(truncate(place.path, LIMIT_AUTH_FILE_BYTES + 1), 0);
	ck_assert_int_eq(credential_file_load(&place, &f, &e), -1);
	ck_assert_int_eq(e.code, ERRC_LIMIT);
}
END_TEST

START_TEST(takes_regular_files_only)
{
	struct error e = ERROR_INIT;
	AUTO(credential_file) struct credential_file f = { .root = NULL };

	place_set("fifo");
	ck_assert_int_eq(mkfifo(place.path, 0600), 0);
	ck_assert_int_eq(credential_file_load(&place, &f, &e), -1);
	ck_assert_msg(strstr(e.text, "not a regular file"), "%s", e.text);
}
END_TEST

START_TEST(helper_of_a_host)
{
	struct error e = ERROR_INIT;
	AUTO(credential_file) struct credential_file f = { .root = NULL };
	const char *helper = NULL;

	file_put("config.json",
			"{\"credsStore\":\"desktop\",\"credHelpers\":{\"reg.example\":\"ecr-login\","
			"\"index.docker.io\":\"pass\",\"off.example\":\"\"}}");
	ck_assert_int_eq(credential_file_load(&place, &f, &e), 0);
	ck_assert_int_eq(credential_file_helper(&f, "reg.example", &helper, &e), 0);
	text_is(helper, "ecr-login");
	ck_assert_int_eq(credential_file_helper(&f, "docker.io", &helper, &e), 0);
	text_is(helper, "pass");
	ck_assert_int_eq(credential_file_helper(&f, "x.example", &helper, &e), 0);
	text_is(helper, "desktop");
	ck_assert_int_eq(credential_file_helper(&f, "off.example", &helper, &e), 0);
	text_is(helper, NULL);
}
END_TEST

START_TEST(helper_is_no_path)
{
	struct error e = ERROR_INIT;
	AUTO(credential_file) struct credential_file f = { .root = NULL };
	const char *helper = NULL;

	file_put("config.json", "{\"credsStore\":\"../../bin/sh\"}");
	ck_assert_int_eq(credential_file_load(&place, &f, &e), 0);
	ck_assert_int_eq(credential_file_helper(&f, "reg.example", &helper, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
}
END_TEST

static bool replace(const char *domain, const struct credential *c)
{
	struct error e = ERROR_INIT;
	bool changed = false;

	ck_assert_msg(credential_file_replace(&place, domain, c, &changed, &e) == 0, "%s", e.text);
	return changed;
}

static char user[] = "u";
static char password[] = "p";
static const struct credential up = { .user = user, .password = password };

START_TEST(writes_a_new_file)
{
	struct stat s;

	place_set("deep/containers/auth.json");
	ck_assert(replace("reg.example", &up));
	ck_assert_int_eq(stat(place.path, &s), 0);
	ck_assert_int_eq(s.st_mode & 07777, 0600);
	autofree char *text = file_get("deep/containers/auth.json");

	ck_assert_str_eq(text, "{\n\t\"auths\": {\n\t\t\"reg.example\": {\n"
			       "\t\t\t\"auth\": \"dTpw\"\n\t\t}\n\t}\n}\n");
}
END_TEST

START_TEST(keeps_the_rest)
{
	file_put("config.json",
			"{\"HttpHeaders\":{\"A\":\"b\\\\\",\"c\":\"{,:[\\\"\"},\"auths\":{"
			"\"reg.example\":{\"auth\":\"djpx\",\"email\":\"x\"},"
			"\"https://reg.example/v1/\":{\"auth\":\"djpx\"},"
			"\"reg.example/ns\":{\"auth\":\"djpx\"}},\"n\":[1,2.5,{}],\"t\":true}");
	ck_assert(replace("reg.example", &up));
	autofree char *text = file_get("config.json");

	ck_assert_str_eq(text,
			"{\n\t\"HttpHeaders\": {\n\t\t\"A\": \"b\\\\\",\n\t\t\"c\": \"{,:[\\\"\"\n\t},\n"
			"\t\"auths\": {\n\t\t\"reg.example/ns\": {\n\t\t\t\"auth\": \"djpx\"\n\t\t},\n"
			"\t\t\"reg.example\": {\n\t\t\t\"auth\": \"dTpw\"\n\t\t}\n\t},\n"
			"\t\"n\": [\n\t\t1,\n\t\t2.5,\n\t\t{}\n\t],\n\t\"t\": true\n}\n");
	ck_assert(replace("reg.example", NULL));
	find_is(&(struct expected){ "reg.example", "a", NULL, NULL, NULL });
	find_is(&(struct expected){ "reg.example", "ns/a", "v", "q", NULL });
	ck_assert(!replace("reg.example", NULL));
}
END_TEST

START_TEST(names_the_hub_as_the_file_does)
{
	place_set("config.json");
	ck_assert(replace("docker.io", &up));
	autofree char *docker = file_get("config.json");

	ck_assert_ptr_nonnull(strstr(docker, "\"https://index.docker.io/v1/\""));
	place_set("auth.json");
	ck_assert(replace("docker.io", &up));
	autofree char *podman = file_get("auth.json");

	ck_assert_ptr_nonnull(strstr(podman, "\"docker.io\""));
	find_is(&(struct expected){ "docker.io", "a/b", "u", "p", NULL });
	ck_assert(replace("docker.io", NULL));
}
END_TEST

START_TEST(follows_a_link_to_the_file)
{
	struct stat s;

	file_put("kept", "{\"auths\":{}}");
	ck_assert_int_eq(symlinkat("kept", unit_fd, "auth.json"), 0);
	place_set("auth.json");
	ck_assert(replace("reg.example", &up));
	ck_assert_int_eq(lstat(place.path, &s), 0);
	ck_assert(S_ISLNK(s.st_mode));
	autofree char *text = file_get("kept");

	ck_assert_ptr_nonnull(strstr(text, "dTpw"));
}
END_TEST

START_TEST(does_not_make_a_file_to_remove_from)
{
	place_set("deep/auth.json");
	ck_assert(!replace("reg.example", NULL));
	ck_assert_int_eq(access(place.path, F_OK), -1);
	place_set("auth.json");
	ck_assert(!replace("reg.example", NULL));
	ck_assert_int_eq(access(place.path, F_OK), -1);
}
END_TEST

START_TEST(leaves_alone_what_it_cannot_read)
{
	struct error e = ERROR_INIT;
	bool changed = false;

	file_put("auth.json", "{\"auths\":");
	ck_assert_int_eq(credential_file_replace(&place, "reg.example", &up, &changed, &e), -1);
	autofree char *text = file_get("auth.json");

	ck_assert_str_eq(text, "{\"auths\":");
}
END_TEST

START_TEST(decodes_base64)
{
	AUTO(auth_secret) char *text = NULL;

	ck_assert_int_eq(credential_decode("", &text), 0);
	ck_assert_str_eq(text, "");
	auth_secret_free(TAKE_PTR(text));
	ck_assert_int_eq(credential_decode("+/+/", &text), 0);
	ck_assert_str_eq(text, "\xfb\xff\xbf");
	ck_assert_int_eq(credential_decode("=", &(char *){ NULL }), -EINVAL);
	ck_assert_int_eq(credential_decode("====", &(char *){ NULL }), -EINVAL);
	ck_assert_int_eq(credential_decode("a", &(char *){ NULL }), -EINVAL);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("credential_file");
	TCase *tc = tcase_create("credential_file");

	unit_with_dir(tc);
	tcase_add_loop_test(tc, finds_the_most_specific_entry, 0, (int)ARRAY_SIZE(found));
	tcase_add_test(tc, nothing_in_what_is_not_there);
	tcase_add_loop_test(tc, refuses_other_documents, 0, (int)ARRAY_SIZE(bad_files));
	tcase_add_loop_test(
			tc, refuses_entries_that_cannot_be_read, 0, (int)ARRAY_SIZE(bad_entries));
	tcase_add_test(tc, is_bounded);
	tcase_add_test(tc, takes_regular_files_only);
	tcase_add_test(tc, helper_of_a_host);
	tcase_add_test(tc, helper_is_no_path);
	tcase_add_test(tc, writes_a_new_file);
	tcase_add_test(tc, keeps_the_rest);
	tcase_add_test(tc, names_the_hub_as_the_file_does);
	tcase_add_test(tc, follows_a_link_to_the_file);
	tcase_add_test(tc, does_not_make_a_file_to_remove_from);
	tcase_add_test(tc, leaves_alone_what_it_cannot_read);
	tcase_add_test(tc, decodes_base64);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
