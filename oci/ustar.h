/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ustar - the members of an archive that is saved, over pax.h: names of our own, owner root,
 * modification time 0, so that the same content gives the same bytes.
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
