/* SPDX-License-Identifier: Apache-2.0 */
/*
 * floor - what the kernel alone takes for a whole sandbox, in milliseconds.
 *
 *   cc -O2 -o floor floor.c && ./floor -n N ROOTFS SCRATCH
 *
 * An iteration clones one process into all seven namespaces, maps its ids, lays an overlay of
 * ROOTFS with writable directories in SCRATCH, mounts proc, dev, devpts, shm and sysfs over it,
 * pivots and runs /bin/true; the clock runs from the clone until the process is reaped. No program
 * but that one is executed, and nothing is checked, hidden, filtered or limited, so that a runtime
 * can come near this figure and not below it. The first iteration warms up; the median of the
 * next N is printed. Root maps 65,536 ids, anybody else the one he has.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ITERATIONS_MAX 1000

#define CLONE_ALL                                                                                  \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | \
			CLONE_NEWCGROUP)
#define MS_INERT (MS_NOSUID | MS_NODEV | MS_NOEXEC)

struct scratch {
	char merged[512];
	char overlay[2048]; /* mount data */
	int go[2];          /* a byte for each child once its ids are mapped */
	bool is_root;
};

struct mount_row {
	const char *src;
	const char *dst; /* beneath the new root, made as MAKE says, 0: it is there */
	mode_t make;
	const char *type;
	unsigned long flags;
	const char *data;
};

static const struct mount_row mount_rows[] = {
	{ "proc", "proc", 0, "proc", MS_INERT, NULL },
	{ "tmpfs", "dev", 0, "tmpfs", MS_NOSUID, "mode=755,size=64k" },
	{ "/dev/null", "dev/null", S_IFREG | 0644, NULL, MS_BIND, NULL },
	{ "/dev/zero", "dev/zero", S_IFREG | 0644, NULL, MS_BIND, NULL },
	{ "/dev/full", "dev/full", S_IFREG | 0644, NULL, MS_BIND, NULL },
	{ "/dev/random", "dev/random", S_IFREG | 0644, NULL, MS_BIND, NULL },
	{ "/dev/urandom", "dev/urandom", S_IFREG | 0644, NULL, MS_BIND, NULL },
	{ "/dev/tty", "dev/tty", S_IFREG | 0644, NULL, MS_BIND, NULL },
	{ "devpts", "dev/pts", S_IFDIR | 0755, "devpts", MS_NOSUID | MS_NOEXEC,
			"newinstance,ptmxmode=0666,mode=620" },
	{ "shm", "dev/shm", S_IFDIR | 0755, "tmpfs", MS_NOSUID | MS_NODEV, "size=64m" },
	{ "sysfs", "sys", 0, "sysfs", MS_INERT | MS_RDONLY, NULL },
};

static _Noreturn void die(const char *what)
{
	perror(what);
	_exit(1);
}

static double now_ms(void)
{
	struct timespec t = { 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void attach(const struct mount_row *row)
{
	int r = 0;

	if (S_ISREG(row->make)) {
		r = mknodat(AT_FDCWD, row->dst, row->make, 0);
	} else if (S_ISDIR(row->make)) {
		r = mkdirat(AT_FDCWD, row->dst, row->make & 07777U);
	}
	if (r < 0 || mount(row->src, row->dst, row->type, row->flags, row->data) < 0) {
		die(row->dst);
	}
}

static _Noreturn void child_run(const struct scratch *s)
{
	char byte;
	char *const argv[] = { (char[]){ "true" }, NULL };
	char *const envp[] = { NULL };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || read(s->go[0], &byte, 1) != 1) {
		die("start");
	}
	attach(&(struct mount_row){ .dst = "/", .flags = MS_REC | MS_PRIVATE });
	attach(&(struct mount_row){ .src = "overlay",
			.dst = s->merged,
			.type = "overlay",
			.data = s->overlay });
	if (chdir(s->merged) < 0) {
		die(s->merged);
	}
	for (size_t i = 0; i < sizeof(mount_rows) / sizeof(mount_rows[0]); i++) {
		attach(&mount_rows[i]);
	}
	if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0) {
		die("pivot_root");
	}
	(void)execve("/bin/true", argv, envp);
	die("/bin/true");
}

static void map_write(pid_t pid, const char *name, const char *text)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);

	FILE *f = fopen(path, "we");

	if (!f || fputs(text, f) < 0 || fclose(f) != 0) {
		die(path);
	}
}

static void ids_map(const struct scratch *s, pid_t pid)
{
	char uid_map[64] = "0 0 65536\n";
	char gid_map[64] = "0 0 65536\n";

	if (!s->is_root) {
		(void)snprintf(uid_map, sizeof(uid_map), "0 %u 1\n", (unsigned)geteuid());
		(void)snprintf(gid_map, sizeof(gid_map), "0 %u 1\n", (unsigned)getegid());
		map_write(pid, "setgroups", "deny");
	}
	map_write(pid, "uid_map", uid_map);
	map_write(pid, "gid_map", gid_map);
}

static double iteration_ms(const struct scratch *s)
{
	struct clone_args args = { .flags = CLONE_ALL, .exit_signal = SIGCHLD };
	int status = 0;
	double start = now_ms();
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (pid < 0) {
		die("clone3");
	}
	if (pid == 0) {
		child_run(s);
	}
	ids_map(s, pid);
	if (write(s->go[1], "", 1) != 1 || waitpid(pid, &status, 0) != pid) {
		die("wait");
	}
	if (status != 0) {
		(void)fprintf(stderr, "floor: /bin/true ended with status %#x\n", (unsigned)status);
		_exit(1);
	}
	return now_ms() - start;
}

static void scratch_init(struct scratch *s, const char *rootfs, const char *dir)
{
	static const char *const names[] = { "upper", "work", "merged" };
	char path[512];
	int n;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		if (mkdirat(AT_FDCWD, path, 0755) < 0) {
			die(path);
		}
	}
	(void)snprintf(s->merged, sizeof(s->merged), "%s/merged", dir);
	s->is_root = geteuid() == 0;
	n = snprintf(s->overlay, sizeof(s->overlay),
			"lowerdir=%s,upperdir=%s/upper,workdir=%s/work,userxattr", rootfs, dir,
			dir);
	if (n < 0 || (size_t)n >= sizeof(s->overlay)) {
		die("path too long");
	}
	if (pipe2(s->go, O_CLOEXEC) < 0) {
		die("pipe");
	}
}

/* 0 when TEXT is no number from 1 to ITERATIONS_MAX */
static size_t count_parse(const char *text)
{
	size_t n = 0;

	for (const char *p = text; *p != '\0'; p++) {
		if (*p < '0' || *p > '9' || n > ITERATIONS_MAX) {
			return 0;
		}
		n = n * 10 + (size_t)(*p - '0');
	}
	return n <= ITERATIONS_MAX ? n : 0;
}

static int double_compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	struct scratch s = { 0 };
	double times[ITERATIONS_MAX];
	size_t n = argc == 5 && strcmp(argv[1], "-n") == 0 ? count_parse(argv[2]) : 0;

	if (n == 0) {
		(void)fprintf(stderr, "usage: floor -n N ROOTFS SCRATCH (N: 1 to %d)\n",
				ITERATIONS_MAX);
		return 2;
	}
	scratch_init(&s, argv[3], argv[4]);
	(void)iteration_ms(&s);
	for (size_t i = 0; i < n; i++) {
		times[i] = iteration_ms(&s);
	}
	qsort(times, n, sizeof(times[0]), double_compare);
	(void)printf("%.4f\n", (times[(n - 1) / 2] + times[n / 2]) / 2);
	return 0;
}
