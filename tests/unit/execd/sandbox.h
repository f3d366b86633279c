/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox - the real execd as PID 1 of real namespaces, for unit tests: a tmpfs as its root with
 * the host's programs bound read-only, and a control channel in the test's hand.
 */
#ifndef OSBX_TESTS_SANDBOX_H
#define OSBX_TESTS_SANDBOX_H

#include <sched.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <osbx/buf.h>
#include <osbx/caps.h>
#include <osbx/clock.h>
#include <osbx/execd_image.h>
#include <osbx/execd_proto.h>
#include <osbx/fd.h>
#include <osbx/initproto.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/sys.h>

#include "../unit.h"

#define SANDBOX_WAIT_MS 20000
#define SANDBOX_FD_LEAK 50 /* a descriptor that the launcher forgot */

struct sandbox {
	pid_t pid;
	int pidfd;
	int control;
	int init;
	bool many_ids; /* 65536 ids; else one */
	int cgroup_fd; /* own cgroup; -1: none */
	struct execd_config config;
};

/* Can this process map 65536 ids: root, with that many of its own (third number of the map)? */
static inline bool sandbox_has_ids(void)
{
	char map[128] = "";
	int fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, map, sizeof(map) - 1);
	const char *count = map;

	close(fd);
	for (int i = 0; i < 2; i++) {
		count += strspn(count, " ");
		count += strcspn(count, " ");
	}
	count += strspn(count, " ");
	size_t digits = strcspn(count, " \n");

	return n > 0 && geteuid() == 0 &&
	       (digits > 5 || (digits == 5 && strncmp(count, "65536", 5) >= 0));
}

/* What a test may change before sandbox_start. */
static inline void sandbox_init(struct sandbox *s)
{
	bool many_ids = sandbox_has_ids();

	*s = (struct sandbox){
		.many_ids = many_ids,
		.cgroup_fd = -1,
		.config = {
			.has_setgroups = many_ids,
			.ids_max = many_ids ? 65536 : 1,
			.caps = caps_workload_default,
		},
	};
}

static inline void sandbox_put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
		_exit(90);
	}
	close(fd);
}

static inline void sandbox_must(int r)
{
	if (r < 0) {
		_exit(91);
	}
}

/* In the child: programs of the host, an /etc of ours, /proc, /dev/pts, over an empty directory. */
static inline void sandbox_root(const char *where)
{
	static const char *const binds[] = { "usr", "bin", "lib", "lib64", "sbin" };
	char host[16];

	sandbox_must(sys_mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL));
	sandbox_must(sys_mount("root", where, "tmpfs", 0, "mode=755"));
	sandbox_must(chdir(where));
	for (size_t i = 0; i < ARRAY_SIZE(binds); i++) {
		snprintf(host, sizeof(host), "/%s", binds[i]);
		if (access(host, F_OK) == 0) {
			sandbox_must(mkdir(binds[i], 0755));
			sandbox_must(sys_mount(host, binds[i], NULL, MS_BIND | MS_REC, NULL));
		}
	}
	sandbox_must(mkdir("etc", 0755));
	sandbox_must(mkdir("tmp", 0777));
	sandbox_must(chmod("tmp", 01777));
	sandbox_must(mkdir("proc", 0755));
	sandbox_must(mkdir("dev", 0755));
	sandbox_must(mkdir("dev/pts", 0755));
	sandbox_must(mkdir("closed", 0700));
	sandbox_must(symlink("/nothing/there", "dangling"));
	sandbox_must(sys_mount("proc", "proc", "proc", 0, NULL));
	sandbox_must(sys_mount("devpts", "dev/pts", "devpts", 0, "newinstance,ptmxmode=0666"));
	sandbox_put("etc/passwd",
			"root:x:0:0::/root:/bin/sh\napp:x:1000:1001::/home/app:/bin/sh\n");
	sandbox_put("etc/group", "root:x:0:\napp:x:1001:\nextra:x:1002:root,app\nmore:x:1003:\n");
	sandbox_put("dev/null", "");
	sandbox_must(sys_mount("/dev/null", "dev/null", NULL, MS_BIND, NULL));
	sandbox_put("noexec", "#!/bin/sh\n");
	sandbox_put("nointerp", "#!/no/such/interpreter\n");
	sandbox_put("noformat", "neither one nor the other\n");
	sandbox_must(chmod("nointerp", 0755));
	sandbox_must(chmod("noformat", 0755));
}

/* In the child: become execd with the descriptors of the contract. */
NORETURN static inline void sandbox_exec(const int *given, int execd)
{
	static char name[] = "osbx-execd";
	static char *const argv[] = { name, NULL };
	static char *const env[] = { NULL };
	int root = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fds[] = { given[0], given[1], given[2], root, given[3] };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	sandbox_must(null);
	for (int i = 0; i < 5; i++) {
		fds[i] = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD_CLOEXEC, 100);
		sandbox_must(i < 4 ? fds[i] : 0);
	}
	execd = fcntl(execd, F_DUPFD_CLOEXEC, 100);
	for (int i = 0; i < 3; i++) {
		sandbox_must(dup2(null, i));
	}
	for (int i = 0; i < 5; i++) {
		sandbox_must(fds[i] < 0 ? 0 : dup2(fds[i], EXECD_FD_INIT + i));
	}
	sandbox_must(dup2(null, SANDBOX_FD_LEAK));
	sandbox_must(prctl(PR_SET_PDEATHSIG, SIGKILL));
	_exit(92 - sys_execveat(execd, argv, env));
}

static inline void sandbox_write(pid_t pid, const char *file, const char *text)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static inline void sandbox_map(const struct sandbox *s)
{
	char map[64];

	if (s->many_ids) {
		sandbox_write(s->pid, "uid_map", "0 0 65536");
		sandbox_write(s->pid, "gid_map", "0 0 65536");
		return;
	}
	sandbox_write(s->pid, "setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", geteuid());
	sandbox_write(s->pid, "uid_map", map);
	snprintf(map, sizeof(map), "0 %u 1", getegid());
	sandbox_write(s->pid, "gid_map", map);
}

/* Start execd; it has not said anything yet. */
static inline void sandbox_launch(struct sandbox *s)
{
	int init[2];
	int control[2];
	int go[2];
	char byte = 0;
	char where[96] = "";
	char link[32];
	AUTO(buf) struct buf b = BUF_INIT(1 << 20);

	ck_assert_int_eq(execd_config_encode(&s->config, &b), 0);
	int config = fd_memfd_sealed("config", b.p, b.n, false);
	int execd = fd_memfd_sealed("osbx-execd", execd_image, execd_image_size, true);

	ck_assert_int_ge(config, 0);
	ck_assert_int_ge(execd, 0);
	ck_assert_int_eq(fd_seqpacket_pair(init), 0);
	ck_assert_int_eq(fd_seqpacket_pair(control), 0);
	ck_assert_int_eq(fd_pipe(go, 0), 0);
	/* By path: a descriptor belongs to a mount of this namespace. */
	snprintf(link, sizeof(link), "/proc/self/fd/%d", unit_fd);
	ck_assert_int_gt(readlink(link, where, sizeof(where) - 1), 0);
	s->pid = sys_clone(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC |
					   CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_NEWNET,
			s->cgroup_fd, &s->pidfd);
	ck_assert_int_ge(s->pid, 0);
	if (s->pid == 0) {
		close(go[1]);
		sandbox_must(read(go[0], &byte, 1) == 1 ? 0 : -1);
		sandbox_must(sys_setresgid(0));
		sandbox_must(sys_setresuid(0));
		sandbox_root(where);
		sandbox_must(sys_loopback_up());
		sandbox_exec((const int[]){ init[1], control[1], config, s->cgroup_fd }, execd);
	}
	sandbox_map(s);
	ck_assert_int_eq(write(go[1], &byte, 1), 1);
	close(go[0]);
	close(go[1]);
	close(init[1]);
	close(control[1]);
	close(config);
	close(execd);
	s->init = init[0];
	s->control = control[0];
}

/* Start execd and wait until it serves. */
static inline void sandbox_start(struct sandbox *s)
{
	enum init_stage stage = INIT_STAGE_GONE;
	struct packet p;
	struct error e = ERROR_INIT;

	sandbox_launch(s);
	int r = init_expect(
			s->init, &stage, INIT_MSG_UP, &p, clock_boot_ms() + SANDBOX_WAIT_MS, &e);

	ck_assert_msg(r == 0, "%s (%d)", e.text, e.sysno);
	packet_done(&p);
}

/* Exit status of PID 1. */
static inline int sandbox_end(struct sandbox *s)
{
	int status = 0;

	ck_assert_int_eq(waitpid(s->pid, &status, __WALL), s->pid);
	close(s->control);
	close(s->init);
	close(s->pidfd);
	ck_assert_msg(WIFEXITED(status), "status %#x", status);
	return WEXITSTATUS(status);
}

/* Next packet; the test fails unless it is of this type. */
static inline void sandbox_expect(const struct sandbox *s, enum execd_msg type, struct packet *p)
{
	ck_assert_int_eq(packet_recv(s->control, p, clock_boot_ms() + SANDBOX_WAIT_MS), 1);
	if (p->type == EXECD_MSG_FAILED && type != EXECD_MSG_FAILED) {
		const struct execd_failed *f = execd_payload(p, sizeof(*f));

		ck_abort_msg("failed: %s (%d)", f->error.text, f->error.sysno);
	}
	ck_assert_int_eq(p->type, type);
}

/* One process and its output. */
struct sandbox_run {
	struct execd_process process;
	uint32_t tag;
	uint32_t flags;
	int in;  /* our ends, -1 with a tty */
	int out; /* stdout and stderr, or the pty's master */
};

static inline void run_init(struct sandbox_run *r, const char *const *argv)
{
	*r = (struct sandbox_run){
		.process = { .caps = caps_workload_default, .umask_bits = 022, .set_home = 1 },
		.tag = 1,
		.flags = EXECD_START_MAIN,
		.in = -1,
		.out = -1,
	};
	for (; *argv; argv++) {
		ck_assert_int_eq(strv_add(&r->process.argv, *argv), 0);
	}
}

#define RUN_INIT(r, ...)     run_init((r), (const char *const[]){ __VA_ARGS__, NULL })
#define RUN_SHELL(r, script) RUN_INIT((r), "sh", "-c", (script))

static inline void run_send(const struct sandbox *s, struct sandbox_run *r)
{
	const struct execd_start start = { .tag = r->tag, .flags = r->flags };
	AUTO(buf) struct buf b = BUF_INIT(4U << 20);
	int in[2] = { -1, -1 };
	int out[2] = { -1, -1 };

	ck_assert_int_eq(execd_process_encode(&r->process, &b), 0);
	int spec = fd_memfd_sealed("process", b.p, b.n, false);
	int fds[4] = { spec, -1, -1, -1 };

	if (!(r->flags & EXECD_START_TTY)) {
		ck_assert_int_eq(fd_pipe(in, 0), 0);
		ck_assert_int_eq(fd_pipe(out, O_NONBLOCK), 0);
		ck_assert_int_eq(fd_set_nonblock(out[0], false), 0);
		fds[1] = in[0];
		fds[2] = out[1];
		fds[3] = out[1];
		r->in = in[1];
		r->out = out[0];
	}
	ck_assert_int_eq(execd_send(s->control, EXECD_MSG_START, &start, sizeof(start), fds,
					 r->flags & EXECD_START_TTY ? 1 : 4),
			0);
	close(spec);
	if (in[0] >= 0) {
		close(in[0]);
		close(out[1]);
	}
	execd_process_done(&r->process);
}

/* Start and wait for STARTED. */
static inline pid_t run_start(const struct sandbox *s, struct sandbox_run *r)
{
	struct packet p;

	run_send(s, r);
	sandbox_expect(s, EXECD_MSG_STARTED, &p);
	const struct execd_started *started = execd_payload(&p, sizeof(*started));

	ck_assert_ptr_nonnull(started);
	ck_assert_uint_eq(started->tag, r->tag);
	ck_assert_uint_eq(p.fds_n, r->flags & EXECD_START_TTY ? 1 : 0);
	if (p.fds_n > 0) {
		r->out = p.fds[0];
	}
	return started->pid;
}

/* Wait for EXITED. */
static inline struct execd_exited run_wait(const struct sandbox *s, const struct sandbox_run *r)
{
	struct packet p;

	sandbox_expect(s, EXECD_MSG_EXITED, &p);
	const struct execd_exited *exited = execd_payload(&p, sizeof(*exited));

	ck_assert_ptr_nonnull(exited);
	ck_assert_uint_eq(exited->tag, r->tag);
	return *exited;
}

/* All output until its end (a pty ends with EIO), closed. Caller frees. */
static inline char *run_output(struct sandbox_run *r)
{
	struct buf b = BUF_INIT(1 << 20);
	char bytes[4096];
	ssize_t n;

	while ((n = read(r->out, bytes, sizeof(bytes))) > 0) {
		ck_assert_int_eq(buf_append(&b, bytes, (size_t)n), 0);
	}
	close(r->out);
	if (r->in >= 0) {
		close(r->in);
	}
	return buf_take(&b);
}

/* The error of a process that must not start. */
static inline struct error run_fails(const struct sandbox *s, struct sandbox_run *r)
{
	struct packet p;

	run_send(s, r);
	sandbox_expect(s, EXECD_MSG_FAILED, &p);
	const struct execd_failed *failed = execd_payload(&p, sizeof(*failed));

	ck_assert_ptr_nonnull(failed);
	ck_assert_uint_eq(failed->tag, r->tag);
	if (r->out >= 0) {
		close(r->out);
		close(r->in);
	}
	return failed->error;
}

/* Run a shell script as the main process of a new sandbox: its output. Caller frees. */
static inline char *sandbox_shell(const char *script)
{
	struct sandbox s;
	struct sandbox_run r;

	sandbox_init(&s);
	sandbox_start(&s);
	RUN_SHELL(&r, script);
	(void)run_start(&s, &r);
	(void)run_wait(&s, &r);
	char *out = run_output(&r);

	(void)sandbox_end(&s);
	return out;
}

static inline void sandbox_signal(const struct sandbox *s, uint32_t tag, int signo)
{
	const struct execd_signal sig = { .tag = tag, .signo = signo };

	ck_assert_int_eq(execd_send(s->control, EXECD_MSG_SIGNAL, &sig, sizeof(sig), NULL, 0), 0);
}

/* Can this machine make a sandbox? Otherwise the test says so and is skipped. */
static inline bool sandbox_is_possible(void)
{
	int pidfd = -1;
	pid_t pid = sys_clone(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID, -1, &pidfd);

	if (pid == 0) {
		_exit(0);
	}
	if (pid < 0) {
		printf("1..0 # SKIP no user namespaces: %s\n", strerror(-pid));
		return false;
	}
	(void)waitpid(pid, NULL, __WALL);
	close(pidfd);
	return true;
}

#endif
