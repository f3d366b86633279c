/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/limits.h>
#include <osbx/str.h>

#include "../../../oci/layout.h"
#include "fixture.h"

#define PLAIN_A "the bytes of a plain layer"
#define PLAIN_B "the bytes of another"
#define GZIP    "\x1f\x8b\x08 looks like gzip"
#define ZSTD    "\x28\xb5\x2f\xfd looks like zstd"

static struct store *store;
static struct layout layout;

static void layout_begin(void)
{
	struct error e = ERROR_INIT;

	store = store_new();
	layout = (struct layout)LAYOUT_INIT;
	ck_assert_int_eq(store_staging(store, &layout.staging, &e), 0);
	ck_assert_int_eq(mkdirat(layout.staging.dir_fd, "archive", 0700), 0);
	layout.dir_fd = openat(layout.staging.dir_fd, "archive", O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(layout.dir_fd, 0);
	layout.is_ours = true;
}

static void layout_end(void)
{
	layout_done(&layout);
	store_free(store);
}

static char *config_of(const char *diff_a, const char *diff_b)
{
	return mem_printf("{\"os\":\"linux\",\"architecture\":\"arm\",\"variant\":\"v6\","
			  "\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"%s\"%s%s%s]}}",
			diff_a, diff_b ? ",\"" : "", diff_b ? diff_b : "", diff_b ? "\"" : "");
}

static int read_archive(const char *manifest, struct error *e)
{
	put_file(layout.dir_fd, "manifest.json", manifest);
	return docker_archive_read(&layout, e);
}

static void reads(const char *manifest)
{
	struct error e = ERROR_INIT;

	ck_assert_msg(read_archive(manifest, &e) == 0, "%s", e.text);
}

static void fails(const char *manifest, enum errc code, const char *reason)
{
	struct error e = ERROR_INIT;

	ck_assert_int_eq(read_archive(manifest, &e), -1);
	ck_assert_msg(e.code == code, "%s", e.text);
	ck_assert_msg(strstr(e.text, reason) != NULL, "%s", e.text);
}

/* The manifest that was made of the i-th image. */
static struct manifest made(size_t i)
{
	struct blob_source src = { .dir_fd = layout.dir_fd };
	const struct descriptor *d = &layout.images[i].candidates.v[0];
	AUTO(buf) struct buf text = BUF_INIT(LIMIT_MANIFEST_BYTES);
	struct manifest m = MANIFEST_INIT;
	struct error e = ERROR_INIT;
	bool stored = false;

	ck_assert_msg(blob_read(store, &src, d, &text, &stored, &e) == 0, "%s", e.text);
	ck_assert_msg(manifest_parse(buf_span(&text), d->media_type, &m, &e) == 0, "%s", e.text);
	return m;
}

static void blob_is(const struct digest *d, const char *text)
{
	autofree char *path = mem_printf("blobs/sha256/%s", digest_hex(d));
	AUTO(buf) struct buf bytes = BUF_INIT(4096);

	ck_assert_int_eq(file_read_at(layout.dir_fd, path, &bytes), 0);
	ck_assert_str_eq(bytes.p, text);
}

START_TEST(converts_plain_layers)
{
	struct digest a = digest_text(PLAIN_A);
	struct digest b = digest_text(PLAIN_B);
	autofree char *config = config_of(a.text, b.text);
	struct digest config_digest = digest_text(config);

	put_file(layout.dir_fd, "config.json", config);
	put_file(layout.dir_fd, "a.tar", PLAIN_A);
	put_file(layout.dir_fd, "b.tar", PLAIN_B);
	reads("[{\"Config\":\"config.json\",\"RepoTags\":[\"name:1\",\"ghcr.io/x/y:2\"],"
	      "\"Layers\":[\"a.tar\",\"b.tar\"]}]");
	ck_assert_uint_eq(layout.images_n, 1);
	ck_assert_uint_eq(layout.images[0].names.n, 2);
	ck_assert_str_eq(layout.images[0].names.v[0], "docker.io/library/name:1");
	ck_assert_str_eq(layout.images[0].names.v[1], "ghcr.io/x/y:2");
	ck_assert_str_eq(layout.images[0].candidates.v[0].platform.variant, "v6");
	{
		AUTO(manifest) struct manifest m = made(0);

		ck_assert_str_eq(m.config.digest.text, config_digest.text);
		ck_assert_str_eq(m.config.media_type, MEDIA_OCI_CONFIG);
		ck_assert_uint_eq(m.layers.n, 2);
		ck_assert_str_eq(m.layers.v[0].digest.text, a.text);
		ck_assert_str_eq(m.layers.v[0].media_type, MEDIA_OCI_LAYER);
		ck_assert_uint_eq(m.layers.v[1].size, strlen(PLAIN_B));
		blob_is(&m.layers.v[0].digest, PLAIN_A);
		blob_is(&m.layers.v[1].digest, PLAIN_B);
		blob_is(&m.config.digest, config);
	}
}
END_TEST

struct compressed {
	const char *bytes;
	const char *type;
};

static const struct compressed compressions[] = {
	{ GZIP, MEDIA_OCI_LAYER "+gzip" },
	{ ZSTD, MEDIA_OCI_LAYER "+zstd" },
	{ "\x1f", MEDIA_OCI_LAYER },
	{ "", MEDIA_OCI_LAYER },
};

START_TEST(looks_at_compression)
{
	const struct compressed *c = &compressions[_i];
	struct digest bytes = digest_text(c->bytes);
	bool is_plain = str_eq(c->type, MEDIA_OCI_LAYER);
	autofree char *config = config_of(is_plain ? bytes.text : SHA_A, NULL);

	put_file(layout.dir_fd, "config.json", config);
	put_file(layout.dir_fd, "a", c->bytes);
	reads("[{\"Config\":\"config.json\",\"RepoTags\":null,\"Layers\":[\"a\"]}]");
	{
		AUTO(manifest) struct manifest m = made(0);

		ck_assert_str_eq(m.layers.v[0].media_type, c->type);
		ck_assert_str_eq(m.layers.v[0].digest.text, bytes.text);
		blob_is(&m.layers.v[0].digest, c->bytes);
	}
	ck_assert_uint_eq(layout.images[0].names.n, 0);
}
END_TEST

/* Several images, a shared layer as a link, members of the archive's own blobs directory. */
START_TEST(converts_several_images)
{
	struct digest a = digest_text(PLAIN_A);
	struct digest b = digest_text(PLAIN_B);
	autofree char *one = config_of(a.text, NULL);
	autofree char *two = config_of(a.text, b.text);

	ck_assert_int_eq(mkdirat(layout.dir_fd, "blobs", 0700), 0);
	ck_assert_int_eq(mkdirat(layout.dir_fd, "blobs/sha256", 0700), 0);
	ck_assert_int_eq(mkdirat(layout.dir_fd, "id", 0700), 0);
	put_file(layout.dir_fd, "one", one);
	put_file(layout.dir_fd, "two", two);
	put_file(layout.dir_fd, "blobs/sha256/a", PLAIN_A);
	put_file(layout.dir_fd, "id/layer.tar", PLAIN_B);
	ck_assert_int_eq(symlinkat("../blobs/sha256/a", layout.dir_fd, "id/link.tar"), 0);
	reads("[{\"Config\":\"one\",\"RepoTags\":[\"one:1\"],\"Layers\":[\"blobs/sha256/a\"]},"
	      "{\"Config\":\"two\",\"RepoTags\":[\"<none>:<none>\",\"x@" SHA_A "\",\"x:1@" SHA_A
	      "\",\"two:1\"],"
	      "\"Layers\":[\"id/link.tar\",\"id/layer.tar\"],\"Parent\":\"x\"}]");
	ck_assert_uint_eq(layout.images_n, 2);
	ck_assert_uint_eq(layout.images[1].names.n, 1);
	{
		AUTO(manifest) struct manifest m = made(1);

		blob_is(&m.layers.v[0].digest, PLAIN_A);
		blob_is(&m.layers.v[1].digest, PLAIN_B);
	}
}
END_TEST

START_TEST(one_blob_for_equal_layers)
{
	struct digest a = digest_text(PLAIN_A);
	autofree char *config = config_of(a.text, a.text);

	put_file(layout.dir_fd, "c", config);
	put_file(layout.dir_fd, "a1", PLAIN_A);
	put_file(layout.dir_fd, "a2", PLAIN_A);
	reads("[{\"Config\":\"c\",\"Layers\":[\"a1\",\"a2\"]}]");
	{
		AUTO(manifest) struct manifest m = made(0);

		ck_assert_uint_eq(m.layers.n, 2);
		blob_is(&m.layers.v[1].digest, PLAIN_A);
	}
}
END_TEST

START_TEST(picks_by_name)
{
	struct digest a = digest_text(PLAIN_A);
	autofree char *config = config_of(a.text, NULL);
	AUTO(ref) struct ref ref = ref_of("docker-archive:f:two:1");
	AUTO(ref) struct ref other = ref_of("docker-archive:f:three");
	struct error e = ERROR_INIT;
	size_t i = 0;

	put_file(layout.dir_fd, "c", config);
	put_file(layout.dir_fd, "a", PLAIN_A);
	reads("[{\"Config\":\"c\",\"RepoTags\":[\"one:1\"],\"Layers\":[\"a\"]},"
	      "{\"Config\":\"c\",\"RepoTags\":[\"two:1\"],\"Layers\":[\"a\"]}]");
	layout.label = mem_strdup("docker-archive:f");
	ck_assert_int_eq(layout_pick(&layout, &ref, &i, &e), 0);
	ck_assert_uint_eq(i, 1);
	ck_assert_int_eq(layout_pick(&layout, &other, &i, &e), -1);
	ck_assert_int_eq(e.code, ERRC_NOT_FOUND);
}
END_TEST

struct bad {
	const char *manifest;
	enum errc code;
	const char *reason;
};

static const struct bad bad[] = {
	{ "", ERRC_INVALID, "json" },
	{ "{}", ERRC_INVALID, "expected an array" },
	{ "[{}]", ERRC_INVALID, "Config: missing" },
	{ "[1]", ERRC_INVALID, "manifest.json[0]" },
	{ "[{\"Config\":\"none\",\"Layers\":[]}]", ERRC_INVALID, "none is missing" },
	{ "[{\"Config\":\"\",\"Layers\":[]}]", ERRC_INVALID, "missing" },
	{ "[{\"Config\":\"c\",\"Layers\":[]}]", ERRC_INVALID, "0 layers" },
	{ "[{\"Config\":\"c\",\"Layers\":null}]", ERRC_INVALID, "0 layers" },
	{ "[{\"Config\":\"c\",\"Layers\":\"a\"}]", ERRC_INVALID, "Layers" },
	{ "[{\"Config\":\"c\",\"Layers\":[\"a\",\"a\"]}]", ERRC_INVALID, "2 layers" },
	{ "[{\"Config\":\"c\",\"Layers\":[\"none\"]}]", ERRC_INVALID, "none is missing" },
	{ "[{\"Config\":\"c\",\"Layers\":[\"dir\"]}]", ERRC_INVALID, "not a regular file" },
	{ "[{\"Config\":\"c\",\"Layers\":[\"fifo\"]}]", ERRC_INVALID, "not a regular file" },
	{ "[{\"Config\":\"c\",\"Layers\":[\"out\"]}]", ERRC_INVALID, "out is missing" },
	{ "[{\"Config\":\"c\",\"Layers\":[\"../../../outside\"]}]", ERRC_INVALID, "missing" },
	{ "[{\"Config\":\"c\",\"Layers\":[\"loop\"]}]", ERRC_INVALID, "missing" },
	{ "[{\"Config\":\"a\",\"Layers\":[\"a\"]}]", ERRC_INVALID, "json" },
	{ "[{\"Config\":\"out\",\"Layers\":[\"a\"]}]", ERRC_INVALID, "missing" },
};

START_TEST(refuses)
{
	struct digest a = digest_text(PLAIN_A);
	autofree char *config = config_of(a.text, NULL);

	put_file(unit_fd, "outside", "canary");
	put_file(layout.dir_fd, "c", config);
	put_file(layout.dir_fd, "a", PLAIN_A);
	ck_assert_int_eq(mkdirat(layout.dir_fd, "dir", 0700), 0);
	ck_assert_int_eq(mkfifoat(layout.dir_fd, "fifo", 0600), 0);
	ck_assert_int_eq(symlinkat("../../../../outside", layout.dir_fd, "out"), 0);
	ck_assert_int_eq(symlinkat("loop", layout.dir_fd, "loop"), 0);
	fails(bad[_i].manifest, bad[_i].code, bad[_i].reason);
}
END_TEST

START_TEST(legacy_has_a_hint)
{
	struct error e = ERROR_INIT;

	put_file(layout.dir_fd, "repositories", "{}");
	ck_assert_int_eq(docker_archive_read(&layout, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
	ck_assert_ptr_nonnull(strstr(e.text, "1.10"));
	ck_assert_ptr_nonnull(strstr(e.hint, "oci-archive"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("docker_archive");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_checked_fixture(tc, layout_begin, layout_end);
	tcase_add_test(tc, converts_plain_layers);
	tcase_add_loop_test(tc, looks_at_compression, 0, ARRAY_SIZE(compressions));
	tcase_add_test(tc, converts_several_images);
	tcase_add_test(tc, one_blob_for_equal_layers);
	tcase_add_test(tc, picks_by_name);
	tcase_add_loop_test(tc, refuses, 0, ARRAY_SIZE(bad));
	tcase_add_test(tc, legacy_has_a_hint);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
