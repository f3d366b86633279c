/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include <osbx/dirs.h>
#include <osbx/events.h>
#include <osbx/fd.h>
#include <osbx/logfile.h>

#include "cli.h"

#define POLL_NS       (100L * 1000 * 1000)
#define OUT_BYTES     (64U << 10)
#define OUT_BYTES_MAX (512U << 10)

struct events_args {
	bool follow;
	bool new_only;
};

static const struct args_option events_options[] = {
	{ "follow", 'f', ARGS_FLAG, offsetof(struct events_args, follow), NULL, "wait for more",
			NULL },
	{ "json", 0, ARGS_IGNORED, 0, NULL, "accepted: it is what is printed", NULL },
	{ "new", 'n', ARGS_FLAG, offsetof(struct events_args, new_only), NULL,
			"only what happens from now on", NULL },
	{ .name = NULL },
};

static int out_flush(struct buf *out)
{
	int r = out->n > 0 ? fd_write_all(STDOUT_FILENO, out->p, out->n) : 0;

	buf_reset(out);
	return r;
}

/* Everything that is there. 0 or -errno. */
static int events_print(struct line_reader *reader, struct buf *out, bool print)
{
	struct span line;
	int r = 0;

	while ((r = line_reader_next(reader, &line)) > 0) {
		if (!print) {
			continue;
		}
		r = buf_append(out, line.p, line.n);
		if (r == 0) {
			r = buf_append(out, "\n", 1);
		}
		if (r == 0 && out->n >= OUT_BYTES) {
			r = out_flush(out);
		}
		if (r < 0) {
			return r;
		}
	}
	return r < 0 ? r : out_flush(out);
}

static int events_main(const struct events_args *args, struct error *e)
{
	const struct timespec pause = { .tv_nsec = POLL_NS };
	AUTO(dirs) struct dirs dirs = DIRS_INIT;
	AUTO(line_reader) struct line_reader reader = { .fd = -1 };
	AUTO(buf) struct buf out = BUF_INIT(OUT_BYTES_MAX);
	bool print = !args->new_only;
	int r = 0;

	if (dirs_open(&dirs, e) < 0) {
		return -1;
	}
	line_reader_init(&reader, dirs.runtime_fd, EVENTS_FILE, EVENTS_FILES);
	do {
		r = events_print(&reader, &out, print);
		print = true;
	} while (r == 0 && args->follow && nanosleep(&pause, NULL) == 0);
	return r < 0 && r != -EPIPE ? error_sys(e, -r, "events") : 0;
}

static int events_run(int argc, char **argv)
{
	struct error e = ERROR_INIT;
	struct events_args args = { .follow = false };
	char **operands = NULL;
	int r = args_parse(&cmd_events, argc, argv, &args, &operands, &e);

	if (r != 0) {
		return r < 0 ? cli_fail(&e) : 0;
	}
	return events_main(&args, &e) < 0 ? cli_fail(&e) : 0;
}

const struct args_command cmd_events = {
	.name = "events",
	.synopsis = "[options]",
	.summary = "print what has happened to sandboxes, a JSON object a line",
	.options = events_options,
	.operands_max = 0,
	.run = events_run,
};
