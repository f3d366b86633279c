/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *     accepted ──▶ refused by what is known of its address: reset
 *        │
 *        ├── no name can matter ──────────────────────────▶ dial ──▶ pump
 *        │
 *        ├── its address, or another port than the web's ──▶ dial ──┐ the server may speak first;
 *        │   allows it without a name                               ▼ the program's bytes wait
 *        └── a name must be said ──▶ its first bytes ──▶ allowed ──▶ dial ──▶ TLS: pump
 *              │ nothing for FIRST_MS         │                      HTTP: bytes go through here,
 *              ▼                              ▼                      each request is looked at
 *            reset                          reset
 *
 * As long as bytes are looked at they go through here: the program's into held (undecided), from
 * there to out (decided), to the server; the server's into back, to the program. Once nothing is
 * looked at any more, and nothing of the server's waits, a pump gets both sockets and what is in
 * out.
 *
 * Every end that is not an orderly one of both sides is a reset of both: a program that sees an end
 * takes what it has for all there is.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/mem.h>

#include "netd_flow.h"

#define PIECE    16384U
#define FIRST_MS 5000  /* to the first byte of a program that has to say a name */
#define NAME_MS  20000 /* to the end of its hello or head */
/* As much as a socket of the host's would be kept open without a sign of life of its peer. */
#define IDLE_MS (INT64_C(24) * 3600 * 1000)

static void go_on(struct flow *f);

static void flow_free(struct flow *f)
{
	struct loop *loop = f->r->n->loop;

	*f->at = f->next;
	if (f->next) {
		f->next->at = f->at;
	}
	f->r->flows_n--;
	dial_drop(f->r->n, f->dial);
	loop_remove(loop, &f->client);
	loop_remove(loop, &f->server);
	loop_remove(loop, &f->timer);
	fd_close(&f->client_fd);
	fd_close(&f->server_fd);
	buf_done(&f->held);
	buf_done(&f->out);
	buf_done(&f->back);
	free(f->sniff);
	free(f->by_name);
	free(f);
}

void flow_cut(struct flow *f)
{
	if (f->pump) {
		pump_cut(TAKE_PTR(f->pump));
	}
	loop_remove(f->r->n->loop, &f->client);
	loop_remove(f->r->n->loop, &f->server);
	socket_reset(&f->client_fd);
	socket_reset(&f->server_fd);
	flow_free(f);
}

static void on_pump_end(void *ctx, int errnum)
{
	struct flow *f = ctx;

	(void)errnum;
	f->pump = NULL;
	flow_free(f);
}

/* Nothing is looked at any more. False: the flow is gone. */
static bool pump_begin(struct flow *f)
{
	struct loop *loop = f->r->n->loop;

	loop_remove(loop, &f->client);
	loop_remove(loop, &f->server);
	loop_remove(loop, &f->timer);
	const struct pump_opts opts = {
		.a_fd = TAKE_FD(f->client_fd),
		.b_fd = TAKE_FD(f->server_fd),
		.a_first = buf_span(&f->out),
		.idle_ms = IDLE_MS,
		.on_end = on_pump_end,
		.ctx = f,
	};

	f->pump = pump_new(loop, &opts);
	buf_done(&f->held);
	buf_done(&f->out);
	buf_done(&f->back);
	if (!f->pump) {
		flow_free(f);
		return false;
	}
	return true;
}

static int socket_error(int fd)
{
	int err = 0;
	socklen_t n = sizeof(err);

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &n) < 0 ? errno : err;
}

/* Bytes of a socket behind b. 1: go on, 0: none for now, -errno. */
static int bytes_read(int fd, struct buf *b, size_t max, bool *out_ended)
{
	size_t n = max < PIECE ? max : PIECE;

	if (buf_reserve(b, n) < 0) {
		return -EMSGSIZE;
	}
	ssize_t got = recv(fd, b->p + b->n, n, MSG_DONTWAIT);

	if (got < 0) {
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	}
	*out_ended = got == 0;
	b->n += (size_t)got;
	return 1;
}

/* The beginning of b to a socket; once it is empty and its source has ended, its end. 0 or -errno.
 */
static int bytes_write(int fd, struct buf *b, bool has_ended, bool *told)
{
	if (b->n > 0) {
		ssize_t n = send(fd, b->p, b->n, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0) {
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		}
		buf_consume(b, (size_t)n);
	}
	if (b->n == 0 && has_ended && !*told) {
		*told = true;
		(void)shutdown(fd, SHUT_WR);
	}
	return 0;
}

static size_t room_of_client(const struct flow *f)
{
	size_t used = f->held.n + f->out.n;

	return f->client_ended || used >= FLOW_HELD_MAX ? 0 : FLOW_HELD_MAX - used;
}

static size_t room_of_server(const struct flow *f)
{
	return f->server_ended || !f->is_up || f->back.n >= FLOW_BACK_MAX
			       ? 0
			       : FLOW_BACK_MAX - f->back.n;
}

/* For one with nothing to wait for see src/base/pump.c. */
static int watch(struct flow *f, struct loop_source *src, uint32_t events, bool by_itself)
{
	struct loop *loop = f->r->n->loop;
	int r = loop_change(loop, src, events);

	if (events != 0 || by_itself) {
		loop_resume(loop, src);
	} else {
		loop_pause(loop, src);
	}
	return r;
}

static int watch_both(struct flow *f)
{
	uint32_t client = (room_of_client(f) > 0 ? EPOLLIN : 0U) | (f->back.n > 0 ? EPOLLOUT : 0U);
	int r = watch(f, &f->client, client, f->client_ended && !f->client_told);

	if (r < 0 || f->server_fd < 0) {
		return r;
	}
	uint32_t server = (room_of_server(f) > 0 ? EPOLLIN : 0U) |
			  (f->out.n > 0 || !f->is_up ? EPOLLOUT : 0U);

	return watch(f, &f->server, server, f->server_ended && !f->server_told);
}

static void on_server(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct flow *f = container_of(src, struct flow, server);
	bool is_through = (events & EPOLLHUP) && f->server_ended && !f->server_told;

	(void)loop;
	if ((events & EPOLLERR) || is_through) {
		flow_cut(f);
		return;
	}
	if (!f->is_up) {
		if (socket_error(f->server_fd) != 0) {
			flow_cut(f);
			return;
		}
		f->is_up = true;
	}
	go_on(f);
}

static void on_dialed(void *ctx, int fd_or_err, uint16_t ident)
{
	struct flow *f = ctx;
	const int yes = 1;

	(void)ident;
	f->dial = NULL;
	if (fd_or_err < 0) {
		if (fd_or_err == -EACCES) {
			verdict_log(f, NETPOLICY_BY_RESERVED, f->by_name,
					"an address of the host itself, or not a public one");
		}
		flow_cut(f);
		return;
	}
	f->server_fd = fd_or_err;
	(void)setsockopt(f->server_fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	/* A server that has vanished would be waited for, for ever. */
	(void)setsockopt(f->server_fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
	if (fd_set_nonblock(f->server_fd, true) < 0 ||
			loop_add(f->r->n->loop, &f->server, f->server_fd, EPOLLOUT, on_server) <
					0) {
		flow_cut(f);
		return;
	}
	go_on(f);
}

/* Ask for the server. False: the flow is gone. */
static bool dial(struct flow *f)
{
	const struct netd_dial where = {
		.kind = NETD_DIAL_TCP,
		.port = f->port,
		.addr = f->addr,
	};

	f->dial = dial_ask(f->r->n, &where, on_dialed, f);
	if (!f->dial) {
		flow_cut(f);
		return false;
	}
	return true;
}

static void on_time(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct flow *f = container_of(src, struct flow, timer);

	(void)loop;
	(void)events;
	verdict_log(f, NETPOLICY_BY_DEFAULT, f->by_name,
			f->held.n > 0 ? "the client did not finish naming a host"
				      : "the client said nothing");
	flow_cut(f);
}

/* What the program has sent, as far as there is room. 0, or -errno: cut. */
static int client_step(struct flow *f)
{
	bool had_none = f->held.n == 0;
	size_t room = room_of_client(f);
	int r = room > 0 ? bytes_read(f->client_fd, &f->held, room, &f->client_ended) : 0;

	if (r <= 0 && f->held.n == 0) {
		return r;
	}
	if (r < 0) {
		return r;
	}
	if (!inspect(f)) {
		return -EACCES;
	}
	if (f->is_decided) {
		loop_remove(f->r->n->loop, &f->timer);
	} else if (had_none && f->timer.kind != LOOP_SOURCE_NONE) {
		loop_timer(f->r->n->loop, &f->timer, clock_boot_ms() + NAME_MS, on_time);
	}
	return 0;
}

static int server_step(struct flow *f)
{
	if (!f->is_up) {
		return 0;
	}
	bool ended = f->client_ended && f->held.n == 0;
	int r = bytes_write(f->server_fd, &f->out, ended, &f->server_told);

	if (r == 0 && room_of_server(f) > 0) {
		r = bytes_read(f->server_fd, &f->back, room_of_server(f), &f->server_ended);
	}
	return r < 0 ? r : bytes_write(f->client_fd, &f->back, f->server_ended, &f->client_told);
}

static void go_on(struct flow *f)
{
	if (f->stage == FLOW_OPAQUE && f->server_fd >= 0 && f->held.n == 0 && f->back.n == 0) {
		(void)pump_begin(f);
		return;
	}
	int r = client_step(f);

	r = r < 0 ? r : server_step(f);
	if (r < 0) {
		flow_cut(f);
		return;
	}
	if (f->client_told && f->server_told) {
		flow_free(f);
		return;
	}
	if (f->is_decided && f->server_fd < 0 && !f->dial && !dial(f)) {
		return;
	}
	if (f->stage == FLOW_OPAQUE && f->server_fd >= 0 && f->back.n == 0) {
		(void)pump_begin(f);
		return;
	}
	if (watch_both(f) < 0) {
		flow_cut(f);
	}
}

static void on_client(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct flow *f = container_of(src, struct flow, client);
	bool is_through = (events & EPOLLHUP) && f->client_ended && !f->client_told;

	(void)loop;
	if ((events & EPOLLERR) || is_through) {
		flow_cut(f);
		return;
	}
	go_on(f);
}

void flow_begin(struct relay *r, int client_fd, const struct netaddr *addr, uint16_t port)
{
	struct flow *f = mem_new(struct flow);
	const int yes = 1;

	*f = (struct flow){
		.next = r->flows,
		.at = &r->flows,
		.r = r,
		.addr = *addr,
		.port = port,
		.client_fd = client_fd,
		.server_fd = -1,
		.held = BUF_INIT(FLOW_HELD_MAX + PIECE),
		.out = BUF_INIT(FLOW_HELD_MAX + PIECE),
		.back = BUF_INIT(FLOW_BACK_MAX + PIECE),
	};
	if (f->next) {
		f->next->at = &f->next;
	}
	r->flows = f;
	r->flows_n++;
	(void)setsockopt(client_fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	if (!verdict_accept(f) ||
			loop_add(r->n->loop, &f->client, client_fd, EPOLLIN, on_client) < 0) {
		flow_cut(f);
		return;
	}
	if (!verdict_looks(r->n)) {
		f->stage = FLOW_OPAQUE;
		f->is_decided = true;
		if (loop_change(r->n->loop, &f->client, 0) < 0) {
			flow_cut(f);
			return;
		}
		(void)dial(f);
		return;
	}
	if (f->by_address || !verdict_is_web(port)) {
		(void)dial(f);
	} else {
		loop_timer(r->n->loop, &f->timer, clock_boot_ms() + FIRST_MS, on_time);
	}
}
