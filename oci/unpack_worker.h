/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack_worker - the parent's half of one helper: start it, talk to it, end it.
 */
#ifndef OSBX_OCI_UNPACK_WORKER_H
#define OSBX_OCI_UNPACK_WORKER_H

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>

#include "unpack_proto.h"

enum worker_stage {
	WORKER_NEW,
	WORKER_UNPACKING,
	WORKER_UNPACKED, /* waits for the layers below */
	WORKER_FINISHING,
	WORKER_DONE,
	WORKER_STAGE_COUNT,
};

struct worker {
	enum worker_stage stage;
	int sock;
	int pidfd;
	struct layer_stats stats;
};

#define WORKER_INIT                                           \
	{                                                     \
		.stage = WORKER_NEW, .sock = -1, .pidfd = -1, \
	}

/* Start a helper on a job. fds as enum unpack_fd says, borrowed; the copy may be -1. lowers names
 * job->lowers_n directories, newest first. */
int worker_start(struct worker *w, const struct unpack_job *job, const int fds[UNPACK_FD_COUNT],
		char (*lowers)[UNPACK_NAME_MAX], struct error *e) MUST_CHECK NONNULL(1, 2, 3, 5);
/* Let it finish: the layers below are complete. */
int worker_finish(struct worker *w, struct error *e) MUST_CHECK NONNULL(1, 2);
/* Its socket is readable: take the message and go to the next stage. -1 with the helper's own
 * error, or how it died. */
int worker_receive(struct worker *w, struct error *e) MUST_CHECK NONNULL(1, 2);
/* End it, if it still runs, and reap it. */
void worker_done(struct worker *w);
AUTO_DEFINE(worker, struct worker, worker_done);

#endif
