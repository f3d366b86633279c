/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <osbx/execd_proto.h>
#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/sys.h>

#include "init_internal.h"
#include "mount_internal.h"

/* Small files, mount points and nothing else; FILE mounts of a sandbox stay writable in it. */
#define STAGING_OPTIONS "mode=755,size=4m,nr_inodes=4096"

#ifdef __SANITIZE_ADDRESS__
#	define SANITIZED
#elif defined(__has_feature)
#	if __has_feature(address_sanitizer)
#		define SANITIZED
#	endif
#endif

/* Above every number that execd is given. */
#define FD_ABOVE 16

int init_step_namespaces(struct init_ctx *c, struct error *e)
{
	(void)c;
	int r = sys_unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS);

	if (r == 0) {
		return 0;
	}
	(void)error_sys(e, -r, "make new ones");
	if (r == -ENOSPC) {
		return error_hint(e, "a limit of namespaces is reached: raise "
				     "user.max_mnt_namespaces, user.max_ipc_namespaces or "
				     "user.max_uts_namespaces");
	}
	/* The first thing that needs a capability: Ubuntu's AppArmor gives user namespaces of
	 * programs it does not know, without any. */
	if (r == -EPERM || r == -EACCES) {
		(void)error_hint(e,
				"unprivileged user namespaces are restricted here: allow osbx an "
				"AppArmor profile with userns, or set "
				"kernel.apparmor_restrict_unprivileged_userns=0");
	}
	return -1;
}

int init_step_private(struct init_ctx *c, struct error *e)
{
	(void)c;
	int r = sys_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);

	return r < 0 ? error_sys(e, -r, "make all mounts private") : 0;
}

int init_step_hostname(struct init_ctx *c, struct error *e)
{
	int r = c->spec->hostname ? sys_sethostname(c->spec->hostname) : 0;

	return r < 0 ? error_sys(e, -r, "set %s", c->spec->hostname) : 0;
}

/* No controlling terminal of the caller: TIOCSTI, Ctrl-C (CVE-2017-5226). */
int init_step_session(struct init_ctx *c, struct error *e)
{
	(void)c;
	return setsid() < 0 ? error_sys(e, errno, "begin a new one") : 0;
}

/* A tree that the parent checked must be the one that carries its path now. */
static int check_same(const struct spec_tree *t, int fd, struct error *e)
{
	struct stat was;
	struct stat is;

	if (t->fd < 0) {
		return 0;
	}
	if (fstat(t->fd, &was) < 0 || fstat(fd, &is) < 0) {
		return error_sys(e, errno, "look at %s", t->path);
	}
	if (was.st_dev != is.st_dev || was.st_ino != is.st_ino) {
		return error_set(e, ERRC_CONFLICT, "%s changed while being mounted", t->path);
	}
	return 0;
}

/* Trees that are a mount of their own in this mount namespace: those that the parent mapped, and
 * those that are bound somewhere, as a clone made before there is anything of ours to be cloned
 * with them ("-v /:/host"). */
static bool is_cloned(const struct spec *spec, size_t tree)
{
	if (spec->map.mode == IDMAP_MAPPED) {
		return true;
	}
	for (size_t i = 0; i < spec->mounts_n; i++) {
		if (spec->mounts[i].kind == SPEC_MOUNT_BIND && spec->mounts[i].tree == tree) {
			return true;
		}
	}
	return false;
}

static int tree_open(const struct init_ctx *c, size_t i, struct error *e)
{
	const struct spec_tree *t = &c->spec->trees[i];
	autoclose int fd = is_cloned(c->spec, i) ? mount_clone(AT_FDCWD, t->path, t->recursive)
						 : fd_open(t->path, O_PATH, 0);

	if (fd < 0) {
		return error_sys(e, -fd, "open %s", t->path);
	}
	if (check_same(t, fd, e) < 0) {
		return -1;
	}
	c->tree_fds[i] = TAKE_FD(fd);
	return 0;
}

static int open_below(const struct init_ctx *c, uint32_t tree, const char *path, int *out_fd,
		struct error *e)
{
	assert(tree < c->spec->trees_n);
	int fd = path_open_beneath(
			c->tree_fds[tree], path[0] ? path : ".", O_PATH | O_DIRECTORY, 0);

	if (fd < 0) {
		return error_sys(e, -fd, "open %s/%s", c->spec->trees[tree].path, path);
	}
	*out_fd = fd;
	return 0;
}

/* Open the directories of the overlay that lie in cloned trees, or those that do not. */
static int open_layers(struct init_ctx *c, bool cloned, struct error *e)
{
	const struct {
		const char *path;
		int *out_fd;
	} rows[] = {
		{ "upper", &c->upper_fd },
		{ "work", &c->work_fd },
	};

	for (size_t i = 0; i < c->spec->lowers_n; i++) {
		const struct spec_lower *l = &c->spec->lowers[i];

		if (is_cloned(c->spec, l->tree) == cloned &&
				open_below(c, l->tree, l->path, &c->lower_fds[i], e) < 0) {
			return -1;
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (is_cloned(c->spec, SPEC_SANDBOX_TREE) == cloned &&
				open_below(c, SPEC_SANDBOX_TREE, rows[i].path, rows[i].out_fd, e) <
						0) {
			return -1;
		}
	}
	return 0;
}

/* Before the staging is mounted there. */
static int clone_host_sys(struct init_ctx *c, struct error *e)
{
	c->sys_fd = mount_clone(AT_FDCWD, "/sys", true);
	return c->sys_fd < 0 ? error_sys(e, -c->sys_fd, "clone /sys") : 0;
}

/* The id maps are written and the directories made; the mapped trees come with that news. */
int init_step_maps(struct init_ctx *c, struct error *e)
{
	const size_t want = c->spec->map.mode == IDMAP_MAPPED ? c->spec->trees_n : 0;
	enum init_msg msg = INIT_MSG_IDS_DONE;
	size_t n = 0;

	do {
		struct packet p;

		if (init_expect(c->sock, &c->stage, msg, &p, c->deadline_ms, e) < 0) {
			return -1;
		}
		if (p.fds_n > want - n || (want > 0 && p.fds_n == 0)) {
			packet_done(&p);
			return error_set(e, ERRC_INTERNAL, "%u trees came with %s", p.fds_n,
					init_msg_name(msg));
		}
		for (uint32_t i = 0; i < p.fds_n; i++) {
			c->tree_fds[n++] = TAKE_FD(p.fds[i]);
		}
		packet_done(&p);
		msg = INIT_MSG_TREES;
	} while (n < want);
	return 0;
}

/* In this mount namespace and by the caller's ids: overlay and open_tree(2) take no directory of
 * another mount namespace, and the ids of the sandbox may not pass the caller's directories. Where
 * layers/ belongs to container root and is closed to others (shared), it takes the map: before that
 * is written the capabilities of this process mean nothing there. */
int init_step_sources(struct init_ctx *c, struct error *e)
{
	if (c->spec->network == SPEC_NETWORK_HOST && clone_host_sys(c, e) < 0) {
		return -1;
	}
	if (c->spec->map.mode == IDMAP_MAPPED) {
		return 0;
	}
	for (size_t i = 0; i < c->spec->trees_n; i++) {
		if (tree_open(c, i, e) < 0) {
			return -1;
		}
	}
	return open_layers(c, false, e);
}

int init_step_ids(struct init_ctx *c, struct error *e)
{
	int r = c->spec->map.setgroups ? sys_setgroups(0, NULL) : 0;

	if (r < 0) {
		return error_sys(e, -r, "drop the caller's groups");
	}
	r = sys_setresgid(0);
	if (r == 0) {
		r = sys_setresuid(0);
	}
	return r < 0 ? error_sys(e, -r, "become root of the user namespace") : 0;
}

int init_step_parent(struct init_ctx *c, struct error *e)
{
	struct pollfd p = { .fd = c->sock };
	int r = sys_prctl(PR_SET_PDEATHSIG, SIGKILL);

	if (r < 0) {
		return error_sys(e, -r, "ask to die with it");
	}
	/* It may have died before; getppid() is always 0 in a new pid namespace. */
	if (poll(&p, 1, 0) < 0) {
		return error_sys(e, errno, "look at its channel");
	}
	return p.revents & POLLHUP ? error_set(e, ERRC_INTERNAL, "is gone") : 0;
}

int init_step_cgroup(struct init_ctx *c, struct error *e)
{
	int r = c->unshare_cgroup ? sys_unshare(CLONE_NEWCGROUP) : 0;

	return r < 0 ? error_sys(e, -r, "new namespace") : 0;
}

/* Where the staging tmpfs goes: a directory that hides nothing execd is loaded from, and that even
 * a bare machine has. Not over "/" itself, although that hides nothing at all: the stack of mounts
 * there would survive execd's pivot_root(2). */
static int open_staging_point(void)
{
	static const char *const names[] = { "/sys", "/run", "/tmp", "/mnt", "/var" };
	int fd = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(names) && fd < 0; i++) {
		fd = fd_open(names[i], O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	}
	return fd;
}

/* A private tmpfs: parents for the trees, small files, empty directories. */
int init_step_staging(struct init_ctx *c, struct error *e)
{
	autoclose int fs = fscontext_open("tmpfs");
	int r = fs < 0 ? fs : fscontext_options(fs, STAGING_OPTIONS);

	if (r < 0) {
		return error_sys(e, -r, "new tmpfs");
	}
	autoclose int fd = fscontext_mount(
			fs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);

	if (fd < 0) {
		return error_sys(e, -fd, "mount a tmpfs");
	}
	autoclose int dst_fd = open_staging_point();

	r = dst_fd < 0 ? dst_fd : sys_move_mount(fd, dst_fd);
	if (r < 0) {
		return error_sys(e, -r, "attach a tmpfs");
	}
	c->staging_fd = TAKE_FD(fd);
	return 0;
}

static int attach_tree(struct init_ctx *c, size_t i, struct error *e)
{
	char name[32];
	struct stat st;

	(void)snprintf(name, sizeof(name), "tree%zu", i);
	if (fstat(c->tree_fds[i], &st) < 0) {
		return error_sys(e, errno, "look at %s", c->spec->trees[i].path);
	}
	int r = S_ISDIR(st.st_mode) ? mkdirat(c->staging_fd, name, 0700)
				    : mknodat(c->staging_fd, name, S_IFREG | 0600, 0);
	autoclose int dst_fd = r < 0 ? -errno : fd_open_at(c->staging_fd, name, O_PATH, 0);

	r = dst_fd < 0 ? dst_fd : sys_move_mount(c->tree_fds[i], dst_fd);
	return r < 0 ? error_sys(e, -r, "attach %s", c->spec->trees[i].path) : 0;
}

/* Overlay and open_tree(2) take a directory only after its mount was attached in this mount
 * namespace; a tree of the parent is not even visible to the former (EPERM). */
int init_step_trees(struct init_ctx *c, struct error *e)
{
	for (size_t i = 0; i < c->spec->trees_n; i++) {
		if (is_cloned(c->spec, i) && attach_tree(c, i, e) < 0) {
			return -1;
		}
	}
	return open_layers(c, true, e);
}

int init_step_root(struct init_ctx *c, struct error *e)
{
	const struct overlay o = {
		.lower_fds = c->lower_fds,
		.lowers_n = c->spec->lowers_n,
		.upper_fd = c->upper_fd,
		.work_fd = c->work_fd,
		.is_volatile = c->spec->is_ephemeral,
	};

	return overlay_mount(&o, c->staging_fd, &c->root_fd, e);
}

static int wait_for(struct init_ctx *c, enum init_msg msg, struct packet *out_p, struct error *e)
{
	return init_expect(c->sock, &c->stage, msg, out_p, c->deadline_ms, e);
}

/* What the parent made meanwhile. */
static int enter_net(void *arg, struct error *e)
{
	struct init_ctx *c = arg;
	const uint32_t want = c->spec->network == SPEC_NETWORK_HOST ? 0 : 1;
	struct packet p;

	if (wait_for(c, INIT_MSG_NET_DONE, &p, e) < 0) {
		return -1;
	}
	const uint32_t n = p.fds_n;
	int r = n == 1 && want == 1 ? sys_setns(p.fds[0], CLONE_NEWNET) : 0;

	packet_done(&p);
	if (n != want) {
		return error_set(e, ERRC_INTERNAL, "%u network namespaces came with %s", n,
				init_msg_name(INIT_MSG_NET_DONE));
	}
	return r < 0 ? error_sys(e, -r, "enter the network namespace") : 0;
}

int init_step_mounts(struct init_ctx *c, struct error *e)
{
	const struct mount_ctx ctx = {
		.root_fd = c->root_fd,
		.staging_fd = c->staging_fd,
		.sys_fd = c->sys_fd,
		.tree_fds = c->tree_fds,
		.trees_n = c->spec->trees_n,
		.before_sys = enter_net,
		.arg = c,
	};

	return mountplan_apply(c->plan, &ctx, e);
}

int init_step_go(struct init_ctx *c, struct error *e)
{
	struct packet p;

	if (wait_for(c, INIT_MSG_GO, &p, e) < 0) {
		return -1;
	}
	packet_done(&p);
	return 0;
}

/* The host's null device, for the standard descriptors; out of the way of all numbers that are
 * given away. fd or -errno. */
static int open_null(void)
{
	struct stat st;
	autoclose int fd = fd_open("/dev/null", O_RDWR, 0);

	if (fd < 0) {
		return fd;
	}
	if (fstat(fd, &st) < 0) {
		return -errno;
	}
	return S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3) ? fd_dup(fd, FD_ABOVE) : -ENODEV;
}

/* Give the descriptors the numbers that execd expects; all others are O_CLOEXEC. Out of the way
 * first: a source may have the number of another's destination. */
static int place_descriptors(const struct init_ctx *c, int null_fd)
{
	const struct {
		int from;
		int to;
	} rows[] = {
		{ null_fd, STDIN_FILENO },
		{ null_fd, STDOUT_FILENO },
		{ null_fd, STDERR_FILENO },
		{ c->sock, EXECD_FD_INIT },
		{ c->control_fd, EXECD_FD_CONTROL },
		{ c->spec->config_fd, EXECD_FD_CONFIG },
		{ c->root_fd, EXECD_FD_ROOT },
		{ c->spec->cgroup_fd, EXECD_FD_CGROUP },
	};
	/* The last one may be missing. */
	const size_t n = c->spec->cgroup_fd < 0 ? ARRAY_SIZE(rows) - 1 : ARRAY_SIZE(rows);
	int moved[ARRAY_SIZE(rows)];

	for (size_t i = 0; i < n; i++) {
		moved[i] = fd_dup(rows[i].from, FD_ABOVE);
		if (moved[i] < 0) {
			return moved[i];
		}
	}
	for (size_t i = 0; i < n; i++) {
		if (dup2(moved[i], rows[i].to) < 0) {
			return -errno;
		}
	}
	return 0;
}

/* A sanitizer in execd is told the same as the one in us. */
static size_t sanitizer_environment(char **env, size_t max)
{
#ifdef SANITIZED
	static const char *const names[] = { "ASAN_OPTIONS", "UBSAN_OPTIONS" };
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names) && n < max; i++) {
		const char *value = getenv(names[i]);

		if (value) {
			env[n++] = mem_printf("%s=%s", names[i], value);
		}
	}
	return n;
#else
	(void)env;
	(void)max;
	return 0;
#endif
}

int init_step_execd(struct init_ctx *c, struct error *e)
{
	char name[] = "osbx-execd";
	char *argv[] = { name, NULL };
	char *env[4] = { NULL };
	autoclose int null_fd = open_null();
	autoclose int exec_fd = fd_dup(c->spec->execd_fd, FD_ABOVE);

	if (null_fd < 0) {
		return error_sys(e, -null_fd, "open the host's /dev/null");
	}
	if (exec_fd < 0) {
		return error_sys(e, -exec_fd, "duplicate its descriptor");
	}
	if (fchdir(c->root_fd) < 0) {
		return error_sys(e, errno, "enter the root");
	}
	env[sanitizer_environment(env, ARRAY_SIZE(env) - 1)] = NULL;
	int r = place_descriptors(c, null_fd);

	if (r < 0) {
		return error_sys(e, -r, "place its descriptors");
	}
	/* Errors go to the number the channel has now. */
	c->sock = EXECD_FD_INIT;
	r = sys_execveat(exec_fd, argv, env);
	return error_sys(e, -r, "execute it");
}
