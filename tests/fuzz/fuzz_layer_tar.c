/* SPDX-License-Identifier: Apache-2.0 */
/* A tar (plain or compressed) applied to a directory, and once more on top of the first. Nothing
 * may appear beside the two directories. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/cleanup.h>
#include <osbx/fd.h>
#include <osbx/file.h>

#include "../../oci/layer.h"

#define BUDGET  (4U << 20)
#define ENTRIES 200

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct unpack_usage usage;

static void must(bool ok)
{
	if (!ok) {
		abort();
	}
}

static void apply(int blob_fd, int root_fd, const int *lower_fds, size_t n)
{
	struct idmap map = { .mode = IDMAP_SINGLE };
	struct error e = ERROR_INIT;
	struct layer_opts opts = {
		.root_fd = root_fd,
		.map = &map,
		.entries_max = ENTRIES,
		.file_max = BUDGET,
		.usage = &usage,
	};
	struct stream_opts stream_opts = {
		.fd = blob_fd,
		.copy_fd = -1,
		.size = UINT64_MAX,
		.budget = BUDGET,
		.usage = &usage,
	};

	usage = (struct unpack_usage){ .bytes = 0 };
	must(lseek(blob_fd, 0, SEEK_SET) == 0);
	AUTO(stream) struct stream *stream = stream_new(&stream_opts, &e);
	AUTO(layer) struct layer *layer = layer_new(&opts);

	if (stream && layer_unpack(layer, stream, &e) == 0) {
		(void)!layer_finish(layer, lower_fds, n, &e);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char base[] = "/dev/shm/osbx-fuzz-XXXXXX";
	int fds[2] = { -1, -1 };
	autoclose int blob_fd = memfd_create("blob", MFD_CLOEXEC);

	must(blob_fd >= 0 && fd_write_all(blob_fd, data, size) == 0 && mkdtemp(base));
	autoclose int base_fd = fd_open(base, O_RDONLY | O_DIRECTORY, 0);

	must(base_fd >= 0);
	for (int i = 0; i < 2; i++) {
		const char name[2] = { (char)('0' + i), '\0' };

		must(mkdirat(base_fd, name, 0700) == 0);
		fds[i] = fd_open_at(base_fd, name, O_RDONLY | O_DIRECTORY, 0);
		must(fds[i] >= 0);
		apply(blob_fd, fds[i], fds, (size_t)i);
	}
	for (int i = 0; i < 2; i++) {
		const char name[2] = { (char)('0' + i), '\0' };

		fd_close(&fds[i]);
		must(file_remove_tree_at(base_fd, name) == 0);
	}
	must(rmdir(base) == 0);
	return 0;
}
