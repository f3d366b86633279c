/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include "http_internal.h"

int http_peer(const struct http_req *rq, char *out, size_t size)
{
	struct sockaddr_storage addr = { .ss_family = AF_UNSPEC };
	const struct sockaddr_in *v4 = (const void *)&addr;
	const struct sockaddr_in6 *v6 = (const void *)&addr;
	socklen_t n = sizeof(addr);
	char text[INET6_ADDRSTRLEN];

	if (getpeername(conn_of(rq)->fd, (struct sockaddr *)&addr, &n) < 0) {
		return -errno;
	}
	if (addr.ss_family != AF_INET && addr.ss_family != AF_INET6) {
		return -EAFNOSUPPORT;
	}
	bool is_6 = addr.ss_family == AF_INET6;
	const void *bytes = is_6 ? (const void *)&v6->sin6_addr : (const void *)&v4->sin_addr;

	if (!inet_ntop(addr.ss_family, bytes, text, sizeof(text))) {
		return -errno;
	}
	int written = snprintf(out, size, is_6 ? "[%s]" : "%s", text);

	return written < 0 || (size_t)written >= size ? -EOVERFLOW : 0;
}
