/* SPDX-License-Identifier: Apache-2.0 */
/* In process and without a namespace: names must stay below the root by the walk alone. */
#include <errno.h>
#include <sys/xattr.h>

#include <osbx/fd.h>

#include "tarmake.h"

#define MAX    (16U << 20)
#define LAYERS 4

static struct idmap single = { .mode = IDMAP_SINGLE, .uids_n = 1, .gids_n = 1 };
static struct unpack_usage usage;
static struct error e;
static int layer_fds[LAYERS]; /* oldest first */
static int layers_n;
static struct layer_opts base_opts;
static struct layer_stats stats;

static void make(void)
{
	unit_dir_make();
	layers_n = 0;
	e = (struct error)ERROR_INIT;
	usage = (struct unpack_usage){ .bytes = 0 };
	single.uids[0] = (struct idmap_range){ .outside = geteuid(), .count = 1 };
	single.gids[0] = (struct idmap_range){ .outside = getegid(), .count = 1 };
	base_opts = (struct layer_opts){
		.map = &single,
		.entries_max = 1000,
		.file_max = MAX,
		.usage = &usage,
	};
	ck_assert_int_eq(mkdirat(unit_fd, "canary", 0755), 0);
}

static void done(void)
{
	while (layers_n > 0) {
		fd_close(&layer_fds[--layers_n]);
	}
	unit_dir_close();
}

static int apply(struct buf *tar)
{
	int lowers[LAYERS];
	char name[2] = { (char)('0' + layers_n), '\0' };
	struct layer_opts opts = base_opts;
	struct stream_opts stream_opts = {
		.copy_fd = -1,
		.size = UINT64_MAX,
		.budget = MAX,
		.usage = &usage,
	};
	autoclose int fd = -1;
	int rc = 0;

	tarmake_end(tar);
	fd = tarmake_fd(buf_span(tar));
	ck_assert_int_eq(mkdirat(unit_fd, name, 0700), 0);
	opts.root_fd = fd_open_at(unit_fd, name, O_RDONLY | O_DIRECTORY, 0);
	ck_assert_int_ge(opts.root_fd, 0);
	for (int i = 0; i < layers_n; i++) {
		lowers[i] = layer_fds[layers_n - 1 - i];
	}
	stream_opts.fd = fd;
	AUTO(stream) struct stream *s = stream_new(&stream_opts, &e);
	AUTO(layer) struct layer *l = layer_new(&opts);

	ck_assert_ptr_nonnull(s);
	rc = layer_unpack(l, s, &e);
	rc = rc < 0 ? rc : layer_finish(l, lowers, (size_t)layers_n, &e);
	stats = *layer_stats(l);
	layer_fds[layers_n++] = opts.root_fd;
	return rc;
}

#define APPLY(...)                                                        \
	__extension__({                                                   \
		static const struct tarmake entries_[] = { __VA_ARGS__ }; \
		AUTO(buf) struct buf tar_ = BUF_INIT(MAX);                \
		for (size_t i_ = 0; i_ < ARRAY_SIZE(entries_); i_++) {    \
			tarmake_add(&tar_, entries_[i_]);                 \
		}                                                         \
		apply(&tar_);                                             \
	})

static struct stat stat_of(const char *path)
{
	struct stat st = { .st_mode = 0 };

	(void)fstatat(unit_fd, path, &st, AT_SYMLINK_NOFOLLOW);
	return st;
}

static bool is_text(const char *path, const char *want)
{
	AUTO(buf) struct buf b = BUF_INIT(65536);

	return S_ISREG(stat_of(path).st_mode) && file_read_at(unit_fd, path, &b) == 0 &&
	       span_eq(buf_span(&b), span_of(want));
}

static bool is_hidden(const char *path)
{
	struct stat st = stat_of(path);

	return S_ISCHR(st.st_mode) && st.st_rdev == 0;
}

static bool is_opaque(const char *path)
{
	autoclose int fd = fd_open_at(unit_fd, path, O_RDONLY | O_DIRECTORY, 0);
	char c = 0;

	return fd >= 0 && fgetxattr(fd, "user.overlay.opaque", &c, 1) == 1 && c == 'y';
}

static bool exists(const char *path)
{
	return stat_of(path).st_mode != 0;
}

START_TEST(files_with_all_they_have)
{
	struct stat st;

	ck_assert_int_eq(APPLY({ .name = "./", .type = '5', .mode = 0700 },
					 { .name = "d/", .type = '5', .mode = 01755 },
					 { .name = "d/f", .data = "text", .mode = 04711 },
					 { .name = "d/l", .type = '2', .link = "f" },
					 { .name = "d/h", .type = '1', .link = "d/f" },
					 { .name = "d/p", .type = '6', .mode = 0600 }),
			0);
	ck_assert(is_text("0/d/f", "text"));
	st = stat_of("0/d/f");
	ck_assert_int_eq(st.st_mode, S_IFREG | 04711);
	ck_assert_int_eq(st.st_mtim.tv_sec, TARMAKE_MTIME);
	ck_assert_int_eq(st.st_nlink, 2);
	ck_assert_int_eq(stat_of("0/d/h").st_ino, st.st_ino);
	st = stat_of("0/d");
	ck_assert_int_eq(st.st_mode, S_IFDIR | 01755);
	ck_assert_int_eq(st.st_mtim.tv_sec, TARMAKE_MTIME);
	ck_assert_int_eq(stat_of("0/d/l").st_mtim.tv_sec, TARMAKE_MTIME);
	ck_assert_int_eq(stat_of("0/d/p").st_mode, S_IFIFO | 0600);
}
END_TEST

static const struct {
	struct tarmake entries[3];
	const char *made; /* below the layer; NULL: refused */
} escapes[] = {
	{ { { .name = "../../canary/x", .data = "x" } }, "0/canary/x" },
	{ { { .name = "a/../../../canary/x", .data = "x" } }, "0/canary/x" },
	{ { { .name = "/canary/x", .data = "x" } }, "0/canary/x" },
	{ { { .name = "l", .type = '2', .link = "../canary" }, { .name = "l/x", .data = "x" } },
			"0/canary/x" },
	{ { { .name = "l", .type = '2', .link = "/../canary" }, { .name = "l/x", .data = "x" } },
			"0/canary/x" },
	{ { { .name = "d/l", .type = '2', .link = "../../../canary" },
			  { .name = "d/l/x", .data = "x" } },
			"0/canary/x" },
	{ { { .name = "l", .type = '2', .link = "../canary/x" }, { .name = "l", .data = "x" } },
			"0/l" },
	{ { { .name = "h", .type = '1', .link = "../canary" } }, NULL },
	{ { { .name = "l", .type = '2', .link = "../canary" },
			  { .name = "h", .type = '1', .link = "l/x" } },
			NULL },
	{ { { .name = "a", .type = '2', .link = "b" }, { .name = "b", .type = '2', .link = "a" },
			  { .name = "a/x", .data = "x" } },
			NULL },
};

START_TEST(nothing_leaves_the_root)
{
	AUTO(buf) struct buf tar = BUF_INIT(MAX);
	int rc = 0;

	for (size_t i = 0; i < 3 && escapes[_i].entries[i].name; i++) {
		tarmake_add(&tar, escapes[_i].entries[i]);
	}
	rc = apply(&tar);
	ck_assert_int_eq(rc, escapes[_i].made ? 0 : -1);
	ck_assert(!escapes[_i].made || is_text(escapes[_i].made, "x"));
	/* rmdir: nothing was put into it. */
	ck_assert_int_eq(unlinkat(unit_fd, "canary", AT_REMOVEDIR), 0);
}
END_TEST

START_TEST(the_root_is_a_directory)
{
	static const struct tarmake rows[] = {
		{ .name = "./", .type = '2', .link = "canary" },
		{ .name = "a/..", .type = '2', .link = "canary" },
		{ .name = ".", .data = "x" },
		{ .name = "..", .type = '1', .link = "x" },
		{ .name = ".", .type = '6' },
	};
	AUTO(buf) struct buf tar = BUF_INIT(MAX);

	tarmake_add(&tar, rows[_i]);
	ck_assert_int_eq(apply(&tar), -1);
	ck_assert_ptr_nonnull(strstr(e.text, "root is not a directory"));
}
END_TEST

START_TEST(the_root_can_be_entered)
{
	ck_assert_int_eq(APPLY({ .name = "./", .type = '5', .mode = 0005 }, { .name = "f" }), 0);
	ck_assert_int_eq(stat_of("0").st_mode, S_IFDIR | 0705);
	ck_assert_int_eq(stat_of("0").st_mtim.tv_sec, TARMAKE_MTIME);
}
END_TEST

START_TEST(the_later_entry_wins)
{
	ck_assert_int_eq(APPLY({ .name = "a", .data = "1" }, { .name = "a", .data = "2" },
					 { .name = "b/x", .data = "1" },
					 { .name = "b", .data = "2" }, { .name = "c", .data = "1" },
					 { .name = "c/x", .data = "2" },
					 { .name = "d", .type = '5', .mode = 0711 },
					 { .name = "d/x", .data = "1" },
					 { .name = "d", .type = '5', .mode = 0755 },
					 { .name = "l", .type = '2', .link = "d" },
					 { .name = "l", .type = '5', .mode = 0700 },
					 { .name = "l/y", .data = "1" }),
			0);
	ck_assert(is_text("0/a", "2"));
	ck_assert(is_text("0/b", "2"));
	ck_assert(is_text("0/c/x", "2"));
	ck_assert(is_opaque("0/c"));
	ck_assert(is_text("0/d/x", "1"));
	ck_assert_int_eq(stat_of("0/d").st_mode & 07777, 0755);
	ck_assert(is_text("0/l/y", "1"));
	ck_assert(!exists("0/d/y"));
}
END_TEST

START_TEST(implied_parents_are_as_below)
{
	ck_assert_int_eq(APPLY({ .name = "p", .type = '5', .mode = 0711, .uid = 5 },
					 { .name = "p/q", .type = '5', .mode = 01777 },
					 { .name = "l", .type = '2', .link = "p" }),
			0);
	ck_assert_int_eq(APPLY({ .name = "p/q/r/f", .data = "x" }, { .name = "l/f", .data = "x" }),
			0);
	ck_assert_int_eq(stat_of("1/p").st_mode & 07777, 0711);
	ck_assert_int_eq(stat_of("1/p").st_mtim.tv_sec, TARMAKE_MTIME);
	ck_assert_int_eq(stat_of("1/p/q").st_mode & 07777, 01777);
	ck_assert_int_eq(stat_of("1/p/q/r").st_mode & 07777, 0755);
	/* Below it is a link: this layer's directory hides it. */
	ck_assert_int_eq(stat_of("1/l").st_mode, S_IFDIR | 0755);
	autoclose int fd = fd_open_at(unit_fd, "1/p", O_RDONLY | O_DIRECTORY, 0);
	char owner[32] = "";

	ck_assert_int_gt(fgetxattr(fd, "user.containers.override_stat", owner, sizeof(owner) - 1),
			0);
	ck_assert_str_eq(owner, "5:0:0711");
}
END_TEST

START_TEST(whiteouts_in_any_order)
{
	ck_assert_int_eq(APPLY({ .name = "f", .data = "old" }, { .name = "d/old", .data = "old" },
					 { .name = "gone", .data = "old" },
					 { .name = "g/old", .data = "old" },
					 { .name = "g/s/old", .data = "old" }),
			0);
	if (_i == 0) {
		ck_assert_int_eq(APPLY({ .name = ".wh.f" }, { .name = ".wh.d" },
						 { .name = ".wh.gone" },
						 { .name = "f", .data = "new" },
						 { .name = "d/new", .data = "new" },
						 { .name = "g/.wh.old" },
						 { .name = "g/s/.wh..wh..opq" }),
				0);
	} else {
		ck_assert_int_eq(APPLY({ .name = "g/s/.wh..wh..opq" }, { .name = "g/.wh.old" },
						 { .name = "f", .data = "new" },
						 { .name = "d/new", .data = "new" },
						 { .name = ".wh.f", .type = '1', .link = "f" },
						 { .name = ".wh.d", .type = '2', .link = "x" },
						 { .name = ".wh.gone" }),
				0);
	}
	ck_assert(is_text("1/f", "new"));
	ck_assert(is_text("1/d/new", "new"));
	ck_assert(is_opaque("1/d"));
	ck_assert(is_hidden("1/gone"));
	ck_assert(is_hidden("1/g/old"));
	ck_assert(is_opaque("1/g/s"));
	ck_assert(!is_opaque("1/g"));
}
END_TEST

START_TEST(whiteouts_only_where_something_is_hidden)
{
	ck_assert_int_eq(APPLY({ .name = "d/f" }, { .name = "was/x" }, { .name = "real/keep" },
					 { .name = ".wh.first" }),
			0);
	ck_assert(!exists("0/first"));
	ck_assert_int_eq(APPLY({ .name = ".wh.none" }, { .name = "no/where/.wh.x" },
					 { .name = "void/.wh..wh..opq" }, { .name = "d/.wh.none" },
					 { .name = "new/f" }, { .name = "new/.wh.g" },
					 { .name = "was", .data = "file" }, { .name = "was/.wh.x" },
					 { .name = "l", .type = '2', .link = "real" },
					 { .name = "l/.wh.keep" }),
			0);
	ck_assert(!exists("1/none"));
	ck_assert(!exists("1/no"));
	ck_assert(!exists("1/void"));
	ck_assert(!exists("1/d"));
	ck_assert(!exists("1/new/g"));
	/* A directory that became a file, or a link: the whiteouts below its name are void. */
	ck_assert(is_text("1/was", "file"));
	ck_assert(S_ISLNK(stat_of("1/l").st_mode));
	ck_assert(!exists("1/real"));
}
END_TEST

START_TEST(opaque_root_hides_each_name)
{
	ck_assert_int_eq(APPLY({ .name = "a" }, { .name = "both/old" }), 0);
	ck_assert_int_eq(APPLY({ .name = ".wh..wh..opq" }, { .name = "both/new" }), 0);
	ck_assert(is_hidden("1/a"));
	ck_assert(is_opaque("1/both"));
}
END_TEST

START_TEST(a_hidden_directory_stays_hidden)
{
	ck_assert_int_eq(APPLY({ .name = "a/b/x" }), 0);
	ck_assert_int_eq(APPLY({ .name = "a/b/.wh.x" }, { .name = "a/.wh.b" }, { .name = ".wh.a" }),
			0);
	ck_assert(is_hidden("1/a"));
}
END_TEST

START_TEST(hard_links_reach_below)
{
	ck_assert_int_eq(APPLY({ .name = "usr/a", .data = "1" }, { .name = "b", .data = "1" },
					 { .name = "s", .type = '2', .link = "usr" }),
			0);
	ck_assert_int_eq(APPLY({ .name = "b", .data = "2" }, { .name = ".wh.s" }), 0);
	ck_assert_int_eq(APPLY({ .name = "la", .type = '1', .link = "./usr/a" },
					 { .name = "lb", .type = '1', .link = "/b" },
					 { .name = "lla", .type = '1', .link = "la" },
					 { .name = "early", .type = '1', .link = "late" },
					 { .name = "late", .data = "3" },
					 { .name = "over", .type = '1', .link = "b" },
					 { .name = "over", .data = "4" }),
			0);
	ck_assert_int_eq(stat_of("2/la").st_ino, stat_of("0/usr/a").st_ino);
	ck_assert_int_eq(stat_of("2/lla").st_ino, stat_of("0/usr/a").st_ino);
	ck_assert_int_eq(stat_of("2/lb").st_ino, stat_of("1/b").st_ino);
	ck_assert_int_eq(stat_of("2/early").st_ino, stat_of("2/late").st_ino);
	ck_assert(is_text("2/over", "4"));
	ck_assert_int_eq(APPLY({ .name = "x", .type = '1', .link = "s/a" }), -1);
	ck_assert_ptr_nonnull(strstr(e.text, "x: hard link to s/a, which neither"));
}
END_TEST

START_TEST(hard_links_refused)
{
	static const char *const targets[] = { "d", "none", "/", "../..", "null" };
	static struct tarmake entries[] = { { .name = "d", .type = '5', .mode = 0755 },
		{ .name = "null", .type = '3' }, { .name = "l", .type = '1' } };
	AUTO(buf) struct buf tar = BUF_INIT(MAX);

	entries[2].link = targets[_i];
	for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
		tarmake_add(&tar, entries[i]);
	}
	ck_assert_int_eq(apply(&tar), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
	ck_assert_ptr_nonnull(strstr(e.text, "l: hard link to "));
}
END_TEST

START_TEST(a_hard_link_to_itself_is_nothing_new)
{
	ck_assert_int_eq(APPLY({ .name = "f", .data = "1" },
					 { .name = "f", .type = '1', .link = "f" }),
			0);
	ck_assert(is_text("0/f", "1"));
	/* A link is linked, not what it names. */
	ck_assert_int_eq(symlinkat("../canary", layer_fds[0], "out"), 0);
	ck_assert_int_eq(APPLY({ .name = "l", .type = '1', .link = "out" },
					 { .name = "l", .data = "x" }),
			0);
	ck_assert(is_text("1/l", "x"));
	ck_assert_int_eq(unlinkat(unit_fd, "canary", AT_REMOVEDIR), 0);
}
END_TEST

START_TEST(devices_are_left_out)
{
	ck_assert_int_eq(APPLY({ .name = "c", .type = '3' }, { .name = "b", .type = '4' },
					 { .name = "f" }),
			0);
	ck_assert(!exists("0/c"));
	ck_assert(!exists("0/b"));
	ck_assert_uint_eq(stats.devices, 2);
}
END_TEST

START_TEST(owners)
{
	static const struct {
		unsigned int uid;
		enum idmap_mode mode;
		enum errc code;
	} rows[] = {
		{ 65535, IDMAP_SUBID, ERRC_OK },
		{ 65536, IDMAP_SUBID, ERRC_UNSUPPORTED },
		{ 65536, IDMAP_MAPPED, ERRC_UNSUPPORTED },
		{ 65536, IDMAP_SINGLE, ERRC_OK },
	};
	struct idmap map = { .mode = rows[_i].mode, .uids_n = 1, .gids_n = 1 };
	AUTO(buf) struct buf tar = BUF_INIT(MAX);
	int rc = 0;

	map.uids[0] = map.gids[0] = (struct idmap_range){ .count = 65536 };
	base_opts.map = &map;
	tarmake_add(&tar, (struct tarmake){ .name = "f", .uid = rows[_i].uid });
	rc = apply(&tar);
	if (rc < 0 && e.sysno == EPERM) {
		/* An ordinary user may not give files away; the check has let it pass. */
		ck_assert_str_eq(e.text, "f: set owner");
		rc = 0;
		e.code = ERRC_OK;
	}
	ck_assert_int_eq(e.code, rows[_i].code);
	ck_assert_int_eq(rc, rows[_i].code == ERRC_OK ? 0 : -1);
	ck_assert(rc == 0 ||
			(strstr(e.text, "there are the ids 0 to 65535 only") && e.hint[0] != '\0'));
}
END_TEST

START_TEST(single_mode_records_owners)
{
	char owner[32] = "";

	ck_assert_int_eq(
			APPLY({ .name = "f", .data = "x", .mode = 04755, .uid = 7, .gid = 100000 }),
			0);
	autoclose int fd = fd_open_at(unit_fd, "0/f", O_RDONLY, 0);

	ck_assert_int_gt(fgetxattr(fd, "user.containers.override_stat", owner, sizeof(owner) - 1),
			0);
	ck_assert_str_eq(owner, "7:100000:04755");
	ck_assert_int_eq(stat_of("0/f").st_uid, geteuid());
	ck_assert_int_eq(stat_of("0/f").st_mode & 07777, 04755);
}
END_TEST

START_TEST(limits)
{
	static const struct tarmake big = { .name = "big", .size = MAX + 1 };
	AUTO(buf) struct buf tar = BUF_INIT(MAX);

	if (_i == 0) {
		tarmake_add(&tar, big);
	} else {
		base_opts.entries_max = 2;
		for (int i = 0; i < 3; i++) {
			tarmake_add(&tar, (struct tarmake){ .name = "f" });
		}
	}
	ck_assert_int_eq(apply(&tar), -1);
	ck_assert_int_eq(e.code, ERRC_LIMIT);
}
END_TEST

START_TEST(archive_takes_only_files)
{
	base_opts.archive = true;
	ck_assert_int_eq(APPLY({ .name = "f", .data = "x", .mode = 04777, .uid = 5 },
					 { .name = "d", .type = '5', .mode = 0777 },
					 { .name = ".wh.x", .data = "y" },
					 { .name = "p", .type = '6' },
					 { .name = "l", .type = '2', .link = "../canary" },
					 { .name = "h", .type = '1', .link = "f" }),
			0);
	ck_assert_int_eq(stat_of("0/f").st_mode & 07777, 0600);
	ck_assert_int_eq(stat_of("0/d").st_mode & 07777, 0700);
	ck_assert(is_text("0/.wh.x", "y"));
	ck_assert(!exists("0/p"));
	ck_assert(is_text("0/h", "x"));
}
END_TEST

START_TEST(broken_tars)
{
	AUTO(buf) struct buf tar = BUF_INIT(MAX);

	tarmake_add(&tar, (struct tarmake){ .name = "f", .data = "x" });
	if (_i == 0) {
		tar.p[0] = 'g';
	} else {
		tarmake_add(&tar, (struct tarmake){ .name = "g", .size = 100000 });
	}
	ck_assert_int_eq(apply(&tar), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
	ck_assert_ptr_nonnull(strstr(e.text, "read tar"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("layer");
	TCase *tc = tcase_create("all");

	tcase_add_unchecked_fixture(tc, unit_base_make, unit_base_remove);
	tcase_add_checked_fixture(tc, make, done);
	tcase_add_test(tc, files_with_all_they_have);
	tcase_add_loop_test(tc, nothing_leaves_the_root, 0, (int)ARRAY_SIZE(escapes));
	tcase_add_loop_test(tc, the_root_is_a_directory, 0, 5);
	tcase_add_test(tc, the_root_can_be_entered);
	tcase_add_test(tc, the_later_entry_wins);
	tcase_add_test(tc, implied_parents_are_as_below);
	tcase_add_loop_test(tc, whiteouts_in_any_order, 0, 2);
	tcase_add_test(tc, whiteouts_only_where_something_is_hidden);
	tcase_add_test(tc, opaque_root_hides_each_name);
	tcase_add_test(tc, a_hidden_directory_stays_hidden);
	tcase_add_test(tc, hard_links_reach_below);
	tcase_add_loop_test(tc, hard_links_refused, 0, 5);
	tcase_add_test(tc, a_hard_link_to_itself_is_nothing_new);
	tcase_add_test(tc, devices_are_left_out);
	tcase_add_loop_test(tc, owners, 0, 4);
	tcase_add_test(tc, single_mode_records_owners);
	tcase_add_loop_test(tc, limits, 0, 2);
	tcase_add_test(tc, archive_takes_only_files);
	tcase_add_loop_test(tc, broken_tars, 0, 2);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
