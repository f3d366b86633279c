/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <osbx/cleanup.h>
#include <osbx/sys.h>

/* setgroups, setresuid … have 16-bit namesakes on 32-bit machines. */
_Static_assert(sizeof(long) == 8, "raw system calls here assume a 64-bit machine");

/* Kernel convention to ours. */
static int result(long r)
{
	return r < 0 ? -errno : (int)r;
}

int sys_mount(const char *src, const char *dst, const char *type, unsigned long flags,
		const char *data)
{
	return result(mount(src, dst, type, flags, data));
}

int sys_umount(const char *dst, int flags)
{
	return result(umount2(dst, flags));
}

int sys_open_tree(int dir_fd, const char *path, unsigned int flags)
{
	return result(syscall(SYS_open_tree, dir_fd, path, flags | OPEN_TREE_CLOEXEC));
}

int sys_move_mount(int mount_fd, int dst_fd)
{
	return result(syscall(SYS_move_mount, mount_fd, "", dst_fd, "",
			MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
}

int sys_fsopen(const char *type)
{
	return result(syscall(SYS_fsopen, type, FSOPEN_CLOEXEC));
}

int sys_fsconfig_set(int fs_fd, const char *key, const char *value)
{
	unsigned int cmd = value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;

	return result(syscall(SYS_fsconfig, fs_fd, cmd, key, value, 0));
}

int sys_fsconfig_set_fd(int fs_fd, const char *key, int fd)
{
	return result(syscall(SYS_fsconfig, fs_fd, FSCONFIG_SET_FD, key, NULL, fd));
}

int sys_fsconfig_create(int fs_fd)
{
	return result(syscall(SYS_fsconfig, fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0));
}

int sys_fsmount(int fs_fd, unsigned int attrs)
{
	return result(syscall(SYS_fsmount, fs_fd, FSMOUNT_CLOEXEC, attrs));
}

int sys_mount_setattr(int mount_fd, unsigned int flags, const struct mount_attr *attr)
{
	return result(syscall(SYS_mount_setattr, mount_fd, "", flags | AT_EMPTY_PATH, attr,
			sizeof(*attr)));
}

int sys_pivot_root(const char *new_root, const char *put_old)
{
	return result(syscall(SYS_pivot_root, new_root, put_old));
}

/* clone(2): the third argument takes the pidfd on every 64-bit machine. */
static pid_t clone_old(uint64_t flags, int *out_pidfd)
{
	/* CLONE_NEWTIME lies in the bits of the exit signal; newer flags lie above 32 bits. */
	if (flags > UINT32_MAX || (flags & CSIGNAL)) {
		return -EINVAL;
	}
	int pidfd = -1;
	pid_t pid = result(syscall(SYS_clone, flags | CLONE_PIDFD | SIGCHLD, 0, &pidfd, 0, 0));

	if (pid > 0) {
		*out_pidfd = pidfd;
	}
	return pid;
}

pid_t sys_clone(uint64_t flags, int cgroup_fd, int *out_pidfd)
{
	int pidfd = -1;
	struct clone_args args = {
		.flags = flags | CLONE_PIDFD,
		.pidfd = (uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};

	if (cgroup_fd >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)cgroup_fd;
	}
	pid_t pid = result(syscall(SYS_clone3, &args, sizeof(args)));

	if (pid > 0) {
		*out_pidfd = pidfd;
	}
	if (pid != -ENOSYS && pid != -EPERM) {
		return pid;
	}
	/* An outer filter refuses clone3 (its flags are behind a pointer) with either errno; EPERM
	 * may as well be the kernel's answer to CLONE_NEWUSER: clone(2) then says it again. */
	return cgroup_fd >= 0 ? -EOPNOTSUPP : clone_old(flags, out_pidfd);
}

pid_t sys_fork(void)
{
	return result(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
}

int sys_unshare(int flags)
{
	return result(unshare(flags));
}

int sys_setns(int fd, int type)
{
	return result(setns(fd, type));
}

int sys_openat2(int dir_fd, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve)
{
	struct open_how how = { .flags = flags | O_CLOEXEC, .mode = mode, .resolve = resolve };

	return result(syscall(SYS_openat2, dir_fd, path, &how, sizeof(how)));
}

/* What the kernel's getdents64 writes; glibc declares no such type. */
struct dirent_raw {
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

/* Number of a descriptor from its name in /proc/self/fd, -1 for "." and "..". */
static int fd_from_name(const char *name)
{
	int fd = 0;

	for (; *name; name++) {
		if (*name < '0' || *name > '9') {
			return -1;
		}
		fd = fd * 10 + (*name - '0');
	}
	return fd;
}

static void fd_drop(int fd, unsigned int flags)
{
	if (flags & CLOSE_RANGE_CLOEXEC) {
		(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	} else {
		(void)close(fd);
	}
}

/* No opendir: it allocates, and this runs after clone. procfs lists by number, so closing while
 * reading skips nothing. */
static int close_by_proc(unsigned int first, unsigned int last, unsigned int flags)
{
	_Alignas(struct dirent_raw) char names[2048];
	autoclose int dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0) {
		return -errno;
	}
	for (;;) {
		long n = syscall(SYS_getdents64, dir, names, sizeof(names));

		if (n <= 0) {
			return result(n);
		}
		for (long at = 0; at < n;) {
			const struct dirent_raw *d = (const void *)(names + at);
			int fd = fd_from_name(d->name);

			if (fd >= 0 && fd != dir && (unsigned int)fd >= first &&
					(unsigned int)fd <= last) {
				fd_drop(fd, flags);
			}
			at += d->reclen;
		}
	}
}

int sys_close_range(unsigned int first, unsigned int last, unsigned int flags)
{
	int r = result(syscall(SYS_close_range, first, last, flags));

	/* EINVAL: CLOSE_RANGE_CLOEXEC came two releases later, with Linux 5.11. */
	if (first <= last && (r == -ENOSYS || r == -EPERM || r == -EINVAL)) {
		return close_by_proc(first, last, flags);
	}
	return r;
}

int sys_pidfd_open(pid_t pid)
{
	return result(syscall(SYS_pidfd_open, pid, 0));
}

int sys_pidfd_kill(int pidfd, int sig)
{
	return result(syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0));
}

int sys_execveat(int fd, char *const *argv, char *const *envp)
{
	return result(syscall(SYS_execveat, fd, "", argv, envp, AT_EMPTY_PATH));
}

int sys_setgroups(size_t n, const gid_t *groups)
{
	return result(syscall(SYS_setgroups, n, groups));
}

int sys_setresgid(gid_t gid)
{
	return result(syscall(SYS_setresgid, gid, gid, gid));
}

int sys_setresuid(uid_t uid)
{
	return result(syscall(SYS_setresuid, uid, uid, uid));
}

int sys_sethostname(const char *name)
{
	return result(sethostname(name, strlen(name)));
}

int sys_prctl(int option, unsigned long arg)
{
	return result(prctl(option, arg, 0UL, 0UL, 0UL));
}

int sys_capget(struct sys_caps *out_caps)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };
	int r = result(syscall(SYS_capget, &head, data));

	if (r == 0) {
		*out_caps = (struct sys_caps){
			.effective = (uint64_t)data[1].effective << 32 | data[0].effective,
			.permitted = (uint64_t)data[1].permitted << 32 | data[0].permitted,
			.inheritable = (uint64_t)data[1].inheritable << 32 | data[0].inheritable,
		};
	}
	return r;
}

int sys_capset(const struct sys_caps *caps)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {
		{
				.effective = (uint32_t)caps->effective,
				.permitted = (uint32_t)caps->permitted,
				.inheritable = (uint32_t)caps->inheritable,
		},
		{
				.effective = (uint32_t)(caps->effective >> 32),
				.permitted = (uint32_t)(caps->permitted >> 32),
				.inheritable = (uint32_t)(caps->inheritable >> 32),
		},
	};

	return result(syscall(SYS_capset, &head, data));
}

int sys_seccomp(const struct sock_filter *insns, size_t n)
{
	if (n == 0 || n > BPF_MAXINSNS) {
		return -EINVAL;
	}
	/* The kernel only reads the program; its structure lacks the const. */
	union {
		const struct sock_filter *in;
		struct sock_filter *out;
	} p = { .in = insns };
	struct sock_fprog prog = { .len = (unsigned short)n, .filter = p.out };

	return result(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog));
}

int sys_rename_new(int from_fd, const char *from, int to_fd, const char *to)
{
	/* RENAME_NOREPLACE is in <linux/fs.h>, which does not go with <sys/mount.h>. */
	return result(syscall(SYS_renameat2, from_fd, from, to_fd, to, 1U));
}

int sys_mknod_at(int dir_fd, const char *name, mode_t mode, dev_t dev)
{
	return result(mknodat(dir_fd, name, mode, dev));
}

int sys_netns_open(void)
{
	autoclose int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return sock < 0 ? -errno : result(ioctl(sock, SIOCGSKNS));
}

int sys_loopback_up(void)
{
	autoclose int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq req = { .ifr_name = "lo" };

	if (sock < 0 || ioctl(sock, SIOCGIFFLAGS, &req) < 0) {
		return -errno;
	}
	req.ifr_flags = (short)(req.ifr_flags | IFF_UP);
	return result(ioctl(sock, SIOCSIFFLAGS, &req));
}

int sys_ping_allow(uint32_t last_gid)
{
	char range[32];
	autoclose int fd = open("/proc/sys/net/ipv4/ping_group_range", O_WRONLY | O_CLOEXEC);
	int n = snprintf(range, sizeof(range), "0 %u", last_gid);

	return fd < 0 || write(fd, range, (size_t)n) != n ? -errno : 0;
}
