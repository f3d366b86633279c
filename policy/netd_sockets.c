/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
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

int socket_fix(int *fd, enum netd_fixed which)
{
	int number = NETD_FIXED_FIRST + (int)which;
	int r = fd_dup(*fd, number);

	fd_close(fd);
	if (r >= 0 && r != number) {
		fd_close(&r);
		return -EBUSY;
	}
	*fd = r;
	return r < 0 ? r : 0;
}

int socket_fix_rest(void)
{
	for (int i = 0; i < NETD_FIXED_COUNT; i++) {
		int number = NETD_FIXED_FIRST + i;

		if (fcntl(number, F_GETFD) < 0 &&
				fd_dup(NETD_FIXED_FIRST + NETD_FIXED_RAW4, number) != number) {
			return -EMFILE;
		}
	}
	return 0;
}

void socket_reset(int *fd)
{
	const struct linger now = { .l_onoff = 1 };

	if (*fd >= 0) {
		(void)setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
		fd_close(fd);
	}
}
