/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pull_signals - signals that end a pull or load are put off until it has cleared up behind itself.
 */
#ifndef OSBX_OCI_PULL_SIGNALS_H
#define OSBX_OCI_PULL_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

#include <osbx/compiler.h>

struct pull_signals {
	bool is_held;
	int taken; /* the one that came, 0: none */
	sigset_t set;
	sigset_t before;
};

/* Hold back SIGINT, SIGTERM and SIGHUP, those that are not ignored. */
void pull_signals_hold(struct pull_signals *s) NONNULL(1);
/* Has one come? */
bool pull_signals_look(struct pull_signals *s) NONNULL(1);
/* Let them through again, the one that came too: its handler runs, or this process ends. */
void pull_signals_release(struct pull_signals *s) NONNULL(1);

#endif
