/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <osbx/netd.h>

#include "netd_links.h"
#include "secfilter_tables.h"

#define ALLOW    SECCOMP_RET_ALLOW
#define KILL     SECCOMP_RET_KILL_PROCESS
#define ERRNO(e) (SECCOMP_RET_ERRNO | (e))
#define ALL      0xffffffffU
#define IS(a, v)                                      \
	{                                             \
		.arg = (a), .mask = ALL, .value = (v) \
	}
#define NONE_OF(a, bits)                               \
	{                                              \
		.arg = (a), .mask = (bits), .value = 0 \
	}
#define CASES(c) .cases = (c), .cases_n = sizeof(c) / sizeof((c)[0])

/* Also CLONE_NEWTIME for unshare(2); in clone(2) that bit belongs to the exit signal. */
#define CLONE_NAMESPACES                                                               \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
			CLONE_NEWPID | CLONE_NEWNET)

/* A nested user namespace is the door to mount and netfilter bugs (CVE-2022-0185, -34918,
 * 2023-32233, 2024-1086). */
static const struct filter_case clone_cases[] = {
	{ { NONE_OF(0, CLONE_NAMESPACES) }, ALLOW },
};

static const struct filter_case unshare_cases[] = {
	{ { NONE_OF(0, CLONE_NAMESPACES | CLONE_NEWTIME) }, ALLOW },
};

/* Typing into a terminal that somebody else reads (CVE-2017-5226; TIOCLINUX: CVE-2023-28100). */
static const struct filter_case ioctl_cases[] = {
	{ { IS(1, TIOCSTI) }, ERRNO(EPERM) },
	{ { IS(1, TIOCLINUX) }, ERRNO(EPERM) },
};

/* Values that programs use: default, PER_LINUX32, UNAME26, both, and "only ask". */
static const struct filter_case personality_cases[] = {
	{ { IS(0, 0) }, ALLOW },
	{ { IS(0, 0x0008) }, ALLOW },
	{ { IS(0, 0x20000) }, ALLOW },
	{ { IS(0, 0x20008) }, ALLOW },
	{ { IS(0, ALL) }, ALLOW },
};

static const struct filter_case socket_cases[] = {
	{ { IS(0, AF_UNIX) }, ALLOW },
	{ { IS(0, AF_INET) }, ALLOW },
	{ { IS(0, AF_INET6) }, ALLOW },
	{ { IS(0, AF_NETLINK), IS(2, NETLINK_ROUTE) }, ALLOW },
};

static const struct filter_case socketpair_cases[] = {
	{ { IS(0, AF_UNIX) }, ALLOW },
};

static const struct filter_rule workload_rules[] = {
	/* files */
	{ "access chdir chmod chown close close_range copy_file_range creat dup dup2 dup3 faccessat "
	  "faccessat2 fadvise64 fallocate fchdir fchmod fchmodat fchmodat2=452 fchown fchownat fcntl "
	  "fdatasync flock fstat fstatfs fsync ftruncate futimesat getcwd getdents getdents64 lchown "
	  "link linkat lseek lstat mkdir mkdirat mknod mknodat name_to_handle_at newfstatat open "
	  "openat openat2 pread64 preadv preadv2 pwrite64 pwritev pwritev2 read readahead readlink "
	  "readlinkat readv rename renameat renameat2 rmdir sendfile splice stat statfs statx symlink "
	  "symlinkat sync sync_file_range syncfs tee truncate umask unlink unlinkat utime utimensat "
	  "utimes write writev cachestat=451 file_getattr=468 file_setattr=469",
			.action = ALLOW },
	/* extended attributes */
	{ "fgetxattr flistxattr fremovexattr fsetxattr getxattr lgetxattr listxattr llistxattr "
	  "lremovexattr lsetxattr removexattr setxattr setxattrat=463 getxattrat=464 listxattrat=465 "
	  "removexattrat=466",
			.action = ALLOW },
	/* waiting, notification */
	{ "epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait "
	  "epoll_wait_old eventfd eventfd2 fanotify_mark inotify_add_watch inotify_init inotify_init1 "
	  "inotify_rm_watch io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit pause "
	  "pipe pipe2 poll ppoll pselect6 select signalfd signalfd4 timerfd_create timerfd_gettime "
	  "timerfd_settime",
			.action = ALLOW },
	/* memory */
	{ "brk get_mempolicy madvise mbind membarrier memfd_create memfd_secret mincore mlock mlock2 "
	  "mlockall mmap mprotect mremap msync munlock munlockall munmap pkey_alloc pkey_free "
	  "pkey_mprotect process_mrelease remap_file_pages set_mempolicy mseal=462 "
	  "map_shadow_stack=453",
			.action = ALLOW },
	/* processes and threads; what ptrace-like calls may do is decided by the kernel (a tracer
	 * cannot get around a filter since Linux 4.8) */
	{ "arch_prctl execve execveat exit exit_group fork futex futex_waitv futex_wake=454 "
	  "futex_wait=455 futex_requeue=456 get_robust_list get_thread_area getcpu getpgid getpgrp "
	  "getpid getppid getpriority getrlimit getrusage getsid gettid ioprio_get ioprio_set "
	  "modify_ldt pidfd_getfd pidfd_open pidfd_send_signal prctl prlimit64 process_vm_readv "
	  "process_vm_writev ptrace restart_syscall rseq sched_get_priority_max "
	  "sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler "
	  "sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam sched_setscheduler "
	  "sched_yield set_robust_list set_thread_area set_tid_address setpgid setpriority setrlimit "
	  "setsid vfork wait4 waitid",
			.action = ALLOW },
	/* signals, clocks */
	{ "alarm clock_adjtime clock_getres clock_gettime clock_nanosleep adjtimex getitimer "
	  "gettimeofday kill nanosleep rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo "
	  "rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo setitimer sigaltstack tgkill "
	  "time timer_create timer_delete timer_getoverrun timer_gettime timer_settime times tkill",
			.action = ALLOW },
	/* identity, limits of rights; chroot as CAP_SYS_CHROOT is a default capability */
	{ "capget capset chroot getegid geteuid getgid getgroups getresgid getresuid getuid "
	  "landlock_add_rule landlock_create_ruleset landlock_restrict_self seccomp setfsgid setfsuid "
	  "setgid setgroups setregid setresgid setresuid setreuid setuid",
			.action = ALLOW },
	/* sockets that exist, System V and POSIX queues, the rest */
	{ "accept accept4 bind connect getpeername getrandom getsockname getsockopt listen mq_getsetattr "
	  "mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink msgctl msgget msgrcv msgsnd recvfrom "
	  "recvmmsg recvmsg semctl semget semop semtimedop sendmmsg sendmsg sendto setsockopt shmat "
	  "shmctl shmdt shmget shutdown sysinfo uname",
			.action = ALLOW },
	/* by argument */
	{ "clone", CASES(clone_cases), ERRNO(EPERM) },
	{ "unshare", CASES(unshare_cases), ERRNO(EPERM) },
	{ "ioctl", CASES(ioctl_cases), ALLOW },
	{ "personality", CASES(personality_cases), ERRNO(EPERM) },
	{ "socket", CASES(socket_cases), ERRNO(EAFNOSUPPORT) },
	{ "socketpair", CASES(socketpair_cases), ERRNO(EAFNOSUPPORT) },
	/* Its flags are behind a pointer; ENOSYS makes libraries use clone, EPERM breaks threads.
	 */
	{ "clone3", .action = ERRNO(ENOSYS) },
	/* Goes around every filter of files and sockets. */
	{ "io_uring_enter io_uring_register io_uring_setup", .action = ERRNO(ENOSYS) },
	/* mounts and namespaces */
	{ "fsconfig fsmount fsopen fspick mount mount_setattr move_mount open_by_handle_at open_tree "
	  "open_tree_attr=467 pivot_root setns umount2",
			.action = ERRNO(EPERM) },
	/* keyrings have no namespace */
	{ "add_key keyctl request_key", .action = ERRNO(EPERM) },
	/* the machine and the kernel */
	{ "acct bpf clock_settime delete_module fanotify_init finit_module init_module ioperm iopl kcmp "
	  "kexec_file_load kexec_load lookup_dcookie migrate_pages move_pages nfsservctl "
	  "perf_event_open process_madvise quotactl quotactl_fd reboot setdomainname sethostname "
	  "settimeofday swapoff swapon sysfs syslog userfaultfd uselib ustat vhangup vmsplice",
			.action = ERRNO(EPERM) },
};

#define ISOLATION_CALLS                                                                  \
	"clone fsconfig fsmount fsopen fspick mount mount_setattr move_mount open_tree " \
	"open_tree_attr=467 pivot_root setdomainname sethostname setns umount2 unshare"

static const struct filter_rule isolation_rules[] = {
	{ ISOLATION_CALLS, .action = ALLOW },
};

/* execd forks into cgroups with clone3: moving a process there takes some ten milliseconds. What it
 * starts is denied that by one filter more. */
static const struct filter_rule init_rules[] = {
	{ "clone3", .action = ALLOW },
};

static const struct filter_rule init_isolation_rules[] = {
	{ ISOLATION_CALLS " clone3", .action = ALLOW },
};

static const struct filter_rule child_rules[] = {
	{ "clone3", .action = ERRNO(ENOSYS) },
};

/* Executable memory would be code of the archive's author. */
static const struct filter_case no_exec_cases[] = {
	{ { { .arg = 2, .mask = 4 /* PROT_EXEC */, .value = 4 } }, ERRNO(EPERM) },
};

static const struct filter_case unpack_prctl_cases[] = {
	{ { IS(0, PR_SET_NAME) }, ALLOW },
	{ { IS(0, PR_SET_VMA) }, ALLOW },
};

static const struct filter_case unpack_ioctl_cases[] = {
	{ { IS(1, FICLONE) }, ALLOW },
	{ { IS(1, FICLONERANGE) }, ALLOW },
	{ { IS(1, FIONREAD) }, ALLOW },
};

/* The helper reads archives of strangers: it makes files and ends, nothing else. */
static const struct filter_rule unpack_rules[] = {
	{ "access chdir chmod chown close close_range copy_file_range dup dup2 dup3 faccessat faccessat2 "
	  "fadvise64 fallocate fchdir fchmod fchmodat fchmodat2=452 fchown fchownat fcntl fdatasync "
	  "flock fstat fstatfs fsync ftruncate futimesat getcwd getdents64 lchown link linkat lseek "
	  "lstat mkdir mkdirat mknod mknodat newfstatat open openat openat2 pread64 preadv preadv2 "
	  "pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv rename renameat renameat2 "
	  "rmdir sendfile splice stat statfs statx symlink symlinkat sync_file_range syncfs truncate "
	  "umask unlink unlinkat utime utimensat utimes write writev",
			.action = ALLOW },
	{ "fgetxattr flistxattr fremovexattr fsetxattr getxattr lgetxattr listxattr llistxattr "
	  "lremovexattr lsetxattr removexattr setxattr setxattrat=463 getxattrat=464 listxattrat=465 "
	  "removexattrat=466",
			.action = ALLOW },
	{ "epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd2 pipe2 poll ppoll "
	  "pselect6 recvfrom recvmsg select sendmsg sendto shutdown timerfd_create timerfd_gettime "
	  "timerfd_settime",
			.action = ALLOW },
	{ "brk clock_getres clock_gettime clock_nanosleep exit exit_group futex getcpu getegid geteuid "
	  "getgid getgroups getpid getppid getrandom getrlimit getrusage gettid gettimeofday getuid "
	  "madvise memfd_create mincore mremap msync munmap nanosleep prlimit64 restart_syscall rseq "
	  "rt_sigaction rt_sigpending rt_sigprocmask rt_sigreturn rt_sigtimedwait sched_getaffinity "
	  "sched_yield set_robust_list setfsgid setfsuid sigaltstack signalfd4 sysinfo tgkill time "
	  "times uname",
			.action = ALLOW },
	{ "mmap mprotect pkey_mprotect", CASES(no_exec_cases), ALLOW },
	{ "prctl", CASES(unpack_prctl_cases), ERRNO(EPERM) },
	/* isatty() of the standard library and the like: not a terminal. */
	{ "ioctl", CASES(unpack_ioctl_cases), ERRNO(ENOTTY) },
	{ "clone fork vfork", .action = ERRNO(EPERM) },
	/* No honest path leads here. */
	{ "add_key bind bpf chroot connect execve execveat init_module finit_module io_uring_setup "
	  "keyctl kexec_load mount open_by_handle_at perf_event_open personality pidfd_getfd "
	  "pivot_root process_vm_readv process_vm_writev ptrace request_key setns setresuid setuid "
	  "socket socketpair unshare umount2 userfaultfd",
			.action = KILL },
};

/* Threads only: the resolver of libcurl has one a name. */
static const struct filter_case fetch_clone_cases[] = {
	{ { { .arg = 0, .mask = CLONE_THREAD, .value = CLONE_THREAD } }, ALLOW },
};

/* For reading only. */
static const struct filter_case fetch_open_cases[] = {
	{ { NONE_OF(1, O_ACCMODE | O_CREAT | O_TRUNC) }, ALLOW },
};

static const struct filter_case fetch_openat_cases[] = {
	{ { NONE_OF(2, O_ACCMODE | O_CREAT | O_TRUNC) }, ALLOW },
};

/* No AF_UNIX: behind such sockets other daemons act for the user. */
static const struct filter_case fetch_socket_cases[] = {
	{ { IS(0, AF_INET) }, ALLOW },
	{ { IS(0, AF_INET6) }, ALLOW },
	{ { IS(0, AF_NETLINK), IS(2, NETLINK_ROUTE) }, ALLOW },
};

static const struct filter_case fetch_ioctl_cases[] = {
	{ { IS(1, FIONREAD) }, ALLOW },
	{ { IS(1, FIONBIO) }, ALLOW },
};

/* abort() of the process itself; others of the same user are not to be stopped. */
static const struct filter_case fetch_tgkill_cases[] = {
	{ { IS(2, SIGABRT) }, ALLOW },
};

static const struct filter_case fetch_prlimit_cases[] = {
	{ { IS(0, 0) }, ALLOW },
};

/* The helper speaks to registries: it connects, and reads and writes what it was given. */
static const struct filter_rule fetch_rules[] = {
	{ "access close close_range dup dup2 dup3 faccessat faccessat2 fadvise64 fallocate fcntl "
	  "fdatasync fstat fstatfs fsync ftruncate getcwd getdents64 lseek lstat newfstatat pread64 "
	  "preadv preadv2 pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv sendfile "
	  "splice stat statfs statx umask write writev",
			.action = ALLOW },
	{ "open", CASES(fetch_open_cases), ERRNO(EACCES) },
	{ "openat", CASES(fetch_openat_cases), ERRNO(EACCES) },
	{ "bind connect getpeername getsockname getsockopt recvfrom recvmmsg recvmsg sendmmsg sendmsg "
	  "sendto setsockopt shutdown",
			.action = ALLOW },
	{ "socket", CASES(fetch_socket_cases), ERRNO(EAFNOSUPPORT) },
	/* Connected to itself alone. */
	{ "socketpair", CASES(socketpair_cases), ERRNO(EAFNOSUPPORT) },
	{ "epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd2 pipe2 poll ppoll "
	  "pselect6 select timerfd_create timerfd_gettime timerfd_settime",
			.action = ALLOW },
	{ "brk clock_getres clock_gettime clock_nanosleep exit exit_group futex getcpu getegid geteuid "
	  "getgid getgroups getpid getppid getrandom getresgid getresuid getrlimit getrusage gettid "
	  "gettimeofday getuid madvise membarrier memfd_create mincore mremap msync munmap nanosleep "
	  "restart_syscall rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigreturn "
	  "rt_sigtimedwait sched_getaffinity sched_yield set_robust_list sigaltstack sysinfo "
	  "time times uname",
			.action = ALLOW },
	{ "clone", CASES(fetch_clone_cases), ERRNO(EPERM) },
	{ "mmap mprotect pkey_mprotect", CASES(no_exec_cases), ALLOW },
	{ "prctl", CASES(unpack_prctl_cases), ERRNO(EPERM) },
	{ "ioctl", CASES(fetch_ioctl_cases), ERRNO(ENOTTY) },
	{ "tgkill", CASES(fetch_tgkill_cases), ERRNO(EPERM) },
	{ "prlimit64", CASES(fetch_prlimit_cases), ERRNO(EPERM) },
	{ "fork vfork", .action = ERRNO(EPERM) },
	/* No honest path leads here. */
	{ "accept accept4 add_key bpf chroot execve execveat finit_module init_module io_uring_setup "
	  "kexec_load keyctl listen mount open_by_handle_at perf_event_open personality pidfd_getfd "
	  "pivot_root process_vm_readv process_vm_writev ptrace request_key setns setresuid setuid "
	  "umount2 unshare userfaultfd",
			.action = KILL },
};

/* The helper between a sandbox and the network: it moves bytes between descriptors that it has or
 * is given. No call of these names a file, a process or a namespace, or makes a socket. */
#define NETD_CONTROL IS(0, NETD_CONTROL_FD)
#define NETD_FIXED                                                                    \
	{                                                                             \
		.arg = 0, .mask = ~(NETD_FIXED_COUNT - 1U), .value = NETD_FIXED_FIRST \
	}

/* Without an address, or by a socket of the sandbox's (netd_links.h), which stay what they are. */
static const struct filter_case netd_sendto_cases[] = {
	{ { IS(5, 0) }, ALLOW },
	{ { NETD_FIXED }, ALLOW },
};

static const struct filter_case netd_sendmsg_cases[] = {
	{ { NETD_CONTROL }, ALLOW },
};

static const struct filter_case netd_close_cases[] = {
	{ { NETD_CONTROL }, ERRNO(EPERM) },
	{ { NETD_FIXED }, ERRNO(EPERM) },
};

/* Not those of IP: a raw socket could be told to take headers with other addresses. */
static const struct filter_case netd_setsockopt_cases[] = {
	{ { IS(1, SOL_SOCKET) }, ALLOW },
	{ { IS(1, IPPROTO_TCP) }, ALLOW },
};

static const struct filter_rule netd_rules[] = {
	{ "sendto", CASES(netd_sendto_cases), ERRNO(EPERM) },
	{ "sendmsg", CASES(netd_sendmsg_cases), ERRNO(EPERM) },
	{ "close", CASES(netd_close_cases), ALLOW },
	{ "setsockopt", CASES(netd_setsockopt_cases), ERRNO(EPERM) },
	{ "accept accept4 fcntl ftruncate getpeername getsockname getsockopt lseek memfd_create pipe2 "
	  "pread64 pwrite64 read readv recvfrom recvmsg shutdown splice write "
	  "writev",
			.action = ALLOW },
	{ "epoll_create1 epoll_ctl epoll_pwait epoll_wait poll ppoll timerfd_create timerfd_gettime "
	  "timerfd_settime",
			.action = ALLOW },
	{ "brk clock_getres clock_gettime exit exit_group futex getpid getrandom gettid gettimeofday "
	  "madvise mremap munmap restart_syscall rseq rt_sigaction rt_sigprocmask rt_sigreturn "
	  "sched_yield sigaltstack time",
			.action = ALLOW },
	{ "mmap mprotect pkey_mprotect", CASES(no_exec_cases), ALLOW },
	{ "tgkill", CASES(fetch_tgkill_cases), ERRNO(EPERM) },
	/* No honest path leads here. */
	{ "add_key bind bpf chroot clone connect execve execveat fork init_module finit_module "
	  "io_uring_setup keyctl kexec_load kill mount open open_by_handle_at openat openat2 "
	  "perf_event_open personality pidfd_getfd pidfd_open pivot_root process_vm_readv "
	  "process_vm_writev ptrace request_key setns setresuid setuid socket socketpair unshare "
	  "umount2 userfaultfd vfork",
			.action = KILL },
};

#define RULES(r) .rules = (r), .rules_n = sizeof(r) / sizeof((r)[0])
#define OVER(r)  .over = (r), .over_n = sizeof(r) / sizeof((r)[0])

/* What a process of a sandbox may do is "workload": "init", which it inherits, and "child". */
const struct filter_profile filter_profiles[] = {
	{ "workload", RULES(workload_rules), .action = ERRNO(ENOSYS) },
	{ "workload_isolation", OVER(isolation_rules), RULES(workload_rules),
			.action = ERRNO(ENOSYS) },
	{ "init", OVER(init_rules), RULES(workload_rules), .action = ERRNO(ENOSYS) },
	{ "init_isolation", OVER(init_isolation_rules), RULES(workload_rules),
			.action = ERRNO(ENOSYS) },
	{ "child", RULES(child_rules), .action = ALLOW },
	{ "unpack", RULES(unpack_rules), .action = ERRNO(ENOSYS) },
	{ "fetch", RULES(fetch_rules), .action = ERRNO(ENOSYS) },
	{ "netd", RULES(netd_rules), .action = ERRNO(ENOSYS) },
};
const size_t filter_profiles_n = sizeof(filter_profiles) / sizeof(filter_profiles[0]);
