/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * The child is a clone(2) with CLONE_VM | CLONE_VFORK on a stack of its own: no page table is
 * copied, however large the keeper is, and this process sleeps until the execve. Everything that
 * allocates is done before; the child writes one word (struct child.failed) which the parent reads
 * after it woke up. All signals are blocked meanwhile: a handler of ours must not run in the child
 * on our memory.
 *
 * Every descriptor is made O_CLOEXEC first; then the named ones are duplicated above all targets
 * and from there onto their targets, so no order of the list can overwrite a source.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <osbx/cleanup.h>
#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/spawn.h>
#include <osbx/str.h>
#include <osbx/sys.h>

#define STACK_BYTES    ((size_t)64 * 1024)
#define FD_TARGET_MAX  255
#define EXIT_NOT_BEGUN 125

const char spawn_self[] = "/proc/self/exe";

static const char *const trusted[] = {
	"/usr/local/sbin",
	"/usr/local/bin",
	"/usr/sbin",
	"/usr/bin",
	"/sbin",
	"/bin",
};

/* Candidates for execve, in order. */
struct paths {
	char *v[ARRAY_SIZE(trusted)];
	size_t n;
};

struct child {
	const struct spawn_opts *opts;
	const struct paths *paths;
	pid_t parent;
	int target_max;      /* highest descriptor number of the child */
	volatile int failed; /* errno */
};

static void paths_done(struct paths *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free(p->v[i]);
	}
	p->n = 0;
}
AUTO_DEFINE(paths, struct paths, paths_done);

static void paths_fill(struct paths *p, const char *name)
{
	if (name[0] == '/') {
		p->v[p->n++] = mem_strdup(name);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(trusted); i++) {
		p->v[p->n++] = mem_printf("%s/%s", trusted[i], name);
	}
}

static bool name_is_valid(const char *name)
{
	return name[0] == '/' || (name[0] != '\0' && strchr(name, '/') == NULL);
}

char *spawn_find(const char *name)
{
	AUTO(paths) struct paths paths = { .n = 0 };

	if (!name_is_valid(name)) {
		return NULL;
	}
	paths_fill(&paths, name);
	for (size_t i = 0; i < paths.n; i++) {
		struct stat st;

		if (stat(paths.v[i], &st) == 0 && S_ISREG(st.st_mode) &&
				access(paths.v[i], X_OK) == 0) {
			return TAKE_PTR(paths.v[i]);
		}
	}
	return NULL;
}

/* Runs in the child, as all functions up to child_main: no allocation, no locks. */
static int child_death_signal(pid_t parent)
{
	int r = sys_prctl(PR_SET_PDEATHSIG, SIGKILL);
	pid_t now = getppid();

	/* The parent may have died before; 0: it lives in an outer pid namespace, cannot tell. */
	return r == 0 && now != parent && now != 0 ? -ESRCH : r;
}

/* execve keeps what is ignored, and handlers of ours must be gone before signals are let in. */
static void child_signals(void)
{
	struct sigaction act = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++) {
		(void)sigaction(sig, &act, NULL);
	}
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static int child_source(const struct spawn_opts *opts, int to)
{
	for (size_t i = 0; i < opts->fds_n; i++) {
		if (opts->fds[i].to == to) {
			return opts->fds[i].from;
		}
	}
	return -1;
}

static int child_fds(const struct child *c)
{
	const struct spawn_opts *opts = c->opts;
	int above[FD_TARGET_MAX + 1];
	int r = sys_close_range(0, UINT_MAX, CLOSE_RANGE_CLOEXEC);

	if (r < 0) {
		return r;
	}
	for (int to = 0; to <= c->target_max; to++) {
		int from = child_source(opts, to);

		above[to] = -1;
		if (from >= 0) {
			above[to] = fcntl(from, F_DUPFD_CLOEXEC, c->target_max + 1);
		} else if (to <= STDERR_FILENO) {
			int null = open("/dev/null", O_RDWR | O_CLOEXEC | O_NOCTTY);

			above[to] = null < 0 ? -1 : fcntl(null, F_DUPFD_CLOEXEC, c->target_max + 1);
		} else {
			continue;
		}
		if (above[to] < 0) {
			return -errno;
		}
	}
	for (int to = 0; to <= c->target_max; to++) {
		if (above[to] >= 0 && dup2(above[to], to) < 0) {
			return -errno;
		}
	}
	return 0;
}

/* No array on the stack here: after execve nobody would take it off the address sanitizer's map. */
static int child_exec(const struct child *c)
{
	static char *const none[] = { NULL };
	char *const *envp = c->opts->envp ? c->opts->envp : none;
	int r = -ENOENT;

	for (size_t i = 0; i < c->paths->n; i++) {
		(void)execve(c->paths->v[i], c->opts->argv, envp);
		/* A file that cannot be executed does not hide one in a later directory, but is
		 * what gets reported. */
		if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) {
			return -errno;
		}
		r = errno == EACCES ? -EACCES : r;
	}
	return r;
}

static int child_main(void *arg)
{
	struct child *c = arg;
	int r = 0;

	child_signals();
	if (c->opts->die_with_parent) {
		r = child_death_signal(c->parent);
	}
	if (r == 0 && c->opts->new_session) {
		r = setsid() < 0 ? -errno : 0;
	}
	if (r == 0) {
		r = child_fds(c);
	}
	if (r == 0) {
		r = child_exec(c);
	}
	c->failed = -r;
	/* Back into clone's exit: no atexit handler runs. */
	return EXIT_NOT_BEGUN;
}

static int targets_check(const struct spawn_opts *opts)
{
	int max = STDERR_FILENO;

	assert(opts->fds_n <= SPAWN_FDS_MAX);
	for (size_t i = 0; i < opts->fds_n; i++) {
		int to = opts->fds[i].to;

		assert(opts->fds[i].from >= 0 && to >= 0 && to <= FD_TARGET_MAX);
		for (size_t k = 0; k < i; k++) {
			assert(opts->fds[k].to != to);
		}
		max = to > max ? to : max;
	}
	return max;
}

/* Run fn in a process that shares this memory, while this one sleeps: until fn returns or executes
 * something. pid or -errno. */
static pid_t clone_sharing(int (*fn)(void *arg), void *arg, int flags, int *out_pidfd)
{
	char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

	if (stack == MAP_FAILED) {
		return -errno;
	}
	sigset_t all;
	sigset_t old;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &old);
	pid_t pid = clone(fn, stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | flags, arg, out_pidfd);

	pid = pid < 0 ? -errno : pid;
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	(void)munmap(stack, STACK_BYTES);
	return pid;
}

int spawn_start(const struct spawn_opts *opts, int *out_pidfd, pid_t *out_pid, struct error *e)
{
	AUTO(paths) struct paths paths = { .n = 0 };

	if (!name_is_valid(opts->path)) {
		return error_set(e, ERRC_INTERNAL, "program %s is neither absolute nor a name",
				opts->path);
	}
	paths_fill(&paths, opts->path);
	struct child c = {
		.opts = opts,
		.paths = &paths,
		.parent = getpid(),
		.target_max = targets_check(opts),
	};
	autoclose int pidfd = -1;
	pid_t pid = clone_sharing(child_main, &c, CLONE_PIDFD | SIGCHLD, &pidfd);

	if (pid < 0) {
		return error_sys(e, -pid, "start %s", opts->path);
	}
	if (c.failed == 0) {
		*out_pidfd = TAKE_FD(pidfd);
		*out_pid = pid;
		return 0;
	}
	siginfo_t info;

	(void)waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED);
	if (c.failed == ENOENT || c.failed == ENOTDIR) {
		return error_set(e, ERRC_NOT_FOUND, "program %s does not exist", opts->path);
	}
	return error_sys(e, c.failed, "start %s", opts->path);
}

struct aside {
	int (*run)(void *arg);
	void *arg;
	int result;
};

static int aside_main(void *arg)
{
	struct aside *a = arg;

	a->result = a->run(a->arg);
	return 0;
}

int spawn_aside(int (*run)(void *arg), void *arg)
{
	struct aside a = { .run = run, .arg = arg };
	siginfo_t info;
	/* Its end is no news for anybody but us: no signal. */
	pid_t pid = clone_sharing(aside_main, &a, CLONE_FILES, NULL);

	if (pid < 0) {
		return pid;
	}
	(void)waitid(P_PID, (id_t)pid, &info, WEXITED | __WALL);
	return a.result;
}

/* 0 when the process has ended, -ETIMEDOUT, -errno. */
static int wait_end(int pidfd, int timeout_ms)
{
	int64_t deadline_ms = clock_boot_ms() + timeout_ms;
	struct pollfd pfd = { .fd = pidfd, .events = POLLIN };
	int left = timeout_ms;

	for (;;) {
		int r = poll(&pfd, 1, left);

		if (r > 0) {
			return pfd.revents & POLLNVAL ? -EBADF : 0;
		}
		if (r == 0) {
			return -ETIMEDOUT;
		}
		if (errno != EINTR) {
			return -errno;
		}
		if (timeout_ms >= 0) {
			int64_t rest = deadline_ms - clock_boot_ms();

			left = rest > 0 ? (int)rest : 0;
		}
	}
}

int spawn_part(const struct spawn_part *part, int *out_sock, int *out_pidfd, struct error *e)
{
	char name[] = "osbx";
	autofree char *command = mem_strdup(part->command);
	char *const argv[] = { name, command, NULL };
	int pair[2] = { -1, -1 };
	int r = fd_seqpacket_pair(pair);

	if (r < 0) {
		return error_sys(e, -r, "channel of osbx %s", part->command);
	}
	autoclose int ours = pair[0];
	autoclose int theirs = pair[1];
	const struct spawn_opts opts = {
		.path = part->path ? part->path : spawn_self,
		.argv = argv,
		.fds = { { .from = theirs, .to = part->control_fd } },
		.fds_n = 1,
		.die_with_parent = part->die_with_parent,
		.new_session = part->new_session,
	};
	pid_t pid = 0;

	if (spawn_start(&opts, out_pidfd, &pid, e) < 0) {
		return -1;
	}
	*out_sock = TAKE_FD(ours);
	return 0;
}

int spawn_wait(int pidfd, int timeout_ms, int *out_status)
{
	siginfo_t info = { .si_pid = 0 };
	/* poll(2) would take a negative number for a source that never comes. */
	int r = pidfd < 0 ? -EBADF : wait_end(pidfd, timeout_ms);

	if (r < 0) {
		return r;
	}
	do {
		r = waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED);
	} while (r < 0 && errno == EINTR);
	if (r < 0) {
		return -errno;
	}
	*out_status = info.si_code == CLD_EXITED ? info.si_status & 0xff : 128 + info.si_status;
	return 0;
}
