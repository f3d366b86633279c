/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/utsname.h>

#include "../../../oci/store_internal.h"
#include "fixture.h"

static void exists(const struct store *st, const char *name)
{
	ck_assert_msg(faccessat(store_root_fd(st), name, F_OK, 0) == 0, "%s is missing", name);
}

START_TEST(makes_a_layout)
{
	AUTO(store) struct store *st = store_new();
	struct stat s;

	exists(st, "oci-layout");
	exists(st, "index.json");
	exists(st, "blobs/sha256");
	exists(st, "layers");
	exists(st, "chains");
	exists(st, "staging");
	ck_assert_int_eq(fstat(store_root_fd(st), &s), 0);
	ck_assert_uint_eq(s.st_mode & 07777, 0700);
}
END_TEST

START_TEST(opens_what_is_there)
{
	AUTO(store) struct store *st = store_new();
	AUTO(store) struct store *again = NULL;

	put_file(store_root_fd(st), "index.json", "{\"schemaVersion\":2,\"manifests\":[]} ");
	again = store_new();
	ck_assert_str_eq(store_root(st), store_root(again));
	{
		AUTO(buf) struct buf text = BUF_INIT(4096);

		ck_assert_int_eq(file_read_at(store_root_fd(again), "index.json", &text), 0);
		ck_assert_int_eq(text.p[text.n - 1], ' ');
	}
}
END_TEST

START_TEST(makes_parents)
{
	struct error e = ERROR_INIT;
	autofree char *path = mem_printf("%s/a/b/c", unit_path);
	AUTO(store) struct store *st = store_open(path, &e);

	ck_assert_msg(st != NULL, "%s", e.text);
}
END_TEST

START_TEST(refuses_writable_by_others)
{
	struct error e = ERROR_INIT;
	autofree char *path = mem_printf("%s/open", unit_path);
	AUTO(store) struct store *st = NULL;

	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert_int_eq(chmod(path, 0770), 0);
	st = store_open(path, &e);
	ck_assert_ptr_null(st);
	ck_assert_int_eq(e.code, ERRC_DENIED);
	ck_assert_ptr_nonnull(strstr(e.hint, "chmod"));
}
END_TEST

START_TEST(refuses_a_file)
{
	struct error e = ERROR_INIT;
	autofree char *path = mem_printf("%s/file", unit_path);
	AUTO(store) struct store *st = NULL;

	put_file(unit_fd, "file", "");
	st = store_open(path, &e);
	ck_assert_ptr_null(st);
	ck_assert_int_eq(e.code, ERRC_SYSTEM);
}
END_TEST

START_TEST(refuses_anothers)
{
	struct error e = ERROR_INIT;
	autofree char *path = mem_printf("%s/other", unit_path);
	AUTO(store) struct store *st = NULL;

	ck_assert_int_eq(mkdir(path, 0700), 0);
	if (chown(path, 12345, 12345) < 0) {
		/* Only root can make one; "/" is another's for everybody else. */
		st = store_open("/", &e);
	} else {
		st = store_open(path, &e);
	}
	ck_assert_ptr_null(st);
	ck_assert_int_eq(e.code, ERRC_DENIED);
	ck_assert_ptr_nonnull(strstr(e.hint, "OSBX_ROOT"));
}
END_TEST

START_TEST(blobs)
{
	AUTO(store) struct store *st = store_new();
	struct digest d = digest_text("bytes");
	autoclose int fd = -1;

	ck_assert_int_eq(store_blob_open(st, &d), -ENOENT);
	ck_assert(!store_has_blob(st, &d, 5));
	put_file(unit_fd, "staged", "bytes");
	ck_assert_int_eq(store_blob_publish(st, unit_fd, "staged", &d), 0);
	ck_assert(store_has_blob(st, &d, 5));
	ck_assert(!store_has_blob(st, &d, 6));
	ck_assert(store_has_any_blob(st, &d));
	/* Another process was first: the same content, no failure. */
	put_file(unit_fd, "staged", "bytes");
	ck_assert_int_eq(store_blob_publish(st, unit_fd, "staged", &d), 0);
	fd = store_blob_open(st, &d);
	ck_assert_int_ge(fd, 0);
}
END_TEST

START_TEST(blob_is_no_link)
{
	AUTO(store) struct store *st = store_new();
	struct digest d = digest_text("bytes");
	autofree char *path = mem_printf("blobs/sha256/%s", digest_hex(&d));

	put_file(unit_fd, "outside", "bytes");
	ck_assert_int_eq(symlinkat("../../../outside", store_root_fd(st), path), 0);
	ck_assert_int_eq(store_blob_open(st, &d), -ELOOP);
	ck_assert(!store_has_blob(st, &d, 5));
}
END_TEST

START_TEST(layers)
{
	AUTO(store) struct store *st = store_new();
	struct digest d = digest_text("chain");
	autofree char *path = mem_printf("layers/single/%s", digest_hex(&d));
	int fd = -1;

	ck_assert_int_eq(store_layers_find(st, IDMAP_SINGLE), -ENOENT);
	ck_assert(!store_has_layer(store_layers_find(st, IDMAP_SINGLE), &d));
	fd = store_layers_fd(st, IDMAP_SINGLE);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(store_layers_fd(st, IDMAP_SINGLE), fd);
	ck_assert_int_eq(store_layers_find(st, IDMAP_SINGLE), fd);
	ck_assert(!store_has_layer(fd, &d));
	ck_assert_int_eq(mkdirat(store_root_fd(st), path, 0700), 0);
	ck_assert(store_has_layer(fd, &d));
	ck_assert_int_eq(store_layers_find(st, IDMAP_SUBID), -ENOENT);
}
END_TEST

START_TEST(chains)
{
	AUTO(store) struct store *st = store_new();
	const struct digest manifest = digest_text("m");
	const struct digest saved[2] = { digest_text("1"), digest_text("2") };
	struct digest got[3] = { 0 };
	autofree char *path = mem_printf("chains/%s", digest_hex(&manifest));

	ck_assert_int_eq(store_chains_load(st, &manifest, got, 2), -ENOENT);
	ck_assert_int_eq(store_chains_save(st, &manifest, saved, 2), 0);
	ck_assert_int_eq(store_chains_load(st, &manifest, got, 2), 0);
	ck_assert_str_eq(got[0].text, saved[0].text);
	ck_assert_str_eq(got[1].text, saved[1].text);
	ck_assert_int_eq(store_chains_load(st, &manifest, got, 1), -EINVAL);
	ck_assert_int_eq(store_chains_load(st, &manifest, got, 3), -EINVAL);
	/* A crash can leave it empty or with zeros. */
	put_file(store_root_fd(st), path, "");
	ck_assert_int_eq(store_chains_load(st, &manifest, got, 2), -EINVAL);
	ck_assert_int_eq(store_chains_load(st, &manifest, got, 0), 0);
	{
		static const char zeros[144];
		const struct span text = { .p = zeros, .n = sizeof(zeros) };

		ck_assert_int_eq(file_write_at(store_root_fd(st), path, text, false), 0);
	}
	ck_assert_int_eq(store_chains_load(st, &manifest, got, 2), -EINVAL);
	store_chains_remove(st, &manifest);
	ck_assert_int_eq(store_chains_load(st, &manifest, got, 2), -ENOENT);
}
END_TEST

START_TEST(staging_lives_with_its_lock)
{
	AUTO(store) struct store *st = store_new();
	struct staging s = STAGING_INIT;
	struct error e = ERROR_INIT;
	char name[STAGING_NAME_MAX + 1];
	int parent = -1;

	ck_assert_int_eq(store_staging(st, &s, &e), 0);
	parent = s.parent_fd;
	memcpy(name, s.name, sizeof(name));
	put_file(s.dir_fd, "file", "x");
	ck_assert(!staging_is_dead(parent, name));
	staging_done(&s);
	ck_assert_int_lt(faccessat(parent, name, F_OK, 0), 0);
	staging_done(&s);
}
END_TEST

START_TEST(staging_dies_with_its_maker)
{
	autoclose int parent = fd_dup(unit_fd, 0);
	struct staging s = STAGING_INIT;

	ck_assert_int_eq(staging_open(parent, STAGING_PREFIX, &s), 0);
	ck_assert_int_eq(strncmp(s.name, ".staging-", 9), 0);
	/* As kill -9 leaves it. */
	fd_close(&s.lock_fd);
	ck_assert(staging_is_dead(parent, s.name));
	put_file(unit_fd, "file", "");
	ck_assert(!staging_is_dead(parent, "file"));
	ck_assert(!staging_is_dead(parent, "nothing"));
	staging_done(&s);
}
END_TEST

START_TEST(hold_is_shared_or_alone)
{
	AUTO(store) struct store *st = store_new();
	struct error e = ERROR_INIT;
	autoclose int a = store_hold(st, LOCK_MODE_SHARED, &e);
	autoclose int b = store_hold(st, LOCK_MODE_SHARED, &e);

	ck_assert_int_ge(a, 0);
	ck_assert_int_ge(b, 0);
	ck_assert_int_eq(lock_try_at(store_root_fd(st), "lock", LOCK_MODE_EXCLUSIVE), -EWOULDBLOCK);
}
END_TEST

struct release {
	const char *text;
	bool maps;
};

static const struct release releases[] = {
	{ "6.1.0-18-amd64", true },
	{ "5.19.0", true },
	{ "5.19-rc1", true },
	{ "5.18.19", false },
	{ "5.2", false },
	{ "4.19.0", false },
	{ "10.0.1", true },
	{ "", false },
	{ "six.one", false },
	{ "5", false },
	{ "6", true },
};

START_TEST(knows_kernels)
{
	ck_assert_msg(store_kernel_maps(releases[_i].text) == releases[_i].maps, "%s",
			releases[_i].text);
}
END_TEST

START_TEST(settles_other_modes_as_they_are)
{
	AUTO(store) struct store *st = store_new();
	struct idmap map = map_single();
	struct error e = ERROR_INIT;

	ck_assert_int_eq(store_settle_mode(st, &map, &e), 0);
	ck_assert_int_eq(map.mode, IDMAP_SINGLE);
	ck_assert_int_eq(store_layers_find(st, IDMAP_MAPPED), -ENOENT);
}
END_TEST

/* Once agreed to, nothing is tried: the map is not even looked at. */
START_TEST(remembers_mapped)
{
	AUTO(store) struct store *st = store_new();
	struct idmap map = { .mode = IDMAP_MAPPED };
	struct error e = ERROR_INIT;

	ck_assert_int_eq(mkdirat(store_root_fd(st), "layers/mapped", 0700), 0);
	ck_assert_int_eq(store_settle_mode(st, &map, &e), 0);
	ck_assert_int_eq(map.mode, IDMAP_MAPPED);
}
END_TEST

/* A refusal too, but only by this kernel. */
START_TEST(remembers_refused)
{
	AUTO(store) struct store *st = store_new();
	struct idmap map = { .mode = IDMAP_MAPPED };
	struct error e = ERROR_INIT;
	struct utsname u;

	ck_assert_int_eq(uname(&u), 0);
	put_file(store_root_fd(st), "layers/.unmapped", u.release);
	ck_assert_int_eq(store_settle_mode(st, &map, &e), 0);
	ck_assert_int_eq(map.mode, IDMAP_SHARED);
	ck_assert_int_eq(store_layers_find(st, IDMAP_MAPPED), -ENOENT);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("store");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_test(tc, makes_a_layout);
	tcase_add_test(tc, opens_what_is_there);
	tcase_add_test(tc, makes_parents);
	tcase_add_test(tc, refuses_writable_by_others);
	tcase_add_test(tc, refuses_a_file);
	tcase_add_test(tc, refuses_anothers);
	tcase_add_test(tc, blobs);
	tcase_add_test(tc, blob_is_no_link);
	tcase_add_test(tc, layers);
	tcase_add_test(tc, chains);
	tcase_add_test(tc, staging_lives_with_its_lock);
	tcase_add_test(tc, staging_dies_with_its_maker);
	tcase_add_test(tc, hold_is_shared_or_alone);
	tcase_add_loop_test(tc, knows_kernels, 0, ARRAY_SIZE(releases));
	tcase_add_test(tc, settles_other_modes_as_they_are);
	tcase_add_test(tc, remembers_mapped);
	tcase_add_test(tc, remembers_refused);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
