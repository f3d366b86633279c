/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/epoll.h>

#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/packet.h>

#include "netd_internal.h"

struct dial {
	struct dial *next; /* netd.dials */
	struct netd_dial what;
	bool is_sent;
	dial_fn done;
	void *ctx;
};

/* 0, -EAGAIN: the keeper has enough to do, -errno. */
static int ask(struct netd *n, struct dial *d)
{
	struct packet p;

	packet_init(&p, NETD_MSG_DIAL);
	int r = packet_put(&p, &d->what, sizeof(d->what));

	r = r < 0 ? r : packet_send(n->control_fd, &p);
	d->is_sent = r == 0;
	return r;
}

struct dial *dial_ask(struct netd *n, const struct netd_dial *what, dial_fn done, void *ctx)
{
	struct dial *d = mem_new(struct dial);
	struct dial **end = &n->dials;

	*d = (struct dial){ .what = *what, .done = done, .ctx = ctx };
	d->what.id = ++n->dial_id;
	int r = ask(n, d);

	if (r == -EAGAIN) {
		r = loop_change(n->loop, &n->control, EPOLLIN | EPOLLOUT);
	}
	if (r < 0) {
		free(d);
		return NULL;
	}
	while (*end) {
		end = &(*end)->next;
	}
	*end = d;
	return d;
}

void dial_send(struct netd *n)
{
	for (struct dial *d = n->dials; d; d = d->next) {
		/* Any other failure: the keeper is gone, and so are we. */
		if (!d->is_sent && ask(n, d) == -EAGAIN) {
			return;
		}
	}
	if (loop_change(n->loop, &n->control, EPOLLIN) < 0) {
		loop_stop(n->loop, error_exit_status(ERRC_SYSTEM));
	}
}

void dial_drop(struct netd *n, struct dial *d)
{
	struct dial **at = &n->dials;

	if (d) {
		while (*at != d) {
			at = &(*at)->next;
		}
		*at = d->next;
		free(d);
	}
}

void dial_answer(struct netd *n, const struct netd_dialed *what, int fd)
{
	struct dial *d = n->dials;
	autoclose int own = fd;
	int err = what->errnum > 0 ? -what->errnum : -EPROTO;

	while (d && d->what.id != what->id) {
		d = d->next;
	}
	/* NULL: its flow has ended meanwhile. */
	if (d) {
		struct dial it = *d;

		dial_drop(n, d);
		it.done(it.ctx, own >= 0 ? TAKE_FD(own) : err, what->ident);
	}
}
