/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <osbx/buf.h>
#include <osbx/mem.h>

#define BUF_CAP_MIN 64

void buf_done(struct buf *b)
{
	if (!b) {
		return;
	}
	free(b->p);
	*b = (struct buf)BUF_INIT(b->max);
}

int buf_reserve(struct buf *b, size_t n)
{
	size_t need = 0;
	size_t cap = 0;

	assert(b->n <= b->max);

	/* One byte more for the NUL. */
	if (n > b->max - b->n || __builtin_add_overflow(b->n + n, 1, &need)) {
		return -EMSGSIZE;
	}
	if (need > b->cap) {
		cap = b->cap < BUF_CAP_MIN ? BUF_CAP_MIN : b->cap;
		while (cap < need) {
			cap = cap > SIZE_MAX / 2 ? need : cap * 2;
		}
		/* A buffer that nears its maximum gets just that. */
		if (b->max < SIZE_MAX && cap > b->max + 1) {
			cap = b->max + 1;
		}
		/* old_n = n: the new bytes are written before they are read, no need to clear. */
		b->p = mem_resize(b->p, cap, cap, 1);
		b->cap = cap;
	}
	b->p[b->n] = '\0';
	return 0;
}

int buf_append(struct buf *b, const void *p, size_t n)
{
	int r = buf_reserve(b, n);

	if (r < 0) {
		return r;
	}
	if (n > 0) {
		memcpy(b->p + b->n, p, n);
	}
	b->n += n;
	b->p[b->n] = '\0';
	return 0;
}

int buf_append_str(struct buf *b, const char *s)
{
	return buf_append(b, s, strlen(s));
}

PRINTF_LIKE(2, 0)
static int buf_vappendf(struct buf *b, const char *fmt, va_list ap)
{
	va_list again;
	int len = 0;
	int r = 0;

	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (len < 0) {
		return -EMSGSIZE;
	}
	r = buf_reserve(b, (size_t)len);
	if (r < 0) {
		return r;
	}
	(void)vsnprintf(b->p + b->n, (size_t)len + 1, fmt, ap);
	b->n += (size_t)len;
	return 0;
}

int buf_appendf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int r = 0;

	va_start(ap, fmt);
	r = buf_vappendf(b, fmt, ap);
	va_end(ap);
	return r;
}

void buf_consume(struct buf *b, size_t n)
{
	assert(n <= b->n);

	if (n == 0) {
		return;
	}
	memmove(b->p, b->p + n, b->n - n);
	b->n -= n;
	b->p[b->n] = '\0';
}

void buf_reset(struct buf *b)
{
	b->n = 0;
	if (b->p) {
		b->p[0] = '\0';
	}
}

char *buf_take(struct buf *b)
{
	char *s = b->p ? b->p : mem_strdup("");

	/* A caller that filled reserved room by itself has moved n only. */
	s[b->n] = '\0';
	*b = (struct buf)BUF_INIT(b->max);
	return s;
}
