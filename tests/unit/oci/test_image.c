/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/socket.h>

#include <osbx/str.h>

#include "fixture.h"
#include "mock_unpack.h"

static struct store *store;
static struct idmap map;
static struct image_opts opts;
static int layout_fd = -1;

static void begin(void)
{
	store = store_new();
	map = map_single();
	opts = (struct image_opts){ .map = &map, .platform = "linux/amd64" };
	layout_fd = layout_new("lay");
	mock_unpack = (struct mock_unpack){ .calls = 0 };
}

static void end(void)
{
	store_free(store);
	(void)close(layout_fd);
}

static struct image *open_ok(const char *tag)
{
	AUTO(ref)
	struct ref ref = ref_of("oci:%s/lay%s%s", unit_path, tag ? ":" : "", tag ? tag : "");
	struct error e = ERROR_INIT;
	struct image *img = image_open(store, &ref, &opts, &e);

	ck_assert_msg(img != NULL, "%s", e.text);
	return img;
}

static struct image *open_name(const char *name, struct error *e)
{
	AUTO(ref) struct ref ref = ref_of("%s", name);

	return image_open(store, &ref, &opts, e);
}

static void load_ok(const char *what, struct strv *names)
{
	AUTO(ref) struct ref ref = ref_of("oci:%s/lay%s", unit_path, what);
	struct error e = ERROR_INIT;

	ck_assert_msg(image_load(store, &ref, &opts, names, &e) == 0, "%s", e.text);
}

static size_t entries_of(struct descriptors *l)
{
	struct error e = ERROR_INIT;

	descriptors_done(l);
	ck_assert_int_eq(store_index_load(store, l, &e), 0);
	return l->n;
}

static struct made put_tagged(const char *tag, const char *seed, size_t n)
{
	struct made m = put_image(layout_fd, "amd64", seed, n);
	autofree char *a = entry_named(&m, tag);

	put_index(layout_fd, a, NULL, NULL);
	return m;
}

static void is_stored(const struct made *m)
{
	struct digest layers[FIXTURE_LAYERS];

	ck_assert(store_has_any_blob(store, &m->manifest));
	ck_assert(store_has_any_blob(store, &m->config));
	for (size_t i = 0; i < m->layers_n; i++) {
		ck_assert(store_has_any_blob(store, &m->layers[i]));
	}
	ck_assert_int_eq(store_chains_load(store, &m->manifest, layers, m->layers_n), 0);
}

START_TEST(first_open_brings_everything)
{
	AUTO(descriptors) struct descriptors l = DESCRIPTORS_INIT;
	struct made m = put_tagged("1", "x", 3);
	AUTO(image) struct image *img = open_ok("1");

	is_stored(&m);
	ck_assert_uint_eq(mock_unpack.read, 3);
	ck_assert_uint_eq(mock_unpack.copied, 3);
	ck_assert_uint_eq(img->layers_n, 3);
	ck_assert_str_eq(img->manifest.text, m.manifest.text);
	ck_assert_str_eq(img->config_digest.text, m.config.text);
	ck_assert_str_eq(img->layers[0].chain.text, m.layers[0].text);
	ck_assert_str_eq(img->config.created, "x");
	ck_assert(!img->is_host);
	ck_assert_ptr_null(img->rootfs);
	/* It has an entry, but no name. */
	ck_assert_uint_eq(entries_of(&l), 1);
	ck_assert_ptr_null(l.v[0].annotations.ref_name);
	ck_assert_str_eq(l.v[0].platform.architecture, "amd64");
	ck_assert_int_eq(faccessat(layout_fd, "index.json", F_OK, 0), 0);
}
END_TEST

START_TEST(second_open_reads_nothing)
{
	struct made m = put_tagged("1", "x", 3);
	AUTO(image) struct image *first = open_ok("1");
	AUTO(image) struct image *second = NULL;

	/* Not even the layout's blobs are needed. */
	ck_assert_int_eq(file_remove_tree_at(layout_fd, "blobs"), 0);
	second = open_ok("1");
	ck_assert_uint_eq(mock_unpack.calls, 1);
	ck_assert_str_eq(second->layers[2].chain.text, first->layers[2].chain.text);
	ck_assert_str_eq(second->manifest.text, m.manifest.text);
}
END_TEST

START_TEST(shared_layers_are_read_once)
{
	struct made a = put_tagged("1", "x", 3);
	AUTO(image) struct image *first = open_ok("1");
	struct made b = put_tagged("1", "y", 2);
	AUTO(image) struct image *second = open_ok("1");

	is_stored(&a);
	is_stored(&b);
	ck_assert_uint_eq(mock_unpack.read, 4);
	ck_assert_str_eq(first->layers[0].chain.text, second->layers[0].chain.text);
	ck_assert_str_ne(first->layers[1].chain.text, second->layers[1].chain.text);
}
END_TEST

START_TEST(another_mode_unpacks_anew)
{
	struct made m = put_tagged("1", "x", 2);
	AUTO(image) struct image *first = open_ok("1");
	AUTO(image) struct image *second = NULL;

	map.mode = IDMAP_SHARED;
	ck_assert_int_eq(file_remove_tree_at(layout_fd, "blobs"), 0);
	second = open_ok("1");
	ck_assert_str_eq(first->layers[1].chain.text, second->layers[1].chain.text);
	ck_assert_uint_eq(mock_unpack.made, 4);
	ck_assert_uint_eq(mock_unpack.copied, 2);
	is_stored(&m);
}
END_TEST

START_TEST(lost_directory_is_unpacked_again)
{
	struct made m = put_tagged("1", "x", 2);
	AUTO(image) struct image *first = open_ok("1");
	AUTO(image) struct image *second = NULL;
	autofree char *path = mem_printf("layers/single/%s", digest_hex(&first->layers[1].chain));

	ck_assert_int_eq(unlinkat(store_root_fd(store), path, AT_REMOVEDIR), 0);
	second = open_ok("1");
	ck_assert_uint_eq(mock_unpack.read, 3);
	is_stored(&m);
}
END_TEST

START_TEST(lost_blob_is_brought_by_load)
{
	AUTO(strv) struct strv names = STRV_INIT;
	struct made m = put_tagged("1", "x", 2);
	AUTO(image) struct image *first = open_ok("1");
	autofree char *path = mem_printf("blobs/sha256/%s", digest_hex(&m.layers[1]));

	ck_assert_int_eq(unlinkat(store_root_fd(store), path, 0), 0);
	load_ok(":1", &names);
	is_stored(&m);
	ck_assert_str_eq(names.v[0], "localhost/lay:1");
	ck_assert_str_eq(first->manifest.text, m.manifest.text);
	ck_assert_uint_eq(mock_unpack.read, 3);
	ck_assert_uint_eq(mock_unpack.made, 2);
}
END_TEST

START_TEST(lost_blob_and_directory_are_named)
{
	AUTO(strv) struct strv names = STRV_INIT;
	struct error e = ERROR_INIT;
	struct made m = put_tagged("n:1", "x", 2);
	autofree char *path = mem_printf("blobs/sha256/%s", digest_hex(&m.layers[1]));

	load_ok("", &names);
	ck_assert_int_eq(unlinkat(store_root_fd(store), path, 0), 0);
	map.mode = IDMAP_SHARED;
	ck_assert_ptr_null(open_name("n:1", &e));
	ck_assert_int_eq(e.code, ERRC_NOT_FOUND);
	ck_assert_ptr_nonnull(strstr(e.text, "layer 2"));
	ck_assert_ptr_nonnull(strstr(e.hint, "load"));
}
END_TEST

START_TEST(lost_record_of_chains_is_made_anew)
{
	AUTO(descriptors) struct descriptors l = DESCRIPTORS_INIT;
	struct made m = put_tagged("1", "x", 3);
	AUTO(image) struct image *first = open_ok("1");
	AUTO(image) struct image *second = NULL;

	store_chains_remove(store, &m.manifest);
	second = open_ok("1");
	is_stored(&m);
	ck_assert_uint_eq(mock_unpack.calls, 1);
	ck_assert_uint_eq(entries_of(&l), 1);
	ck_assert_str_eq(first->layers[2].chain.text, second->layers[2].chain.text);
}
END_TEST

START_TEST(same_blob_twice_in_one_image)
{
	struct made m = { .layers_n = 3 };
	size_t sizes[FIXTURE_LAYERS] = { 5, 5, 5 };
	autofree char *config = NULL;
	autofree char *manifest = NULL;
	autofree char *a = NULL;

	for (size_t i = 0; i < m.layers_n; i++) {
		m.layers[i] = put_blob(layout_fd, "empty");
	}
	config = config_text("amd64", "x", &m);
	m.config = put_blob(layout_fd, config);
	manifest = manifest_text(&m, strlen(config), sizes);
	m.manifest = put_blob(layout_fd, manifest);
	m.manifest_size = strlen(manifest);
	a = entry_named(&m, "1");
	put_index(layout_fd, a, NULL, NULL);
	{
		AUTO(image) struct image *img = open_ok("1");

		ck_assert_uint_eq(mock_unpack.made, 3);
		ck_assert_uint_eq(mock_unpack.copied, 1);
		is_stored(&m);
		ck_assert_str_ne(img->layers[0].chain.text, img->layers[1].chain.text);
	}
}
END_TEST

START_TEST(failure_leaves_nothing)
{
	AUTO(descriptors) struct descriptors l = DESCRIPTORS_INIT;
	struct made m = put_tagged("1", "x", 2);
	AUTO(ref) struct ref ref = ref_of("oci:%s/lay:1", unit_path);
	struct error e = ERROR_INIT;

	mock_unpack.fail = true;
	ck_assert_ptr_null(image_open(store, &ref, &opts, &e));
	ck_assert_int_eq(e.code, ERRC_LIMIT);
	ck_assert_ptr_nonnull(strstr(e.text, "lay"));
	ck_assert(!store_has_any_blob(store, &m.manifest));
	ck_assert(!store_has_any_blob(store, &m.layers[0]));
	ck_assert_uint_eq(entries_of(&l), 0);
	/* The staging is gone too. */
	ck_assert_int_eq(unlinkat(store_root_fd(store), "staging", AT_REMOVEDIR), 0);
}
END_TEST

/* Documents that do not fit together. */
START_TEST(layers_and_diff_ids_must_agree)
{
	struct made m = put_image(layout_fd, "amd64", "x", 2);
	struct made fewer = m;
	size_t sizes[FIXTURE_LAYERS] = { strlen("the lowest layer") };
	autofree char *config = config_text("amd64", "x", &m);
	autofree char *manifest = NULL;
	autofree char *a = NULL;
	AUTO(ref) struct ref ref = ref_of("oci:%s/lay", unit_path);
	struct error e = ERROR_INIT;

	fewer.layers_n = 1;
	manifest = manifest_text(&fewer, strlen(config), sizes);
	fewer.manifest = put_blob(layout_fd, manifest);
	fewer.manifest_size = strlen(manifest);
	a = entry_named(&fewer, NULL);
	put_index(layout_fd, a, NULL, NULL);
	ck_assert_ptr_null(image_open(store, &ref, &opts, &e));
	ck_assert_int_eq(e.code, ERRC_INVALID);
	ck_assert_ptr_nonnull(strstr(e.text, "1 layers, its configuration 2 diff_ids"));
}
END_TEST

/* Which blob is replaced, and by what. */
START_TEST(changed_documents_are_refused)
{
	struct made m = put_tagged("1", "x", 1);
	const struct digest *victim = _i < 2 ? &m.manifest : &m.config;
	autofree char *path = mem_printf("blobs/sha256/%s", digest_hex(victim));
	AUTO(buf) struct buf text = BUF_INIT(4096);
	AUTO(ref) struct ref ref = ref_of("oci:%s/lay", unit_path);
	struct error e = ERROR_INIT;

	ck_assert_int_eq(file_read_at(layout_fd, path, &text), 0);
	if (_i % 2) {
		ck_assert_int_eq(buf_append_str(&text, " "), 0);
	} else {
		text.p[text.n - 1] = ' ';
	}
	put_file(layout_fd, path, text.p);
	ck_assert_ptr_null(image_open(store, &ref, &opts, &e));
	ck_assert_int_eq(e.code, ERRC_INVALID);
	ck_assert_ptr_nonnull(strstr(e.text, victim->text));
}
END_TEST

START_TEST(no_layers_is_nothing_to_run)
{
	AUTO(strv) struct strv names = STRV_INIT;
	struct made m = put_tagged("n:1", "x", 0);
	struct error e = ERROR_INIT;

	load_ok("", &names);
	ck_assert(store_has_any_blob(store, &m.manifest));
	ck_assert_ptr_null(open_name("n:1", &e));
	ck_assert_int_eq(e.code, ERRC_INVALID);
	ck_assert_ptr_nonnull(strstr(e.text, "no layers"));
}
END_TEST

START_TEST(another_architecture_needs_platform)
{
	struct made m = put_image(layout_fd, "arm64", "x", 1);
	autofree char *a = entry_named(&m, "1");
	AUTO(ref) struct ref ref = ref_of("oci:%s/lay", unit_path);
	struct error e = ERROR_INIT;

	put_index(layout_fd, a, NULL, NULL);
	ck_assert_ptr_null(image_open(store, &ref, &opts, &e));
	ck_assert_int_eq(e.code, ERRC_UNSUPPORTED);
	ck_assert_ptr_nonnull(strstr(e.text, "for linux/arm64, not for linux/amd64"));
	ck_assert_ptr_nonnull(strstr(e.hint, "--platform linux/arm64"));
	opts.platform = "linux/arm64";
	{
		AUTO(image) struct image *img = open_ok(NULL);

		ck_assert_str_eq(img->config.architecture, "arm64");
	}
}
END_TEST

START_TEST(nested_index_is_kept)
{
	AUTO(descriptors) struct descriptors l = DESCRIPTORS_INIT;
	AUTO(strv) struct strv names = STRV_INIT;
	struct made amd = put_image(layout_fd, "amd64", "x", 1);
	struct made arm = put_image(layout_fd, "arm64", "y", 1);
	autofree char *a = entry(MEDIA_OCI_MANIFEST, &arm.manifest, arm.manifest_size,
			",\"platform\":{\"os\":\"linux\",\"architecture\":\"arm64\"}");
	autofree char *b = entry(MEDIA_OCI_MANIFEST, &amd.manifest, amd.manifest_size,
			",\"platform\":{\"os\":\"linux\",\"architecture\":\"amd64\"}");
	autofree char *nested = index_text(a, b, NULL);
	struct digest d = put_blob(layout_fd, nested);
	autofree char *more = named("n:1");
	autofree char *outer = entry(MEDIA_OCI_INDEX, &d, strlen(nested), more);
	autofree char *pinned = mem_printf("n@%s", d.text);
	struct error e = ERROR_INIT;

	put_index(layout_fd, outer, NULL, NULL);
	load_ok("", &names);
	ck_assert_str_eq(names.v[0], "docker.io/library/n:1");
	ck_assert_uint_eq(entries_of(&l), 1);
	ck_assert_str_eq(l.v[0].digest.text, amd.manifest.text);
	ck_assert_str_eq(l.v[0].annotations.index, d.text);
	ck_assert(store_has_any_blob(store, &d));
	ck_assert(!store_has_any_blob(store, &arm.manifest));
	{
		AUTO(image) struct image *img = open_name(pinned, &e);

		ck_assert_ptr_nonnull(img);
		ck_assert_str_eq(img->manifest.text, amd.manifest.text);
	}
}
END_TEST

START_TEST(load_names)
{
	AUTO(descriptors) struct descriptors l = DESCRIPTORS_INIT;
	AUTO(strv) struct strv names = STRV_INIT;
	struct made m = put_image(layout_fd, "amd64", "x", 1);
	struct made o = put_image(layout_fd, "amd64", "y", 2);
	autofree char *a = entry_named(&m, "deb");
	autofree char *b = entry_named(&o, "ghcr.io/a/b:2");
	autofree char *c = entry_named(&o, NULL);
	struct error e = ERROR_INIT;

	put_index(layout_fd, a, b, c);
	load_ok("", &names);
	ck_assert_uint_eq(names.n, 3);
	ck_assert_str_eq(names.v[0], "localhost/lay:deb");
	ck_assert_str_eq(names.v[1], "ghcr.io/a/b:2");
	ck_assert_str_eq(names.v[2], o.manifest.text);
	/* The same image has a name, so the entry without one is none. */
	ck_assert_uint_eq(entries_of(&l), 2);
	{
		AUTO(image) struct image *img = open_name("localhost/lay:deb", &e);

		ck_assert_ptr_nonnull(img);
	}
	ck_assert_uint_eq(mock_unpack.calls, 2);
}
END_TEST

START_TEST(load_under_another_name)
{
	AUTO(strv) struct strv names = STRV_INIT;
	struct made m = put_tagged("deb", "x", 1);
	struct error e = ERROR_INIT;
	AUTO(image) struct image *img = NULL;

	opts.name = "mine:2";
	load_ok(":deb", &names);
	ck_assert_uint_eq(names.n, 1);
	ck_assert_str_eq(names.v[0], "docker.io/library/mine:2");
	img = open_name("mine:2", &e);
	ck_assert_ptr_nonnull(img);
	ck_assert_str_eq(img->manifest.text, m.manifest.text);
}
END_TEST

static const char *const bad_names[] = { "Bad", "oci:x", "x@" SHA_A, "@host", SHA_A, "" };

START_TEST(bad_names_are_refused)
{
	AUTO(strv) struct strv names = STRV_INIT;
	AUTO(ref) struct ref ref = ref_of("oci:%s/lay", unit_path);
	struct error e = ERROR_INIT;

	(void)put_tagged("deb", "x", 1);
	opts.name = bad_names[_i];
	ck_assert_int_eq(image_load(store, &ref, &opts, &names, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
	ck_assert_uint_eq(mock_unpack.calls, 0);
}
END_TEST

START_TEST(one_name_for_several_is_refused)
{
	AUTO(strv) struct strv names = STRV_INIT;
	AUTO(ref) struct ref ref = ref_of("oci:%s/lay", unit_path);
	struct made m = put_image(layout_fd, "amd64", "x", 1);
	autofree char *a = entry_named(&m, "1");
	autofree char *b = entry_named(&m, "2");
	struct error e = ERROR_INIT;

	put_index(layout_fd, a, b, NULL);
	opts.name = "mine";
	ck_assert_int_eq(image_load(store, &ref, &opts, &names, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
}
END_TEST

/* Signatures and images for other machines beside ours. */
START_TEST(load_passes_over_what_cannot_run)
{
	AUTO(strv) struct strv names = STRV_INIT;
	AUTO(strv) struct strv none = STRV_INIT;
	AUTO(ref) struct ref ref = ref_of("oci:%s/lay", unit_path);
	struct made good = put_image(layout_fd, "amd64", "x", 1);
	struct made other = put_image(layout_fd, "s390x", "y", 1);
	static const char signature[] = "{\"schemaVersion\":2,\"config\":" D(MEDIA_OCI_CONFIG,
			SHA_A,
			"2") ",\"layers\":[" D("application/vnd.dev.cosign.simplesigning.v1+json",
			SHA_B, "2") "]}";
	struct digest d = put_blob(layout_fd, signature);
	autofree char *a = entry(MEDIA_OCI_MANIFEST, &d, strlen(signature), "");
	autofree char *b = entry_named(&other, "other");
	autofree char *c = entry_named(&good, "good");
	struct error e = ERROR_INIT;

	put_index(layout_fd, a, b, c);
	load_ok("", &names);
	ck_assert_uint_eq(names.n, 1);
	ck_assert_str_eq(names.v[0], "localhost/lay:good");
	/* Nothing left: the first reason is said. */
	put_index(layout_fd, a, b, NULL);
	ck_assert_int_eq(image_load(store, &ref, &opts, &none, &e), -1);
	ck_assert_int_eq(e.code, ERRC_UNSUPPORTED);
	ck_assert_ptr_nonnull(strstr(e.text, "cosign"));
	ck_assert_uint_eq(none.n, 0);
}
END_TEST

START_TEST(load_stops_at_damage)
{
	AUTO(strv) struct strv names = STRV_INIT;
	AUTO(ref) struct ref ref = ref_of("oci:%s/lay", unit_path);
	struct made good = put_image(layout_fd, "amd64", "x", 1);
	struct digest missing = digest_text("missing");
	autofree char *a = entry(MEDIA_OCI_MANIFEST, &missing, 7, "");
	autofree char *b = entry_named(&good, "good");
	struct error e = ERROR_INIT;

	put_index(layout_fd, b, a, NULL);
	ck_assert_int_eq(image_load(store, &ref, &opts, &names, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
	ck_assert_uint_eq(names.n, 0);
}
END_TEST

static int archive_fill(int dir_fd)
{
	/* An oci-archive: the layout as it is, by links that the unpacker has made files of. */
	if (linkat(layout_fd, "index.json", dir_fd, "index.json", 0) < 0 ||
			linkat(layout_fd, "oci-layout", dir_fd, "oci-layout", 0) < 0) {
		return -1;
	}
	return renameat(layout_fd, "blobs", dir_fd, "blobs");
}

START_TEST(archive_is_moved_not_copied)
{
	AUTO(strv) struct strv names = STRV_INIT;
	AUTO(ref) struct ref ref = ref_of("oci-archive:%s/a.oci.tar", unit_path);
	struct made m = put_tagged("1", "x", 3);
	struct error e = ERROR_INIT;

	put_file(unit_fd, "a.oci.tar", "");
	mock_unpack.archive = archive_fill;
	ck_assert_msg(image_load(store, &ref, &opts, &names, &e) == 0, "%s", e.text);
	ck_assert_str_eq(names.v[0], "localhost/a:1");
	ck_assert_uint_eq(mock_unpack.read, 3);
	ck_assert_uint_eq(mock_unpack.copied, 0);
	is_stored(&m);
	ck_assert_int_eq(unlinkat(store_root_fd(store), "staging", AT_REMOVEDIR), 0);
}
END_TEST

START_TEST(archive_must_be_one)
{
	AUTO(strv) struct strv names = STRV_INIT;
	AUTO(ref) struct ref ref = ref_of("oci-archive:%s/a", unit_path);
	struct error e = ERROR_INIT;

	put_file(unit_fd, "a", "");
	ck_assert_int_eq(image_load(store, &ref, &opts, &names, &e), -1);
	ck_assert_ptr_nonnull(strstr(e.text, "not an archive"));
	ck_assert_int_eq(unlinkat(store_root_fd(store), "staging", AT_REMOVEDIR), 0);
}
END_TEST

struct missing {
	const char *format;
	enum errc code;
};

static const struct missing missings[] = {
	{ "oci:%s/none", ERRC_NOT_FOUND },
	{ "oci:%s/file", ERRC_NOT_FOUND },
	{ "oci:%s/lay:none", ERRC_NOT_FOUND },
	{ "oci-archive:%s/none", ERRC_NOT_FOUND },
	{ "oci-archive:%s/lay", ERRC_INVALID },
	{ "docker-archive:%s/none", ERRC_NOT_FOUND },
	{ "dir:%s/none", ERRC_NOT_FOUND },
	{ "dir:%s/file/x", ERRC_NOT_FOUND },
	{ "dir:%s/file", ERRC_INVALID },
	{ "none%.0s", ERRC_NOT_FOUND },
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
START_TEST(missing_things_are_named)
{
	autofree char *text = mem_printf(missings[_i].format, unit_path);
	AUTO(ref) struct ref ref = ref_of("%s", text);
	struct error e = ERROR_INIT;

	(void)put_tagged("1", "x", 1);
	put_file(unit_fd, "file", "");
	ck_assert_ptr_null(image_open(store, &ref, &opts, &e));
	ck_assert_msg(e.code == missings[_i].code, "%s: %s", text, e.text);
}
END_TEST
#pragma GCC diagnostic pop

START_TEST(name_without_image_has_a_hint)
{
	struct error e = ERROR_INIT;

	ck_assert_ptr_null(open_name("none", &e));
	ck_assert_str_eq(e.text, "image none:latest is not in the store");
	ck_assert_ptr_nonnull(strstr(e.hint, "osbx load"));
}
END_TEST

START_TEST(dir_is_absolute)
{
	AUTO(ref) struct ref ref = ref_of("dir:%s/lay/../lay", unit_path);
	autofree char *expected = mem_printf("%s/lay", unit_path);
	struct error e = ERROR_INIT;
	AUTO(image) struct image *img = image_open(store, &ref, &opts, &e);

	ck_assert_ptr_nonnull(img);
	ck_assert_str_eq(img->rootfs, expected);
	ck_assert_str_eq(img->manifest.text, "");
	ck_assert_uint_eq(img->layers_n, 0);
}
END_TEST

START_TEST(host_is_host)
{
	AUTO(ref) struct ref ref = ref_of("@host");
	struct error e = ERROR_INIT;
	AUTO(image) struct image *img = image_open(store, &ref, &opts, &e);

	ck_assert_ptr_nonnull(img);
	ck_assert(img->is_host);
	ck_assert_int_eq(image_load(store, &ref, &opts, &(struct strv)STRV_INIT, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
}
END_TEST

struct told {
	size_t present;
};

static void on_layer(void *ctx, size_t index, const struct image_layer *layer,
		enum image_phase phase, uint64_t done, uint64_t total)
{
	struct told *t = ctx;

	ck_assert_uint_eq(done, layer->size);
	ck_assert_uint_eq(total, layer->size);
	ck_assert_uint_eq(index, t->present);
	t->present += phase == IMAGE_PHASE_PRESENT ? 1 : 0;
}

START_TEST(present_layers_are_told)
{
	AUTO(strv) struct strv names = STRV_INIT;
	struct told told = { .present = 0 };
	const struct image_progress progress = { .on_layer = on_layer, .ctx = &told };

	(void)put_tagged("1", "x", 3);
	load_ok("", &names);
	opts.progress = &progress;
	load_ok("", &names);
	ck_assert_uint_eq(told.present, 3);
	ck_assert_uint_eq(mock_unpack.calls, 1);
}
END_TEST

static void add_failures(TCase *tc)
{
	tcase_add_test(tc, failure_leaves_nothing);
	tcase_add_test(tc, layers_and_diff_ids_must_agree);
	tcase_add_loop_test(tc, changed_documents_are_refused, 0, 4);
	tcase_add_test(tc, no_layers_is_nothing_to_run);
	tcase_add_test(tc, another_architecture_needs_platform);
	tcase_add_loop_test(tc, bad_names_are_refused, 0, ARRAY_SIZE(bad_names));
	tcase_add_test(tc, one_name_for_several_is_refused);
	tcase_add_test(tc, load_stops_at_damage);
	tcase_add_test(tc, archive_must_be_one);
	tcase_add_loop_test(tc, missing_things_are_named, 0, ARRAY_SIZE(missings));
	tcase_add_test(tc, name_without_image_has_a_hint);
}

int main(void)
{
	Suite *s = suite_create("image");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_checked_fixture(tc, begin, end);
	tcase_add_test(tc, first_open_brings_everything);
	tcase_add_test(tc, second_open_reads_nothing);
	tcase_add_test(tc, shared_layers_are_read_once);
	tcase_add_test(tc, another_mode_unpacks_anew);
	tcase_add_test(tc, lost_directory_is_unpacked_again);
	tcase_add_test(tc, lost_blob_is_brought_by_load);
	tcase_add_test(tc, lost_blob_and_directory_are_named);
	tcase_add_test(tc, lost_record_of_chains_is_made_anew);
	tcase_add_test(tc, same_blob_twice_in_one_image);
	tcase_add_test(tc, nested_index_is_kept);
	tcase_add_test(tc, load_names);
	tcase_add_test(tc, load_under_another_name);
	tcase_add_test(tc, load_passes_over_what_cannot_run);
	tcase_add_test(tc, archive_is_moved_not_copied);
	tcase_add_test(tc, dir_is_absolute);
	tcase_add_test(tc, host_is_host);
	tcase_add_test(tc, present_layers_are_told);
	add_failures(tc);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
