/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <osbx/buf.h>
#include <osbx/caps.h>
#include <osbx/fd.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/str.h>
#include <osbx/sys.h>

#include "child.h"
#include "copy.h"
#include "shown.h"

#define OOM_SCORE_ADD 500
#define OOM_SCORE_MAX 1000

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* All strings twice over (argv and env), and the lengths between them. */
#define SPEC_BYTES_MAX ((size_t)4 * LIMIT_ARGS_BYTES)

static int step_spec(struct setup *s, struct error *e)
{
	struct buf b = BUF_INIT(SPEC_BYTES_MAX);
	int fd = s->child->spec_fd;

	s->more = s->child->more;
	if (s->child->process) {
		s->process = *s->child->process; /* in our own copy of the memory */
		s->cwd = s->process.cwd && s->process.cwd[0] ? s->process.cwd : "/";
		return 0;
	}
	int r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : fd_read_all(fd, &b);

	if (r == 0) {
		r = execd_process_decode(buf_span(&b), &s->process);
	}
	buf_done(&b);
	if (r < 0) {
		return error_sys(e, -r, "read the description of the process");
	}
	s->cwd = s->process.cwd && s->process.cwd[0] ? s->process.cwd : "/";
	return 0;
}

/* The dispositions are the default ones since enter(). */
static int step_session(struct setup *s, struct error *e)
{
	sigset_t set;

	(void)s;
	(void)sigemptyset(&set);
	if (sigprocmask(SIG_SETMASK, &set, NULL) < 0) {
		return error_sys(e, errno, "unblock signals");
	}
	return setsid() < 0 ? error_sys(e, errno, "make a session") : 0;
}

static int step_terminal(struct setup *s, struct error *e)
{
	int fd = s->child->slave_fd;
	struct winsize ws = {
		.ws_row = (unsigned short)s->process.rows,
		.ws_col = (unsigned short)s->process.cols,
	};

	if (fd < 0) {
		return 0;
	}
	if (ioctl(fd, TIOCSCTTY, 0) < 0) {
		return error_sys(e, errno, "make the pty the controlling terminal");
	}
	if (ws.ws_row > 0 && ws.ws_col > 0 && ioctl(fd, TIOCSWINSZ, &ws) < 0) {
		return error_sys(e, errno, "set the size of the terminal");
	}
	return 0;
}

/* /dev/null of the sandbox, or what reads like it where the image has put something else there. */
static int null_open(const struct setup *s)
{
	autoclose int fd = path_open_nolink(
			s->child->execd->root_fd, "/dev/null", O_RDWR | O_NONBLOCK, 0);
	struct stat st;
	int ends[2];

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)) {
		return TAKE_FD(fd);
	}
	int r = fd_pipe(ends, 0);

	if (r == 0) {
		fd_close(&ends[1]);
	}
	return r < 0 ? r : ends[0];
}

static int step_stdio(struct setup *s, struct error *e)
{
	for (int i = 0; i < 3; i++) {
		int fd = s->child->slave_fd >= 0 ? s->child->slave_fd : s->child->stdio[i];

		fd = fd < 0 ? null_open(s) : fd;
		int r = dup2(fd, i) < 0 ? -errno : fd_set_nonblock(i, false);

		if (r < 0) {
			return error_sys(e, -r, "set up standard descriptor %d", i);
		}
	}
	return 0;
}

static int user_find(const struct setup *s, const struct execd_process *p,
		struct passwd_user *out_user, struct error *e)
{
	const struct execd_config *config = &s->child->execd->config;
	const struct passwd_query query = {
		.user = p->user ? p->user : "",
		.groups = &p->groups,
		.ids_max = config->ids_max,
		.has_setgroups = config->has_setgroups != 0,
	};

	return passwd_resolve(s->child->execd->root_fd, &query, out_user, e);
}

static int step_user(struct setup *s, struct error *e)
{
	struct passwd_user main_user = { .uid = 0 };
	const struct execd_process *main = s->more ? s->more->only_user_of : NULL;

	if (user_find(s, &s->process, &s->user, e) < 0) {
		return -1;
	}
	if (!main) {
		return 0;
	}
	if (user_find(s, main, &main_user, e) < 0) {
		return -1;
	}
	if (s->user.uid != main_user.uid || s->user.gid != main_user.gid) {
		return error_set(e, ERRC_DENIED,
				"uid %u, gid %u: processes of the sandbox may only ask for its own "
				"user, uid %u, gid %u",
				s->user.uid, s->user.gid, main_user.uid, main_user.gid);
	}
	return 0;
}

/* The user may open /dev/stdout or its terminal anew. An end whose owner has no id here (root's
 * keeper) cannot be given away: the keeper has done that where it matters. */
static int step_stdio_owner(struct setup *s, struct error *e)
{
	struct stat st;

	(void)e;
	for (int i = 0; i < 3; i++) {
		if (fstat(i, &st) == 0 && st.st_uid != s->user.uid &&
				(S_ISFIFO(st.st_mode) || s->child->slave_fd >= 0)) {
			(void)!fchown(i, s->user.uid, (gid_t)-1);
		}
	}
	for (size_t i = 0; s->more && i < s->more->fds_n; i++) {
		(void)!fchown(s->more->fds[i], s->user.uid, (gid_t)-1);
	}
	return 0;
}

int child_mkdirs(const struct setup *s, const char *path, child_mkdirs_fn make)
{
	(void)setfsgid(s->user.gid);
	(void)setfsuid(s->user.uid);
	int r = caps_set(s->child->execd->caps); /* setfsuid has cleared some */

	if (r == 0) {
		autoclose int fd = make(s->child->execd->root_fd, path, 0755);

		r = fd < 0 ? fd : 0;
	}
	(void)setfsuid(0);
	(void)setfsgid(0);
	return r;
}

/* The file system in which the missing part would be made: that of the last directory which exists.
 * 1: nothing of the host, 0: a volume; or -errno. */
static int cwd_is_ours(const struct setup *s)
{
	const int root_fd = s->child->execd->root_fd;
	autofree char *path = mem_strdup(s->cwd);
	autoclose int fd = -ENOENT;
	struct stat root;
	struct stat st;
	struct statfs fs;

	while (fd == -ENOENT) {
		char *slash = strrchr(path, '/');

		path[slash ? slash - path : 0] = '\0';
		fd = path_open_beneath(root_fd, path[0] ? path : "/", O_PATH | O_DIRECTORY, 0);
	}
	if (fd < 0) {
		return fd;
	}
	if (fstat(root_fd, &root) < 0 || fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0) {
		return -errno;
	}
	return st.st_dev == root.st_dev ||
	       (s->process.cwd_create == EXECD_CWD_MAKE_IN_TMPFS && fs.f_type == TMPFS_MAGIC);
}

static int cwd_refuse(const struct setup *s, struct error *e)
{
	(void)error_set(e, ERRC_INVALID,
			"working directory \"%s\" is missing in what is mounted above it",
			shown(s->cwd).text);
	return error_hint(e, "create it there first, or choose another place: osbx makes nothing "
			     "in directories of this machine");
}

static int step_cwd_make(struct setup *s, struct error *e)
{
	if (s->process.cwd_create == EXECD_CWD_EXISTS) {
		return 0;
	}
	autoclose int fd = path_open_beneath(s->child->execd->root_fd, s->cwd, O_PATH, 0);

	if (fd != -ENOENT) {
		return 0;
	}
	int r = cwd_is_ours(s);

	if (r == 0) {
		return cwd_refuse(s, e);
	}
	r = r < 0 ? r : child_mkdirs(s, s->cwd, path_mkdirs_beneath);
	/* A loop has failed above with the same number. */
	if (r == -ELOOP) {
		return error_set(e, ERRC_INVALID,
				"working directory \"%s\": a link on the way leads to nothing",
				shown(s->cwd).text);
	}
	return r < 0 ? error_sys(e, -r, "make the working directory \"%s\"", shown(s->cwd).text)
		     : 0;
}

static int step_bound(struct setup *s, struct error *e)
{
	/* PID 1 bound itself to its own ones, and has no inheritable or ambient ones: both stay. */
	if ((s->child->execd->caps & ~s->process.caps) == 0) {
		return 0;
	}
	int r = caps_bound(s->process.caps);

	return r < 0 ? error_sys(e, -r, "bound capabilities") : 0;
}

static int step_ids(struct setup *s, struct error *e)
{
	const struct passwd_user *u = &s->user;
	int r = 0;

	if (s->child->execd->config.has_setgroups) {
		r = sys_setgroups(u->groups_n, u->groups);
	}
	if (r < 0) {
		return error_sys(e, -r, "set supplementary groups");
	}
	r = sys_setresgid(u->gid);
	if (r < 0) {
		return error_sys(e, -r, "become group %u", u->gid);
	}
	r = sys_setresuid(u->uid);
	return r < 0 ? error_sys(e, -r, "become user %u", u->uid) : 0;
}

static int step_caps(struct setup *s, struct error *e)
{
	int r = caps_set(s->user.uid == 0 ? s->process.caps : 0);

	return r < 0 ? error_sys(e, -r, "set capabilities") : 0;
}

/* Where the request of a client names no directory, the one that a session was left in or the main
 * process began in is only a habit: a client that has removed it must still be able to run things.
 */
static int cwd_enter(const struct setup *s)
{
	if (chdir(s->cwd) == 0) {
		return 0;
	}
	int sysno = errno;

	if ((sysno != ENOENT && sysno != ENOTDIR) || !s->more || s->more->cwd || chdir("/") < 0) {
		return -sysno;
	}
	(void)dprintf(STDERR_FILENO, "osbx: working directory \"%s\" is gone, \"/\" is used\n",
			shown(s->cwd).text);
	return 0;
}

/* As the user, who must be able to enter it. */
static int step_cwd(struct setup *s, struct error *e)
{
	char where[LIMIT_PATH_BYTES + 1];
	int r = cwd_enter(s);

	if (r < 0) {
		(void)error_set(e, ERRC_INVALID, "working directory \"%s\"", shown(s->cwd).text);
		e->sysno = -r;
		return -1;
	}
	/* The kernel says "(unreachable)…" outside the root (CVE-2024-21626). */
	long n = syscall(SYS_getcwd, where, sizeof(where));

	if (n < 1 || where[0] != '/') {
		return error_set(e, ERRC_DENIED, "working directory \"%s\" is not in the sandbox",
				shown(s->cwd).text);
	}
	return 0;
}

static int env_default(struct strv *env, const char *name, const char *value, struct error *e)
{
	if (strv_env_find(env, name)) {
		return 0;
	}
	int r = strv_addf(env, "%s=%s", name, value);

	return r < 0 ? error_sys(e, -r, "add %s to the environment", name) : 0;
}

static int step_env(struct setup *s, struct error *e)
{
	struct strv *env = &s->process.env;

	if (env_default(env, "PATH", DEFAULT_PATH, e) < 0 ||
			(s->process.set_home && env_default(env, "HOME", s->user.home, e) < 0)) {
		return -1;
	}
	return s->child->slave_fd >= 0 ? env_default(env, "TERM", "xterm", e) : 0;
}

void child_victim(int root_fd)
{
	char text[48];

	(void)snprintf(text, sizeof(text), "/proc/%d/oom_score_adj", getpid());
	autoclose int fd = path_open_nolink(root_fd, text, O_RDWR, 0);
	ssize_t n = fd < 0 ? fd : fd_read(fd, text, sizeof(text) - 1);
	uint64_t value = 0;

	if (n <= 0) {
		return;
	}
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	bool negative = text[0] == '-';

	if (str_to_u64(text + negative, OOM_SCORE_MAX, &value) == 0) {
		int wanted = (negative ? -(int)value : (int)value) + OOM_SCORE_ADD;

		(void)snprintf(text, sizeof(text), "%d",
				wanted < OOM_SCORE_MAX ? wanted : OOM_SCORE_MAX);
		(void)!fd_write_all(fd, text, strlen(text));
	}
}

static int step_victim(struct setup *s, struct error *e)
{
	(void)e;
	child_victim(s->child->execd->root_fd);
	return 0;
}

/* Late, so that a small limit does not hit our own steps. */
static int step_limits(struct setup *s, struct error *e)
{
	(void)umask(s->process.umask_bits & 0777);
	/* PID 1 has raised its own. */
	if (setrlimit(RLIMIT_NOFILE, &s->child->execd->nofile) < 0) {
		return error_sys(e, errno, "set the number of descriptors");
	}
	for (uint32_t i = 0; i < s->process.rlimits_n; i++) {
		const struct execd_rlimit *l = &s->process.rlimits[i];
		const struct rlimit value = { .rlim_cur = l->soft, .rlim_max = l->hard };

		if (setrlimit((int)l->resource, &value) < 0) {
			(void)error_sys(e, errno, "set resource limit %u to %llu:%llu", l->resource,
					(unsigned long long)l->soft, (unsigned long long)l->hard);
			return error_hint(e, "a limit cannot be raised above the caller's own");
		}
	}
	return 0;
}

static int step_filter(struct setup *s, struct error *e)
{
	const struct execd_config *config = &s->child->execd->config;

	if (config->workload_filter_n == 0) {
		return 0;
	}
	int r = sys_seccomp(config->workload_filter, config->workload_filter_n);

	return r < 0 ? error_sys(e, -r, "install the syscall filter") : 0;
}

static int step_exec(struct setup *s, struct error *e)
{
	const struct execd_process *p = &s->process;
	const char *path_list = strv_env_find(&p->env, "PATH");

	if (p->copy) {
		copy_run(s->child->execd->root_fd, s->report_fd, &p->argv);
	}
	(void)!command_exec(strv_get(&p->argv), strv_get(&p->env), path_list, e);
	if (!s->more || !s->more->otherwise || e->code != ERRC_NO_COMMAND) {
		return -1;
	}
	return child_exec_shell(s, e);
}

struct child_step {
	const char *name;
	int (*run)(struct setup *s, struct error *e);
};

/* The bounding set needs CAP_SETPCAP, the working directory CAP_DAC_OVERRIDE: before the ids.
 * Nothing stands between the filter and execve. */
static const struct child_step child_steps[] = {
	{ "process", step_spec },
	{ "victim", step_victim },
	{ "session", step_session },
	{ "terminal", step_terminal },
	{ "stdio", step_stdio },
	{ "user", step_user },
	{ "stdio", step_stdio_owner },
	{ "cwd", step_cwd_make },
	{ "environment", child_step_env_dir },
	{ "capabilities", step_bound },
	{ "ids", step_ids },
	{ "capabilities", step_caps },
	{ "environment", step_env },
	{ "environment", child_step_envs },
	{ "cwd", child_step_cwd },
	{ "cwd", step_cwd },
	{ "descriptors", child_step_fds },
	{ "limits", step_limits },
	{ "filter", step_filter },
	{ "exec", step_exec },
};

void child_run(const struct child *c)
{
	struct setup s = { .child = c, .report_fd = c->report_fd };
	struct error e = ERROR_INIT;
	size_t i = 0;

	while (i < ARRAY_SIZE(child_steps) && child_steps[i].run(&s, &e) == 0) {
		i++;
	}
	/* What the user can mend reads better without our word for it. */
	if (e.code == ERRC_SYSTEM || e.code == ERRC_INTERNAL) {
		(void)error_wrap(&e, "%s", child_steps[i].name);
	}
	int r = fd_write_all(s.report_fd, &e, sizeof(e));

	_exit(error_exit_status(r < 0 ? ERRC_INTERNAL : e.code));
}
