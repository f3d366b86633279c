/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/fd.h>

#include "fetch_blob.h"

#define FEED_BYTES_MAX (1U << 20) /* in one go, so that other transfers have their turn */

int blob_open(struct blob *b, int part_fd, int out_fd, uint64_t size, struct error *e)
{
	struct stat st;
	int rc = 0;

	*b = (struct blob){ .part_fd = part_fd, .out_fd = out_fd, .size = size };
	rc = fstat(part_fd, &st) < 0 ? -errno : !S_ISREG(st.st_mode) ? -EINVAL : 0;
	if (rc == 0 && (uint64_t)st.st_size > size) {
		rc = ftruncate(part_fd, 0) < 0 ? -errno : 0;
		st.st_size = 0;
	}
	if (rc < 0) {
		blob_close(b);
		return error_sys(e, -rc, "open part");
	}
	b->have = (uint64_t)st.st_size;
	b->resumed = b->have;
	return 0;
}

void blob_close(struct blob *b)
{
	fd_close(&b->part_fd);
	fd_close(&b->out_fd);
}

void blob_begin(struct blob *b, uint64_t offset)
{
	assert(offset <= b->have);
	b->skip = b->have - offset;
	b->gained = 0;
}

static int part_write(struct blob *b, struct span s)
{
	while (s.n > 0) {
		ssize_t n = pwrite(b->part_fd, s.p, s.n, (off_t)b->have);

		if (n < 0 && errno != EINTR) {
			return -errno;
		}
		if (n > 0) {
			s = span_from(s, (size_t)n);
			b->have += (uint64_t)n;
			b->gained += (uint64_t)n;
		}
	}
	return 0;
}

int blob_write(struct blob *b, struct span piece, struct error *e)
{
	size_t skip = piece.n < b->skip ? piece.n : (size_t)b->skip;
	int rc = 0;

	b->skip -= skip;
	piece = span_from(piece, skip);
	if (piece.n > b->size - b->have) {
		return error_set(e, ERRC_INVALID, "more than its %llu bytes",
				(unsigned long long)b->size);
	}
	rc = part_write(b, piece);
	return rc < 0 ? error_sys(e, -rc, "write part") : 0;
}

/* For file systems that cannot splice: what poll says a pipe takes is written without waiting if
 * it is PIPE_BUF bytes or less. */
static ssize_t feed_copy(const struct blob *b, size_t n)
{
	char bytes[PIPE_BUF];
	struct pollfd out = { .fd = b->out_fd, .events = POLLOUT };
	ssize_t got = 0;

	if (poll(&out, 1, 0) <= 0) {
		return -EAGAIN;
	}
	got = pread(b->part_fd, bytes, n < sizeof(bytes) ? n : sizeof(bytes), (off_t)b->fed);
	if (got > 0) {
		got = write(b->out_fd, bytes, (size_t)got);
	}
	return got < 0 ? -errno : got;
}

static ssize_t feed_some(const struct blob *b, size_t n)
{
	off_t at = (off_t)b->fed;
	ssize_t got = splice(
			b->part_fd, &at, b->out_fd, NULL, n, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);

	if (got < 0 && errno == EINVAL) {
		return feed_copy(b, n);
	}
	return got < 0 ? -errno : got;
}

int blob_feed(struct blob *b, struct error *e)
{
	size_t budget = FEED_BYTES_MAX;

	while (blob_is_hungry(b) && budget > 0) {
		uint64_t left = b->have - b->fed;
		ssize_t n = feed_some(b, left < budget ? (size_t)left : budget);

		if (n == -EAGAIN) {
			return 0;
		}
		if (n == -EINTR) {
			continue;
		}
		if (n <= 0) {
			/* The file has become shorter: someone else is at it. */
			return error_sys(e, n == 0 ? EIO : (int)-n, "pass on bytes");
		}
		b->fed += (uint64_t)n;
		budget -= (size_t)n;
	}
	return 0;
}

bool blob_is_hungry(const struct blob *b)
{
	return b->out_fd >= 0 && b->fed < b->have;
}

bool blob_is_complete(const struct blob *b)
{
	return b->have == b->size;
}

bool blob_is_over(const struct blob *b)
{
	return blob_is_complete(b) && !blob_is_hungry(b);
}
