/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * fd - descriptors: all are O_CLOEXEC, reads and writes are complete, sizes are bounded.
 */
#ifndef OSBX_FD_H
#define OSBX_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <osbx/buf.h>
#include <osbx/cleanup.h>
#include <osbx/compiler.h>

/* At program start: 0-2 open (on /dev/null if the caller closed them), all others O_CLOEXEC
 * (CVE-2024-21626: a caller's leaked descriptor must not reach a guest). 0 or -errno. */
int fd_sanitize(void) MUST_CHECK;
/* open with O_CLOEXEC | O_NOCTTY. fd or -errno. */
int fd_open(const char *path, int flags, mode_t mode) NONNULL(1) MUST_CHECK;
/* openat with O_CLOEXEC | O_NOCTTY; follows links as openat does: for our own trees only. */
int fd_open_at(int dir_fd, const char *path, int flags, mode_t mode) NONNULL(2) MUST_CHECK;
/* Close *fd if open and set it to -1. Keeps errno. */
void fd_close(int *fd) NONNULL(1);
/* Pipe with O_CLOEXEC and these extra flags (O_NONBLOCK). 0 or -errno. */
int fd_pipe(int out_fds[2], int flags) MUST_CHECK;
/* SOCK_SEQPACKET | SOCK_CLOEXEC pair. 0 or -errno. */
int fd_seqpacket_pair(int out_fds[2]) MUST_CHECK;
/* Duplicate at or above min_fd with O_CLOEXEC. fd or -errno. */
int fd_dup(int fd, int min_fd) MUST_CHECK;
/* Read up to n bytes, restarting on EINTR. Bytes read (0 at the end) or -errno. */
ssize_t fd_read(int fd, void *p, size_t n) NONNULL(2) MUST_CHECK;
/* Read until the end into b. 0, -EMSGSIZE above its maximum, or -errno. */
int fd_read_all(int fd, struct buf *b) NONNULL(2) MUST_CHECK;
/* Write all n bytes, restarting on EINTR and short writes. 0 or -errno. */
int fd_write_all(int fd, const void *p, size_t n) MUST_CHECK;
/* Copy everything from one to the other (copy_file_range, splice or read/write), at most max
 * bytes. Bytes copied or -errno (-EFBIG above max). */
int64_t fd_copy(int from_fd, int to_fd, uint64_t max) MUST_CHECK;
/* Set or clear O_NONBLOCK. 0 or -errno. Never use on a descriptor that a caller shares. */
int fd_set_nonblock(int fd, bool on) MUST_CHECK;
/* Set or clear FD_CLOEXEC. 0 or -errno. */
int fd_set_cloexec(int fd, bool on) MUST_CHECK;
/* A new open file description of a pipe or terminal of the caller, O_NONBLOCK, through
 * /proc/self/fd, so that the caller's own flags stay. fd or -errno. */
int fd_reopen_nonblock(int fd, int access_mode) MUST_CHECK;
/* Empty memfd that can be sealed (memfd_create(2)), executable or not (said since Linux 6.3). fd or
 * -errno. */
int fd_memfd(const char *name, bool executable) NONNULL(1) MUST_CHECK;
/* Write to it, from the beginning, and seal it: nobody changes it any more. 0 or -errno. */
int fd_memfd_seal(int fd, const void *p, size_t n) MUST_CHECK;
/* Both at once. fd or -errno. */
int fd_memfd_sealed(const char *name, const void *p, size_t n, bool executable)
		NONNULL(1) MUST_CHECK;

/* On which mount the file behind fd lies (statx(2)). */
struct fd_mount {
	uint64_t id;  /* 0: not told, before Linux 5.8 */
	bool is_root; /* it is the root of that mount; false before Linux 5.8 */
	uint32_t dev_major;
	uint32_t dev_minor;
	uint32_t mode; /* st_mode */
};

/* fd may be an O_PATH one. 0 or -errno. */
int fd_mount_of(int fd, struct fd_mount *out) NONNULL(2) MUST_CHECK;

#endif
