/* SPDX-License-Identifier: Apache-2.0 */
/*
 * publish - ports of a sandbox at addresses of the host: the keeper listens there, and for each
 * connection PID 1 connects inside.
 */
#ifndef OSBX_ENGINE_PUBLISH_H
#define OSBX_ENGINE_PUBLISH_H

#include <stdbool.h>
#include <stddef.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/ports.h>
#include <osbx/strv.h>

struct keeper;
struct publish;

/* Listen at all of them; whoever connects waits. Into *out_ports how each came to stand
 * (ports_format). NULL with *e: ERRC_CONFLICT when one is in use. */
struct publish *publish_new(const struct port_map *maps, size_t n, struct strv *out_ports,
		struct error *e) MUST_CHECK NONNULL(1, 3, 4);
/* The main process runs: serve. 0 or -errno. */
int publish_begin(struct publish *p, struct keeper *k) MUST_CHECK NONNULL(1, 2);
/* The sandbox is thawed. NULL allowed, as below. */
void publish_on_resume(struct publish *p);
/* PID 1 is dead: nobody else is let in, and what is on its way out has a moment left. Calls
 * keeper_on_unpublished when it was waited for. */
void publish_on_death(struct publish *p);
/* Has everything that was on its way been delivered? */
bool publish_is_idle(const struct publish *p);
/* Cut all connections; the loop of the keeper is about to go. */
void publish_end(struct publish *p);
void publish_free(struct publish *p);

#endif
