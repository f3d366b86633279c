/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include <osbx/fd.h>

#include "net_internal.h"

#define ANSWER_BYTES 4096

struct route_request {
	struct nlmsghdr head;
	struct rtmsg route;
	struct rtattr dst;
	uint8_t addr[16];
};

static int route_ask(int sock, const struct netaddr *a)
{
	const size_t n = a->family == 4 ? 4 : 16;
	struct route_request rq = {
		.head = {
			.nlmsg_len = (uint32_t)(offsetof(struct route_request, addr) + n),
			.nlmsg_type = RTM_GETROUTE,
			.nlmsg_flags = NLM_F_REQUEST,
			.nlmsg_seq = 1,
		},
		.route = {
			.rtm_family = a->family == 4 ? AF_INET : AF_INET6,
			.rtm_dst_len = (uint8_t)(8 * n),
		},
		.dst = { .rta_len = (uint16_t)RTA_LENGTH(n), .rta_type = RTA_DST },
	};

	memcpy(rq.addr, a->bytes, n);
	return send(sock, &rq, rq.head.nlmsg_len, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* One answer, a route or why there is none. */
static int route_read(int sock)
{
	char bytes[ANSWER_BYTES] __attribute__((aligned(NLMSG_ALIGNTO)));
	ssize_t n = recv(sock, bytes, sizeof(bytes), 0);
	struct nlmsghdr head;
	struct rtmsg route;

	if (n < 0) {
		return -errno;
	}
	if ((size_t)n < NLMSG_HDRLEN + sizeof(route)) {
		return -EBADMSG;
	}
	memcpy(&head, bytes, sizeof(head));
	if (head.nlmsg_type == NLMSG_ERROR) {
		/* No route, or one that refuses: nothing is reached there. */
		return 0;
	}
	if (head.nlmsg_type != RTM_NEWROUTE) {
		return -EBADMSG;
	}
	memcpy(&route, bytes + NLMSG_HDRLEN, sizeof(route));
	return route.rtm_type == RTN_LOCAL || route.rtm_type == RTN_BROADCAST ||
	       route.rtm_type == RTN_ANYCAST || route.rtm_type == RTN_MULTICAST;
}

int net_route_is_own(const struct netaddr *a)
{
	const struct timeval patience = { .tv_sec = 1 };
	autoclose int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (sock < 0) {
		return -errno;
	}
	/* The kernel answers within the call; this is for one that does not. */
	(void)setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	int r = route_ask(sock, a);

	return r < 0 ? r : route_read(sock);
}
