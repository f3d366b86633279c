/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/idmap.h>
#include <osbx/mem.h>
#include <osbx/spawn.h>
#include <osbx/str.h>
#include <osbx/strv.h>
#include <osbx/sys.h>

#define HELPER_MS      10000
#define HELPER_KILL_MS 1000
#define SAID_BYTES     200 /* of a helper's stderr in our error */
#define MAP_TEXT_BYTES (IDMAP_RANGES_MAX * 36)

/* A running newuidmap or newgidmap. */
struct helper {
	const char *name;
	const struct idmap_range *ranges;
	size_t ranges_n;
	int pidfd;
	int stderr_fd;
};

static void helper_done(struct helper *h)
{
	fd_close(&h->pidfd);
	fd_close(&h->stderr_fd);
}

static int map_put(int proc_fd, const char *file, const struct idmap_range *ranges, size_t n)
{
	char text[MAP_TEXT_BYTES] = "";
	size_t used = 0;

	assert(n > 0 && n <= IDMAP_RANGES_MAX);
	for (size_t i = 0; i < n; i++) {
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%u %u %u\n",
				ranges[i].inside, ranges[i].outside, ranges[i].count);
	}
	return file_put_at(proc_fd, file, text);
}

/* Not after "unshare --pid", which leaves the /proc of before. */
static bool proc_has_our_pids(void)
{
	char text[16];
	uint64_t pid = 0;
	ssize_t n = readlink("/proc/self", text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	return str_to_u64(text, INT_MAX, &pid) == 0 && pid == (uint64_t)getpid();
}

static int proc_fail(struct error *e)
{
	(void)error_set(e, ERRC_UNSUPPORTED,
			"/proc is that of another pid namespace than this process is in");
	return error_hint(e, "mount -t proc proc /proc, or unshare --mount-proc");
}

static int write_directly(const struct idmap *map, pid_t pid, struct error *e)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d", pid);
	autoclose int proc_fd = fd_open(path, O_PATH | O_DIRECTORY, 0);

	if (proc_fd < 0) {
		return proc_has_our_pids() ? error_sys(e, -proc_fd, "open %s", path) : proc_fail(e);
	}
	const char *file = "setgroups";
	/* Before gid_map: without CAP_SETGID the kernel wants it so (CVE-2014-8989). */
	int r = map->setgroups ? 0 : file_put_at(proc_fd, file, "deny");

	if (r == 0) {
		file = "uid_map";
		r = map_put(proc_fd, file, map->uids, map->uids_n);
	}
	if (r == 0) {
		file = "gid_map";
		r = map_put(proc_fd, file, map->gids, map->gids_n);
	}
	if (r < 0 && !proc_has_our_pids()) {
		return proc_fail(e);
	}
	if (r < 0) {
		error_sys(e, -r, "write %s/%s", path, file);
		return idmap_hint(e);
	}
	return 0;
}

static int helper_args(const struct helper *h, pid_t pid, struct strv *args)
{
	int r = strv_add(args, h->name);

	if (r == 0) {
		r = strv_addf(args, "%d", pid);
	}
	for (size_t i = 0; r == 0 && i < h->ranges_n; i++) {
		const uint32_t numbers[] = {
			h->ranges[i].inside,
			h->ranges[i].outside,
			h->ranges[i].count,
		};

		for (size_t k = 0; r == 0 && k < ARRAY_SIZE(numbers); k++) {
			r = strv_addf(args, "%u", numbers[k]);
		}
	}
	return r;
}

static int helper_start(struct helper *h, pid_t pid, struct error *e)
{
	AUTO(strv) struct strv args = STRV_INIT;
	int ends[2] = { -1, -1 };
	int r = helper_args(h, pid, &args);

	if (r == 0) {
		r = fd_pipe(ends, 0);
	}
	if (r < 0) {
		return error_sys(e, -r, "start %s", h->name);
	}
	autoclose int write_end = ends[1];

	h->stderr_fd = ends[0];
	struct spawn_opts opts = {
		.path = h->name,
		.argv = strv_get(&args),
		.fds = { { .from = write_end, .to = STDERR_FILENO } },
		.fds_n = 1,
		.die_with_parent = true,
	};
	pid_t helper_pid = 0;

	return spawn_start(&opts, &h->pidfd, &helper_pid, e);
}

static int left_ms(int64_t deadline_ms)
{
	int64_t left = deadline_ms - clock_boot_ms();

	return left > 0 ? (int)left : 0;
}

/* What it says until it closes stderr: the first bytes, printable, on one line. 0, -ETIMEDOUT. */
static int helper_listen(const struct helper *h, int64_t deadline_ms, char said[SAID_BYTES])
{
	char raw[SAID_BYTES] = "";
	size_t used = 0;

	for (;;) {
		struct pollfd pfd = { .fd = h->stderr_fd, .events = POLLIN };
		char piece[256];
		int left = left_ms(deadline_ms);
		int r = poll(&pfd, 1, left);

		if (r == 0 || (r < 0 && errno == EINTR)) {
			if (left == 0) {
				return -ETIMEDOUT;
			}
			continue;
		}
		ssize_t n = r < 0 ? -errno : fd_read(h->stderr_fd, piece, sizeof(piece));

		if (n <= 0) {
			break;
		}
		size_t room = sizeof(raw) - 1 - used;
		size_t take = (size_t)n < room ? (size_t)n : room;

		memcpy(raw + used, piece, take);
		used += take;
	}
	while (used > 0 && raw[used - 1] == '\n') {
		used--;
	}
	raw[used] = '\0';
	for (char *p = strchr(raw, '\n'); p; p = strchr(p, '\n')) {
		*p = ' ';
	}
	str_printable(raw, said, SAID_BYTES);
	return 0;
}

/* Reap it, and turn a failure into an error. */
static int helper_finish(const struct helper *h, int64_t deadline_ms, struct error *e)
{
	char said[SAID_BYTES] = "";
	int status = 0;
	int r = helper_listen(h, deadline_ms, said);

	if (r == 0) {
		r = spawn_wait(h->pidfd, left_ms(deadline_ms), &status);
	}
	if (r == -ETIMEDOUT) {
		/* Its real user id is ours, so the signal is permitted. */
		r = sys_pidfd_kill(h->pidfd, SIGKILL);
		if (r == 0) {
			r = spawn_wait(h->pidfd, HELPER_KILL_MS, &status);
		}
		return error_set(e, ERRC_TIMEOUT, "%s did not end within %d s%s", h->name,
				HELPER_MS / 1000, r < 0 ? " and cannot be killed" : "");
	}
	if (r < 0) {
		return error_sys(e, -r, "wait for %s", h->name);
	}
	if (status != 0) {
		error_set(e, ERRC_SYSTEM, "%s failed with status %d%s%s", h->name, status,
				said[0] ? ": " : "", said);
		return error_hint(e, "check this user's lines in /etc/subuid and /etc/subgid, and "
				     "that newuidmap and newgidmap are set-user-id root");
	}
	return 0;
}

struct idmap_writer {
	const struct idmap *map;
	pid_t pid;
	int64_t deadline_ms;
	struct helper uids;
	struct helper gids;
};

/* Whatever started is reaped, whatever failed. */
static int helpers_finish(struct idmap_writer *w, struct error *e)
{
	struct helper *helpers[] = { &w->uids, &w->gids };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(helpers); i++) {
		struct error mine = ERROR_INIT;
		int n = helpers[i]->pidfd < 0 ? 0
					      : helper_finish(helpers[i], w->deadline_ms, &mine);

		helper_done(helpers[i]);
		if (n < 0 && r == 0) {
			*e = mine;
			r = -1;
		}
	}
	return r;
}

void idmap_writer_free(struct idmap_writer *w)
{
	struct error ignored = ERROR_INIT;

	if (w) {
		(void)!helpers_finish(w, &ignored);
		free(w);
	}
}

struct idmap_writer *idmap_write_begin(const struct idmap *map, pid_t pid, struct error *e)
{
	AUTO(idmap_writer) struct idmap_writer *w = mem_new(struct idmap_writer);

	*w = (struct idmap_writer){
		.map = map,
		.pid = pid,
		.deadline_ms = clock_boot_ms() + HELPER_MS,
		.uids = {
			.name = "newuidmap",
			.ranges = map->uids,
			.ranges_n = map->uids_n,
			.pidfd = -1,
			.stderr_fd = -1,
		},
		.gids = {
			.name = "newgidmap",
			.ranges = map->gids,
			.ranges_n = map->gids_n,
			.pidfd = -1,
			.stderr_fd = -1,
		},
	};
	if (map->helpers && (helper_start(&w->uids, pid, e) < 0 ||
					    helper_start(&w->gids, pid, e) < 0)) {
		return NULL;
	}
	return TAKE_PTR(w);
}

int idmap_write_end(struct idmap_writer *w, struct error *e)
{
	int r = w->map->helpers ? helpers_finish(w, e) : write_directly(w->map, w->pid, e);

	idmap_writer_free(w);
	return r;
}

int idmap_write(const struct idmap *map, pid_t pid, struct error *e)
{
	struct idmap_writer *w = idmap_write_begin(map, pid, e);

	return w ? idmap_write_end(w, e) : -1;
}

/* The child: nothing but alive until the pipe closes, also by the death of its parent. */
static NORETURN void hold_namespace(int pipe_fd)
{
	char c;

	(void)!fd_read(pipe_fd, &c, 1);
	_exit(0);
}

static int userns_of(const struct idmap *map, pid_t pid, int *out_fd, struct error *e)
{
	char path[48];

	if (idmap_write(map, pid, e) < 0) {
		return -1;
	}
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	int fd = fd_open(path, O_RDONLY, 0);

	if (fd < 0) {
		return error_sys(e, -fd, "open %s", path);
	}
	*out_fd = fd;
	return 0;
}

int idmap_userns_open(const struct idmap *map, int *out_userns_fd, struct error *e)
{
	int ends[2] = { -1, -1 };
	int status = 0;
	int r = fd_pipe(ends, 0);

	if (r < 0) {
		return error_sys(e, -r, "create a pipe");
	}
	autoclose int read_end = ends[0];
	autoclose int write_end = ends[1];
	autoclose int pidfd = -1;
	pid_t pid = sys_clone(CLONE_NEWUSER, -1, &pidfd);

	if (pid < 0) {
		error_sys(e, -pid, "create a user namespace");
		return idmap_hint(e);
	}
	if (pid == 0) {
		fd_close(&write_end);
		hold_namespace(read_end);
	}
	autoclose int userns_fd = -1;
	int done = userns_of(map, pid, &userns_fd, e);

	r = sys_pidfd_kill(pidfd, SIGKILL);
	if (r == 0) {
		r = spawn_wait(pidfd, -1, &status);
	}
	/* ECHILD: SIGCHLD is ignored here and the kernel has reaped. */
	if (done == 0 && r < 0 && r != -ECHILD) {
		return error_sys(e, -r, "end the holder of a user namespace");
	}
	if (done == 0) {
		*out_userns_fd = TAKE_FD(userns_fd);
	}
	return done;
}
