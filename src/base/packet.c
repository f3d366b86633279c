/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include <osbx/cleanup.h>
#include <osbx/clock.h>
#include <osbx/packet.h>

#define HEAD_BYTES offsetof(struct packet, payload)

_Static_assert(offsetof(struct packet, fds) == HEAD_BYTES + PACKET_PAYLOAD_MAX && HEAD_BYTES == 16,
		"the bytes on the wire are the beginning of the structure");

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * PACKET_FDS_MAX)];
};

void packet_init(struct packet *p, uint16_t type)
{
	*p = (struct packet){ .version = PACKET_VERSION, .type = type };
}

int packet_put(struct packet *p, const void *data, uint32_t n)
{
	assert(p->len <= PACKET_PAYLOAD_MAX);
	if (n > PACKET_PAYLOAD_MAX - p->len) {
		return -EMSGSIZE;
	}
	if (n > 0) {
		memcpy(p->payload + p->len, data, n);
		p->len += n;
	}
	return 0;
}

int packet_put_fd(struct packet *p, int fd)
{
	assert(fd >= 0);
	if (p->fds_n >= PACKET_FDS_MAX) {
		return -EMSGSIZE;
	}
	p->fds[p->fds_n++] = fd;
	return 0;
}

int packet_send(int sock, const struct packet *p)
{
	assert(p->len <= PACKET_PAYLOAD_MAX && p->fds_n <= PACKET_FDS_MAX);
	struct packet bytes = *p;
	struct iovec iov = { .iov_base = &bytes, .iov_len = HEAD_BYTES + p->len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union control control = { 0 };

	if (p->fds_n > 0) {
		size_t n = sizeof(int) * p->fds_n;

		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(n);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n);
		memcpy(CMSG_DATA(c), p->fds, n);
	}
	for (;;) {
		if (sendmsg(sock, &msg, MSG_NOSIGNAL) >= 0) {
			return 0;
		}
		if (errno != EINTR) {
			return -errno;
		}
	}
}

/* Take the descriptors of a message; the control buffer cannot hold more than PACKET_FDS_MAX. */
static uint32_t fds_take(struct msghdr *msg, int fds[PACKET_FDS_MAX])
{
	uint32_t n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
			continue;
		}
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		assert(count <= PACKET_FDS_MAX - n);
		memcpy(fds + n, CMSG_DATA(c), count * sizeof(int));
		n += (uint32_t)count;
	}
	return n;
}

/* One attempt without waiting. Bytes (0: end of file), -EAGAIN, -EBADMSG, -errno. */
static ssize_t receive(int sock, struct packet *p)
{
	struct iovec iov = { .iov_base = p, .iov_len = HEAD_BYTES + PACKET_PAYLOAD_MAX };
	union control control = { 0 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n;

	do {
		/* ECONNRESET: the peer closed with packets of ours unread. The kernel says so once
		 * and before it hands out what the peer had sent; the next call goes on with it. */
		n = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0) {
		return -errno;
	}
	uint32_t claimed = (size_t)n >= HEAD_BYTES ? p->fds_n : 0;

	p->fds_n = fds_take(&msg, p->fds);
	bool whole = !(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && (size_t)n >= HEAD_BYTES &&
		     (size_t)n == HEAD_BYTES + (size_t)p->len;

	if (n == 0 && p->fds_n == 0) {
		return 0;
	}
	if (!whole || p->version != PACKET_VERSION || p->fds_n != claimed) {
		packet_done(p);
		return -EBADMSG;
	}
	return n;
}

/* Wait for readability. 0, -ETIMEDOUT or -errno. */
static int wait_readable(int sock, int64_t deadline_ms)
{
	struct pollfd pfd = { .fd = sock, .events = POLLIN };

	for (;;) {
		int64_t left = -1;

		if (deadline_ms >= 0) {
			left = deadline_ms - clock_boot_ms();
			left = left < 0 ? 0 : left;
			left = left > INT32_MAX ? INT32_MAX : left;
		}
		int r = poll(&pfd, 1, (int)left);

		if (r > 0) {
			return 0;
		}
		if (r < 0 && errno != EINTR) {
			return -errno;
		}
		if (r == 0 && left == 0) {
			return -ETIMEDOUT;
		}
	}
}

int packet_recv(int sock, struct packet *out_p, int64_t deadline_ms)
{
	struct packet p = { 0 };

	for (;;) {
		ssize_t n = receive(sock, &p);

		if (n > 0) {
			*out_p = p;
			return 1;
		}
		if (n != -EAGAIN || deadline_ms == 0) {
			return (int)n;
		}
		int r = wait_readable(sock, deadline_ms);

		if (r < 0) {
			return r;
		}
	}
}

void packet_done(struct packet *p)
{
	for (uint32_t i = 0; i < p->fds_n && i < PACKET_FDS_MAX; i++) {
		if (p->fds[i] >= 0) {
			close_auto(&p->fds[i]);
			p->fds[i] = -1;
		}
	}
	p->fds_n = 0;
}
