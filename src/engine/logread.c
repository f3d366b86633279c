/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * A file is known by its inode: its name changes when the log is rotated. Nothing is
 * written to a file that is not the newest, so at the end of one of those, and of what was written
 * to it before it was renamed, the next newer one follows. A reader that is slower than the
 * rotation loses what was removed, as everybody does.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/logfile.h>

#define NAME_BYTES  64
#define CHUNK_BYTES (64U << 10)

static void name_of(const struct line_reader *r, unsigned int at, char *out)
{
	int n = at > 0 ? snprintf(out, NAME_BYTES, "%s.%u", r->name, at)
		       : snprintf(out, NAME_BYTES, "%s", r->name);

	assert(n > 0 && n < NAME_BYTES);
}

/* Number of the file that is open; all of them when it was removed. */
static unsigned int place_of(const struct line_reader *r)
{
	struct stat ours;

	if (r->fd < 0 || fstat(r->fd, &ours) < 0) {
		return r->files;
	}
	for (unsigned int i = 0; i < r->files; i++) {
		char name[NAME_BYTES];
		struct stat st;

		name_of(r, i, name);
		if (fstatat(r->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
				st.st_ino == ours.st_ino) {
			return i;
		}
	}
	return r->files;
}

/* Open the oldest file that is newer than number at. 0, -ENOENT or -errno. */
static int open_newer(struct line_reader *r, unsigned int at)
{
	while (at > 0) {
		char name[NAME_BYTES];

		name_of(r, --at, name);
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
static ssize_t read_more(struct line_reader *r)
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
static bool line_take(struct line_reader *r, struct span *out)
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

void line_reader_init(struct line_reader *r, int dir_fd, const char *name, unsigned int files)
{
	*r = (struct line_reader){
		.dir_fd = dir_fd,
		.name = name,
		.files = files,
		.fd = -1,
		.bytes = { .max = 256U << 10 },
	};
}

void line_reader_done(struct line_reader *r)
{
	if (r) {
		fd_close(&r->fd);
		buf_done(&r->bytes);
	}
}

/* At the end of a file. 1: go on reading, 0: nothing more now, -errno. */
static int advance(struct line_reader *r)
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

int line_reader_next(struct line_reader *r, struct span *out_line)
{
	while (!line_take(r, out_line)) {
		ssize_t n = r->fd < 0 ? 0 : read_more(r);

		if (n < 0) {
			return (int)n;
		}
		int more = n == 0 ? advance(r) : 1;

		if (more <= 0) {
			return more;
		}
	}
	return 1;
}

int log_record_next(struct line_reader *r, struct log_record *out_record)
{
	struct span line;
	int n = 0;

	do {
		n = line_reader_next(r, &line);
	} while (n > 0 && log_record_parse(line, out_record) < 0);
	return n;
}
