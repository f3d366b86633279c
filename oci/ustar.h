/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ustar - write a tar archive (POSIX.1-2001 pax, "ustar Interchange Format").
 *
 * For names of our own: up to 100 bytes, owner root, modification time 0, so that the same
 * content gives the same bytes. Sizes of 8 GiB and more are written in base 256, as GNU tar does
 * and all readers understand.
 */
#ifndef OSBX_OCI_USTAR_H
#define OSBX_OCI_USTAR_H

#include <stdint.h>

#include <osbx/compiler.h>
#include <osbx/span.h>

/* A directory; name ends with '/'. 0 or -errno. */
int ustar_dir(int fd, const char *name) MUST_CHECK NONNULL(2);
/* A regular file with these bytes. 0 or -errno. */
int ustar_bytes(int fd, const char *name, struct span bytes) MUST_CHECK NONNULL(2);
/* A regular file with the next size bytes of from_fd. 0, -EIO when they are fewer, or -errno. */
int ustar_file(int fd, const char *name, int from_fd, uint64_t size) MUST_CHECK NONNULL(2);
/* The end of the archive. 0 or -errno. */
int ustar_end(int fd) MUST_CHECK;

#endif
