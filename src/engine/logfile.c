/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/logfile.h>

#define TIME_BYTES   48 /* 2026-01-02T03:04:05.123456789Z and a NUL */
#define NAME_BYTES   16
#define RECORD_BYTES (LOG_TEXT_BYTES + TIME_BYTES + 16)

static const char *const stream_names[] = {
	[LOG_STDOUT] = "stdout",
	[LOG_STDERR] = "stderr",
};
_Static_assert(ARRAY_SIZE(stream_names) == LOG_STREAM_COUNT, "stream_names is complete");

static int file_make(int dir_fd)
{
	return fd_open_at(dir_fd, LOG_FILE, O_WRONLY | O_CREAT | O_APPEND | O_EXCL, 0600);
}

int logfile_start(struct logfile *l, int dir_fd, uint64_t max_bytes)
{
	int fd = file_make(dir_fd);

	if (fd < 0) {
		return fd;
	}
	l->dir_fd = dir_fd;
	l->fd = fd;
	l->max = max_bytes;
	l->size = 0;
	return 0;
}

void logfile_done(struct logfile *l)
{
	if (l) {
		fd_close(&l->fd);
		buf_done(&l->out);
	}
}

static void name_of(unsigned int at, char *out)
{
	(void)snprintf(out, NAME_BYTES, at > 0 ? LOG_FILE ".%u" : LOG_FILE, at);
}

/* The oldest goes, all others move on by one. Without room for a new file the old one goes on. */
static void rotate(struct logfile *l)
{
	char from[NAME_BYTES];
	char to[NAME_BYTES];

	for (unsigned int i = LOG_FILES - 1; i > 0; i--) {
		name_of(i - 1, from);
		name_of(i, to);
		(void)renameat(l->dir_fd, from, l->dir_fd, to);
	}
	int fd = file_make(l->dir_fd);

	if (fd >= 0) {
		fd_close(&l->fd);
		l->fd = fd;
	} else if (ftruncate(l->fd, 0) < 0) {
		return;
	}
	l->size = 0;
}

/* Write what has been gathered: whole records. */
static void flush(struct logfile *l)
{
	if (l->out.n == 0) {
		return;
	}
	if (l->size > 0 && l->size + l->out.n > l->max) {
		rotate(l);
	}
	if (fd_write_all(l->fd, l->out.p, l->out.n) < 0) {
		/* Half a record would be taken for a whole one. */
		l->lost += l->out.n;
		(void)!ftruncate(l->fd, (off_t)l->size);
	} else {
		l->size += l->out.n;
	}
	buf_reset(&l->out);
}

static void time_now(char *out)
{
	struct timespec ts = { 0 };
	struct tm tm = { 0 };
	char date[24];

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	(void)gmtime_r(&ts.tv_sec, &tm);
	(void)strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(out, TIME_BYTES, "%s.%09ldZ", date, ts.tv_nsec);
}

void logfile_add(struct logfile *l, enum log_stream stream, struct span bytes)
{
	char now[TIME_BYTES];

	assert((unsigned int)stream < LOG_STREAM_COUNT);
	time_now(now);
	while (bytes.n > 0) {
		const char *newline = memchr(bytes.p, '\n', bytes.n);
		size_t n = newline ? (size_t)(newline - bytes.p) : bytes.n;
		bool is_partial = !newline || n > LOG_TEXT_BYTES;

		n = n < LOG_TEXT_BYTES ? n : LOG_TEXT_BYTES;
		if (l->out.n + RECORD_BYTES > l->out.max || l->out.n + RECORD_BYTES > l->max) {
			flush(l);
		}
		/* There is room for any record. */
		(void)!buf_appendf(&l->out, "%s %s %c ", now, stream_names[stream],
				is_partial ? 'P' : 'F');
		(void)!buf_append(&l->out, bytes.p, n);
		(void)!buf_append(&l->out, "\n", 1);
		bytes = span_from(bytes, is_partial ? n : n + 1);
	}
	flush(l);
}

/* Take everything before the next blank. */
static bool word_take(struct span *line, struct span *out)
{
	const char *blank = memchr(line->p, ' ', line->n);

	if (!blank) {
		return false;
	}
	*out = (struct span){ .p = line->p, .n = (size_t)(blank - line->p) };
	*line = span_from(*line, out->n + 1);
	return true;
}

int log_record_parse(struct span line, struct log_record *out_record)
{
	struct log_record r = { .is_partial = false };
	struct span stream = { .n = 0 };
	struct span tag = { .n = 0 };

	if (!word_take(&line, &r.time) || !word_take(&line, &stream) || !word_take(&line, &tag)) {
		return -EBADMSG;
	}
	for (size_t i = 0; i < ARRAY_SIZE(stream_names); i++) {
		if (span_eq(stream, span_of(stream_names[i]))) {
			r.stream = (enum log_stream)i;
			r.is_partial = span_eq(tag, span_of("P"));
			r.text = line;
			*out_record = r;
			return 0;
		}
	}
	return -EBADMSG;
}
