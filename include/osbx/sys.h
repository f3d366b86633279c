/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * sys - privileged and raw system calls, the seam of the unit tests.
 *
 * A static library of its own (libsys); a unit test links tests/mock/mock_sys.c instead, which
 * logs calls and can fail the k-th. Each function is one system call: >= 0 or -errno. All may be
 * called after clone in a child.
 */
#ifndef OSBX_SYS_H
#define OSBX_SYS_H

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/mount.h> /* MS_*, MNT_DETACH: after linux/mount.h, whose MS_* it replaces */
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <osbx/compiler.h>

/* Linux 5.11; not in the headers of musl. */
#ifndef CLOSE_RANGE_CLOEXEC
#	define CLOSE_RANGE_CLOEXEC 4U
#endif
/* Linux 6.3; Debian 12 has the headers of 6.1. */
#ifndef MFD_NOEXEC_SEAL
#	define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef MFD_EXEC
#	define MFD_EXEC 0x0010U
#endif
#ifndef MOUNT_ATTR_NOSYMFOLLOW
#	define MOUNT_ATTR_NOSYMFOLLOW 0x00200000
#endif

/* The sets of capget(2), bit masks of CAP_*. */
struct sys_caps {
	uint64_t effective;
	uint64_t permitted;
	uint64_t inheritable;
};

/* mount(2). */
int sys_mount(const char *src, const char *dst, const char *type, unsigned long flags,
		const char *data) MUST_CHECK;
/* umount2(2). */
int sys_umount(const char *dst, int flags) MUST_CHECK;
/* open_tree(2), Linux 5.2; OPEN_TREE_CLOEXEC is added. fd. */
int sys_open_tree(int dir_fd, const char *path, unsigned int flags) MUST_CHECK;
/* move_mount(2) from a detached tree or mount descriptor to a directory or file descriptor
 * (both paths empty: no lookup, no race). */
int sys_move_mount(int mount_fd, int dst_fd) MUST_CHECK;
/* fsopen(2) with FSOPEN_CLOEXEC. fd. */
int sys_fsopen(const char *type) MUST_CHECK;
/* fsconfig(2): FSCONFIG_SET_STRING, or FSCONFIG_SET_FLAG when value is NULL. */
int sys_fsconfig_set(int fs_fd, const char *key, const char *value) MUST_CHECK;
/* fsconfig(2): FSCONFIG_SET_FD. */
int sys_fsconfig_set_fd(int fs_fd, const char *key, int fd) MUST_CHECK;
/* fsconfig(2): FSCONFIG_CMD_CREATE. */
int sys_fsconfig_create(int fs_fd) MUST_CHECK;
/* fsmount(2) with FSMOUNT_CLOEXEC and MOUNT_ATTR_* flags. fd. */
int sys_fsmount(int fs_fd, unsigned int attrs) MUST_CHECK;
/* mount_setattr(2), Linux 5.12, on a mount descriptor; flags e.g. AT_RECURSIVE. */
int sys_mount_setattr(int mount_fd, unsigned int flags, const struct mount_attr *attr) MUST_CHECK;
/* pivot_root(".", ".") */
int sys_pivot_root(const char *new_root, const char *put_old) MUST_CHECK;
/* clone3(2); ENOSYS or EPERM of an outer filter falls back to clone(2) without CLONE_INTO_CGROUP
 * (then -EOPNOTSUPP if a cgroup was asked for and could not be used: call again without it; EPERM
 * of the kernel itself is told then). Returns the pid in the parent, 0 in the child, -errno.
 * *out_pidfd (O_CLOEXEC) is set in the parent. cgroup_fd may be -1. The child has a copy of the
 * memory, as after fork; SIGCHLD is its exit signal. */
pid_t sys_clone(uint64_t flags, int cgroup_fd, int *out_pidfd) MUST_CHECK;
/* fork(2) by raw clone with SIGCHLD, for helpers that stay in this image. */
pid_t sys_fork(void) MUST_CHECK;
/* unshare(2), setns(2). */
int sys_unshare(int flags) MUST_CHECK;
int sys_setns(int fd, int type) MUST_CHECK;
/* openat2(2), Linux 5.6: flags, mode and RESOLVE_* as given plus O_CLOEXEC. fd. */
int sys_openat2(int dir_fd, const char *path, uint64_t flags, uint64_t mode,
		uint64_t resolve) MUST_CHECK;
/* close_range(2), Linux 5.9, falls back to /proc/self/fd. flags: CLOSE_RANGE_CLOEXEC. */
int sys_close_range(unsigned int first, unsigned int last, unsigned int flags) MUST_CHECK;
/* pidfd_open(2), pidfd_send_signal(2). */
int sys_pidfd_open(pid_t pid) MUST_CHECK;
int sys_pidfd_kill(int pidfd, int sig) MUST_CHECK;
/* execveat(fd, "", argv, envp, AT_EMPTY_PATH). Returns only on failure. */
int sys_execveat(int fd, char *const *argv, char *const *envp) MUST_CHECK;
/* setgroups, setresgid, setresuid by raw system call: this process is single-threaded. */
int sys_setgroups(size_t n, const gid_t *groups) MUST_CHECK;
int sys_setresgid(gid_t gid) MUST_CHECK;
int sys_setresuid(uid_t uid) MUST_CHECK;
/* sethostname(2), setdomainname(2) to "(none)" is left to the kernel's default. */
int sys_sethostname(const char *name) MUST_CHECK;
/* prctl(2) with one argument, the rest 0. */
int sys_prctl(int option, unsigned long arg) MUST_CHECK;
/* capget(2), capset(2) of the calling thread. */
int sys_capget(struct sys_caps *out_caps) MUST_CHECK;
int sys_capset(const struct sys_caps *caps) MUST_CHECK;
/* seccomp(SECCOMP_SET_MODE_FILTER); needs no_new_privs or CAP_SYS_ADMIN. */
int sys_seccomp(const struct sock_filter *insns, size_t n) MUST_CHECK;
/* renameat2(2) with RENAME_NOREPLACE: -EEXIST when TO is there. */
int sys_rename_new(int from_fd, const char *from, int to_fd, const char *to) MUST_CHECK;
/* mknodat(2). */
int sys_mknod_at(int dir_fd, const char *name, mode_t mode, dev_t dev) MUST_CHECK;
/* Descriptor (O_CLOEXEC) of the network namespace this process is in, which its user namespace owns
 * (SIOCGSKNS). */
int sys_netns_open(void) MUST_CHECK;
/* Bring the loopback device of this network namespace up (SIOCSIFFLAGS). */
int sys_loopback_up(void) MUST_CHECK;
/* Let groups 0 to last_gid of this user namespace, which are all in its map, have sockets for ping
 * in this network namespace (icmp(7)): where raw sockets are nobody's. */
int sys_ping_allow(uint32_t last_gid) MUST_CHECK;

#endif
