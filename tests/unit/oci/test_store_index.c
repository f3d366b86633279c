/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "../../../oci/store_internal.h"
#include "fixture.h"

/* What an edit of a test does. */
struct change {
	const char *content; /* the image: a digest of this text */
	const char *name;
	const char *index; /* text of the index it came from, or NULL */
	bool fail;
};

static struct descriptor described(const char *content, const char *index)
{
	struct descriptor d = { .digest = digest_text(content), .size = 7 };

	d.media_type = mem_strdup(MEDIA_OCI_MANIFEST);
	d.platform.os = mem_strdup("linux");
	d.platform.architecture = mem_strdup("arm");
	d.platform.variant = mem_strdup("v7");
	if (index) {
		struct digest i = digest_text(index);

		d.annotations.index = mem_strdup(i.text);
	}
	return d;
}

static int change_apply(struct descriptors *entries, void *ctx, struct error *e)
{
	const struct change *c = ctx;
	AUTO(descriptor) struct descriptor d = described(c->content, c->index);

	entries_add(entries, &d, c->name);
	return c->fail ? error_set(e, ERRC_CONFLICT, "as asked") : 0;
}

static void add(struct store *st, const char *content, const char *name)
{
	struct change c = { .content = content, .name = name };
	struct error e = ERROR_INIT;

	ck_assert_msg(store_index_edit(st, change_apply, &c, &e) == 0, "%s", e.text);
}

static size_t load(const struct store *st, struct descriptors *out)
{
	struct error e = ERROR_INIT;

	ck_assert_msg(store_index_load(st, out, &e) == 0, "%s", e.text);
	return out->n;
}

START_TEST(keeps_what_was_added)
{
	AUTO(store) struct store *st = store_new();
	AUTO(descriptors) struct descriptors l = DESCRIPTORS_INIT;
	struct change c = { .content = "a", .name = "docker.io/library/a:1", .index = "i" };
	struct error e = ERROR_INIT;
	struct digest index = digest_text("i");

	ck_assert_int_eq(store_index_edit(st, change_apply, &c, &e), 0);
	ck_assert_uint_eq(load(st, &l), 1);
	ck_assert_str_eq(l.v[0].annotations.ref_name, "docker.io/library/a:1");
	ck_assert_str_eq(l.v[0].annotations.index, index.text);
	ck_assert_str_eq(l.v[0].platform.variant, "v7");
	ck_assert_uint_eq(l.v[0].size, 7);
}
END_TEST

START_TEST(name_moves_to_the_new_image)
{
	AUTO(store) struct store *st = store_new();
	AUTO(descriptors) struct descriptors l = DESCRIPTORS_INIT;
	struct digest b = digest_text("b");

	add(st, "a", "x/n:1");
	add(st, "b", "x/n:1");
	ck_assert_uint_eq(load(st, &l), 1);
	ck_assert_str_eq(l.v[0].digest.text, b.text);
}
END_TEST

START_TEST(image_has_many_names)
{
	AUTO(store) struct store *st = store_new();
	AUTO(descriptors) struct descriptors l = DESCRIPTORS_INIT;
	struct digest a = digest_text("a");

	add(st, "a", "x/n:1");
	add(st, "a", "x/n:2");
	add(st, "a", "x/n:2");
	ck_assert_uint_eq(load(st, &l), 2);
	ck_assert_uint_eq(entries_count(&l, &a), 2);
}
END_TEST

START_TEST(entry_without_a_name)
{
	AUTO(store) struct store *st = store_new();
	AUTO(descriptors) struct descriptors first = DESCRIPTORS_INIT;
	AUTO(descriptors) struct descriptors second = DESCRIPTORS_INIT;

	add(st, "a", NULL);
	add(st, "a", NULL);
	add(st, "b", NULL);
	ck_assert_uint_eq(load(st, &first), 2);
	ck_assert_ptr_null(first.v[0].annotations.ref_name);
	/* A name takes its place. */
	add(st, "a", "x/n:1");
	add(st, "a", NULL);
	ck_assert_uint_eq(load(st, &second), 2);
	ck_assert_str_eq(second.v[1].annotations.ref_name, "x/n:1");
}
END_TEST

START_TEST(failed_edit_changes_nothing)
{
	AUTO(store) struct store *st = store_new();
	AUTO(descriptors) struct descriptors l = DESCRIPTORS_INIT;
	struct change c = { .content = "a", .name = "x/n:1", .fail = true };
	struct error e = ERROR_INIT;

	ck_assert_int_eq(store_index_edit(st, change_apply, &c, &e), -1);
	ck_assert_int_eq(e.code, ERRC_CONFLICT);
	ck_assert_uint_eq(load(st, &l), 0);
}
END_TEST

/* The record of chain ids stands for an entry. */
START_TEST(dropped_image_loses_its_chains)
{
	AUTO(store) struct store *st = store_new();
	struct digest a = digest_text("a");
	struct digest b = digest_text("b");
	struct digest got[1];

	add(st, "a", "x/n:1");
	add(st, "b", "x/n:2");
	ck_assert_int_eq(store_chains_save(st, &a, &a, 1), 0);
	ck_assert_int_eq(store_chains_save(st, &b, &b, 1), 0);
	add(st, "b", "x/n:1");
	ck_assert_int_eq(store_chains_load(st, &a, got, 1), -ENOENT);
	ck_assert_int_eq(store_chains_load(st, &b, got, 1), 0);
}
END_TEST

START_TEST(damaged_index_is_named)
{
	AUTO(store) struct store *st = store_new();
	AUTO(descriptors) struct descriptors l = DESCRIPTORS_INIT;
	struct error e = ERROR_INIT;

	put_file(store_root_fd(st), "index.json", "{");
	ck_assert_int_eq(store_index_load(st, &l, &e), -1);
	ck_assert_ptr_nonnull(strstr(e.text, "index.json"));
}
END_TEST

START_TEST(foreign_digests_are_dropped)
{
	AUTO(store) struct store *st = store_new();
	AUTO(descriptors) struct descriptors l = DESCRIPTORS_INIT;

	put_file(store_root_fd(st), "index.json",
			"{\"schemaVersion\":2,\"manifests\":[" D(MEDIA_OCI_MANIFEST, SHA512,
					"7") "," D(MEDIA_OCI_MANIFEST, SHA_A, "7") "]}");
	ck_assert_uint_eq(load(st, &l), 1);
	ck_assert_str_eq(l.v[0].digest.text, SHA_A);
}
END_TEST

/* SHA-256 of "a" and "b" begin so. */
#define A_PREFIX "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
#define B_PREFIX "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d"

struct lookup {
	const char *text;
	const char *name; /* of the entry that is found; "" without one; NULL: none */
	enum errc code;
};

static const struct lookup lookups[] = {
	{ "n:1", "docker.io/library/n:1", ERRC_OK },
	{ "docker.io/library/n:1", "docker.io/library/n:1", ERRC_OK },
	{ "n", NULL, ERRC_NOT_FOUND },
	{ "n:2", NULL, ERRC_NOT_FOUND },
	{ "x/n:1", NULL, ERRC_NOT_FOUND },
	{ "sha256:" A_PREFIX, "docker.io/library/n:1", ERRC_OK },
	{ A_PREFIX, "docker.io/library/n:1", ERRC_OK },
	{ "sha256:" B_PREFIX, "", ERRC_OK },
	{ "ca978112ca1b", "docker.io/library/n:1", ERRC_OK },
	{ "3e23e8160039594a", "", ERRC_OK },
	{ "3e23e8160030", NULL, ERRC_NOT_FOUND },
	{ "3e23e816003", NULL, ERRC_NOT_FOUND },
	{ "3e23e8160039:latest", "", ERRC_OK },
	{ "3e23e8160039:1", NULL, ERRC_NOT_FOUND },
	{ "x/3e23e8160039", NULL, ERRC_NOT_FOUND },
	/* A name comes before the digits that it looks like. */
	{ "aaaaaaaaaaaa", "docker.io/library/aaaaaaaaaaaa:latest", ERRC_OK },
	{ "anything:9@sha256:" A_PREFIX, "docker.io/library/n:1", ERRC_OK },
	{ SHA_C, NULL, ERRC_NOT_FOUND },
	/* A short name stands for an image made here, too, behind the Hub's. */
	{ "made:1", "localhost/made:1", ERRC_OK },
	{ "deep/made:1", "localhost/deep/made:1", ERRC_OK },
	{ "both:1", "docker.io/library/both:1", ERRC_OK },
	{ "docker.io/library/made:1", NULL, ERRC_NOT_FOUND },
	{ "library/made:1", NULL, ERRC_NOT_FOUND },
	{ "made:2", NULL, ERRC_NOT_FOUND },
};

START_TEST(finds)
{
	const struct lookup *want = &lookups[_i];
	AUTO(store) struct store *st = store_new();
	AUTO(descriptors) struct descriptors l = DESCRIPTORS_INIT;
	AUTO(ref) struct ref ref = ref_of("%s", want->text);
	struct error e = ERROR_INIT;
	size_t i = 99;

	add(st, "a", "docker.io/library/n:1");
	add(st, "b", NULL);
	add(st, "c", "docker.io/library/aaaaaaaaaaaa:latest");
	add(st, "d", "localhost/made:1");
	add(st, "d", "localhost/deep/made:1");
	add(st, "d", "localhost/both:1");
	add(st, "e", "docker.io/library/both:1");
	(void)load(st, &l);
	ck_assert_int_eq(entries_find(&l, &ref, &i, &e), want->name ? 0 : -1);
	ck_assert_int_eq(e.code, want->code);
	if (want->name) {
		const char *name = l.v[i].annotations.ref_name;

		ck_assert_str_eq(name ? name : "", want->name);
	} else {
		ck_assert_str_ne(e.hint, "");
		ck_assert_uint_eq(i, 99);
	}
}
END_TEST

START_TEST(finds_by_the_index_it_came_from)
{
	AUTO(store) struct store *st = store_new();
	AUTO(descriptors) struct descriptors l = DESCRIPTORS_INIT;
	struct change c = { .content = "a", .name = "x/n:1", .index = "i" };
	struct digest index = digest_text("i");
	AUTO(ref) struct ref ref = ref_of("x/n@%s", index.text);
	struct error e = ERROR_INIT;
	size_t i = 99;

	ck_assert_int_eq(store_index_edit(st, change_apply, &c, &e), 0);
	(void)load(st, &l);
	ck_assert_int_eq(entries_find(&l, &ref, &i, &e), 0);
	ck_assert_uint_eq(i, 0);
}
END_TEST

START_TEST(digits_of_several_are_refused)
{
	struct descriptors l = { .n = 2 };
	AUTO(ref) struct ref ref = ref_of("aaaaaaaaaaaa");
	struct descriptor v[2] = { { .size = 1 }, { .size = 2 } };
	struct error e = ERROR_INIT;
	size_t i = 0;

	ck_assert_int_eq(digest_parse(SHA_A, &v[0].digest), 0);
	v[1].digest = v[0].digest;
	v[1].digest.text[DIGEST_TEXT_LEN - 1] = 'b';
	l.v = v;
	ck_assert_int_eq(entries_find(&l, &ref, &i, &e), -1);
	ck_assert_int_eq(e.code, ERRC_CONFLICT);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("store_index");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_test(tc, keeps_what_was_added);
	tcase_add_test(tc, name_moves_to_the_new_image);
	tcase_add_test(tc, image_has_many_names);
	tcase_add_test(tc, entry_without_a_name);
	tcase_add_test(tc, failed_edit_changes_nothing);
	tcase_add_test(tc, dropped_image_loses_its_chains);
	tcase_add_test(tc, damaged_index_is_named);
	tcase_add_test(tc, foreign_digests_are_dropped);
	tcase_add_loop_test(tc, finds, 0, ARRAY_SIZE(lookups));
	tcase_add_test(tc, finds_by_the_index_it_came_from);
	tcase_add_test(tc, digits_of_several_are_refused);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
