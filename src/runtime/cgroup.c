/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <osbx/buf.h>
#include <osbx/cgroup.h>
#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/str.h>
#include <osbx/sys.h>

#include "cgroup_internal.h"

#define WAIT_MS      1000
#define KILL_ROUNDS  64
#define START_ROUNDS 16
#define EVENTS_BYTES 4096
#define PROCS_BYTES  (1U << 20)

/* Unified, or beside the version 1 hierarchies. */
static const char *const mount_points[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };

static const char *hierarchy_find(void)
{
	struct statfs fs;

	for (size_t i = 0; i < ARRAY_SIZE(mount_points); i++) {
		if (statfs(mount_points[i], &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC) {
			return mount_points[i];
		}
	}
	return NULL;
}

/* A caller that has moved to the leaf for keepers is still at home in BASE. */
static char *base_of(struct span path)
{
	static const char leaf[] = "/" CGROUP_PARENT "/" CGROUP_KEEPER;
	const struct span tail = { .p = leaf, .n = sizeof(leaf) - 1 };

	if (path.n >= tail.n && span_eq(span_from(path, path.n - tail.n), tail)) {
		path.n -= tail.n;
	}
	return mem_dup(path.p, path.n);
}

/* The line "0::/path" of /proc/self/cgroup: the cgroup in version 2. NULL: none, or outside of
 * this cgroup namespace. Caller frees. */
static char *own_path(void)
{
	AUTO(buf) struct buf b = BUF_INIT(64U << 10);
	struct span rest = { .n = 0 };
	struct span line;

	if (file_read_at(AT_FDCWD, "/proc/self/cgroup", &b) < 0) {
		return NULL;
	}
	rest = buf_span(&b);
	while (span_next(&rest, '\n', &line)) {
		if (span_has_prefix(line, span_of("0::/")) &&
				!span_has_prefix(line, span_of("0::/.."))) {
			return base_of(span_from(line, 3));
		}
	}
	return NULL;
}

int cgroup_open_own(void)
{
	const char *mount_point = hierarchy_find();
	autofree char *path = mount_point ? own_path() : NULL;
	autofree char *full = path ? mem_printf("%s%s", mount_point, path) : NULL;

	return full ? fd_open(full, O_RDONLY | O_DIRECTORY, 0) : -ENOENT;
}

int cgroup_others(int dir_fd)
{
	AUTO(buf) struct buf b = BUF_INIT(PROCS_BYTES);
	int r = file_read_at(dir_fd, "cgroup.procs", &b);
	struct span rest = buf_span(&b);
	struct span line;

	if (r < 0) {
		return r;
	}
	while (span_next(&rest, '\n', &line)) {
		autofree char *text = span_dup(line);
		uint64_t pid = 0;

		/* 0: a process of an outer pid namespace. */
		if (line.n > 0 && (!text || str_to_u64(text, INT32_MAX, &pid) < 0 ||
						  (pid_t)pid != getpid())) {
			return 1;
		}
	}
	return 0;
}

/* Not a failure: an ordinary user without a delegated subtree, a container, no version 2. */
static bool is_absence(int r)
{
	return r == -ENOENT || r == -EACCES || r == -EPERM || r == -EROFS;
}

/* OWN/osbx, made if asked for. fd or -errno. */
static int parent_open(int own_fd, bool make)
{
	int r = make ? file_mkdir_at(own_fd, CGROUP_PARENT, 0755) : 0;

	return r < 0 ? r : fd_open_at(own_fd, CGROUP_PARENT, O_RDONLY | O_DIRECTORY, 0);
}

static int start_once(int own_fd, const struct id *id, struct cgroup *out_cg)
{
	autoclose int base_fd = parent_open(own_fd, true);

	if (base_fd < 0) {
		return base_fd;
	}
	if (mkdirat(base_fd, id->text, 0755) < 0) {
		return -errno;
	}
	int dir_fd = fd_open_at(base_fd, id->text, O_RDONLY | O_DIRECTORY, 0);

	if (dir_fd < 0) {
		return dir_fd;
	}
	*out_cg = (struct cgroup){ .dir_fd = dir_fd, .base_fd = TAKE_FD(base_fd), .id = *id };
	return 0;
}

int cgroup_start(const struct id *id, struct cgroup *out_cg, struct error *e)
{
	autoclose int own_fd = cgroup_open_own();
	int r = own_fd < 0 ? own_fd : 0;

	/* Entering a child of it takes the right to write here as well (cgroups(7), delegation). */
	if (r == 0 && faccessat(own_fd, "cgroup.procs", W_OK, AT_EACCESS) < 0) {
		r = -errno;
	}
	/* ENOENT: the last sandbox here went just now and took the parent with it. */
	for (int i = 0; i < START_ROUNDS && r == 0; i++) {
		r = start_once(own_fd, id, out_cg);
		if (r == 0) {
			return 0;
		}
		r = r == -ENOENT ? 0 : r;
	}
	if (r < 0 && !is_absence(r)) {
		return error_sys(e, -r, "create the cgroup of %s", id->text);
	}
	*out_cg = (struct cgroup){ .dir_fd = -1, .base_fd = -1, .id = *id };
	return 0;
}

/* Wait until cgroup.events has this line. 0, -ETIMEDOUT or -errno. */
static int events_wait(int dir_fd, const char *line, int64_t deadline_ms)
{
	autoclose int fd = fd_open_at(dir_fd, "cgroup.events", O_RDONLY, 0);
	char text[EVENTS_BYTES];

	if (fd < 0) {
		return fd;
	}
	for (;;) {
		ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
		int64_t left = deadline_ms - clock_boot_ms();
		struct pollfd p = { .fd = fd, .events = POLLPRI };

		if (n < 0) {
			return -errno;
		}
		text[n] = '\0';
		if (strstr(text, line)) {
			return 0;
		}
		if (left <= 0) {
			return -ETIMEDOUT;
		}
		if (poll(&p, 1, (int)left) < 0 && errno != EINTR) {
			return -errno;
		}
	}
}

int cgroup_freeze(const struct cgroup *cg, bool on)
{
	if (cg->dir_fd < 0) {
		return -EOPNOTSUPP;
	}
	int r = file_put_at(cg->dir_fd, "cgroup.freeze", on ? "1" : "0");

	return r < 0 ? r
		     : events_wait(cg->dir_fd, on ? "frozen 1\n" : "frozen 0\n",
				       clock_boot_ms() + WAIT_MS);
}

/* Call fn for dir_fd and the directories in it (the leaves of one sandbox; it can make no others).
 * 0 or the first -errno. */
static int leaves_for_each(int dir_fd, int (*fn)(int dir_fd, const char *name))
{
	int copy = fd_open_at(dir_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *entry = NULL;
	int r = 0;

	if (!dir) {
		r = -errno;
		fd_close(&copy);
		return r;
	}
	while ((entry = readdir(dir))) {
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
			int one = fn(dir_fd, entry->d_name);

			r = r < 0 ? r : one;
		}
	}
	(void)closedir(dir);
	return r;
}

static int kill_pids(int dir_fd, const char *name)
{
	AUTO(buf) struct buf b = BUF_INIT(PROCS_BYTES);
	autofree char *file = mem_printf("%s/cgroup.procs", name);
	int r = file_read_at(dir_fd, file, &b);
	struct span rest = buf_span(&b);
	struct span line;

	while (r == 0 && span_next(&rest, '\n', &line)) {
		autofree char *text = mem_dup(line.p, line.n);
		uint64_t pid = 0;

		/* 0: a process of an outer pid namespace. */
		if (str_to_u64(text, INT32_MAX, &pid) < 0 || pid == 0) {
			continue;
		}
		autoclose int pidfd = sys_pidfd_open((pid_t)pid);
		int killed = pidfd < 0 ? pidfd : sys_pidfd_kill(pidfd, SIGKILL);

		r = killed == -ESRCH ? 0 : killed;
	}
	return r;
}

/* Below Linux 5.14. Until none is left: it may start new ones meanwhile. */
static int kill_each(int dir_fd)
{
	int r = 0;

	for (int i = 0; i < KILL_ROUNDS && r == 0; i++) {
		r = kill_pids(dir_fd, ".");
		if (r == 0) {
			r = leaves_for_each(dir_fd, kill_pids);
		}
		if (r == 0 && events_wait(dir_fd, "populated 0\n", clock_boot_ms() + 10) == 0) {
			return 0;
		}
	}
	return r < 0 ? r : -ETIMEDOUT;
}

int cgroup_kill(const struct cgroup *cg)
{
	if (cg->dir_fd < 0) {
		return -EOPNOTSUPP;
	}
	int r = file_put_at(cg->dir_fd, "cgroup.kill", "1");

	return r == -ENOENT ? kill_each(cg->dir_fd) : r;
}

int cgroup_delegate(const struct cgroup *cg, uid_t uid, gid_t gid)
{
	static const char *const files[] = { ".", "cgroup.procs", "cgroup.threads",
		"cgroup.subtree_control" };

	if (cg->dir_fd < 0 || geteuid() != 0) {
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		if (fchownat(cg->dir_fd, files[i], uid, gid, AT_SYMLINK_NOFOLLOW) < 0) {
			return -errno;
		}
	}
	return 0;
}

static int leaf_remove(int dir_fd, const char *name)
{
	return unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

static int remove_once(const struct cgroup *cg)
{
	int r = leaf_remove(cg->base_fd, cg->id.text);

	if (r != -EBUSY && r != -ENOTEMPTY) {
		return r;
	}
	r = leaves_for_each(cg->dir_fd, leaf_remove);
	return r < 0 ? r : leaf_remove(cg->base_fd, cg->id.text);
}

/* Remove it; what still lives there is killed. 0 or -errno. */
static int cgroup_remove(const struct cgroup *cg)
{
	int r = remove_once(cg);

	if (r != -EBUSY && r != -ENOTEMPTY) {
		return r;
	}
	r = cgroup_kill(cg);
	if (r == 0) {
		r = events_wait(cg->dir_fd, "populated 0\n", clock_boot_ms() + WAIT_MS);
	}
	return r < 0 ? r : remove_once(cg);
}

/* The directory of all sandboxes, if this was the last one: EBUSY otherwise. */
static void parent_remove(int base_fd)
{
	autoclose int own_fd = fd_open_at(base_fd, "..", O_PATH | O_DIRECTORY, 0);

	/* The leaf for keepers, too, when the last of them has gone. */
	(void)leaf_remove(base_fd, CGROUP_KEEPER);
	if (own_fd >= 0) {
		(void)leaf_remove(own_fd, CGROUP_PARENT);
	}
}

void cgroup_stop(struct cgroup *cg)
{
	if (!cg) {
		return;
	}
	if (cg->dir_fd >= 0 && cgroup_remove(cg) == 0) {
		parent_remove(cg->base_fd);
	}
	fd_close(&cg->dir_fd);
	fd_close(&cg->base_fd);
}

char *cgroup_path(const struct cgroup *cg)
{
	char link[32];
	char path[LIMIT_PATH_BYTES];

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", cg->dir_fd);
	ssize_t n = cg->dir_fd < 0 ? -1 : readlink(link, path, sizeof(path));

	return n > 0 && (size_t)n < sizeof(path) ? mem_dup(path, (size_t)n) : NULL;
}

/* The BASE/osbx of a recorded path: fd, -EINVAL if it cannot be one, or -errno. */
static int recorded_open(const struct id *id, const char *path)
{
	autofree char *tail = mem_printf("/" CGROUP_PARENT "/%s", id->text);
	const char *mount_point = hierarchy_find();
	struct span whole = span_of(path);
	size_t n = strlen(tail);

	if (!mount_point || !str_after(path, mount_point) || strstr(path, "/../") || whole.n <= n ||
			!str_eq(path + whole.n - n, tail)) {
		return -EINVAL;
	}
	autofree char *base = mem_dup(path, whole.n - strlen(id->text) - 1);

	return fd_open(base, O_RDONLY | O_DIRECTORY, 0);
}

static int base_open(const struct id *id, const char *path)
{
	int fd = path ? recorded_open(id, path) : -EINVAL;

	if (fd != -EINVAL) {
		return fd;
	}
	autoclose int own_fd = cgroup_open_own();

	return own_fd < 0 ? own_fd : parent_open(own_fd, false);
}

int cgroup_sweep(const struct id *id, const char *path)
{
	struct cgroup cg = { .dir_fd = -1, .base_fd = base_open(id, path), .id = *id };
	int r = cg.base_fd < 0 ? cg.base_fd : 0;

	if (r == 0) {
		cg.dir_fd = fd_open_at(cg.base_fd, id->text, O_RDONLY | O_DIRECTORY, 0);
		r = cg.dir_fd < 0 ? cg.dir_fd : cgroup_remove(&cg);
	}
	if (r == 0) {
		parent_remove(cg.base_fd);
	}
	fd_close(&cg.dir_fd);
	fd_close(&cg.base_fd);
	return is_absence(r) ? 0 : r;
}
