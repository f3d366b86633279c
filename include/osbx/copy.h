/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * copy - files and trees into a tar stream, and out of one, beneath a root.
 *
 * The two sides of "osbx cp": one runs inside the sandbox (a child of execd, as a user of the
 * sandbox), the other in the command. Paths are resolved beneath root_fd by path.h, what lies below
 * them by descriptors and without following a link; a side believes nothing of what the other one
 * sends.
 *
 * The stream has the name of what was copied on top: "dir", "dir/file". For a path that ends with
 * "/." (or names no more than that: ".", "..", "/") it is ".", the content of the directory.
 */
#ifndef OSBX_COPY_H
#define OSBX_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include <osbx/compiler.h>
#include <osbx/error.h>

#define COPY_ARCHIVE 1U /* unpack: owners, and modes with set-id bits, as in the stream */
#define COPY_FOLLOW  2U /* pack: of a path that is a link, what it leads to */
#define COPY_ANY     4U /* unpack: any names, into a directory that exists ("-" of osbx cp) */
#define COPY_PLAIN   8U /* unpack: never a set-id bit, even with COPY_ARCHIVE */
#define COPY_FLAGS   15U

struct copy_opts {
	int root_fd;      /* "/" of the path */
	const char *path; /* absolute */
	unsigned int flags;
	int stream_fd;
};

struct copy_result {
	uint64_t left_out; /* devices, FIFOs, sockets, and file systems of the kernel's (/proc) */
	bool stream;       /* what failed was the stream: the other side knows more */
};

/* What the side inside tells at its end, by one write. */
#define COPY_REPORT_MAGIC 0x6f736331U
struct copy_report {
	uint32_t magic;
	uint32_t stream;
	uint64_t left_out;
	struct error error; /* ERRC_OK: all was copied */
};

/* Write path, and all below it, to the stream. 0 or -1; *out_result is always set. A reader that
 * has gone is EPIPE: SIGPIPE must be ignored. */
int copy_pack(const struct copy_opts *opts, struct copy_result *out_result,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3);
/*
 * Make what the stream holds at path:
 *   a directory that exists - below it, by the names of the stream
 *   nothing there           - the directory or file itself (its parent must exist)
 *   a file                  - in its place, when the stream holds one file
 * Links in path are followed, links that lie where the copy goes are replaced. A directory never
 * takes the place of something else, nor the reverse. The umask of this process applies unless
 * COPY_ARCHIVE. Reads the stream to its end. 0 or -1; *out_result is always set. */
int copy_unpack(const struct copy_opts *opts, struct copy_result *out_result,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3);

#endif
