/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   (no listener) ── LISTEN ──▶ WAITING ── first connection ──▶ SERVING
 *
 * The start of a sandbox is what users wait for, and most sandboxes are never asked anything: the
 * server and its memory come with the first connection, whose bytes wait in the kernel.
 */
#include <errno.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <osbx/fd.h>
#include <osbx/mem.h>

#include "execd.h"
#include "service.h"

#define BACKLOG 128

struct service {
	struct execd *execd;
	int outside_fd; /* -1 when the server has it */
	int inside_fd;  /* likewise, or there is none */
};

/* A listener on the loopback of the sandbox, which is up before PID 1 runs. fd or -errno. */
static int inside_open(void)
{
	const struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(EXECD_PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	autoclose int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (const void *)&address, sizeof(address)) < 0 ||
			listen(fd, BACKLOG) < 0) {
		return -errno;
	}
	return TAKE_FD(fd);
}

int service_listen(struct execd *x, uint32_t flags, int fd)
{
	if (x->service) {
		return -EEXIST;
	}
	struct service *s = mem_new(struct service);

	*s = (struct service){ .execd = x, .outside_fd = fd, .inside_fd = -1 };
	if (flags & EXECD_LISTEN_INSIDE) {
		s->inside_fd = inside_open();
	}
	x->service = s;
	return 0;
}
