/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * code_driver - the process of a driver, and what comes from it; see code_driver.c.
 */
#ifndef OSBX_EXECD_CODE_DRIVER_H
#define OSBX_EXECD_CODE_DRIVER_H

#include "code_frame.h"
#include "code_internal.h"

#define CODE_LATE_MAX   (64U << 10) /* of the output between two runs */
#define CODE_READ_BYTES (64U << 10)

struct driver;

struct pipe_end {
	struct driver *driver;
	int fd; /* -1: at its end */
	struct loop_source src;
	size_t owed;  /* bytes to be read before SYNC is acknowledged */
	size_t seen;  /* bytes that were there before the channel was read */
	bool is_hung; /* nobody writes to it any more */
	struct buf late;
};

struct driver {
	struct execd *execd;
	struct code_context *context; /* NULL: it is being killed */
	uint32_t tag;
	pid_t pid;
	struct loop_source memory; /* looks at what it uses, in a run that has a limit */
	struct loop_source hangup; /* waits for its end when its channel has ended */
	bool is_ready;             /* HELLO has come */
	bool has_run;              /* a run waits for that */
	bool has_sync;             /* the pipes must be empty before anything else */
	bool is_pumping;
	uint64_t count;     /* runs that have finished */
	uint64_t oom_kills; /* of the sandbox, when the run began */
	int channel_fd;
	struct loop_source channel;
	struct buf in;
	struct buf out;
	struct pipe_end pipes[2];
};

/* code_driver_io.c */
/* Watch its descriptors. 0 or -errno. */
int driver_watch(struct driver *d) NONNULL(1) MUST_CHECK;
/* Take what has come; nothing while the client has enough to take. */
void driver_pump(struct driver *d) NONNULL(1);
/* It has ended: what has come before that. d->context may be NULL behind it. */
void driver_last_words(struct driver *d) NONNULL(1);
/* It is to be ended: the text that is there, if somebody reads it. */
void driver_last_text(struct driver *d) NONNULL(1);
/* What was written since the last run. */
void driver_tell_late(struct driver *d) NONNULL(1);
/* Give it the code of its run. */
void driver_send_run(struct driver *d, const struct code_run *r) NONNULL(1, 2);
void driver_close(struct driver *d) NONNULL(1);

#endif
