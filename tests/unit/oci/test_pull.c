/* SPDX-License-Identifier: Apache-2.0 */
#include "pull_fixture.h"

START_TEST(pulls_a_tag)
{
	struct made m = serve("1", "x", 3);

	ck_assert(pull(REG "/a:1", REG "/a:1"));
	is_complete(&m);
	ck_assert(is_named(REG "/a:1", &m.manifest));
	ck_assert_uint_eq(mock_unpack.made, 3);
	/* Nothing is copied: the part files become the blobs. */
	ck_assert_uint_eq(mock_unpack.copied, 0);
	ck_assert_uint_eq(mock_fetch.manifests, 1);
	ck_assert_uint_eq(mock_fetch.blobs, 4);
}
END_TEST

START_TEST(pulls_only_what_is_missing)
{
	struct made a = serve("1", "x", 3);
	struct made b = serve("2", "y", 3);

	ck_assert(pull(REG "/a:1", REG "/a:1"));
	ck_assert(!pull(REG "/a:1", REG "/a:1"));
	ck_assert_uint_eq(mock_fetch.blobs, 4);
	ck_assert_uint_eq(mock_unpack.calls, 1);
	ck_assert(pull(REG "/a:2", REG "/a:2"));
	/* The lowest layer is the same. */
	ck_assert_uint_eq(mock_fetch.blobs, 7);
	is_complete(&a);
	is_complete(&b);
}
END_TEST

START_TEST(a_moved_tag_leaves_the_old_image)
{
	struct made a = serve("1", "x", 2);
	struct made b;

	ck_assert(pull(REG "/a:1", REG "/a:1"));
	mock_fetch.tags[0].name = NULL;
	b = serve("1", "y", 2);
	ck_assert(pull(REG "/a:1", REG "/a:1"));
	ck_assert(is_named(REG "/a:1", &b.manifest));
	is_complete(&a);
}
END_TEST

START_TEST(policies)
{
	serve("1", "x", 2);
	opts.policy = PULL_NEVER;
	pull_fails(REG "/a:1", ERRC_NOT_FOUND, "not in the store");
	ck_assert_uint_eq(mock_fetch.started, 0);
	opts.policy = PULL_MISSING;
	ck_assert(pull(REG "/a:1", REG "/a:1"));
	ck_assert_uint_eq(mock_fetch.started, 1);
	ck_assert(!pull(REG "/a:1", REG "/a:1"));
	opts.policy = PULL_NEVER;
	ck_assert(!pull(REG "/a:1", REG "/a:1"));
	ck_assert_uint_eq(mock_fetch.started, 1);
	opts.policy = PULL_ALWAYS;
	ck_assert(!pull(REG "/a:1", REG "/a:1"));
	ck_assert_uint_eq(mock_fetch.started, 2);
}
END_TEST

/* What is there is for another machine. */
START_TEST(missing_means_of_this_platform)
{
	struct made arm = put_image(mock_fetch.layout_fd, "arm64", "arm", 2);

	serve("1", "x", 2);
	ck_assert(pull(REG "/a:1", REG "/a:1"));
	mock_fetch.tags[0].text = blob_text(&arm.manifest);
	opts.policy = PULL_MISSING;
	opts.image.platform = "linux/arm64";
	ck_assert(pull(REG "/a:1", REG "/a:1"));
	ck_assert(is_named(REG "/a:1", &arm.manifest));
}
END_TEST

/* Blobs that someone took out of the store. */
START_TEST(missing_means_whole)
{
	struct made m = serve("1", "x", 2);
	autofree char *path = mem_printf(STORE_BLOBS "/%s", digest_hex(&m.layers[1]));

	ck_assert(pull(REG "/a:1", REG "/a:1"));
	ck_assert_int_eq(unlinkat(store_root_fd(store), path, 0), 0);
	/* The directory is there, that is all a start needs. */
	opts.policy = PULL_MISSING;
	ck_assert(!pull(REG "/a:1", REG "/a:1"));
	opts.policy = PULL_ALWAYS;
	ck_assert(pull(REG "/a:1", REG "/a:1"));
	is_complete(&m);
	ck_assert_uint_eq(mock_unpack.made, 2);
}
END_TEST

static void search(const char *a, const char *b)
{
	strv_done(&config.search);
	ck_assert_int_eq(strv_add(&config.search, a), 0);
	if (b) {
		ck_assert_int_eq(strv_add(&config.search, b), 0);
	}
}

START_TEST(short_names)
{
	struct made a = put_image(mock_fetch.layout_fd, "amd64", "a", 2);
	struct made b = put_image(mock_fetch.layout_fd, "amd64", "b", 2);

	tag_new("docker.io", "1")->text = blob_text(&a.manifest);
	tag_new("quay.example", "2")->text = blob_text(&b.manifest);
	ck_assert(pull("a:1", "docker.io/library/a:1"));
	search("quay.example", "docker.io");
	/* The first that has it. */
	ck_assert(!pull("a:1", "docker.io/library/a:1"));
	ck_assert(pull("a:2", "quay.example/a:2"));
	ck_assert(pull("x/a:2", "quay.example/x/a:2"));
	/* In the store too. */
	opts.policy = PULL_MISSING;
	mock_fetch.started = 0;
	ck_assert(!pull("a:2", "quay.example/a:2"));
	ck_assert_uint_eq(mock_fetch.started, 0);
	/* Docker Hub is not asked when the list does not name it, but loaded images are found. */
	search("quay.example", NULL);
	ck_assert(!pull("a:1", "docker.io/library/a:1"));
	pull_fails("a:3", ERRC_NOT_FOUND, "quay.example");
	ck_assert_str_eq(mock_fetch.domain, "quay.example");
	/* A name with a registry is used as it is. */
	pull_fails("docker.io/a:3", ERRC_NOT_FOUND, "docker.io");
}
END_TEST

START_TEST(a_registry_that_cannot_be_asked)
{
	struct made a = put_image(mock_fetch.layout_fd, "amd64", "a", 2);
	struct mock_tag *t = tag_new("quay.example", "1");

	tag_new("docker.io", "1")->text = blob_text(&a.manifest);
	search("quay.example", "docker.io");
	t->refused = ERRC_UNAVAILABLE;
	pull_fails("a:1", ERRC_UNAVAILABLE, "quay.example");
	/* Registries say so of repositories that are not there. */
	t->refused = ERRC_UNAUTHENTICATED;
	ck_assert(pull("a:1", "docker.io/library/a:1"));
	t->refused = ERRC_DENIED;
	mock_fetch.tags[1].name = NULL;
	pull_fails("a:1", ERRC_DENIED, "quay.example");
}
END_TEST

START_TEST(a_search_list_of_registries_only)
{
	search("library", NULL);
	pull_fails("a:1", ERRC_INVALID, "\"library\" is not a registry");
	search("UPPER/x y", NULL);
	pull_fails("a:1", ERRC_INVALID, "search=");
	ck_assert_uint_eq(mock_fetch.started, 0);
}
END_TEST

START_TEST(credentials_go_along)
{
	const char text[] = "{\"auths\":{\"" REG "\":{\"auth\":\"dTpw\"}}}";
	char user[] = "given";
	char password[] = "p";
	const struct credential given = { .user = user, .password = password };

	serve("1", "x", 2);
	ck_assert_int_eq(mkdirat(unit_fd, ".docker", 0700), 0);
	put_file(unit_fd, ".docker/config.json", text);
	ck_assert(pull(REG "/a:1", REG "/a:1"));
	ck_assert_str_eq(mock_fetch.user, "u");
	pull_fails("other.example/a:1", ERRC_NOT_FOUND, "other.example");
	ck_assert_str_eq(mock_fetch.user, "");
	opts.credential = &given;
	ck_assert(!pull(REG "/a:1", REG "/a:1"));
	ck_assert_str_eq(mock_fetch.user, "given");
	opts.credential = NULL;
	put_file(unit_fd, ".docker/config.json", "{");
	pull_fails(REG "/a:1", ERRC_INVALID, "config.json");
}
END_TEST

START_TEST(only_names_are_pulled)
{
	pull_fails("@host", ERRC_INVALID, "only names");
	pull_fails("oci:/x", ERRC_INVALID, "only names");
	pull_fails(SHA_A, ERRC_NOT_FOUND, "names no registry");
	opts.policy = PULL_MISSING;
	pull_fails(SHA_A, ERRC_NOT_FOUND, "names no registry");
	ck_assert_uint_eq(mock_fetch.started, 0);
}
END_TEST

START_TEST(a_new_name_of_what_is_there)
{
	struct made m = serve("1", "x", 2);

	tag_new(REG, "2")->text = blob_text(&m.manifest);
	ck_assert(pull(REG "/a:1", REG "/a:1"));
	mock_fetch.blobs = 0;
	ck_assert(pull(REG "/a:2", REG "/a:2"));
	ck_assert(!pull(REG "/a:2", REG "/a:2"));
	ck_assert_uint_eq(mock_fetch.blobs, 0);
	ck_assert(is_named(REG "/a:1", &m.manifest));
	ck_assert(is_named(REG "/a:2", &m.manifest));
}
END_TEST

START_TEST(downloads_are_bounded)
{
	serve("1", "x", 3);
	opts.image.unpack_max = 10;
	pull_fails(REG "/a:1", ERRC_LIMIT, "larger than 10 B");
	/* Only the configuration. */
	ck_assert_uint_eq(mock_fetch.blobs, 1);
}
END_TEST

START_TEST(nothing_to_run)
{
	serve("1", "x", 0);
	pull_fails(REG "/a:1", ERRC_INVALID, "no layers");
	pull_fails(REG "/a:1", ERRC_INVALID, "image " REG "/a");
}
END_TEST

START_TEST(logs_in)
{
	struct error e = ERROR_INIT;
	char user[] = "u";
	char password[] = "p";
	const struct credential c = { .user = user, .password = password };

	ck_assert_int_eq(registry_login(REG, &c, &opts, &e), 0);
	ck_assert_uint_eq(mock_fetch.pings, 1);
	ck_assert_str_eq(mock_fetch.user, "u");
	ck_assert_int_eq(registry_login("closed.example", &c, &opts, &e), -1);
	ck_assert_int_eq(e.code, ERRC_UNAUTHENTICATED);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("pull");
	TCase *tc = tcase_create("pull");

	unit_with_dir(tc);
	tcase_add_checked_fixture(tc, begin, end);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, pulls_a_tag);
	tcase_add_test(tc, pulls_only_what_is_missing);
	tcase_add_test(tc, a_moved_tag_leaves_the_old_image);
	tcase_add_test(tc, policies);
	tcase_add_test(tc, missing_means_of_this_platform);
	tcase_add_test(tc, missing_means_whole);
	tcase_add_test(tc, short_names);
	tcase_add_test(tc, a_registry_that_cannot_be_asked);
	tcase_add_test(tc, a_search_list_of_registries_only);
	tcase_add_test(tc, credentials_go_along);
	tcase_add_test(tc, only_names_are_pulled);
	tcase_add_test(tc, a_new_name_of_what_is_there);
	tcase_add_test(tc, downloads_are_bounded);
	tcase_add_test(tc, nothing_to_run);
	tcase_add_test(tc, logs_in);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
