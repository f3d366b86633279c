/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include <osbx/fd.h>
#include <osbx/pax.h>

#include "ustar.h"

static int header_write(int fd, const char *name, enum pax_type type, uint64_t size)
{
	struct pax_entry entry = {
		.type = type,
		.mode = type == PAX_DIR ? 0755 : 0644,
		.size = size,
	};
	size_t n = strlen(name);

	assert(n > 0 && n < sizeof(entry.name));

	memcpy(entry.name, name, n);
	return pax_write_header(fd, &entry);
}

int ustar_dir(int fd, const char *name)
{
	return header_write(fd, name, PAX_DIR, 0);
}

int ustar_bytes(int fd, const char *name, struct span bytes)
{
	int r = header_write(fd, name, PAX_FILE, bytes.n);

	if (r == 0) {
		r = fd_write_all(fd, bytes.p, bytes.n);
	}
	return r < 0 ? r : pax_write_padding(fd, bytes.n);
}

int ustar_file(int fd, const char *name, int from_fd, uint64_t size)
{
	int r = header_write(fd, name, PAX_FILE, size);
	int64_t copied = 0;

	if (r < 0) {
		return r;
	}
	/* Of a longer file -EFBIG: it is not the blob we know. */
	copied = fd_copy(from_fd, fd, size);
	if (copied < 0) {
		return (int)copied;
	}
	return (uint64_t)copied == size ? pax_write_padding(fd, size) : -EIO;
}

int ustar_end(int fd)
{
	return pax_write_end(fd);
}
