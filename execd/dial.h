/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * dial - connect to a port of the sandbox's own loopback: 127.0.0.1, then ::1.
 */
#ifndef OSBX_EXECD_DIAL_H
#define OSBX_EXECD_DIAL_H

#include <stdint.h>

#include <osbx/compiler.h>
#include <osbx/error.h>

struct dial;
struct execd;
/* fd is a connected stream socket with O_NONBLOCK, the callee's; or -1, and e says why. */
typedef void (*dial_fn)(void *ctx, int fd, const struct error *e);

struct dial_opts {
	uint32_t port; /* 1..65535, else ERRC_INVALID */
	dial_fn done;  /* called once, perhaps before dial_start returns; 5 s later at the latest */
	void *ctx;
};

/* Begin. *slot, which must live until then, is NULL again when done is called. ERRC_LIMIT: too many
 * at once. */
int dial_start(struct execd *x, const struct dial_opts *opts, struct dial **slot,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
/* Give up without a call; d may be NULL. */
void dial_cancel(struct dial *d);

#endif
