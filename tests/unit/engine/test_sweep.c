/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <utime.h>

#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/record.h>
#include <osbx/sandbox.h>
#include <osbx/state.h>

#include "../unit.h"

#define HEX_1 "1111111111111111111111111111111111111111111111111111111111111111"
#define HEX_2 "2222222222222222222222222222222222222222222222222222222222222222"

struct fixture {
	struct dirs dirs;
	struct store *store;
	struct idmap map;
};

static void fixture_done(struct fixture *f)
{
	store_free(f->store);
	dirs_done(&f->dirs);
}
AUTO_DEFINE(fixture, struct fixture, fixture_done);

static void fixture_init(struct fixture *f)
{
	struct error e = ERROR_INIT;
	autofree char *root = mem_printf("%s/root", unit_path);
	autofree char *runtime = mem_printf("%s/runtime", unit_path);

	*f = (struct fixture){ .dirs = DIRS_INIT, .map = { .mode = IDMAP_SINGLE } };
	setenv("OSBX_ROOT", root, 1);
	setenv("OSBX_RUNTIME", runtime, 1);
	ck_assert_int_eq(dirs_open(&f->dirs, &e), 0);
	f->store = store_open(f->dirs.root, &e);
	ck_assert_ptr_nonnull(f->store);
	/* A layer that no image names. */
	ck_assert_int_eq(mkdirat(f->dirs.root_fd, "layers/single", 0700), 0);
	ck_assert_int_eq(mkdirat(f->dirs.root_fd, "layers/single/" HEX_1, 0700), 0);
	ck_assert_int_eq(mkdirat(f->dirs.root_fd, "layers/single/host-1", 0700), 0);
}

/* A sandbox with files, a range of ids, a name and the layer. */
static void sandbox_make(struct fixture *f, struct record *r, const char *name, bool keep)
{
	struct image_layer layer = { .chain = { "sha256:" HEX_1 } };
	struct image img = { .manifest = { "sha256:" HEX_2 }, .layers_n = 1, .layers = &layer };
	AUTO(request) struct sandbox_request req = { .caps = 0 };
	AUTO(state) struct sandbox_state state = { .code = SANDBOX_PENDING };
	struct idmap map = { .mode = IDMAP_MAPPED, .uids_n = 1, .gids_n = 1 };
	struct error e = ERROR_INIT;

	request_init(&req);
	req.image = mem_strdup("busybox");
	req.keep = keep;
	record_init(&f->dirs, r);
	ck_assert_int_eq(record_make(&f->dirs, r, name, &e), 0);
	ck_assert_int_eq(record_take_ids(&f->dirs, r, &map, &e), 0);
	ck_assert_int_eq(record_save(r, &req, &img, &map, &e), 0);
	state_init(&state, &r->id, name, "busybox");
	ck_assert_int_eq(state_save(&state, r->live_fd, false, &e), 0);
	ck_assert_int_eq(mkdirat(r->dir_fd, "upper/dir", 0), 0);
}

static struct sandbox_gc_result collect(struct fixture *f, struct sandbox_gc_opts opts)
{
	struct sandbox_gc_result result;
	struct error e = ERROR_INIT;

	ck_assert_msg(sandbox_gc(&f->dirs, f->store, &f->map, &opts, &result, &e) == 0, "%s",
			e.text);
	return result;
}

static bool exists(int dir_fd, const char *fmt, const char *name)
{
	autofree char *path = mem_printf("%s%s", fmt, name);

	return faccessat(dir_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool has_layer(const struct fixture *f)
{
	return exists(f->dirs.root_fd, "layers/single/", HEX_1);
}

static size_t entries(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fdopendir(fd);
	size_t n = 0;

	ck_assert_ptr_nonnull(dir);
	for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
		n += d->d_name[0] != '.';
	}
	closedir(dir);
	return n;
}

START_TEST(an_empty_store_has_nothing_to_remove)
{
	AUTO(fixture) struct fixture f = { .store = NULL };
	struct sandbox_gc_result r;

	fixture_init(&f);
	r = collect(&f, (struct sandbox_gc_opts){ .dry_run = false });
	ck_assert_uint_eq(r.sandboxes + r.kept + r.names + r.failed, 0);
	ck_assert_uint_eq(r.store.layers, 1);
	ck_assert(exists(f.dirs.root_fd, "layers/single/", "host-1"));
}
END_TEST

START_TEST(a_live_sandbox_stays_and_keeps_its_layer)
{
	AUTO(fixture) struct fixture f = { .store = NULL };
	AUTO(record) struct record live = RECORD_INIT;
	struct sandbox_gc_result r;

	fixture_init(&f);
	sandbox_make(&f, &live, "web", false);
	r = collect(&f, (struct sandbox_gc_opts){ .dry_run = false });
	ck_assert_uint_eq(r.sandboxes + r.kept + r.names + r.failed, 0);
	ck_assert(has_layer(&f));
	ck_assert(record_is_live(&f.dirs, live.id.text));
	ck_assert(exists(live.dir_fd, "upper/dir", ""));
	ck_assert(exists(f.dirs.runtime_fd, "names/", "web"));
	ck_assert_uint_eq(entries(f.dirs.root_fd, "ids"), 1);
}
END_TEST

START_TEST(a_dead_one_goes_with_all_it_had)
{
	AUTO(fixture) struct fixture f = { .store = NULL };
	AUTO(record) struct record dead = RECORD_INIT;
	struct sandbox_gc_result r;

	fixture_init(&f);
	sandbox_make(&f, &dead, "web", false);
	fd_close(&dead.lock_fd);
	r = collect(&f, (struct sandbox_gc_opts){ .dry_run = true });
	ck_assert_uint_eq(r.sandboxes, 1);
	ck_assert(exists(dead.dir_fd, "upper/dir", "") && has_layer(&f));
	r = collect(&f, (struct sandbox_gc_opts){ .dry_run = false });
	ck_assert_uint_eq(r.sandboxes, 1);
	ck_assert_uint_eq(r.names, 2);
	ck_assert_uint_eq(r.failed, 0);
	ck_assert_uint_eq(entries(f.dirs.runtime_fd, "sandboxes"), 0);
	ck_assert_uint_eq(entries(f.dirs.root_fd, "sandboxes"), 0);
	ck_assert_uint_eq(entries(f.dirs.runtime_fd, "names"), 0);
	ck_assert_uint_eq(entries(f.dirs.root_fd, "ids"), 0);
	ck_assert(!has_layer(&f));
}
END_TEST

START_TEST(files_without_a_live_directory_go)
{
	AUTO(fixture) struct fixture f = { .store = NULL };
	AUTO(record) struct record dead = RECORD_INIT;
	struct sandbox_gc_result r;

	fixture_init(&f);
	sandbox_make(&f, &dead, NULL, false);
	/* A reboot. */
	fd_close(&dead.lock_fd);
	ck_assert_int_eq(file_remove_tree_at(f.dirs.runtime_fd, "sandboxes"), 0);
	r = collect(&f, (struct sandbox_gc_opts){ .dry_run = false });
	ck_assert_uint_eq(r.sandboxes, 1);
	ck_assert_uint_eq(entries(f.dirs.root_fd, "sandboxes"), 0);
	ck_assert_uint_eq(entries(f.dirs.root_fd, "ids"), 0);
	ck_assert(!has_layer(&f));
}
END_TEST

START_TEST(a_kept_one_stays_and_says_why)
{
	AUTO(fixture) struct fixture f = { .store = NULL };
	AUTO(record) struct record dead = RECORD_INIT;
	AUTO(state) struct sandbox_state state = { .code = SANDBOX_PENDING };
	struct error e = ERROR_INIT;
	struct sandbox_gc_result r;

	fixture_init(&f);
	sandbox_make(&f, &dead, "web", true);
	fd_close(&dead.lock_fd);
	r = collect(&f, (struct sandbox_gc_opts){ .dry_run = false });
	ck_assert_uint_eq(r.kept, 0);
	ck_assert(has_layer(&f) && exists(dead.dir_fd, "upper/dir", ""));
	ck_assert_uint_eq(entries(f.dirs.runtime_fd, "sandboxes"), 0);
	ck_assert_uint_eq(entries(f.dirs.runtime_fd, "names"), 0);
	ck_assert_uint_eq(entries(f.dirs.root_fd, "ids"), 0);
	ck_assert_int_eq(state_load(dead.dir_fd, &state, &e), 0);
	ck_assert_int_eq(state.code, SANDBOX_FAILED);
	ck_assert_ptr_nonnull(strstr(state.reason, "keeper"));
	/* Also when it is looked at again. */
	r = collect(&f, (struct sandbox_gc_opts){ .dry_run = false });
	ck_assert_uint_eq(r.sandboxes, 0);
	ck_assert(has_layer(&f));
	r = collect(&f, (struct sandbox_gc_opts){ .kept = true });
	ck_assert_uint_eq(r.kept, 1);
	ck_assert_uint_eq(entries(f.dirs.root_fd, "sandboxes"), 0);
	ck_assert(!has_layer(&f));
}
END_TEST

START_TEST(a_glance_finds_the_dead)
{
	AUTO(fixture) struct fixture f = { .store = NULL };
	AUTO(record) struct record live = RECORD_INIT;
	AUTO(record) struct record dead = RECORD_INIT;
	AUTO(record) struct record kept = RECORD_INIT;

	fixture_init(&f);
	sandbox_glance(&f.dirs, &f.map, 0);
	sandbox_make(&f, &live, "live", false);
	sandbox_glance(&f.dirs, &f.map, 1);
	ck_assert_uint_eq(entries(f.dirs.root_fd, "ids"), 1);
	sandbox_make(&f, &dead, "dead", false);
	sandbox_make(&f, &kept, "kept", true);
	fd_close(&dead.lock_fd);
	fd_close(&kept.lock_fd);
	sandbox_glance(&f.dirs, &f.map, 4711);
	ck_assert_uint_eq(entries(f.dirs.runtime_fd, "sandboxes"), 1);
	ck_assert_uint_eq(entries(f.dirs.root_fd, "sandboxes"), 2);
	ck_assert_uint_eq(entries(f.dirs.runtime_fd, "names"), 1);
	ck_assert_uint_eq(entries(f.dirs.root_fd, "ids"), 1);
	ck_assert(record_is_live(&f.dirs, live.id.text));
	ck_assert(exists(kept.dir_fd, "upper/dir", ""));
	/* The store is not its business. */
	ck_assert(has_layer(&f));
}
END_TEST

START_TEST(many_glances_find_all)
{
	AUTO(fixture) struct fixture f = { .store = NULL };
	struct record live[20];
	struct record dead[20];

	fixture_init(&f);
	for (size_t i = 0; i < ARRAY_SIZE(live); i++) {
		live[i] = (struct record)RECORD_INIT;
		dead[i] = (struct record)RECORD_INIT;
		sandbox_make(&f, &live[i], NULL, false);
		sandbox_make(&f, &dead[i], NULL, false);
		fd_close(&dead[i].lock_fd);
	}
	for (uint32_t i = 0; i < 200; i++) {
		sandbox_glance(&f.dirs, &f.map, i);
	}
	ck_assert_uint_eq(entries(f.dirs.runtime_fd, "sandboxes"), ARRAY_SIZE(live));
	for (size_t i = 0; i < ARRAY_SIZE(live); i++) {
		ck_assert(record_is_live(&f.dirs, live[i].id.text));
		record_done(&live[i]);
		record_done(&dead[i]);
	}
}
END_TEST

START_TEST(what_is_being_made_is_left_alone)
{
	AUTO(fixture) struct fixture f = { .store = NULL };
	autofree char *path = mem_printf("%s/runtime/sandboxes/.new-x", unit_path);
	const struct utimbuf old = { .actime = 1, .modtime = 1 };

	fixture_init(&f);
	ck_assert_int_eq(mkdirat(f.dirs.runtime_fd, "sandboxes", 0700), 0);
	ck_assert_int_eq(mkdirat(f.dirs.runtime_fd, "sandboxes/.new-x", 0700), 0);
	(void)collect(&f, (struct sandbox_gc_opts){ .dry_run = false });
	ck_assert_int_eq(access(path, F_OK), 0);
	ck_assert_int_eq(utime(path, &old), 0);
	(void)collect(&f, (struct sandbox_gc_opts){ .dry_run = false });
	ck_assert_int_eq(access(path, F_OK), -1);
}
END_TEST

START_TEST(leaves_foreign_files_alone)
{
	AUTO(fixture) struct fixture f = { .store = NULL };

	fixture_init(&f);
	ck_assert_int_eq(mkdirat(f.dirs.runtime_fd, "sandboxes", 0700), 0);
	ck_assert_int_eq(mkdirat(f.dirs.runtime_fd, "sandboxes/notes", 0700), 0);
	ck_assert_int_eq(mkdirat(f.dirs.root_fd, "sandboxes", 0700), 0);
	ck_assert_int_eq(mkdirat(f.dirs.root_fd, "sandboxes/notes", 0700), 0);
	ck_assert_int_eq(mkdirat(f.dirs.runtime_fd, "names", 0700), 0);
	ck_assert_int_eq(symlinkat("nowhere", f.dirs.runtime_fd, "names/x"), 0);
	(void)collect(&f, (struct sandbox_gc_opts){ .dry_run = false });
	ck_assert(exists(f.dirs.runtime_fd, "sandboxes/", "notes"));
	ck_assert(exists(f.dirs.root_fd, "sandboxes/", "notes"));
	ck_assert(exists(f.dirs.runtime_fd, "names/", "x"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sweep");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_test(tc, an_empty_store_has_nothing_to_remove);
	tcase_add_test(tc, a_live_sandbox_stays_and_keeps_its_layer);
	tcase_add_test(tc, a_dead_one_goes_with_all_it_had);
	tcase_add_test(tc, files_without_a_live_directory_go);
	tcase_add_test(tc, a_kept_one_stays_and_says_why);
	tcase_add_test(tc, a_glance_finds_the_dead);
	tcase_add_test(tc, many_glances_find_all);
	tcase_add_test(tc, what_is_being_made_is_left_alone);
	tcase_add_test(tc, leaves_foreign_files_alone);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
