/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <osbx/limits.h>
#include <osbx/secfilter.h>
#include <osbx/sys.h>

#include "bpf.h"

static uint32_t answer(enum secfilter_kind kind, long nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	struct secfilter f;
	struct seccomp_data data = { .nr = (int)nr, .arch = ARCH, .args = { a0, a1, a2 } };

	secfilter_builtin(kind, &f);
	return bpf_run(&f, &data);
}

struct row {
	long nr;
	uint64_t args[3];
	uint32_t workload;
	uint32_t isolation;
};

#define SAME(nr, action, ...)                       \
	{                                           \
		nr, { __VA_ARGS__ }, action, action \
	}

static const struct row rows[] = {
	SAME(SYS_read, ALLOW, 0),
	SAME(SYS_openat, ALLOW, 0),
	SAME(SYS_openat2, ALLOW, 0),
	SAME(SYS_execve, ALLOW, 0),
	SAME(SYS_ptrace, ALLOW, 0),
	SAME(SYS_seccomp, ALLOW, 0),
	SAME(SYS_chroot, ALLOW, 0),
	SAME(SYS_mknodat, ALLOW, 0),
	SAME(SYS_setresuid, ALLOW, 0),
	SAME(SYS_process_vm_readv, ALLOW, 0),
	SAME(SYS_getrandom, ALLOW, 0),
	/* what libraries try and do without */
	SAME(SYS_clone3, ERRNO(ENOSYS), 0),
	SAME(SYS_io_uring_setup, ERRNO(ENOSYS), 0),
	SAME(SYS_io_uring_enter, ERRNO(ENOSYS), 0),
	SAME(SYS_io_uring_register, ERRNO(ENOSYS), 0),
	SAME(900, ERRNO(ENOSYS), 0),
	SAME(1023, ERRNO(ENOSYS), 0),
	SAME(100000, ERRNO(ENOSYS), 0),
	/* namespaces */
	SAME(SYS_clone, ALLOW, SIGCHLD),
	SAME(SYS_clone, ALLOW, CLONE_VM | CLONE_VFORK | SIGCHLD),
	SAME(SYS_clone, ALLOW, 0x3d0f00 /* a thread of glibc */),
	{ SYS_clone, { CLONE_NEWUSER }, ERRNO(EPERM), ALLOW },
	{ SYS_clone, { CLONE_NEWUSER | HIGH | SIGCHLD }, ERRNO(EPERM), ALLOW },
	{ SYS_clone, { CLONE_NEWNS | SIGCHLD }, ERRNO(EPERM), ALLOW },
	{ SYS_clone, { CLONE_NEWPID | SIGCHLD }, ERRNO(EPERM), ALLOW },
	{ SYS_clone, { CLONE_NEWNET | SIGCHLD }, ERRNO(EPERM), ALLOW },
	{ SYS_clone, { CLONE_NEWIPC | SIGCHLD }, ERRNO(EPERM), ALLOW },
	{ SYS_clone, { CLONE_NEWUTS | SIGCHLD }, ERRNO(EPERM), ALLOW },
	{ SYS_clone, { CLONE_NEWCGROUP | SIGCHLD }, ERRNO(EPERM), ALLOW },
	SAME(SYS_unshare, ALLOW, CLONE_FILES | CLONE_FS),
	{ SYS_unshare, { CLONE_NEWUSER }, ERRNO(EPERM), ALLOW },
	{ SYS_unshare, { 0x80 /* CLONE_NEWTIME */ }, ERRNO(EPERM), ALLOW },
	{ SYS_unshare, { CLONE_FILES | CLONE_NEWNET }, ERRNO(EPERM), ALLOW },
	{ SYS_setns, { 0 }, ERRNO(EPERM), ALLOW },
	/* mounts */
	{ SYS_mount, { 0 }, ERRNO(EPERM), ALLOW },
	{ SYS_umount2, { 0 }, ERRNO(EPERM), ALLOW },
	{ SYS_pivot_root, { 0 }, ERRNO(EPERM), ALLOW },
	{ SYS_open_tree, { 0 }, ERRNO(EPERM), ALLOW },
	{ SYS_move_mount, { 0 }, ERRNO(EPERM), ALLOW },
	{ SYS_fsopen, { 0 }, ERRNO(EPERM), ALLOW },
	{ SYS_fsconfig, { 0 }, ERRNO(EPERM), ALLOW },
	{ SYS_fsmount, { 0 }, ERRNO(EPERM), ALLOW },
	{ SYS_fspick, { 0 }, ERRNO(EPERM), ALLOW },
	{ SYS_mount_setattr, { 0 }, ERRNO(EPERM), ALLOW },
	SAME(SYS_open_by_handle_at, ERRNO(EPERM), 0),
	/* terminals: 32 bits count */
	SAME(SYS_ioctl, ERRNO(EPERM), 0, TIOCSTI),
	SAME(SYS_ioctl, ERRNO(EPERM), 0, TIOCSTI | HIGH),
	SAME(SYS_ioctl, ERRNO(EPERM), 0, TIOCSTI | UINT64_C(0xffffffff00000000)),
	SAME(SYS_ioctl, ERRNO(EPERM), 0, TIOCLINUX),
	SAME(SYS_ioctl, ERRNO(EPERM), 0, TIOCLINUX | HIGH),
	SAME(SYS_ioctl, ALLOW, 0, TIOCGWINSZ),
	SAME(SYS_ioctl, ALLOW, 0, TIOCSTI - 1),
	SAME(SYS_ioctl, ALLOW, 0, TIOCSTI + 1),
	SAME(SYS_ioctl, ALLOW, TIOCSTI, 0),
	SAME(SYS_ioctl, ALLOW, 0, UINT64_C(0xffffffff80045430) /* musl extends the sign */),
	/* sockets */
	SAME(SYS_socket, ALLOW, AF_UNIX),
	SAME(SYS_socket, ALLOW, AF_INET, SOCK_STREAM),
	SAME(SYS_socket, ALLOW, AF_INET6, SOCK_DGRAM),
	SAME(SYS_socket, ALLOW, AF_NETLINK, SOCK_RAW, 0),
	SAME(SYS_socket, ERRNO(EAFNOSUPPORT), AF_NETLINK, SOCK_RAW, 9 /* audit */),
	SAME(SYS_socket, ERRNO(EAFNOSUPPORT), AF_NETLINK, SOCK_RAW, 12 /* netfilter */),
	SAME(SYS_socket, ERRNO(EAFNOSUPPORT), AF_PACKET),
	SAME(SYS_socket, ERRNO(EAFNOSUPPORT), AF_PACKET | HIGH),
	SAME(SYS_socket, ERRNO(EAFNOSUPPORT), AF_ALG),
	SAME(SYS_socket, ERRNO(EAFNOSUPPORT), AF_VSOCK),
	SAME(SYS_socket, ERRNO(EAFNOSUPPORT), AF_BLUETOOTH),
	SAME(SYS_socket, ERRNO(EAFNOSUPPORT), 0),
	SAME(SYS_socket, ERRNO(EAFNOSUPPORT), 0xffffffff),
	SAME(SYS_socketpair, ALLOW, AF_UNIX),
	SAME(SYS_socketpair, ERRNO(EAFNOSUPPORT), AF_TIPC),
	/* personality */
	SAME(SYS_personality, ALLOW, 0),
	SAME(SYS_personality, ALLOW, 0x8),
	SAME(SYS_personality, ALLOW, 0x20000),
	SAME(SYS_personality, ALLOW, 0x20008),
	SAME(SYS_personality, ALLOW, 0xffffffff),
	SAME(SYS_personality, ALLOW, UINT64_C(0xffffffffffffffff)),
	SAME(SYS_personality, ERRNO(EPERM), 0x0400000 /* READ_IMPLIES_EXEC */),
	SAME(SYS_personality, ERRNO(EPERM), 1),
	/* the kernel and the machine */
	SAME(SYS_add_key, ERRNO(EPERM), 0),
	SAME(SYS_keyctl, ERRNO(EPERM), 0),
	SAME(SYS_request_key, ERRNO(EPERM), 0),
	SAME(SYS_bpf, ERRNO(EPERM), 0),
	SAME(SYS_perf_event_open, ERRNO(EPERM), 0),
	SAME(SYS_userfaultfd, ERRNO(EPERM), 0),
	SAME(SYS_kexec_load, ERRNO(EPERM), 0),
	SAME(SYS_init_module, ERRNO(EPERM), 0),
	SAME(SYS_finit_module, ERRNO(EPERM), 0),
	SAME(SYS_delete_module, ERRNO(EPERM), 0),
	SAME(SYS_swapon, ERRNO(EPERM), 0),
	SAME(SYS_reboot, ERRNO(EPERM), 0),
	SAME(SYS_settimeofday, ERRNO(EPERM), 0),
	SAME(SYS_clock_settime, ERRNO(EPERM), 0),
	SAME(SYS_acct, ERRNO(EPERM), 0),
	SAME(SYS_quotactl, ERRNO(EPERM), 0),
	SAME(SYS_syslog, ERRNO(EPERM), 0),
	{ SYS_sethostname, { 0 }, ERRNO(EPERM), ALLOW },
};

START_TEST(workload_rules)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *r = &rows[i];
		uint32_t w = answer(SECFILTER_WORKLOAD, r->nr, r->args[0], r->args[1], r->args[2]);
		uint32_t o = answer(SECFILTER_WORKLOAD_ISOLATION, r->nr, r->args[0], r->args[1],
				r->args[2]);

		ck_assert_msg(w == r->workload, "row %zu, call %ld: %#x", i, r->nr, w);
		ck_assert_msg(o == r->isolation, "row %zu, call %ld, isolation: %#x", i, r->nr, o);
	}
}
END_TEST

START_TEST(unpack_rules)
{
	static const struct {
		long nr;
		uint64_t args[3];
		uint32_t action;
	} unpack[] = {
		{ SYS_openat, { 0 }, ALLOW },
		{ SYS_mkdirat, { 0 }, ALLOW },
		{ SYS_linkat, { 0 }, ALLOW },
		{ SYS_fchownat, { 0 }, ALLOW },
		{ SYS_lsetxattr, { 0 }, ALLOW },
		{ SYS_sendmsg, { 0 }, ALLOW },
		{ SYS_exit_group, { 0 }, ALLOW },
		{ SYS_socket, { AF_UNIX }, KILL },
		{ SYS_connect, { 0 }, KILL },
		{ SYS_execve, { 0 }, KILL },
		{ SYS_execveat, { 0 }, KILL },
		{ SYS_ptrace, { 0 }, KILL },
		{ SYS_mount, { 0 }, KILL },
		{ SYS_unshare, { 0 }, KILL },
		{ SYS_clone, { SIGCHLD }, ERRNO(EPERM) },
		{ SYS_clone3, { 0 }, ERRNO(ENOSYS) },
		{ SYS_kill, { 0 }, ERRNO(ENOSYS) },
		{ SYS_mmap, { 0, 4096, PROT_READ | PROT_WRITE }, ALLOW },
		{ SYS_mmap, { 0, 4096, PROT_READ | PROT_EXEC }, ERRNO(EPERM) },
		{ SYS_mprotect, { 0, 4096, PROT_EXEC | HIGH }, ERRNO(EPERM) },
		{ SYS_mprotect, { 0, 4096, PROT_NONE }, ALLOW },
		{ SYS_ioctl, { 1, TCGETS }, ERRNO(ENOTTY) },
		{ SYS_ioctl, { 1, TIOCSTI }, ERRNO(ENOTTY) },
		{ SYS_ioctl, { 1, 0x40049409 /* FICLONE */ }, ALLOW },
		{ SYS_prctl, { PR_SET_NAME }, ALLOW },
		{ SYS_prctl, { PR_SET_DUMPABLE }, ERRNO(EPERM) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(unpack); i++) {
		uint32_t a = answer(SECFILTER_UNPACK, unpack[i].nr, unpack[i].args[0],
				unpack[i].args[1], unpack[i].args[2]);

		ck_assert_msg(a == unpack[i].action, "row %zu, call %ld: %#x", i, unpack[i].nr, a);
	}
}
END_TEST

START_TEST(fetch_rules)
{
	static const struct {
		long nr;
		uint64_t args[3];
		uint32_t action;
	} fetch[] = {
		{ SYS_socket, { AF_INET, SOCK_STREAM, 0 }, ALLOW },
		{ SYS_socket, { AF_INET6, SOCK_DGRAM, 0 }, ALLOW },
		{ SYS_socket, { AF_NETLINK, SOCK_RAW, 0 /* NETLINK_ROUTE */ }, ALLOW },
		{ SYS_socket, { AF_NETLINK, SOCK_RAW, 12 /* NETLINK_NETFILTER */ },
				ERRNO(EAFNOSUPPORT) },
		{ SYS_socket, { AF_UNIX, SOCK_STREAM, 0 }, ERRNO(EAFNOSUPPORT) },
		{ SYS_socket, { AF_PACKET, SOCK_RAW, 0 }, ERRNO(EAFNOSUPPORT) },
		{ SYS_socketpair, { AF_UNIX, SOCK_STREAM, 0 }, ALLOW },
		{ SYS_connect, { 0 }, ALLOW },
		{ SYS_listen, { 0 }, KILL },
		{ SYS_accept4, { 0 }, KILL },
		{ SYS_openat, { 0, 0, O_RDONLY | O_CLOEXEC }, ALLOW },
		{ SYS_openat, { 0, 0, O_WRONLY }, ERRNO(EACCES) },
		{ SYS_openat, { 0, 0, O_RDWR | HIGH }, ERRNO(EACCES) },
		{ SYS_openat, { 0, 0, O_RDONLY | O_CREAT }, ERRNO(EACCES) },
		{ SYS_openat, { 0, 0, O_RDONLY | O_TRUNC }, ERRNO(EACCES) },
		{ SYS_openat2, { 0 }, ERRNO(ENOSYS) },
		{ SYS_unlinkat, { 0 }, ERRNO(ENOSYS) },
		{ SYS_mkdirat, { 0 }, ERRNO(ENOSYS) },
		{ SYS_clone, { CLONE_VM | CLONE_THREAD | CLONE_SIGHAND }, ALLOW },
		{ SYS_clone, { SIGCHLD }, ERRNO(EPERM) },
		{ SYS_clone, { CLONE_VM | CLONE_VFORK | SIGCHLD }, ERRNO(EPERM) },
		{ SYS_clone3, { 0 }, ERRNO(ENOSYS) },
		{ SYS_execve, { 0 }, KILL },
		{ SYS_ptrace, { 0 }, KILL },
		{ SYS_process_vm_readv, { 0 }, KILL },
		{ SYS_mount, { 0 }, KILL },
		{ SYS_setns, { 0 }, KILL },
		{ SYS_kill, { 0 }, ERRNO(ENOSYS) },
		{ SYS_tgkill, { 1, 1, SIGABRT }, ALLOW },
		{ SYS_tgkill, { 1, 1, SIGKILL }, ERRNO(EPERM) },
		{ SYS_prlimit64, { 0, RLIMIT_NOFILE }, ALLOW },
		{ SYS_prlimit64, { 1, RLIMIT_NOFILE }, ERRNO(EPERM) },
		{ SYS_mmap, { 0, 4096, PROT_READ | PROT_WRITE }, ALLOW },
		{ SYS_mmap, { 0, 4096, PROT_READ | PROT_EXEC }, ERRNO(EPERM) },
		{ SYS_mprotect, { 0, 4096, PROT_EXEC }, ERRNO(EPERM) },
		{ SYS_ioctl, { 1, FIONREAD }, ALLOW },
		{ SYS_ioctl, { 1, TIOCSTI }, ERRNO(ENOTTY) },
		{ SYS_prctl, { PR_SET_DUMPABLE }, ERRNO(EPERM) },
		{ SYS_splice, { 0 }, ALLOW },
		{ SYS_memfd_create, { 0 }, ALLOW },
	};

	for (size_t i = 0; i < ARRAY_SIZE(fetch); i++) {
		uint32_t a = answer(SECFILTER_FETCH, fetch[i].nr, fetch[i].args[0],
				fetch[i].args[1], fetch[i].args[2]);

		ck_assert_msg(a == fetch[i].action, "row %zu, call %ld: %#x", i, fetch[i].nr, a);
	}
}
END_TEST

/* A socket that the keeper has connected stays connected to that. */
START_TEST(netd_rules)
{
	static const struct {
		long nr;
		uint64_t args[6];
		uint32_t action;
	} netd[] = {
		{ SYS_sendto, { 9, 1, 1, 0, 0, 0 }, ALLOW },
		{ SYS_sendto, { 9, 1, 1, 0, HIGH, 16 }, ERRNO(EPERM) },
		{ SYS_sendto, { 15, 1, 1, 0, 1, 28 }, ERRNO(EPERM) },
		{ SYS_sendto, { 16, 1, 1, 0, 1, 16 }, ALLOW },
		{ SYS_sendto, { 19, 1, 1, 0, 1, 16 }, ALLOW },
		{ SYS_sendto, { 20, 1, 1, 0, 1, 16 }, ERRNO(EPERM) },
		{ SYS_sendto, { 16 + 128, 1, 1, 0, 1, 16 }, ERRNO(EPERM) },
		{ SYS_sendmsg, { 3, 1, 0 }, ALLOW },
		{ SYS_sendmsg, { 9, 1, 0 }, ERRNO(EPERM) },
		{ SYS_sendmmsg, { 3, 1, 1 }, ERRNO(ENOSYS) },
		{ SYS_connect, { 9, 1, 16 }, KILL },
		{ SYS_bind, { 9, 1, 16 }, KILL },
		{ SYS_close, { 9 }, ALLOW },
		{ SYS_close, { 3 }, ERRNO(EPERM) },
		{ SYS_close, { 16 }, ERRNO(EPERM) },
		{ SYS_close, { 19 }, ERRNO(EPERM) },
		{ SYS_close, { 20 }, ALLOW },
		{ SYS_close_range, { 16, 19 }, ERRNO(ENOSYS) },
		{ SYS_dup3, { 9, 16 }, ERRNO(ENOSYS) },
		{ SYS_setsockopt, { 9, SOL_SOCKET, SO_LINGER }, ALLOW },
		{ SYS_setsockopt, { 9, IPPROTO_TCP, 1 }, ALLOW },
		{ SYS_setsockopt, { 9, IPPROTO_IP, 3 }, ERRNO(EPERM) },
		{ SYS_setsockopt, { 9, IPPROTO_IPV6, 36 }, ERRNO(EPERM) },
		{ SYS_setsockopt, { 9, SOL_RAW, 1 }, ERRNO(EPERM) },
	};
	struct secfilter f;

	secfilter_builtin(SECFILTER_NETD, &f);
	for (size_t i = 0; i < ARRAY_SIZE(netd); i++) {
		struct seccomp_data data = { .arch = ARCH, .nr = (int)netd[i].nr };

		for (size_t k = 0; k < ARRAY_SIZE(netd[i].args); k++) {
			data.args[k] = netd[i].args[k];
		}
		uint32_t a = bpf_run(&f, &data);

		ck_assert_msg(a == netd[i].action, "row %zu: %#x", i, a);
	}
}
END_TEST

/* Every number ends in an answer; foreign tables of system calls end the process. */
START_TEST(every_number)
{
	struct secfilter f;
	struct seccomp_data data = { .arch = ARCH };
	size_t allowed = 0;

	secfilter_builtin((enum secfilter_kind)_i, &f);
	/* One is an allow-list only together with another. */
	const bool is_part = _i == SECFILTER_CHILD;

	ck_assert_uint_gt(f.n, is_part ? 5 : 50);
	ck_assert_uint_lt(f.n, is_part ? 20 : LIMIT_BPF_INSNS);
	for (int nr = 0; nr < 2048; nr++) {
		data.nr = nr;
		data.arch = ARCH;
		allowed += bpf_run(&f, &data) == ALLOW;
		data.arch = ARCH_FOREIGN;
		ck_assert_uint_eq(bpf_run(&f, &data), KILL);
		data.arch = 0;
		ck_assert_uint_eq(bpf_run(&f, &data), KILL);
	}
	/* What does one thing, needs little. */
	ck_assert_uint_gt(allowed, _i == SECFILTER_NETD ? 40 : 80);
	ck_assert_uint_lt(allowed, is_part ? 2048 : 400);
	data.arch = ARCH;
	data.nr = -1; /* a tracer cancelled the call */
	ck_assert_uint_eq(bpf_run(&f, &data), ERRNO(ENOSYS));
#if defined(__x86_64__)
	for (int nr = 0; nr < 1024; nr++) {
		data.nr = 0x40000000 | nr; /* x32 */
		ck_assert_uint_eq(bpf_run(&f, &data), KILL);
	}
	data.nr = -2;
	ck_assert_uint_eq(bpf_run(&f, &data), KILL);
#endif
}
END_TEST

/* Of two filters the kernel takes the answer that allows less. */
static uint32_t answer_of_both(enum secfilter_kind init, const struct row *r)
{
	uint32_t one = answer(init, r->nr, r->args[0], r->args[1], r->args[2]);
	uint32_t other = answer(SECFILTER_CHILD, r->nr, r->args[0], r->args[1], r->args[2]);

	return other == ALLOW ? one : other;
}

/* The filter of PID 1 is inherited: with that of its children it is the workload's, to the letter.
 */
START_TEST(init_and_child_are_the_workload)
{
	static const enum secfilter_kind pairs[][2] = {
		{ SECFILTER_WORKLOAD, SECFILTER_INIT },
		{ SECFILTER_WORKLOAD_ISOLATION, SECFILTER_INIT_ISOLATION },
	};

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		for (int nr = 0; nr < 1024; nr++) {
			const struct row any = { .nr = nr };

			ck_assert_uint_eq(answer_of_both(pairs[i][1], &any),
					answer(pairs[i][0], nr, 0, 0, 0));
		}
		for (size_t k = 0; k < ARRAY_SIZE(rows); k++) {
			const struct row *r = &rows[k];

			ck_assert_uint_eq(answer_of_both(pairs[i][1], r),
					answer(pairs[i][0], r->nr, r->args[0], r->args[1],
							r->args[2]));
		}
		ck_assert_uint_eq(answer(pairs[i][1], SYS_clone3, 0, 0, 0), ALLOW);
	}
	ck_assert_uint_eq(answer(SECFILTER_CHILD, SYS_clone3, 0, 0, 0), ERRNO(ENOSYS));
}
END_TEST

/* In a child under the filter: 0, an errno, or 1000 + signal. */
static int under(enum secfilter_kind kind, long (*attempt)(void))
{
	int status = 0;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		struct secfilter f;

		secfilter_builtin(kind, &f);
		if (sys_prctl(PR_SET_NO_NEW_PRIVS, 1) < 0 || sys_seccomp(f.insns, f.n) < 0) {
			_exit(250);
		}
		_exit(attempt() < 0 ? errno : 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

static long try_ok(void)
{
	return syscall(SYS_getppid);
}

static long try_clone3(void)
{
	return syscall(SYS_clone3, NULL, 0);
}

static long try_userns(void)
{
	return syscall(SYS_unshare, CLONE_NEWUSER);
}

static long try_tiocsti(void)
{
	return syscall(SYS_ioctl, 0, TIOCSTI | HIGH, "x");
}

static long try_packet(void)
{
	return syscall(SYS_socket, AF_PACKET, SOCK_RAW, 0);
}

static long try_keyctl(void)
{
	return syscall(SYS_keyctl, 0, -3, 1);
}

static long try_exec(void)
{
	static char *const argv[] = { NULL };

	return syscall(SYS_execve, "/nonexistent", argv, argv);
}

START_TEST(kernel_agrees)
{
	ck_assert_int_eq(under(SECFILTER_WORKLOAD, try_ok), 0);
	ck_assert_int_eq(under(SECFILTER_WORKLOAD, try_clone3), ENOSYS);
	ck_assert_int_eq(under(SECFILTER_WORKLOAD, try_userns), EPERM);
	ck_assert_int_eq(under(SECFILTER_WORKLOAD, try_tiocsti), EPERM);
	ck_assert_int_eq(under(SECFILTER_WORKLOAD, try_packet), EAFNOSUPPORT);
	ck_assert_int_eq(under(SECFILTER_WORKLOAD, try_keyctl), EPERM);
	ck_assert_int_eq(under(SECFILTER_WORKLOAD, try_exec), ENOENT);
	ck_assert_int_eq(under(SECFILTER_WORKLOAD_ISOLATION, try_clone3), ENOSYS);
	ck_assert_int_eq(under(SECFILTER_WORKLOAD_ISOLATION, try_keyctl), EPERM);
	ck_assert_int_eq(under(SECFILTER_UNPACK, try_exec), 1000 + SIGSYS);
	ck_assert_int_eq(under(SECFILTER_UNPACK, try_packet), 1000 + SIGSYS);
	ck_assert_int_eq(under(SECFILTER_UNPACK, try_ok), 0);
}
END_TEST

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

START_TEST(foreign_calls_are_killed)
{
	ck_assert_int_eq(under(SECFILTER_WORKLOAD, try_x32), 1000 + SIGSYS);
	int r = under(SECFILTER_WORKLOAD, try_int80);

	/* A kernel without that entry faults by itself. */
	ck_assert_msg(r == 1000 + SIGSYS || r == 1000 + SIGSEGV, "%d", r);
}
END_TEST
#endif

START_TEST(done_twice)
{
	struct secfilter f;

	secfilter_builtin(SECFILTER_WORKLOAD, &f);
	secfilter_done(&f);
	ck_assert_ptr_null(f.insns);
	secfilter_done(&f);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("secfilter");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, workload_rules);
	tcase_add_test(tc, unpack_rules);
	tcase_add_test(tc, fetch_rules);
	tcase_add_test(tc, netd_rules);
	tcase_add_loop_test(tc, every_number, 0, SECFILTER_KIND_COUNT);
	tcase_add_test(tc, init_and_child_are_the_workload);
	tcase_add_test(tc, kernel_agrees);
#if defined(__x86_64__)
	tcase_add_test(tc, foreign_calls_are_killed);
#endif
	tcase_add_test(tc, done_twice);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
