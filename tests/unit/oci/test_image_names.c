/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include <osbx/str.h>

#include "fixture.h"
#include "mock_unpack.h"

static struct store *store;

/* Two images: "x" as n:1 and n:2, "y" without a name. */
static void begin(void)
{
	struct idmap map = map_single();
	struct image_opts opts = { .map = &map, .platform = "linux/amd64" };
	autoclose int layout_fd = layout_new("lay");
	struct made x = put_image(layout_fd, "amd64", "x", 2);
	struct made y = put_image(layout_fd, "amd64", "y", 1);
	autofree char *a = entry_named(&x, "n:1");
	autofree char *b = entry_named(&x, "n:2");
	autofree char *c = entry_named(&y, NULL);
	AUTO(strv) struct strv names = STRV_INIT;
	AUTO(ref) struct ref ref = ref_of("oci:%s/lay", unit_path);
	struct error e = ERROR_INIT;

	store = store_new();
	put_index(layout_fd, a, b, c);
	ck_assert_msg(image_load(store, &ref, &opts, &names, &e) == 0, "%s", e.text);
}

static void end(void)
{
	store_free(store);
}

static struct digest digest_of_entry(size_t i)
{
	AUTO(descriptors) struct descriptors l = DESCRIPTORS_INIT;
	struct error e = ERROR_INIT;

	ck_assert_int_eq(store_index_load(store, &l, &e), 0);
	ck_assert_uint_lt(i, l.n);
	return l.v[i].digest;
}

/* The names that are there: "a b <none>" in the order of the index. */
static void names_are(const char *expected)
{
	AUTO(descriptors) struct descriptors l = DESCRIPTORS_INIT;
	AUTO(buf) struct buf text = BUF_INIT(4096);
	struct error e = ERROR_INIT;

	ck_assert_int_eq(store_index_load(store, &l, &e), 0);
	for (size_t i = 0; i < l.n; i++) {
		const char *name = l.v[i].annotations.ref_name;
		autofree char *shown = name ? ref_familiar(name) : mem_strdup("<none>");

		ck_assert_int_eq(buf_appendf(&text, "%s%s", i ? " " : "", shown), 0);
	}
	ck_assert_str_eq(text.n ? text.p : "", expected);
}

static int tag(const char *from, const char *to, struct error *e)
{
	AUTO(ref) struct ref a = ref_of("%s", from);
	AUTO(ref) struct ref b = ref_of("%s", to);

	return image_tag(store, &a, &b, e);
}

static int rm(const char *what, bool force, struct strv *removed, struct error *e)
{
	AUTO(ref) struct ref ref = ref_of("%s", what);

	return image_remove(store, &ref, force, removed, e);
}

START_TEST(tag_adds_a_name)
{
	struct error e = ERROR_INIT;
	struct digest chains[2];
	struct digest d = digest_of_entry(0);

	ck_assert_int_eq(tag("n:1", "ghcr.io/a/b", &e), 0);
	names_are("n:1 n:2 <none> ghcr.io/a/b:latest");
	/* Again, and over the name of another. */
	ck_assert_int_eq(tag("n:1", "ghcr.io/a/b", &e), 0);
	ck_assert_int_eq(tag("n:1", "n:2", &e), 0);
	names_are("n:1 <none> ghcr.io/a/b:latest n:2");
	ck_assert_int_eq(store_chains_load(store, &d, chains, 2), 0);
}
END_TEST

START_TEST(tag_names_what_had_none)
{
	struct error e = ERROR_INIT;
	struct digest d = digest_of_entry(2);

	ck_assert_int_eq(tag(d.text, "y", &e), 0);
	names_are("n:1 n:2 y:latest");
}
END_TEST

struct bad_tag {
	const char *from;
	const char *to;
	enum errc code;
};

static const struct bad_tag bad_tags[] = {
	{ "none", "x", ERRC_NOT_FOUND },
	{ "n:1", "x@" SHA_A, ERRC_INVALID },
	{ "n:1", "x:1@" SHA_A, ERRC_INVALID },
	{ "n:1", SHA_A, ERRC_INVALID },
	{ "n:1", "@host", ERRC_INVALID },
	{ "n:1", "oci:x:1", ERRC_INVALID },
	{ "oci:x:1", "n:3", ERRC_INVALID },
};

START_TEST(bad_tags_change_nothing)
{
	struct error e = ERROR_INIT;

	ck_assert_int_eq(tag(bad_tags[_i].from, bad_tags[_i].to, &e), -1);
	ck_assert_int_eq(e.code, bad_tags[_i].code);
	names_are("n:1 n:2 <none>");
}
END_TEST

START_TEST(remove_by_name)
{
	AUTO(strv) struct strv removed = STRV_INIT;
	struct error e = ERROR_INIT;
	struct digest d = digest_of_entry(0);
	struct digest chains[2];

	ck_assert_int_eq(rm("n:1", false, &removed, &e), 0);
	names_are("n:2 <none>");
	ck_assert_int_eq(store_chains_load(store, &d, chains, 2), 0);
	ck_assert_int_eq(rm("n:2", false, &removed, &e), 0);
	names_are("<none>");
	ck_assert_int_eq(store_chains_load(store, &d, chains, 2), -ENOENT);
	ck_assert_uint_eq(removed.n, 2);
	ck_assert_str_eq(removed.v[1], "docker.io/library/n:2");
	ck_assert_int_eq(rm("n:2", false, &removed, &e), -1);
	ck_assert_int_eq(e.code, ERRC_NOT_FOUND);
}
END_TEST

START_TEST(remove_by_a_short_name)
{
	AUTO(strv) struct strv removed = STRV_INIT;
	struct error e = ERROR_INIT;

	ck_assert_int_eq(tag("n:1", "localhost/made:1", &e), 0);
	ck_assert_int_eq(rm("made:1", false, &removed, &e), 0);
	ck_assert_uint_eq(removed.n, 1);
	ck_assert_str_eq(removed.v[0], "localhost/made:1");
	names_are("n:1 n:2 <none>");
}
END_TEST

/* By digest, its digits alone, and its beginning. */
START_TEST(remove_by_digest)
{
	AUTO(strv) struct strv removed = STRV_INIT;
	struct error e = ERROR_INIT;
	struct digest d = digest_of_entry(0);
	autofree char *what = _i == 0   ? mem_strdup(d.text)
			      : _i == 1 ? mem_strdup(digest_hex(&d))
			      : _i == 2 ? mem_printf("%.12s", digest_hex(&d))
					: mem_printf("n@%s", d.text);

	ck_assert_int_eq(rm(what, false, &removed, &e), -1);
	ck_assert_int_eq(e.code, ERRC_CONFLICT);
	ck_assert_ptr_nonnull(strstr(e.hint, "--force"));
	names_are("n:1 n:2 <none>");
	error_clear(&e);
	ck_assert_int_eq(rm(what, true, &removed, &e), 0);
	ck_assert_uint_eq(removed.n, 2);
	names_are("<none>");
}
END_TEST

START_TEST(remove_without_a_name)
{
	AUTO(strv) struct strv removed = STRV_INIT;
	struct error e = ERROR_INIT;
	struct digest d = digest_of_entry(2);

	ck_assert_int_eq(rm(d.text, false, &removed, &e), 0);
	ck_assert_uint_eq(removed.n, 1);
	ck_assert_str_eq(removed.v[0], d.text);
	names_are("n:1 n:2");
}
END_TEST

START_TEST(remove_is_of_the_store)
{
	AUTO(strv) struct strv removed = STRV_INIT;
	struct error e = ERROR_INIT;

	ck_assert_int_eq(rm("oci:x:1", true, &removed, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
}
END_TEST

START_TEST(lists_all)
{
	AUTO(image_list) struct image_list l = { .n = 0 };
	const struct idmap map = map_single();
	struct error e = ERROR_INIT;

	ck_assert_int_eq(tag("n:1", "a.io/first:1", &e), 0);
	ck_assert_int_eq(image_list(store, &map, &l, &e), 0);
	ck_assert_uint_eq(l.n, 4);
	ck_assert_str_eq(l.v[0].name, "a.io/first:1");
	ck_assert_str_eq(l.v[1].name, "docker.io/library/n:1");
	ck_assert_ptr_null(l.v[3].name);
	ck_assert_str_eq(l.v[0].platform, "linux/amd64");
	ck_assert_str_eq(l.v[0].created, "x");
	ck_assert_str_eq(l.v[3].created, "y");
	ck_assert_uint_eq(l.v[0].layers_n, 2);
	ck_assert_uint_gt(l.v[0].size, l.v[3].size);
	ck_assert(l.v[0].unpacked);
}
END_TEST

START_TEST(lists_other_modes_and_damage)
{
	AUTO(image_list) struct image_list l = { .n = 0 };
	struct idmap map = map_single();
	struct digest d = digest_of_entry(2);
	autofree char *path = mem_printf("blobs/sha256/%s", digest_hex(&d));
	struct error e = ERROR_INIT;

	map.mode = IDMAP_SUBID;
	ck_assert_int_eq(unlinkat(store_root_fd(store), path, 0), 0);
	ck_assert_int_eq(image_list(store, &map, &l, &e), 0);
	ck_assert_uint_eq(l.n, 3);
	ck_assert(!l.v[0].unpacked);
	ck_assert_ptr_null(l.v[2].created);
	ck_assert_str_eq(l.v[2].platform, "linux/amd64");
	/* Looking makes no directory that would stand for an agreement on the mode. */
	ck_assert_int_lt(faccessat(store_root_fd(store), "layers/subid", F_OK, 0), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("image_names");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_checked_fixture(tc, begin, end);
	tcase_add_test(tc, tag_adds_a_name);
	tcase_add_test(tc, tag_names_what_had_none);
	tcase_add_loop_test(tc, bad_tags_change_nothing, 0, ARRAY_SIZE(bad_tags));
	tcase_add_test(tc, remove_by_name);
	tcase_add_test(tc, remove_by_a_short_name);
	tcase_add_loop_test(tc, remove_by_digest, 0, 4);
	tcase_add_test(tc, remove_without_a_name);
	tcase_add_test(tc, remove_is_of_the_store);
	tcase_add_test(tc, lists_all);
	tcase_add_test(tc, lists_other_modes_and_damage);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
