/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/packet.h>

#include "netd_internal.h"

struct dial {
	struct dial *next; /* netd.dials */
	uint32_t id;
	void (*done)(void *ctx, int fd_or_err);
	void *ctx;
};

struct dial *dial_ask(struct netd *n, const struct netd_dial *what,
		void (*done)(void *ctx, int fd_or_err), void *ctx)
{
	struct netd_dial ask = *what;
	struct packet p;

	ask.id = ++n->dial_id;
	packet_init(&p, NETD_MSG_DIAL);
	if (packet_put(&p, &ask, sizeof(ask)) < 0 || packet_send(n->control_fd, &p) < 0) {
		return NULL;
	}
	struct dial *d = mem_new(struct dial);

	*d = (struct dial){ .next = n->dials, .id = ask.id, .done = done, .ctx = ctx };
	n->dials = d;
	return d;
}

static void unlink_dial(struct netd *n, const struct dial *d)
{
	struct dial **at = &n->dials;

	while (*at != d) {
		at = &(*at)->next;
	}
	*at = d->next;
}

void dial_drop(struct netd *n, struct dial *d)
{
	if (d) {
		unlink_dial(n, d);
		free(d);
	}
}

void dial_answer(struct netd *n, const struct netd_dialed *what, int fd)
{
	struct dial *d = n->dials;
	autoclose int own = fd;
	int err = what->errnum > 0 ? -what->errnum : -EPROTO;

	while (d && d->id != what->id) {
		d = d->next;
	}
	/* NULL: its flow has ended meanwhile. */
	if (d) {
		struct dial it = *d;

		dial_drop(n, d);
		it.done(it.ctx, own >= 0 ? TAKE_FD(own) : err);
	}
}
