/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * lo is device 1 of every network namespace. A default route of type local makes every address of
 * the world one of this machine's, as 127.0.0.0/8 is: no packet can leave, and no device, pair or
 * neighbour is needed for a connection to reach netd. Its preferred source gives each connection an
 * address of its own side that is not the one it goes to.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <osbx/netaddr.h>
#include <osbx/netd.h>
#include <osbx/sys.h>

#include "netd_links.h"
#include "netd_netlink.h"

#define LO 1

struct family {
	uint8_t af;
	uint8_t bits;
	uint8_t bytes;
	const char *self;
};

static const struct family families[] = {
	{ AF_INET, 32, 4, NETD_SELF4 },
	{ AF_INET6, 128, 16, NETD_SELF6 },
};

static void self_of(const struct family *f, uint8_t out[16])
{
	struct netaddr a;

	if (netaddr_parse(span_of(f->self), &a) == 0) {
		memcpy(out, a.bytes, f->bytes);
	}
}

static void address_add(struct netlink *nl, const struct family *f)
{
	uint8_t self[16] = { 0 };
	const struct ifaddrmsg head = {
		.ifa_family = f->af,
		.ifa_prefixlen = f->bits,
		.ifa_flags = IFA_F_PERMANENT | (f->af == AF_INET6 ? IFA_F_NODAD : 0),
		.ifa_scope = RT_SCOPE_UNIVERSE,
		.ifa_index = LO,
	};

	self_of(f, self);
	netlink_begin(nl, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, &head, sizeof(head));
	netlink_put(nl, IFA_LOCAL, self, f->bytes);
	netlink_put(nl, IFA_ADDRESS, self, f->bytes);
	netlink_end(nl);
}

static void route_add(struct netlink *nl, const struct family *f)
{
	uint8_t self[16] = { 0 };
	const uint32_t lo = LO;
	const struct rtmsg head = {
		.rtm_family = f->af,
		.rtm_table = RT_TABLE_LOCAL,
		.rtm_protocol = RTPROT_STATIC,
		.rtm_scope = f->af == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
		.rtm_type = RTN_LOCAL,
	};

	self_of(f, self);
	netlink_begin(nl, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, &head, sizeof(head));
	netlink_put(nl, RTA_OIF, &lo, sizeof(lo));
	netlink_put(nl, RTA_PREFSRC, self, f->bytes);
	netlink_end(nl);
}

/* 0, or -errno. */
static int step(void (*write)(struct netlink *, const struct family *), const struct family *f)
{
	struct netlink nl = { .n = 0 };
	uint32_t seq = 0;

	write(&nl, f);
	int r = netlink_run(&nl, NETLINK_ROUTE, nl.seq, &seq);

	return r == -EEXIST ? 0 : r;
}

/* What the kernel says where IPv6 is switched off, wholly or by sysctl. */
static bool is_off(int r)
{
	return r == -EAFNOSUPPORT || r == -EOPNOTSUPP || r == -EACCES || r == -ENODEV;
}

int links_up(bool *out_ipv6, struct error *e)
{
	int r = sys_loopback_up();

	if (r < 0) {
		return error_sys(e, -r, "bring the loopback device up");
	}
	*out_ipv6 = true;
	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		const struct family *f = &families[i];

		r = step(address_add, f);
		if (f->af == AF_INET6 && is_off(r)) {
			*out_ipv6 = false;
			return 0;
		}
		if (r < 0) {
			return error_sys(e, -r, "give the loopback device the address %s", f->self);
		}
		r = step(route_add, f);
		if (r < 0) {
			return error_sys(e, -r, "route from %s to the loopback device", f->self);
		}
	}
	return 0;
}
