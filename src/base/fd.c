/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/sys.h>

#define READ_CHUNK       65536U
#define READ_SMALL       2048U
#define COPY_CHUNK       131072U
#define COPY_RANGE_CHUNK (1U << 30)
#define SEAL_TRIES       20

int fd_sanitize(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		int got = 0;

		if (fcntl(fd, F_GETFD) >= 0) {
			continue;
		}
		/* Lower ones are open, so the new one is this one; children shall have it. */
		got = open("/dev/null", O_RDWR | O_NOCTTY);
		if (got < 0) {
			return -errno;
		}
		assert(got == fd);
	}
	return sys_close_range(3, UINT_MAX, CLOSE_RANGE_CLOEXEC);
}

int fd_open(const char *path, int flags, mode_t mode)
{
	return fd_open_at(AT_FDCWD, path, flags, mode);
}

int fd_open_at(int dir_fd, const char *path, int flags, mode_t mode)
{
	int fd = -1;

	do {
		fd = openat(dir_fd, path, flags | O_CLOEXEC | O_NOCTTY, mode);
	} while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : fd;
}

void fd_close(int *fd)
{
	close_auto(fd);
	*fd = -1;
}

int fd_pipe(int out_fds[2], int flags)
{
	int fds[2];

	if (pipe2(fds, flags | O_CLOEXEC) < 0) {
		return -errno;
	}
	out_fds[0] = fds[0];
	out_fds[1] = fds[1];
	return 0;
}

int fd_seqpacket_pair(int out_fds[2])
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0) {
		return -errno;
	}
	out_fds[0] = fds[0];
	out_fds[1] = fds[1];
	return 0;
}

int fd_dup(int fd, int min_fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, min_fd);

	return copy < 0 ? -errno : copy;
}

ssize_t fd_read(int fd, void *p, size_t n)
{
	ssize_t r = 0;

	do {
		r = read(fd, p, n);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

/* Most files are small: those cost no buffer that is larger than they are, which a C library may
 * map and unmap each time. 1: there may be more, 0: that was all, -errno. */
static int read_small(int fd, struct buf *b)
{
	char bytes[READ_SMALL];
	size_t room = b->max - b->n < sizeof(bytes) ? b->max - b->n : sizeof(bytes);
	size_t n = 0;
	ssize_t r = 1;

	while (n < room && r > 0) {
		r = fd_read(fd, bytes + n, room - n);
		n += r > 0 ? (size_t)r : 0;
	}
	int appended = buf_append(b, bytes, n);

	/* It may be somebody's secret. */
	explicit_bzero(bytes, n);
	return appended < 0 ? appended : (int)(r > 0 ? 1 : r);
}

int fd_read_all(int fd, struct buf *b)
{
	int small = read_small(fd, b);

	if (small <= 0) {
		return small;
	}
	for (;;) {
		size_t room = b->max - b->n;
		size_t chunk = room < READ_CHUNK ? room : READ_CHUNK;
		char probe = 0;
		ssize_t r = 0;

		if (chunk == 0) {
			/* Full: the end must be here. */
			r = fd_read(fd, &probe, 1);
			return r > 0 ? -EMSGSIZE : (int)r;
		}
		r = buf_reserve(b, chunk);
		if (r < 0) {
			return (int)r;
		}
		r = fd_read(fd, b->p + b->n, chunk);
		if (r <= 0) {
			b->p[b->n] = '\0';
			return (int)r;
		}
		b->n += (size_t)r;
		b->p[b->n] = '\0';
	}
}

int fd_write_all(int fd, const void *p, size_t n)
{
	const char *at = p;

	while (n > 0) {
		ssize_t r = write(fd, at, n);

		if (r < 0 && errno == EINTR) {
			continue;
		}
		if (r < 0) {
			return -errno;
		}
		at += r;
		n -= (size_t)r;
	}
	return 0;
}

/*
 * Ways to move bytes, the cheapest first. A way that does not suit these two descriptors says so
 * before it moved anything, and the next one goes on.
 */
static ssize_t copy_by_range(int from_fd, int to_fd, size_t n)
{
	ssize_t r = copy_file_range(
			from_fd, NULL, to_fd, NULL, n < COPY_RANGE_CHUNK ? n : COPY_RANGE_CHUNK, 0);

	return r < 0 ? -errno : r;
}

static ssize_t copy_by_splice(int from_fd, int to_fd, size_t n)
{
	ssize_t r = splice(from_fd, NULL, to_fd, NULL, n < COPY_RANGE_CHUNK ? n : COPY_RANGE_CHUNK,
			SPLICE_F_MOVE);

	return r < 0 ? -errno : r;
}

static ssize_t copy_by_hand(int from_fd, int to_fd, size_t n)
{
	size_t chunk = n < COPY_CHUNK ? n : COPY_CHUNK;
	autofree char *bytes = mem_array(chunk, 1);
	ssize_t sum = 0;
	ssize_t r = 0;

	/* Many rounds on one buffer, few enough to stay below SSIZE_MAX. */
	while (n > 0 && (size_t)sum < COPY_RANGE_CHUNK) {
		int w = 0;

		r = fd_read(from_fd, bytes, chunk < n ? chunk : n);
		if (r <= 0) {
			return r < 0 ? r : sum;
		}
		w = fd_write_all(to_fd, bytes, (size_t)r);
		if (w < 0) {
			return w;
		}
		sum += r;
		n -= (size_t)r;
	}
	return sum;
}

static ssize_t (*const copy_ways[])(int from_fd, int to_fd, size_t n) = {
	copy_by_range,
	copy_by_splice,
	copy_by_hand,
};

/* Errnos of copy_file_range and splice that are about the way, not about the bytes. EBADF: the
 * target is O_APPEND; EPERM, ENOSYS: an outer filter. */
static bool is_wrong_way(ssize_t r)
{
	static const int errnos[] = { EXDEV, EINVAL, ENOSYS, EOPNOTSUPP, EPERM, EBADF, EISDIR,
		ETXTBSY, EFBIG };

	for (size_t i = 0; i < ARRAY_SIZE(errnos); i++) {
		if (r == -errnos[i]) {
			return true;
		}
	}
	return false;
}

int64_t fd_copy(int from_fd, int to_fd, uint64_t max)
{
	uint64_t done = 0;
	size_t way = 0;
	char probe = 0;
	ssize_t r = 0;

	if (max > INT64_MAX) {
		max = INT64_MAX;
	}
	while (done < max) {
		uint64_t left = max - done;

		r = copy_ways[way](from_fd, to_fd, left < SSIZE_MAX ? (size_t)left : SSIZE_MAX);
		/* Files of /proc have no size: copy_file_range of Linux 5.3 to 5.18 sees an end. */
		if (way + 1 < ARRAY_SIZE(copy_ways) && (is_wrong_way(r) || (r == 0 && done == 0))) {
			way++;
			continue;
		}
		if (r == -EINTR) {
			continue;
		}
		if (r < 0) {
			return r;
		}
		if (r == 0) {
			return (int64_t)done;
		}
		done += (uint64_t)r;
	}
	r = fd_read(from_fd, &probe, 1);
	if (r != 0) {
		return r < 0 ? r : -EFBIG;
	}
	return (int64_t)done;
}

/* Set or clear one bit of a word that fcntl reads and writes. */
static int flag_set(int fd, int get, int set, int bit, bool on)
{
	int flags = fcntl(fd, get);
	int wanted = 0;

	if (flags < 0) {
		return -errno;
	}
	wanted = on ? flags | bit : flags & ~bit;
	if (wanted != flags && fcntl(fd, set, wanted) < 0) {
		return -errno;
	}
	return 0;
}

int fd_set_nonblock(int fd, bool on)
{
	return flag_set(fd, F_GETFL, F_SETFL, O_NONBLOCK, on);
}

int fd_set_cloexec(int fd, bool on)
{
	return flag_set(fd, F_GETFD, F_SETFD, FD_CLOEXEC, on);
}

int fd_reopen_nonblock(int fd, int access_mode)
{
	struct stat st;
	char path[32];

	if (fstat(fd, &st) < 0) {
		return -errno;
	}
	/* A new description of a file would begin at offset 0. */
	if (!S_ISFIFO(st.st_mode) && !S_ISCHR(st.st_mode)) {
		return -EOPNOTSUPP;
	}
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return fd_open(path, (access_mode & O_ACCMODE) | O_NONBLOCK, 0);
}

int fd_memfd(const char *name, bool executable)
{
	const unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create(name, flags | (executable ? MFD_EXEC : MFD_NOEXEC_SEAL));

	/* Linux before 6.3 does not know the two flags: executable it is, always. */
	if (fd < 0 && errno == EINVAL) {
		fd = memfd_create(name, flags);
	}
	return fd < 0 ? -errno : fd;
}

/* A page that the kernel is just moving (compaction, reclaim) counts as one that somebody may write
 * to: F_SEAL_WRITE waits for it a while, and then is EBUSY (mm/memfd.c). */
static int seal_add(int fd, int seals)
{
	int r = -1;

	for (int i = 0; i < SEAL_TRIES && r < 0; i++) {
		r = fcntl(fd, F_ADD_SEALS, seals);
		if (r < 0 && errno != EBUSY) {
			break;
		}
	}
	return r < 0 ? -errno : 0;
}

int fd_memfd_seal(int fd, const void *p, size_t n)
{
	int r = fd_write_all(fd, p, n);

	if (r < 0) {
		return r;
	}
	if (lseek(fd, 0, SEEK_SET) < 0) {
		return -errno;
	}
	return seal_add(fd, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
}

int fd_memfd_sealed(const char *name, const void *p, size_t n, bool executable)
{
	autoclose int fd = fd_memfd(name, executable);
	int r = fd < 0 ? fd : fd_memfd_seal(fd, p, n);

	return r < 0 ? r : TAKE_FD(fd);
}
