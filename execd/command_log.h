/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * command_log - output of a command in the background: the last bytes, in a memfd, so that it is no
 * memory of PID 1 and no file of the sandbox.
 */
#ifndef OSBX_EXECD_COMMAND_LOG_H
#define OSBX_EXECD_COMMAND_LOG_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <osbx/compiler.h>
#include <osbx/span.h>

#define COMMAND_LOG_BYTES       (16U << 20)
#define COMMAND_LOG_BYTES_SMALL (256U << 10) /* where there are many */

struct command_log {
	int fd;         /* -1: nothing was written */
	uint64_t total; /* ever written; cursors count from the first byte */
	uint64_t max;   /* the last ones that are kept */
};

#define COMMAND_LOG_INIT(bytes_max)          \
	{                                    \
		.fd = -1, .max = (bytes_max) \
	}

/* Append; what cannot be written is lost. */
void command_log_put(struct command_log *l, struct span bytes) NONNULL(1);
/* The first cursor that is still there, not below the one asked for, not above the end. */
uint64_t command_log_seek(const struct command_log *l, uint64_t cursor) NONNULL(1) MUST_CHECK;
/* Up to n bytes from a cursor that is there. Number, or -errno. */
ssize_t command_log_read(const struct command_log *l, uint64_t cursor, void *p, size_t n)
		NONNULL(1, 3) MUST_CHECK;
void command_log_done(struct command_log *l);

#endif
