/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * log - lines on standard error for mains; libraries only log at debug.
 *
 * Text ("osbx: …") by default, JSON lines on request. Environment values, header values, tokens
 * and command text are never logged above debug.
 */
#ifndef OSBX_LOG_H
#define OSBX_LOG_H

#include <stdbool.h>

#include <osbx/compiler.h>
#include <osbx/error.h>

enum log_level {
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARN,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG,
	LOG_LEVEL_COUNT,
};

/* Only lines up to level are written (default WARN). Not for threads. */
void log_set_level(enum log_level level);
/* JSON lines instead of text. */
void log_set_json(bool on);
/* One line; control bytes are replaced. Keeps errno. */
void log_line(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3) NONNULL(2);
/* The user-facing form of an error: "osbx: <text>: <strerror>", then "hint: …" if there is one. */
void log_print_error(const struct error *e) NONNULL(1);

#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)
#define log_info(...)  log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)

#endif
