/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch_blob - the bytes of one blob on their way: from the network into its part file, from
 * there into the pipe of whoever unpacks it.
 *
 * The pipe is fed from the file, never from the network: a reader that is slow stops nothing, and
 * what was held from an earlier try is sent like what has just come.
 */
#ifndef OSBX_OCI_FETCH_BLOB_H
#define OSBX_OCI_FETCH_BLOB_H

#include <stdbool.h>
#include <stdint.h>

#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/span.h>

struct blob {
	int part_fd; /* -1: let go */
	int out_fd;  /* the pipe, -1: there is none */
	uint64_t size;
	uint64_t have; /* bytes in the file */
	uint64_t resumed;
	uint64_t fed;
	uint64_t skip;   /* bytes of the answer at hand that the file has already */
	uint64_t gained; /* bytes of that answer that were new */
};

/* Take over both descriptors. What an older version of the blob left, longer than this one, is cut
 * off. ERRC_SYSTEM; the descriptors are closed then. */
int blob_open(struct blob *b, int part_fd, int out_fd, uint64_t size, struct error *e) MUST_CHECK
		NONNULL(1, 5);
/* Close what is open. */
void blob_close(struct blob *b) NONNULL(1);
/* An answer begins whose first byte is at offset, which is have or less. */
void blob_begin(struct blob *b, uint64_t offset) NONNULL(1);
/* Bytes of it. ERRC_INVALID (more than the blob has), ERRC_SYSTEM. */
int blob_write(struct blob *b, struct span piece, struct error *e) MUST_CHECK NONNULL(1, 3);
/* Send what the pipe takes without waiting. ERRC_SYSTEM; EPIPE: its reader has gone. */
int blob_feed(struct blob *b, struct error *e) MUST_CHECK NONNULL(1, 2);
/* Is there something to feed? Then the pipe is to be polled for it. */
bool blob_is_hungry(const struct blob *b) NONNULL(1);
/* All is in the file, and in the pipe. */
bool blob_is_complete(const struct blob *b) NONNULL(1);
bool blob_is_over(const struct blob *b) NONNULL(1);

#endif
