/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * error - one error value: what failed, in words, and what would help.
 *
 * By value, 512 bytes, no allocation: it travels in one packet, so a child's error is the parent's
 * error. First error wins: error_set and error_sys assert that none is pending, error_wrap and
 * error_hint that one is. Text: lower case, no final stop, names the object ("mount /proc").
 */
#ifndef OSBX_ERROR_H
#define OSBX_ERROR_H

#include <stdint.h>

#include <osbx/compiler.h>

enum errc {
	ERRC_OK = 0,
	ERRC_INVALID,         /* bad input: a flag, a field, a document */
	ERRC_NOT_FOUND,       /* the noun the user named does not exist */
	ERRC_CONFLICT,        /* exists already, in use, wrong state */
	ERRC_DENIED,          /* policy or permission */
	ERRC_UNAUTHENTICATED, /* credentials missing or wrong */
	ERRC_LIMIT,           /* larger than a maximum of ours */
	ERRC_TIMEOUT,         /* a deadline passed */
	ERRC_UNSUPPORTED,     /* legal, but not by this build, kernel or machine */
	ERRC_UNAVAILABLE,     /* may work later */
	ERRC_SYSTEM,          /* the kernel said no; sysno says why */
	ERRC_INTERNAL,        /* our own mistake */
	ERRC_NOT_EXECUTABLE,  /* the command exists and cannot be executed: exit 126 */
	ERRC_NO_COMMAND,      /* the command does not exist: exit 127 */
	ERRC_COUNT,
};

#define ERROR_TEXT_MAX 340
#define ERROR_HINT_MAX 160

struct error {
	enum errc code;
	int32_t sysno;      /* errno of the kernel, 0 if none; rendered once, by error_print */
	uint16_t api_code;  /* 0: the class decides */
	uint16_t truncated; /* text or hint did not fit */
	char text[ERROR_TEXT_MAX];
	char hint[ERROR_HINT_MAX]; /* remedy, as a sentence or command; "" if none */
};
_Static_assert(sizeof(struct error) == 512, "struct error travels in one packet");

#define ERROR_INIT              \
	{                       \
		.code = ERRC_OK \
	}

/* A rule was broken. Returns -1. */
int error_set(struct error *e, enum errc code, const char *fmt, ...) PRINTF_LIKE(3, 4)
		NONNULL(1, 3);
/* The kernel said no with errno sysno (positive). Code is ERRC_SYSTEM. Returns -1. */
int error_sys(struct error *e, int sysno, const char *fmt, ...) PRINTF_LIKE(3, 4) NONNULL(1, 3);
/* Prepend "…: " to the pending error. Returns -1. */
int error_wrap(struct error *e, const char *fmt, ...) PRINTF_LIKE(2, 3) NONNULL(1, 2);
/* Add the remedy to the pending error; the first hint wins. Returns -1. */
int error_hint(struct error *e, const char *fmt, ...) PRINTF_LIKE(2, 3) NONNULL(1, 2);
/* Forget a pending error that was handled. */
void error_clear(struct error *e) NONNULL(1);
/* Bytes from another process (a packet): terminate the strings, clamp the code. */
void error_sanitize(struct error *e) NONNULL(1);
/* "text: strerror(sysno)" into out, always terminated. */
void error_render(const struct error *e, char *out, size_t out_size) NONNULL(1, 2);
/* Class name of the API, HTTP status and exit status of a code. */
const char *error_name(enum errc code);
int error_http_status(enum errc code);
int error_exit_status(enum errc code);

#endif
