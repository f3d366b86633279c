/* SPDX-License-Identifier: Apache-2.0 */
/*
 * try_syscall NAME…: what happens to a process of a sandbox that tries it. One line each:
 * "NAME ok", "NAME EPERM" (any errno), "NAME SIGSYS" (any signal). Without a name: all names.
 * Each attempt is made by a child of its own. Some would do harm if they succeeded: it refuses to
 * run unless PID 1 is execd.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define HIGH                                                                                \
	(1UL << 32) /* a bit that the kernel does not look at, but a 64-bit comparison does \
		     */

#ifndef SYS_quotactl_fd
#	define SYS_quotactl_fd 443
#endif

static long try_clone3(void)
{
	return syscall(SYS_clone3, NULL, 0);
}

static long try_io_uring_setup(void)
{
	return syscall(SYS_io_uring_setup, 0, NULL);
}

static long try_keyctl(void)
{
	return syscall(SYS_keyctl, 0 /* KEYCTL_GET_KEYRING_ID */, -3 /* session */, 0);
}

static long try_add_key(void)
{
	return syscall(SYS_add_key, "user", "osbx-try", "x", 1, -2 /* process */);
}

static long try_request_key(void)
{
	return syscall(SYS_request_key, "user", "osbx-try", NULL, 0);
}

static long try_unshare_user(void)
{
	return syscall(SYS_unshare, CLONE_NEWUSER);
}

static long try_unshare_mount(void)
{
	return syscall(SYS_unshare, CLONE_NEWNS);
}

static long try_clone_user(void)
{
	long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0) {
		_exit(0);
	}
	return pid;
}

static long try_setns(void)
{
	return syscall(SYS_setns, open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC), 0);
}

static long try_mount(void)
{
	return mount("none", "/tmp", "tmpfs", 0, NULL);
}

static long try_remount(void)
{
	return mount("none", "/proc", NULL, MS_REMOUNT | MS_BIND, NULL);
}

static long try_umount(void)
{
	return umount2("/dev/shm", 0);
}

static long try_pivot_root(void)
{
	return syscall(SYS_pivot_root, ".", ".");
}

static long try_fsopen(void)
{
	return syscall(SYS_fsopen, "tmpfs", 0);
}

static long try_open_tree(void)
{
	return syscall(SYS_open_tree, AT_FDCWD, "/", 1 /* OPEN_TREE_CLONE */);
}

static long try_mount_setattr(void)
{
	return syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, NULL, 0);
}

static long try_open_by_handle_at(void)
{
	return syscall(SYS_open_by_handle_at, AT_FDCWD, NULL, 0);
}

static long try_ptrace_init(void)
{
	return ptrace(PTRACE_SEIZE, 1, NULL, NULL);
}

static long try_kill_init(void)
{
	return kill(1, SIGKILL);
}

static long try_mem_init(void)
{
	return open("/proc/1/mem", O_RDWR | O_CLOEXEC);
}

static long try_exe_init(void)
{
	return open("/proc/1/exe", O_RDONLY | O_CLOEXEC);
}

static long try_socket_packet(void)
{
	return socket(AF_PACKET, SOCK_RAW, 0);
}

static long try_socket_alg(void)
{
	return socket(AF_ALG, SOCK_SEQPACKET, 0);
}

static long try_socket_vsock(void)
{
	return socket(AF_VSOCK, SOCK_STREAM, 0);
}

static long try_socket_raw(void)
{
	return socket(AF_INET, SOCK_RAW, 1 /* ICMP */);
}

static long try_socket_unix(void)
{
	return socket(AF_UNIX, SOCK_STREAM, 0);
}

static long try_socket_inet(void)
{
	return socket(AF_INET, SOCK_STREAM, 0);
}

static long try_socket_route(void)
{
	return socket(AF_NETLINK, SOCK_RAW, 0);
}

static long try_socket_netfilter(void)
{
	return socket(AF_NETLINK, SOCK_RAW, 12);
}

static long try_tiocsti(void)
{
	return syscall(SYS_ioctl, 0, (unsigned long)TIOCSTI, "x");
}

static long try_tiocsti_high(void)
{
	return syscall(SYS_ioctl, 0, TIOCSTI | HIGH, "x");
}

static long try_tioclinux(void)
{
	return syscall(SYS_ioctl, 0, (unsigned long)TIOCLINUX, "\x06");
}

static long try_tioclinux_high(void)
{
	return syscall(SYS_ioctl, 0, TIOCLINUX | HIGH, "\x06");
}

static long try_bpf(void)
{
	return syscall(SYS_bpf, 0, NULL, 0);
}

static long try_perf_event_open(void)
{
	return syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0);
}

static long try_userfaultfd(void)
{
	return syscall(SYS_userfaultfd, 1 /* UFFD_USER_MODE_ONLY */);
}

static long try_personality(void)
{
	return syscall(SYS_personality, 0x0400000 /* READ_IMPLIES_EXEC */);
}

static long try_personality_ask(void)
{
	return syscall(SYS_personality, 0xffffffff);
}

static long try_init_module(void)
{
	return syscall(SYS_init_module, NULL, 0, "");
}

static long try_kexec_load(void)
{
	return syscall(SYS_kexec_load, 0, 0, NULL, 0);
}

static long try_reboot(void)
{
	return syscall(SYS_reboot, 0, 0, 0, NULL); /* wrong magic: EINVAL if it gets through */
}

static long try_swapon(void)
{
	return syscall(SYS_swapon, NULL, 0);
}

static long try_settimeofday(void)
{
	return syscall(SYS_settimeofday, NULL, NULL);
}

static long try_sethostname(void)
{
	return syscall(SYS_sethostname, NULL, 1);
}

static long try_syslog(void)
{
	return syscall(SYS_syslog, 10 /* size of the buffer */, NULL, 0);
}

static long try_quotactl(void)
{
	return syscall(SYS_quotactl, 0, NULL, 0, NULL);
}

static long try_mknod_disk(void)
{
	long r = mknod("/tmp/try_syscall.disk", S_IFBLK | 0600, makedev(8, 0));

	if (r == 0) {
		(void)unlink("/tmp/try_syscall.disk");
	}
	return r;
}

static long try_unknown(void)
{
	return syscall(900);
}

#if defined(__x86_64__)
static long try_int80(void)
{
	long r = 20; /* getpid of i386 */

	__asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
	return r;
}

static long try_x32(void)
{
	return syscall(0x40000000L | SYS_getpid);
}
#endif

#define ROW(name)                 \
	{                         \
#		name, try_##name \
	}

static const struct attempt {
	const char *name;
	long (*run)(void);
} attempts[] = {
	ROW(clone3),
	ROW(io_uring_setup),
	ROW(keyctl),
	ROW(add_key),
	ROW(request_key),
	ROW(unshare_user),
	ROW(unshare_mount),
	ROW(clone_user),
	ROW(setns),
	ROW(mount),
	ROW(remount),
	ROW(umount),
	ROW(pivot_root),
	ROW(fsopen),
	ROW(open_tree),
	ROW(mount_setattr),
	ROW(open_by_handle_at),
	ROW(ptrace_init),
	ROW(kill_init),
	ROW(mem_init),
	ROW(exe_init),
	ROW(socket_packet),
	ROW(socket_alg),
	ROW(socket_vsock),
	ROW(socket_raw),
	ROW(socket_unix),
	ROW(socket_inet),
	ROW(socket_route),
	ROW(socket_netfilter),
	ROW(tiocsti),
	ROW(tiocsti_high),
	ROW(tioclinux),
	ROW(tioclinux_high),
	ROW(bpf),
	ROW(perf_event_open),
	ROW(userfaultfd),
	ROW(personality),
	ROW(personality_ask),
	ROW(init_module),
	ROW(kexec_load),
	ROW(reboot),
	ROW(swapon),
	ROW(settimeofday),
	ROW(sethostname),
	ROW(syslog),
	ROW(quotactl),
	ROW(mknod_disk),
	ROW(unknown),
#if defined(__x86_64__)
	ROW(int80),
	ROW(x32),
#endif
};

static void attempt_run(const struct attempt *a)
{
	int status = 0;

	(void)fflush(stdout);
	pid_t pid = fork();

	if (pid == 0) {
		errno = 0;
		_exit(a->run() < 0 ? errno : 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0) {
		perror("try_syscall");
		exit(2);
	}
	if (WIFSIGNALED(status)) {
		printf("%s SIG%s\n", a->name, sigabbrev_np(WTERMSIG(status)));
	} else if (WEXITSTATUS(status) == 0) {
		printf("%s ok\n", a->name);
	} else {
		printf("%s %s\n", a->name, strerrorname_np(WEXITSTATUS(status)));
	}
}

/* The name that execd gives itself. */
static int is_sandbox(void)
{
	char name[16] = "";
	int fd = open("/proc/1/comm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, name, sizeof(name) - 1) : -1;

	return n > 0 && strcmp(name, "osbx-execd\n") == 0;
}

int main(int argc, char **argv)
{
	int missing = argc - 1;

	if (!is_sandbox()) {
		(void)fprintf(stderr, "try_syscall: this is not a sandbox of osbx\n");
		return 2;
	}

	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
		for (int k = 1; k < argc; k++) {
			if (strcmp(attempts[i].name, argv[k]) == 0) {
				attempt_run(&attempts[i]);
				missing--;
			}
		}
		if (argc == 1) {
			attempt_run(&attempts[i]);
		}
	}
	if (missing != 0) {
		(void)fprintf(stderr, "try_syscall: unknown name\n");
		return 2;
	}
	return 0;
}
