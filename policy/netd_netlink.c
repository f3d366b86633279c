/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

#include <osbx/cleanup.h>
#include <osbx/fd.h>

#include "netd_netlink.h"

static void bytes_add(struct netlink *nl, const void *data, size_t n)
{
	size_t room = NLMSG_ALIGN(n);

	assert(room <= sizeof(nl->bytes) - nl->n);
	memset(nl->bytes + nl->n, 0, room);
	if (n > 0) {
		memcpy(nl->bytes + nl->n, data, n);
	}
	nl->n += room;
}

void netlink_begin(
		struct netlink *nl, uint16_t type, uint16_t flags, const void *head, size_t head_n)
{
	const struct nlmsghdr h = {
		.nlmsg_type = type,
		.nlmsg_flags = NLM_F_REQUEST | flags,
		.nlmsg_seq = ++nl->seq,
	};

	nl->message = nl->n;
	bytes_add(nl, &h, sizeof(h));
	bytes_add(nl, head, head_n);
}

void netlink_end(struct netlink *nl)
{
	uint32_t n = (uint32_t)(nl->n - nl->message);

	memcpy(nl->bytes + nl->message, &n, sizeof(n));
}

void netlink_put(struct netlink *nl, uint16_t type, const void *data, size_t n)
{
	const struct nlattr a = { .nla_type = type, .nla_len = (uint16_t)(NLA_HDRLEN + n) };

	bytes_add(nl, &a, sizeof(a));
	bytes_add(nl, data, n);
}

void netlink_put_str(struct netlink *nl, uint16_t type, const char *s)
{
	netlink_put(nl, type, s, strlen(s) + 1);
}

void netlink_put_be32(struct netlink *nl, uint16_t type, uint32_t v)
{
	uint32_t be = htonl(v);

	netlink_put(nl, type, &be, sizeof(be));
}

size_t netlink_nest(struct netlink *nl, uint16_t type)
{
	size_t at = nl->n;

	netlink_put(nl, type | NLA_F_NESTED, NULL, 0);
	return at;
}

void netlink_nest_end(struct netlink *nl, size_t nest)
{
	uint16_t n = (uint16_t)(nl->n - nest);

	memcpy(nl->bytes + nest, &n, sizeof(n));
}

/* What one datagram of the kernel says. */
static int answer_read(const char *p, size_t n, uint32_t acked, uint32_t *out_seq, bool *out_acked)
{
	struct nlmsghdr h;
	struct nlmsgerr err;

	for (; n >= sizeof(h); p += NLMSG_ALIGN(h.nlmsg_len), n -= NLMSG_ALIGN(h.nlmsg_len)) {
		memcpy(&h, p, sizeof(h));
		if (h.nlmsg_len < sizeof(h) || NLMSG_ALIGN(h.nlmsg_len) > NLMSG_ALIGN(n)) {
			return -EBADMSG;
		}
		if (h.nlmsg_type == NLMSG_ERROR && h.nlmsg_len >= sizeof(h) + sizeof(err)) {
			memcpy(&err, p + NLMSG_HDRLEN, sizeof(err));
			if (err.error != 0) {
				*out_seq = h.nlmsg_seq;
				return err.error;
			}
			*out_acked |= h.nlmsg_seq == acked;
		}
		if (NLMSG_ALIGN(h.nlmsg_len) >= n) {
			break;
		}
	}
	return 0;
}

int netlink_run(const struct netlink *nl, int protocol, uint32_t acked, uint32_t *out_seq)
{
	_Alignas(8) char in[NETLINK_BYTES_MAX];
	const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	autoclose int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	bool is_acked = false;

	*out_seq = 0;
	if (fd < 0 || sendto(fd, nl->bytes, nl->n, 0, (const struct sockaddr *)&kernel,
				      sizeof(kernel)) < 0) {
		return -errno;
	}
	while (!is_acked) {
		ssize_t n = recv(fd, in, sizeof(in), MSG_DONTWAIT);
		int r = n < 0 ? -errno : answer_read(in, (size_t)n, acked, out_seq, &is_acked);

		if (r < 0) {
			return r;
		}
	}
	return 0;
}
