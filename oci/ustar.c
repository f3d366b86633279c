/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <osbx/fd.h>

#include "ustar.h"

#define BLOCK_BYTES 512U
#define END_BLOCKS  2U
#define OCTAL_MAX   077777777777ULL /* eleven digits */

struct ustar_header {
	char name[100];
	char mode[8];
	char uid[8];
	char gid[8];
	char size[12];
	char mtime[12];
	char checksum[8];
	char type;
	char link[100];
	char magic[6];
	char version[2];
	char user[32];
	char group[32];
	char major[8];
	char minor[8];
	char prefix[155];
	char padding[12];
};
_Static_assert(sizeof(struct ustar_header) == BLOCK_BYTES, "a header is one block");

static void size_put(struct ustar_header *h, uint64_t size)
{
	char digits[sizeof(h->size) + 1];

	if (size <= OCTAL_MAX) {
		(void)snprintf(digits, sizeof(digits), "%011llo", (unsigned long long)size);
		memcpy(h->size, digits, sizeof(h->size));
		return;
	}
	h->size[0] = (char)0x80;
	for (size_t i = sizeof(h->size) - 1; i > 0; i--) {
		h->size[i] = (char)(size & 0xff);
		size >>= 8;
	}
}

static void checksum_put(struct ustar_header *h)
{
	unsigned char bytes[BLOCK_BYTES];
	unsigned int sum = 0;
	char digits[sizeof(h->checksum)];

	memset(h->checksum, ' ', sizeof(h->checksum));
	memcpy(bytes, h, sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++) {
		sum += bytes[i];
	}
	(void)snprintf(digits, sizeof(digits), "%06o", sum);
	/* Six digits and a NUL; the last byte stays a blank. */
	memcpy(h->checksum, digits, sizeof(digits) - 1);
}

static int header_write(int fd, const char *name, char type, uint64_t size)
{
	struct ustar_header h = {
		.mode = "0000644",
		.uid = "0000000",
		.gid = "0000000",
		.mtime = "00000000000",
		.type = type,
		.magic = "ustar",
		.version = { '0', '0' },
	};
	size_t n = strlen(name);

	assert(n > 0 && n < sizeof(h.name));

	memcpy(h.name, name, n);
	if (type == '5') {
		memcpy(h.mode, "0000755", sizeof(h.mode));
	}
	size_put(&h, size);
	checksum_put(&h);
	return fd_write_all(fd, &h, sizeof(h));
}

static int padding_write(int fd, uint64_t size)
{
	static const char zeros[BLOCK_BYTES];
	size_t rest = (size_t)(size % BLOCK_BYTES);

	return rest ? fd_write_all(fd, zeros, BLOCK_BYTES - rest) : 0;
}

int ustar_dir(int fd, const char *name)
{
	return header_write(fd, name, '5', 0);
}

int ustar_bytes(int fd, const char *name, struct span bytes)
{
	int r = header_write(fd, name, '0', bytes.n);

	if (r == 0) {
		r = fd_write_all(fd, bytes.p, bytes.n);
	}
	return r < 0 ? r : padding_write(fd, bytes.n);
}

int ustar_file(int fd, const char *name, int from_fd, uint64_t size)
{
	int r = header_write(fd, name, '0', size);
	int64_t copied = 0;

	if (r < 0) {
		return r;
	}
	/* Of a longer file -EFBIG: it is not the blob we know. */
	copied = fd_copy(from_fd, fd, size);
	if (copied < 0) {
		return (int)copied;
	}
	return (uint64_t)copied == size ? padding_write(fd, size) : -EIO;
}

int ustar_end(int fd)
{
	static const char zeros[END_BLOCKS * BLOCK_BYTES];

	return fd_write_all(fd, zeros, sizeof(zeros));
}
