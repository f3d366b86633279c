/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include <osbx/cleanup.h>
#include <osbx/log.h>
#include <osbx/sys.h>

#include "userns.h"

#define EXIT_ERRNO_MAX 255 /* an errno travels as the exit status; all are below */

int userns_enter(int userns_fd, const struct idmap *map)
{
	int rc = sys_setns(userns_fd, CLONE_NEWUSER);

	if (rc == 0 && map->setgroups) {
		rc = sys_setgroups(0, NULL);
	}
	if (rc == 0) {
		rc = sys_setresgid(0);
	}
	return rc < 0 ? rc : sys_setresuid(0);
}

int userns_run(const struct idmap *map, int (*fn)(void *ctx), void *ctx)
{
	struct error e = ERROR_INIT;
	autoclose int userns_fd = -1;
	int status = 0;
	pid_t pid = 0;

	if (idmap_userns_open(map, &userns_fd, &e) < 0) {
		log_debug("open user namespace: %s", e.text);
		return e.sysno > 0 ? -e.sysno : -EPERM;
	}
	pid = sys_fork();
	if (pid < 0) {
		return pid;
	}
	if (pid == 0) {
		int rc = userns_enter(userns_fd, map);

		rc = rc < 0 ? rc : fn(ctx);
		_exit(rc < 0 && rc >= -EXIT_ERRNO_MAX ? -rc : 0);
	}
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR) {
			return -errno;
		}
	}
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}
