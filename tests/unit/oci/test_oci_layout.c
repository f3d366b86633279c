/* SPDX-License-Identifier: Apache-2.0 */
#include "../../../oci/layout.h"
#include "fixture.h"

#define ON(arch) ",\"platform\":{\"os\":\"linux\",\"architecture\":\"" arch "\"}"

static int layout_fd = -1;
static const char *layout_name = "My_Images.tar";

static void layout_make(void)
{
	layout_fd = layout_new(layout_name);
}

static void layout_close(void)
{
	(void)close(layout_fd);
}

static void read_all(const char *tag, struct layout *l)
{
	AUTO(ref)
	struct ref ref = ref_of(
			"oci:%s/%s%s%s", unit_path, layout_name, tag ? ":" : "", tag ? tag : "");
	struct error e = ERROR_INIT;

	l->dir_fd = fd_dup(layout_fd, 0);
	l->label = mem_strdup("oci:x");
	ck_assert_msg(oci_layout_read(l, &ref, &e) == 0, "%s", e.text);
}

static void names_are(const struct layout_image *img, const char *name)
{
	ck_assert_uint_eq(img->names.n, name ? 1 : 0);
	if (name) {
		ck_assert_str_eq(img->names.v[0], name);
	}
}

struct naming {
	const char *ref_name;
	const char *containerd;
	const char *stored;
};

static const struct naming namings[] = {
	{ NULL, NULL, NULL },
	{ "1", NULL, "localhost/my-images:1" },
	{ "deb", NULL, "localhost/my-images:deb" },
	{ "name:1", NULL, "docker.io/library/name:1" },
	{ "docker.io/library/name:1", NULL, "docker.io/library/name:1" },
	{ "ghcr.io/a/b", NULL, "ghcr.io/a/b:latest" },
	{ "3", "docker.io/library/alpine:3", "docker.io/library/alpine:3" },
	{ NULL, "docker.io/library/alpine:3", "docker.io/library/alpine:3" },
	{ "3", "Not A Name", "localhost/my-images:3" },
	/* No name of the store, and no tag either. */
	{ "Upper/x:1", NULL, "Upper/x:1" },
	{ "a//b", NULL, NULL },
	{ "-x", NULL, NULL },
	{ "oci:x", NULL, NULL },
	{ "x@" SHA_A, NULL, NULL },
	{ "@host", NULL, NULL },
};

START_TEST(names)
{
	const struct naming *n = &namings[_i];
	AUTO(layout) struct layout l = LAYOUT_INIT;
	struct digest d = digest_text("m");
	autofree char *ref_name =
			n->ref_name ? mem_printf("\"" ANNOTATION_REF_NAME "\":\"%s\"", n->ref_name)
				    : mem_strdup("");
	autofree char *containerd =
			n->containerd ? mem_printf("%s\"" ANNOTATION_CONTAINERD "\":\"%s\"",
							n->ref_name ? "," : "", n->containerd)
				      : mem_strdup("");
	autofree char *more = mem_printf(",\"annotations\":{%s%s}", ref_name, containerd);
	autofree char *a = entry(MEDIA_OCI_MANIFEST, &d, 1, more);

	put_index(layout_fd, a, NULL, NULL);
	read_all(NULL, &l);
	ck_assert_uint_eq(l.images_n, 1);
	names_are(&l.images[0], n->stored);
}
END_TEST

START_TEST(groups_platforms_of_a_name)
{
	AUTO(layout) struct layout l = LAYOUT_INIT;
	struct digest d = digest_text("m");
	struct digest f = digest_text("f");
	autofree char *a = entry(MEDIA_OCI_MANIFEST, &d, 1,
			ON("amd64") ",\"annotations\":{\"" ANNOTATION_REF_NAME "\":\"1\"}");
	autofree char *b = entry(MEDIA_OCI_MANIFEST, &f, 1,
			ON("arm64") ",\"annotations\":{\"" ANNOTATION_REF_NAME "\":\"1\"}");
	autofree char *c = entry(MEDIA_OCI_MANIFEST, &f, 1,
			ON("amd64") ",\"annotations\":{\"" ANNOTATION_REF_NAME "\":\"2\"}");

	put_index(layout_fd, a, b, c);
	read_all(NULL, &l);
	ck_assert_uint_eq(l.images_n, 2);
	ck_assert_uint_eq(l.images[0].candidates.n, 2);
	ck_assert_uint_eq(l.images[1].candidates.n, 1);
}
END_TEST

START_TEST(groups_platforms_without_names)
{
	AUTO(layout) struct layout l = LAYOUT_INIT;
	struct digest d = digest_text("m");
	struct digest f = digest_text("f");
	autofree char *a = entry(MEDIA_OCI_MANIFEST, &d, 1, ON("amd64"));
	autofree char *b = entry(MEDIA_OCI_MANIFEST, &f, 1, ON("arm64"));
	/* Of a platform that is there: another image. */
	autofree char *c = entry(MEDIA_OCI_MANIFEST, &f, 1, ON("amd64"));

	put_index(layout_fd, a, b, c);
	read_all(NULL, &l);
	ck_assert_uint_eq(l.images_n, 2);
	ck_assert_uint_eq(l.images[0].candidates.n, 2);
}
END_TEST

START_TEST(first_of_equal_names_counts)
{
	AUTO(layout) struct layout l = LAYOUT_INIT;
	struct made one = { .manifest = digest_text("1"), .manifest_size = 1 };
	struct made two = { .manifest = digest_text("2"), .manifest_size = 1 };
	autofree char *a = entry_named(&one, "x");
	autofree char *b = entry_named(&two, "x");

	put_index(layout_fd, a, b, NULL);
	read_all(NULL, &l);
	ck_assert_uint_eq(l.images_n, 1);
	ck_assert_str_eq(l.images[0].candidates.v[0].digest.text, one.manifest.text);
}
END_TEST

START_TEST(reads_what_is_wanted)
{
	AUTO(layout) struct layout one = LAYOUT_INIT;
	AUTO(layout) struct layout all = LAYOUT_INIT;
	struct made m = { .manifest = digest_text("m"), .manifest_size = 1 };
	autofree char *a = entry_named(&m, "a");
	autofree char *b = entry_named(&m, "b");

	put_index(layout_fd, a, b, NULL);
	read_all("b", &one);
	ck_assert_uint_eq(one.images_n, 1);
	ck_assert_str_eq(one.images[0].tag, "b");
	read_all("c", &all);
	ck_assert_uint_eq(all.images_n, 2);
}
END_TEST

/* What the layout holds, comma between; what is asked for; the index or the error. */
struct pick {
	const char *tags[2];
	const char *asked;
	enum errc code;
	const char *reason;
};

static const struct pick picks[] = {
	{ { "a", NULL }, NULL, ERRC_OK, "a" },
	{ { "a", "b" }, "b", ERRC_OK, "b" },
	{ { "a", "b" }, NULL, ERRC_INVALID, "several images: a, b" },
	{ { "a", "b" }, "c", ERRC_NOT_FOUND, "no image c, but a, b" },
	{ { "name:1", NULL }, "name:1", ERRC_OK, "name:1" },
	/* A name is one, however long it is written. */
	{ { "docker.io/x/n:1", "docker.io/library/n:1" }, "n:1", ERRC_OK, "docker.io/library/n:1" },
	{ { "docker.io/x/n:1", "n:1" }, "x/n:1", ERRC_OK, "docker.io/x/n:1" },
	{ { "n:1", NULL }, "docker.io/library/n:1", ERRC_OK, "n:1" },
	{ { "docker.io/x/n:1", "x/n:1" }, "x/n:1", ERRC_OK, "x/n:1" },
	{ { "n", "a" }, "n:latest", ERRC_NOT_FOUND, "no image n:latest" },
	{ { NULL, NULL }, NULL, ERRC_NOT_FOUND, "holds no image" },
	{ { NULL, NULL }, "a", ERRC_NOT_FOUND, "none at all" },
};

START_TEST(picks_one)
{
	const struct pick *p = &picks[_i];
	AUTO(layout) struct layout l = LAYOUT_INIT;
	struct made m = { .manifest = digest_text("m"), .manifest_size = 1 };
	AUTO(ref)
	struct ref ref = ref_of("oci:%s/%s%s%s", unit_path, layout_name, p->asked ? ":" : "",
			p->asked ? p->asked : "");
	autofree char *a = p->tags[0] ? entry_named(&m, p->tags[0]) : mem_strdup("");
	autofree char *b = p->tags[1] ? entry_named(&m, p->tags[1]) : NULL;
	struct error e = ERROR_INIT;
	size_t i = 99;

	put_index(layout_fd, a, b, NULL);
	read_all(p->asked, &l);
	ck_assert_int_eq(layout_pick(&l, &ref, &i, &e), p->code == ERRC_OK ? 0 : -1);
	ck_assert_int_eq(e.code, p->code);
	if (p->code == ERRC_OK) {
		ck_assert_str_eq(l.images[i].tag, p->reason);
	} else {
		ck_assert_msg(strstr(e.text, p->reason) != NULL, "%s", e.text);
	}
}
END_TEST

struct broken {
	const char *file;
	const char *text; /* NULL: removed */
	enum errc code;
	const char *reason;
};

static const struct broken broken[] = {
	{ "oci-layout", NULL, ERRC_INVALID, "no OCI layout" },
	{ "oci-layout", "{", ERRC_INVALID, "oci-layout" },
	{ "oci-layout", "{}", ERRC_UNSUPPORTED, "imageLayoutVersion" },
	{ "oci-layout", "{\"imageLayoutVersion\":\"2.0.0\"}", ERRC_UNSUPPORTED,
			"imageLayoutVersion" },
	{ "oci-layout", "{\"imageLayoutVersion\":1}", ERRC_UNSUPPORTED, "imageLayoutVersion" },
	{ "index.json", NULL, ERRC_INVALID, "index.json" },
	{ "index.json", "[]", ERRC_INVALID, "index.json" },
	{ "index.json", DOC_DOCKER, ERRC_INVALID, "index.json" },
};

START_TEST(refuses_broken_layouts)
{
	const struct broken *b = &broken[_i];
	AUTO(layout) struct layout l = LAYOUT_INIT;
	AUTO(ref) struct ref ref = ref_of("oci:%s/%s", unit_path, layout_name);
	struct error e = ERROR_INIT;

	put_index(layout_fd, "", NULL, NULL);
	l.dir_fd = fd_dup(layout_fd, 0);
	if (b->text) {
		put_file(layout_fd, b->file, b->text);
	} else {
		ck_assert_int_eq(unlinkat(layout_fd, b->file, 0), 0);
	}
	ck_assert_int_eq(oci_layout_read(&l, &ref, &e), -1);
	ck_assert_msg(e.code == b->code, "%s", e.text);
	ck_assert_msg(strstr(e.text, b->reason) != NULL, "%s", e.text);
}
END_TEST

START_TEST(index_is_no_link)
{
	AUTO(layout) struct layout l = LAYOUT_INIT;
	AUTO(ref) struct ref ref = ref_of("oci:%s/%s", unit_path, layout_name);
	struct error e = ERROR_INIT;

	ck_assert_int_eq(symlinkat("/etc/passwd", layout_fd, "index.json"), 0);
	l.dir_fd = fd_dup(layout_fd, 0);
	ck_assert_int_eq(oci_layout_read(&l, &ref, &e), -1);
	ck_assert_ptr_null(strstr(e.text, "root"));
}
END_TEST

START_TEST(images_are_bounded)
{
	AUTO(buf) struct buf text = BUF_INIT(4U << 20);
	AUTO(layout) struct layout l = LAYOUT_INIT;
	AUTO(ref) struct ref ref = ref_of("oci:%s/%s", unit_path, layout_name);
	struct error e = ERROR_INIT;

	ck_assert_int_eq(buf_append_str(&text, "{\"schemaVersion\":2,\"manifests\":["), 0);
	for (int i = 0; i < 5000; i++) {
		ck_assert_int_eq(buf_appendf(&text, "%s" D(MEDIA_OCI_MANIFEST, SHA_A, "1"),
						 i ? "," : ""),
				0);
	}
	ck_assert_int_eq(buf_append_str(&text, "]}"), 0);
	put_file(layout_fd, "index.json", text.p);
	l.dir_fd = fd_dup(layout_fd, 0);
	ck_assert_int_eq(oci_layout_read(&l, &ref, &e), -1);
	ck_assert_int_eq(e.code, ERRC_LIMIT);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("oci_layout");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_checked_fixture(tc, layout_make, layout_close);
	tcase_add_loop_test(tc, names, 0, ARRAY_SIZE(namings));
	tcase_add_test(tc, groups_platforms_of_a_name);
	tcase_add_test(tc, groups_platforms_without_names);
	tcase_add_test(tc, first_of_equal_names_counts);
	tcase_add_test(tc, reads_what_is_wanted);
	tcase_add_loop_test(tc, picks_one, 0, ARRAY_SIZE(picks));
	tcase_add_loop_test(tc, refuses_broken_layouts, 0, ARRAY_SIZE(broken));
	tcase_add_test(tc, index_is_no_link);
	tcase_add_test(tc, images_are_bounded);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
