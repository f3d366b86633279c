/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <osbx/ctl.h>
#include <osbx/fd.h>
#include <osbx/limits.h>
#include <osbx/lock.h>
#include <osbx/mem.h>

#include "ctl_internal.h"

#define LABELS_BYTES_MAX (256U << 10)

int labels_take(int fd, struct strv *out_labels, struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(LABELS_BYTES_MAX);
	AUTO(strv) struct strv labels = STRV_INIT;
	struct span piece;
	int r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : fd_read_all(fd, &text);

	if (r < 0) {
		return error_sys(e, -r, "read the labels");
	}
	struct span rest = buf_span(&text);

	/* Each ends with a NUL, so behind the last piece there is an empty one. */
	while (span_next(&rest, '\0', &piece) && piece.n > 0) {
		autofree char *label = span_dup(piece);

		if (!label || label[0] == '=' || !strchr(label, '=')) {
			return error_set(e, ERRC_INVALID, "label: not of the form KEY=VALUE");
		}
		if (labels.n >= LIMIT_LABELS || strv_take(&labels, TAKE_PTR(label)) < 0) {
			return error_set(e, ERRC_LIMIT, "more than %d labels", LIMIT_LABELS);
		}
	}
	*out_labels = TAKE(labels, (struct strv)STRV_INIT);
	return 0;
}

/* The sealed memfd of LABELS. fd, or -1 with *e set. */
static int labels_put(const struct strv *labels, struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(LABELS_BYTES_MAX);

	strv_for_each(labels, i) {
		if (buf_append(&text, labels->v[i], strlen(labels->v[i]) + 1) < 0) {
			return error_set(e, ERRC_LIMIT, "labels of more than %u bytes",
					LABELS_BYTES_MAX);
		}
	}
	int fd = fd_memfd_sealed("osbx-labels", text.p ? text.p : "", text.n, false);

	return fd < 0 ? error_sys(e, -fd, "hand over the labels") : fd;
}

static int labels_ask(const struct dirs *dirs, const struct id *id, const struct strv *labels,
		struct error *e)
{
	autoclose int fd = labels_put(labels, e);
	autoclose int sock = fd < 0 ? -1 : ctl_connect(dirs, id, e);
	struct packet p;

	if (sock < 0 || ctl_send_fd(sock, CTL_MSG_LABELS, fd, e) < 0 ||
			ctl_expect(sock, CTL_MSG_OK, &p, -1, e) < 0) {
		return -1;
	}
	packet_done(&p);
	return 0;
}

/* No keeper writes it any more: under the lock this process may. */
static int labels_write(int live_fd, const struct strv *labels, struct error *e)
{
	AUTO(state) struct sandbox_state s = { .code = SANDBOX_PENDING };

	if (state_load(live_fd, &s, e) < 0) {
		return -1;
	}
	if (!state_is_final(&s)) {
		return error_set(e, ERRC_CONFLICT, "the keeper of the sandbox is gone");
	}
	strv_done(&s.labels);
	if (strv_add_all(&s.labels, strv_get(labels)) < 0) {
		return error_set(e, ERRC_LIMIT, "more than %d labels", LIMIT_LABELS);
	}
	return state_save(&s, live_fd, false, e);
}

/* fd, or -1 with *e set. */
static int live_open(const struct dirs *dirs, const struct id *id, struct error *e)
{
	autofree char *path = mem_printf("sandboxes/%s", id->text);
	int fd = fd_open_at(dirs->runtime_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (fd < 0) {
		return fd == -ENOENT ? error_set(e, ERRC_NOT_FOUND, "sandbox %s", id->text)
				     : error_sys(e, -fd, "sandbox %s", id->text);
	}
	return fd;
}

int sandbox_labels_lock(const struct dirs *dirs, const struct id *id, struct error *e)
{
	autoclose int live_fd = live_open(dirs, id, e);
	/* Not "lock": that is the keeper's for as long as it lives. */
	int fd = live_fd < 0 ? live_fd : lock_open_at(live_fd, "labels.lock", LOCK_MODE_EXCLUSIVE);

	if (live_fd >= 0 && fd < 0) {
		return fd == -ENOENT ? error_set(e, ERRC_NOT_FOUND, "sandbox %s", id->text)
				     : error_sys(e, -fd, "labels of sandbox %s", id->text);
	}
	return fd;
}

int sandbox_set_labels(const struct dirs *dirs, const struct id *id, const struct strv *labels,
		struct error *e)
{
	autoclose int live_fd = live_open(dirs, id, e);

	if (live_fd < 0) {
		return -1;
	}
	autoclose int lock_fd = lock_try_at(live_fd, "lock", LOCK_MODE_EXCLUSIVE);

	if (lock_fd == -EWOULDBLOCK) {
		return labels_ask(dirs, id, labels, e);
	}
	return lock_fd < 0 ? error_sys(e, -lock_fd, "lock of sandbox %s", id->text)
			   : labels_write(live_fd, labels, e);
}
