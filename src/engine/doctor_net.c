/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sched.h>

#include <osbx/fd.h>
#include <osbx/keeper_net.h>
#include <osbx/spawn.h>
#include <osbx/sys.h>

#include "doctor_internal.h"

struct making {
	int userns_fd;
	int netns_fd;
};

/* In a process beside this one. */
static int netns_make(void *arg)
{
	struct making *m = arg;
	int r = sys_setns(m->userns_fd, CLONE_NEWUSER);

	if (r == 0) {
		r = sys_unshare(CLONE_NEWNET);
	}
	if (r == 0) {
		r = sys_loopback_up();
	}
	m->netns_fd = r == 0 ? sys_netns_open() : -1;
	return r < 0 ? r : m->netns_fd < 0 ? m->netns_fd : 0;
}

static int network_make(int userns_fd, int netns_fd, struct error *e)
{
	AUTO(netpolicy) struct netpolicy policy = { .n = 0 };
	const struct keeper_net_opts opts = { .policy = &policy, .token = "none" };

	netpolicy_init(&policy);
	AUTO(keeper_net) struct keeper_net *net = keeper_net_new(&opts, e);

	if (!net || keeper_net_begin(net, -1, userns_fd, netns_fd, e) < 0) {
		return -1;
	}
	return keeper_net_wait(net, e);
}

int doctor_network_try(const struct idmap *map, struct error *e)
{
	autoclose int userns_fd = -1;

	if (idmap_userns_open(map, &userns_fd, e) < 0) {
		return -1;
	}
	struct making making = { .userns_fd = userns_fd, .netns_fd = -1 };
	int r = spawn_aside(netns_make, &making);
	autoclose int netns_fd = making.netns_fd;

	return r < 0 ? error_sys(e, -r, "private network: make a network namespace")
		     : network_make(userns_fd, netns_fd, e);
}
