/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/mem.h>

static void *checked(void *p)
{
	if (!p) {
		abort();
	}
	return p;
}

void *mem_array(size_t n, size_t size)
{
	/* calloc checks the product; of nothing it may return NULL, which is no failure. */
	return checked(calloc(n ? n : 1, size ? size : 1));
}

void *mem_resize(void *p, size_t old_n, size_t n, size_t size)
{
	char *q = NULL;

	assert(size > 0);

	q = checked(reallocarray(p, n ? n : 1, size));
	if (n > old_n) {
		memset(q + old_n * size, 0, (n - old_n) * size);
	}
	return q;
}

char *mem_dup(const void *p, size_t n)
{
	char *q = NULL;

	assert(n < SIZE_MAX);

	q = checked(malloc(n + 1));
	if (n > 0) {
		memcpy(q, p, n);
	}
	q[n] = '\0';
	return q;
}

char *mem_strdup(const char *s)
{
	return s ? mem_dup(s, strlen(s)) : NULL;
}

char *mem_vprintf(const char *fmt, va_list ap)
{
	char *s = NULL;

	if (vasprintf(&s, fmt, ap) < 0) {
		abort();
	}
	return s;
}

char *mem_printf(const char *fmt, ...)
{
	va_list ap;
	char *s = NULL;

	va_start(ap, fmt);
	s = mem_vprintf(fmt, ap);
	va_end(ap);
	return s;
}
