/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/random.h>

#include <osbx/fd.h>

#include "net_internal.h"

#define ECHO4_REPLY 0
#define ECHO6_REPLY 129

/* A socket that is being connected. fd or -errno. */
static int connect_begin(const struct sockaddr_storage *sa, socklen_t len, int type)
{
	autoclose int fd = socket(sa->ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0) {
		return -errno;
	}
	if (connect(fd, (const struct sockaddr *)sa, len) < 0 && errno != EINPROGRESS) {
		return -errno;
	}
	return TAKE_FD(fd);
}

/* Of a raw socket, which has all ICMP: nothing but replies to this identifier, for good. */
static int replies_only(int fd, bool is_6, uint16_t ident)
{
	struct sock_filter code4[] = {
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
		BPF_STMT(BPF_LD | BPF_B | BPF_IND, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ECHO4_REPLY, 0, 3),
		BPF_STMT(BPF_LD | BPF_H | BPF_IND, 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ident, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_filter code6[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ECHO6_REPLY, 0, 3),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ident, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog program = {
		.len = is_6 ? ARRAY_SIZE(code6) : ARRAY_SIZE(code4),
		.filter = is_6 ? code6 : code4,
	};
	const int yes = 1;

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0 ||
					       setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &yes,
							       sizeof(yes)) < 0
			       ? -errno
			       : 0;
}

/* Where net.ipv4.ping_group_range has not the group of this process, for root ("1 0", the kernel's
 * default, has nobody's). fd, or -EPROTONOSUPPORT. */
static int raw_open(bool is_6, uint16_t *out_ident)
{
	autoclose int fd =
			socket(is_6 ? AF_INET6 : AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
					is_6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP);
	uint16_t ident = 0;

	if (fd < 0 || getrandom(&ident, sizeof(ident), 0) != sizeof(ident)) {
		return -EPROTONOSUPPORT;
	}
	int r = replies_only(fd, is_6, ident);

	if (r < 0) {
		return r;
	}
	*out_ident = ident;
	return TAKE_FD(fd);
}

int net_ping_open(bool is_6, uint16_t *out_ident)
{
	int fd = socket(is_6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			is_6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP);

	/* The kernel writes its own identifier. */
	*out_ident = 0;
	return fd >= 0 ? fd : errno == EACCES ? raw_open(is_6, out_ident) : -errno;
}

bool net_ping_is_there(void)
{
	uint16_t ident = 0;
	autoclose int fd = net_ping_open(false, &ident);

	return fd >= 0;
}

static int ping_begin(const struct sockaddr_storage *sa, socklen_t len, uint16_t *out_ident)
{
	autoclose int fd = net_ping_open(sa->ss_family == AF_INET6, out_ident);

	if (fd < 0) {
		return fd;
	}
	return connect(fd, (const struct sockaddr *)sa, len) < 0 ? -errno : TAKE_FD(fd);
}

/* May the policy's rules for addresses, and what the host has at this moment, be passed? */
static int dial_check(const struct netpolicy *policy, const struct netaddr *addr, uint16_t port,
		enum netpolicy_proto proto)
{
	int own = net_route_is_own(addr);

	if (own < 0) {
		return own;
	}
	return netpolicy_may_dial(policy, addr, own > 0, port, proto) ? 0 : -EACCES;
}

int net_dial(const struct netpolicy *policy, const struct netd_dial *what, uint16_t *out_ident)
{
	const bool is_ping = what->kind == NETD_DIAL_PING;
	const bool is_tcp = what->kind == NETD_DIAL_TCP;
	const uint16_t port = is_ping ? 0 : what->port;
	struct netaddr addr = what->addr;
	struct sockaddr_storage sa;

	*out_ident = 0;
	if ((addr.family != 4 && addr.family != 6) || (port == 0 && !is_ping)) {
		return -EINVAL;
	}
	netaddr_unmap(&addr);
	int r = dial_check(policy, &addr, port,
			is_ping  ? NETPOLICY_ANY
			: is_tcp ? NETPOLICY_TCP
				 : NETPOLICY_UDP);

	if (r < 0) {
		return r;
	}
	socklen_t len = netaddr_to_sock(&addr, port, &sa);

	return is_ping ? ping_begin(&sa, len, out_ident)
		       : connect_begin(&sa, len, is_tcp ? SOCK_STREAM : SOCK_DGRAM);
}

int net_dial_resolver(const struct net_resolvers *r, uint16_t number)
{
	return number < r->n ? connect_begin(&r->addrs[number], r->lens[number], SOCK_STREAM)
			     : -ENOENT;
}
