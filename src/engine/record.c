/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <osbx/ctl_proto.h>
#include <osbx/execd_proto.h>
#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/lock.h>
#include <osbx/mem.h>
#include <osbx/record.h>
#include <osbx/state.h>
#include <osbx/store.h>
#include <osbx/str.h>
#include <osbx/sys.h>

#define SANDBOXES "sandboxes"
#define NAMES     "names"
#define IDS       "ids"

/* "sandboxes/.new-ID" and the like, relative to one of the two roots. */
struct place_name {
	char text[96];
};

static struct place_name place_in(const char *folder, const char *prefix, const char *name)
{
	struct place_name p;
	int n = snprintf(p.text, sizeof(p.text), "%s/%s%s", folder, prefix, name);

	assert(n > 0 && (size_t)n < sizeof(p.text));
	return p;
}

/* mkdir below a folder that is made when it is missing: the common case is one call. */
static int make_dir(int root_fd, const char *folder, const char *path)
{
	for (int tries = 0;; tries++) {
		if (mkdirat(root_fd, path, 0700) == 0) {
			return 0;
		}
		int r = errno == ENOENT && tries == 0 ? file_mkdir_at(root_fd, folder, 0700)
						      : -errno;

		if (r < 0) {
			return r;
		}
	}
}

static int make_link(int root_fd, const char *folder, const char *target, const char *path)
{
	for (int tries = 0;; tries++) {
		if (symlinkat(target, root_fd, path) == 0) {
			return 0;
		}
		int r = errno == ENOENT && tries == 0 ? file_mkdir_at(root_fd, folder, 0700)
						      : -errno;

		if (r < 0) {
			return r;
		}
	}
}

static void record_close(struct record *r)
{
	fd_close(&r->dir_fd);
	fd_close(&r->live_fd);
	fd_close(&r->lock_fd);
}

static int live_make(const struct dirs *dirs, struct record *r)
{
	struct place_name staged = place_in(SANDBOXES, ".new-", r->id.text);
	struct place_name final = place_in(SANDBOXES, "", r->id.text);
	int n = make_dir(dirs->runtime_fd, SANDBOXES, staged.text);

	if (n < 0) {
		return n;
	}
	r->live_fd = fd_open_at(dirs->runtime_fd, staged.text, O_RDONLY | O_DIRECTORY, 0);
	if (r->live_fd < 0) {
		return r->live_fd;
	}
	r->lock_fd = lock_open_at(r->live_fd, "lock", LOCK_MODE_EXCLUSIVE);
	if (r->lock_fd < 0) {
		return r->lock_fd;
	}
	return renameat(dirs->runtime_fd, staged.text, dirs->runtime_fd, final.text) < 0 ? -errno
											 : 0;
}

static int files_make(const struct dirs *dirs, struct record *r)
{
	struct place_name name = place_in(SANDBOXES, "", r->id.text);
	int n = make_dir(dirs->root_fd, SANDBOXES, name.text);

	if (n < 0) {
		return n;
	}
	r->dir_fd = fd_open_at(dirs->root_fd, name.text, O_RDONLY | O_DIRECTORY, 0);
	if (r->dir_fd < 0) {
		return r->dir_fd;
	}
	if (mkdirat(r->dir_fd, "upper", 0755) < 0 || mkdirat(r->dir_fd, "work", 0700) < 0) {
		return -errno;
	}
	return 0;
}

/* Id that a name stands for, into out. 0 or -errno. */
static int name_read(const struct dirs *dirs, const char *path, struct id *out)
{
	ssize_t n = readlinkat(dirs->runtime_fd, path, out->text, sizeof(out->text));

	if (n < 0) {
		return -errno;
	}
	if ((size_t)n >= sizeof(out->text)) {
		return -EBADMSG;
	}
	out->text[n] = '\0';
	return id_is_valid(out->text) ? 0 : -EBADMSG;
}

/* A name that a dead sandbox left is removed under a lock: between the look at its owner and the
 * removal nobody else may have done the same and the name be taken anew. */
static int name_clear_dead(const struct dirs *dirs, const char *path, struct id *out_owner)
{
	autoclose int lock_fd = lock_open_at(dirs->runtime_fd, NAMES "/.lock", LOCK_MODE_EXCLUSIVE);
	struct id owner = { "" };

	if (lock_fd < 0) {
		return lock_fd;
	}
	int r = name_read(dirs, path, &owner);

	if (r == -ENOENT) {
		return 0;
	}
	if (r == 0 && record_is_live(dirs, owner.text)) {
		*out_owner = owner;
		return -EEXIST;
	}
	return unlinkat(dirs->runtime_fd, path, 0) < 0 && errno != ENOENT ? -errno : 0;
}

static int name_take(const struct dirs *dirs, struct record *r, const char *name, struct error *e)
{
	struct place_name path = place_in(NAMES, "", name);
	struct id owner = { "" };
	int n = make_link(dirs->runtime_fd, NAMES, r->id.text, path.text);

	if (n == -EEXIST) {
		n = name_clear_dead(dirs, path.text, &owner);
		if (n == 0) {
			n = make_link(dirs->runtime_fd, NAMES, r->id.text, path.text);
		}
	}
	if (n == -EEXIST) {
		(void)error_set(e, ERRC_CONFLICT, "name %s: in use by sandbox %s", name,
				owner.text[0] ? owner.text : "of another command");
		return error_hint(e, "choose another --name, or end that sandbox first");
	}
	if (n < 0) {
		return error_sys(e, -n, "name %s", name);
	}
	r->name = mem_strdup(name);
	return 0;
}

int record_free_name(const struct dirs *dirs, const char *name, const char *id)
{
	struct place_name path = place_in(NAMES, "", name);
	struct id owner = { "" };
	int r = name_read(dirs, path.text, &owner);

	if (r == -ENOENT || (r == 0 && !str_eq(owner.text, id))) {
		return 0;
	}
	return unlinkat(dirs->runtime_fd, path.text, 0) < 0 && errno != ENOENT ? -errno : 0;
}

static void live_remove(const struct dirs *dirs, const struct record *r, const char *prefix)
{
	struct place_name name = place_in(SANDBOXES, prefix, r->id.text);

	if (r->live_fd >= 0) {
		(void)unlinkat(r->live_fd, EXECD_SOCKET, 0);
		(void)unlinkat(r->live_fd, CTL_SOCKET, 0);
		(void)unlinkat(r->live_fd, STATE_FILE, 0);
		(void)unlinkat(r->live_fd, "lock", 0);
	}
	if (unlinkat(dirs->runtime_fd, name.text, AT_REMOVEDIR) < 0 && errno == ENOTEMPTY) {
		(void)!file_remove_tree_at(dirs->runtime_fd, name.text);
	}
}

void record_init(const struct dirs *dirs, struct record *out_record)
{
	*out_record = (struct record)RECORD_INIT;
	id_new(&out_record->id);
	out_record->path = mem_printf("%s/" SANDBOXES "/%s", dirs->root, out_record->id.text);
}

int record_make(const struct dirs *dirs, struct record *r, const char *name, struct error *e)
{
	int n = live_make(dirs, r);

	if (n < 0) {
		live_remove(dirs, r, ".new-");
		record_close(r);
		return error_sys(e, -n, "make a sandbox's directory in %s", dirs->runtime);
	}
	n = files_make(dirs, r);
	if (n < 0) {
		(void)error_sys(e, -n, "make a sandbox's directory in %s", dirs->root);
	}
	if (n < 0 || (name && name_take(dirs, r, name, e) < 0)) {
		struct idmap none = { .mode = IDMAP_SINGLE };
		struct error second = ERROR_INIT;

		(void)!record_remove(dirs, r, &none, -1, 0, &second);
		record_close(r);
		return -1;
	}
	return 0;
}

void record_done(struct record *r)
{
	if (!r) {
		return;
	}
	free(TAKE_PTR(r->path));
	free(TAKE_PTR(r->name));
	record_close(r);
}

/* Out of the random digits of its id. */
uint32_t record_number(const struct record *r)
{
	uint32_t number = 0;

	for (size_t i = 0; i < 8; i++) {
		char c = r->id.text[i];

		number = number << 4 | (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	return number;
}

int record_take_ids(const struct dirs *dirs, struct record *r, struct idmap *map, struct error *e)
{
	uint32_t first = 0;
	uint32_t count = 0;

	idmap_root_range(&first, &count);
	uint32_t slots = count / IDMAP_SANDBOX_IDS;
	/* From a random place on, so that the first free one is found at once. */
	uint32_t start = slots > 0 ? record_number(r) % slots : 0;

	for (uint32_t i = 0; i < slots; i++) {
		uint32_t slot = (start + i) % slots;
		char number[16];

		(void)snprintf(number, sizeof(number), "%u", slot);
		struct place_name path = place_in(IDS, "", number);
		int n = make_link(dirs->root_fd, IDS, r->id.text, path.text);

		if (n == 0) {
			r->slot = slot;
			idmap_set_first(map, first + slot * IDMAP_SANDBOX_IDS);
			return 0;
		}
		if (n != -EEXIST) {
			return error_sys(e, -n, "take an id range in %s/" IDS, dirs->root);
		}
	}
	(void)error_set(e, ERRC_LIMIT, "all %u ranges of ids are in use", slots);
	return error_hint(e, "osbx gc frees those of sandboxes that are gone");
}

int record_give(const struct record *r, const struct idmap *map, struct error *e)
{
	uid_t uid = idmap_outside(map->uids, map->uids_n, 0);
	gid_t gid = idmap_outside(map->gids, map->gids_n, 0);

	if (map->mode != IDMAP_SHARED) {
		return 0;
	}
	if (fchownat(r->dir_fd, "upper", uid, gid, 0) < 0 ||
			fchownat(r->dir_fd, "work", uid, gid, 0) < 0) {
		return error_sys(e, errno, "owner of the sandbox's directories");
	}
	return 0;
}

int record_set_root(const struct record *r, int lower_fd, struct error *e)
{
	struct stat st;

	if (fstat(lower_fd, &st) < 0) {
		return error_sys(e, errno, "root of the image");
	}
	/* An ordinary user's files belong to the user, which is container root. */
	if (geteuid() == 0 && (st.st_uid != 0 || st.st_gid != 0) &&
			fchownat(r->dir_fd, "upper", st.st_uid, st.st_gid, 0) < 0) {
		return error_sys(e, errno, "owner of the sandbox's root");
	}
	if (fchmodat(r->dir_fd, "upper", (st.st_mode & 07777) | 0555, 0) < 0) {
		return error_sys(e, errno, "mode of the sandbox's root");
	}
	return 0;
}

/* Second half of tree_remove, in a child: as root of the sandbox's user namespace. */
static int remove_inside(int userns_fd, int dir_fd, const char *name)
{
	int r = sys_setns(userns_fd, CLONE_NEWUSER);

	r = r < 0 ? r : sys_setresgid(0);
	r = r < 0 ? r : sys_setresuid(0);
	return r < 0 ? r : file_remove_tree_at(dir_fd, name);
}

/* Remove a tree that may hold files of subordinate ids. */
static int tree_remove(
		const struct record *r, const struct idmap *map, int userns_fd, const char *name)
{
	int n = file_remove_tree_at(r->dir_fd, name);
	int status = 0;

	if (n == 0 || map->mode != IDMAP_SUBID) {
		return n;
	}
	if (userns_fd < 0) {
		return store_remove_tree(map, r->dir_fd, name);
	}
	pid_t pid = sys_fork();

	if (pid < 0) {
		return pid;
	}
	if (pid == 0) {
		_exit(-remove_inside(userns_fd, r->dir_fd, name));
	}
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR) {
			return -errno;
		}
	}
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

static int trees_remove(const struct record *r, const struct idmap *map, int userns_fd)
{
	int first = tree_remove(r, map, userns_fd, "upper");
	int n = tree_remove(r, map, userns_fd, "work");

	return first < 0 ? first : n;
}

static int files_remove(const struct dirs *dirs, const struct record *r, const struct idmap *map,
		int userns_fd)
{
	struct place_name name = place_in(SANDBOXES, "", r->id.text);
	int first = 0;

	if (r->dir_fd >= 0) {
		first = trees_remove(r, map, userns_fd);
		(void)unlinkat(r->dir_fd, "request.json", 0);
	}
	if (unlinkat(dirs->root_fd, name.text, AT_REMOVEDIR) == 0 || errno == ENOENT ||
			errno == ENOTDIR) {
		return first;
	}
	if (errno == ENOTEMPTY && first == 0) {
		return file_remove_tree_at(dirs->root_fd, name.text);
	}
	return first < 0 ? first : -errno;
}

void record_begin_remove(const struct record *r)
{
	(void)unlinkat(r->dir_fd, "request.json", 0);
	(void)unlinkat(r->live_fd, STATE_FILE, 0);
	(void)unlinkat(r->live_fd, EXECD_SOCKET, 0);
	(void)unlinkat(r->live_fd, CTL_SOCKET, 0);
}

void record_clear_files(const struct dirs *dirs, struct record *r)
{
	struct place_name name = place_in(SANDBOXES, "", r->id.text);

	(void)!file_remove_tree_at(r->dir_fd, "upper");
	(void)!file_remove_tree_at(r->dir_fd, "work");
	if (unlinkat(dirs->root_fd, name.text, AT_REMOVEDIR) == 0) {
		fd_close(&r->dir_fd);
	}
}

/* Of the files, everything but what keep says. */
static int files_reduce(const struct dirs *dirs, const struct record *r, const struct idmap *map,
		int userns_fd, unsigned int keep)
{
	if (keep & RECORD_KEEP_FILES) {
		return tree_remove(r, map, userns_fd, "work");
	}
	return keep & RECORD_KEEP_LIVE ? trees_remove(r, map, userns_fd)
				       : files_remove(dirs, r, map, userns_fd);
}

int record_remove(const struct dirs *dirs, struct record *r, const struct idmap *map, int userns_fd,
		unsigned int keep, struct error *e)
{
	int n = files_reduce(dirs, r, map, userns_fd, keep);

	if (r->slot >= 0) {
		char number[16];

		(void)snprintf(number, sizeof(number), "%u", (unsigned int)r->slot);
		(void)unlinkat(dirs->root_fd, place_in(IDS, "", number).text, 0);
		r->slot = -1;
	}
	if (r->name && !(keep & RECORD_KEEP_LIVE)) {
		(void)!record_free_name(dirs, r->name, r->id.text);
	}
	if (n < 0) {
		/* The live directory stays, with a free lock: the next sweep tries again. */
		return error_sys(e, -n, "remove the files of sandbox %s", r->id.text);
	}
	if (keep & RECORD_KEEP_LIVE) {
		(void)unlinkat(r->live_fd, EXECD_SOCKET, 0);
		(void)unlinkat(r->live_fd, CTL_SOCKET, 0);
	} else {
		live_remove(dirs, r, "");
	}
	return 0;
}

bool record_is_live(const struct dirs *dirs, const char *id)
{
	struct place_name name = place_in(SANDBOXES, "", id);
	autoclose int dir_fd = fd_open_at(dirs->runtime_fd, name.text, O_RDONLY | O_DIRECTORY, 0);

	if (dir_fd < 0) {
		/* Unless it is surely absent, it counts as alive: what is in use stays. */
		return dir_fd != -ENOENT;
	}
	autoclose int lock_fd = lock_try_at(dir_fd, "lock", LOCK_MODE_SHARED);

	return lock_fd < 0 && lock_fd != -ENOENT;
}
