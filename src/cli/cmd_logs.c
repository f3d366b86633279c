/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/json.h>
#include <osbx/logfile.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "cli.h"
#include "sandboxes.h"

#define POLL_NS       (100L * 1000 * 1000)
#define OUT_BYTES     (64U << 10)
#define OUT_BYTES_MAX (256U << 10)

struct logs_args {
	bool follow;
	bool json;
	bool timestamps;
	const char *since;
	uint64_t tail;
};

#define ARG(member) offsetof(struct logs_args, member)

static const struct args_option logs_options[] = {
	{ "follow", 'f', ARGS_FLAG, ARG(follow), NULL, "wait for more until the sandbox ends",
			NULL },
	{ "json", 0, ARGS_FLAG, ARG(json), NULL, "print a JSON object a record", NULL },
	{ "since", 0, ARGS_STRING, ARG(since), "TIME|DURATION",
			"only what was written since, for example 10m", NULL },
	{ "tail", 'n', ARGS_U64, ARG(tail), "LINES", "only so many lines at the end", NULL },
	{ "timestamps", 't', ARGS_FLAG, ARG(timestamps), NULL, "with the time of each line", NULL },
	{ .name = NULL },
};

/* Output of one of our two descriptors. */
struct sink {
	struct buf out;
	int fd;
	bool in_line; /* a part of a line was the last */
};

/* Where a stream stands: lines of one go on behind records of the other. */
struct place {
	bool in_line;
	bool skipped; /* this line is not wanted */
};

struct logs {
	const struct logs_args *args;
	struct span since; /* records that are older sort before it */
	uint64_t skip;     /* lines */
	struct place places[LOG_STREAM_COUNT];
	struct sink sinks[LOG_STREAM_COUNT];
};

static int sink_flush(struct sink *s)
{
	int r = s->out.n > 0 ? fd_write_all(s->fd, s->out.p, s->out.n) : 0;

	buf_reset(&s->out);
	return r;
}

static bool is_old(const struct logs *l, const struct log_record *r)
{
	size_t n = l->since.n < r->time.n ? l->since.n : r->time.n;

	return n > 0 && memcmp(r->time.p, l->since.p, n) < 0;
}

static void record_json(const struct log_record *r, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);
	autofree char *time = span_dup(r->time);
	autofree char *text = span_dup(r->text);

	json_object_begin(&w, NULL);
	json_add_string(&w, "time", time);
	json_add_string(&w, "stream", r->stream == LOG_STDERR ? "stderr" : "stdout");
	json_add_bool(&w, "partial", r->is_partial);
	json_add_string(&w, "text", text);
	json_object_end(&w);
}

static int record_print(struct logs *l, const struct log_record *r)
{
	/* Objects are in order among themselves: one descriptor. */
	struct sink *s = &l->sinks[l->args->json ? LOG_STDOUT : r->stream];
	int n = 0;

	if (l->args->json) {
		record_json(r, &s->out);
		n = buf_append(&s->out, "\n", 1);
	} else {
		if (l->args->timestamps && !s->in_line) {
			n = buf_appendf(&s->out, "%.*s ", (int)r->time.n, r->time.p);
		}
		n = n < 0 ? n : buf_append(&s->out, r->text.p, r->text.n);
		n = n < 0 || r->is_partial ? n : buf_append(&s->out, "\n", 1);
		s->in_line = r->is_partial;
	}
	if (n == 0 && s->out.n >= OUT_BYTES) {
		n = sink_flush(s);
	}
	return n;
}

static int flush_all(struct logs *l)
{
	int r = sink_flush(&l->sinks[LOG_STDOUT]);
	int n = sink_flush(&l->sinks[LOG_STDERR]);

	return r < 0 ? r : n;
}

/* Does a line begin with this record? */
static bool begins_line(struct place *p, const struct log_record *r)
{
	bool begins = !p->in_line;

	p->in_line = r->is_partial;
	return begins;
}

static bool is_skipped(struct logs *l, const struct log_record *r)
{
	struct place *p = &l->places[r->stream];

	if (begins_line(p, r)) {
		p->skipped = l->skip > 0;
		l->skip -= p->skipped;
	}
	return p->skipped;
}

/* Everything that is there. 0 or -errno. */
static int print_all(struct logs *l, struct line_reader *reader)
{
	struct log_record record;
	int r = 0;

	while ((r = log_record_next(reader, &record)) > 0) {
		if (is_old(l, &record) || is_skipped(l, &record)) {
			continue;
		}
		r = record_print(l, &record);
		if (r < 0) {
			return r;
		}
	}
	return r < 0 ? r : flush_all(l);
}

/* How many lines come before the last ones that are wanted. */
static int count_skip(struct logs *l, int dir_fd)
{
	AUTO(line_reader) struct line_reader reader = { .fd = -1 };
	struct place places[LOG_STREAM_COUNT] = { { .in_line = false } };
	struct log_record record;
	uint64_t lines = 0;
	int r = 0;

	line_reader_init(&reader, dir_fd, LOG_FILE, LOG_FILES);
	while ((r = log_record_next(&reader, &record)) > 0) {
		lines += !is_old(l, &record) && begins_line(&places[record.stream], &record);
	}
	l->skip = lines > l->args->tail ? lines - l->args->tail : 0;
	return r;
}

/* A sandbox that has ended writes no more; what it wrote last is read after that was seen. */
static bool is_alive(const struct dirs *dirs, const struct id *id)
{
	AUTO(sandbox_info) struct sandbox_info info = { .is_kept = false };
	struct error e = ERROR_INIT;

	return sandbox_find(dirs, id->text, &info, &e) == 0 && !state_is_final(&info.state);
}

static int log_show(struct logs *l, const struct dirs *dirs, const struct id *id, int dir_fd)
{
	const struct timespec pause = { .tv_nsec = POLL_NS };
	AUTO(line_reader) struct line_reader reader = { .fd = -1 };
	int r = l->args->tail < UINT64_MAX ? count_skip(l, dir_fd) : 0;
	bool more = r == 0;

	line_reader_init(&reader, dir_fd, LOG_FILE, LOG_FILES);
	while (more && r == 0) {
		more = l->args->follow && is_alive(dirs, id);
		r = print_all(l, &reader);
		if (more && r == 0) {
			(void)nanosleep(&pause, NULL);
		}
	}
	return r;
}

/* A time as it stands in the log, without its Z, or a duration back from now. */
static int since_parse(const char *text, char *out, size_t size, struct error *e)
{
	int64_t back_ms = 0;

	if (strlen(text) >= 10 && text[4] == '-' && text[7] == '-' && strlen(text) < size) {
		memcpy(out, text, strlen(text) + 1);
	} else if (str_to_duration(text, &back_ms) == 0) {
		clock_rfc3339(clock_wall_ms() - back_ms, out, size);
	} else {
		(void)error_set(e, ERRC_INVALID, "option --since: %s", text);
		return error_hint(e, "2026-01-02T03:04:05Z, or a duration such as 10m");
	}
	if (str_has_suffix(out, "Z")) {
		out[strlen(out) - 1] = '\0';
	}
	return 0;
}

static int logs_main(const struct logs_args *args, const char *name, struct error *e)
{
	AUTO(dirs) struct dirs dirs = DIRS_INIT;
	AUTO(sandbox_info) struct sandbox_info info = { .is_kept = false };
	char since[CLOCK_RFC3339_MAX] = "";
	struct logs l = {
		.args = args,
		.sinks = { { .out = BUF_INIT(OUT_BYTES_MAX), .fd = STDOUT_FILENO },
				{ .out = BUF_INIT(OUT_BYTES_MAX), .fd = STDERR_FILENO } },
	};

	if ((args->since && since_parse(args->since, since, sizeof(since), e) < 0) ||
			dirs_open(&dirs, e) < 0 || sandbox_find(&dirs, name, &info, e) < 0) {
		return -1;
	}
	l.since = span_of(since);
	autofree char *path = mem_printf("sandboxes/%s", info.state.id.text);
	autoclose int dir_fd = fd_open_at(dirs.runtime_fd, path, O_RDONLY | O_DIRECTORY, 0);

	if (dir_fd == -ENOENT || (dir_fd >= 0 && !info.state.retained)) {
		return error_set(e, ERRC_NOT_FOUND, "sandbox %s has no log", name);
	}
	int r = dir_fd < 0 ? dir_fd : log_show(&l, &dirs, &info.state.id, dir_fd);

	buf_done(&l.sinks[LOG_STDOUT].out);
	buf_done(&l.sinks[LOG_STDERR].out);
	return r < 0 && r != -EPIPE ? error_sys(e, -r, "log of sandbox %s", name) : 0;
}

static int logs_run(int argc, char **argv)
{
	struct error e = ERROR_INIT;
	struct logs_args args = { .tail = UINT64_MAX };
	char **operands = NULL;
	int r = args_parse(&cmd_logs, argc, argv, &args, &operands, &e);

	if (r != 0) {
		return r < 0 ? cli_fail(&e) : 0;
	}
	return logs_main(&args, operands[0], &e) < 0 ? cli_fail(&e) : 0;
}

const struct args_command cmd_logs = {
	.name = "logs",
	.synopsis = "[options] SANDBOX",
	.summary = "print the output of a detached sandbox",
	.options = logs_options,
	.operands_min = 1,
	.operands_max = 1,
	.run = logs_run,
};
