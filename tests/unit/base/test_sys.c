/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include <osbx/cleanup.h>
#include <osbx/idmap.h>
#include <osbx/sys.h>

#include "../unit.h"

/* This process as root of new namespaces, whoever it was. */
static void become_root(int flags)
{
	struct error e = ERROR_INIT;
	struct idmap map = {
		.mode = IDMAP_SINGLE,
		.uids_n = 1,
		.gids_n = 1,
		.uids = { { .outside = geteuid(), .count = 1 } },
		.gids = { { .outside = getegid(), .count = 1 } },
	};

	ck_assert_int_eq(sys_unshare(CLONE_NEWUSER | flags), 0);
	ck_assert_msg(idmap_write(&map, getpid(), &e) == 0, "%s", e.text);
}

/* The test's directory as seen in this mount namespace: unit_fd is of the old one. */
static void enter_dir(void)
{
	char link[64];
	char path[256];

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", unit_fd);
	ssize_t n = readlink(link, path, sizeof(path) - 1);

	ck_assert_int_gt(n, 0);
	path[n] = '\0';
	ck_assert_int_eq(chdir(path), 0);
}

/* From now on system call nr fails with errno err. */
static void refuse(unsigned int nr, unsigned int err)
{
	const struct sock_filter insns[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | err),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	ck_assert_int_eq(sys_prctl(PR_SET_NO_NEW_PRIVS, 1), 0);
	ck_assert_int_eq(sys_seccomp(insns, ARRAY_SIZE(insns)), 0);
}

static int reap(int pidfd)
{
	siginfo_t info = { .si_pid = 0 };

	ck_assert_int_eq(waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED), 0);
	ck_assert_int_eq(info.si_code, CLD_EXITED);
	return info.si_status;
}

static void clone_and_reap(void)
{
	autoclose int pidfd = -1;
	pid_t self = getpid();
	pid_t pid = sys_clone(0, -1, &pidfd);

	if (pid == 0) {
		_exit(getppid() == self ? 7 : 8);
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(fcntl(pidfd, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(reap(pidfd), 7);
}

START_TEST(clone_gives_a_pidfd)
{
	clone_and_reap();
}
END_TEST

static const unsigned int refusals[] = { ENOSYS, EPERM };

START_TEST(clone_falls_back)
{
	int pidfd = -1;

	refuse(SYS_clone3, refusals[_i]);
	clone_and_reap();
	/* clone(2) knows no cgroup, no newer flags. */
	ck_assert_int_eq(sys_clone(0, 0, &pidfd), -EOPNOTSUPP);
	ck_assert_int_eq(sys_clone(CLONE_NEWTIME, -1, &pidfd), -EINVAL);
	ck_assert_int_eq(sys_clone(UINT64_C(1) << 33, -1, &pidfd), -EINVAL);
	ck_assert_int_eq(pidfd, -1);
}
END_TEST

START_TEST(clone_tells_the_errno_of_the_fallback)
{
	int status = 0;
	int pidfd = -1;
	pid_t pid = sys_fork();

	/* In a child of its own: the leak checker needs clone when the test ends. */
	if (pid == 0) {
		refuse(SYS_clone, EACCES);
		refuse(SYS_clone3, EPERM);
		_exit(sys_clone(0, -1, &pidfd) == -EACCES && pidfd == -1 ? 3 : 4);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 3);
}
END_TEST

START_TEST(clone_refuses_what_is_no_cgroup)
{
	autoclose int dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int pidfd = -1;

	ck_assert_int_eq(sys_clone(0, dir, &pidfd), -EBADF);
	ck_assert_int_eq(pidfd, -1);
}
END_TEST

START_TEST(fork_copies)
{
	int status = 0;
	volatile int mine = 1;
	pid_t pid = sys_fork();

	if (pid == 0) {
		mine = 2;
		_exit(mine);
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(WEXITSTATUS(status), 2);
	ck_assert_int_eq(mine, 1);
}
END_TEST

START_TEST(pidfd_kill_kills)
{
	siginfo_t info = { .si_pid = 0 };
	pid_t pid = sys_fork();

	if (pid == 0) {
		for (;;) {
			pause();
		}
	}
	autoclose int pidfd = sys_pidfd_open(pid);

	ck_assert_int_ge(pidfd, 0);
	ck_assert_int_eq(sys_pidfd_kill(pidfd, SIGKILL), 0);
	ck_assert_int_eq(waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED), 0);
	ck_assert_int_eq(info.si_status, SIGKILL);
	ck_assert_int_eq(sys_pidfd_kill(pidfd, SIGKILL), -ESRCH);
}
END_TEST

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void close_range_works(void)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	static const int numbers[] = { 200, 201, 210, 240, 1000 };

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		ck_assert_int_eq(dup2(null, numbers[i]), numbers[i]);
	}
	ck_assert_int_eq(sys_close_range(201, 240, CLOSE_RANGE_CLOEXEC), 0);
	ck_assert_int_eq(fcntl(200, F_GETFD), 0);
	ck_assert_int_eq(fcntl(201, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(fcntl(240, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(fcntl(1000, F_GETFD), 0);
	ck_assert_int_eq(sys_close_range(201, 239, 0), 0);
	ck_assert(is_open(200) && !is_open(201) && !is_open(210) && is_open(240));
	ck_assert_int_eq(sys_close_range(240, UINT32_MAX, 0), 0);
	ck_assert(is_open(200) && !is_open(240) && !is_open(1000));
	ck_assert_int_eq(sys_close_range(5, 4, 0), -EINVAL);
}

START_TEST(close_range_closes)
{
	close_range_works();
}
END_TEST

static const unsigned int close_range_refusals[] = { ENOSYS, EPERM, EINVAL };

START_TEST(close_range_falls_back)
{
	refuse(SYS_close_range, close_range_refusals[_i]);
	if (close_range_refusals[_i] == EINVAL) {
		close_range_works();
		return;
	}
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	/* More names than one read of the directory returns. */
	for (int i = 300; i < 700; i++) {
		ck_assert_int_eq(dup2(null, i), i);
	}
	ck_assert_int_eq(sys_close_range(301, UINT32_MAX, 0), 0);
	ck_assert(is_open(300));
	for (int i = 301; i < 700; i++) {
		ck_assert(!is_open(i));
	}
}
END_TEST

START_TEST(openat2_stays_beneath)
{
	autoclose int dir = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	autoclose int fd = sys_openat2(dir, "self/status", O_RDONLY, 0, RESOLVE_BENEATH);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(sys_openat2(dir, "../etc", O_RDONLY, 0, RESOLVE_BENEATH), -EXDEV);
}
END_TEST

START_TEST(seccomp_wants_a_program)
{
	struct sock_filter insn = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);

	ck_assert_int_eq(sys_seccomp(&insn, 0), -EINVAL);
	ck_assert_int_eq(sys_seccomp(&insn, BPF_MAXINSNS + 1), -EINVAL);
}
END_TEST

START_TEST(renames_to_what_is_not_there)
{
	ck_assert_int_eq(mkdirat(unit_fd, "a", 0700), 0);
	ck_assert_int_eq(mkdirat(unit_fd, "b", 0700), 0);
	ck_assert_int_eq(sys_rename_new(unit_fd, "a", unit_fd, "b"), -EEXIST);
	ck_assert_int_eq(sys_rename_new(unit_fd, "a", unit_fd, "c"), 0);
	ck_assert_int_eq(sys_rename_new(unit_fd, "a", unit_fd, "d"), -ENOENT);
	ck_assert_int_eq(faccessat(unit_fd, "c", F_OK, 0), 0);
}
END_TEST

START_TEST(mknod_makes_a_fifo)
{
	struct stat st;

	ck_assert_int_eq(sys_mknod_at(unit_fd, "fifo", S_IFIFO | 0600, 0), 0);
	ck_assert_int_eq(sys_mknod_at(unit_fd, "fifo", S_IFIFO | 0600, 0), -EEXIST);
	ck_assert_int_eq(fstatat(unit_fd, "fifo", &st, AT_SYMLINK_NOFOLLOW), 0);
	ck_assert(S_ISFIFO(st.st_mode));
}
END_TEST

START_TEST(capabilities_go_down)
{
	struct sys_caps caps = { 0 };

	become_root(0);
	ck_assert_int_eq(sys_capget(&caps), 0);
	ck_assert_uint_ne(caps.effective >> CAP_CHECKPOINT_RESTORE & 1, 0);
	caps = (struct sys_caps){ .permitted = UINT64_C(1) << CAP_BPF | 1, .effective = 1 };
	ck_assert_int_eq(sys_capset(&caps), 0);
	caps = (struct sys_caps){ 0 };
	ck_assert_int_eq(sys_capget(&caps), 0);
	ck_assert_uint_eq(caps.permitted, UINT64_C(1) << CAP_BPF | 1);
	ck_assert_uint_eq(caps.effective, 1);
	ck_assert_uint_eq(caps.inheritable, 0);
	caps.permitted |= 2;
	ck_assert_int_eq(sys_capset(&caps), -EPERM);
}
END_TEST

START_TEST(ids_of_the_namespace)
{
	gid_t none = 0;

	become_root(0);
	ck_assert_int_eq(sys_setresgid(0), 0);
	ck_assert_int_eq(sys_setresuid(0), 0);
	ck_assert_int_eq(sys_setresuid(1), -EINVAL);
	ck_assert_int_eq(sys_setresgid(1), -EINVAL);
	/* A single-id map comes with "deny". */
	ck_assert_int_eq(sys_setgroups(0, &none), -EPERM);
}
END_TEST

START_TEST(host_name)
{
	struct utsname u;

	become_root(CLONE_NEWUTS);
	ck_assert_int_eq(sys_sethostname("box"), 0);
	ck_assert_int_eq(uname(&u), 0);
	ck_assert_str_eq(u.nodename, "box");
}
END_TEST

START_TEST(loopback)
{
	struct ifreq req = { .ifr_name = "lo" };

	become_root(CLONE_NEWNET);
	autoclose int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(ioctl(sock, SIOCGIFFLAGS, &req), 0);
	ck_assert_int_eq(req.ifr_flags & IFF_UP, 0);
	ck_assert_int_eq(sys_loopback_up(), 0);
	ck_assert_int_eq(ioctl(sock, SIOCGIFFLAGS, &req), 0);
	ck_assert_int_ne(req.ifr_flags & IFF_UP, 0);
}
END_TEST

START_TEST(network_namespace_as_a_descriptor)
{
	struct stat by_path;
	struct stat by_fd;

	become_root(CLONE_NEWNET);
	autoclose int fd = sys_netns_open();

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(stat("/proc/self/ns/net", &by_path), 0);
	ck_assert_int_eq(fstat(fd, &by_fd), 0);
	ck_assert_uint_eq(by_path.st_ino, by_fd.st_ino);
	ck_assert_uint_eq(by_path.st_dev, by_fd.st_dev);
	ck_assert_int_eq(sys_setns(fd, CLONE_NEWNET), 0);
}
END_TEST

/* Of whoever else's: no. */
START_TEST(network_namespace_of_another_owner)
{
	become_root(0);
	ck_assert_int_eq(sys_netns_open(), -EPERM);
}
END_TEST

START_TEST(setns_returns_to_a_namespace)
{
	become_root(CLONE_NEWUTS);
	autoclose int uts = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);

	ck_assert_int_eq(sys_sethostname("one"), 0);
	ck_assert_int_eq(sys_unshare(CLONE_NEWUTS), 0);
	ck_assert_int_eq(sys_sethostname("two"), 0);
	ck_assert_int_eq(sys_setns(uts, CLONE_NEWNET), -EINVAL);
	ck_assert_int_eq(sys_setns(uts, CLONE_NEWUTS), 0);
	struct utsname u;

	ck_assert_int_eq(uname(&u), 0);
	ck_assert_str_eq(u.nodename, "one");
}
END_TEST

START_TEST(mount_on_descriptors)
{
	struct mount_attr ro = { .attr_set = MOUNT_ATTR_RDONLY };

	become_root(CLONE_NEWNS);
	autoclose int fs = sys_fsopen("tmpfs");

	ck_assert_int_ge(fs, 0);
	ck_assert_int_eq(sys_fsconfig_set(fs, "size", "1m"), 0);
	ck_assert_int_eq(sys_fsconfig_set(fs, "no-such-key", NULL), -EINVAL);
	ck_assert_int_eq(sys_fsconfig_set_fd(fs, "no-such-key", 0), -EINVAL);
	ck_assert_int_eq(sys_fsconfig_create(fs), 0);
	autoclose int mnt = sys_fsmount(fs, MOUNT_ATTR_NODEV);

	ck_assert_int_ge(mnt, 0);
	ck_assert_int_eq(fcntl(mnt, F_GETFD), FD_CLOEXEC);
	/* A place outside this mount namespace is none. */
	ck_assert_int_eq(sys_move_mount(mnt, unit_fd), -EINVAL);
	enter_dir();
	autoclose int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	ck_assert_int_eq(sys_move_mount(mnt, here), 0);
	ck_assert_int_eq(mkdirat(mnt, "d", 0700), 0);
	autoclose int tree = sys_open_tree(mnt, "", OPEN_TREE_CLONE | AT_EMPTY_PATH);

	ck_assert_int_ge(tree, 0);
	ck_assert_int_eq(fcntl(tree, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(sys_mount_setattr(tree, 0, &ro), 0);
	ck_assert_int_lt(mkdirat(tree, "e", 0700), 0);
	ck_assert_int_eq(errno, EROFS);
	ck_assert_int_eq(mkdirat(mnt, "e", 0700), 0);
}
END_TEST

START_TEST(mount_by_path_and_pivot)
{
	become_root(CLONE_NEWNS);
	enter_dir();
	ck_assert_int_eq(sys_mount("none", ".", "tmpfs", MS_NOSUID, "size=1m"), 0);
	ck_assert_int_eq(sys_mount(NULL, "no-such-place", "tmpfs", 0, NULL), -ENOENT);
	ck_assert_int_eq(sys_umount("no-such-place", MNT_DETACH), -ENOENT);
	/* The mount lies over the working directory. */
	enter_dir();
	ck_assert_int_eq(mkdirat(AT_FDCWD, "inside", 0700), 0);
	int status = 0;
	pid_t pid = sys_fork();

	/* In a child of its own: the leak checker needs /proc when the test ends. */
	if (pid == 0) {
		bool ok = sys_unshare(CLONE_NEWNS) == 0 && sys_pivot_root(".", ".") == 0 &&
			  sys_umount(".", MNT_DETACH) == 0;

		_exit(ok && access("/inside", F_OK) == 0 && access("/proc", F_OK) != 0 ? 3 : 4);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 3);
}
END_TEST

START_TEST(execveat_runs_a_descriptor)
{
	char *const argv[] = { (char[]){ "true" }, NULL };
	char *const envp[] = { NULL };
	int status = 0;
	autoclose int program = open("/bin/true", O_RDONLY | O_CLOEXEC);
	autoclose int data = open("/etc/passwd", O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(program, 0);
	ck_assert_int_eq(sys_execveat(data, argv, envp), -EACCES);
	pid_t pid = sys_fork();

	if (pid == 0) {
		_exit(sys_execveat(program, argv, envp) == 0 ? 1 : 2);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sys");
	TCase *process = tcase_create("process");
	TCase *files = tcase_create("files");
	TCase *root = tcase_create("root");

	tcase_add_test(process, clone_gives_a_pidfd);
	tcase_add_loop_test(process, clone_falls_back, 0, ARRAY_SIZE(refusals));
	tcase_add_test(process, clone_tells_the_errno_of_the_fallback);
	tcase_add_test(process, clone_refuses_what_is_no_cgroup);
	tcase_add_test(process, fork_copies);
	tcase_add_test(process, pidfd_kill_kills);
	tcase_add_test(process, execveat_runs_a_descriptor);
	tcase_add_test(process, seccomp_wants_a_program);
	suite_add_tcase(s, process);
	tcase_add_test(files, close_range_closes);
	tcase_add_loop_test(files, close_range_falls_back, 0, ARRAY_SIZE(close_range_refusals));
	tcase_add_test(files, openat2_stays_beneath);
	suite_add_tcase(s, files);
	unit_with_dir(root);
	tcase_add_test(root, mknod_makes_a_fifo);
	tcase_add_test(root, renames_to_what_is_not_there);
	tcase_add_test(root, capabilities_go_down);
	tcase_add_test(root, ids_of_the_namespace);
	tcase_add_test(root, host_name);
	tcase_add_test(root, loopback);
	tcase_add_test(root, network_namespace_as_a_descriptor);
	tcase_add_test(root, network_namespace_of_another_owner);
	tcase_add_test(root, setns_returns_to_a_namespace);
	tcase_add_test(root, mount_on_descriptors);
	tcase_add_test(root, mount_by_path_and_pivot);
	suite_add_tcase(s, root);
	return unit_run(s);
}
