/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <osbx/buf.h>
#include <osbx/caps.h>
#include <osbx/fd.h>
#include <osbx/limits.h>
#include <osbx/sys.h>

#include "execd.h"

/* Two filters and a few numbers. */
#define CONFIG_BYTES_MAX ((size_t)2 * LIMIT_BPF_INSNS * sizeof(struct sock_filter) + 4096)

/* To become any user of the sandbox, to make a working directory for it, to signal it. */
#define OWN_CAPS                                                                          \
	(CAPS_BIT(CAP_SETUID) | CAPS_BIT(CAP_SETGID) | CAPS_BIT(CAP_SETPCAP) |            \
			CAPS_BIT(CAP_KILL) | CAPS_BIT(CAP_CHOWN) | CAPS_BIT(CAP_FOWNER) | \
			CAPS_BIT(CAP_DAC_OVERRIDE))

/* What the launcher left open besides our own would be a way out (CVE-2024-21626), and our own
 * must not reach a process we start. */
static int step_descriptors(struct execd *x, struct error *e)
{
	struct statfs fs;

	/* The launcher has no cgroup to give, or has left something else open there. */
	if (fstatfs(x->cgroup_fd, &fs) < 0 || fs.f_type != CGROUP2_SUPER_MAGIC) {
		fd_close(&x->cgroup_fd);
	}
	const int fds[] = { x->init_fd, x->control_fd, x->config_fd, x->root_fd, x->cgroup_fd };
	int r = sys_close_range(EXECD_FD_COUNT, UINT_MAX, 0);

	if (r < 0) {
		return error_sys(e, -r, "close inherited descriptors");
	}
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		r = fds[i] < 0 ? 0 : fd_set_cloexec(fds[i], true);
		if (r < 0) {
			return error_sys(e, -r, "descriptor %d", fds[i]);
		}
	}
	return 0;
}

static int step_root(struct execd *x, struct error *e)
{
	if (fchdir(x->root_fd) < 0) {
		return error_sys(e, errno, "enter the new root");
	}
	/* The old root comes to lie on top of the new one, needs no directory there, and goes. */
	int r = sys_pivot_root(".", ".");

	if (r < 0) {
		return error_sys(e, -r, "make it the root of the sandbox");
	}
	r = sys_umount(".", MNT_DETACH);
	if (r < 0) {
		return error_sys(e, -r, "detach the old root");
	}
	return chdir("/") < 0 ? error_sys(e, errno, "change to the root") : 0;
}

/* A workload of our user id could otherwise open /proc/1/mem and /proc/1/fd. */
static int step_dumpable(struct execd *x, struct error *e)
{
	(void)x;
	int r = sys_prctl(PR_SET_DUMPABLE, 0);

	return r < 0 ? error_sys(e, -r, "set not dumpable") : 0;
}

/* Keyrings have no namespace, and who possesses the caller's session keyring may use its keys. Our
 * own filters refuse keyctl; without them (unconfined, a profile of the user's) the sandbox gets a
 * keyring of its own. Not always: each one counts against the caller's quota. */
static int step_keyring(struct execd *x, struct error *e)
{
	if (x->config.own_filter_n > 0) {
		return 0;
	}
	/* ENOSYS and EPERM: no keyrings, or an outer filter that refuses them to the guest too. */
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS &&
			errno != EPERM) {
		return error_sys(e, errno, "join a new session keyring");
	}
	return 0;
}

/* execveat leaves the number of a descriptor as the name that ps(1) shows. */
static int step_name(struct execd *x, struct error *e)
{
	(void)x;
	int r = sys_prctl(PR_SET_NAME, (unsigned long)"osbx-execd");

	return r < 0 ? error_sys(e, -r, "set") : 0;
}

static int step_config(struct execd *x, struct error *e)
{
	AUTO(buf) struct buf b = BUF_INIT(CONFIG_BYTES_MAX);

	/* Whoever wrote it left the offset at its end. */
	int r = lseek(x->config_fd, 0, SEEK_SET) < 0 ? -errno : fd_read_all(x->config_fd, &b);

	if (r == 0) {
		r = execd_config_decode(buf_span(&b), &x->config);
	}
	if (r < 0) {
		return error_sys(e, -r, "read it");
	}
	fd_close(&x->config_fd);
	return 0;
}

static int step_capabilities(struct execd *x, struct error *e)
{
	x->caps = x->config.caps | OWN_CAPS | (x->config.isolation ? CAPS_BIT(CAP_SYS_ADMIN) : 0);
	int r = caps_bound(x->caps);

	if (r < 0) {
		return error_sys(e, -r, "drop from the bounding set");
	}
	r = caps_set(x->caps);
	return r < 0 ? error_sys(e, -r, "set") : 0;
}

static int step_privileges(struct execd *x, struct error *e)
{
	(void)x;
	int r = sys_prctl(PR_SET_NO_NEW_PRIVS, 1);

	return r < 0 ? error_sys(e, -r, "set no_new_privs") : 0;
}

/* What the launcher ignored or blocked must not be inherited; SIGCHLD ignored would reap by
 * itself. PID 1 of a pid namespace is not killed by default actions. */
static int step_signals(struct execd *x, struct error *e)
{
	const struct sigaction sa = { .sa_handler = SIG_DFL };
	sigset_t set;

	(void)x;
	for (int signo = 1; signo < NSIG; signo++) {
		(void)sigaction(signo, &sa, NULL); /* fails for KILL, STOP and libc's own */
	}
	(void)sigemptyset(&set);
	if (sigprocmask(SIG_SETMASK, &set, NULL) < 0) {
		return error_sys(e, errno, "unblock");
	}
	(void)umask(022);
	/* The launcher's terminal is none of ours; fails when we lead a session already. */
	(void)setsid();
	return 0;
}

/* Each connection is a descriptor, and so is each process that is watched. */
static int step_limits(struct execd *x, struct error *e)
{
	if (getrlimit(RLIMIT_NOFILE, &x->nofile) < 0) {
		return error_sys(e, errno, "read the number of descriptors");
	}
	const struct rlimit own = { .rlim_cur = x->nofile.rlim_max,
		.rlim_max = x->nofile.rlim_max };

	return setrlimit(RLIMIT_NOFILE, &own) < 0
			       ? error_sys(e, errno, "raise the number of descriptors")
			       : 0;
}

static int step_filter(struct execd *x, struct error *e)
{
	if (x->config.own_filter_n == 0) {
		return 0;
	}
	int r = sys_seccomp(x->config.own_filter, x->config.own_filter_n);

	return r < 0 ? error_sys(e, -r, "install") : 0;
}

struct enter_step {
	const char *name;
	int (*run)(struct execd *x, struct error *e);
};

/* The order matters: descriptors before anything else can go wrong; the configuration decides what
 * is kept; the filter last, no step has to get through it. */
static const struct enter_step enter_steps[] = {
	{ "descriptors", step_descriptors },
	{ "root", step_root },
	{ "dumpable", step_dumpable },
	{ "name", step_name },
	{ "configuration", step_config },
	{ "keyring", step_keyring },
	{ "signals", step_signals },
	{ "capabilities", step_capabilities },
	{ "privileges", step_privileges },
	{ "limits", step_limits },
	{ "service", serve_begin },
	{ "filter", step_filter },
};

int enter(struct execd *x, struct error *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(enter_steps); i++) {
		if (enter_steps[i].run(x, e) < 0) {
			return error_wrap(e, "execd: %s", enter_steps[i].name);
		}
	}
	return 0;
}
