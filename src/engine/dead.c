/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * A keeper holds the lock of its sandbox as long as it lives; its death kills PID 1, and with it
 * every process. What it could not do any more is done here, under the same lock, by whichever
 * command comes first:
 *
 *   state     retained   what becomes of it
 *   not final     yes    Failed, keeper_lost; its files go (unless kept), the record stays
 *   not final     no     it goes
 *   final         yes    it stays until it expires
 *   final         no     it goes: its removal was cut short
 *
 * Files go first and the live directory last, so that whatever is cut short is found again.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <osbx/cgroup.h>
#include <osbx/clock.h>
#include <osbx/events.h>
#include <osbx/execd_proto.h>
#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/idmap.h>
#include <osbx/lock.h>
#include <osbx/mem.h>
#include <osbx/record.h>
#include <osbx/store.h>
#include <osbx/str.h>
#include <osbx/sys.h>

#include "dead.h"

#define DEATH_WAIT_MS 5000
#define STOP_WAIT_MS  15000
#define LOCK_POLL_NS  (2L * 1000 * 1000)

static bool is_over(const struct sandbox_state *s)
{
	return s->expires_ms != 0 && s->expires_ms <= clock_wall_ms();
}

/* Is it to be left as it is, whoever holds the lock? */
static bool is_settled(const struct sandbox_state *s)
{
	return state_is_final(s) && s->retained && !is_over(s);
}

static int live_open(const struct dirs *dirs, const struct id *id)
{
	autofree char *path = mem_printf("sandboxes/%s", id->text);

	return fd_open_at(dirs->runtime_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

static int files_open(const struct dirs *dirs, const struct id *id)
{
	autofree char *path = mem_printf("sandboxes/%s", id->text);

	return fd_open_at(dirs->root_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

/* Its PID 1 is being killed by the kernel: make sure, and wait. A later process of the same number
 * is another one, and a pidfd that was opened before the look at it stays with what was seen. */
static void pid_end(const struct sandbox_state *s)
{
	if (s->pid <= 0 || s->pid_start == 0) {
		return;
	}
	autoclose int pidfd = sys_pidfd_open(s->pid);
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	if (pidfd < 0 || state_pid_start(s->pid) != s->pid_start) {
		return;
	}
	(void)!sys_pidfd_kill(pidfd, SIGKILL);
	(void)poll(&p, 1, DEATH_WAIT_MS);
}

/* Ranges of ids that it took. */
static void ids_free(const struct dirs *dirs, const struct id *id)
{
	int fd = fd_open_at(dirs->root_fd, "ids", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		fd_close(&fd);
		return;
	}
	for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
		struct id owner = { "" };
		ssize_t n = readlinkat(fd, d->d_name, owner.text, sizeof(owner.text));

		if (n == ID_LEN && memcmp(owner.text, id->text, ID_LEN) == 0) {
			(void)unlinkat(fd, d->d_name, 0);
		}
	}
	(void)closedir(dir);
}

/* Remove name below dir_fd, whoever its files belong to. */
static int tree_remove(int dir_fd, const char *name, struct error *e)
{
	struct idmap map;

	if (faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT) {
		return 0;
	}
	if (idmap_choose(&map, e) < 0) {
		return -1;
	}
	int r = store_remove_tree(&map, dir_fd, name);

	return r < 0 ? error_sys(e, -r, "remove the files of a sandbox") : 0;
}

/* All of ROOT/sandboxes/ID. */
static int files_remove(const struct dirs *dirs, const struct id *id, struct error *e)
{
	autoclose int fd = fd_open_at(dirs->root_fd, "sandboxes", O_RDONLY | O_DIRECTORY, 0);

	if (fd == -ENOENT) {
		return 0;
	}
	return fd < 0 ? error_sys(e, -fd, "%s/sandboxes", dirs->root)
		      : tree_remove(fd, id->text, e);
}

/* Everything; the lock is held. */
static int remove_all(const struct dirs *dirs, const struct sandbox_state *s, struct error *e)
{
	const struct id *id = &s->id;
	autofree char *path = mem_printf("sandboxes/%s", id->text);
	int r = cgroup_sweep(id, s->cgroup);

	if (r < 0) {
		return error_sys(e, -r, "remove the control group of sandbox %s", id->text);
	}
	ids_free(dirs, id);
	if (s->name) {
		(void)!record_free_name(dirs, s->name, id->text);
	}
	if (files_remove(dirs, id, e) < 0) {
		return -1;
	}
	r = file_remove_tree_at(dirs->runtime_fd, path);
	return r < 0 ? error_sys(e, -r, "remove the record of sandbox %s", id->text) : 0;
}

/* The files that an ended sandbox has no use for; kept ones keep what they are kept for. */
static int files_reduce(const struct dirs *dirs, const struct sandbox_state *s, struct error *e)
{
	autoclose int dir_fd = files_open(dirs, &s->id);

	if (dir_fd < 0) {
		return dir_fd == -ENOENT ? 0 : error_sys(e, -dir_fd, "files of a sandbox");
	}
	if (tree_remove(dir_fd, "work", e) < 0) {
		return -1;
	}
	return s->kept ? state_save(s, dir_fd, true, e) : tree_remove(dir_fd, "upper", e);
}

static int lost_settle(
		const struct dirs *dirs, struct sandbox_state *s, int live_fd, struct error *e)
{
	/* What never ran has nothing worth keeping, and nobody knows of it. */
	s->retained &= s->started_ms != 0;
	s->kept &= s->started_ms != 0;
	pid_end(s);
	int r = cgroup_sweep(&s->id, s->cgroup);

	if (r < 0) {
		return error_sys(e, -r, "remove the control group of sandbox %s", s->id.text);
	}
	state_end(s, SANDBOX_FAILED, STATE_REASON_LOST, "its keeper was lost");
	if (s->started_ms != 0) {
		events_add(dirs->runtime_fd, EVENT_END, s);
	}
	ids_free(dirs, &s->id);
	if ((s->retained || s->kept) && files_reduce(dirs, s, e) < 0) {
		return -1;
	}
	(void)unlinkat(live_fd, EXECD_SOCKET, 0);
	(void)unlinkat(live_fd, CTL_SOCKET, 0);
	return s->retained ? state_save(s, live_fd, false, e) : 0;
}

/* Only the live directory: the rest is kept. */
static int live_remove(const struct dirs *dirs, const struct sandbox_state *s, struct error *e)
{
	autofree char *path = mem_printf("sandboxes/%s", s->id.text);

	if (s->name) {
		(void)!record_free_name(dirs, s->name, s->id.text);
	}
	int r = file_remove_tree_at(dirs->runtime_fd, path);

	return r < 0 ? error_sys(e, -r, "remove the record of sandbox %s", s->id.text) : 0;
}

static bool files_are_kept(const struct dirs *dirs, const struct id *id)
{
	autoclose int dir_fd = files_open(dirs, id);
	AUTO(strv) struct strv refs = STRV_INIT;
	bool keep = false;

	return dir_fd >= 0 && record_load_refs(dir_fd, &keep, &refs) == 0 && keep;
}

/* The lock is held. */
static int locked_settle(const struct dirs *dirs, const struct id *id, int live_fd, struct error *e)
{
	AUTO(state) struct sandbox_state s = { .code = SANDBOX_PENDING };
	struct error second = ERROR_INIT;

	if (state_load(live_fd, &s, &second) < 0) {
		/* Ended, and on its way out, or killed before its first word. */
		s.id = *id;
		return files_are_kept(dirs, id) ? live_remove(dirs, &s, e)
						: remove_all(dirs, &s, e);
	}
	if (!state_is_final(&s) && lost_settle(dirs, &s, live_fd, e) < 0) {
		return -1;
	}
	if (is_settled(&s)) {
		return 0;
	}
	return s.kept ? live_remove(dirs, &s, e) : remove_all(dirs, &s, e);
}

int dead_settle(const struct dirs *dirs, const struct id *id, struct error *e)
{
	autoclose int live_fd = live_open(dirs, id);
	AUTO(state) struct sandbox_state s = { .code = SANDBOX_PENDING };
	struct error second = ERROR_INIT;

	if (live_fd < 0) {
		return live_fd == -ENOENT ? 0 : error_sys(e, -live_fd, "sandbox %s", id->text);
	}
	/* What has ended is not locked for a look: another would take it for alive meanwhile. */
	if (state_load(live_fd, &s, &second) == 0 && is_settled(&s)) {
		return 0;
	}
	autoclose int lock_fd = lock_try_at(live_fd, "lock", LOCK_MODE_EXCLUSIVE);

	/* ENOENT: it has gone meanwhile. */
	if (lock_fd == -EWOULDBLOCK || lock_fd == -ENOENT) {
		return 0;
	}
	return lock_fd < 0 ? error_sys(e, -lock_fd, "lock of sandbox %s", id->text)
			   : locked_settle(dirs, id, live_fd, e);
}

/* fd of the lock, -EWOULDBLOCK when it is still held at the deadline, -errno. */
static int lock_wait(int live_fd, int64_t deadline_ms)
{
	const struct timespec pause = { .tv_nsec = LOCK_POLL_NS };

	for (;;) {
		int fd = lock_try_at(live_fd, "lock", LOCK_MODE_EXCLUSIVE);

		if (fd != -EWOULDBLOCK || clock_boot_ms() >= deadline_ms) {
			return fd;
		}
		(void)nanosleep(&pause, NULL);
	}
}

/* A keeper that does not answer: whoever listens on the socket holds the lock, so the number is
 * that of a live process. */
static void keeper_end_hard(int sock)
{
	struct ucred cred;
	socklen_t n = sizeof(cred);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &n) == 0 && cred.pid > 0) {
		autoclose int pidfd = sys_pidfd_open(cred.pid);

		if (pidfd >= 0) {
			(void)!sys_pidfd_kill(pidfd, SIGKILL);
		}
	}
}

/* One that has no control socket yet: its image is being pulled. The lock was held when its pidfd
 * was open already, so the number was that of the keeper. */
static void pending_end(const struct sandbox_state *s, int live_fd)
{
	autoclose int pidfd = s->keeper_pid > 0 ? sys_pidfd_open(s->keeper_pid) : -1;
	autoclose int lock_fd = lock_try_at(live_fd, "lock", LOCK_MODE_EXCLUSIVE);

	if (pidfd >= 0 && lock_fd == -EWOULDBLOCK) {
		(void)!sys_pidfd_kill(pidfd, SIGTERM);
	}
}

/* Ask the keeper, and end it when it does not do what it is asked. */
static void alive_end(const struct dirs *dirs, const struct id *id)
{
	const struct ctl_stop stop = { .grace_ms = 0, .signo = SIGKILL };
	struct error e = ERROR_INIT;
	autoclose int sock = ctl_connect(dirs, id, &e);
	struct packet p;

	if (sock < 0 || ctl_send(sock, CTL_MSG_STOP, &stop, sizeof(stop), &e) < 0) {
		return;
	}
	if (ctl_expect(sock, CTL_MSG_OK, &p, clock_boot_ms() + STOP_WAIT_MS, &e) == 0) {
		packet_done(&p);
	} else if (e.code != ERRC_UNAVAILABLE) {
		keeper_end_hard(sock);
	}
}

/* The lock of a sandbox that is to go. fd, or -1 with *e set. */
static int lock_for_remove(const struct dirs *dirs, const struct id *id, int live_fd, bool force,
		struct error *e)
{
	AUTO(state) struct sandbox_state s = { .code = SANDBOX_PENDING };
	struct error second = ERROR_INIT;
	int fd = lock_try_at(live_fd, "lock", LOCK_MODE_EXCLUSIVE);

	if (fd == -EWOULDBLOCK) {
		bool is_ending = state_load(live_fd, &s, &second) == 0 && state_is_final(&s);

		if (!is_ending && !force) {
			(void)error_set(e, ERRC_CONFLICT, "sandbox %s is running", id->text);
			return error_hint(e, "osbx stop %s, or osbx rm -f", id->text);
		}
		if (!is_ending && s.code == SANDBOX_PENDING &&
				faccessat(live_fd, CTL_SOCKET, F_OK, 0) < 0) {
			pending_end(&s, live_fd);
		} else if (!is_ending) {
			alive_end(dirs, id);
		}
		fd = lock_wait(live_fd, clock_boot_ms() + DEATH_WAIT_MS);
	}
	if (fd == -EWOULDBLOCK) {
		return error_set(e, ERRC_TIMEOUT, "sandbox %s does not end", id->text);
	}
	/* ENOENT: it has removed itself meanwhile. */
	return fd < 0 && fd != -ENOENT ? error_sys(e, -fd, "lock of sandbox %s", id->text) : fd;
}

int sandbox_remove(const struct dirs *dirs, const struct id *id, bool force, struct error *e)
{
	AUTO(state) struct sandbox_state s = { .code = SANDBOX_PENDING };
	struct error second = ERROR_INIT;
	autoclose int live_fd = live_open(dirs, id);

	if (live_fd == -ENOENT) {
		return files_remove(dirs, id, e);
	}
	if (live_fd < 0) {
		return error_sys(e, -live_fd, "sandbox %s", id->text);
	}
	autoclose int lock_fd = lock_for_remove(dirs, id, live_fd, force, e);

	if (lock_fd == -1) {
		return -1;
	}
	if (state_load(live_fd, &s, &second) == 0 && !state_is_final(&s)) {
		pid_end(&s);
	}
	s.id = *id;
	if (remove_all(dirs, &s, e) < 0) {
		return -1;
	}
	if (s.image) {
		events_add(dirs->runtime_fd, EVENT_REMOVE, &s);
	}
	return 0;
}
