/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * A sandbox is alive while somebody holds RUNTIME/sandboxes/ID/lock. sandbox_gc takes the store
 * exclusively, so that no sandbox is between looking up its image and recording it, and then looks
 * at, in this order:
 *
 *   RUNTIME/sandboxes/ID  lock free: its cgroup is killed, its files go. The lock is held
 * meanwhile. A detached one that has ended stays, until it is removed or expires ROOT/sandboxes/ID
 * without the former: left by a kill, or by a reboot RUNTIME/names/NAME, ROOT/ids/N   of sandboxes
 * that are not alive
 *
 * What is in use, or was meant to be kept, adds to the list of what the store keeps.
 *
 * sandbox_glance is what each run spends on it: a few entries, from a random place on, without the
 * store.
 *
 * Directories under a temporary name (.new-ID) belong to a creator that has not locked yet, or to
 * one that was killed; time tells which.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/cgroup.h>
#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/lock.h>
#include <osbx/log.h>
#include <osbx/mem.h>
#include <osbx/record.h>
#include <osbx/sandbox.h>
#include <osbx/state.h>
#include <osbx/str.h>

#define STAGED_AGE_S   60
#define GLANCE_ENTRIES 8
#define NEW_PREFIX     ".new-"

struct sweep {
	const struct dirs *dirs;
	struct store *store;
	const struct idmap *map;
	const struct sandbox_gc_opts *opts;
	struct sandbox_gc_result result;
	struct strv refs; /* what the store keeps */
	bool is_glance;   /* only what nobody will ask for */
	size_t skip;      /* so many entries are passed over, */
	size_t left;      /* and so many looked at; 0: all */
};

/* Names that are no news: most sandboxes are of few images. */
static int refs_merge(struct sweep *w, const struct strv *refs)
{
	strv_for_each(refs, i) {
		bool known = false;

		for (size_t j = 0; j < w->refs.n && !known; j++) {
			known = str_eq(w->refs.v[j], refs->v[i]);
		}
		if (!known && strv_add(&w->refs, refs->v[i]) < 0) {
			return -E2BIG;
		}
	}
	return 0;
}

/* Who is asked for what the store must keep. */
enum refs_of {
	REFS_OF_LIVE, /* in any case */
	REFS_OF_DEAD, /* only if its files are to be kept */
};

/* Add what a sandbox's request.json names to the list. 1: its files were meant to be kept. */
static int refs_add(struct sweep *w, const char *id, enum refs_of of)
{
	autofree char *path = mem_printf("sandboxes/%s", id);
	autoclose int dir_fd = fd_open_at(w->dirs->root_fd, path, O_RDONLY | O_DIRECTORY, 0);
	AUTO(strv) struct strv refs = STRV_INIT;
	bool keep = false;

	if (dir_fd < 0 || record_load_refs(dir_fd, &keep, &refs) < 0) {
		return 0;
	}
	if (of == REFS_OF_DEAD && (!keep || w->opts->kept)) {
		return keep;
	}
	return refs_merge(w, &refs) < 0 ? -E2BIG : keep;
}

/* The keeper of a kept sandbox is gone without a last word: say so in its place. */
static void state_close(const struct sweep *w, const char *id, int live_fd)
{
	autofree char *path = mem_printf("sandboxes/%s", id);
	autoclose int dir_fd = fd_open_at(w->dirs->root_fd, path, O_RDONLY | O_DIRECTORY, 0);
	AUTO(state) struct sandbox_state state = { .code = SANDBOX_PENDING };
	struct error e = ERROR_INIT;

	if (dir_fd < 0 || state_load(live_fd, &state, &e) < 0) {
		return;
	}
	if (!state_is_final(&state)) {
		state_end(&state, SANDBOX_FAILED, STATE_REASON_LOST, "its keeper was lost");
	}
	if (state_save(&state, dir_fd, true, &e) < 0) {
		log_debug("state of sandbox %s is not kept", id);
	}
}

/* Remove the files of a dead sandbox. 0 or -errno. */
static int files_sweep(const struct sweep *w, const char *id)
{
	autoclose int root_fd =
			fd_open_at(w->dirs->root_fd, "sandboxes", O_RDONLY | O_DIRECTORY, 0);

	if (w->opts->dry_run || root_fd == -ENOENT) {
		return 0;
	}
	return root_fd < 0 ? root_fd : store_remove_tree(w->map, root_fd, id);
}

/* Files of a dead sandbox: kept ones stay unless asked for. */
static int files_judge(struct sweep *w, const char *id, bool *out_keep)
{
	int keep = refs_add(w, id, REFS_OF_DEAD);

	if (keep < 0) {
		return keep;
	}
	*out_keep = keep > 0;
	if (keep > 0 && !w->opts->kept) {
		return 0;
	}
	int r = files_sweep(w, id);

	w->result.kept += r == 0 && keep > 0;
	return r;
}

/* The processes of a dead sandbox, wherever its keeper had put them. 0 or -errno. */
static int processes_sweep(const char *id, int live_fd)
{
	AUTO(state) struct sandbox_state state = { .code = SANDBOX_PENDING };
	struct error e = ERROR_INIT;
	struct id text;

	memcpy(text.text, id, sizeof(text.text));
	return cgroup_sweep(&text, state_load(live_fd, &state, &e) < 0 ? NULL : state.cgroup);
}

/* A live directory whose lock is free. The lock is held until it is gone. */
static int dead_sweep(struct sweep *w, const char *id, int live_fd)
{
	autofree char *path = mem_printf("sandboxes/%s", id);
	bool keep = false;

	w->result.sandboxes++;
	int r = w->opts->dry_run ? 0 : processes_sweep(id, live_fd);
	int n = files_judge(w, id, &keep);

	r = r < 0 ? r : n;
	if (w->opts->dry_run || r < 0) {
		return r;
	}
	if (keep && !w->opts->kept) {
		state_close(w, id, live_fd);
	}
	return file_remove_tree_at(w->dirs->runtime_fd, path);
}

/* Has it ended as it should, and is its record to stay? What a lost keeper left is not. */
static bool is_retained(const struct sweep *w, int live_fd)
{
	AUTO(state) struct sandbox_state state = { .code = SANDBOX_PENDING };
	struct error e = ERROR_INIT;

	if (w->opts->kept || state_load(live_fd, &state, &e) < 0) {
		return false;
	}
	if (w->is_glance) {
		return state.retained;
	}
	bool is_lost = state.reason && str_eq(state.reason, STATE_REASON_LOST);
	bool is_expired = state.expires_ms != 0 && state.expires_ms <= clock_wall_ms();

	return state_is_final(&state) && state.retained && !is_lost && !is_expired;
}

static int live_sweep(struct sweep *w, const char *id)
{
	autofree char *path = mem_printf("sandboxes/%s", id);
	autoclose int live_fd = fd_open_at(
			w->dirs->runtime_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (live_fd < 0) {
		return live_fd == -ENOENT ? 0 : live_fd;
	}
	/* Shared: an exclusive one others would take for a sign of life. */
	autoclose int probe_fd = lock_try_at(live_fd, "lock", LOCK_MODE_SHARED);
	bool is_live = probe_fd == -EWOULDBLOCK;

	if (is_live || (probe_fd >= 0 && is_retained(w, live_fd))) {
		int r = refs_add(w, id, is_live ? REFS_OF_LIVE : REFS_OF_DEAD);

		return r < 0 ? r : 0;
	}
	fd_close(&probe_fd);
	autoclose int lock_fd = lock_try_at(live_fd, "lock", LOCK_MODE_EXCLUSIVE);

	if (lock_fd == -EWOULDBLOCK) {
		return 0; /* somebody else has come first */
	}
	return lock_fd < 0 ? lock_fd : dead_sweep(w, id, live_fd);
}

static int staged_sweep(struct sweep *w, const char *name)
{
	autofree char *path = mem_printf("sandboxes/%s", name);
	struct stat st;

	if (fstatat(w->dirs->runtime_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			clock_wall_ms() / 1000 - st.st_mtim.tv_sec < STAGED_AGE_S ||
			w->opts->dry_run) {
		return 0;
	}
	return file_remove_tree_at(w->dirs->runtime_fd, path);
}

static int live_entry(struct sweep *w, const char *name)
{
	if (str_after(name, NEW_PREFIX)) {
		return staged_sweep(w, name);
	}
	return id_is_valid(name) ? live_sweep(w, name) : 0;
}

/* Files whose live directory is gone too. */
static int files_entry(struct sweep *w, const char *name)
{
	if (!id_is_valid(name)) {
		return 0;
	}
	autofree char *path = mem_printf("sandboxes/%s", name);

	/* What has one was looked at before, or is in the making. */
	if (faccessat(w->dirs->runtime_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
		return 0;
	}
	bool keep = false;
	int r = files_judge(w, name, &keep);

	w->result.sandboxes += r == 0 && !keep;
	return r;
}

/* A link whose target is an id of a sandbox that is not alive. */
static int link_sweep(struct sweep *w, int root_fd, const char *folder, const char *name)
{
	autofree char *path = mem_printf("%s/%s", folder, name);
	struct id id = { "" };
	ssize_t n = readlinkat(root_fd, path, id.text, sizeof(id.text));

	if (n != ID_LEN) {
		return 0; /* the lock of the folder, or gone */
	}
	id.text[n] = '\0';
	if (!id_is_valid(id.text) || record_is_live(w->dirs, id.text)) {
		return 0;
	}
	w->result.names++;
	if (w->opts->dry_run) {
		return 0;
	}
	return unlinkat(root_fd, path, 0) < 0 && errno != ENOENT ? -errno : 0;
}

static int name_entry(struct sweep *w, const char *name)
{
	return link_sweep(w, w->dirs->runtime_fd, "names", name);
}

static int ids_entry(struct sweep *w, const char *name)
{
	return link_sweep(w, w->dirs->root_fd, "ids", name);
}

struct sweep_rule {
	const char *folder;
	bool in_runtime;
	bool locked; /* by folder/.lock, as whoever takes a left-over name does */
	int (*entry)(struct sweep *w, const char *name);
};

static const struct sweep_rule sweep_rules[] = {
	{ "sandboxes", true, false, live_entry },
	{ "sandboxes", false, false, files_entry },
	{ "names", true, true, name_entry },
	{ "ids", false, false, ids_entry },
};

static int rule_fail(struct sweep *w, const char *folder, const char *name, int r)
{
	log_debug("gc: %s/%s: %s", folder, name, strerror(-r));
	w->result.failed++;
	/* Without the whole list nothing of the store may go. */
	return r == -E2BIG ? r : 0;
}

static int folder_walk(struct sweep *w, const struct sweep_rule *rule, DIR *dir)
{
	int r = 0;

	/* Entries that go meanwhile are met or not; others are met once. */
	for (struct dirent *d = readdir(dir); d && r == 0; d = readdir(dir)) {
		if (str_eq(d->d_name, ".") || str_eq(d->d_name, "..")) {
			continue;
		}
		if (w->skip > 0) {
			w->skip--;
			continue;
		}
		r = rule->entry(w, d->d_name);
		r = r < 0 ? rule_fail(w, rule->folder, d->d_name, r) : 0;
		if (w->left > 0 && --w->left == 0) {
			break;
		}
	}
	return r;
}

static int rule_run(struct sweep *w, const struct sweep_rule *rule, struct error *e)
{
	int root_fd = rule->in_runtime ? w->dirs->runtime_fd : w->dirs->root_fd;
	const char *root = rule->in_runtime ? w->dirs->runtime : w->dirs->root;
	int fd = fd_open_at(root_fd, rule->folder, O_RDONLY | O_DIRECTORY, 0);

	if (fd == -ENOENT) {
		return 0;
	}
	autoclose int lock_fd = fd >= 0 && rule->locked
						? lock_open_at(fd, ".lock", LOCK_MODE_EXCLUSIVE)
						: -1;
	DIR *dir = fd < 0 || (rule->locked && lock_fd < 0) ? NULL : fdopendir(fd);

	if (!dir) {
		int sysno = fd < 0 ? -fd : rule->locked && lock_fd < 0 ? -lock_fd : errno;

		fd_close(&fd);
		return error_sys(e, sysno, "read %s/%s", root, rule->folder);
	}
	int r = folder_walk(w, rule, dir);

	(void)closedir(dir);
	return r < 0 ? error_set(e, ERRC_LIMIT, "sandboxes of too many images for one gc") : 0;
}

static int sweep_run(struct sweep *w, struct error *e)
{
	autoclose int hold_fd = store_hold(w->store, LOCK_MODE_EXCLUSIVE, e);

	if (hold_fd < 0) {
		return -1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(sweep_rules); i++) {
		if (rule_run(w, &sweep_rules[i], e) < 0) {
			return -1;
		}
	}
	return store_gc(w->store, w->map, &w->refs, w->opts->dry_run, &w->result.store, e);
}

int sandbox_gc(const struct dirs *dirs, struct store *st, const struct idmap *map,
		const struct sandbox_gc_opts *opts, struct sandbox_gc_result *out_result,
		struct error *e)
{
	struct sweep w = { .dirs = dirs, .store = st, .map = map, .opts = opts };
	int r = sweep_run(&w, e);

	strv_done(&w.refs);
	if (r == 0) {
		*out_result = w.result;
	}
	return r;
}

/* Sandboxes beside the caller's own, as far as the file system says; at least one if it does not.
 */
static size_t others_count(const struct dirs *dirs)
{
	struct stat st;

	if (fstatat(dirs->runtime_fd, "sandboxes", &st, AT_SYMLINK_NOFOLLOW) < 0) {
		return 0;
	}
	return st.st_nlink >= 2 ? st.st_nlink - 2 : 1;
}

void sandbox_glance(const struct dirs *dirs, const struct idmap *map, uint32_t random)
{
	const struct sandbox_gc_opts opts = { .dry_run = false };
	struct sweep w = { .dirs = dirs, .map = map, .opts = &opts };
	struct error e = ERROR_INIT;
	size_t n = others_count(dirs);

	if (n == 0) {
		return;
	}
	w.is_glance = true;
	w.left = GLANCE_ENTRIES;
	w.skip = n > GLANCE_ENTRIES ? random % (n - GLANCE_ENTRIES + 1) : 0;
	for (size_t i = 0; i < ARRAY_SIZE(sweep_rules); i++) {
		/* What a dead one had besides is looked for only when there was one. */
		if ((i == 0 || w.result.sandboxes > 0) && rule_run(&w, &sweep_rules[i], &e) < 0) {
			break;
		}
		w.skip = 0;
		w.left = 0;
	}
	strv_done(&w.refs);
}
