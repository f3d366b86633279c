/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mock_sys.h"

#define FDS_MAX   512
#define CAPS_FULL ((UINT64_C(1) << (MOCK_SYS_CAP_LAST + 1)) - 1)

char mock_sys_log[32768];
int mock_sys_fail_at;
int mock_sys_errno;
int mock_sys_calls;
pid_t mock_sys_clone_result = MOCK_SYS_PID;
int mock_sys_exec_result = -ENOEXEC;
bool mock_sys_openat2_real;
bool mock_sys_open_tree_real;
struct sys_caps mock_sys_caps = { .effective = CAPS_FULL, .permitted = CAPS_FULL };
uint64_t mock_sys_bounding = CAPS_FULL;

static size_t used;
static int fds[FDS_MAX];
static int fds_n;

void mock_sys_reset(void)
{
	used = 0;
	fds_n = 0;
	mock_sys_calls = 0;
	mock_sys_fail_at = 0;
	mock_sys_errno = 0;
	mock_sys_clone_result = MOCK_SYS_PID;
	mock_sys_exec_result = -ENOEXEC;
	mock_sys_openat2_real = false;
	mock_sys_open_tree_real = false;
	mock_sys_caps = (struct sys_caps){ .effective = CAPS_FULL, .permitted = CAPS_FULL };
	mock_sys_bounding = CAPS_FULL;
	mock_sys_log[0] = '\0';
}

int mock_sys_count(const char *prefix)
{
	int n = 0;

	for (const char *p = mock_sys_log; *p; p = strchr(p, '\n') + 1) {
		n += strncmp(p, prefix, strlen(prefix)) == 0;
	}
	return n;
}

const char *mock_sys_line(int n)
{
	static char line[1024];
	const char *p = mock_sys_log;

	for (int i = 1; i < n && *p; i++) {
		p = strchr(p, '\n') + 1;
	}
	(void)snprintf(line, sizeof(line), "%.*s", (int)strcspn(p, "\n"), p);
	return line;
}

int mock_sys_name_fd(int fd)
{
	if (fds_n >= FDS_MAX) {
		(void)fputs("mock_sys: too many descriptors\n", stderr);
		abort();
	}
	fds[fds_n++] = fd;
	return fds_n;
}

/* How a descriptor stands in the log. A number may have been closed and given again: the newest
 * counts. The text is valid for eight calls. */
static const char *fd_text(int fd)
{
	static char texts[8][16];
	static unsigned int at;
	char *text = texts[at++ % 8];

	if (fd == AT_FDCWD || fd < 0) {
		return fd == AT_FDCWD ? "cwd" : "none";
	}
	for (int i = fds_n; i > 0; i--) {
		if (fds[i - 1] == fd) {
			(void)snprintf(text, sizeof(texts[0]), "#%d", i);
			return text;
		}
	}
	return "fd";
}

static const char *or_dash(const char *s)
{
	return s ? s : "-";
}

/* Log one call. 0, or the failure it was told to have. */
PRINTF_LIKE(1, 2)
static int call(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(mock_sys_log + used, sizeof(mock_sys_log) - used, fmt, ap);

	va_end(ap);
	if (n < 0 || used + (size_t)n + 2 > sizeof(mock_sys_log)) {
		(void)fputs("mock_sys: log is full\n", stderr);
		abort();
	}
	used += (size_t)n;
	mock_sys_log[used++] = '\n';
	mock_sys_log[used] = '\0';
	return ++mock_sys_calls == mock_sys_fail_at ? -mock_sys_errno : 0;
}

/* r, or a new descriptor that the log knows by number. */
static int fd_or(int r)
{
	if (r < 0) {
		return r;
	}
	int fd = open("/dev/null", O_PATH | O_CLOEXEC);

	if (fd < 0) {
		return -errno;
	}
	(void)mock_sys_name_fd(fd);
	return fd;
}

int sys_mount(const char *src, const char *dst, const char *type, unsigned long flags,
		const char *data)
{
	return call("mount %s %s %s %lx %s", or_dash(src), dst, or_dash(type), flags,
			or_dash(data));
}

int sys_umount(const char *dst, int flags)
{
	return call("umount %s %x", dst, (unsigned int)flags);
}

int sys_open_tree(int dir_fd, const char *path, unsigned int flags)
{
	int r = call("open_tree %s %s %x", fd_text(dir_fd), path, flags);

	if (r < 0 || !mock_sys_open_tree_real) {
		return fd_or(r);
	}
	/* Nothing opens O_PATH | AT_EMPTY_PATH anew but the kernel's magic link. */
	char magic[32];

	(void)snprintf(magic, sizeof(magic), "/proc/self/fd/%d", dir_fd);
	int fd = openat(dir_fd, path[0] ? path : magic, O_PATH | O_CLOEXEC);

	if (fd < 0) {
		return -errno;
	}
	(void)mock_sys_name_fd(fd);
	return fd;
}

int sys_move_mount(int mount_fd, int dst_fd)
{
	return call("move_mount %s %s", fd_text(mount_fd), fd_text(dst_fd));
}

int sys_fsopen(const char *type)
{
	return fd_or(call("fsopen %s", type));
}

int sys_fsconfig_set(int fs_fd, const char *key, const char *value)
{
	return call("fsconfig %s %s %s", fd_text(fs_fd), key, or_dash(value));
}

int sys_fsconfig_set_fd(int fs_fd, const char *key, int fd)
{
	return call("fsconfig %s %s %s", fd_text(fs_fd), key, fd_text(fd));
}

int sys_fsconfig_create(int fs_fd)
{
	return call("fsconfig_create %s", fd_text(fs_fd));
}

int sys_fsmount(int fs_fd, unsigned int attrs)
{
	return fd_or(call("fsmount %s %x", fd_text(fs_fd), attrs));
}

int sys_mount_setattr(int mount_fd, unsigned int flags, const struct mount_attr *attr)
{
	bool idmap = attr->attr_set & MOUNT_ATTR_IDMAP;

	return call("mount_setattr %s %x set=%llx clr=%llx prop=%llx userns=%s", fd_text(mount_fd),
			flags, (unsigned long long)attr->attr_set,
			(unsigned long long)attr->attr_clr, (unsigned long long)attr->propagation,
			idmap ? fd_text((int)attr->userns_fd) : "-");
}

int sys_pivot_root(const char *new_root, const char *put_old)
{
	return call("pivot_root %s %s", new_root, put_old);
}

pid_t sys_clone(uint64_t flags, int cgroup_fd, int *out_pidfd)
{
	int r = call("clone %llx %s", (unsigned long long)flags, fd_text(cgroup_fd));

	if (r < 0 || mock_sys_clone_result == 0) {
		return r;
	}
	r = fd_or(0);
	if (r < 0) {
		return r;
	}
	*out_pidfd = r;
	return mock_sys_clone_result;
}

pid_t sys_fork(void)
{
	int r = call("fork");

	return r < 0 ? r : mock_sys_clone_result;
}

int sys_unshare(int flags)
{
	return call("unshare %x", (unsigned int)flags);
}

int sys_setns(int fd, int type)
{
	return call("setns %s %x", fd_text(fd), (unsigned int)type);
}

int sys_openat2(int dir_fd, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve)
{
	int r = call("openat2 %s %s %llx %llo %llx", fd_text(dir_fd), path,
			(unsigned long long)flags, (unsigned long long)mode,
			(unsigned long long)resolve);

	if (r < 0 || !mock_sys_openat2_real) {
		return fd_or(r);
	}
	struct open_how how = { .flags = flags | O_CLOEXEC, .mode = mode, .resolve = resolve };
	int fd = (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));

	if (fd < 0) {
		return -errno;
	}
	(void)mock_sys_name_fd(fd);
	return fd;
}

int sys_close_range(unsigned int first, unsigned int last, unsigned int flags)
{
	return call("close_range %u %u %x", first, last, flags);
}

int sys_pidfd_open(pid_t pid)
{
	return fd_or(call("pidfd_open %d", pid));
}

int sys_pidfd_kill(int pidfd, int sig)
{
	return call("pidfd_kill %s %d", fd_text(pidfd), sig);
}

int sys_execveat(int fd, char *const *argv, char *const *envp)
{
	(void)envp;
	int r = call("execveat %s %s", fd_text(fd), or_dash(argv[0]));

	return r < 0 ? r : mock_sys_exec_result;
}

int sys_setgroups(size_t n, const gid_t *groups)
{
	char text[256] = "";
	size_t len = 0;

	for (size_t i = 0; i < n && len + 12 < sizeof(text); i++) {
		len += (size_t)snprintf(text + len, sizeof(text) - len, " %u", groups[i]);
	}
	return call("setgroups %zu%s", n, text);
}

int sys_setresgid(gid_t gid)
{
	return call("setresgid %u", gid);
}

int sys_setresuid(uid_t uid)
{
	return call("setresuid %u", uid);
}

int sys_sethostname(const char *name)
{
	return call("sethostname %s", name);
}

int sys_prctl(int option, unsigned long arg)
{
	int r = call("prctl %d %lx", option, arg);

	if (r < 0 || (option != PR_CAPBSET_READ && option != PR_CAPBSET_DROP)) {
		return r;
	}
	if (arg > MOCK_SYS_CAP_LAST) {
		return -EINVAL;
	}
	if (option == PR_CAPBSET_READ) {
		return (int)(mock_sys_bounding >> arg & 1);
	}
	mock_sys_bounding &= ~(UINT64_C(1) << arg);
	return 0;
}

int sys_capget(struct sys_caps *out_caps)
{
	int r = call("capget");

	if (r == 0) {
		*out_caps = mock_sys_caps;
	}
	return r;
}

int sys_capset(const struct sys_caps *caps)
{
	int r = call("capset %llx %llx %llx", (unsigned long long)caps->effective,
			(unsigned long long)caps->permitted, (unsigned long long)caps->inheritable);

	if (r == 0) {
		mock_sys_caps = *caps;
	}
	return r;
}

int sys_seccomp(const struct sock_filter *insns, size_t n)
{
	(void)insns;
	return call("seccomp %zu", n);
}

int sys_rename_new(int from_fd, const char *from, int to_fd, const char *to)
{
	return call("rename_new %s %s %s %s", fd_text(from_fd), from, fd_text(to_fd), to);
}

int sys_mknod_at(int dir_fd, const char *name, mode_t mode, dev_t dev)
{
	return call("mknod %s %s %o %llx", fd_text(dir_fd), name, mode, (unsigned long long)dev);
}

int sys_netns_open(void)
{
	return fd_or(call("netns_open"));
}

int sys_loopback_up(void)
{
	return call("loopback_up");
}

int sys_ping_allow(uint32_t last_gid)
{
	return call("ping_allow %u", last_gid);
}
