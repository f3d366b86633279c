/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <osbx/ctl.h>
#include <osbx/fd.h>
#include <osbx/mem.h>

static int not_alive(const struct id *id, struct error *e)
{
	return error_set(e, ERRC_CONFLICT, "sandbox %s is not running", id->text);
}

int ctl_connect(const struct dirs *dirs, const struct id *id, struct error *e)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	autofree char *path = mem_printf("sandboxes/%s", id->text);
	autoclose int dir_fd = fd_open_at(dirs->runtime_fd, path, O_PATH | O_DIRECTORY, 0);
	autoclose int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (dir_fd < 0) {
		return not_alive(id, e);
	}
	if (sock < 0) {
		return error_sys(e, errno, "make a socket");
	}
	/* The runtime directory may be longer than sun_path. */
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/" CTL_SOCKET,
			dir_fd);
	if (connect(sock, (const struct sockaddr *)&addr, sizeof(addr)) < 0) {
		return errno == ENOENT || errno == ECONNREFUSED
				       ? not_alive(id, e)
				       : error_sys(e, errno, "speak to the keeper of sandbox %s",
							 id->text);
	}
	return TAKE_FD(sock);
}

/* What was put into the packet has gone well so far if r is 0. */
static int packet_post(int sock, const struct packet *p, int r, struct error *e)
{
	if (r == 0) {
		r = packet_send(sock, p);
	}
	/* A keeper that answers and closes without reading is one that ends. */
	return r < 0 && r != -EPIPE && r != -ECONNRESET
			       ? error_sys(e, -r, "speak to the keeper of the sandbox")
			       : 0;
}

int ctl_send(int sock, enum ctl_msg type, const void *payload, uint32_t n, struct error *e)
{
	struct packet p;

	packet_init(&p, (uint16_t)type);
	return packet_post(sock, &p, n > 0 ? packet_put(&p, payload, n) : 0, e);
}

int ctl_send_fd(int sock, enum ctl_msg type, int fd, struct error *e)
{
	struct packet p;

	packet_init(&p, (uint16_t)type);
	return packet_post(sock, &p, packet_put_fd(&p, fd), e);
}

int ctl_send_exec(int sock, const struct ctl_exec *request, const int *fds, uint32_t fds_n,
		struct error *e)
{
	struct packet p;

	packet_init(&p, CTL_MSG_EXEC);
	int r = packet_put(&p, request, sizeof(*request));

	for (uint32_t i = 0; i < fds_n && r == 0; i++) {
		r = packet_put_fd(&p, fds[i]);
	}
	return packet_post(sock, &p, r, e);
}

/* FAILED, or something that was not asked for. Always -1. */
static int answer_fail(const struct packet *p, struct error *e)
{
	struct error theirs;

	if (p->type == CTL_MSG_FAILED && p->len == sizeof(theirs)) {
		memcpy(&theirs, p->payload, sizeof(theirs));
		error_sanitize(&theirs);
		if (theirs.code != ERRC_OK) {
			*e = theirs;
			return -1;
		}
	}
	return error_set(e, ERRC_INTERNAL, "answer of the keeper of the sandbox");
}

int ctl_expect(int sock, enum ctl_msg want, struct packet *out_p, int64_t deadline_ms,
		struct error *e)
{
	struct packet p;
	int r = packet_recv(sock, &p, deadline_ms);

	if (r == -ETIMEDOUT) {
		return error_set(e, ERRC_TIMEOUT, "the keeper of the sandbox does not answer");
	}
	if (r == 0) {
		return error_set(e, ERRC_UNAVAILABLE, "the sandbox has ended");
	}
	if (r < 0) {
		return error_sys(e, -r, "answer of the keeper of the sandbox");
	}
	if (p.type != (uint16_t)want) {
		r = answer_fail(&p, e);
		packet_done(&p);
		return r;
	}
	*out_p = p;
	return 0;
}

int ctl_request(const struct dirs *dirs, const struct id *id, enum ctl_msg type,
		const void *payload, uint32_t n, struct error *e)
{
	autoclose int sock = ctl_connect(dirs, id, e);
	struct packet p;

	if (sock < 0 || ctl_send(sock, type, payload, n, e) < 0 ||
			ctl_expect(sock, CTL_MSG_OK, &p, -1, e) < 0) {
		return -1;
	}
	packet_done(&p);
	return 0;
}
