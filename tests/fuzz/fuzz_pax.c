/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a tar stream. */
#include <assert.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/pax.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct pax_reader reader;
	static struct pax_entry entry;
	struct error e = ERROR_INIT;
	char text[100];
	int fd = fd_memfd("stream", false);
	int got = 0;

	assert(fd >= 0);
	got = fd_write_all(fd, data, size);
	assert(got == 0);
	got = lseek(fd, 0, SEEK_SET) == 0 ? 1 : 0;
	pax_reader_init(&reader, fd);
	while (got == 1 && (got = pax_next(&reader, &entry, &e)) == 1) {
		assert(entry.name[0] && strlen(entry.name) < LIMIT_PATH_BYTES);
		assert((entry.type != PAX_SYMLINK && entry.type != PAX_HARDLINK) ||
				entry.target[0]);
		got = pax_read(&reader, text, sizeof(text), &e) < 0 ? -1 : 1;
	}
	assert((got < 0) == (e.code != ERRC_OK));
	fd_close(&fd);
	return 0;
}
