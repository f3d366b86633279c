/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>

#include <osbx/cgroup.h>

#include "world.h"

START_TEST(looks_as_promised)
{
	struct world w;

	world_make(&w, (enum surrounding)_i);
	EXPECT_RUN(&w,
			"id -u; hostname; cat /both /below; echo new > /both; cat /both; pwd\n"
			"cat /proc/1/comm; cat /sys/class/net/lo/operstate; ls /sys/class/net\n"
			"stat -c '%u %a' / /tmp 2>&1 | head -1; tty; ps >/dev/null; echo $$ \n"
			"grep -c ' / / ' /proc/self/mountinfo; ls -d /proc/self/ns/cgroup\n"
			"cat /etc/hosts 2>&1 | head -1",
			"0\ninside\nhigh\nlow\nnew\n/\nosbx-execd\nunknown\nlo\n0 755\nnot a tty\n2\n"
			"1\n/proc/self/ns/cgroup\ncat: /etc/hosts: No such file or directory\n");
	autofree char *both = below("layers/high/both");
	AUTO(buf) struct buf b = BUF_INIT(64);

	ck_assert_int_eq(file_read_at(AT_FDCWD, both, &b), 0);
	ck_assert_str_eq(b.p, "high\n");
	world_end(&w);
}
END_TEST

/* All of the host's mounts are gone, also above the root (the stack of mounts at "/"). */
START_TEST(nothing_of_the_host_is_left)
{
	struct world w;
	struct stat st;
	char want[64];

	world_make(&w, (enum surrounding)_i);
	ck_assert_int_eq(stat("/", &st), 0);
	autofree char *out = world_run(&w, "stat -c %d:%i / /..\n"
					   "cut -d' ' -f5 /proc/self/mountinfo | sort\n"
					   "cat /proc/self/mountinfo | grep -c osbx-unit");
	const char *line = strchr(out, '\n') + 1;

	ck_assert(strncmp(out, line, (size_t)(line - out)) == 0);
	snprintf(want, sizeof(want), "%lu:%lu\n", (unsigned long)st.st_dev,
			(unsigned long)st.st_ino);
	ck_assert_ptr_null(str_after(out, want));
	ck_assert_ptr_nonnull(strstr(line, "\n/\n"));
	ck_assert_ptr_null(strstr(line, "/home"));
	ck_assert_ptr_null(strstr(line, "/tmp"));
	ck_assert(str_has_suffix(out, "\n0\n"));
	world_end(&w);
}
END_TEST

START_TEST(devices_and_kernel_files)
{
	struct world w;

	world_make(&w, (enum surrounding)_i);
	EXPECT_RUN(&w,
			"ls /dev | tr '\\n' ' '; echo\n"
			"stat -c '%n %t:%T' /dev/null /dev/zero /dev/full /dev/random /dev/urandom\n"
			"echo x > /dev/null; head -c 2 /dev/zero | wc -c; readlink /dev/ptmx /dev/fd\n"
			"ls -A /sys/firmware | wc -l; cat /proc/keys /proc/timer_list | wc -c\n"
			"(echo 1 > /proc/sys/kernel/domainname) 2>&1 | grep -c 'Read-only'\n"
			"(echo b > /proc/sysrq-trigger) 2>&1 | grep -c 'Read-only\\|denied\\|nonexist'\n"
			"mkdir /sys/x 2>&1 | grep -c 'Read-only\\|not permitted'\n"
			"stat -f -c %T /dev/shm /dev/mqueue /proc /sys | tr '\\n' ' '",
			"fd full mqueue null ptmx pts random shm stderr stdin stdout tty urandom zero \n"
			"/dev/null 1:3\n/dev/zero 1:5\n/dev/full 1:7\n/dev/random 1:8\n"
			"/dev/urandom 1:9\n2\npts/ptmx\n/proc/self/fd\n0\n0\n1\n1\n1\n"
			"tmpfs mqueue proc sysfs ");
	world_end(&w);
}
END_TEST

START_TEST(small_mounts)
{
	struct world w;

	world_make(&w, (enum surrounding)_i);
	struct spec_mount *m = spec_add_mount(&w.spec, SPEC_MOUNT_FILE, "/etc/resolv.conf");

	m->content = mem_strdup("nameserver 192.0.2.1\n");
	m->mode = 0644;
	m = spec_add_mount(&w.spec, SPEC_MOUNT_TMPFS, "/scratch/deep");
	m->mode = 01777;
	m->size = 65536;
	w.spec.read_only = true;
	EXPECT_RUN(&w,
			"cat /etc/resolv.conf; stat -c %a /etc/resolv.conf /scratch/deep\n"
			"(echo x > /file) 2>&1 | grep -c Read-only\n"
			"head -c 100000 /dev/zero > /scratch/deep/x 2>/dev/null\n"
			"stat -c %s /scratch/deep/x; echo more >> /etc/resolv.conf && echo written\n"
			"umount /etc/resolv.conf 2>&1 | grep -c .",
			"nameserver 192.0.2.1\n644\n1777\n1\n65536\nwritten\n1\n");
	world_end(&w);
}
END_TEST

START_TEST(host_network)
{
	struct world w;

	world_make(&w, (enum surrounding)_i);
	w.spec.network = SPEC_NETWORK_HOST;
	autofree char *out = world_run(&w,
			"ls /sys/fs/cgroup | wc -l; mkdir /sys/x 2>&1 | grep -c . \n"
			"(echo x > /sys/kernel/uevent_helper) 2>/dev/null || echo refused\n"
			"readlink /proc/self/ns/net");
	char net[64] = "";

	ck_assert_int_gt(readlink("/proc/self/ns/net", net, sizeof(net) - 1), 0);
	autofree char *want = mem_printf("0\n1\nrefused\n%s\n", net);

	ck_assert_str_eq(out, want);
	world_end(&w);
}
END_TEST

START_TEST(isolation_shows_procfs)
{
	struct world w;

	world_make(&w, AS_MAPPED);
	w.spec.isolation = true;
	EXPECT_RUN(&w, "grep -c ' /proc/' /proc/self/mountinfo", "0\n");
	world_end(&w);
}
END_TEST

/* Born in its cgroup, which is the root of what it sees, and of which it can change nothing. */
START_TEST(own_cgroup)
{
	struct world w;
	AUTO(cgroup) struct cgroup cg = CGROUP_INIT;
	struct error e = ERROR_INIT;
	struct id id;

	world_make(&w, (enum surrounding)_i);
	id_new(&id);
	ck_assert_int_eq(cgroup_start(&id, &cg, &e), 0);
	w.spec.cgroup_fd = cg.dir_fd;
	if (cg.dir_fd < 0) {
		EXPECT_RUN(&w, "ls /sys/fs/cgroup | wc -l", "0\n");
	} else {
		EXPECT_RUN(&w,
				"grep ^0:: /proc/self/cgroup; grep -c '^1$' /sys/fs/cgroup/cgroup.procs\n"
				"mkdir /sys/fs/cgroup/x 2>&1 | grep -c Read-only",
				"0::/\n1\n1\n");
	}
	world_end(&w);
}
END_TEST

START_TEST(failure_names_step_and_object)
{
	struct world w;
	struct error e = ERROR_INIT;

	world_make(&w, (enum surrounding)_i);
	spec_add_lower(&w.spec, 0, "gone");
	world_fails(&w, &e);
	ck_assert_int_eq(e.sysno, ENOENT);
	ck_assert_ptr_nonnull(strstr(e.text, "/layers/gone"));
	world_end(&w);
}
END_TEST

enum op {
	OP_CLONE,
	OP_NET,
	OP_PID,
	OP_UP,
	OP_COUNT,
};

struct ops_seen {
	enum op fail;        /* OP_COUNT: none */
	int order[OP_COUNT]; /* 1: first; 0: not called */
	int calls;
	ino_t userns;
	ino_t netns;
	pid_t recorded;
	int control_fd;
};

static int op_seen(struct ops_seen *seen, enum op op, struct error *e)
{
	static const char *const sentences[] = { "no map", "no network", "no record", "no start" };

	seen->order[op] = ++seen->calls;
	return seen->fail == op ? error_set(e, ERRC_UNAVAILABLE, "%s", sentences[op]) : 0;
}

static int on_clone(void *ctx, struct error *e)
{
	return op_seen(ctx, OP_CLONE, e);
}

static int attach_net(void *ctx, int userns_fd, int netns_fd, struct error *e)
{
	struct ops_seen *seen = ctx;
	struct stat ours;
	struct stat theirs;

	/* It is there, and another one. */
	ck_assert_int_eq(stat("/proc/self/ns/net", &ours), 0);
	ck_assert_int_eq(fstat(netns_fd, &theirs), 0);
	ck_assert_uint_eq(ours.st_dev, theirs.st_dev);
	ck_assert_uint_ne(ours.st_ino, theirs.st_ino);
	ck_assert_int_eq(fstat(userns_fd, &ours), 0);
	seen->userns = ours.st_ino;
	seen->netns = theirs.st_ino;
	return op_seen(seen, OP_NET, e);
}

static int record_pid(void *ctx, pid_t pid, struct error *e)
{
	struct ops_seen *seen = ctx;

	seen->recorded = pid;
	return op_seen(seen, OP_PID, e);
}

static int before_up(void *ctx, int control_fd, struct error *e)
{
	struct ops_seen *seen = ctx;

	seen->control_fd = control_fd;
	return op_seen(seen, OP_UP, e);
}

START_TEST(callers_have_their_say)
{
	struct world w;
	struct error e = ERROR_INIT;
	struct ops_seen seen = { .fail = OP_COUNT };
	const struct launch_ops ops = {
		.on_clone = on_clone,
		.attach_net = attach_net,
		.record_pid = record_pid,
		.before_up = before_up,
		.ctx = &seen,
	};

	world_make(&w, AS_MAPPED);
	/* It is mounted more than once. */
	w.spec.is_ephemeral = false;
	ck_assert_msg(launch_start(&w.spec, &ops, &w.l, &e) == 0, "%s", e.text);
	for (int op = 0; op < OP_COUNT; op++) {
		ck_assert_int_eq(seen.order[op], op + 1);
	}
	ck_assert_int_eq(seen.recorded, w.l.pid);
	ck_assert_int_eq(seen.control_fd, w.l.control_fd);
	ck_assert_int_ge(w.l.userns_fd, 0);
	autofree char *net = mem_printf("/proc/%d/ns/net", w.l.pid);
	struct stat st;

	ck_assert_int_eq(stat(net, &st), 0);
	ck_assert_uint_eq(st.st_ino, seen.netns);
	ck_assert_int_eq(fstat(w.l.userns_fd, &st), 0);
	ck_assert_uint_eq(st.st_ino, seen.userns);
	launch_done(&w.l);
	for (int op = 0; op < OP_COUNT; op++) {
		seen = (struct ops_seen){ .fail = (enum op)op };
		error_clear(&e);
		ck_assert_int_eq(launch_start(&w.spec, &ops, &w.l, &e), -1);
		ck_assert_msg(strncmp(e.text, "no ", 3) == 0, "%d: %s", op, e.text);
		ck_assert_int_eq(e.code, ERRC_UNAVAILABLE);
		ck_assert_int_eq(seen.calls, op + 1);
		expect_no_child();
	}
	world_end(&w);
}
END_TEST

static int memfd_of(const char *path)
{
	AUTO(buf) struct buf b = BUF_INIT(16U << 20);

	ck_assert_int_eq(file_read_at(AT_FDCWD, path, &b), 0);
	return fd_memfd_sealed("other", b.p, b.n, true);
}

/* Another program in execd's place. */
static const struct {
	const char *path;
	int64_t timeout_ms;
	enum errc code;
	const char *text;
} others[] = {
	{ "/usr/bin/true", 20000, ERRC_INTERNAL, "ended with status 0" },
	{ "/usr/bin/false", 20000, ERRC_INTERNAL, "ended with status 1" },
	{ "/usr/bin/yes", 300, ERRC_TIMEOUT, "no UP in time" },
	{ "/etc/passwd", 20000, ERRC_SYSTEM, "execd: execute it" },
};

START_TEST(something_else_than_execd)
{
	struct world w;
	struct error e = ERROR_INIT;

	world_make(&w, AS_MAPPED);
	close(w.spec.execd_fd);
	w.spec.execd_fd = memfd_of(others[_i].path);
	w.spec.timeout_ms = others[_i].timeout_ms;
	world_fails(&w, &e);
	ck_assert_int_eq(e.code, others[_i].code);
	ck_assert_msg(strstr(e.text, others[_i].text) != NULL, "%s", e.text);
	world_end(&w);
}
END_TEST

/* Until the process has executed the program it was given as execd. */
static void wait_for_exec(pid_t pid)
{
	autofree char *path = mem_printf("/proc/%d/cmdline", pid);

	for (int i = 0; i < 2000; i++) {
		AUTO(buf) struct buf b = BUF_INIT(4096);

		ck_assert_int_eq(file_read_at(AT_FDCWD, path, &b), 0);
		if (b.p && str_eq(b.p, "osbx-execd")) {
			return;
		}
		(void)usleep(5000);
	}
	ck_abort_msg("nothing was executed");
}

/* Kill -9 of the keeper ends the sandbox, and a pid that was recorded ends with it. */
START_TEST(dies_with_its_keeper)
{
	struct world w;
	struct pollfd p = { .events = POLLIN };
	int pipe_fds[2];
	int status = 0;
	pid_t pid = 0;

	world_make(&w, (enum surrounding)_i);
	ck_assert_int_eq(fd_pipe(pipe_fds, 0), 0);
	/* Orphans come to us, so that the pid stays ours to look at. */
	ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	pid_t keeper = fork();

	if (keeper == 0) {
		world_launch(&w);
		if (write(pipe_fds[1], &w.l.pid, sizeof(w.l.pid)) < 0) {
			_exit(1);
		}
		pause();
		_exit(0);
	}
	ck_assert_int_eq(read(pipe_fds[0], &pid, sizeof(pid)), sizeof(pid));
	p.fd = sys_pidfd_open(pid);
	ck_assert_int_ge(p.fd, 0);
	ck_assert_int_eq(kill(keeper, SIGKILL), 0);
	ck_assert_int_eq(waitpid(keeper, &status, 0), keeper);
	ck_assert_int_eq(poll(&p, 1, SANDBOX_WAIT_MS), 1);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	/* By the signal, or by execd itself, which saw the end of its channel first. */
	ck_assert(WIFSIGNALED(status) || WIFEXITED(status));
	close(p.fd);
	world_end(&w);
}
END_TEST

static int tell_pid(void *ctx, pid_t pid, struct error *e)
{
	const int *fd = ctx;

	if (write(*fd, &pid, sizeof(pid)) < 0) {
		return error_sys(e, errno, "tell the pid");
	}
	return 0;
}

/* The same with a program in execd's place that looks at no channel: by the signal alone, which
 * outlived the change of ids and the execve. */
START_TEST(dies_by_the_signal_alone)
{
	struct world w;
	struct pollfd p = { .events = POLLIN };
	int pipe_fds[2];
	int status = 0;
	pid_t pid = 0;

	world_make(&w, (enum surrounding)_i);
	w.spec.execd_fd = memfd_of("/usr/bin/yes");
	ck_assert_int_eq(fd_pipe(pipe_fds, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	pid_t keeper = fork();

	if (keeper == 0) {
		const struct launch_ops ops = { .record_pid = tell_pid, .ctx = &pipe_fds[1] };
		struct error e = ERROR_INIT;

		_exit(launch_start(&w.spec, &ops, &w.l, &e) < 0);
	}
	ck_assert_int_eq(read(pipe_fds[0], &pid, sizeof(pid)), sizeof(pid));
	p.fd = sys_pidfd_open(pid);
	ck_assert_int_ge(p.fd, 0);
	wait_for_exec(pid);
	ck_assert_int_eq(kill(keeper, SIGKILL), 0);
	ck_assert_int_eq(waitpid(keeper, &status, 0), keeper);
	ck_assert_int_eq(poll(&p, 1, SANDBOX_WAIT_MS), 1);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(WTERMSIG(status), SIGKILL);
	close(p.fd);
	world_end(&w);
}
END_TEST

START_TEST(no_descriptor_stays)
{
	struct world w;
	struct error e = ERROR_INIT;
	size_t before = 0;
	size_t after = 0;

	world_make(&w, (enum surrounding)_i);
	w.spec.is_ephemeral = false;
	for (int fd = 0; fd < 256; fd++) {
		before += fcntl(fd, F_GETFD) >= 0;
	}
	world_launch(&w);
	launch_done(&w.l);
	launch_done(&w.l);
	spec_add_lower(&w.spec, 0, "gone");
	world_fails(&w, &e);
	for (int fd = 0; fd < 256; fd++) {
		after += fcntl(fd, F_GETFD) >= 0;
	}
	ck_assert_uint_eq(before, after);
	launch_done(NULL);
	world_end(&w);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("launch");
	TCase *tc = tcase_create("all");
	const int n = surroundings();

	if (!sandbox_is_possible()) {
		return 77;
	}
	unit_with_dir(tc);
	tcase_add_loop_test(tc, looks_as_promised, 0, n);
	tcase_add_loop_test(tc, nothing_of_the_host_is_left, 0, n);
	tcase_add_loop_test(tc, devices_and_kernel_files, 0, n);
	tcase_add_loop_test(tc, small_mounts, 0, n);
	tcase_add_loop_test(tc, host_network, 0, n);
	tcase_add_test(tc, isolation_shows_procfs);
	tcase_add_loop_test(tc, own_cgroup, 0, n);
	tcase_add_loop_test(tc, failure_names_step_and_object, 0, n);
	tcase_add_test(tc, callers_have_their_say);
	tcase_add_loop_test(tc, something_else_than_execd, 0, ARRAY_SIZE(others));
	tcase_add_loop_test(tc, dies_with_its_keeper, 0, n);
	tcase_add_loop_test(tc, dies_by_the_signal_alone, 0, n);
	tcase_add_loop_test(tc, no_descriptor_stays, 0, n);
	tcase_set_timeout(tc, 60);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
