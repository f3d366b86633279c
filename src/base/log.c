/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <osbx/clock.h>
#include <osbx/json.h>
#include <osbx/log.h>
#include <osbx/str.h>

#define LOG_TEXT_MAX    2048
#define LOG_LINE_MAX    16384 /* JSON may need six bytes for one */
#define LOG_WAIT_MS     1000
#define LOG_WAIT_ROUNDS 5

static const struct {
	const char *name;   /* in JSON */
	const char *prefix; /* in text */
} log_levels[] = {
	[LOG_LEVEL_ERROR] = { "error", "osbx: " },
	[LOG_LEVEL_WARN] = { "warn", "osbx: warning: " },
	[LOG_LEVEL_INFO] = { "info", "osbx: " },
	[LOG_LEVEL_DEBUG] = { "debug", "osbx: debug: " },
};
_Static_assert(ARRAY_SIZE(log_levels) == LOG_LEVEL_COUNT, "log_levels is complete");

static enum log_level log_max = LOG_LEVEL_WARN;
static bool log_json;

void log_set_level(enum log_level level)
{
	assert((unsigned int)level < LOG_LEVEL_COUNT);
	log_max = level;
}

void log_set_json(bool on)
{
	log_json = on;
}

/* One write a line, so that lines of several processes do not mix. Standard error may be
 * non-blocking by another's doing: wait a little, then lose the line rather than the program. */
static void log_write(const char *p, size_t n)
{
	int rounds = 0;

	while (n > 0) {
		ssize_t r = write(STDERR_FILENO, p, n);

		if (r >= 0) {
			p += r;
			n -= (size_t)r;
		} else if (errno == EAGAIN && rounds++ < LOG_WAIT_ROUNDS) {
			struct pollfd pfd = { .fd = STDERR_FILENO, .events = POLLOUT };

			(void)poll(&pfd, 1, LOG_WAIT_MS);
		} else if (errno != EINTR) {
			return;
		}
	}
}

static void log_emit_json(enum log_level level, const char *text, const char *hint)
{
	AUTO(buf) struct buf line = BUF_INIT(LOG_LINE_MAX);
	struct json_writer w = JSON_WRITER(&line);
	char now[CLOCK_RFC3339_MAX];

	clock_rfc3339(clock_wall_ms(), now, sizeof(now));
	json_object_begin(&w, NULL);
	json_add_string(&w, "time", now);
	json_add_string(&w, "level", log_levels[level].name);
	json_add_string(&w, "msg", text);
	if (hint) {
		json_add_string(&w, "hint", hint);
	}
	json_object_end(&w);
	if (!w.failed && buf_append_str(&line, "\n") == 0) {
		log_write(line.p, line.n);
	}
}

static void log_emit_text(enum log_level level, const char *text, const char *hint)
{
	AUTO(buf) struct buf line = BUF_INIT(LOG_LINE_MAX);
	char clean[LOG_TEXT_MAX];
	int r = 0;

	str_printable(text, clean, sizeof(clean));
	r = buf_appendf(&line, "%s%s\n", log_levels[level].prefix, clean);
	if (r == 0 && hint) {
		str_printable(hint, clean, sizeof(clean));
		r = buf_appendf(&line, "hint: %s\n", clean);
	}
	if (r == 0) {
		log_write(line.p, line.n);
	}
}

static void log_emit(enum log_level level, const char *text, const char *hint)
{
	int saved = errno;

	if (log_json) {
		log_emit_json(level, text, hint);
	} else {
		log_emit_text(level, text, hint);
	}
	errno = saved;
}

void log_line(enum log_level level, const char *fmt, ...)
{
	char text[LOG_TEXT_MAX];
	va_list ap;

	assert((unsigned int)level < LOG_LEVEL_COUNT);

	if (level > log_max) {
		return;
	}
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_emit(level, text, NULL);
}

void log_print_error(const struct error *e)
{
	char text[LOG_TEXT_MAX];

	error_render(e, text, sizeof(text));
	log_emit(LOG_LEVEL_ERROR, text, e->hint[0] ? e->hint : NULL);
}
