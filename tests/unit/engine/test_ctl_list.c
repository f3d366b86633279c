/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes of keepers that are alive, gone, or were never there: found, settled, removed. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include <osbx/clock.h>
#include <osbx/ctl.h>
#include <osbx/fd.h>
#include <osbx/lock.h>
#include <osbx/mem.h>
#include <osbx/record.h>
#include <osbx/request.h>

#include "../unit.h"

struct fixture {
	struct dirs dirs;
};

static void fixture_done(struct fixture *f)
{
	dirs_done(&f->dirs);
}
AUTO_DEFINE(fixture, struct fixture, fixture_done);

static void fixture_init(struct fixture *f)
{
	struct error e = ERROR_INIT;
	autofree char *root = mem_printf("%s/root", unit_path);
	autofree char *runtime = mem_printf("%s/runtime", unit_path);

	*f = (struct fixture){ .dirs = DIRS_INIT };
	setenv("OSBX_ROOT", root, 1);
	setenv("OSBX_RUNTIME", runtime, 1);
	ck_assert_int_eq(dirs_open(&f->dirs, &e), 0);
}

struct wish {
	const char *name;
	enum sandbox_state_code code;
	bool retained;
	bool kept;
	bool alive; /* the lock stays held as long as the record is open */
	int64_t expires_ms;
	int64_t created_ms;
};

/* A sandbox as a keeper leaves it. The record holds the lock. */
static void make(struct fixture *f, const struct wish *w, struct record *r)
{
	AUTO(request) struct sandbox_request req = { .caps = 0 };
	AUTO(state) struct sandbox_state state = { .code = SANDBOX_PENDING };
	struct idmap map = { .mode = IDMAP_SINGLE };
	struct image img = { .is_host = true };
	struct error e = ERROR_INIT;

	request_init(&req);
	req.image = mem_strdup("@host");
	req.name = mem_strdup(w->name);
	req.keep = w->kept;
	record_init(&f->dirs, r);
	ck_assert_int_eq(record_make(&f->dirs, r, w->name, &e), 0);
	ck_assert_int_eq(record_save(r, &req, &img, &map, &e), 0);
	ck_assert_int_eq(mkdirat(r->dir_fd, "upper/dir", 0700), 0);
	state_init(&state, &r->id, w->name, "@host");
	state.retained = w->retained;
	state.kept = w->kept;
	if (w->created_ms) {
		state.created_ms = w->created_ms;
	}
	if (w->code != SANDBOX_PENDING) {
		state_go(&state, SANDBOX_RUNNING);
	}
	if (w->code == SANDBOX_TERMINATED) {
		state_end(&state, w->code, STATE_REASON_EXITED, NULL);
		state.exit_status = 3;
	}
	state.expires_ms = w->expires_ms;
	ck_assert_int_eq(state_save(&state, r->live_fd, false, &e), 0);
	if (!w->alive) {
		fd_close(&r->lock_fd);
	}
}

static bool has(int dir_fd, const struct id *id, const char *tail)
{
	autofree char *path = mem_printf("sandboxes/%s%s", id->text, tail);

	return faccessat(dir_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static size_t count(struct fixture *f, bool all)
{
	AUTO(sandbox_list) struct sandbox_list l = { .n = 0 };
	struct error e = ERROR_INIT;

	ck_assert_int_eq(sandbox_list(&f->dirs, all, &l, &e), 0);
	return l.n;
}

START_TEST(nothing_is_listed_where_nothing_is)
{
	AUTO(fixture) struct fixture f = { .dirs = DIRS_INIT };
	AUTO(sandbox_info) struct sandbox_info info = { .is_kept = false };
	struct error e = ERROR_INIT;

	fixture_init(&f);
	ck_assert_uint_eq(count(&f, true), 0);
	ck_assert_int_eq(sandbox_find(&f.dirs, "nobody", &info, &e), -1);
	ck_assert_int_eq(e.code, ERRC_NOT_FOUND);
	error_clear(&e);
	ck_assert_int_eq(sandbox_find(&f.dirs, "", &info, &e), -1);
	ck_assert_int_eq(e.code, ERRC_NOT_FOUND);
	error_clear(&e);
	ck_assert_int_eq(sandbox_find(&f.dirs, "../names", &info, &e), -1);
	ck_assert_int_eq(e.code, ERRC_NOT_FOUND);
}
END_TEST

/* What a lost or ended sandbox becomes, seen by the next command. */
static const struct {
	struct wish wish;
	bool listed;
	enum sandbox_state_code code;
	bool live;  /* the live directory is still there */
	bool upper; /* so are the files */
} settle_cases[] = {
	{ { .code = SANDBOX_RUNNING, .retained = true, .alive = true }, true, SANDBOX_RUNNING, true,
			true },
	{ { .code = SANDBOX_RUNNING, .alive = true }, true, SANDBOX_RUNNING, true, true },
	{ { .code = SANDBOX_RUNNING, .retained = true }, true, SANDBOX_FAILED, true, false },
	{ { .code = SANDBOX_RUNNING }, false, 0, false, false },
	{ { .code = SANDBOX_RUNNING, .kept = true }, true, SANDBOX_FAILED, false, true },
	{ { .code = SANDBOX_RUNNING, .retained = true, .kept = true }, true, SANDBOX_FAILED, true,
			true },
	/* Never ran. */
	{ { .code = SANDBOX_PENDING, .retained = true }, false, 0, false, false },
	{ { .code = SANDBOX_PENDING, .kept = true }, false, 0, false, false },
	{ { .code = SANDBOX_TERMINATED, .retained = true }, true, SANDBOX_TERMINATED, true, true },
	{ { .code = SANDBOX_TERMINATED, .retained = true, .expires_ms = 1 }, false, 0, false,
			false },
	{ { .code = SANDBOX_TERMINATED }, false, 0, false, false },
	/* A live one expires by its keeper, not by us. */
	{ { .code = SANDBOX_RUNNING, .alive = true, .expires_ms = 1 }, true, SANDBOX_RUNNING, true,
			true },
};

START_TEST(settles)
{
	AUTO(fixture) struct fixture f = { .dirs = DIRS_INIT };
	AUTO(record) struct record r = RECORD_INIT;
	AUTO(sandbox_list) struct sandbox_list l = { .n = 0 };
	struct error e = ERROR_INIT;

	fixture_init(&f);
	make(&f, &settle_cases[_i].wish, &r);
	for (int again = 0; again < 2; again++) {
		sandbox_list_done(&l);
		ck_assert_int_eq(sandbox_list(&f.dirs, true, &l, &e), 0);
		ck_assert_uint_eq(l.n, settle_cases[_i].listed ? 1 : 0);
		ck_assert_int_eq(has(f.dirs.runtime_fd, &r.id, ""), settle_cases[_i].live);
		ck_assert_int_eq(has(f.dirs.root_fd, &r.id, "/upper/dir"), settle_cases[_i].upper);
	}
	if (l.n > 0) {
		ck_assert_int_eq(l.v[0].state.code, settle_cases[_i].code);
		if (settle_cases[_i].code == SANDBOX_FAILED) {
			ck_assert_str_eq(l.v[0].state.reason, STATE_REASON_LOST);
		}
	}
}
END_TEST

START_TEST(an_innocent_process_is_not_killed)
{
	AUTO(fixture) struct fixture f = { .dirs = DIRS_INIT };
	AUTO(record) struct record r = RECORD_INIT;
	AUTO(state) struct sandbox_state state = { .code = SANDBOX_PENDING };
	struct error e = ERROR_INIT;
	int status = 0;
	const struct wish w = { .code = SANDBOX_RUNNING, .retained = true };

	fixture_init(&f);
	make(&f, &w, &r);
	pid_t victim = fork();

	if (victim == 0) {
		pause();
		_exit(0);
	}
	ck_assert_int_eq(state_load(r.live_fd, &state, &e), 0);
	state.pid = victim;
	/* Started at another time than this one. */
	state.pid_start = state_pid_start(victim) + (_i == 0 ? 1 : 0);
	ck_assert_int_eq(state_save(&state, r.live_fd, false, &e), 0);
	ck_assert_uint_eq(count(&f, true), 1);
	ck_assert_int_eq(waitpid(victim, &status, WNOHANG), _i == 0 ? 0 : victim);
	if (_i == 0) {
		kill(victim, SIGKILL);
		waitpid(victim, &status, 0);
	}
}
END_TEST

START_TEST(finds_by_id_prefix_and_name)
{
	AUTO(fixture) struct fixture f = { .dirs = DIRS_INIT };
	AUTO(record) struct record old = RECORD_INIT;
	AUTO(record) struct record new = RECORD_INIT;
	AUTO(sandbox_info) struct sandbox_info info = { .is_kept = false };
	struct error e = ERROR_INIT;
	const struct wish ended = {
		.name = "web", .code = SANDBOX_TERMINATED, .retained = true, .created_ms = 1
	};
	const struct wish alive = { .name = "web", .code = SANDBOX_RUNNING, .alive = true };
	char prefix[ID_LEN + 1];

	fixture_init(&f);
	make(&f, &ended, &old);
	ck_assert_int_eq(sandbox_find(&f.dirs, "web", &info, &e), 0);
	ck_assert_str_eq(info.state.id.text, old.id.text);
	sandbox_info_done(&info);
	/* The name of one that has ended is free. */
	make(&f, &alive, &new);
	ck_assert_int_eq(sandbox_find(&f.dirs, "web", &info, &e), 0);
	ck_assert_str_eq(info.state.id.text, new.id.text);
	sandbox_info_done(&info);
	ck_assert_int_eq(sandbox_find(&f.dirs, old.id.text, &info, &e), 0);
	ck_assert_int_eq(info.state.code, SANDBOX_TERMINATED);
	sandbox_info_done(&info);
	memcpy(prefix, old.id.text, sizeof(prefix));
	prefix[8] = '\0';
	ck_assert_int_eq(sandbox_find(&f.dirs, prefix, &info, &e), 0);
	ck_assert_str_eq(info.state.id.text, old.id.text);
	prefix[3] = '\0';
	ck_assert_int_eq(sandbox_find(&f.dirs, prefix, &info, &e), -1);
	ck_assert_int_eq(e.code, ERRC_NOT_FOUND);
	ck_assert_uint_eq(count(&f, true), 2);
	ck_assert_uint_eq(count(&f, false), 1);
}
END_TEST

START_TEST(removes_what_has_ended)
{
	AUTO(fixture) struct fixture f = { .dirs = DIRS_INIT };
	AUTO(record) struct record r = RECORD_INIT;
	struct error e = ERROR_INIT;
	const struct wish w = {
		.name = "web", .code = SANDBOX_TERMINATED, .retained = true, .kept = _i == 1
	};

	fixture_init(&f);
	make(&f, &w, &r);
	for (int again = 0; again < 2; again++) {
		ck_assert_int_eq(sandbox_remove(&f.dirs, &r.id, false, &e), 0);
		ck_assert(!has(f.dirs.runtime_fd, &r.id, ""));
		ck_assert(!has(f.dirs.root_fd, &r.id, ""));
		ck_assert_int_ne(faccessat(f.dirs.runtime_fd, "names/web", F_OK,
						 AT_SYMLINK_NOFOLLOW),
				0);
	}
}
END_TEST

START_TEST(does_not_remove_what_lives)
{
	AUTO(fixture) struct fixture f = { .dirs = DIRS_INIT };
	AUTO(record) struct record r = RECORD_INIT;
	struct error e = ERROR_INIT;
	const struct wish w = { .code = SANDBOX_RUNNING, .alive = true };

	fixture_init(&f);
	make(&f, &w, &r);
	ck_assert_int_eq(sandbox_remove(&f.dirs, &r.id, false, &e), -1);
	ck_assert_int_eq(e.code, ERRC_CONFLICT);
	ck_assert(has(f.dirs.root_fd, &r.id, "/upper/dir"));
}
END_TEST

/* After a restart of the machine only ROOT is left. */
START_TEST(a_restart_leaves_what_was_kept)
{
	AUTO(fixture) struct fixture f = { .dirs = DIRS_INIT };
	AUTO(record) struct record kept = RECORD_INIT;
	AUTO(record) struct record other = RECORD_INIT;
	AUTO(sandbox_list) struct sandbox_list l = { .n = 0 };
	struct error e = ERROR_INIT;
	const struct wish with = { .name = "k", .code = SANDBOX_RUNNING, .kept = true };
	const struct wish without = { .code = SANDBOX_RUNNING, .retained = true };

	fixture_init(&f);
	make(&f, &with, &kept);
	make(&f, &without, &other);
	ck_assert_int_eq(file_remove_tree_at(f.dirs.runtime_fd, "sandboxes"), 0);
	ck_assert_int_eq(sandbox_list(&f.dirs, true, &l, &e), 0);
	ck_assert_uint_eq(l.n, 1);
	ck_assert_str_eq(l.v[0].state.id.text, kept.id.text);
	ck_assert_str_eq(l.v[0].state.name, "k");
	ck_assert_int_eq(l.v[0].state.code, SANDBOX_FAILED);
	ck_assert(l.v[0].is_kept);
	ck_assert_int_eq(sandbox_remove(&f.dirs, &kept.id, false, &e), 0);
	ck_assert(!has(f.dirs.root_fd, &kept.id, ""));
}
END_TEST

START_TEST(nobody_listens)
{
	AUTO(fixture) struct fixture f = { .dirs = DIRS_INIT };
	AUTO(record) struct record r = RECORD_INIT;
	struct error e = ERROR_INIT;
	const struct wish w = { .code = SANDBOX_TERMINATED, .retained = true };
	struct id unknown;

	fixture_init(&f);
	make(&f, &w, &r);
	ck_assert_int_eq(ctl_request(&f.dirs, &r.id, CTL_MSG_PAUSE, NULL, 0, &e), -1);
	ck_assert_int_eq(e.code, ERRC_CONFLICT);
	error_clear(&e);
	id_new(&unknown);
	ck_assert_int_eq(ctl_request(&f.dirs, &unknown, CTL_MSG_PAUSE, NULL, 0, &e), -1);
	ck_assert_int_eq(e.code, ERRC_CONFLICT);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("ctl_list");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_test(tc, nothing_is_listed_where_nothing_is);
	tcase_add_loop_test(tc, settles, 0, ARRAY_SIZE(settle_cases));
	tcase_add_loop_test(tc, an_innocent_process_is_not_killed, 0, 2);
	tcase_add_test(tc, finds_by_id_prefix_and_name);
	tcase_add_loop_test(tc, removes_what_has_ended, 0, 2);
	tcase_add_test(tc, does_not_remove_what_lives);
	tcase_add_test(tc, a_restart_leaves_what_was_kept);
	tcase_add_test(tc, nobody_listens);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
