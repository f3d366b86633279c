/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <time.h>

#include <osbx/str.h>

#include "fixture.h"
#include "mock_unpack.h"

static struct store *store;
static struct idmap map;
static struct made x;
static struct made y;
static struct digest x_top; /* chain ids */
static struct digest y_top;

static struct digest load(const char *dir, const struct made *m, const char *tag)
{
	struct image_opts opts = { .map = &map, .platform = "linux/amd64" };
	AUTO(ref) struct ref ref = ref_of("oci:%s/%s", unit_path, dir);
	struct error e = ERROR_INIT;
	autofree char *a = entry_named(m, tag);
	autofree char *path = mem_printf("%s/%s", unit_path, dir);
	autoclose int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO(strv) struct strv names = STRV_INIT;
	AUTO(image) struct image *img = NULL;

	put_index(fd, a, NULL, NULL);
	ck_assert_msg(image_load(store, &ref, &opts, &names, &e) == 0, "%s", e.text);
	img = image_open(store, &ref, &opts, &e);
	ck_assert_msg(img != NULL, "%s", e.text);
	return img->layers[img->layers_n - 1].chain;
}

/* Images x (3 layers) and y (2 layers), the lowest layer shared. */
static void begin(void)
{
	autoclose int layout_fd = layout_new("lay");

	store = store_new();
	map = map_single();
	x = put_image(layout_fd, "amd64", "x", 3);
	y = put_image(layout_fd, "amd64", "y", 2);
	x_top = load("lay", &x, "x:1");
	y_top = load("lay", &y, "y:1");
}

static void end(void)
{
	store_free(store);
}

static void rmi(const char *name)
{
	AUTO(ref) struct ref ref = ref_of("%s", name);
	AUTO(strv) struct strv removed = STRV_INIT;
	struct error e = ERROR_INIT;

	ck_assert_msg(image_remove(store, &ref, true, &removed, &e) == 0, "%s", e.text);
}

static struct store_gc_result gc(const char *keep, bool dry_run)
{
	struct store_gc_result result = { .blobs = 0 };
	AUTO(strv) struct strv kept = STRV_INIT;
	struct error e = ERROR_INIT;
	autoclose int hold = store_hold(store, LOCK_MODE_EXCLUSIVE, &e);

	ck_assert_int_ge(hold, 0);
	if (keep) {
		ck_assert_int_eq(strv_add(&kept, keep), 0);
	}
	ck_assert_msg(store_gc(store, &map, &kept, dry_run, &result, &e) == 0, "%s", e.text);
	return result;
}

static bool has_layer(const struct digest *chain)
{
	return store_has_layer(store_layers_find(store, map.mode), chain);
}

static void whole(const struct made *m, const struct digest *top)
{
	ck_assert(store_has_any_blob(store, &m->manifest));
	ck_assert(store_has_any_blob(store, &m->config));
	for (size_t i = 0; i < m->layers_n; i++) {
		ck_assert(store_has_any_blob(store, &m->layers[i]));
	}
	ck_assert(has_layer(top));
}

START_TEST(named_images_stay)
{
	struct store_gc_result r = gc(NULL, false);

	ck_assert_uint_eq(r.blobs + r.layers + r.staging + r.unknown + r.bytes, 0);
	whole(&x, &x_top);
	whole(&y, &y_top);
}
END_TEST

START_TEST(unnamed_image_goes)
{
	struct store_gc_result r;

	rmi("x:1");
	r = gc(NULL, false);
	ck_assert_uint_eq(r.blobs, 4); /* manifest, configuration, two layers of its own */
	ck_assert_uint_eq(r.layers, 2);
	ck_assert_uint_gt(r.bytes, 0);
	whole(&y, &y_top);
	ck_assert(!has_layer(&x_top));
	ck_assert(!store_has_any_blob(store, &x.manifest));
}
END_TEST

/* An image that only a run brought. */
static struct digest open_passing(const struct made *m)
{
	struct image_opts opts = { .map = &map, .platform = "linux/amd64" };
	AUTO(ref) struct ref ref = ref_of("oci:%s/lay", unit_path);
	struct error e = ERROR_INIT;
	autofree char *a = entry_named(m, NULL);
	autofree char *path = mem_printf("%s/lay", unit_path);
	autoclose int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO(image) struct image *img = NULL;

	put_index(fd, a, NULL, NULL);
	img = image_open(store, &ref, &opts, &e);
	ck_assert_msg(img != NULL, "%s", e.text);
	return img->manifest;
}

static size_t entries_of(const struct digest *manifest)
{
	AUTO(descriptors) struct descriptors l = DESCRIPTORS_INIT;
	struct error e = ERROR_INIT;

	ck_assert_int_eq(store_index_load(store, &l, &e), 0);
	return entries_count(&l, manifest);
}

START_TEST(what_a_run_brought_stays_while_it_is_used)
{
	AUTO(strv) struct strv keep = STRV_INIT;
	struct store_gc_result result;
	struct error e = ERROR_INIT;

	rmi("x:1");
	struct digest d = open_passing(&x);

	ck_assert_int_eq(strv_add(&keep, d.text), 0);
	ck_assert_int_eq(store_gc(store, &map, &keep, false, &result, &e), 0);
	ck_assert_uint_eq(entries_of(&d), 1);
	strv_done(&keep);
	ck_assert_int_eq(store_gc(store, &map, &keep, true, &result, &e), 0);
	ck_assert_uint_gt(result.blobs, 0);
	ck_assert_uint_eq(entries_of(&d), 1);
	ck_assert_int_eq(store_gc(store, &map, &keep, false, &result, &e), 0);
	ck_assert_uint_eq(entries_of(&d), 0);
	ck_assert(!store_has_any_blob(store, &d));
	/* And comes back. */
	(void)open_passing(&x);
	ck_assert_uint_eq(entries_of(&d), 1);
}
END_TEST

/* Loaded without a name, or named: a user's wish. */
START_TEST(what_a_run_brought_stays_when_it_is_wanted)
{
	struct image_opts opts = { .map = &map, .platform = "linux/amd64" };
	AUTO(ref) struct ref ref = ref_of("oci:%s/lay", unit_path);
	AUTO(strv) struct strv keep = STRV_INIT;
	AUTO(strv) struct strv names = STRV_INIT;
	struct store_gc_result result;
	struct error e = ERROR_INIT;

	rmi("x:1");
	struct digest d = open_passing(&x);
	AUTO(ref) struct ref from = ref_of("%s", d.text);
	AUTO(ref) struct ref to = ref_of("named:1");

	if (_i == 0) {
		ck_assert_int_eq(image_load(store, &ref, &opts, &names, &e), 0);
	} else {
		ck_assert_int_eq(image_tag(store, &from, &to, &e), 0);
	}
	ck_assert_int_eq(store_gc(store, &map, &keep, false, &result, &e), 0);
	ck_assert_uint_eq(entries_of(&d), 1);
	ck_assert(store_has_any_blob(store, &d));
}
END_TEST

START_TEST(everything_goes)
{
	struct store_gc_result r;

	rmi("x:1");
	rmi("y:1");
	r = gc(NULL, false);
	ck_assert_uint_eq(r.blobs, 8);
	ck_assert_uint_eq(r.layers, 4);
	ck_assert_int_eq(unlinkat(store_root_fd(store), "blobs/sha256", AT_REMOVEDIR), 0);
	ck_assert_int_eq(unlinkat(store_root_fd(store), "layers/single", AT_REMOVEDIR), 0);
	ck_assert_int_eq(unlinkat(store_root_fd(store), "chains", AT_REMOVEDIR), 0);
}
END_TEST

START_TEST(dry_run_only_counts)
{
	struct store_gc_result dry;
	struct store_gc_result wet;

	rmi("x:1");
	dry = gc(NULL, true);
	whole(&x, &x_top);
	wet = gc(NULL, false);
	ck_assert_uint_eq(dry.blobs, wet.blobs);
	ck_assert_uint_eq(dry.layers, wet.layers);
	ck_assert_uint_eq(dry.bytes, wet.bytes);
}
END_TEST

/* A sandbox that runs names its manifest. */
START_TEST(kept_manifest_keeps_all)
{
	rmi("x:1");
	ck_assert_uint_eq(gc(x.manifest.text, false).layers, 0);
	whole(&x, &x_top);
	ck_assert_uint_eq(gc(NULL, false).layers, 2);
}
END_TEST

START_TEST(kept_chain_keeps_its_directory)
{
	struct store_gc_result r;

	rmi("x:1");
	r = gc(x_top.text, false);
	ck_assert_uint_eq(r.layers, 1);
	ck_assert(has_layer(&x_top));
	ck_assert(!store_has_any_blob(store, &x.layers[2]));
}
END_TEST

START_TEST(keep_must_be_digests)
{
	struct store_gc_result result = { .blobs = 0 };
	AUTO(strv) struct strv kept = STRV_INIT;
	struct error e = ERROR_INIT;

	ck_assert_int_eq(strv_add(&kept, "sandbox"), 0);
	rmi("x:1");
	ck_assert_int_eq(store_gc(store, &map, &kept, false, &result, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INTERNAL);
	whole(&x, &x_top);
}
END_TEST

/* The lowest layer's chain id is the digest of the plain blob. */
START_TEST(chain_id_keeps_no_blob)
{
	autofree char *blob = mem_printf("blobs/sha256/%s", digest_hex(&y_top));

	put_file(store_root_fd(store), blob, "bytes");
	ck_assert_uint_eq(gc(NULL, false).blobs, 1);
}
END_TEST

START_TEST(all_modes_are_swept)
{
	autofree char *stale = mem_printf("layers/subid/%s", digest_hex(&x.config));
	autofree char *used = mem_printf("layers/subid/%s", digest_hex(&x_top));

	ck_assert_int_eq(mkdirat(store_root_fd(store), "layers/subid", 0700), 0);
	ck_assert_int_eq(mkdirat(store_root_fd(store), stale, 0700), 0);
	ck_assert_int_eq(mkdirat(store_root_fd(store), used, 0700), 0);
	ck_assert_uint_eq(gc(NULL, false).layers, 1);
	ck_assert_int_lt(faccessat(store_root_fd(store), stale, F_OK, 0), 0);
	ck_assert_int_eq(faccessat(store_root_fd(store), used, F_OK, 0), 0);
}
END_TEST

START_TEST(index_blob_stays_with_its_image)
{
	autoclose int fd = layout_new("nested");
	struct made m = put_image(fd, "amd64", "z", 1);
	autofree char *inner = entry_named(&m, NULL);
	autofree char *text = index_text(inner, NULL, NULL);
	struct digest d = put_blob(fd, text);
	autofree char *more = named("z:1");
	autofree char *outer = entry(MEDIA_OCI_INDEX, &d, strlen(text), more);
	struct image_opts opts = { .map = &map, .platform = "linux/amd64" };
	AUTO(ref) struct ref ref = ref_of("oci:%s/nested", unit_path);
	AUTO(strv) struct strv names = STRV_INIT;
	struct error e = ERROR_INIT;

	put_index(fd, outer, NULL, NULL);
	ck_assert_msg(image_load(store, &ref, &opts, &names, &e) == 0, "%s", e.text);
	ck_assert_uint_eq(gc(NULL, false).blobs, 0);
	rmi("z:1");
	ck_assert_uint_eq(gc(NULL, false).blobs, 3);
	ck_assert(!store_has_any_blob(store, &d));
}
END_TEST

START_TEST(lost_chains_are_computed)
{
	store_chains_remove(store, &x.manifest);
	ck_assert_uint_eq(gc(NULL, false).layers, 0);
	whole(&x, &x_top);
}
END_TEST

START_TEST(dead_stagings_go)
{
	int root = store_root_fd(store);
	struct staging live = STAGING_INIT;
	struct staging live_layer = STAGING_INIT;
	struct error e = ERROR_INIT;

	ck_assert_int_eq(mkdirat(root, "staging/dead", 0700), 0);
	put_file(root, "staging/dead/file", "x");
	ck_assert_int_eq(mkdirat(root, "layers/single/.staging-dead", 0700), 0);
	ck_assert_int_eq(mkdirat(root, "layers/single/.gc-dead", 0700), 0);
	put_file(root, "layers/single/.gc-dead/half", "x");
	put_file(root, "index.json.0123456789abcdef.tmp", "{");
	put_file(root, "chains/x.0123456789abcdef.tmp", "");
	ck_assert_int_eq(store_staging(store, &live, &e), 0);
	ck_assert_int_eq(
			staging_open(store_layers_fd(store, map.mode), STAGING_PREFIX, &live_layer),
			0);
	{
		struct store_gc_result r = gc(NULL, false);

		ck_assert_uint_eq(r.staging, 4);
		ck_assert_uint_eq(r.layers, 1);
		ck_assert_uint_eq(r.unknown, 0);
	}
	ck_assert_int_eq(faccessat(live.parent_fd, live.name, F_OK, 0), 0);
	ck_assert_int_eq(faccessat(live_layer.parent_fd, live_layer.name, F_OK, 0), 0);
	staging_done(&live);
	staging_done(&live_layer);
	ck_assert_int_eq(unlinkat(root, "staging", AT_REMOVEDIR), 0);
}
END_TEST

static void part_put(const char *digits, time_t age_s)
{
	const struct timespec then = { .tv_sec = time(NULL) - age_s };
	const struct timespec times[2] = { then, then };
	autofree char *path = mem_printf(STORE_PARTIAL "/%s", digits);

	put_file(store_root_fd(store), path, "some");
	ck_assert_int_eq(utimensat(store_root_fd(store), path, times, 0), 0);
}

/* An interrupted download is kept for a day. */
START_TEST(old_downloads_go)
{
	struct store_gc_result r;
	int root = store_root_fd(store);

	ck_assert_int_eq(mkdirat(root, STORE_PARTIAL, 0700), 0);
	part_put(&SHA_A[7], 23 * 3600);
	part_put(&SHA_B[7], 25 * 3600);
	part_put("odd", 25 * 3600);
	r = gc(NULL, true);
	ck_assert_uint_eq(r.staging, 1);
	r = gc(NULL, false);
	ck_assert_uint_eq(r.staging, 1);
	ck_assert_uint_eq(r.unknown, 1);
	ck_assert_int_eq(faccessat(root, STORE_PARTIAL "/" A15 A15 A15 A15 "aaaa", F_OK, 0), 0);
	ck_assert_int_eq(faccessat(root, STORE_PARTIAL "/odd", F_OK, 0), 0);
	ck_assert_int_ne(faccessat(root, STORE_PARTIAL "/" B15 B15 B15 B15 "bbbb", F_OK, 0), 0);
}
END_TEST

START_TEST(foreign_files_stay)
{
	int root = store_root_fd(store);

	put_file(root, "notes.txt", "");
	put_file(root, "blobs/sha256/README", "");
	put_file(root, "blobs/sha256/" A15 A15 A15 A15 "aaaZ", "");
	put_file(root, "chains/other", "");
	put_file(root, "staging/file", "");
	put_file(root, "layers/single/file", "");
	ck_assert_int_eq(mkdirat(root, "layers/single/host-1", 0700), 0);
	ck_assert_int_eq(mkdirat(root, "layers/other", 0700), 0);
	ck_assert_int_eq(symlinkat("/etc", root, "blobs/sha256/" A15 A15 A15 A15 "aaaa"), 0);
	ck_assert_int_eq(symlinkat("/etc", root, "layers/single/" A15 A15 A15 A15 "aaaa"), 0);
	{
		struct store_gc_result r = gc(NULL, false);

		ck_assert_uint_eq(r.blobs + r.layers + r.staging, 0);
		ck_assert_uint_eq(r.unknown, 5);
	}
	ck_assert_int_eq(faccessat(root, "layers/single/host-1", F_OK, 0), 0);
	ck_assert_int_eq(faccessat(AT_FDCWD, "/etc/passwd", F_OK, 0), 0);
}
END_TEST

START_TEST(damaged_manifest_stops_it)
{
	struct store_gc_result result = { .blobs = 0 };
	const struct strv none = STRV_INIT;
	struct error e = ERROR_INIT;
	autofree char *path = mem_printf("blobs/sha256/%s", digest_hex(&x.manifest));

	put_file(store_root_fd(store), path, "{");
	ck_assert_int_eq(store_gc(store, &map, &none, false, &result, &e), -1);
	ck_assert_ptr_nonnull(strstr(e.text, x.manifest.text));
	ck_assert_ptr_nonnull(strstr(e.hint, "rmi"));
	ck_assert(has_layer(&x_top));
	/* Removed, it stands in the way no more. */
	rmi("x:1");
	ck_assert_uint_eq(gc(NULL, false).layers, 2);
}
END_TEST

START_TEST(missing_manifest_does_not)
{
	autofree char *path = mem_printf("blobs/sha256/%s", digest_hex(&x.manifest));

	ck_assert_int_eq(unlinkat(store_root_fd(store), path, 0), 0);
	(void)gc(NULL, false);
	whole(&y, &y_top);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("gc");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_checked_fixture(tc, begin, end);
	tcase_add_test(tc, named_images_stay);
	tcase_add_test(tc, unnamed_image_goes);
	tcase_add_test(tc, what_a_run_brought_stays_while_it_is_used);
	tcase_add_loop_test(tc, what_a_run_brought_stays_when_it_is_wanted, 0, 2);
	tcase_add_test(tc, everything_goes);
	tcase_add_test(tc, dry_run_only_counts);
	tcase_add_test(tc, kept_manifest_keeps_all);
	tcase_add_test(tc, kept_chain_keeps_its_directory);
	tcase_add_test(tc, keep_must_be_digests);
	tcase_add_test(tc, chain_id_keeps_no_blob);
	tcase_add_test(tc, all_modes_are_swept);
	tcase_add_test(tc, index_blob_stays_with_its_image);
	tcase_add_test(tc, lost_chains_are_computed);
	tcase_add_test(tc, dead_stagings_go);
	tcase_add_test(tc, old_downloads_go);
	tcase_add_test(tc, foreign_files_stay);
	tcase_add_test(tc, damaged_manifest_stops_it);
	tcase_add_test(tc, missing_manifest_does_not);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
