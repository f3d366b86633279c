/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <osbx/errnos.h>
#include <osbx/error.h>

/* Linux's MAX_ERRNO: no errno is larger. */
#define ERRNO_MAX 4095

static const struct {
	const char *name;
	int http_status;
	int exit_status;
} errc_table[] = {
	[ERRC_OK] = { "OK", 200, 0 },
	[ERRC_INVALID] = { "INVALID_REQUEST", 400, 125 },
	[ERRC_NOT_FOUND] = { "NOT_FOUND", 404, 125 },
	[ERRC_CONFLICT] = { "CONFLICT", 409, 125 },
	[ERRC_DENIED] = { "FORBIDDEN", 403, 125 },
	[ERRC_UNAUTHENTICATED] = { "UNAUTHORIZED", 401, 125 },
	[ERRC_LIMIT] = { "LIMIT_EXCEEDED", 413, 125 },
	[ERRC_TIMEOUT] = { "TIMEOUT", 504, 125 },
	[ERRC_UNSUPPORTED] = { "NOT_SUPPORTED", 501, 125 },
	[ERRC_UNAVAILABLE] = { "UNAVAILABLE", 503, 125 },
	[ERRC_SYSTEM] = { "RUNTIME_ERROR", 500, 125 },
	[ERRC_INTERNAL] = { "INTERNAL_ERROR", 500, 125 },
	[ERRC_NOT_EXECUTABLE] = { "COMMAND_NOT_EXECUTABLE", 400, 126 },
	[ERRC_NO_COMMAND] = { "COMMAND_NOT_FOUND", 400, 127 },
};
_Static_assert(ARRAY_SIZE(errc_table) == ERRC_COUNT, "errc_table is complete");

PRINTF_LIKE(2, 0)
static void error_vtext(struct error *e, const char *fmt, va_list ap)
{
	int n = vsnprintf(e->text, sizeof(e->text), fmt, ap);

	e->truncated = n < 0 || (size_t)n >= sizeof(e->text);
}

int error_set(struct error *e, enum errc code, const char *fmt, ...)
{
	va_list ap;

	assert(e->code == ERRC_OK);
	assert(code > ERRC_OK && code < ERRC_COUNT);

	e->code = code;
	e->sysno = 0;
	va_start(ap, fmt);
	error_vtext(e, fmt, ap);
	va_end(ap);
	return -1;
}

int error_sys(struct error *e, int sysno, const char *fmt, ...)
{
	va_list ap;

	assert(e->code == ERRC_OK);
	assert(sysno > 0 && sysno <= ERRNO_MAX);

	e->code = ERRC_SYSTEM;
	e->sysno = sysno;
	va_start(ap, fmt);
	error_vtext(e, fmt, ap);
	va_end(ap);
	return -1;
}

int error_wrap(struct error *e, const char *fmt, ...)
{
	char head[ERROR_TEXT_MAX];
	char tail[ERROR_TEXT_MAX];
	va_list ap;
	int n;

	assert(e->code != ERRC_OK);

	va_start(ap, fmt);
	n = vsnprintf(head, sizeof(head), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n + 2 >= sizeof(head)) {
		/* The cause says more than where it happened. */
		e->truncated = 1;
		return -1;
	}
	memcpy(tail, e->text, sizeof(tail));
	n = snprintf(e->text, sizeof(e->text), "%.*s: %.*s", n, head,
			(int)(sizeof(e->text) - 3 - (size_t)n), tail);
	e->truncated |= (size_t)n < strlen(head) + 2 + strlen(tail);
	return -1;
}

int error_hint(struct error *e, const char *fmt, ...)
{
	va_list ap;
	int n;

	assert(e->code != ERRC_OK);

	if (e->hint[0] != '\0') {
		return -1;
	}
	va_start(ap, fmt);
	n = vsnprintf(e->hint, sizeof(e->hint), fmt, ap);
	va_end(ap);
	e->truncated |= n < 0 || (size_t)n >= sizeof(e->hint);
	return -1;
}

void error_clear(struct error *e)
{
	memset(e, 0, sizeof(*e));
}

void error_sanitize(struct error *e)
{
	if ((unsigned int)e->code >= ERRC_COUNT) {
		e->code = ERRC_INTERNAL;
	}
	if (e->sysno < 0 || e->sysno > ERRNO_MAX) {
		e->sysno = 0;
	}
	e->truncated = e->truncated != 0;
	e->text[sizeof(e->text) - 1] = '\0';
	e->hint[sizeof(e->hint) - 1] = '\0';
}

void error_render(const struct error *e, char *out, size_t out_size)
{
	const char *why = NULL;

	assert(out_size > 0);

	if (e->sysno == 0) {
		(void)snprintf(out, out_size, "%s", e->text);
		return;
	}
	why = errno_text(e->sysno);
	if (why) {
		(void)snprintf(out, out_size, "%s: %s", e->text, why);
	} else {
		(void)snprintf(out, out_size, "%s: error %d", e->text, e->sysno);
	}
}

const char *error_name(enum errc code)
{
	assert((unsigned int)code < ERRC_COUNT);
	return errc_table[code].name;
}

int error_http_status(enum errc code)
{
	assert((unsigned int)code < ERRC_COUNT);
	return errc_table[code].http_status;
}

int error_exit_status(enum errc code)
{
	assert((unsigned int)code < ERRC_COUNT);
	return errc_table[code].exit_status;
}
