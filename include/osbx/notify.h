/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: oci
 * notify - tells a web hook of the operator's what a sandbox's policy has refused.
 *
 * A process of its own, started by the keeper at the first refusal (engine/deny_hook.c), that ends
 * a few seconds after it (what waits is still delivered) or after a minute without a refusal: it
 * alone loads libcurl, and is confined as what speaks to registries is. One POST for each refusal,
 * as the OpenSandbox egress sidecar does it: 5 s for each try, three more after 1, 2 and 4 s when
 * there is no answer or one of 5xx; redirects are not followed. What comes meanwhile waits in the
 * socket; the keeper counts what does not fit.
 *
 * keeper                              notify
 *   ── BEGIN {notify_begin} ──▶
 *   ── DENIED {notify_denied} ──▶     POST
 *   ◀── FAILED {text} ──              when it was not delivered
 */
#ifndef OSBX_NOTIFY_H
#define OSBX_NOTIFY_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <osbx/compiler.h>
#include <osbx/id.h>

#define NOTIFY_CONTROL_FD 3
#define NOTIFY_URL_MAX    1024

enum notify_msg {
	NOTIFY_MSG_BEGIN,
	NOTIFY_MSG_DENIED,
	NOTIFY_MSG_FAILED,
	NOTIFY_MSG_COUNT,
};

struct notify_begin {
	char url[NOTIFY_URL_MAX + 1];
	struct id sandbox;
};

struct notify_denied {
	int64_t time_ms;  /* CLOCK_REALTIME */
	uint64_t dropped; /* that nobody was told of since the last one */
	char what[256];   /* name or address */
	uint16_t port;    /* 0: a question to the resolver, or ping */
};

/* Is it http://… or https://…, in printable ASCII without blanks, at most NOTIFY_URL_MAX bytes? */
bool notify_url_is_valid(const char *url) NONNULL(1);
/* The filter that notify_main puts on itself, borrowed. */
void notify_set_filter(const struct sock_filter *insns, size_t n);
/* Hidden command: returns an exit status. */
int notify_main(int argc, char **argv) MUST_CHECK;

#endif
