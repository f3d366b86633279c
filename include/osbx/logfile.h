/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: engine
 * logfile - the output of a detached sandbox, in the form of CRI logs.
 *
 *   2026-01-02T03:04:05.123456789Z stdout F a line
 *   2026-01-02T03:04:05.123456789Z stderr P a part of a line, the rest follows
 *
 * One record is one line of text without its newline (F), or a part of one (P): what was read
 * without a newline is written at once, so that a prompt is seen and nothing is lost in a crash.
 * Bytes are never changed. LOG_FILE is renamed to LOG_FILE.1 and so on when it is full.
 */
#ifndef OSBX_LOGFILE_H
#define OSBX_LOGFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <osbx/buf.h>
#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/span.h>

#define LOG_FILE       "log"
#define LOG_FILES      3
#define LOG_FILE_BYTES (10U << 20)
#define LOG_TEXT_BYTES (16U << 10) /* of one record at most */

enum log_stream {
	LOG_STDOUT,
	LOG_STDERR,
	LOG_STREAM_COUNT,
};

struct logfile {
	int dir_fd; /* borrowed */
	int fd;
	uint64_t size;
	uint64_t max;  /* of one file */
	uint64_t lost; /* bytes of output that could not be written */
	struct buf out;
};

#define LOGFILE_INIT                                                  \
	{                                                             \
		.dir_fd = -1, .fd = -1, .out = { .max = 128U << 10 }, \
	}

/* Make the first file in dir_fd, which stays the caller's; max_bytes is LOG_FILE_BYTES but in
 * tests. 0 or -errno. */
int logfile_start(struct logfile *l, int dir_fd, uint64_t max_bytes) NONNULL(1) MUST_CHECK;
/* Write output that was read just now. A full disk loses records, never halves of them. */
void logfile_add(struct logfile *l, enum log_stream stream, struct span bytes) NONNULL(1);
void logfile_done(struct logfile *l);
AUTO_DEFINE(logfile, struct logfile, logfile_done);

/* One record of a log. */
struct log_record {
	struct span time; /* as it stands there */
	enum log_stream stream;
	bool is_partial;
	struct span text;
};

/* Lines of a file that grows, and is renamed to NAME.1, NAME.2 … when it is full. */
struct line_reader {
	int dir_fd; /* borrowed */
	const char *name;
	unsigned int files; /* that there are at most */
	int fd;
	struct buf bytes;
	size_t at;
};

/* Begin with the oldest line. dir_fd and name stay the caller's. */
void line_reader_init(struct line_reader *r, int dir_fd, const char *name, unsigned int files)
		NONNULL(1, 3);
void line_reader_done(struct line_reader *r);
AUTO_DEFINE(line_reader, struct line_reader, line_reader_done);
/* The next whole line without its newline, borrowed until the next call. 1, 0 when there is none
 * yet (call again later), or -errno. */
int line_reader_next(struct line_reader *r, struct span *out_line) NONNULL(1, 2) MUST_CHECK;
/* The next record of a log (line_reader_init with LOG_FILE, LOG_FILES), likewise. */
int log_record_next(struct line_reader *r, struct log_record *out_record) NONNULL(1, 2) MUST_CHECK;
/* Take a line of a log (without its newline) apart. 0 or -EBADMSG. */
int log_record_parse(struct span line, struct log_record *out_record) NONNULL(2) MUST_CHECK;

#endif
