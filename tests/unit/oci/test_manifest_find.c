/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/limits.h>

#include "../../../oci/layout.h"
#include "fixture.h"

#define ON(os, arch) ",\"platform\":{\"os\":\"" os "\",\"architecture\":\"" arch "\"}"
#define SCHEMA1      "application/vnd.docker.distribution.manifest.v1+prettyjws"

static struct store *store;
static int layout_fd = -1;
static struct blob_source source;

static void sources_open(void)
{
	store = store_new();
	layout_fd = layout_new("layout");
	source = (struct blob_source){ .dir_fd = layout_fd };
}

static void sources_close(void)
{
	store_free(store);
	(void)close(layout_fd);
}

/* Write an index of these entries; its own entry. Caller frees. */
static char *put_nested(const char *a, const char *b, const char *c, const char *more)
{
	autofree char *text = index_text(a, b, c);
	struct digest d = put_blob(layout_fd, text);

	return entry(MEDIA_OCI_INDEX, &d, strlen(text), more);
}

static int find(const char *index, const char *platform, struct found *f, struct error *e)
{
	AUTO(descriptors) struct descriptors l = DESCRIPTORS_INIT;
	struct platform_wish wish = { .variant = "" };

	ck_assert_int_eq(platform_parse(platform, &wish, e), 0);
	ck_assert_msg(index_parse(span_of(index), NULL, &l, e) == 0, "%s", e->text);
	return manifest_find(store, &source, &l, &wish, f, e);
}

static void finds(const char *index, const char *platform, const struct digest *expected)
{
	AUTO(found) struct found f = FOUND_INIT;
	struct error e = ERROR_INIT;

	ck_assert_msg(find(index, platform, &f, &e) == 0, "%s", e.text);
	ck_assert_str_eq(f.manifest.digest.text, expected->text);
}

static void fails(const char *index, const char *platform, enum errc code, const char *reason)
{
	AUTO(found) struct found f = FOUND_INIT;
	struct error e = ERROR_INIT;

	ck_assert_int_eq(find(index, platform, &f, &e), -1);
	ck_assert_msg(e.code == code, "%s", e.text);
	ck_assert_msg(strstr(e.text, reason) != NULL, "%s", e.text);
}

START_TEST(chooses_the_platform)
{
	struct digest amd = digest_text("amd");
	struct digest arm = digest_text("arm");
	struct digest windows = digest_text("windows");
	autofree char *a = entry(MEDIA_OCI_MANIFEST, &windows, 1, ON("windows", "amd64"));
	autofree char *b = entry(MEDIA_OCI_MANIFEST, &arm, 1, ON("linux", "arm64"));
	autofree char *c = entry(MEDIA_OCI_MANIFEST, &amd, 1, ON("linux", "amd64"));
	autofree char *index = index_text(a, b, c);

	finds(index, "linux/amd64", &amd);
	finds(index, "linux/arm64", &arm);
	fails(index, "linux/riscv64", ERRC_UNSUPPORTED, "windows/amd64, linux/arm64, linux/amd64");
}
END_TEST

START_TEST(passes_over_what_is_no_image)
{
	struct digest d = digest_text("image");
	struct digest other = digest_text("other");
	autofree char *attestation = entry(MEDIA_OCI_MANIFEST, &other, 1,
			",\"annotations\":{\"vnd.docker.reference.type\":\"attestation-manifest\"}");
	autofree char *artifact =
			entry(MEDIA_OCI_MANIFEST, &other, 1, ",\"artifactType\":\"text/x\"");
	autofree char *image = entry(DOCKER_MANIFEST, &d, 1, "");
	autofree char *index = index_text(attestation, artifact, image);
	autofree char *unknown = entry("text/plain", &other, 1, "");
	autofree char *mixed = index_text(unknown, image, NULL);
	autofree char *none = index_text(unknown, attestation, NULL);

	finds(index, "linux/amd64", &d);
	finds(mixed, "linux/amd64", &d);
	fails(none, "linux/amd64", ERRC_UNSUPPORTED, "no image for linux/amd64");
}
END_TEST

START_TEST(platform_beats_its_absence)
{
	struct digest bare = digest_text("bare");
	struct digest exact = digest_text("exact");
	autofree char *a = entry(MEDIA_OCI_MANIFEST, &bare, 1, "");
	autofree char *b = entry(MEDIA_OCI_MANIFEST, &exact, 1, ON("linux", "amd64"));
	autofree char *index = index_text(a, b, NULL);

	finds(index, "linux/amd64", &exact);
	finds(index, "linux/arm64", &bare);
}
END_TEST

START_TEST(searches_nested_indexes)
{
	struct digest arm = digest_text("arm");
	struct digest amd = digest_text("amd");
	autofree char *a = entry(MEDIA_OCI_MANIFEST, &arm, 1, ON("linux", "arm64"));
	autofree char *b = entry(MEDIA_OCI_MANIFEST, &amd, 1, ON("linux", "amd64"));
	autofree char *first = put_nested(a, NULL, NULL, "");
	autofree char *second = put_nested(b, NULL, NULL, "");
	autofree char *outer = put_nested(first, second, NULL, "");
	autofree char *index = index_text(outer, NULL, NULL);

	finds(index, "linux/amd64", &amd);
	finds(index, "linux/arm64", &arm);
	fails(index, "linux/s390x", ERRC_UNSUPPORTED, "linux/arm64, linux/amd64");
}
END_TEST

START_TEST(says_which_index)
{
	AUTO(found) struct found f = FOUND_INIT;
	struct error e = ERROR_INIT;
	struct digest d = digest_text("image");
	autofree char *image = entry(MEDIA_OCI_MANIFEST, &d, 1, ON("linux", "amd64"));
	autofree char *nested = put_nested(image, NULL, NULL, "");
	autofree char *index = index_text(nested, NULL, NULL);
	autofree char *inner = index_text(image, NULL, NULL);

	ck_assert_int_eq(find(index, "linux/amd64", &f, &e), 0);
	ck_assert_str_eq(f.index.media_type, MEDIA_OCI_INDEX);
	ck_assert(!f.index_stored);
	ck_assert_str_eq(f.index_text.p, inner);
}
END_TEST

START_TEST(depth_is_bounded)
{
	struct digest d = digest_text("image");
	autofree char *e0 = entry(MEDIA_OCI_MANIFEST, &d, 1, ON("linux", "amd64"));
	autofree char *e1 = put_nested(e0, NULL, NULL, "");
	autofree char *e2 = put_nested(e1, NULL, NULL, "");
	autofree char *e3 = put_nested(e2, NULL, NULL, "");
	autofree char *e4 = put_nested(e3, NULL, NULL, "");
	autofree char *e5 = put_nested(e4, NULL, NULL, "");
	autofree char *four = index_text(e4, NULL, NULL);
	autofree char *five = index_text(e5, NULL, NULL);

	finds(four, "linux/amd64", &d);
	fails(five, "linux/amd64", ERRC_LIMIT, "nested deeper");
}
END_TEST

START_TEST(number_is_bounded)
{
	AUTO(buf) struct buf text = BUF_INIT(1U << 20);

	ck_assert_int_eq(buf_append_str(&text, "{\"schemaVersion\":2,\"manifests\":["), 0);
	for (int i = 0; i < 100; i++) {
		ck_assert_int_eq(buf_appendf(&text, "%s" D(MEDIA_OCI_INDEX, SHA_A, "7"),
						 i ? "," : ""),
				0);
	}
	ck_assert_int_eq(buf_append_str(&text, "]}"), 0);
	fails(text.p, "linux/amd64", ERRC_LIMIT, "indexes");
}
END_TEST

START_TEST(index_of_another_platform_is_not_read)
{
	struct digest missing = digest_text("missing");
	struct digest d = digest_text("image");
	autofree char *other = entry(MEDIA_OCI_INDEX, &missing, 5, ON("linux", "arm64"));
	autofree char *image = entry(MEDIA_OCI_MANIFEST, &d, 1, ON("linux", "amd64"));
	autofree char *index = index_text(other, image, NULL);

	finds(index, "linux/amd64", &d);
}
END_TEST

START_TEST(schema1_is_named)
{
	struct digest d = digest_text("old");
	autofree char *old = entry(SCHEMA1, &d, 1, "");
	autofree char *index = index_text(old, NULL, NULL);

	fails(index, "linux/amd64", ERRC_UNSUPPORTED, "schema 1");
}
END_TEST

START_TEST(nested_index_is_verified)
{
	struct digest d = digest_text("image");
	autofree char *image = entry(MEDIA_OCI_MANIFEST, &d, 1, ON("linux", "amd64"));
	autofree char *text = index_text(image, NULL, NULL);
	struct digest right = put_blob(layout_fd, text);
	autofree char *path = mem_printf("blobs/sha256/%s", digest_hex(&right));
	autofree char *nested = entry(MEDIA_OCI_INDEX, &right, strlen(text), "");
	autofree char *index = index_text(nested, NULL, NULL);

	text[strlen(text) - 1] = ' ';
	put_file(layout_fd, path, text);
	fails(index, "linux/amd64", ERRC_INVALID, "digest");
	put_file(layout_fd, path, "short");
	fails(index, "linux/amd64", ERRC_INVALID, "5 bytes instead of");
	ck_assert_int_eq(unlinkat(layout_fd, path, 0), 0);
	fails(index, "linux/amd64", ERRC_INVALID, "missing");
}
END_TEST

START_TEST(unusual_files_are_refused)
{
	struct digest d = digest_text("fifo");
	autofree char *path = mem_printf("blobs/sha256/%s", digest_hex(&d));
	autofree char *nested = entry(MEDIA_OCI_INDEX, &d, 4, "");
	autofree char *index = index_text(nested, NULL, NULL);

	ck_assert_int_eq(mkfifoat(layout_fd, path, 0600), 0);
	fails(index, "linux/amd64", ERRC_INVALID, "not a regular file");
	ck_assert_int_eq(unlinkat(layout_fd, path, 0), 0);
	ck_assert_int_eq(mkdirat(layout_fd, path, 0700), 0);
	fails(index, "linux/amd64", ERRC_INVALID, "not a regular file");
}
END_TEST

/* Links lead only to files of the layout. */
START_TEST(links_stay_inside)
{
	struct digest d = digest_text("image");
	autofree char *image = entry(MEDIA_OCI_MANIFEST, &d, 1, ON("linux", "amd64"));
	autofree char *text = index_text(image, NULL, NULL);
	struct digest inner = digest_text(text);
	autofree char *path = mem_printf("blobs/sha256/%s", digest_hex(&inner));
	autofree char *nested = entry(MEDIA_OCI_INDEX, &inner, strlen(text), "");
	autofree char *index = index_text(nested, NULL, NULL);

	put_file(unit_fd, "outside", text);
	put_file(layout_fd, "inside", text);
	ck_assert_int_eq(symlinkat("../../../outside", layout_fd, path), 0);
	fails(index, "linux/amd64", ERRC_INVALID, "missing");
	ck_assert_int_eq(unlinkat(layout_fd, path, 0), 0);
	ck_assert_int_eq(symlinkat("../../inside", layout_fd, path), 0);
	finds(index, "linux/amd64", &d);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("manifest_find");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_checked_fixture(tc, sources_open, sources_close);
	tcase_add_test(tc, chooses_the_platform);
	tcase_add_test(tc, passes_over_what_is_no_image);
	tcase_add_test(tc, platform_beats_its_absence);
	tcase_add_test(tc, searches_nested_indexes);
	tcase_add_test(tc, says_which_index);
	tcase_add_test(tc, depth_is_bounded);
	tcase_add_test(tc, number_is_bounded);
	tcase_add_test(tc, index_of_another_platform_is_not_read);
	tcase_add_test(tc, schema1_is_named);
	tcase_add_test(tc, nested_index_is_verified);
	tcase_add_test(tc, unusual_files_are_refused);
	tcase_add_test(tc, links_stay_inside);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
