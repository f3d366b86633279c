/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * pax - tar streams as copies travel in them (POSIX.1-2001 "pax Interchange Format").
 *
 * Written are ustar headers, with pax records for what does not fit. Read are also GNU tar's long
 * names and base-256 numbers and the old format of Unix V7. Whoever wrote the stream is not
 * trusted: checksums, numbers, lengths and records are checked, each byte count has a maximum.
 * Names are bytes and are not looked at here: absolute ones and ".." are the reader's to refuse.
 * Without libraries, for PID 1 of a sandbox reads and writes them too.
 */
#ifndef OSBX_PAX_H
#define OSBX_PAX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/limits.h>

enum pax_type {
	PAX_FILE,
	PAX_DIR,
	PAX_SYMLINK,
	PAX_HARDLINK,
	PAX_SPECIAL, /* a device or FIFO; only read */
};

struct pax_entry {
	enum pax_type type;
	mode_t mode; /* 07777 */
	uint32_t uid;
	uint32_t gid;
	uint64_t size; /* of a file, else 0 */
	struct timespec mtime;
	char name[LIMIT_PATH_BYTES];   /* not empty */
	char target[LIMIT_PATH_BYTES]; /* of links, not empty there */
};

#define PAX_READER_BYTES 65536

struct pax_reader {
	int fd;        /* borrowed */
	bool failed;   /* what failed was the stream itself: cut short, or not readable */
	bool begun;    /* a header was read */
	uint64_t left; /* of the entry's data */
	uint32_t pad;  /* behind it */
	size_t at;     /* in bytes[] */
	size_t filled;
	char bytes[PAX_READER_BYTES];
};

/* Begin with the stream at fd. */
void pax_reader_init(struct pax_reader *r, int fd) NONNULL(1);
/* The next entry; data of the last one that was not read is skipped. 1, 0 at the end of the
 * archive, or -1 with ERRC_INVALID, ERRC_UNSUPPORTED (compressed, sparse or odd entries) or the
 * error of the descriptor. */
int pax_next(struct pax_reader *r, struct pax_entry *out, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* Up to n bytes of the entry's data. Bytes, 0 at its end, -1. */
ssize_t pax_read(struct pax_reader *r, void *p, size_t n, struct error *e) MUST_CHECK
		NONNULL(1, 2, 4);
/* Read and drop what follows the archive, so that its writer can end. 0 or -1. */
int pax_drain(struct pax_reader *r, struct error *e) MUST_CHECK NONNULL(1, 2);

/* Write the header of an entry; size bytes of data and pax_write_padding follow it. 0 or -errno. */
int pax_write_header(int fd, const struct pax_entry *entry) MUST_CHECK NONNULL(2);
/* Fill the last block of that many bytes of data. 0 or -errno. */
int pax_write_padding(int fd, uint64_t size) MUST_CHECK;
/* The end of the archive. 0 or -errno. */
int pax_write_end(int fd) MUST_CHECK;

#endif
