/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <osbx/buf.h>
#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/mem.h>
#include <osbx/scope.h>
#include <osbx/spawn.h>
#include <osbx/sys.h>

#include "cgroup_internal.h"

#define HELPER_MS 10000

/* systemd marks what it has delegated: since 248 also for those who may not read "trusted". */
static bool is_delegated(int dir_fd)
{
	static const char *const names[] = { "user.delegate", "trusted.delegate" };
	char value = '0';

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (fgetxattr(dir_fd, names[i], &value, 1) == 1 && value == '1') {
			return true;
		}
	}
	return false;
}

bool scope_is_wanted(void)
{
	if (access("/run/systemd/system", F_OK) < 0) {
		return false;
	}
	autoclose int own_fd = cgroup_open_own();

	/* Where a unit's own processes are, controllers cannot be enabled, and its restart would
	 * end the sandbox: only what has moved to a leaf stays in its unit. */
	return own_fd < 0 || !is_delegated(own_fd) || cgroup_others(own_fd) != 0;
}

/* What the manager said is one thing, where this process is now another. */
static int arrival_check(const struct id *id, struct error *e)
{
	AUTO(buf) struct buf b = BUF_INIT(64U << 10);
	autofree char *name = mem_printf("/osbx-%s.scope", id->text);
	int r = file_read_at(AT_FDCWD, "/proc/self/cgroup", &b);

	if (r == 0) {
		r = buf_append(&b, "", 1);
	}
	if (r < 0) {
		return error_sys(e, -r, "/proc/self/cgroup");
	}
	return strstr(b.p, name) ? 0
				 : error_set(e, ERRC_UNAVAILABLE,
						   "systemd has not moved this process to %s",
						   name + 1);
}

static int helper_start(const struct id *id, int out_fd, int *out_pidfd, struct error *e)
{
	static char program[] = "osbx";
	static char command[] = "scope";
	autofree char *id_text = mem_strdup(id->text);
	autofree char *pid_text = mem_printf("%d", getpid());
	char *const argv[] = { program, command, id_text, pid_text, NULL };
	const struct spawn_opts opts = {
		.path = spawn_self,
		.argv = argv,
		.envp = environ, /* the address of the user's bus */
		.fds = { { out_fd, STDOUT_FILENO } },
		.fds_n = 1,
		.die_with_parent = true,
	};
	pid_t pid = 0;

	return spawn_start(&opts, out_pidfd, &pid, e);
}

/* The helper's error, or a word on how it ended without one. */
static int helper_failed(int out_fd, int status, struct error *e)
{
	struct error said = ERROR_INIT;

	if (fd_read(out_fd, &said, sizeof(said)) == (ssize_t)sizeof(said)) {
		error_sanitize(&said);
		if (said.code != ERRC_OK) {
			*e = said;
			return -1;
		}
	}
	return error_set(e, ERRC_INTERNAL, "osbx scope ended with status %d", status);
}

int scope_enter(const struct id *id, struct error *e)
{
	autoclose int pidfd = -1;
	int out[2];
	int status = 0;
	int r = fd_pipe(out, O_NONBLOCK);

	if (r < 0) {
		return error_sys(e, -r, "make a pipe");
	}
	autoclose int ours = out[0];
	autoclose int theirs = out[1];

	if (helper_start(id, theirs, &pidfd, e) < 0) {
		return error_wrap(e, "scope of systemd");
	}
	fd_close(&theirs);
	r = spawn_wait(pidfd, HELPER_MS, &status);
	if (r == -ETIMEDOUT) {
		(void)!sys_pidfd_kill(pidfd, SIGKILL);
		(void)!spawn_wait(pidfd, -1, &status);
		(void)error_set(e, ERRC_TIMEOUT, "systemd does not answer");
	} else if (r < 0) {
		(void)error_sys(e, -r, "wait for osbx scope");
	} else if (status != 0) {
		(void)helper_failed(ours, status, e);
	} else {
		(void)arrival_check(id, e);
	}
	return e->code == ERRC_OK ? 0 : error_wrap(e, "scope of systemd");
}
