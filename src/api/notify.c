/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/str.h>

#include "notify.h"

void notify_send(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t n = path ? strlen(path) : 0;

	if (n < 2 || n >= sizeof(addr.sun_path)) {
		return;
	}
	memcpy(addr.sun_path, path, n);
	if (path[0] == '@') {
		addr.sun_path[0] = '\0';
	}
	autoclose int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd >= 0) {
		(void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
				(const struct sockaddr *)&addr,
				(socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
	}
}

int64_t notify_watchdog_ms(void)
{
	const char *pid_text = getenv("WATCHDOG_PID");
	const char *usec_text = getenv("WATCHDOG_USEC");
	uint64_t pid = 0;
	uint64_t usec = 0;

	if (!usec_text || str_to_u64(usec_text, INT64_MAX / 2, &usec) < 0) {
		return 0;
	}
	if (pid_text && (str_to_u64(pid_text, INT32_MAX, &pid) < 0 || (pid_t)pid != getpid())) {
		return 0;
	}
	return (int64_t)(usec / 2000);
}
