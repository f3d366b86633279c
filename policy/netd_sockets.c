/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <osbx/fd.h>
#include <osbx/netaddr.h>

#include "netd_internal.h"

#define BACKLOG 4096

int socket_home(const char *addr, uint16_t port, int type)
{
	const int yes = 1;
	struct netaddr a = { .family = 0 };
	struct sockaddr_storage sa = { .ss_family = AF_UNSPEC };

	if (netaddr_parse(span_of(addr), &a) < 0) {
		return -EINVAL;
	}
	socklen_t n = netaddr_to_sock(&a, port, &sa);
	bool is_6 = a.family == 6;
	autoclose int fd = socket(sa.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0) {
		return -errno;
	}
	/* The address stands on no device (IPV6_FREEBIND: Linux 4.15). A port of connections that
	 * an earlier netd left behind is free again; of datagrams it would be shared. */
	if (setsockopt(fd, is_6 ? IPPROTO_IPV6 : IPPROTO_IP, is_6 ? IPV6_FREEBIND : IP_FREEBIND,
			    &yes, sizeof(yes)) < 0 ||
			(type == SOCK_STREAM && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes,
								sizeof(yes)) < 0) ||
			bind(fd, (const struct sockaddr *)&sa, n) < 0 ||
			(type == SOCK_STREAM && listen(fd, BACKLOG) < 0)) {
		return -errno;
	}
	return TAKE_FD(fd);
}

void socket_reset(int *fd)
{
	const struct linger now = { .l_onoff = 1 };

	if (*fd >= 0) {
		(void)setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
		fd_close(fd);
	}
}
