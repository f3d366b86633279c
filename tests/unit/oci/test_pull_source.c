/* SPDX-License-Identifier: Apache-2.0 */
#include "pull_fixture.h"

START_TEST(pulls_a_digest)
{
	struct made m = put_image(mock_fetch.layout_fd, "amd64", "x", 2);
	autofree char *name = mem_printf(REG "/a@%s", m.manifest.text);
	autofree char *tagged = mem_printf(REG "/a:1@%s", m.manifest.text);

	ck_assert(pull(name, name));
	ck_assert(is_named(name, &m.manifest));
	opts.policy = PULL_MISSING;
	ck_assert(!pull(name, name));
	/* Nobody has checked that the tag is its. */
	opts.policy = PULL_ALWAYS;
	ck_assert(!pull(tagged, name));
	is_absent(REG "/a:1");
}
END_TEST

START_TEST(an_index_by_its_digest)
{
	struct made m = put_image(mock_fetch.layout_fd, "amd64", "x", 2);
	autofree char *one = entry(MEDIA_OCI_MANIFEST, &m.manifest, m.manifest_size,
			",\"platform\":{\"os\":\"linux\",\"architecture\":\"amd64\"}");
	autofree char *text = index_text(one, NULL, NULL);
	struct digest index = put_blob(mock_fetch.layout_fd, text);
	autofree char *name = mem_printf(REG "/a@%s", index.text);
	struct mock_tag *t = tag_new(REG, index.text);

	t->text = text;
	t->type = MEDIA_OCI_INDEX;
	ck_assert(pull(name, name));
	ck_assert(store_has_any_blob(store, &index));
	is_complete(&m);
	opts.policy = PULL_NEVER;
	ck_assert(!pull(name, name));
	mock_fetch.tags[0] = (struct mock_tag){ .name = NULL };
}
END_TEST

START_TEST(another_document_than_the_digest)
{
	struct made m = put_image(mock_fetch.layout_fd, "amd64", "x", 2);
	struct made other = put_image(mock_fetch.layout_fd, "amd64", "y", 2);
	autofree char *name = mem_printf(REG "/a@%s", m.manifest.text);

	tag_new(REG, m.manifest.text)->text = blob_text(&other.manifest);
	pull_fails(name, ERRC_INVALID, other.manifest.text);
	ck_assert(!store_has_any_blob(store, &other.manifest));
	mock_fetch.tags[0] = (struct mock_tag){ .name = NULL };
}
END_TEST

START_TEST(another_document_than_is_claimed)
{
	serve("1", "x", 2);
	mock_fetch.tags[0].claims = SHA_A;
	pull_fails(REG "/a:1", ERRC_INVALID, REG " says");
	is_absent(REG "/a:1");
}
END_TEST

struct type_case {
	const char *type;
	const char *says; /* NULL: it is taken */
};

static const struct type_case types[] = {
	{ MEDIA_OCI_MANIFEST, NULL },
	{ "", NULL },
	{ "application/json", NULL },
	{ "text/plain", NULL },
	{ "application/octet-stream", NULL },
	{ "text/html", "of type \"text/html\", which is no image" },
	{ "text/\033[31m", "of type \"text/?[31m\"" },
	/* Something else than it says of itself (CVE-2021-41190). */
	{ MEDIA_OCI_INDEX, "another media type" },
	{ DOCKER_MANIFEST, "another media type" },
	{ "application/vnd.docker.distribution.manifest.v1+prettyjws", "schema 1" },
};

START_TEST(types_of_documents)
{
	struct made m = serve("1", "x", 2);

	mock_fetch.tags[0].type = types[_i].type;
	if (!types[_i].says) {
		ck_assert(pull(REG "/a:1", REG "/a:1"));
		is_complete(&m);
		return;
	}
	pull_fails(REG "/a:1", types[_i].says[0] == 's' ? ERRC_UNSUPPORTED : ERRC_INVALID,
			types[_i].says);
	ck_assert_uint_eq(mock_fetch.blobs, 0);
}
END_TEST

START_TEST(a_page_instead_of_a_document)
{
	struct mock_tag *t = tag_new(REG, "1");

	t->text = "<html>please log in</html>";
	t->type = "";
	pull_fails(REG "/a:1", ERRC_INVALID, "which is no image");
}
END_TEST

/* entries that suit nobody here, and one that does. */
static char *long_index(size_t n, const struct made *m)
{
	struct buf b = BUF_INIT(LIMIT_MANIFEST_BYTES);
	autofree char *mine = entry(MEDIA_OCI_MANIFEST, &m->manifest, m->manifest_size,
			",\"platform\":{\"os\":\"linux\",\"architecture\":\"amd64\"}");

	ck_assert_int_eq(buf_append_str(&b, "{\"schemaVersion\":2,\"manifests\":["), 0);
	for (size_t i = 0; i < n; i++) {
		ck_assert_int_eq(buf_append_str(&b, "{\"mediaType\":\"" MEDIA_OCI_MANIFEST
						    "\",\"digest\":\"" SHA_A
						    "\",\"size\":9,\"platform\":{\"os\":\"linux\","
						    "\"architecture\":\"s390x\"}},"),
				0);
	}
	ck_assert_int_eq(buf_appendf(&b, "%s]}", mine), 0);
	return buf_take(&b);
}

START_TEST(a_list_of_1000_entries)
{
	struct made m = put_image(mock_fetch.layout_fd, "amd64", "x", 2);
	struct mock_tag *t = tag_new(REG, "1");
	autofree char *text = long_index(999, &m);

	t->text = text;
	t->type = MEDIA_OCI_INDEX;
	ck_assert(pull(REG "/a:1", REG "/a:1"));
	is_complete(&m);
	ck_assert_uint_eq(mock_fetch.manifests, 2);
	t->name = NULL;
}
END_TEST

/* OCI documents need not say what they are, and plain file servers do not know. */
START_TEST(documents_without_a_type)
{
	struct made m = put_image(mock_fetch.layout_fd, "amd64", "x", 2);
	struct mock_tag *t = tag_new(REG, "1");
	autofree char *index = long_index(0, &m);

	t->text = index;
	t->type = "application/octet-stream";
	ck_assert(pull(REG "/a:1", REG "/a:1"));
	is_complete(&m);
	t->text = "{\"schemaVersion\":2,\"manifests\":[],\"layers\":[]}";
	pull_fails(REG "/a:1", ERRC_INVALID, "which is no image");
	/* Read as a manifest: a page that says what it is never gets so far. */
	t->text = "{\"schemaVersion\":2,\"layers\":[]}";
	pull_fails(REG "/a:1", ERRC_INVALID, "config");
	t->type = "text/html";
	pull_fails(REG "/a:1", ERRC_INVALID, "which is no image");
	t->name = NULL;
}
END_TEST

START_TEST(an_index_without_this_platform)
{
	struct made m = put_image(mock_fetch.layout_fd, "amd64", "x", 2);
	struct mock_tag *t = tag_new(REG, "1");
	autofree char *text = long_index(2, &m);

	t->text = text;
	t->type = MEDIA_OCI_INDEX;
	opts.image.platform = "linux/riscv64";
	pull_fails(REG "/a:1", ERRC_UNSUPPORTED, "no image for linux/riscv64");
	ck_assert_uint_eq(mock_fetch.blobs, 0);
	t->name = NULL;
}
END_TEST

/* The index says another size of a manifest, which has the right digest. */
START_TEST(a_document_of_another_size)
{
	struct made m = put_image(mock_fetch.layout_fd, "amd64", "x", 2);
	autofree char *one = entry(MEDIA_OCI_MANIFEST, &m.manifest, m.manifest_size + 1, "");
	autofree char *text = index_text(one, NULL, NULL);
	struct mock_tag *t = tag_new(REG, "1");

	t->text = text;
	t->type = MEDIA_OCI_INDEX;
	pull_fails(REG "/a:1", ERRC_INVALID, "its descriptor says");
	t->name = NULL;
}
END_TEST

START_TEST(foreign_layers_are_refused)
{
	struct mock_tag *t = tag_new(REG, "1");

	t->type = DOCKER_MANIFEST;
	t->text = "{\"schemaVersion\":2,\"mediaType\":\"" DOCKER_MANIFEST
		  "\",\"config\":" D(DOCKER_CONFIG, SHA_A, "9") ",\"layers\":[" D(
				  DOCKER_FOREIGN, SHA_B, "9") "]}";
	pull_fails(REG "/a:1", ERRC_UNSUPPORTED, "foreign layers");
	ck_assert_uint_eq(mock_fetch.blobs, 0);
}
END_TEST

START_TEST(a_configuration_of_other_bytes)
{
	struct made m = serve("1", "x", 2);

	mock_fetch.fault_of = m.config;
	mock_fetch.fault = MOCK_FAULT_CORRUPT;
	mock_fetch.fault_at = 3;
	pull_fails(REG "/a:1", ERRC_INVALID, m.config.text);
	mock_fetch.fault = MOCK_FAULT_SHORT;
	pull_fails(REG "/a:1", ERRC_INVALID, "has 3 bytes instead of");
	mock_fetch.fault = MOCK_FAULT_CUT;
	pull_fails(REG "/a:1", ERRC_UNAVAILABLE, "connection lost");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("pull_source");
	TCase *tc = tcase_create("pull_source");

	unit_with_dir(tc);
	tcase_add_checked_fixture(tc, begin, end);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, pulls_a_digest);
	tcase_add_test(tc, an_index_by_its_digest);
	tcase_add_test(tc, another_document_than_the_digest);
	tcase_add_test(tc, another_document_than_is_claimed);
	tcase_add_loop_test(tc, types_of_documents, 0, (int)ARRAY_SIZE(types));
	tcase_add_test(tc, a_page_instead_of_a_document);
	tcase_add_test(tc, a_list_of_1000_entries);
	tcase_add_test(tc, documents_without_a_type);
	tcase_add_test(tc, an_index_without_this_platform);
	tcase_add_test(tc, a_document_of_another_size);
	tcase_add_test(tc, foreign_layers_are_refused);
	tcase_add_test(tc, a_configuration_of_other_bytes);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
