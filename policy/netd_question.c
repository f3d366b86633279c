/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * A question is asked of one upstream after the other, STEP_MS each:
 *
 *     ask by UDP ──▶ answer ─────────────────────────▶ learnt, replied, gone
 *        ▲   │  └──▶ truncated ──▶ ask the same by TCP ──▶ answer, likewise
 *        │   ├─────▶ FORMERR: once more without EDNS (servers of 1999)
 *        │   └─────▶ SERVFAIL, REFUSED, NOTIMP, nonsense, nothing within STEP_MS
 *        └── the next upstream; behind the last one: SERVFAIL
 *
 * All questions to an upstream share its socket; the id, 16 random bits anew for each attempt, and
 * the question in the answer tell them apart. What does not fit is no answer (dns_answer_read says
 * EAGAIN) and is dropped: the wait goes on. A connection is asked for through the keeper (DIAL) and
 * has one question.
 *
 * The host's resolvers change (a VPN, another network): the keeper is told to LOOK when a question
 * is asked for the first time in LOOK_MS, and when one gets no answer. If they are others, what is
 * under way is asked anew.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/packet.h>

#include "netd_resolver.h"

#define STEP_MS     2000
#define LOOK_MS     1000
#define MESSAGE_MAX 4096 /* by UDP: we say that DNS_UDP_MAX is enough */
#define BATCH_MAX   32
#define LENGTH      2 /* bytes of the length before a message by TCP */
#define PIECE       4096

struct question {
	struct question *next; /* resolver.questions */
	struct resolver *r;
	struct dns_query query;
	struct reply_to to;
	size_t at; /* which upstream */
	uint16_t id;
	bool with_edns;
	struct loop_source timer;
	struct dial *dial;
	int tcp_fd;
	struct loop_source tcp;
	bool is_sent;
	struct buf message; /* by TCP: what is to be sent, then what has come */
};

static const char text_unreachable[] = "no resolver of the host has answered";

static void attempt(struct question *q);

static void tcp_end(struct question *q)
{
	dial_drop(q->r->n, TAKE_PTR(q->dial));
	loop_remove(q->r->n->loop, &q->tcp);
	fd_close(&q->tcp_fd);
	buf_done(&q->message);
	q->is_sent = false;
}

static void question_free(struct question *q)
{
	struct question **at = &q->r->questions;

	while (*at != q) {
		at = &(*at)->next;
	}
	*at = q->next;
	q->r->questions_n--;
	tcp_end(q);
	loop_remove(q->r->n->loop, &q->timer);
	free(q);
}

static void fail(struct question *q)
{
	static const struct dns_answer failed = {
		.rcode = DNS_SERVFAIL,
		.ede = DNS_EDE_UNREACHABLE,
		.ede_text = text_unreachable,
	};

	reply_send(q->r, &q->query, &failed, 0, &q->to);
	question_free(q);
}

void question_look(struct resolver *r)
{
	int64_t now_ms = clock_boot_ms();
	struct packet p;

	if (now_ms - r->looked_ms >= LOOK_MS) {
		packet_init(&p, NETD_MSG_LOOK);
		/* A keeper that is busy is told at the next one. */
		if (packet_send(r->n->control_fd, &p) == 0) {
			r->looked_ms = now_ms;
		}
	}
}

static void attempt_next(struct question *q)
{
	question_look(q->r);
	tcp_end(q);
	q->at++;
	q->with_edns = true;
	attempt(q);
}

static void on_time(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)loop;
	(void)events;
	attempt_next(container_of(src, struct question, timer));
}

/* What upstream says, by either way. q may be gone afterwards. */
static void take(struct question *q, struct span message, bool by_tcp);

static void tcp_read(struct question *q)
{
	struct buf *m = &q->message;
	ssize_t n = buf_reserve(m, PIECE) < 0 ? -1
					      : recv(q->tcp_fd, m->p + m->n, PIECE, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		return;
	}
	if (n <= 0) {
		attempt_next(q);
		return;
	}
	m->n += (size_t)n;
	if (m->n < LENGTH) {
		return;
	}
	size_t whole = ((size_t)(uint8_t)m->p[0] << 8) | (uint8_t)m->p[1];

	if (m->n >= LENGTH + whole) {
		take(q, (struct span){ .p = m->p + LENGTH, .n = whole }, true);
	}
}

static void tcp_write(struct question *q)
{
	struct buf *m = &q->message;
	ssize_t n = send(q->tcp_fd, m->p, m->n, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		return;
	}
	if (n < 0) {
		attempt_next(q);
		return;
	}
	buf_consume(m, (size_t)n);
	if (m->n == 0) {
		q->is_sent = true;
		if (loop_change(q->r->n->loop, &q->tcp, EPOLLIN) < 0) {
			attempt_next(q);
		}
	}
}

static void on_tcp(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct question *q = container_of(src, struct question, tcp);

	(void)loop;
	if (q->is_sent) {
		tcp_read(q);
	} else if (events & (EPOLLERR | EPOLLHUP)) {
		attempt_next(q);
	} else {
		tcp_write(q);
	}
}

static void on_dialed(void *ctx, int fd_or_err, uint16_t ident)
{
	struct question *q = ctx;

	(void)ident;
	q->dial = NULL;
	q->tcp_fd = fd_or_err < 0 ? -1 : fd_or_err;
	if (q->tcp_fd < 0 || fd_set_nonblock(q->tcp_fd, true) < 0 ||
			loop_add(q->r->n->loop, &q->tcp, q->tcp_fd, EPOLLOUT, on_tcp) < 0) {
		attempt_next(q);
	}
}

static uint16_t id_new(void)
{
	uint16_t id = 0;

	/* Of a few bytes, and this late after boot, it does not fail and does not wait. */
	(void)!getrandom(&id, sizeof(id), 0);
	return id;
}

static void tcp_ask(struct question *q)
{
	AUTO(buf) struct buf text = BUF_INIT(DNS_MESSAGE_MAX);
	const struct netd_dial where = {
		.kind = NETD_DIAL_RESOLVER,
		.port = q->r->upstreams[q->at].number,
	};

	q->id = id_new();
	dns_ask(&q->query, q->id, q->with_edns, &text);
	uint16_t length = htons((uint16_t)text.n);

	q->message = (struct buf)BUF_INIT(LENGTH + DNS_MESSAGE_MAX + PIECE);
	loop_timer(q->r->n->loop, &q->timer, clock_boot_ms() + STEP_MS, on_time);
	if (buf_append(&q->message, &length, sizeof(length)) == 0 &&
			buf_append(&q->message, text.p, text.n) == 0) {
		q->dial = dial_ask(q->r->n, &where, on_dialed, q);
	}
	if (!q->dial) {
		attempt_next(q);
	}
}

/* By UDP, of the first upstream from q->at on that takes it. */
static void attempt(struct question *q)
{
	struct resolver *r = q->r;
	AUTO(buf) struct buf text = BUF_INIT(DNS_MESSAGE_MAX);

	for (; q->at < r->upstreams_n; q->at++) {
		q->id = id_new();
		dns_ask(&q->query, q->id, q->with_edns, &text);
		if (send(r->upstreams[q->at].fd, text.p, text.n, MSG_DONTWAIT | MSG_NOSIGNAL) >=
				0) {
			loop_timer(r->n->loop, &q->timer, clock_boot_ms() + STEP_MS, on_time);
			return;
		}
	}
	fail(q);
}

static bool is_lame(enum dns_rcode rcode)
{
	return rcode == DNS_SERVFAIL || rcode == DNS_REFUSED || rcode == DNS_NOTIMP ||
	       rcode == DNS_FORMERR;
}

static void take(struct question *q, struct span message, bool by_tcp)
{
	const struct dns_filter filter = { .keep = resolver_keeps, .ctx = q->r };
	AUTO(dns_answer) struct dns_answer a = { .ttl = 0 };
	int r = dns_answer_read(&q->query, q->id, message, &filter, &a);

	if (r == -EAGAIN && !by_tcp) {
		return;
	}
	if (r == -EMSGSIZE && !by_tcp) {
		tcp_ask(q);
		return;
	}
	if (r == 0 && a.rcode == DNS_FORMERR && q->with_edns && !by_tcp) {
		q->with_edns = false;
		attempt(q);
		return;
	}
	if (r < 0 || is_lame(a.rcode)) {
		attempt_next(q);
		return;
	}
	resolver_learn(q->r, &q->query, &a, &q->to);
	question_free(q);
}

/* Whose answer is this? */
static struct question *question_find(const struct resolver *r, size_t at, struct span message)
{
	uint16_t id = 0;

	if (message.n < sizeof(id)) {
		return NULL;
	}
	memcpy(&id, message.p, sizeof(id));
	id = ntohs(id);
	for (struct question *q = r->questions; q; q = q->next) {
		/* One that is being asked by TCP waits for nothing here. */
		if (q->at == at && q->id == id && !q->dial && q->tcp_fd < 0) {
			return q;
		}
	}
	return NULL;
}

/* The host of the upstream says that nobody listens: do not wait for the timer. */
static void upstream_failed(struct resolver *r, size_t at)
{
	struct question *waiting[QUESTIONS_MAX];
	size_t n = 0;

	for (struct question *q = r->questions; q && n < QUESTIONS_MAX; q = q->next) {
		if (q->at == at && !q->dial && q->tcp_fd < 0) {
			waiting[n++] = q;
		}
	}
	for (size_t i = 0; i < n; i++) {
		attempt_next(waiting[i]);
	}
}

void question_on_upstream(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct upstream *u = container_of(src, struct upstream, src);
	struct resolver *r = u->r;
	size_t at = (size_t)(u - r->upstreams);
	char message[MESSAGE_MAX];

	(void)loop;
	(void)events;
	for (int i = 0; i < BATCH_MAX; i++) {
		ssize_t n = recv(u->fd, message, sizeof(message), MSG_DONTWAIT);

		if (n < 0) {
			if (errno != EAGAIN && errno != EINTR) {
				upstream_failed(r, at);
			}
			return;
		}
		const struct span bytes = { .p = message, .n = (size_t)n };
		struct question *q = question_find(r, at, bytes);

		if (q) {
			take(q, bytes, false);
		}
	}
}

struct question *question_ask(
		struct resolver *r, const struct dns_query *query, const struct reply_to *to)
{
	static const struct dns_answer busy = { .rcode = DNS_SERVFAIL };

	if (r->questions_n >= QUESTIONS_MAX) {
		reply_send(r, query, &busy, 0, to);
		return NULL;
	}
	struct question *q = mem_new(struct question);

	*q = (struct question){
		.next = r->questions,
		.r = r,
		.query = *query,
		.to = *to,
		.with_edns = true,
		.tcp_fd = -1,
	};
	r->questions = q;
	r->questions_n++;
	attempt(q);
	/* Nobody to ask: it has failed already. */
	return r->questions == q ? q : NULL;
}

void question_forget(struct question *q)
{
	q->to = (struct reply_to){ .udp_fd = -1 };
}

void question_restart_all(struct resolver *r)
{
	struct question *all[QUESTIONS_MAX];
	size_t n = 0;

	for (struct question *q = r->questions; q && n < QUESTIONS_MAX; q = q->next) {
		all[n++] = q;
	}
	for (size_t i = 0; i < n; i++) {
		tcp_end(all[i]);
		all[i]->at = 0;
		all[i]->with_edns = true;
		attempt(all[i]);
	}
}
