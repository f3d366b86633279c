/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * sessions_internal - a session, and a run of it.
 */
#ifndef OSBX_EXECD_SESSIONS_INTERNAL_H
#define OSBX_EXECD_SESSIONS_INTERNAL_H

#include <osbx/id.h>

#include "command_internal.h"
#include "sessions.h"

#define SESSIONS_MAX      256
#define SESSION_STATE_MAX (256U << 10)

struct session {
	struct session *next; /* commands.sessions */
	struct id id;
	char *wanted_cwd; /* of its creation, until a run has ended; "~" and variables as sent */
	char *cwd;        /* of the last run's end, or NULL */
	char *state;      /* commands of a shell, or NULL */
	size_t state_n;
	uint64_t used; /* order of use */
	size_t runs_n;
};

struct session_run {
	struct commands *table;
	struct session *session; /* NULL: ended meanwhile */
	int fd;                  /* what the shell leaves comes from here */
	struct loop_source src;
	struct buf left;
};

/* Script of each run: "sh -c SCRIPT name COMMAND". */
extern const char session_script[];

struct session *session_find(const struct commands *t, const char *id) NONNULL(1, 2) MUST_CHECK;
/* A new one; the oldest one goes where there are too many. NULL: all of them have runs. */
struct session *session_new(struct commands *t, const char *cwd) NONNULL(1) MUST_CHECK;
/* Start a run, described by w up to its descriptors. The request is answered. */
void session_start(struct http_req *rq, struct session *s, struct command_wish *w) NONNULL(1, 2, 3);

#endif
