/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * A file of the log is known by its inode: its name changes when the log is rotated. Nothing is
 * written to a file that is not the newest, so at the end of one of those, and of what was written
 * to it before it was renamed, the next newer one follows. A reader that is slower than the
 * rotation loses what was removed, as everybody does.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/logfile.h>

#define NAME_BYTES  16
#define CHUNK_BYTES (64U << 10)

static void name_of(unsigned int at, char *out)
{
	(void)snprintf(out, NAME_BYTES, at > 0 ? LOG_FILE ".%u" : LOG_FILE, at);
}

/* Number of the file that is open; LOG_FILES when it was removed. */
static unsigned int place_of(const struct log_reader *r)
{
	struct stat ours;

	if (r->fd < 0 || fstat(r->fd, &ours) < 0) {
		return LOG_FILES;
	}
	for (unsigned int i = 0; i < LOG_FILES; i++) {
		char name[NAME_BYTES];
		struct stat st;

		name_of(i, name);
		if (fstatat(r->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
				st.st_ino == ours.st_ino) {
			return i;
		}
	}
	return LOG_FILES;
}

/* Open the oldest file that is newer than number at. 0, -ENOENT or -errno. */
static int open_newer(struct log_reader *r, unsigned int at)
{
	while (at > 0) {
		char name[NAME_BYTES];

		name_of(--at, name);
		int fd = fd_open_at(r->dir_fd, name, O_RDONLY | O_NOFOLLOW, 0);

		if (fd >= 0) {
			fd_close(&r->fd);
			r->fd = fd;
			return 0;
		}
		if (fd != -ENOENT) {
			return fd;
		}
	}
	return -ENOENT;
}

/* Read more of the file that is open. Bytes, 0 at its end, -errno. */
static ssize_t read_more(struct log_reader *r)
{
	buf_consume(&r->bytes, r->at);
	r->at = 0;
	int n = buf_reserve(&r->bytes, CHUNK_BYTES);

	if (n < 0) {
		/* No line of ours is so long. */
		buf_reset(&r->bytes);
		n = buf_reserve(&r->bytes, CHUNK_BYTES);
	}
	if (n < 0) {
		return n;
	}
	ssize_t got = fd_read(r->fd, r->bytes.p + r->bytes.n, CHUNK_BYTES);

	if (got > 0) {
		r->bytes.n += (size_t)got;
	}
	return got;
}

/* A whole line of what was read. */
static bool line_take(struct log_reader *r, struct span *out)
{
	struct span rest = span_from(buf_span(&r->bytes), r->at);
	const char *newline = rest.n > 0 ? memchr(rest.p, '\n', rest.n) : NULL;

	if (!newline) {
		return false;
	}
	*out = (struct span){ .p = rest.p, .n = (size_t)(newline - rest.p) };
	r->at += out->n + 1;
	return true;
}

void log_reader_init(struct log_reader *r, int dir_fd)
{
	*r = (struct log_reader){ .dir_fd = dir_fd, .fd = -1, .bytes = { .max = 256U << 10 } };
}

void log_reader_done(struct log_reader *r)
{
	if (r) {
		fd_close(&r->fd);
		buf_done(&r->bytes);
	}
}

/* At the end of a file. 1: go on reading, 0: nothing more now, -errno. */
static int advance(struct log_reader *r)
{
	unsigned int place = place_of(r);

	if (r->fd >= 0 && place == 0) {
		return 0;
	}
	if (r->fd >= 0) {
		/* What came between the last look and the new name. */
		ssize_t n = read_more(r);

		if (n != 0) {
			return n < 0 ? (int)n : 1;
		}
	}
	int n = open_newer(r, place);

	return n == -ENOENT ? 0 : n < 0 ? n : 1;
}

int log_reader_next(struct log_reader *r, struct log_record *out_record)
{
	struct span line;

	for (;;) {
		while (line_take(r, &line)) {
			if (log_record_parse(line, out_record) == 0) {
				return 1;
			}
		}
		ssize_t n = r->fd < 0 ? 0 : read_more(r);

		if (n < 0) {
			return (int)n;
		}
		if (n == 0) {
			int more = advance(r);

			if (more <= 0) {
				return more;
			}
		}
	}
}
