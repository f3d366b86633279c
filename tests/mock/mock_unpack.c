/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>

#include <osbx/fd.h>
#include <osbx/mem.h>

#include "../../oci/unpack.h"
#include "mock_unpack.h"

#define BLOB_MAX  (1U << 20)
#define MOMENT_MS 10

struct mock_unpack mock_unpack;

/* As the real one does while its helpers read. */
static int wait_for_bytes(const struct unpack_feed *feed, int blob_fd, struct error *e)
{
	struct pollfd fds[] = { { .fd = blob_fd, .events = POLLIN } };

	do {
		if (poll(fds, 1, MOMENT_MS) < 0) {
			return error_sys(e, errno, "poll");
		}
		if (feed->pump(feed->ctx, e) < 0) {
			return -1;
		}
	} while (fds[0].revents == 0);
	return 0;
}

static int layer_take(struct store *st, const struct unpack_opts *opts, struct unpack_layer *u,
		struct error *e)
{
	AUTO(buf) struct buf bytes = BUF_INIT(BLOB_MAX);
	struct digest got = { .text = "" };
	char path[256];

	mock_unpack.read++;
	if (opts->feed && wait_for_bytes(opts->feed, u->blob_fd, e) < 0) {
		return -1;
	}
	if (fd_read_all(u->blob_fd, &bytes) < 0) {
		return error_set(e, ERRC_INTERNAL, "read");
	}
	if (digest_of(buf_span(&bytes), &got, e) < 0) {
		return -1;
	}
	if (bytes.n != u->layer->size || !digest_eq(&got, &u->layer->blob)) {
		u->failed = true;
		return error_set(e, ERRC_INVALID, "blob %s: its bytes are others",
				u->layer->blob.text);
	}
	if (u->copy_fd >= 0) {
		mock_unpack.copied++;
		if (fd_write_all(u->copy_fd, bytes.p, bytes.n) < 0) {
			return error_set(e, ERRC_INTERNAL, "copy");
		}
	}
	if (!u->present) {
		(void)snprintf(path, sizeof(path), "layers/%s/%s", idmap_mode_name(opts->map->mode),
				digest_hex(&u->layer->chain));
		if (!mock_unpack.fail && mkdirat(store_root_fd(st), path, 0700) < 0 &&
				errno != EEXIST) {
			return error_sys(e, errno, "%s", path);
		}
		mock_unpack.made++;
	}
	return 0;
}

int unpack_layers(struct store *st, const struct unpack_opts *opts, struct unpack_layer *layers,
		size_t n, struct error *e)
{
	mock_unpack.calls++;
	for (size_t i = 0; i < n; i++) {
		if (layers[i].blob_fd >= 0 && layer_take(st, opts, &layers[i], e) < 0) {
			return -1;
		}
	}
	return mock_unpack.fail ? error_set(e, ERRC_LIMIT, "as asked") : 0;
}

int unpack_archive(int archive_fd, int dir_fd, uint64_t max, struct error *e)
{
	(void)archive_fd;
	(void)max;
	if (!mock_unpack.archive || mock_unpack.archive(dir_fd) < 0) {
		return error_set(e, ERRC_INVALID, "not an archive");
	}
	return 0;
}
