/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * The kernel takes a third of a millisecond for a network namespace, and a child that made its own
 * could not mount meanwhile. A process beside the keeper makes it and is gone with it made: it
 * enters the user namespace, which owns what is unshared in it. Nothing of the guest runs yet.
 */
#include <errno.h>
#include <sched.h>

#include <osbx/spawn.h>
#include <osbx/sys.h>

#include "launch_internal.h"

struct making {
	int userns_fd;
	const char *step;
	int netns_fd;
};

static int make(void *arg)
{
	struct making *m = arg;
	int r = sys_setns(m->userns_fd, CLONE_NEWUSER);

	if (r < 0) {
		m->step = "network namespace: enter the user namespace";
		return r;
	}
	m->step = "network namespace: make a new one";
	r = sys_unshare(CLONE_NEWNET);
	if (r < 0) {
		return r;
	}
	m->step = "loopback device: bring it up";
	r = sys_loopback_up();
	if (r < 0) {
		return r;
	}
	m->step = "network namespace: open it";
	m->netns_fd = sys_netns_open();
	return m->netns_fd < 0 ? m->netns_fd : 0;
}

int netns_make(int userns_fd, int *out_fd, struct error *e)
{
	struct making m = { .userns_fd = userns_fd, .step = "network namespace", .netns_fd = -1 };
	int r = spawn_aside(make, &m);

	if (r == 0) {
		*out_fd = m.netns_fd;
		return 0;
	}
	(void)error_sys(e, -r, "%s", m.step);
	return r == -ENOSPC ? error_hint(e, "the limit of network namespaces is reached: raise "
					    "user.max_net_namespaces")
			    : -1;
}
