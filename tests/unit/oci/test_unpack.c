/* SPDX-License-Identifier: Apache-2.0 */
/* The parent with real helpers: this program again, under the product's syscall filter. */
#include <dirent.h>

#include <osbx/fd.h>
#include <osbx/secfilter.h>

#include "../../../oci/store_internal.h"
#include "../../../oci/unpack.h"
#include "tarmake.h"

#define MAX    (16U << 20)
#define LAYERS 3

static struct store *store;
static struct idmap map;
static struct error e;
static struct image_layer images[LAYERS];
static struct unpack_layer layers[LAYERS];
static size_t layers_n;
static int layers_fd;
static unsigned int phases[LAYERS];

static void make(void)
{
	char root[128];

	unit_dir_make();
	e = (struct error)ERROR_INIT;
	layers_n = 0;
	snprintf(root, sizeof(root), "%s/store", unit_path);
	store = store_open(root, &e);
	ck_assert_msg(store != NULL, "%s", e.text);
	ck_assert_msg(idmap_choose(&map, &e) == 0, "%s", e.text);
	ck_assert_msg(store_settle_mode(store, &map, &e) == 0, "%s", e.text);
	layers_fd = store_layers_fd(store, map.mode);
	ck_assert_int_ge(layers_fd, 0);
}

static void done(void)
{
	for (size_t i = 0; i < layers_n; i++) {
		fd_close(&layers[i].blob_fd);
		fd_close(&layers[i].copy_fd);
	}
	ck_assert_int_eq(store_remove_tree(&map, unit_fd, "store"), 0);
	store_free(store);
	unit_dir_close();
}

/* One more layer on top, as gzip. */
static void add_tar(struct buf *tar)
{
	AUTO(buf) struct buf blob = BUF_INIT(MAX);
	struct image_layer *image = &images[layers_n];
	const struct digest *below = layers_n > 0 ? &images[layers_n - 1].chain : NULL;

	tarmake_end(tar);
	tarmake_gzip(&blob, buf_span(tar));
	image->size = blob.n;
	ck_assert_int_eq(digest_of(buf_span(&blob), &image->blob, &e), 0);
	ck_assert_int_eq(digest_of(buf_span(tar), &image->diff, &e), 0);
	ck_assert_int_eq(digest_chain(below, &image->diff, &image->chain, &e), 0);
	layers[layers_n] = (struct unpack_layer){
		.layer = image,
		.blob_fd = tarmake_fd(buf_span(&blob)),
		.copy_fd = tarmake_fd(span_of("")),
	};
	layers_n++;
}

#define ADD(...)                                                          \
	do {                                                              \
		static const struct tarmake entries_[] = { __VA_ARGS__ }; \
		AUTO(buf) struct buf tar_ = BUF_INIT(MAX);                \
		for (size_t i_ = 0; i_ < ARRAY_SIZE(entries_); i_++) {    \
			tarmake_add(&tar_, entries_[i_]);                 \
		}                                                         \
		add_tar(&tar_);                                           \
	} while (0)

static void add_three(void)
{
	/* Of another owner and set-id: what fs.protected_hardlinks guards. */
	ADD({ .name = "a", .data = "1" }, { .name = "d/f", .data = "1", .mode = 04755, .uid = 33 },
			{ .name = "gone" });
	ADD({ .name = "d", .type = '5', .mode = 0500 }, { .name = ".wh.gone" });
	ADD({ .name = "l", .type = '1', .link = "d/f" }, { .name = "d/new", .data = "2" });
}

static void on_layer(void *ctx, size_t index, const struct image_layer *layer,
		enum image_phase phase, uint64_t n, uint64_t total)
{
	ck_assert_ptr_eq(ctx, phases);
	ck_assert_ptr_eq(layer, &images[index]);
	ck_assert_uint_le(n, total);
	phases[index] |= 1U << phase;
}

static int unpack(uint64_t max)
{
	static const struct image_progress progress = { .on_layer = on_layer, .ctx = phases };
	struct unpack_opts opts = { .map = &map, .unpack_max = max, .progress = &progress };

	return unpack_layers(store, &opts, layers, layers_n, &e);
}

static struct stat stat_of(size_t layer, const char *name)
{
	char path[256];
	struct stat st = { .st_mode = 0 };

	snprintf(path, sizeof(path), "%s/%s", digest_hex(&images[layer].chain), name);
	(void)fstatat(layers_fd, path, &st, AT_SYMLINK_NOFOLLOW);
	return st;
}

static bool is_published(size_t layer)
{
	return fcntl(layers_fd, F_GETFD) >= 0 && store_has_layer(layers_fd, &images[layer].chain);
}

/* Stagings that were left behind. */
static int stagings(void)
{
	int fd = fd_dup(layers_fd, 0);
	DIR *dir = fdopendir(fd);
	int n = 0;

	ck_assert_ptr_nonnull(dir);
	rewinddir(dir);
	for (const struct dirent *d = readdir(dir); d; d = readdir(dir)) {
		n += strncmp(d->d_name, STAGING_PREFIX, strlen(STAGING_PREFIX)) == 0 ? 1 : 0;
	}
	closedir(dir);
	return n;
}

START_TEST(all_layers_are_published)
{
	add_three();
	ck_assert_msg(unpack(0) == 0, "%s", e.text);
	for (size_t i = 0; i < LAYERS; i++) {
		AUTO(buf) struct buf copied = BUF_INIT(MAX);
		struct digest d;

		ck_assert(is_published(i));
		ck_assert_uint_eq(phases[i] & (1U << IMAGE_PHASE_DONE), 1U << IMAGE_PHASE_DONE);
		ck_assert_int_eq(lseek(layers[i].copy_fd, 0, SEEK_SET), 0);
		ck_assert_int_eq(fd_read_all(layers[i].copy_fd, &copied), 0);
		ck_assert_int_eq(digest_of(buf_span(&copied), &d, &e), 0);
		ck_assert_str_eq(d.text, images[i].blob.text);
	}
	ck_assert_int_eq(stat_of(2, "l").st_ino, stat_of(0, "d/f").st_ino);
	ck_assert_int_eq(stat_of(2, "d").st_mode, S_IFDIR | 0500);
	ck_assert(S_ISCHR(stat_of(1, "gone").st_mode));
	ck_assert_int_eq(stagings(), 0);
}
END_TEST

START_TEST(a_layer_that_is_there_is_only_checked)
{
	add_three();
	ck_assert_int_eq(unpack(0), 0);
	for (size_t i = 0; i < LAYERS; i++) {
		ck_assert_int_eq(lseek(layers[i].blob_fd, 0, SEEK_SET), 0);
		ck_assert_int_eq(ftruncate(layers[i].copy_fd, 0), 0);
		layers[i].present = i < 2;
		phases[i] = 0;
	}
	fd_close(&layers[0].blob_fd);
	ck_assert_int_eq(file_remove_tree_at(layers_fd, digest_hex(&images[2].chain)), 0);
	ck_assert_msg(unpack(0) == 0, "%s", e.text);
	ck_assert_uint_eq(phases[0], 0);
	ck_assert_uint_eq(phases[1] & (1U << IMAGE_PHASE_PRESENT), 1U << IMAGE_PHASE_PRESENT);
	ck_assert_uint_eq(phases[2] & (1U << IMAGE_PHASE_DONE), 1U << IMAGE_PHASE_DONE);
	ck_assert_int_eq(stat_of(2, "l").st_ino, stat_of(0, "d/f").st_ino);
}
END_TEST

START_TEST(a_bad_layer_publishes_nothing)
{
	static const char *const texts[] = { "blob digest", "diff digest", "blob has more bytes",
		"unpacked" };

	add_three();
	if (_i == 0) {
		images[1].blob.text[10] ^= 1;
	} else if (_i == 1) {
		images[1].diff.text[10] ^= 1;
	} else if (_i == 2) {
		images[1].size = 5;
	}
	ck_assert_int_eq(unpack(_i == 3 ? 5000 : 0), -1);
	ck_assert_ptr_nonnull(strstr(e.text, "layer "));
	ck_assert_msg(strstr(e.text, texts[_i]) != NULL, "%s", e.text);
	for (size_t i = 0; i < LAYERS; i++) {
		ck_assert(!is_published(i));
	}
	ck_assert_int_eq(stagings(), 0);
}
END_TEST

START_TEST(a_bad_blob_of_a_present_layer)
{
	add_three();
	layers_n = 1;
	ck_assert_int_eq(unpack(0), 0);
	ck_assert_int_eq(lseek(layers[0].blob_fd, 0, SEEK_SET), 0);
	layers[0].present = true;
	images[0].blob.text[10] ^= 1;
	ck_assert_int_eq(unpack(0), -1);
	ck_assert_ptr_nonnull(strstr(e.text, "blob digest"));
}
END_TEST

START_TEST(someone_else_was_first)
{
	char path[128];

	ADD({ .name = "f", .data = "x" });
	snprintf(path, sizeof(path), "%s/theirs", digest_hex(&images[0].chain));
	ck_assert_int_eq(mkdirat(layers_fd, digest_hex(&images[0].chain), 0755), 0);
	ck_assert_int_eq(mkdirat(layers_fd, path, 0755), 0);
	ck_assert_msg(unpack(0) == 0, "%s", e.text);
	ck_assert(S_ISDIR(stat_of(0, "theirs").st_mode));
	ck_assert_int_eq(stat_of(0, "f").st_mode, 0);
}
END_TEST

START_TEST(root_of_another_owner)
{
	if (map.mode == IDMAP_SINGLE) {
		ADD({ .name = "./", .type = '5', .mode = 0555 }, { .name = "f" });
	} else {
		ADD({ .name = "./", .type = '5', .mode = 0555, .uid = 1000, .gid = 1000 },
				{ .name = "f" });
	}
	ck_assert_msg(unpack(0) == 0, "%s", e.text);
	ck_assert_int_eq(stat_of(0, "").st_mode, S_IFDIR | 0755);
}
END_TEST

START_TEST(archive_is_extracted)
{
	AUTO(buf) struct buf tar = BUF_INIT(MAX);
	AUTO(buf) struct buf packed = BUF_INIT(MAX);
	struct stat st;

	ck_assert_int_eq(mkdirat(unit_fd, "out", 0700), 0);
	autoclose int out = fd_open_at(unit_fd, "out", O_RDONLY | O_DIRECTORY, 0);

	tarmake_add(&tar, (struct tarmake){ .name = "blobs/sha256/x", .data = "content" });
	tarmake_add(&tar, (struct tarmake){ .name = "../../l", .type = '2', .link = "/etc" });
	tarmake_add(&tar, (struct tarmake){ .name = "null", .type = '3' });
	tarmake_end(&tar);
	tarmake_gzip(&packed, buf_span(&tar));
	autoclose int fd = tarmake_fd(_i ? buf_span(&packed) : buf_span(&tar));

	ck_assert_msg(unpack_archive(fd, out, 0, &e) == 0, "%s", e.text);
	ck_assert_int_eq(fstatat(out, "blobs/sha256/x", &st, 0), 0);
	ck_assert_int_eq(st.st_mode, S_IFREG | 0600);
	ck_assert_uint_eq(st.st_uid, geteuid());
	ck_assert_int_eq(st.st_size, 7);
	ck_assert_int_eq(fstatat(out, "l", &st, AT_SYMLINK_NOFOLLOW), 0);
	ck_assert(S_ISLNK(st.st_mode));
	ck_assert_int_eq(fstatat(out, "null", &st, AT_SYMLINK_NOFOLLOW), -1);
}
END_TEST

START_TEST(archive_has_limits)
{
	AUTO(buf) struct buf tar = BUF_INIT(MAX);

	ck_assert_int_eq(mkdirat(unit_fd, "out", 0700), 0);
	autoclose int out = fd_open_at(unit_fd, "out", O_RDONLY | O_DIRECTORY, 0);

	if (_i == 0) {
		for (int i = 0; i <= LIMIT_ARCHIVE_MEMBERS; i++) {
			tarmake_add(&tar, (struct tarmake){ .name = "f" });
		}
	} else {
		tarmake_add(&tar, (struct tarmake){ .name = "f", .data = "01234567890" });
	}
	tarmake_end(&tar);
	autoclose int fd = tarmake_fd(buf_span(&tar));

	ck_assert_int_eq(unpack_archive(fd, out, _i == 0 ? 0 : 10, &e), -1);
	ck_assert_int_eq(e.code, ERRC_LIMIT);
}
END_TEST

START_TEST(trees_of_other_ids_are_removed)
{
	char hex[DIGEST_HEX_LEN + 1];

	if (map.mode == IDMAP_SINGLE) {
		ADD({ .name = "d", .type = '5', .mode = 01 }, { .name = "d/e/f" });
	} else {
		ADD({ .name = "d", .type = '5', .mode = 01, .uid = 33 },
				{ .name = "d/e", .type = '5', .mode = 01, .uid = 34 },
				{ .name = "d/e/f", .uid = 35 });
	}
	ck_assert_msg(unpack(0) == 0, "%s", e.text);
	snprintf(hex, sizeof(hex), "%s", digest_hex(&images[0].chain));
	ck_assert_int_eq(store_remove_tree(&map, layers_fd, hex), 0);
	ck_assert(!is_published(0));
	ck_assert_int_eq(store_remove_tree(&map, layers_fd, hex), 0);
}
END_TEST

static void set_filter(void)
{
	struct secfilter filter = { .n = 0 };

	secfilter_builtin(SECFILTER_UNPACK, &filter);
	unpack_set_filter(filter.insns, filter.n);
}

int main(int argc, char **argv)
{
	Suite *s = suite_create("unpack");
	TCase *tc = tcase_create("all");

	if (argc > 1 && strcmp(argv[1], "unpack") == 0) {
		set_filter();
		return unpack_main(argc, argv);
	}
	tcase_add_unchecked_fixture(tc, unit_base_make, unit_base_remove);
	tcase_add_checked_fixture(tc, make, done);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, all_layers_are_published);
	tcase_add_test(tc, a_layer_that_is_there_is_only_checked);
	tcase_add_loop_test(tc, a_bad_layer_publishes_nothing, 0, 4);
	tcase_add_test(tc, a_bad_blob_of_a_present_layer);
	tcase_add_test(tc, someone_else_was_first);
	tcase_add_test(tc, root_of_another_owner);
	tcase_add_loop_test(tc, archive_is_extracted, 0, 2);
	tcase_add_loop_test(tc, archive_has_limits, 0, 2);
	tcase_add_test(tc, trees_of_other_ids_are_removed);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
