/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <osbx/fd.h>
#include <osbx/mem.h>

#include "netd_inside.h"
#include "netd_links.h"

/* Not in the headers of every C library. */
#define RECV_ORIGINAL4  20 /* IP_RECVORIGDSTADDR */
#define RECV_ORIGINAL6  74 /* IPV6_RECVORIGDSTADDR */
#define TRANSPARENT4    19 /* IP_TRANSPARENT */
#define TRANSPARENT6    75 /* IPV6_TRANSPARENT */
#define IGNORE_OUTGOING 23 /* PACKET_IGNORE_OUTGOING, Linux 4.20 */
#define LO              1
#define RECEIVE_BYTES   (1 << 20)
#define BATCH_MAX       32

struct inside_udp {
	struct inside *in;
	int fd;
	struct loop_source src;
};

struct inside {
	struct netd *n;
	void (*take)(void *ctx, const struct datagram *g);
	void *ctx;
	struct inside_udp udp[2]; /* IPv4, IPv6 */
	int raw[2];
	int echo_fd;
	struct loop_source echo;
	uint8_t bytes[NETD_PACKET_MAX];
};

/* Is it one of the sandbox's own? All others are, too, but for the kernel alone. */
static bool is_own(const struct netaddr *a)
{
	static const char *const own[] = { "127.0.0.0/8", NETD_SELF4, "::1", NETD_SELF6 };

	for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
		struct netprefix p;

		if (netprefix_parse(span_of(own[i]), &p) == 0 && netprefix_has(&p, a)) {
			return true;
		}
	}
	return false;
}

static void pass(const struct inside *in, const struct datagram *g)
{
	if (is_own(&g->from) && !is_own(&g->to) && g->from.family == g->to.family) {
		in->take(in->ctx, g);
	}
}

/* Where it was sent to. */
static int original_of(struct msghdr *m, struct netaddr *out_addr, uint16_t *out_port)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		struct sockaddr_storage sa = { .ss_family = AF_UNSPEC };
		size_t n = c->cmsg_len - CMSG_LEN(0);

		if (((c->cmsg_level == IPPROTO_IP && c->cmsg_type == RECV_ORIGINAL4) ||
				    (c->cmsg_level == IPPROTO_IPV6 &&
						    c->cmsg_type == RECV_ORIGINAL6)) &&
				n <= sizeof(sa)) {
			memcpy(&sa, CMSG_DATA(c), n);
			return netaddr_from_sock(&sa, out_addr, out_port);
		}
	}
	return -ENOMSG;
}

static bool udp_receive(struct inside_udp *u)
{
	union {
		char bytes[CMSG_SPACE(sizeof(struct sockaddr_in6))];
		struct cmsghdr align;
	} control;
	struct sockaddr_storage from = { .ss_family = AF_UNSPEC };
	struct inside *in = u->in;
	struct iovec v = { .iov_base = in->bytes, .iov_len = sizeof(in->bytes) };
	struct msghdr m = {
		.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	struct datagram g = { .kind = DATAGRAM_UDP };
	ssize_t n = recvmsg(u->fd, &m, MSG_DONTWAIT);

	if (n < 0) {
		return false;
	}
	g.payload = (struct span){ .p = (const char *)in->bytes, .n = (size_t)n };
	if (netaddr_from_sock(&from, &g.from, &g.from_port) == 0 &&
			original_of(&m, &g.to, &g.to_port) == 0) {
		pass(in, &g);
	}
	return true;
}

static void on_udp(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)loop;
	(void)events;
	for (int i = 0; i < BATCH_MAX && udp_receive(container_of(src, struct inside_udp, src));
			i++) {
	}
}

static void on_echo(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct inside *in = container_of(src, struct inside, echo);
	struct datagram g;

	(void)loop;
	(void)events;
	for (int i = 0; i < BATCH_MAX; i++) {
		ssize_t n = recv(in->echo_fd, in->bytes, sizeof(in->bytes), MSG_DONTWAIT);
		const struct span packet = { .p = (const char *)in->bytes,
			.n = n > 0 ? (size_t)n : 0 };

		if (n < 0) {
			return;
		}
		if (echo_parse(packet, &g) == 0) {
			pass(in, &g);
		}
	}
}

void inside_send(const struct inside *in, const struct netaddr *to, const uint8_t *packet, size_t n)
{
	struct sockaddr_storage sa;
	socklen_t len = netaddr_to_sock(to, 0, &sa);

	(void)!sendto(in->raw[to->family == 6], packet, n, MSG_DONTWAIT | MSG_NOSIGNAL,
			(const struct sockaddr *)&sa, len);
}

static int on(int fd, int level, int option)
{
	const int yes = 1;

	return setsockopt(fd, level, option, &yes, sizeof(yes)) < 0 ? -errno : 0;
}

static void room_make(int fd)
{
	const int bytes = RECEIVE_BYTES;

	/* More than the host's limit: where it is refused there is less room for bursts. */
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
}

static int udp_open(struct inside *in, bool is_6)
{
	struct inside_udp *u = &in->udp[is_6];

	u->in = in;
	u->fd = socket_home(is_6 ? NETD_HOME6 : NETD_HOME4, NETD_PORT_UDP, SOCK_DGRAM);
	if (u->fd < 0) {
		return u->fd;
	}
	room_make(u->fd);
	int r = is_6 ? on(u->fd, IPPROTO_IPV6, TRANSPARENT6) : on(u->fd, IPPROTO_IP, TRANSPARENT4);

	r = r < 0  ? r
	    : is_6 ? on(u->fd, IPPROTO_IPV6, RECV_ORIGINAL6)
		   : on(u->fd, IPPROTO_IP, RECV_ORIGINAL4);
	return r < 0 ? r : loop_add(in->n->loop, &u->src, u->fd, EPOLLIN, on_udp);
}

static int raw_open(struct inside *in, bool is_6)
{
	int fd = socket(is_6 ? AF_INET6 : AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
			IPPROTO_RAW);

	if (fd < 0) {
		return -errno;
	}
	int r = socket_fix(&fd, is_6 ? NETD_FIXED_RAW6 : NETD_FIXED_RAW4);

	in->raw[is_6] = fd;
	return r;
}

/* IPv4 and IPv6 echo requests that are no fragments. The first byte is the IP header's. */
static int echo_filter(int fd)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x60, 7, 0),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 9),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_ICMP, 0, 10),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 6),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x3fff, 8, 0),
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
		BPF_STMT(BPF_LD | BPF_B | BPF_IND, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 8, 4, 5),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 6),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_ICMPV6, 0, 3),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 40),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 128, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog program = { .len = ARRAY_SIZE(code), .filter = code };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0 ? -errno
											   : 0;
}

static int echo_open(struct inside *in)
{
	const struct sockaddr_ll where = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = LO,
	};

	/* No protocol: nothing comes before the filter is there. */
	in->echo_fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (in->echo_fd < 0) {
		return -errno;
	}
	int r = echo_filter(in->echo_fd);

	r = r < 0 ? r : on(in->echo_fd, SOL_PACKET, IGNORE_OUTGOING);
	if (r == 0 && bind(in->echo_fd, (const struct sockaddr *)&where, sizeof(where)) < 0) {
		r = -errno;
	}
	return r < 0 ? r : loop_add(in->n->loop, &in->echo, in->echo_fd, EPOLLIN, on_echo);
}

struct inside *inside_open(struct netd *n, void (*take)(void *ctx, const struct datagram *g),
		void *ctx, struct error *e)
{
	struct inside *in = mem_new(struct inside);
	int r = 0;

	in->n = n;
	in->take = take;
	in->ctx = ctx;
	in->raw[0] = in->raw[1] = -1;
	in->echo_fd = -1;
	for (int i = 0; i < (n->has_ipv6 ? 2 : 1) && r == 0; i++) {
		r = udp_open(in, i == 1);
		r = r < 0 ? r : raw_open(in, i == 1);
	}
	r = r < 0 ? r : echo_open(in);
	if (r < 0) {
		/* All goes with the process. */
		(void)error_sys(e, -r, "open the sockets for UDP and ping of the private network");
		return NULL;
	}
	return in;
}
