/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <osbx/fd.h>

#include "command_log.h"

void command_log_put(struct command_log *l, struct span bytes)
{
	if (l->fd < 0) {
		l->fd = fd_memfd("command-log", false);
	}
	while (l->fd >= 0 && bytes.n > 0) {
		uint64_t at = l->total % l->max;
		size_t room = (size_t)(l->max - at);
		ssize_t n = pwrite(l->fd, bytes.p, bytes.n < room ? bytes.n : room, (off_t)at);

		if (n <= 0) {
			return; /* no memory is left in the sandbox */
		}
		l->total += (uint64_t)n;
		bytes = span_from(bytes, (size_t)n);
	}
}

uint64_t command_log_seek(const struct command_log *l, uint64_t cursor)
{
	uint64_t first = l->total > l->max ? l->total - l->max : 0;

	if (cursor > l->total) {
		return l->total;
	}
	return cursor < first ? first : cursor;
}

ssize_t command_log_read(const struct command_log *l, uint64_t cursor, void *p, size_t n)
{
	uint64_t at = cursor % l->max;
	uint64_t room = l->max - at;
	uint64_t left = l->total - cursor;

	left = left < room ? left : room;
	if (left == 0 || l->fd < 0) {
		return 0;
	}
	ssize_t r = pread(l->fd, p, n < left ? n : (size_t)left, (off_t)at);

	return r < 0 ? -errno : r;
}

void command_log_done(struct command_log *l)
{
	fd_close(&l->fd);
}
