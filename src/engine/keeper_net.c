/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   IDLE ── namespaces ──▶ BEGUN ── READY ──▶ UP ── netd has ended ──▶ DOWN ── a moment ──┐
 *    │                      │ ▲                                        │  ▲               │
 *    │ netd waits           │ └────────────────────────────────────────┼──┼───────────────┘
 *    ▼                      ▼ ERROR, end, READY_MS                     │  └── ERROR, end, READY_MS
 *   (the first time all this is the failure of the sandbox)            ▼ STARTS_MAX in STARTS_MS
 *                                                                   CLOSED
 *
 * netd is started before the sandbox is, so that the two start side by side. Until READY nothing of
 * the guest runs. A netd that is gone leaves the network closed: the rules in the namespace stay,
 * and lead to nobody; the next one gets the policy that is on record and a token of its own, for
 * where the port of its policy API was, the guest could have listened meanwhile.
 *
 * netd decides about names, and is where a guest's bytes are read; so it is not believed: what it
 * asks to be connected with is checked here once more, by the rules that count for addresses, and
 * with what the host itself has at this moment. What it asks for is served one at a time; while it
 * does not take an answer, nothing is read from it.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/clock.h>
#include <osbx/egress.h>
#include <osbx/fd.h>
#include <osbx/keeper_net.h>
#include <osbx/limits.h>
#include <osbx/log.h>
#include <osbx/mem.h>
#include <osbx/packet.h>
#include <osbx/program.h>
#include <osbx/spawn.h>
#include <osbx/str.h>
#include <osbx/sys.h>

#include "net_internal.h"

#define READY_MS   30000
#define RESTART_MS 50
#define STARTS_MAX 5
#define STARTS_MS  60000
#define HEAR_MAX   256

enum net_stage {
	NET_IDLE,
	NET_BEGUN,
	NET_UP,
	NET_DOWN,
	NET_CLOSED,
	NET_STAGE_COUNT,
};

struct keeper_net {
	struct keeper_net_opts opts;
	struct egress egress;
	enum net_stage stage;
	int live_fd;
	int userns_fd;
	int netns_fd;
	int sock;  /* to netd, or -1 */
	int pidfd; /* likewise */
	struct loop *loop;
	struct loop_source source;
	struct loop_source timer; /* for READY, or until the next start */
	struct net_resolvers resolvers;
	struct packet answer; /* that netd has not taken yet */
	bool answer_waits;
	int64_t starts_ms; /* when they were first counted */
	unsigned int starts;
	uint64_t denied;
	uint64_t denied_seq; /* of this netd's */
};

/* A keeper that has unpacked an image is the full program in memory (program.h), which starts
 * slowly and takes four times the room: netd is the installed one then. */
static const char *netd_program(void)
{
	char exe[LIMIT_PATH_BYTES];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	exe[n > 0 ? n : 0] = '\0';
	return str_after(exe, "/memfd:") && program_path()[0] == '/' ? program_path() : spawn_self;
}

static int netd_spawn(struct keeper_net *n, struct error *e)
{
	const struct spawn_part part = {
		.path = netd_program(),
		.command = "netd",
		.control_fd = NETD_CONTROL_FD,
		.die_with_parent = true,
		/* A terminal's Ctrl-C is not for it. */
		.new_session = true,
	};

	return spawn_part(&part, &n->sock, &n->pidfd, e) < 0 ? error_wrap(e, "private network") : 0;
}

/* Kill it; its end is waited for where nothing else has to be done. */
static void netd_kill(struct keeper_net *n)
{
	if (n->loop) {
		loop_remove(n->loop, &n->source);
		loop_remove(n->loop, &n->timer);
	}
	fd_close(&n->sock);
	if (n->answer_waits) {
		packet_done(&n->answer);
		n->answer_waits = false;
	}
	if (n->pidfd >= 0) {
		(void)!sys_pidfd_kill(n->pidfd, SIGKILL);
	}
}

static void netd_reap(struct keeper_net *n)
{
	int status = 0;

	if (n->pidfd >= 0) {
		(void)!spawn_wait(n->pidfd, -1, &status);
		fd_close(&n->pidfd);
	}
}

/* It has been killed, and its parent ends, too: nobody waits for it, for the end of its packet
 * socket waits for a grace period of the kernel's. */
static void netd_leave(struct keeper_net *n)
{
	int status = 0;

	if (n->pidfd >= 0) {
		(void)!spawn_wait(n->pidfd, 0, &status);
		fd_close(&n->pidfd);
	}
}

/* A message with descriptors of this process. 0 or -errno. */
static int netd_send(const struct keeper_net *n, enum netd_msg type, const void *payload,
		uint32_t size, const int *fds, uint32_t fds_n)
{
	struct packet p;

	packet_init(&p, (uint16_t)type);
	int r = packet_put(&p, payload, size);

	for (uint32_t i = 0; i < fds_n && r == 0; i++) {
		r = packet_put_fd(&p, fds[i]);
	}
	return r == 0 ? packet_send(n->sock, &p) : r;
}

static int resolvers_send(struct keeper_net *n)
{
	int fds[NETD_RESOLVERS_MAX];
	const struct netd_resolvers msg = { .n = net_resolvers_open(&n->resolvers, fds) };
	int r = netd_send(n, NETD_MSG_RESOLVERS, &msg, sizeof(msg), fds, msg.n);

	for (uint32_t i = 0; i < msg.n; i++) {
		fd_close(&fds[i]);
	}
	return r;
}

/* The policy as netd and record have it: a sealed memfd. fd or -errno. */
static int policy_memfd(const struct netpolicy *p)
{
	AUTO(buf) struct buf text = BUF_INIT(EGRESS_BYTES_MAX);
	struct json_writer w = JSON_WRITER(&text);

	netpolicy_format(p, &w, NULL);
	return w.failed ? -EMSGSIZE : fd_memfd_sealed("osbx-policy", text.p, text.n, false);
}

static int netd_begin(struct keeper_net *n, struct error *e)
{
	struct netd_begin msg = { .binds_names = n->egress.binds_names };

	if (n->live_fd >= 0 && egress_save(&n->egress, n->live_fd, e) < 0) {
		return -1;
	}
	memcpy(msg.token, n->egress.token, sizeof(msg.token));
	autoclose int policy_fd = policy_memfd(&n->egress.policy);
	const int fds[] = { n->userns_fd, n->netns_fd, policy_fd };
	int r = policy_fd;

	if (r >= 0) {
		r = netd_send(n, NETD_MSG_BEGIN, &msg, sizeof(msg), fds, ARRAY_SIZE(fds));
	}
	explicit_bzero(&msg, sizeof(msg));
	if (r >= 0) {
		net_resolvers_read(NET_RESOLV_CONF, &n->resolvers);
		r = resolvers_send(n);
	}
	if (r < 0) {
		return error_sys(e, -r, "begin the private network");
	}
	n->denied_seq = 0;
	n->stage = NET_BEGUN;
	return 0;
}

struct keeper_net *keeper_net_new(const struct keeper_net_opts *opts, struct error *e)
{
	AUTO(keeper_net) struct keeper_net *n = mem_new(struct keeper_net);

	n->opts = *opts;
	n->sock = -1;
	n->pidfd = -1;
	n->live_fd = -1;
	n->userns_fd = -1;
	n->netns_fd = -1;
	n->egress.binds_names = opts->binds_names;
	(void)snprintf(n->egress.token, sizeof(n->egress.token), "%s", opts->token);
	netpolicy_copy(opts->policy, &n->egress.policy);
	n->egress.has_ping = net_ping_is_there();
	return netd_spawn(n, e) < 0 ? NULL : TAKE_PTR(n);
}

int keeper_net_begin(
		struct keeper_net *n, int live_fd, int userns_fd, int netns_fd, struct error *e)
{
	assert(n->stage == NET_IDLE);
	n->live_fd = live_fd;
	/* Those of the launch are closed on the way. */
	n->userns_fd = fd_dup(userns_fd, 0);
	n->netns_fd = fd_dup(netns_fd, 0);
	if (n->userns_fd < 0 || n->netns_fd < 0) {
		return error_sys(e, EMFILE, "namespaces of the private network");
	}
	return netd_begin(n, e);
}

/* What netd says of its failure. */
static int error_take(const struct packet *p, struct error *e)
{
	struct error theirs;

	if (p->len != sizeof(theirs)) {
		return error_set(e, ERRC_INTERNAL, "private network: malformed failure");
	}
	memcpy(&theirs, p->payload, sizeof(theirs));
	error_sanitize(&theirs);
	if (theirs.code == ERRC_OK) {
		return error_set(e, ERRC_INTERNAL, "private network: failure without a reason");
	}
	*e = theirs;
	(void)error_wrap(e, "private network");
	return error_hint(e, "osbx doctor says what is missing; --network none runs without one");
}

int keeper_net_wait(struct keeper_net *n, struct error *e)
{
	struct packet p;
	int r = packet_recv(n->sock, &p, clock_boot_ms() + READY_MS);

	assert(n->stage == NET_BEGUN);
	if (r == 0 || r == -ECONNRESET) {
		int status = 0;

		(void)!spawn_wait(n->pidfd, READY_MS, &status);
		return error_set(e, ERRC_INTERNAL, "private network: netd ended with status %d",
				status);
	}
	if (r < 0) {
		return error_sys(e, -r, "private network: wait for netd");
	}
	const bool is_ready = p.type == NETD_MSG_READY;
	const bool is_error = p.type == NETD_MSG_ERROR;

	if (is_error) {
		(void)error_take(&p, e);
	} else if (!is_ready) {
		(void)error_set(e, ERRC_INTERNAL, "private network: netd said %u", p.type);
	}
	packet_done(&p);
	if (!is_ready) {
		return -1;
	}
	n->stage = NET_UP;
	return 0;
}

static void restart(struct loop *loop, struct loop_source *src, uint32_t events);

/* For good. What is inside goes on, without a network. */
static void net_close(struct keeper_net *n)
{
	struct error e = ERROR_INIT;

	n->stage = NET_CLOSED;
	n->egress.closed = mem_printf(
			"netd ended %d times within %d s", STARTS_MAX + 1, STARTS_MS / 1000);
	(void)!egress_save(&n->egress, n->live_fd, &e);
	log_error("private network: closed, %s", n->egress.closed);
}

static void net_fall(struct keeper_net *n, const char *why)
{
	int64_t now_ms = clock_boot_ms();

	log_warn("private network: %s", why);
	netd_kill(n);
	netd_reap(n);
	if (now_ms - n->starts_ms > STARTS_MS) {
		n->starts_ms = now_ms;
		n->starts = 0;
	}
	if (n->starts >= STARTS_MAX) {
		net_close(n);
		return;
	}
	n->stage = NET_DOWN;
	loop_timer(n->loop, &n->timer, now_ms + (int64_t)RESTART_MS * n->starts, restart);
	n->starts++;
}

/* 0; -EAGAIN leaves the answer waiting, and reading waits for it. */
static int answer_flush(struct keeper_net *n)
{
	int r = packet_send(n->sock, &n->answer);

	if (r == -EAGAIN) {
		n->answer_waits = true;
		return loop_change(n->loop, &n->source, EPOLLOUT);
	}
	packet_done(&n->answer);
	if (n->answer_waits) {
		n->answer_waits = false;
		r = r == 0 ? loop_change(n->loop, &n->source, EPOLLIN) : r;
	}
	return r;
}

/* Descriptor (or -1) is taken over. 0 or -errno. */
static int answer_send(struct keeper_net *n, enum netd_msg type, const void *payload, uint32_t size,
		int fd)
{
	packet_init(&n->answer, (uint16_t)type);
	int r = packet_put(&n->answer, payload, size);

	if (r == 0 && fd >= 0) {
		r = packet_put_fd(&n->answer, fd);
	}
	if (r < 0) {
		fd_close(&fd);
		return r;
	}
	return answer_flush(n);
}

static int take_dial(struct keeper_net *n, const struct packet *p)
{
	struct netd_dial dial;

	if (p->len != sizeof(dial) || p->fds_n != 0) {
		return -EBADMSG;
	}
	memcpy(&dial, p->payload, sizeof(dial));
	if (dial.kind >= NETD_DIAL_KIND_COUNT) {
		return -EBADMSG;
	}
	struct netd_dialed dialed = { .id = dial.id };
	int fd = dial.kind == NETD_DIAL_RESOLVER
				 ? net_dial_resolver(&n->resolvers, dial.port)
				 : net_dial(&n->egress.policy, &dial, &dialed.ident);

	dialed.errnum = fd < 0 ? -fd : 0;
	return answer_send(n, NETD_MSG_DIALED, &dialed, sizeof(dialed), fd);
}

/* Its bytes from the beginning; a pipe would make this process wait. 0 or -errno. */
static int policy_read(int fd, struct buf *text)
{
	struct stat st;

	if (fstat(fd, &st) < 0) {
		return -errno;
	}
	if (!S_ISREG(st.st_mode) || lseek(fd, 0, SEEK_SET) < 0) {
		return -EBADMSG;
	}
	return fd_read_all(fd, text);
}

/* On record first, then in force. 0 or -errno. */
static int policy_take(struct keeper_net *n, int fd)
{
	AUTO(buf) struct buf text = BUF_INIT(EGRESS_BYTES_MAX);
	AUTO(netpolicy) struct netpolicy policy = { .n = 0 };
	struct error e = ERROR_INIT;
	int r = policy_read(fd, &text);

	if (r < 0) {
		return r;
	}
	AUTO(json) struct json *root = json_parse(buf_span(&text), &e);

	if (!root || netpolicy_parse(root, &policy, &e) < 0) {
		return -EINVAL;
	}
	struct netpolicy before = n->egress.policy;

	n->egress.policy = policy;
	if (egress_save(&n->egress, n->live_fd, &e) < 0) {
		n->egress.policy = before;
		return e.sysno ? -e.sysno : -EIO;
	}
	policy = before;
	return 0;
}

static int take_policy(struct keeper_net *n, const struct packet *p)
{
	if (p->fds_n != 1) {
		return -EBADMSG;
	}
	const struct netd_saved saved = { .errnum = -policy_take(n, p->fds[0]) };

	return answer_send(n, NETD_MSG_SAVED, &saved, sizeof(saved), -1);
}

static int take_denied(struct keeper_net *n, const struct packet *p)
{
	struct netd_denied denied;

	if (p->len != sizeof(denied)) {
		return -EBADMSG;
	}
	memcpy(&denied, p->payload, sizeof(denied));
	denied.what[sizeof(denied.what) - 1] = '\0';
	/* Of those that came too fast it is told the number alone. */
	n->denied += denied.seq > n->denied_seq ? denied.seq - n->denied_seq : 1;
	n->denied_seq = denied.seq;
	if (n->opts.on_denied) {
		n->opts.on_denied(n->opts.ctx, &denied);
	}
	return 0;
}

/* netd has something to ask of them, and for a while it had not. Nobody watches resolv.conf: a
 * sandbox that is idle wakes nobody up, and the end of a watch (inotify(7)) waits for a grace
 * period of the kernel's, three times as long as a sandbox takes to start. */
static int take_look(struct keeper_net *n, const struct packet *p)
{
	struct net_resolvers now;

	(void)p;
	net_resolvers_read(NET_RESOLV_CONF, &now);
	if (net_resolvers_eq(&now, &n->resolvers)) {
		return 0;
	}
	n->resolvers = now;
	return resolvers_send(n);
}

static int take_ready(struct keeper_net *n, const struct packet *p)
{
	(void)p;
	loop_remove(n->loop, &n->timer);
	n->stage = NET_UP;
	return 0;
}

static int take_error(struct keeper_net *n, const struct packet *p)
{
	struct error e = ERROR_INIT;

	(void)n;
	(void)error_take(p, &e);
	log_warn("%s", e.text);
	return -ECONNABORTED;
}

static const struct {
	enum net_stage stage;
	enum netd_msg type;
	int (*take)(struct keeper_net *n, const struct packet *p);
} messages[] = {
	{ NET_BEGUN, NETD_MSG_READY, take_ready },
	{ NET_BEGUN, NETD_MSG_ERROR, take_error },
	{ NET_UP, NETD_MSG_DIAL, take_dial },
	{ NET_UP, NETD_MSG_POLICY, take_policy },
	{ NET_UP, NETD_MSG_DENIED, take_denied },
	{ NET_UP, NETD_MSG_LOOK, take_look },
};

static int packet_take(struct keeper_net *n, const struct packet *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
		if (messages[i].stage == n->stage && p->type == messages[i].type) {
			return messages[i].take(n, p);
		}
	}
	return -EPROTO;
}

/* One message, or the answer that waits. 0, or -errno: netd is done with. */
static int serve(struct keeper_net *n)
{
	struct packet p;

	if (n->answer_waits) {
		return answer_flush(n);
	}
	int r = packet_recv(n->sock, &p, 0);

	if (r <= 0) {
		return r == -EAGAIN ? 0 : r == 0 ? -EPIPE : r;
	}
	r = packet_take(n, &p);
	packet_done(&p);
	return r;
}

static void source_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct keeper_net *n = container_of(src, struct keeper_net, source);
	char why[64];
	int r = serve(n);

	(void)loop;
	(void)events;
	if (r < 0) {
		(void)snprintf(why, sizeof(why), "netd has ended (%s)", strerror(-r));
		net_fall(n, why);
	}
}

/* 0 or -errno. */
static int source_add(struct keeper_net *n)
{
	int r = fd_set_nonblock(n->sock, true);

	return r < 0 ? r : loop_add(n->loop, &n->source, n->sock, EPOLLIN, source_on_ready);
}

static void ready_on_late(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)loop;
	(void)events;
	net_fall(container_of(src, struct keeper_net, timer), "netd is not ready");
}

static void restart(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct keeper_net *n = container_of(src, struct keeper_net, timer);
	struct error e = ERROR_INIT;

	(void)events;
	egress_set_token(&n->egress);
	if (netd_spawn(n, &e) < 0 || netd_begin(n, &e) < 0 || source_add(n) < 0) {
		net_fall(n, e.code != ERRC_OK ? e.text : "netd cannot be watched");
		return;
	}
	loop_timer(loop, &n->timer, clock_boot_ms() + READY_MS, ready_on_late);
}

int keeper_net_start(struct keeper_net *n, struct loop *loop)
{
	assert(n->stage == NET_UP);
	n->loop = loop;
	return source_add(n);
}

uint64_t keeper_net_denied(const struct keeper_net *n)
{
	return n->denied;
}

/* What was refused a moment ago, when the sandbox has ended. */
static void denials_hear(struct keeper_net *n)
{
	struct packet p;

	for (int i = 0; i < HEAR_MAX && packet_recv(n->sock, &p, 0) == 1; i++) {
		if (p.type == NETD_MSG_DENIED) {
			(void)!take_denied(n, &p);
		}
		packet_done(&p);
	}
}

void keeper_net_stop(struct keeper_net *n)
{
	if (!n) {
		return;
	}
	if (n->stage == NET_UP && n->loop && n->sock >= 0) {
		denials_hear(n);
	}
	netd_kill(n);
	n->loop = NULL;
}

void keeper_net_free(struct keeper_net *n)
{
	if (!n) {
		return;
	}
	keeper_net_stop(n);
	netd_leave(n);
	fd_close(&n->userns_fd);
	fd_close(&n->netns_fd);
	egress_done(&n->egress);
	free(n);
}
