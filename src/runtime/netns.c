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
	uint32_t last_gid;
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
	/* Where /proc/sys is read-only, as in containers, there is no ping. */
	(void)!sys_ping_allow(m->last_gid);
	m->step = "network namespace: open it";
	m->netns_fd = sys_netns_open();
	return m->netns_fd < 0 ? m->netns_fd : 0;
}

static uint32_t last_gid(const struct idmap *map)
{
	uint32_t last = 0;

	for (size_t i = 0; i < map->gids_n; i++) {
		uint32_t end = map->gids[i].inside + map->gids[i].count - 1;

		last = end > last ? end : last;
	}
	return last;
}

int netns_make(int userns_fd, const struct idmap *map, int *out_fd, struct error *e)
{
	struct making m = {
		.userns_fd = userns_fd,
		.last_gid = last_gid(map),
		.step = "network namespace",
		.netns_fd = -1,
	};
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
