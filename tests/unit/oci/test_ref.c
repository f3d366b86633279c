/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/mem.h>
#include <osbx/ref.h>

#include "../unit.h"

#define HEX    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define DIGEST "sha256:" HEX
#define X32    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define X128   X32 X32 X32 X32

struct good {
	const char *text;
	enum ref_transport transport;
	const char *path;
	const char *full;
	const char *tag;
	const char *digest;
};

static const struct good good[] = {
	{ "python", REF_NAME, NULL, "docker.io/library/python:latest", "latest", "" },
	{ "python:3.12", REF_NAME, NULL, "docker.io/library/python:3.12", "3.12", "" },
	{ "bitnami/redis", REF_NAME, NULL, "docker.io/bitnami/redis:latest", "latest", "" },
	{ "a/b/c:1", REF_NAME, NULL, "docker.io/a/b/c:1", "1", "" },
	{ "docker.io/python", REF_NAME, NULL, "docker.io/library/python:latest", "latest", "" },
	{ "index.docker.io/python", REF_NAME, NULL, "docker.io/library/python:latest", "latest",
			"" },
	{ "docker.io/library/python:3", REF_NAME, NULL, "docker.io/library/python:3", "3", "" },
	{ "ghcr.io/a/b", REF_NAME, NULL, "ghcr.io/a/b:latest", "latest", "" },
	{ "localhost/x", REF_NAME, NULL, "localhost/x:latest", "latest", "" },
	{ "localhost:5000/x:1", REF_NAME, NULL, "localhost:5000/x:1", "1", "" },
	/* Without a slash a port is a tag. */
	{ "localhost:5000", REF_NAME, NULL, "docker.io/library/localhost:5000", "5000", "" },
	{ "registry:5000/x", REF_NAME, NULL, "registry:5000/x:latest", "latest", "" },
	{ "127.0.0.1:5000/a/b", REF_NAME, NULL, "127.0.0.1:5000/a/b:latest", "latest", "" },
	{ "[::1]:5000/x", REF_NAME, NULL, "[::1]:5000/x:latest", "latest", "" },
	{ "[2001:db8::1]/x", REF_NAME, NULL, "[2001:db8::1]/x:latest", "latest", "" },
	{ "EXAMPLE.com/x", REF_NAME, NULL, "EXAMPLE.com/x:latest", "latest", "" },
	/* Upper case cannot be a repository, so it is a registry. */
	{ "Registry/x", REF_NAME, NULL, "Registry/x:latest", "latest", "" },
	{ "a.b/c", REF_NAME, NULL, "a.b/c:latest", "latest", "" },
	{ "x/a__b-c---d.e_f/g:Tag_1.x-y", REF_NAME, NULL, "docker.io/x/a__b-c---d.e_f/g:Tag_1.x-y",
			"Tag_1.x-y", "" },
	{ "x:" X128, REF_NAME, NULL, "docker.io/library/x:" X128, X128, "" },
	{ "python@" DIGEST, REF_NAME, NULL, "docker.io/library/python@" DIGEST, NULL, DIGEST },
	{ "python:3@" DIGEST, REF_NAME, NULL, "docker.io/library/python:3", "3", DIGEST },
	{ "h:1/x@" DIGEST, REF_NAME, NULL, "h:1/x@" DIGEST, NULL, DIGEST },
	{ DIGEST, REF_NAME, NULL, NULL, NULL, DIGEST },
	{ HEX, REF_NAME, NULL, NULL, NULL, DIGEST },
	{ "dir", REF_NAME, NULL, "docker.io/library/dir:latest", "latest", "" },
	{ "host", REF_NAME, NULL, "docker.io/library/host:latest", "latest", "" },
	{ "oci:/a/b", REF_OCI, "/a/b", NULL, NULL, "" },
	{ "oci:b:1", REF_OCI, "b", NULL, "1", "" },
	{ "oci:b:name:1", REF_OCI, "b", NULL, "name:1", "" },
	{ "oci:./b:docker.io/library/x:1", REF_OCI, "./b", NULL, "docker.io/library/x:1", "" },
	{ "oci-archive:f.tar", REF_OCI_ARCHIVE, "f.tar", NULL, NULL, "" },
	{ "oci-archive:/f.tar:Tag", REF_OCI_ARCHIVE, "/f.tar", NULL, "Tag", "" },
	{ "docker-archive:f", REF_DOCKER_ARCHIVE, "f", NULL, NULL, "" },
	{ "docker-archive:f:name", REF_DOCKER_ARCHIVE, "f", "docker.io/library/name:latest",
			"latest", "" },
	{ "docker-archive:/f:q.io:1/name:1", REF_DOCKER_ARCHIVE, "/f", "q.io:1/name:1", "1", "" },
	{ "dir:/root fs", REF_DIR, "/root fs", NULL, NULL, "" },
	{ "dir:a:b", REF_DIR, "a:b", NULL, NULL, "" },
	{ "@host", REF_HOST, NULL, NULL, NULL, "" },
};

static void same_or_null(const char *got, const char *expected)
{
	if (expected) {
		ck_assert_ptr_nonnull(got);
		ck_assert_str_eq(got, expected);
	} else {
		ck_assert_ptr_null(got);
	}
}

START_TEST(parses)
{
	const struct good *g = &good[_i];
	struct error e = ERROR_INIT;
	AUTO(ref) struct ref r = REF_INIT;
	autofree char *full = NULL;

	ck_assert_msg(ref_parse(g->text, &r, &e) == 0, "%s: %s", g->text, e.text);
	full = ref_full_name(&r);
	ck_assert_int_eq(r.transport, g->transport);
	same_or_null(r.path, g->path);
	same_or_null(full, g->full);
	same_or_null(r.tag, g->tag);
	ck_assert_str_eq(r.digest.text, g->digest);
}
END_TEST

struct bad {
	const char *text;
	const char *reason;
	enum errc code;
};

static const struct bad bad[] = {
	{ "", "empty", ERRC_INVALID },
	{ "Python", "lower case", ERRC_INVALID },
	{ "a/Python", "lower case", ERRC_INVALID },
	{ "python:", "tag", ERRC_INVALID },
	{ "python:-1", "tag", ERRC_INVALID },
	{ "python:.1", "tag", ERRC_INVALID },
	{ "python:a b", "tag", ERRC_INVALID },
	{ "python:1:2", "repository", ERRC_INVALID },
	{ "x:" X128 "y", "tag", ERRC_INVALID },
	{ ":1", "repository", ERRC_INVALID },
	{ "/x", "repository", ERRC_INVALID },
	{ "x/", "repository", ERRC_INVALID },
	{ "a//b", "repository", ERRC_INVALID },
	{ "-a", "repository", ERRC_INVALID },
	{ "a-", "repository", ERRC_INVALID },
	{ "a..b", "repository", ERRC_INVALID },
	{ "a___b", "repository", ERRC_INVALID },
	{ "a_-b", "repository", ERRC_INVALID },
	{ "../x", "registry", ERRC_INVALID },
	{ "./x", "registry", ERRC_INVALID },
	{ "a.b:/x", "registry", ERRC_INVALID },
	{ "a.b:123456/x", "registry", ERRC_INVALID },
	{ "a.b:1x/x", "registry", ERRC_INVALID },
	{ "-a.b/x", "registry", ERRC_INVALID },
	{ "a.b./x", "registry", ERRC_INVALID },
	{ "a..b/x", "registry", ERRC_INVALID },
	{ "[::1/x", "registry", ERRC_INVALID },
	{ "[]/x.y", "repository", ERRC_INVALID },
	{ "[g::1]:1/x", "registry", ERRC_INVALID },
	{ "[::1]x:1/x", "registry", ERRC_INVALID },
	{ "docker.io/", "repository", ERRC_INVALID },
	{ "x@", "digest", ERRC_INVALID },
	{ "x@" DIGEST "0", "digest", ERRC_INVALID },
	{ "x@sha256:../../etc/passwd", "digest", ERRC_INVALID },
	{ "x@sha256:" X32 X32, "digest", ERRC_INVALID },
	{ "x@SHA256:" HEX, "digest", ERRC_INVALID },
	{ "x@sha512:" HEX HEX, "sha256", ERRC_UNSUPPORTED },
	{ "x@" DIGEST "@" DIGEST, "digest", ERRC_INVALID },
	{ "@" DIGEST, "repository", ERRC_INVALID },
	{ "@hosts", "digest", ERRC_INVALID },
	{ "pyth\303\266n", "repository", ERRC_INVALID },
	{ "x\n", "repository", ERRC_INVALID },
	{ "x y", "repository", ERRC_INVALID },
	{ X128 X128, "longer than 255", ERRC_INVALID },
	{ X128 X128 X128 X128 "x", "longer than 512", ERRC_INVALID },
	{ "oci:", "path is missing", ERRC_INVALID },
	{ "oci::1", "path is missing", ERRC_INVALID },
	{ "oci:d:", "tag is empty", ERRC_INVALID },
	{ "oci:d:a b", "blanks", ERRC_INVALID },
	{ "oci-archive:", "path is missing", ERRC_INVALID },
	{ "docker-archive:f:", "repository", ERRC_INVALID },
	{ "docker-archive:f:Name", "lower case", ERRC_INVALID },
	{ "docker-archive:f:n@" DIGEST, "without a digest", ERRC_INVALID },
	{ "dir:", "path is missing", ERRC_INVALID },
	{ "docker://x", "other tools", ERRC_INVALID },
	{ "docker-daemon:x:1", "other tools", ERRC_INVALID },
	{ "containers-storage:x", "other tools", ERRC_INVALID },
};

START_TEST(refuses)
{
	struct error e = ERROR_INIT;
	AUTO(ref) struct ref r = REF_INIT;

	ck_assert_msg(ref_parse(bad[_i].text, &r, &e) == -1, "%s was taken", bad[_i].text);
	ck_assert_msg(e.code == bad[_i].code, "%s: %s", bad[_i].text, e.text);
	ck_assert_msg(strstr(e.text, bad[_i].reason) != NULL, "%s: %s", bad[_i].text, e.text);
	ck_assert_str_ne(e.hint, "");
	ck_assert_ptr_null(r.path);
	ck_assert_ptr_null(r.repository);
}
END_TEST

START_TEST(refuses_long_path)
{
	char text[5000] = "dir:";
	struct error e = ERROR_INIT;
	AUTO(ref) struct ref r = REF_INIT;

	memset(text + 4, 'x', sizeof(text) - 5);
	ck_assert_int_eq(ref_parse(text, &r, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
}
END_TEST

START_TEST(error_shows_no_control_bytes)
{
	struct error e = ERROR_INIT;
	AUTO(ref) struct ref r = REF_INIT;

	ck_assert_int_eq(ref_parse("\033[31mx", &r, &e), -1);
	ck_assert_ptr_null(strchr(e.text, '\033'));
}
END_TEST

struct familiar {
	const char *full;
	const char *shown;
};

static const struct familiar familiars[] = {
	{ "docker.io/library/python:3.12", "python:3.12" },
	{ "docker.io/bitnami/redis:1", "bitnami/redis:1" },
	{ "docker.io/library/a/b:1", "library/a/b:1" },
	{ "docker.io/a.b/c:1", "docker.io/a.b/c:1" },
	{ "docker.io/localhost/c:1", "docker.io/localhost/c:1" },
	{ "docker.io/library/oci:1", "library/oci:1" },
	{ "docker.io/library/docker-daemon:1", "library/docker-daemon:1" },
	{ "docker.io/library/sha256:" HEX, "library/sha256:" HEX },
	{ "ghcr.io/a/b:1", "ghcr.io/a/b:1" },
	{ "localhost/x:1", "localhost/x:1" },
	{ "docker.io/library/python@" DIGEST, "python@" DIGEST },
	{ DIGEST, DIGEST },
};

START_TEST(shows_short_names)
{
	autofree char *shown = ref_familiar(familiars[_i].full);

	ck_assert_str_eq(shown, familiars[_i].shown);
}
END_TEST

/* What is shown must mean the same when it is typed. */
START_TEST(short_names_read_back)
{
	struct error e = ERROR_INIT;
	AUTO(ref) struct ref r = REF_INIT;
	autofree char *full = NULL;

	ck_assert_int_eq(ref_parse(familiars[_i].shown, &r, &e), 0);
	full = ref_full_name(&r);
	ck_assert_str_eq(full ? full : r.digest.text, familiars[_i].full);
}
END_TEST

struct unwritten {
	const char *text;
	bool no_domain;
	bool no_namespace;
};

static const struct unwritten unwritten[] = {
	{ "python", true, true },
	{ "python:3@" DIGEST, true, true },
	{ "library/python", true, false },
	{ "bitnami/redis:1", true, false },
	{ "docker.io/python", false, false },
	{ "index.docker.io/library/python", false, false },
	{ "ghcr.io/a", false, false },
	{ "localhost:5000/a", false, false },
};

START_TEST(tells_what_was_written)
{
	struct error e = ERROR_INIT;
	AUTO(ref) struct ref r = REF_INIT;

	ck_assert_int_eq(ref_parse(unwritten[_i].text, &r, &e), 0);
	ck_assert_msg(r.no_domain == unwritten[_i].no_domain, "%s", unwritten[_i].text);
	ck_assert_msg(r.no_namespace == unwritten[_i].no_namespace, "%s", unwritten[_i].text);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("ref");
	TCase *tc = tcase_create("all");

	tcase_add_loop_test(tc, parses, 0, ARRAY_SIZE(good));
	tcase_add_loop_test(tc, refuses, 0, ARRAY_SIZE(bad));
	tcase_add_test(tc, refuses_long_path);
	tcase_add_test(tc, error_shows_no_control_bytes);
	tcase_add_loop_test(tc, shows_short_names, 0, ARRAY_SIZE(familiars));
	tcase_add_loop_test(tc, short_names_read_back, 0, ARRAY_SIZE(familiars));
	tcase_add_loop_test(tc, tells_what_was_written, 0, ARRAY_SIZE(unwritten));
	suite_add_tcase(s, tc);
	return unit_run(s);
}
