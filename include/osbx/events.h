/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: engine
 * events - what happens to sandboxes, one JSON object a line in RUNTIME/events.log, which all
 * keepers and commands append to. The file is renamed to events.log.1 when it is full.
 */
#ifndef OSBX_EVENTS_H
#define OSBX_EVENTS_H

#include <osbx/compiler.h>
#include <osbx/dirs.h>
#include <osbx/state.h>

#define EVENTS_FILE  "events.log"
#define EVENTS_FILES 2

enum event_type {
	EVENT_START,
	EVENT_PAUSE,
	EVENT_RESUME,
	EVENT_RENEW,
	EVENT_STOP, /* it is asked to end */
	EVENT_END,  /* with reason and exit status */
	EVENT_REMOVE,
	EVENT_TYPE_COUNT,
};

/* Append one about the sandbox that state describes. Never an error: whoever does something does
 * not fail because it cannot be told. */
void events_add(int runtime_fd, enum event_type type, const struct sandbox_state *state) NONNULL(3);

#endif
