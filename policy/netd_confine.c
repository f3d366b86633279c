/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * netd reads whatever the programs of a sandbox and the servers they speak to send. Taken over, it
 * must give no more than they have already: not the keeper's files, not a socket of the host's, not
 * a right over the sandbox.
 *
 * It enters the sandbox's user namespace (there it has all capabilities, outside none), becomes
 * that one's root if it is the machine's (a file of root's is readable by its owner without any
 * capability), makes links, rules and listening sockets in the network namespace, and gives all
 * capabilities up. From then on the filter of its system calls has none that names a file, a
 * process or a namespace, and none that makes a socket: what it is connected to comes from the
 * keeper, one by one, and stays connected to that: it cannot be sent elsewhere, nor be made to by
 * an option. The file system needs no walls of its own: no call can name a file.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include <osbx/caps.h>
#include <osbx/secfilter.h>
#include <osbx/sys.h>

#include "netd_internal.h"

int confine_enter(int userns_fd, int netns_fd, struct error *e)
{
	bool is_root = geteuid() == 0;
	int r = is_root ? sys_setgroups(0, NULL) : 0;

	/* Out here: a user namespace of one id denies it for good. EPERM: the root of such a one,
	 * none of the machine's. */
	if (r < 0 && r != -EPERM) {
		return error_sys(e, -r, "drop groups");
	}
	r = sys_setns(userns_fd, CLONE_NEWUSER);
	if (r < 0) {
		return error_sys(e, -r, "enter the user namespace");
	}
	r = sys_setns(netns_fd, CLONE_NEWNET);
	if (r < 0) {
		return error_sys(e, -r, "enter the network namespace");
	}
	if (!is_root) {
		return 0; /* the sandbox's ids are the user's own, or below them */
	}
	r = sys_setresgid(0);
	r = r < 0 ? r : sys_setresuid(0);
	return r < 0 ? error_sys(e, -r, "become root of the user namespace") : 0;
}

/* As many descriptors as may be: six a connection. */
static int limits_set(void)
{
	const struct rlimit no_core = { .rlim_cur = 0 };
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0) {
		return -errno;
	}
	files.rlim_cur = files.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &files) < 0 || setrlimit(RLIMIT_CORE, &no_core) < 0 ||
					       sigaction(SIGPIPE, &ignore, NULL) < 0
			       ? -errno
			       : 0;
}

static int parent_check(int control_fd)
{
	struct pollfd parent = { .fd = control_fd };
	/* A change of ids clears it. */
	int r = sys_prctl(PR_SET_PDEATHSIG, SIGKILL);

	if (r < 0) {
		return r;
	}
	return poll(&parent, 1, 0) < 0 || (parent.revents & (POLLHUP | POLLERR)) != 0 ? -EPIPE : 0;
}

int confine_lock(int control_fd, struct error *e)
{
	struct secfilter filter = { .n = 0 };
	int r = socket_fix_rest();

	r = r < 0 ? r : limits_set();

	/* glibc opens the file of the time zone for the first date, whatever its zone. */
	tzset();
	secfilter_builtin(SECFILTER_NETD, &filter);
	r = r < 0 ? r : sys_prctl(PR_SET_DUMPABLE, 0);
	r = r < 0 ? r : caps_set(0);
	r = r < 0 ? r : parent_check(control_fd);
	r = r < 0 ? r : sys_prctl(PR_SET_NO_NEW_PRIVS, 1);
	r = r < 0 ? r : sys_seccomp(filter.insns, filter.n);
	return r < 0 ? error_sys(e, -r, "give up rights") : 0;
}
