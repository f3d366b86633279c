/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * A program that asks by TCP sends messages with their length before them (RFC 7766). They are
 * taken one by one: the next is looked at when the reply to the one before has been sent, so that a
 * connection holds one question, one message and one reply, however much is sent. A connection that
 * does not finish a message, or take a reply, within IDLE_MS is closed; so is the oldest when there
 * are too many.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/mem.h>

#include "netd_resolver.h"

#define IDLE_MS 15000
#define LENGTH  2
#define PIECE   512

struct asker {
	struct asker *next; /* resolver.askers, newest first */
	struct resolver *r;
	int fd;
	struct loop_source src;
	struct loop_source timer;
	struct question *question;
	bool is_taking; /* a message is being looked at: a reply may come from within */
	bool has_reply;
	struct buf in;
	struct buf out;
};

static void asker_free(struct asker *a)
{
	struct asker **at = &a->r->askers;

	while (*at != a) {
		at = &(*at)->next;
	}
	*at = a->next;
	a->r->askers_n--;
	if (a->question) {
		question_forget(a->question);
	}
	loop_remove(a->r->n->loop, &a->src);
	loop_remove(a->r->n->loop, &a->timer);
	fd_close(&a->fd);
	buf_done(&a->in);
	buf_done(&a->out);
	free(a);
}

static void on_idle(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)loop;
	(void)events;
	asker_free(container_of(src, struct asker, timer));
}

static void wait_for(struct asker *a, uint32_t events)
{
	loop_timer(a->r->n->loop, &a->timer, clock_boot_ms() + IDLE_MS, on_idle);
	if (loop_change(a->r->n->loop, &a->src, events) < 0) {
		asker_free(a);
	}
}

/* The next whole message, if there is one. False: the connection is gone. */
static bool message_take(struct asker *a)
{
	size_t whole = a->in.n < LENGTH ? SIZE_MAX
					: LENGTH + (((size_t)(uint8_t)a->in.p[0] << 8) |
								   (uint8_t)a->in.p[1]);

	if (a->in.n < whole) {
		return true;
	}
	const struct reply_to to = { .asker = a, .udp_fd = -1 };
	const struct span message = { .p = a->in.p + LENGTH, .n = whole - LENGTH };
	struct question *q = NULL;

	a->is_taking = true;
	bool taken = resolver_take(a->r, message, &to, &q);

	a->is_taking = false;
	buf_consume(&a->in, whole);
	if (!taken) {
		asker_free(a);
		return false;
	}
	a->question = a->has_reply ? NULL : q;
	return true;
}

/* Go on with what there is to do. */
static void proceed(struct asker *a)
{
	while (!a->question && a->out.n == 0) {
		size_t before = a->in.n;

		a->has_reply = false;
		if (!message_take(a)) {
			return;
		}
		if (a->in.n == before) {
			break;
		}
	}
	wait_for(a, a->out.n > 0 ? EPOLLOUT : a->question ? 0 : EPOLLIN);
}

void asker_reply(struct asker *a, struct span message)
{
	const uint8_t length[LENGTH] = { (uint8_t)(message.n >> 8), (uint8_t)message.n };

	a->question = NULL;
	a->has_reply = true;
	if (buf_append(&a->out, length, sizeof(length)) < 0 ||
			buf_append(&a->out, message.p, message.n) < 0) {
		buf_reset(&a->out); /* cannot be: one reply at a time */
	}
	if (!a->is_taking) {
		proceed(a);
	}
}

/* False: it is gone. */
static bool bytes_send(struct asker *a)
{
	ssize_t n = send(a->fd, a->out.p, a->out.n, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		asker_free(a);
		return false;
	}
	buf_consume(&a->out, n > 0 ? (size_t)n : 0);
	return true;
}

static bool bytes_read(struct asker *a)
{
	ssize_t n = buf_reserve(&a->in, PIECE) < 0
				    ? -1
				    : recv(a->fd, a->in.p + a->in.n, PIECE, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		return true;
	}
	if (n <= 0) {
		asker_free(a);
		return false;
	}
	a->in.n += (size_t)n;
	return true;
}

static void on_socket(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct asker *a = container_of(src, struct asker, src);

	(void)loop;
	if (events & (EPOLLERR | EPOLLHUP)) {
		asker_free(a);
		return;
	}
	if (((events & EPOLLOUT) && !bytes_send(a)) || ((events & EPOLLIN) && !bytes_read(a))) {
		return;
	}
	proceed(a);
}

void asker_on_listener(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct listener *l = container_of(src, struct listener, src);
	struct resolver *r = l->r;
	int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (fd < 0) {
		return;
	}
	if (r->askers_n >= ASKERS_MAX) {
		struct asker *oldest = r->askers;

		while (oldest->next) {
			oldest = oldest->next;
		}
		asker_free(oldest);
	}
	struct asker *a = mem_new(struct asker);

	*a = (struct asker){
		.next = r->askers,
		.r = r,
		.fd = fd,
		.in = BUF_INIT(LENGTH + DNS_MESSAGE_MAX + PIECE),
		.out = BUF_INIT(LENGTH + DNS_MESSAGE_MAX),
	};
	r->askers = a;
	r->askers_n++;
	loop_timer(loop, &a->timer, clock_boot_ms() + IDLE_MS, on_idle);
	if (loop_add(loop, &a->src, fd, EPOLLIN, on_socket) < 0) {
		asker_free(a);
	}
}
