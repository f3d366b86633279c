/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that the execution API starts, after the pattern of the main one. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/buf.h>
#include <osbx/fd.h>
#include <osbx/limits.h>
#include <osbx/mem.h>

#include "api.h"

/* What the main process was started with: decoded at the first use, most sandboxes have none. */
struct process_main {
	int fd; /* memfd, -1 once it is decoded */
	struct execd_process process;
};

/* By offset: the main process's own child may be reading through the same open file. 0 or -errno.
 */
static int main_read(int fd, struct buf *out)
{
	struct stat st;

	if (fstat(fd, &st) < 0) {
		return -errno;
	}
	int r = buf_reserve(out, (size_t)st.st_size);

	if (r < 0) {
		return r;
	}
	ssize_t n = pread(fd, out->p, (size_t)st.st_size, 0);

	if (n != st.st_size) {
		return n < 0 ? -errno : -EBADMSG;
	}
	out->n = (size_t)n;
	return 0;
}

void process_keep_main(struct execd *x, int spec_fd)
{
	int fd = x->main ? -1 : fd_dup(spec_fd, EXECD_FD_COUNT);

	/* Without it the sandbox serves no commands, and runs all the same. */
	if (fd >= 0) {
		x->main = mem_new(struct process_main);
		x->main->fd = fd;
	}
}

const struct execd_process *api_main(const struct execd *x)
{
	struct process_main *m = x->main;

	if (m && m->fd >= 0) {
		AUTO(buf) struct buf b = BUF_INIT((size_t)4 * LIMIT_ARGS_BYTES);

		if (main_read(m->fd, &b) < 0 ||
				execd_process_decode(buf_span(&b), &m->process) < 0) {
			return NULL;
		}
		fd_close(&m->fd);
	}
	return m ? &m->process : NULL;
}

/* The next one that is free; it wraps after two thousand million processes. */
static uint32_t tag_next(struct execd *x)
{
	uint32_t tag = 0;

	do {
		tag = EXECD_TAG_API | ++x->tags_made;
	} while (process_find(x, tag));
	return tag;
}

int process_spawn(struct execd *x, const struct process_opts *opts, uint32_t *out_tag,
		struct error *e)
{
	struct child c = {
		.spec_fd = -1,
		.process = opts->process,
		.more = opts->more,
		.stdio = { -1, -1, -1 },
	};
	const struct process init = {
		.tag = tag_next(x),
		.flags = opts->tty ? EXECD_START_TTY : 0,
		.calls = {
			.on_started = opts->on_started,
			.on_failed = opts->on_failed,
			.on_exited = opts->on_exited,
			.ctx = opts->ctx,
		},
		.execd = x,
	};

	for (size_t i = 0; i < ARRAY_SIZE(c.stdio) && !opts->tty; i++) {
		c.stdio[i] = opts->stdio[i];
	}
	if (process_launch(&init, &c, e) < 0) {
		return -1;
	}
	*out_tag = init.tag;
	return 0;
}
