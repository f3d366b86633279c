/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * /sandboxes/ID/proxy/PORT/REST: the state is read first (a frozen sandbox would take the bytes and
 * act on them once it goes on), then a socket is had: execd's own for its port, else one that
 * execd, asked through the keeper, has connected inside the sandbox. From there on http_proxy
 * passes bytes.
 *
 *   request ── state ──┬── 44772 ─ connect(execd.sock) ───────────┬─▶ http_proxy_start
 *                      └── DIAL to the keeper ── DIALLED {fd} ────┘
 *                                            └── FAILED, end, 10 s ─▶ 502
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <osbx/clock.h>
#include <osbx/ctl_proto.h>
#include <osbx/execd_proto.h>
#include <osbx/fd.h>
#include <osbx/http_proxy.h>
#include <osbx/mem.h>
#include <osbx/packet.h>
#include <osbx/str.h>

#include "api_internal.h"
#include "handlers.h"

#define EXECD_PORT        44772
#define DIAL_MS           10000
#define RENEW_INTERVAL_MS 60000

/* Credentials of this server, and what it says of the way itself. */
static const char *const dropped[] = {
	"open-sandbox-api-key",
	"authorization",
	"cookie",
	"opensandbox-secure-access",
	"opensandbox-access-renew",
	"forwarded",
	"x-forwarded-for",
	"x-forwarded-proto",
	"x-forwarded-host",
	"x-forwarded-port",
	"x-real-ip",
	NULL,
};
/* A service worker of one sandbox's pages would get those of all others, too. */
static const char *const dropped_response[] = { "server", "date", "x-request-id",
	"service-worker-allowed", NULL };

/* A request on its way. */
struct passage {
	struct api *api;
	struct http_req *rq;
	struct id id;
	uint16_t port;
	int sock; /* to the keeper */
	struct loop_source answer;
	struct loop_source deadline;
};

static void passage_free(struct passage *p)
{
	loop_remove(p->api->loop, &p->answer);
	loop_remove(p->api->loop, &p->deadline);
	fd_close(&p->sock);
	free(p);
}

static void fail_proxy(struct http_req *rq, enum http_proxy_failure why)
{
	static const struct {
		int status;
		const char *code;
		const char *text;
	} table[] = {
		[HTTP_PROXY_CONNECT] = { 502, "BACKEND_CONNECTION_FAILED",
				"the port cannot be connected to" },
		[HTTP_PROXY_TIMEOUT] = { 504, "BACKEND_TIMEOUT", "the port does not answer" },
		[HTTP_PROXY_RESPONSE] = { 502, "BACKEND_RESPONSE_FAILED",
				"what the port answers is not HTTP, or was cut" },
	};

	api_fail(rq, table[why].status, table[why].code, "%s", table[why].text);
}

/* To a client, a sandbox that cannot be looked at for now must not be one that is gone. */
static void fail_busy(struct http_req *rq, int r)
{
	http_reply_field(rq, "Retry-After", "1");
	api_fail(rq, 503, "SERVER_BUSY", "this server has no room for the request: %s",
			strerror(-r));
}

static void fail_connect(struct http_req *rq, int r)
{
	/* EAGAIN: the queue of who is to accept is full. */
	static const int passing[] = { EMFILE, ENFILE, ENOMEM, ENOBUFS, EAGAIN };

	for (size_t i = 0; i < ARRAY_SIZE(passing); i++) {
		if (r == -passing[i]) {
			fail_busy(rq, r);
			return;
		}
	}
	fail_proxy(rq, HTTP_PROXY_CONNECT);
}

/* "/sandboxes/ID/proxy/PORT", with the mount that was used: what a Location is below. Caller frees.
 */
static char *prefix_of(const struct http_req *rq)
{
	const struct span port = rq->params[1];

	return span_dup((struct span){
			.p = rq->path.p, .n = (size_t)(port.p + port.n - rq->path.p) });
}

/* What is behind the port, as it was sent; at least "/". Caller frees. */
static char *target_of(const struct http_req *rq)
{
	const struct span port = rq->params[1];
	size_t used = (size_t)(port.p + port.n - rq->target.p);
	struct span rest = span_from(rq->target, used);

	return mem_printf("%s%.*s", rest.n > 0 && rest.p[0] == '/' ? "" : "/", (int)rest.n, rest.p);
}

static void host_name(const struct http_req *rq, char *out, size_t size)
{
	struct span host = http_field(rq, "host");

	(void)snprintf(out, size, "%.*s", host.p ? (int)host.n : 9, host.p ? host.p : "localhost");
}

/* A WebSocket is a connection of the server's no more, but somebody is there. */
static void passage_on_end(void *ctx)
{
	struct api *api = ctx;

	api->passages_n--;
}

static void passage_begin(struct api *api, struct http_req *rq, uint16_t port, int fd)
{
	autofree char *target = target_of(rq);
	autofree char *prefix = prefix_of(rq);
	char name[256];
	char peer[64] = "127.0.0.1";

	host_name(rq, name, sizeof(name));
	/* Who comes by a Unix socket is on this machine. */
	(void)!http_peer(rq, peer, sizeof(peer));
	autofree char *host = mem_printf("127.0.0.1:%u", port);
	autofree char *add = mem_printf("X-Forwarded-Proto: http\r\nX-Forwarded-Host: %s\r\n"
					"X-Forwarded-For: %s\r\n",
			name, peer);
	const struct http_proxy_opts opts = {
		.target = span_of(target),
		.host = host,
		.drop = dropped,
		.add_request = add,
		.drop_response = dropped_response,
		.location_prefix = prefix,
		.fail = fail_proxy,
		.on_end = passage_on_end,
	};

	rq->on_close = NULL;
	rq->ctx = api;
	api->passages_n++;
	http_proxy_start(rq, api->loop, fd, &opts);
}

static void passage_fail(struct passage *p)
{
	struct http_req *rq = p->rq;

	passage_free(p);
	rq->on_close = NULL;
	fail_proxy(rq, HTTP_PROXY_CONNECT);
}

static void passage_on_close(struct http_req *rq)
{
	passage_free(rq->ctx);
}

static void deadline_on_end(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)loop;
	(void)events;
	passage_fail(container_of(src, struct passage, deadline));
}

static bool is_stream(int fd)
{
	int type = 0;
	socklen_t n = sizeof(type);

	return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 &&
	       type == SOCK_STREAM;
}

static void answer_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct passage *p = container_of(src, struct passage, answer);
	struct packet packet;
	int r = packet_recv(p->sock, &packet, 0);

	(void)loop;
	(void)events;
	if (r == -EAGAIN) {
		return;
	}
	int fd = -1;

	if (r > 0) {
		if (packet.type == CTL_MSG_DIALLED && packet.fds_n == 1) {
			fd = TAKE_FD(packet.fds[0]);
		}
		packet_done(&packet);
	}
	if (!is_stream(fd) || fd_set_nonblock(fd, true) < 0) {
		fd_close(&fd);
		passage_fail(p);
		return;
	}
	struct api *api = p->api;
	struct http_req *rq = p->rq;
	uint16_t port = p->port;

	passage_free(p);
	passage_begin(api, rq, port, fd);
}

/* Connect to a socket of the sandbox's live directory, whose path may be longer than sun_path. fd
 * or -errno. */
static int live_connect(const struct api *api, const struct id *id, const char *name, int type)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	autoclose int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/sandboxes/%s/%s",
			api->dirs.runtime_fd, id->text, name);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0) {
		return -errno;
	}
	return TAKE_FD(fd);
}

static int dial_send(int sock, uint16_t port)
{
	const struct ctl_dial dial = { .port = port };
	struct packet packet;

	packet_init(&packet, CTL_MSG_DIAL);
	int r = packet_put(&packet, &dial, sizeof(dial));

	return r < 0 ? r : packet_send(sock, &packet);
}

static void dial_start(struct api *api, struct http_req *rq, const struct id *id, uint16_t port)
{
	int sock = live_connect(api, id, CTL_SOCKET, SOCK_SEQPACKET);
	int r = sock < 0 ? sock : dial_send(sock, port);

	if (r < 0) {
		fd_close(&sock);
		fail_connect(rq, r);
		return;
	}
	struct passage *p = mem_new(struct passage);

	*p = (struct passage){ .api = api, .rq = rq, .id = *id, .port = port, .sock = sock };
	rq->ctx = p;
	rq->on_close = passage_on_close;
	if (loop_add(api->loop, &p->answer, sock, EPOLLIN, answer_on_ready) < 0) {
		passage_fail(p);
		return;
	}
	loop_timer(api->loop, &p->deadline, clock_boot_ms() + DIAL_MS, deadline_on_end);
}

/* An access extends the life of a sandbox that asks for it, once a minute at most. Whether the
 * keeper does it is not waited for: the next access will ask again. */
static void renew_maybe(
		const struct api *api, const struct http_req *rq, const struct sandbox_state *s)
{
	const struct ctl_renew renew = { .expires_ms = clock_wall_ms() + s->renew_ms };
	struct packet packet;

	if (s->renew_ms == 0 || s->expires_ms == 0 ||
			renew.expires_ms - s->expires_ms < RENEW_INTERVAL_MS ||
			span_eq(http_field(rq, "opensandbox-access-renew"), span_of("skip"))) {
		return;
	}
	autoclose int sock = live_connect(api, &s->id, CTL_SOCKET, SOCK_SEQPACKET);

	packet_init(&packet, CTL_MSG_RENEW);
	if (sock >= 0 && packet_put(&packet, &renew, sizeof(renew)) == 0) {
		(void)!packet_send(sock, &packet);
	}
}

/* True: answered. */
static bool state_refuses(struct http_req *rq, const struct sandbox_state *s)
{
	switch (s->code) {
	case SANDBOX_RUNNING:
		return false;
	case SANDBOX_PAUSING:
	case SANDBOX_PAUSED:
	case SANDBOX_RESUMING:
		http_reply_field(rq, "Retry-After", "1");
		api_fail(rq, 503, API_NOT_RUNNING, "sandbox %s is paused", s->id.text);
		return true;
	case SANDBOX_PENDING:
	case SANDBOX_STOPPING:
	case SANDBOX_TERMINATED:
	case SANDBOX_FAILED:
	case SANDBOX_STATE_COUNT:
		break;
	}
	/* Clients that wait for a pending one ask again at once after this, not after a while. */
	api_fail(rq, 409, API_NOT_RUNNING, "sandbox %s is %s", s->id.text, state_name(s->code));
	return true;
}

static int param_port(const struct http_req *rq, uint16_t *out_port)
{
	autofree char *text = http_param(rq, 1);
	uint64_t port = 0;

	if (!text || str_to_u64(text, 65535, &port) < 0 || port == 0) {
		return -1;
	}
	*out_port = (uint16_t)port;
	return 0;
}

void sandbox_proxy(struct http_req *rq)
{
	AUTO(state) struct sandbox_state s = { .code = SANDBOX_PENDING };
	struct api *api = api_of(rq);
	struct id id;
	uint16_t port = 0;

	int found = api_live_state(api, rq, &id, &s);

	if (found == -ENOENT) {
		api_fail(rq, 404, API_NOT_FOUND, "no such sandbox");
		return;
	}
	if (found < 0) {
		fail_busy(rq, found);
		return;
	}
	if (param_port(rq, &port) < 0) {
		api_fail(rq, 400, API_INVALID_PORT, "port: expected 1 to 65535");
		return;
	}
	if (state_refuses(rq, &s)) {
		return;
	}
	renew_maybe(api, rq, &s);
	if (port != EXECD_PORT) {
		dial_start(api, rq, &id, port);
		return;
	}
	int fd = live_connect(api, &id, EXECD_SOCKET, SOCK_STREAM);

	if (fd < 0) {
		fail_connect(rq, fd);
		return;
	}
	passage_begin(api, rq, port, fd);
}
